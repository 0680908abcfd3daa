//! Run: continues a text. It goes to stdout as it is made, everything else to stderr.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;

use clap::Args as Arguments;
use rocmforge::models::Model;
use rocmforge::models::generate::{Event, FinishReason, Prompt, Request};
use serde_json::json;

use crate::failure::Failure;
use crate::load;
use crate::logits::WriteLogits;
use crate::machine::{self, Machine, Program};
use crate::options::Options;
use crate::progress::PromptProgress;
use crate::report::{self, Figures};

/// Continues a text.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    /// The text to continue; control tokens in it are text. Without it, and as `-`, it is read from stdin.
    #[arg(value_name = "PROMPT")]
    text: Option<String>,
    /// The same as PROMPT.
    #[arg(long, conflicts_with = "text")]
    prompt: Option<String>,
    /// A file with the text to continue.
    #[arg(long, conflicts_with_all = ["text", "prompt"])]
    file: Option<PathBuf>,
    /// Token ids in place of a text, separated by commas.
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["text", "prompt", "file"])]
    ids: Vec<u32>,
    /// Writes the logits of every position of --ids to a file, and continues nothing: one row for each id, as f32, little endian.
    #[arg(long, value_name = "FILE", requires = "ids", conflicts_with_all = ["text", "prompt", "file", "tokens", "stop", "json"])]
    logits: Option<PathBuf>,
    /// Most tokens of the answer.
    #[arg(long, default_value_t = 128)]
    tokens: usize,
    /// A text that ends the answer, and is not part of it. May be given several times.
    #[arg(long)]
    stop: Vec<String>,
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
    prompt: Prompt,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let prompt = match args.ids.as_slice() {
        [] => Prompt::Text(args.text()?),
        ids => Prompt::Ids(ids.to_vec()),
    };
    let model = load::open(&args.options.model)?;
    if let Some(file) = &args.logits {
        let write = WriteLogits {
            model,
            ids: &args.ids,
            options: &args.options,
            file,
        };
        return machine::run(&write, &args.options.machine);
    }
    machine::run(&Generate { args, model, prompt }, &args.options.machine)
}

/// The longest text that is read from a file or stdin.
const LONGEST_TEXT: u64 = 64 << 20;

impl Args {
    /// The text to continue, from wherever it comes.
    fn text(&self) -> Result<String, Failure> {
        let given = self.text.as_ref().or(self.prompt.as_ref()).filter(|text| *text != "-");
        if let Some(text) = given {
            return Ok(text.clone());
        }
        let mut text = Vec::new();
        let source: Box<dyn Read> = match &self.file {
            Some(path) => Box::new(std::fs::File::open(path).map_err(|error| format!("{}: {error}", path.display()))?),
            None if self.text.is_none() && std::io::stdin().is_terminal() => {
                return Err("there is no text to continue: give PROMPT, --file, --ids, or a text on stdin".into());
            }
            None => Box::new(std::io::stdin()),
        };
        source.take(LONGEST_TEXT + 1).read_to_end(&mut text)?;
        if text.len() as u64 > LONGEST_TEXT {
            return Err(format!("the text to continue has more than {LONGEST_TEXT} bytes").into());
        }
        String::from_utf8(text).map_err(|_| "the text to continue is not UTF-8".into())
    }
}

impl Program for Generate<'_> {
    fn run<M: Machine>(&self, machine: M, device: &str) -> Result<(), Failure> {
        let args = self.args;
        let mut generator = load::generator(&self.model, machine, &args.options)?;
        let prompt = generator.encode(&self.prompt)?;
        let request = Request {
            sampler: args.options.sampler.config(generator.tokenizer())?,
            max_tokens: args.tokens,
            stop: args.stop.clone(),
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
        let (memory, parts) = (machine.memory(), machine.parts());
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
            "parts_on_device": parts.map(|parts| parts.on_device),
            "parts": parts.map(|parts| parts.all),
        });
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&object)?)?;
        Ok(())
    }
}
