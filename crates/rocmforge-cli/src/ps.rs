//! Ps: the models that a running server has loaded, and what they do.

use std::io::{ErrorKind, Write};

use clap::Args as Arguments;
use serde_json::Value;

use crate::failure::Failure;

/// The longest answer of a server that is read.
const LONGEST_ANSWER: u64 = 4 << 20;

/// Shows what a running server does.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    /// The server.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    url: String,
    /// Prints what the server says as JSON.
    #[arg(long)]
    json: bool,
    /// Fails if an engine of the server does not work: the health check of a container.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let url = format!("{}/health", args.url.trim_end_matches('/'));
    let agent = ureq::Agent::new_with_config(
        ureq::config::Config::builder()
            .http_status_as_error(false)
            .timeout_global(Some(std::time::Duration::from_secs(10)))
            .build(),
    );
    let mut answer = agent.get(&url).call().map_err(|error| match &error {
        ureq::Error::Io(cause) if cause.kind() == ErrorKind::ConnectionRefused => {
            format!("no server listens at {}: `rocmforge serve` starts one", args.url)
        }
        _ => format!("{url}: {error}"),
    })?;
    let status = answer.status();
    let body = answer.body_mut().with_config().limit(LONGEST_ANSWER).read_to_string()?;
    let health: Value = serde_json::from_str(&body).map_err(|_| format!("{url} is not a server of rocmforge"))?;
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{health}")?,
        false => print(&health, &mut out)?,
    }
    match args.check && !status.is_success() {
        true => Err(format!("{url} answers {status}").into()),
        false => Ok(()),
    }
}

/// Prints the models, one a line.
fn print(health: &Value, out: &mut impl Write) -> std::io::Result<()> {
    let models = health["models"].as_array().map_or(&[][..], Vec::as_slice);
    if models.is_empty() {
        writeln!(out, "no model is loaded")?;
    }
    for model in models {
        let text = |key: &str| model[key].as_str().unwrap_or("?").to_owned();
        let age = match model["last_step_age_seconds"].as_f64() {
            Some(age) => format!("last step {age:.1} s ago"),
            None => "no step yet".to_owned(),
        };
        let (open, steps) = (&model["open_requests"], &model["steps"]);
        writeln!(
            out,
            "{}  {}  {open} requests, {steps} steps, {age}",
            text("model"),
            text("state")
        )?;
    }
    Ok(())
}
