//! Serves one model on the CPU: `cargo run --release -p rocmforge-server --example cpu -- MODEL [PORT]`.
//!
//! It is the least that a program of its own needs. `rocmforge serve` has cards, several models and all options.
#![allow(clippy::print_stderr)] // it is a program for people

use std::path::PathBuf;

use rocmforge_ggml::CpuBackend;
use rocmforge_models::generate::Generator;
use rocmforge_models::serve::{ServeOptions, Server};
use rocmforge_models::{Engine, EngineOptions, Model};
use rocmforge_server::{App, LoadError, Loaded, ServerOptions, Source};

struct Cpu(PathBuf);

impl Source for Cpu {
    fn load(&self) -> Result<Loaded, LoadError> {
        let model = Model::open(&self.0)?;
        let template = model.chat_template()?;
        let server = Server::start(ServeOptions::default(), move || {
            let engine = Engine::new(CpuBackend::new(), &model, EngineOptions::default())?;
            Ok(Generator::new(engine, model.tokenizer()?))
        })?;
        Ok(Loaded {
            template,
            ..Loaded::new(server)
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("which model? give a GGUF file or a directory")?);
    let port = arguments
        .next()
        .and_then(|port| port.to_str()?.parse().ok())
        .unwrap_or(8080);
    let name = path
        .file_stem()
        .and_then(|name| name.to_str())
        .unwrap_or("model")
        .to_owned();
    let options = ServerOptions {
        listen: ([127, 0, 0, 1], port).into(),
        ..ServerOptions::default()
    };
    let app = App::new(options, [(name, Box::new(Cpu(path)) as Box<dyn Source>)])?;
    eprintln!("listening on http://127.0.0.1:{port}");
    app.run(async { drop(tokio::signal::ctrl_c().await) }).await?;
    Ok(())
}
