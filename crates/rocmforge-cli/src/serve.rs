//! Serve: answers HTTP requests with models of the store, until Ctrl-C or SIGTERM.

use std::io::{IsTerminal, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::Duration;

use clap::Args as Arguments;
use rocmforge::backend::HipBackend;
use rocmforge::ggml::HipGgmlBackend;
use rocmforge::memory::Bytes;
use rocmforge::models::bert::{AnyModel, Bert, Embedder, EmbedderOptions};
use rocmforge::models::chat::ChatTemplate;
use rocmforge::models::generate::Generator;
use rocmforge::models::serve::{EmbeddingOptions, EmbeddingServer, ServeOptions, Server};
use rocmforge::models::{Engine, EngineOptions, MemoryPlan, Model};
use rocmforge_server::{
    App, CardMemory, Facts, Keys, Limits, LoadError, Loaded, ModelKind, ServerOptions, Source, Tls, TlsError,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::failure::Failure;
use crate::kv_events::{self, Events};
use crate::machine::{self, Opened};
use crate::models;
use crate::options::{DEFAULT_MODEL, MachineOptions};
use crate::store::Store;

/// Serves models over HTTP: a chat at `/`, and the APIs of OpenAI, Anthropic and ollama. Encoders (bert) give embeddings, or scores of documents.
#[derive(Arguments, Clone, Debug)]
pub(crate) struct Args {
    /// A model, as `rocmforge run` takes it. Clients use the same name, or that of the file without `.gguf`. May be given several times [default: all models that
    /// `rocmforge list` shows, or smollm2].
    #[arg(short, long = "model")]
    models: Vec<String>,
    /// Address to listen on. One that other machines reach needs --keys.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    host: IpAddr,
    /// Port to listen on; 0 takes a free one, which is printed.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// File with the keys of those who may ask, one a line, as KEY or NAME:KEY.
    #[arg(long, value_name = "FILE")]
    keys: Option<PathBuf>,
    /// File with the keys of admins, who may also ask for /slots and POST /admin/reload; its form is that of --keys.
    #[arg(long, value_name = "FILE")]
    admin_keys: Option<PathBuf>,
    /// PEM file with the certificate of this machine, and those between it and a root. With it the server speaks HTTPS only.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// PEM file with the key of the certificate, without a passphrase.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Serves other machines without keys: whoever reaches the address may use the card.
    #[arg(long)]
    allow_without_keys: bool,
    /// A name of this machine that clients use in URLs, beside localhost and addresses. May be given several times.
    #[arg(long = "host-name", value_name = "NAME")]
    host_names: Vec<String>,
    /// Origin of a web page elsewhere that may ask, such as `https://chat.example.org`. May be given several times.
    #[arg(long = "origin", value_name = "ORIGIN")]
    origins: Vec<String>,
    /// Most models that are loaded at a time.
    #[arg(long, default_value_t = 1)]
    max_models: usize,
    /// Seconds that a model stays loaded after its last request [default: until another needs its place].
    #[arg(long, value_name = "SECONDS")]
    keep_alive: Option<u64>,
    /// Most answers that are computed at a time.
    #[arg(long, default_value_t = EngineOptions::default().max_sequences)]
    parallel: usize,
    /// Most requests that are open: those that wait and those that are computed.
    #[arg(long, default_value_t = 256)]
    queue: usize,
    /// Shows at /slots how many sequences are computed; with --keys to admins only.
    #[arg(long)]
    slots: bool,
    /// Shows no figures for Prometheus at /metrics.
    #[arg(long)]
    no_metrics: bool,
    /// Shows no page at /.
    #[arg(long)]
    no_page: bool,
    /// Shows no template and settings of a model at /props.
    #[arg(long)]
    no_props: bool,
    /// Writes the log as JSON, one object a line.
    #[arg(long)]
    log_json: bool,
    #[command(flatten)]
    kv_events: kv_events::Options,
    #[command(flatten)]
    machine: MachineOptions,
}

impl Args {
    /// The certificate, if there is to be one.
    fn tls(&self) -> Result<Option<Tls>, TlsError> {
        let files = self.tls_cert.as_deref().zip(self.tls_key.as_deref());
        files.map(|(certificate, key)| Tls::read(certificate, key)).transpose()
    }
}

/// How long the end of the program waits for work on other threads.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Stack in bytes of the threads that read requests and load models, whatever the environment (`RUST_MIN_STACK`) says. JSON is at most 128
/// deep; templates have a larger stack of their own.
const STACK: usize = 2 << 20;

/// A model of the command, loaded when it is asked for.
struct Served {
    name: String,
    path: PathBuf,
    /// What the path had when the model was named.
    identity: String,
    opened: Opened,
    args: Arc<Args>,
    events: Events,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    log(args.log_json)?;
    // It sends its last spans when all else has ended.
    #[cfg(feature = "otel")]
    let _spans = rocmforge_server::otel::start()?;
    let args = Arc::new(args.clone());
    // Before a model is fetched.
    let keys = args.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default();
    let admin_keys = args.admin_keys.as_deref().map(Keys::read).transpose()?;
    let tls = args.tls()?;
    let opened = machine::open(&args.machine)?;
    let sources = sources(&args, &opened, Store::path_of)?;
    let names: Vec<String> = sources.iter().map(|served| served.name.clone()).collect();
    let (has_keys, named) = (args.keys.is_some(), args.models.len());
    let events = args
        .kv_events
        .start(has_keys, args.allow_without_keys, named, &names[0])?;
    let options = ServerOptions {
        listen: (args.host, args.port).into(),
        keys,
        admin_keys: admin_keys.unwrap_or_default(),
        tls,
        allow_without_keys: args.allow_without_keys,
        hosts: args.host_names.clone(),
        origins: args.origins.clone(),
        max_models: args.max_models,
        slots: args.slots,
        metrics: !args.no_metrics,
        page: !args.no_page,
        props: !args.no_props,
        keep_alive: args.keep_alive.map(Duration::from_secs),
        limits: Limits {
            requests: args.queue,
            ..Limits::default()
        },
        ..ServerOptions::default()
    };
    let had_terminals = terminals();
    let app = App::new(options, with_events(sources, &events))?;
    let of_reload = Arc::clone(&args);
    app.on_reload(move |app| reload(app, &of_reload, &opened, &events));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_stack_size(STACK)
        .enable_all()
        .build()?;
    let served: Result<(), Failure> = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind((args.host, args.port)).await;
        let listener = listener.map_err(|error| format!("cannot listen on {}:{}: {error}", args.host, args.port))?;
        let address = listener.local_addr()?;
        let mut terminate = signal(SignalKind::terminate())?;
        // From here on SIGHUP does not end the program, unless its terminal goes.
        let mut hangup = signal(SignalKind::hangup())?;
        // The first model is there before the first request.
        let named = !args.models.is_empty();
        tokio::select! {
            loaded = app.load(&names[0]) => match loaded {
                Err(error) if named => return Err(error.into()),
                // The others may be usable.
                Err(_) | Ok(()) => {}
            },
            _ = terminate.recv() => return Ok(()),
        }
        let scheme = if args.tls_cert.is_some() { "https" } else { "http" };
        eprintln!("listening on {scheme}://{address}, models: {}", names.join(", "));
        let of_hangup = app.clone();
        app.run_on(listener, async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
                () = reload_until_hangup(&of_hangup, &mut hangup, had_terminals) => {}
            }
            // Nobody may read it any more.
            let _ = writeln!(
                std::io::stderr(),
                "running answers come to their end; Ctrl-C ends the program at once"
            );
            tokio::spawn(async {
                let _ = tokio::signal::ctrl_c().await;
                std::process::exit(130);
            });
        })
        .await?;
        Ok(())
    });
    // A device that does not answer must not keep the program.
    runtime.shutdown_timeout(LAST_WAIT);
    if !drop_within(app, LAST_WAIT) {
        tracing::warn!("a device does not answer: the program ends without it");
    }
    served
}

/// A model with its name.
type Named = (String, Box<dyn Source>);

/// The models that the command names, or all of the store. `find` gives the path of one.
fn sources(
    args: &Arc<Args>,
    opened: &Opened,
    find: impl Fn(&Store, &str) -> Result<PathBuf, Failure>,
) -> Result<Vec<Served>, Failure> {
    let store = Store::of_user()?;
    let mut names = args.models.clone();
    if names.is_empty() {
        names = store.list()?.into_iter().map(|entry| entry.manifest.name).collect();
    }
    if names.is_empty() {
        names.push(DEFAULT_MODEL.to_owned());
    }
    let mut sources: Vec<Served> = Vec::new();
    for mut name in names {
        let path = find(&store, &name)?;
        // Clients see names of models, and no paths of this machine.
        if path == Path::new(&name) {
            name = name_of(&path)?;
        }
        if sources.iter().any(|other| other.name == name) {
            return Err(format!("two models have the name {name}").into());
        }
        sources.push(Served {
            name,
            identity: identity(&path),
            path,
            opened: opened.clone(),
            args: Arc::clone(args),
            events: Events::default(),
        });
    }
    Ok(sources)
}

/// Models whose events go to these sockets.
fn with_events(sources: Vec<Served>, events: &Events) -> Vec<Named> {
    let named = sources.into_iter().map(|mut served| -> Named {
        served.events = events.clone();
        (served.name.clone(), Box::new(served))
    });
    named.collect()
}

/// A path, and what changes when another file is put there.
fn identity(path: &Path) -> String {
    let meta = std::fs::metadata(path).ok();
    let changes = meta.map(|meta| (meta.len(), meta.modified().ok(), meta.ino()));
    format!("{} {changes:?}", path.display())
}

/// Reads keys, certificate and models anew. What cannot be used is said in the log, and the old setting stays.
fn reload(app: &App, args: &Arc<Args>, opened: &Opened, events: &Events) -> Result<(), String> {
    let keys = || -> Result<(), Failure> {
        if let Some(path) = &args.keys {
            app.set_keys(Keys::read(path)?)?;
        }
        Ok(())
    };
    let admin_keys = || -> Result<(), Failure> {
        if let Some(path) = &args.admin_keys {
            app.set_admin_keys(Keys::read(path)?)?;
        }
        Ok(())
    };
    let tls = || -> Result<(), Failure> {
        if let Some(tls) = args.tls()? {
            app.set_tls(tls)?;
        }
        Ok(())
    };
    let models = || -> Result<(), Failure> {
        // Nothing is fetched meanwhile.
        app.set_models(with_events(sources(args, opened, Store::path_here)?, events))?;
        Ok(())
    };
    let parts = [
        ("keys", keys()),
        ("keys of admins", admin_keys()),
        ("certificate", tls()),
        ("models", models()),
    ];
    let failed = parts.into_iter().filter_map(|(setting, read)| {
        let error = read.err()?;
        let error = error.to_string();
        tracing::error!(setting, ?error, "cannot be reloaded: it stays as it was");
        Some(setting)
    });
    let failed: Vec<&str> = failed.collect();
    match failed.is_empty() {
        true => {
            tracing::info!("keys, certificate and models are reloaded");
            Ok(())
        }
        false => Err(failed.join(", ")),
    }
}

/// Standard streams that are terminals.
fn terminals() -> usize {
    let streams = [
        std::io::stdin().is_terminal(),
        std::io::stdout().is_terminal(),
        std::io::stderr().is_terminal(),
    ];
    streams.into_iter().filter(|is_terminal| *is_terminal).count()
}

/// Reloads at each SIGHUP. Returns when one comes because a terminal of the program has gone: there had been so many.
async fn reload_until_hangup(app: &App, hangup: &mut Signal, before: usize) {
    while hangup.recv().await.is_some() && terminals() >= before {
        // The log has the errors.
        let _ = app.reload().await;
    }
}

/// Drops a value on a thread of its own. Says whether that ended in time; if not, it goes on until the program ends.
fn drop_within(value: impl Send + 'static, time: Duration) -> bool {
    let (ended, has_ended) = mpsc::channel();
    let dropping = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        drop(value);
        let _ = ended.send(());
    });
    dropping.is_err() || has_ended.recv_timeout(time) != Err(mpsc::RecvTimeoutError::Timeout)
}

/// The name that clients use for a model that was given by its path: the file's or the folder's, without `.gguf`.
fn name_of(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path)?;
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| format!("{} has no name in UTF-8", path.display()))?;
    Ok(name.strip_suffix(".gguf").unwrap_or(name).to_owned())
}

/// The log goes to stderr; `ROCMFORGE_LOG` says what is in it, as in `ROCMFORGE_LOG=debug`.
fn log(json: bool) -> Result<(), Failure> {
    let wanted = std::env::var("ROCMFORGE_LOG").unwrap_or_else(|_| "info".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(&wanted);
    let filter = filter.map_err(|error| format!("ROCMFORGE_LOG={wanted} is no filter of a log: {error}"))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // A log that cannot be written must not end a request.
        .log_internal_errors(false)
        // Colours in a file or a journal are control characters.
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match json {
        true => subscriber.json().init(),
        false => subscriber.with_target(false).init(),
    }
    Ok(())
}

impl Source for Served {
    fn kind(&self) -> Option<ModelKind> {
        // Loading it says what is wrong.
        Some(match AnyModel::open(&self.path).ok()? {
            AnyModel::Text(_) => ModelKind::Text,
            AnyModel::Pooled(model) => ModelKind::of_encoder(model.pooling().mode),
        })
    }

    fn load(&self) -> Result<Loaded, LoadError> {
        let model = match AnyModel::open(&self.path)? {
            AnyModel::Pooled(model) => return self.load_encoder(*model),
            AnyModel::Text(model) => model,
        };
        let template = model.chat_template()?.map(ChatTemplate::with_dates);
        let mut facts = Facts {
            trained_context: model.config().context,
            width: model.config().width,
            sequences: self.args.parallel,
            ..Facts::default()
        };
        let about = models::facts(&model).map_err(|error| LoadError::Failed(error.to_string().into()))?;
        let text = |key: &str| about[key].as_str().unwrap_or_default().to_owned();
        (facts.architecture, facts.weight_type) = (text("architecture"), text("type"));
        facts.parameters = about["parameters"].as_u64().unwrap_or(0);
        let plan = Arc::new(OnceLock::new());
        let server = self.start(model, &plan)?;
        if let Some(MemoryPlan {
            weights,
            cache,
            max_context,
            cache_tokens,
            ..
        }) = plan.get().copied()
        {
            (facts.weight_bytes, facts.cache_bytes) = (weights as u64, cache as u64);
            (facts.context, facts.cache_tokens) = (max_context, cache_tokens);
        }
        let mut loaded = Loaded::new(server);
        loaded.template = template;
        self.describe_device(&mut loaded, &mut facts);
        tracing::info!(model = %self.name, device = %facts.device, weights = %Bytes(facts.weight_bytes), context = facts.context, cache_tokens = facts.cache_tokens, "loaded");
        loaded.facts = facts;
        Ok(loaded)
    }

    fn identity(&self) -> String {
        self.identity.clone()
    }

    fn unloaded(&self) {
        let Opened::Cards(cards) = &self.opened else { return };
        for card in cards.backends() {
            // What queued work uses goes when that is done.
            if let Err(error) = card.synchronize().and_then(|()| card.trim_memory(Bytes(0))) {
                tracing::error!(model = %self.name, %error, "memory of the card's pool is not given back");
            }
        }
    }
}

impl Served {
    /// Notes where a model runs.
    fn describe_device(&self, loaded: &mut Loaded, facts: &mut Facts) {
        match &self.opened {
            Opened::Cpu => "cpu".clone_into(&mut facts.device),
            Opened::Cards(cards) => {
                facts.device = cards.to_string();
                let cards = cards.clone();
                loaded.memory = Box::new(move || cards.backends().map(|card| memory(card)).collect());
            }
        }
    }

    /// Loads an encoder, on the first card where there are several: it is small, and whole or not at all.
    fn load_encoder(&self, model: Bert) -> Result<Loaded, LoadError> {
        let about = models::weight_facts(model.weights());
        let mut facts = Facts {
            architecture: model.architecture().name().to_owned(),
            weight_type: about.most.unwrap_or_default(),
            parameters: about.parameters as u64,
            weight_bytes: model.weight_bytes() as u64,
            context: model.max_tokens(),
            trained_context: model.config().context,
            width: model.config().width,
            sequences: self.args.parallel,
            ..Facts::default()
        };
        let options = EmbeddingOptions {
            serve: ServeOptions {
                queue: self.args.queue,
                ..ServeOptions::default()
            },
            ..EmbeddingOptions::default()
        };
        let args = Arc::clone(&self.args);
        let server = match self.opened.clone() {
            Opened::Cpu => EmbeddingServer::start(options, move || {
                Embedder::new(model, args.machine.cpu(), EmbedderOptions::default())
            }),
            Opened::Cards(cards) => EmbeddingServer::start(options, move || {
                let card = machine::tuned(HipGgmlBackend::new(cards.first())?.activations(args.machine.activations()));
                Embedder::new(model, card, EmbedderOptions::default())
            }),
        };
        let mut loaded = Loaded::new(server?);
        self.describe_device(&mut loaded, &mut facts);
        tracing::info!(model = %self.name, device = %facts.device, weights = %Bytes(facts.weight_bytes), context = facts.context, "loaded");
        loaded.facts = facts;
        Ok(loaded)
    }

    /// Starts the model's engine, which notes its memory in `plan`.
    fn start(&self, model: Model, plan: &Arc<OnceLock<MemoryPlan>>) -> Result<Server, LoadError> {
        let options = ServeOptions {
            queue: self.args.queue,
            ..ServeOptions::default()
        };
        let engine = EngineOptions {
            max_sequences: self.args.parallel,
            ..self.args.machine.engine()
        };
        let (args, plan, events) = (Arc::clone(&self.args), Arc::clone(plan), self.events.clone());
        let server = match self.opened.clone() {
            Opened::Cpu => Server::start(options, move || {
                let mut engine = Engine::new(args.machine.cpu(), &model, engine)?;
                events.follow(&mut engine);
                let _ = plan.set(*engine.memory());
                Ok(Generator::new(engine, model.tokenizer()?))
            }),
            Opened::Cards(cards) => Server::start(options, move || {
                let mut engine = Engine::new(cards.machine(&args.machine)?, &model, engine)?;
                events.follow(&mut engine);
                let _ = plan.set(*engine.memory());
                Ok(Generator::new(engine, model.tokenizer()?))
            }),
        };
        Ok(server?)
    }
}

/// Memory of a card now.
fn memory(card: &HipBackend) -> CardMemory {
    let budget = card.card().budget();
    CardMemory {
        id: card.device().pci.to_string(),
        name: card.device().name.clone(),
        total: budget.total.unwrap_or(Bytes(card.device().total_memory.0)),
        budget: budget.budget,
        own: budget.own,
        others: budget.others,
        headroom: budget.headroom,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_come_to_its_end_is_left_behind() {
        /// Waits for a word when it is dropped.
        struct Waits(mpsc::Receiver<()>, mpsc::Sender<()>);

        impl Drop for Waits {
            fn drop(&mut self) {
                let _ = self.0.recv();
                let _ = self.1.send(());
            }
        }

        let (word, waits) = mpsc::channel();
        let (dropped, is_dropped) = mpsc::channel();
        assert!(!drop_within(Waits(waits, dropped), Duration::from_millis(10)));
        word.send(()).expect("it waits");
        is_dropped.recv().expect("it goes on meanwhile");
        assert!(drop_within((), LAST_WAIT));
    }
}
