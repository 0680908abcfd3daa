//! Serves models on a simulated card beside a desktop that takes memory and gives it back: `desktop -m MODEL -m MODEL`.
//!
//! Nothing here says anything about speed. `tools/soak` runs it: texts must stay right, and the desktop's memory must stay on the card.
#![allow(clippy::print_stderr)] // it is a program for people

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use rocmforge::backend::{BackendOptions, HipBackend, PoolOptions};
use rocmforge::device::{self, Device};
use rocmforge::ggml::{Activations, HipGgmlBackend, HybridBackend};
use rocmforge::memory::Bytes;
use rocmforge::sim::{CardConfig, Client, DesktopConfig};
use rocmforge_ggml::CpuBackend;
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions, Limit, Model};
use rocmforge_server::{App, CardMemory, Facts, LoadError, Loaded, ServerOptions, Source};
use rocmforge_test_support::Random;
use tokio::signal::unix::{SignalKind, signal};

const GIB: u64 = 1 << 30;
/// How often the simulated time follows the clock: nothing else advances it while no request is computed.
const TICK: Duration = Duration::from_millis(20);
/// Simulated time for which the desktop changes.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

#[derive(Parser)]
struct Args {
    /// GGUF files.
    #[arg(short, long = "model", required = true)]
    models: Vec<PathBuf>,
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Longest sequence in tokens.
    #[arg(long, default_value_t = 256)]
    ctx: usize,
    #[arg(long, default_value_t = 1)]
    max_models: usize,
    #[arg(long, default_value_t = 0)]
    seed: u64,
}

/// A model on the card, and on the CPU where the desktop leaves no room.
struct OnCard {
    path: PathBuf,
    context: usize,
    card: Arc<HipBackend>,
}

impl Source for OnCard {
    fn load(&self) -> Result<Loaded, LoadError> {
        let model = Model::open(&self.path)?;
        let template = model.chat_template()?;
        let card = Arc::clone(&self.card);
        let context = self.context.min(model.config().context);
        let server = Server::start(ServeOptions::default(), move || {
            // Without rounding, so that a layer gives the same on both.
            let hip = HipGgmlBackend::new(&card)?.activations(Activations::F32);
            let options = EngineOptions {
                max_context: Limit::Tokens(context),
                max_sequences: 8,
                ..EngineOptions::default()
            };
            let engine = Engine::new(HybridBackend::new(hip, CpuBackend::new()), &model, options)?;
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        let mut loaded = Loaded::new(server);
        loaded.template = template;
        loaded.facts = Facts {
            context,
            device: "sim".to_owned(),
            ..Facts::default()
        };
        let card = Arc::clone(&self.card);
        loaded.memory = Box::new(move || vec![memory(&card)]);
        eprintln!("INFO loaded model={}", self.path.display());
        Ok(loaded)
    }

    fn unloaded(&self) {
        if let Err(error) = self.card.synchronize().and_then(|()| self.card.trim_memory(Bytes(0))) {
            eprintln!("memory of the card's pool is not given back: {error}");
        }
    }
}

fn memory(card: &HipBackend) -> CardMemory {
    let budget = card.card().budget();
    CardMemory {
        id: card.device().pci.to_string(),
        name: card.device().name.clone(),
        total: budget.total.unwrap_or_default(),
        budget: budget.budget,
        own: budget.own,
        others: budget.others,
        headroom: budget.headroom,
    }
}

/// A program that takes 4 GiB at once and gives them back, again and again. It is away for longer than the ten seconds after which the budget grows.
fn game(seed: u64) -> Client {
    let mut random = Random(seed);
    let (mut time, mut steps) = (Duration::ZERO, Vec::new());
    while time < LONGEST {
        time += Duration::from_millis(11_000 + random.below(6000));
        steps.push((time, Bytes(4 * GIB)));
        time += Duration::from_millis(500 + random.below(2500));
        steps.push((time, Bytes(0)));
    }
    Client::steps("game", steps)
}

/// A card of 5 GiB, of which the desktop wants 4.8 while the game is there: what is left it needs for itself.
fn open(seed: u64) -> Result<Device, device::DeviceError> {
    let card = CardConfig {
        vram: Bytes(5 * GIB),
        desktop: Some(DesktopConfig {
            seed,
            preemption_failure: 0.0,
            ..DesktopConfig::with([Client::walk(Bytes(GIB / 5), Bytes(GIB / 4)), game(seed)])
        }),
        ..CardConfig::default()
    };
    let options = BackendOptions {
        pool: PoolOptions::ON,
        ..BackendOptions::default()
    };
    device::open_simulated(card, options)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let device = open(args.seed)?;
    let sim = Arc::clone(device.sim().ok_or("it is simulated")?);
    let clock = sim.clock();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(TICK);
            clock.pause(TICK);
        }
    });
    let sources = args.models.iter().map(|path| {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or("model");
        let source = OnCard {
            path: path.clone(),
            context: args.ctx,
            card: Arc::clone(device.backend()),
        };
        (name.to_owned(), Box::new(source) as Box<dyn Source>)
    });
    let sources: Vec<_> = sources.collect();
    let names: Vec<String> = sources.iter().map(|(name, _)| name.clone()).collect();
    let options = ServerOptions {
        max_models: args.max_models,
        ..ServerOptions::default()
    };
    let app = App::new(options, sources)?;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", args.port)).await?;
    eprintln!(
        "listening on http://{}, models: {}",
        listener.local_addr()?,
        names.join(", ")
    );
    let mut terminate = signal(SignalKind::terminate())?;
    let end = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    app.run_on(listener, end).await?;
    let desktop = sim.desktop(0).ok_or("the card has one")?;
    eprintln!("desktop: {desktop:?}");
    match desktop.alive() && desktop.evicted_by_us == Bytes(0) && desktop.queue_stops == 0 {
        true => Ok(()),
        false => Err("the desktop lost memory to us, or had our queues stopped".into()),
    }
}
