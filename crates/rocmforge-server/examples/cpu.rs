//! Serves one model, of texts or of embeddings, on the CPU: `cargo run --release -p rocmforge-server --example cpu -- MODEL [PORT]`.
//!
//! It is the least that a program of its own needs, with options that tests of other programs use. `rocmforge serve` has cards and several models.
#![allow(clippy::print_stderr)] // it is a program for people

use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use rocmforge_ggml::CpuBackend;
use rocmforge_models::bert::{AnyModel, Bert, Embedder, EmbedderOptions, Pooling, PoolingMode};
use rocmforge_models::chat::ChatTemplate;
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{EmbeddingOptions, EmbeddingServer, ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions, Limit};
use rocmforge_server::{App, Facts, Keys, LoadError, Loaded, ServerOptions, Source};

#[derive(Clone, Parser)]
struct Args {
    /// A GGUF file, or a directory of safetensors.
    model: PathBuf,
    #[arg(default_value_t = 8080)]
    port: u16,
    /// The name that clients use [default: the file's].
    #[arg(long)]
    name: Option<String>,
    /// Longest sequence in tokens.
    #[arg(long)]
    ctx: Option<usize>,
    /// Requests that are computed at a time.
    #[arg(long, default_value_t = 16)]
    parallel: usize,
    /// Most tokens of one step.
    #[arg(long, default_value_t = 128)]
    chunk: usize,
    #[arg(long)]
    keys: Option<PathBuf>,
    /// A chat template in place of the model's.
    #[arg(long)]
    template: Option<PathBuf>,
    /// Fields that requests have unless they say otherwise, as JSON.
    #[arg(long, default_value = "{}")]
    defaults: String,
    /// Seconds that the model stays loaded without requests.
    #[arg(long)]
    keep_alive: Option<u64>,
    /// Pooling of an encoder in place of the model's: mean, cls, last or rank.
    #[arg(long, value_parser = pooling)]
    pooling: Option<Pooling>,
    #[arg(long)]
    slots: bool,
    #[arg(long)]
    no_metrics: bool,
    #[arg(long)]
    no_page: bool,
}

fn pooling(name: &str) -> Result<Pooling, String> {
    let mode = match name {
        "mean" => PoolingMode::Mean,
        "cls" => PoolingMode::Cls,
        "last" => PoolingMode::Last,
        "rank" => return Ok(Pooling::RANK),
        _ => return Err("it must be mean, cls, last or rank".to_owned()),
    };
    Ok(Pooling { mode, normalize: true })
}

impl Args {
    /// Loads an encoder.
    fn load_encoder(&self, model: Bert) -> Result<Loaded, LoadError> {
        let facts = Facts {
            architecture: model.architecture().name().to_owned(),
            context: model.max_tokens(),
            trained_context: model.max_tokens(),
            width: model.config().width,
            weight_bytes: model.weight_bytes() as u64,
            device: "cpu".to_owned(),
            ..Facts::default()
        };
        let server = EmbeddingServer::start(EmbeddingOptions::default(), move || {
            Embedder::new(model, CpuBackend::new(), EmbedderOptions::default())
        })?;
        Ok(Loaded {
            facts,
            ..Loaded::new(server)
        })
    }
}

impl Source for Args {
    fn load(&self) -> Result<Loaded, LoadError> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| LoadError::Failed(error);
        if self.pooling.is_some() {
            return self.load_encoder(Bert::open_with(&self.model, self.pooling)?);
        }
        let model = match AnyModel::open(&self.model)? {
            AnyModel::Pooled(model) => return self.load_encoder(*model),
            AnyModel::Text(model) => model,
        };
        let tokenizer = model.tokenizer()?;
        let template = match &self.template {
            Some(path) => {
                let text = |id: Option<u32>| id.and_then(|id| tokenizer.token(id));
                let source = std::fs::read_to_string(path).map_err(|error| failed(error.into()))?;
                let template = ChatTemplate::new(&source, text(tokenizer.bos()), text(tokenizer.eos()));
                Some(template.map_err(|error| failed(error.into()))?)
            }
            None => model.chat_template()?,
        };
        let template = template.map(ChatTemplate::with_dates);
        let config = model.config();
        let facts = Facts {
            context: self.ctx.map_or(config.context, |ctx| ctx.min(config.context)),
            trained_context: config.context,
            width: config.width,
            sequences: self.parallel,
            device: "cpu".to_owned(),
            ..Facts::default()
        };
        let options = EngineOptions {
            max_context: Limit::Tokens(facts.context),
            max_sequences: self.parallel,
            chunk: self.chunk.max(self.parallel),
            ..EngineOptions::default()
        };
        let server = Server::start(ServeOptions::default(), move || {
            let engine = Engine::new(CpuBackend::new(), &model, options)?;
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        Ok(Loaded {
            template,
            facts,
            ..Loaded::new(server)
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let stem = args.model.file_stem().and_then(|name| name.to_str());
    let name = args.name.clone().unwrap_or_else(|| stem.unwrap_or("model").to_owned());
    let options = ServerOptions {
        listen: ([127, 0, 0, 1], args.port).into(),
        keys: args.keys.as_deref().map(Keys::read).transpose()?.unwrap_or_default(),
        defaults: serde_json::from_str(&args.defaults)?,
        keep_alive: args.keep_alive.map(Duration::from_secs),
        slots: args.slots,
        metrics: !args.no_metrics,
        page: !args.no_page,
        ..ServerOptions::default()
    };
    let port = args.port;
    let app = App::new(options, [(name.clone(), Box::new(args) as Box<dyn Source>)])?;
    app.load(&name).await?;
    eprintln!("listening on http://127.0.0.1:{port}");
    app.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
    Ok(())
}
