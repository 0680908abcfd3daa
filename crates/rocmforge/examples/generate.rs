//! Continues a text with a language model, on a device or on the CPU.
//!
//! ```text
//! cargo xtask model smollm2
//! cargo run --release --example generate -- --prompt "The capital of France is"
//! cargo run --release --example generate -- --device cpu --tokens 64 --temp 0.8 --prompt "Once upon a time"
//! cargo run --release --example generate -- --device hip:0 --ids 504,3575,282,4649,314 --json
//! cargo run --release --example generate -- --vram 64MiB --tokens 6 --prompt "The capital of France is"
//! ```
//!
//! The default device is a simulated gfx1100: the very machine code that a card would run, interpreted, so a token takes seconds.
//! Without `--temp` the most likely token is always taken. The text goes to stdout as it is made, everything else to stderr.
#![allow(clippy::print_stderr)] // printing is what an example is for

mod common;
mod failure;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use common::load;
use common::machine::{Machine, Program};
use common::options::Options;
use common::progress::PromptProgress;
use common::report::{self, Figures};
use failure::Failure;
use rocmforge::models::Model;
use rocmforge::models::generate::{Event, FinishReason, Prompt, Request};
use serde_json::json;

/// Continues a text.
#[derive(Parser)]
struct Args {
    /// The text to continue. Control tokens in it are text.
    #[arg(long, required_unless_present = "ids")]
    prompt: Option<String>,
    /// Token ids in place of a text, separated by commas.
    #[arg(long, value_delimiter = ',', conflicts_with = "prompt")]
    ids: Vec<u32>,
    /// Most tokens of the answer.
    #[arg(long, default_value_t = 32)]
    tokens: usize,
    /// Prints one JSON object, and nothing else, on stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    options: Options,
}

/// Logits after the prompt that `--json` prints.
const FIRST_LOGITS: usize = 10;

/// What came of the request.
#[derive(Default)]
struct Answer {
    ids: Vec<u32>,
    text: String,
    first_logits: Vec<(u32, f32)>,
    reason: Option<FinishReason>,
    figures: Figures,
}

struct Generate<'a> {
    args: &'a Args,
    model: Model,
}

fn main() -> ExitCode {
    let args = Args::parse();
    failure::exit_code(run(&args))
}

fn run(args: &Args) -> Result<(), Failure> {
    let model = load::open(&args.options)?;
    common::machine::run(&Generate { args, model }, &args.options)
}

impl Program for Generate<'_> {
    fn run<M: Machine>(&self, machine: M, device: &str) -> Result<(), Failure> {
        let args = self.args;
        let mut generator = load::generator(&self.model, machine, &args.options)?;
        let prompt = match &args.prompt {
            Some(text) => generator.encode(&text.as_str().into())?,
            None => args.ids.clone(),
        };
        let request = Request {
            sampler: args.options.sampler(0.0),
            max_tokens: args.tokens,
            first_logits: FIRST_LOGITS,
            ..Request::new(Prompt::Ids(prompt.clone()))
        };
        let mut answer = Answer::default();
        let mut stream = generator.generate(request)?;
        let mut progress = PromptProgress::new();
        while let Some(event) = stream.next() {
            match event? {
                Event::Prompt {
                    done, tokens, logits, ..
                } => {
                    progress.set(done, tokens, stream.generator().engine().backend().launch_count());
                    if done == tokens {
                        answer.first_logits = logits;
                    }
                }
                Event::Token { token, .. } => {
                    answer.ids.push(token.id);
                    answer.take(&token.text, args.json)?;
                }
                Event::Finished {
                    reason, text, stats, ..
                } => {
                    answer.take(&text, args.json)?;
                    answer.reason = Some(reason);
                    answer.figures.stats = stats;
                }
            }
        }
        drop(stream);
        let engine = generator.engine();
        answer.figures.launches = progress.launches_since(engine.backend().launch_count());
        if args.json {
            answer.print_json(&prompt, args, device, engine.max_context(), engine.backend())?;
        } else {
            writeln!(std::io::stdout())?;
        }
        report::print(&answer.figures, device, engine.max_context(), engine.backend());
        match answer.reason {
            Some(FinishReason::Failed(error)) => Err(error.into()),
            _ => Ok(()),
        }
    }
}

impl Answer {
    /// Adds text, and shows it at once unless it is to be part of a JSON object.
    fn take(&mut self, text: &str, json: bool) -> std::io::Result<()> {
        self.text.push_str(text);
        if json || text.is_empty() {
            return Ok(());
        }
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes())?;
        out.flush()
    }

    fn print_json(
        &self,
        prompt: &[u32],
        args: &Args,
        device: &str,
        context: usize,
        machine: &impl Machine,
    ) -> Result<(), Failure> {
        let (memory, placement) = (machine.memory(), machine.placement());
        let stats = &self.figures.stats;
        let object = json!({
            "model": args.options.model,
            "device": device,
            "context": context,
            "prompt_ids": prompt,
            "ids": self.ids,
            "text": self.text,
            "finish_reason": self.reason.as_ref().map(FinishReason::name),
            "first_logits_top10": self.first_logits,
            "prompt_tokens": stats.prompt_tokens,
            "decoded_tokens": stats.decoded_tokens,
            "prompt_tokens_per_second": stats.prompt_tokens_per_second(),
            "decode_tokens_per_second": stats.decode_tokens_per_second(),
            "launches_per_token": self.figures.launches_per_token(),
            "peak_vram_bytes": memory.map(|memory| memory.peak),
            "budget_bytes": memory.map(|memory| memory.budget),
            "parts_on_device": placement.map(|placement| placement.on_device),
            "parts": placement.map(|placement| placement.parts),
        });
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&object)?)?;
        Ok(())
    }
}
