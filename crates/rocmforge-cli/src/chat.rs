//! Chat: a conversation.
//!
//! The model's own template makes the prompts. `/reset` begins a new conversation, `/exit` or Ctrl-D ends the program, Ctrl-C ends an
//! answer. Where stdin is no terminal, each line is a message. Answers go to stdout as they are made, everything else to stderr.

mod input;

use std::io::Write;

use clap::Args as Arguments;
use input::{Input, Line};
use rocmforge::models::Model;
use rocmforge::models::chat::{ChatTemplate, Conversation, Message, Role};
use rocmforge::models::generate::{Event, FinishReason, GenerateError, Generator, Request};
use rocmforge::models::sampling::SamplerConfig;

use crate::failure::Failure;
use crate::load;
use crate::machine::{self, Machine, Program};
use crate::options::Options;
use crate::progress::PromptProgress;
use crate::report::{self, Figures};

/// A conversation with a language model. `/reset` begins a new one, `/exit` ends the program.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    /// Instructions for the whole conversation.
    #[arg(long)]
    system: Option<String>,
    /// Most tokens of an answer.
    #[arg(long, default_value_t = 512)]
    tokens: usize,
    #[command(flatten)]
    options: Options,
}

struct Chat<'a> {
    args: &'a Args,
    model: Model,
    template: ChatTemplate,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let model = load::open(&args.options.model)?;
    let template = model.chat_template()?.ok_or_else(|| {
        let name = &args.options.model;
        format!("{name} has no chat template: it was not trained for conversations; use `rocmforge run`")
    })?;
    let chat = Chat { args, model, template };
    machine::run(&chat, &args.options.machine)
}

impl Program for Chat<'_> {
    fn run<M: Machine>(&self, machine: M, device: &str) -> Result<(), Failure> {
        let mut input = Input::open()?;
        let mut generator = load::generator(&self.model, machine, &self.args.options)?;
        let mut messages = self.first_messages();
        let mut total = Figures::default();
        // Each answer has random numbers of its own.
        let mut sampler = self.args.options.sampler.config()?;
        loop {
            match input.read()? {
                Line::End => break,
                Line::Reset => {
                    messages = self.first_messages();
                    eprintln!("a new conversation");
                }
                Line::Text(text) => {
                    messages.push(Message::new(Role::User, text));
                    let answer = self.answer(&mut generator, &messages, &sampler, &input, &mut total);
                    sampler.seed = sampler.seed.wrapping_add(1);
                    match answer {
                        Ok(answer) => messages.push(Message::new(Role::Assistant, answer)),
                        // The conversation stays as it was before the message.
                        Err(error) if is_too_long(&*error) => {
                            messages.pop();
                            eprintln!("{error}; /reset begins a new conversation");
                        }
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        report::print(
            &total,
            device,
            generator.engine().max_context(),
            generator.engine().backend(),
        );
        Ok(())
    }
}

/// Adds the figures of a further answer.
fn add(total: &mut Figures, answer: &Figures) {
    let (sum, stats) = (&mut total.stats, &answer.stats);
    sum.prompt_tokens += stats.prompt_tokens;
    sum.cached_tokens += stats.cached_tokens;
    sum.prompt_time += stats.prompt_time;
    sum.decoded_tokens += stats.decoded_tokens;
    sum.decode_time += stats.decode_time;
    total.launches = match (total.launches, answer.launches) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
}

fn is_too_long(error: &(dyn std::error::Error + 'static)) -> bool {
    matches!(error.downcast_ref(), Some(GenerateError::PromptTooLong { .. }))
}

impl Chat<'_> {
    fn first_messages(&self) -> Vec<Message> {
        let system = self.args.system.as_ref();
        system
            .map(|text| Message::new(Role::System, text))
            .into_iter()
            .collect()
    }

    /// Answers the last message, and shows the answer as it is made.
    fn answer<M: Machine>(
        &self,
        generator: &mut Generator<M>,
        messages: &[Message],
        sampler: &SamplerConfig,
        input: &Input,
        total: &mut Figures,
    ) -> Result<String, Failure> {
        // What the user wrote stays text, whatever control tokens it spells.
        let conversation = Conversation::to_answer(messages);
        let pieces = self.template.render_pieces(&conversation, generator.tokenizer())?;
        let request = Request {
            sampler: sampler.clone(),
            max_tokens: self.args.tokens,
            ..Request::new(pieces)
        };
        let mut answer = String::new();
        let mut show = |text: &str| -> std::io::Result<()> {
            answer.push_str(text);
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())?;
            out.flush()
        };
        let stop = input.stop_answer();
        let mut figures = Figures::default();
        let mut stream = generator.generate(request)?;
        let mut progress = PromptProgress::new();
        while let Some(event) = stream.next() {
            match event? {
                Event::Prompt { done, tokens, .. } => {
                    progress.set(done, tokens, stream.generator().engine().backend().launch_count());
                }
                Event::Token { token, .. } => show(&token.text)?,
                Event::Finished {
                    reason, text, stats, ..
                } => {
                    progress.finish();
                    show(&text)?;
                    writeln!(std::io::stdout())?;
                    figures.stats = stats;
                    if let Some(note) = note(&reason) {
                        eprintln!("{note}");
                    }
                }
            }
            if stop.is_wanted() {
                stream.cancel()?;
            }
        }
        drop(stream);
        figures.launches = progress.launches_since(generator.engine().backend().launch_count());
        add(total, &figures);
        Ok(answer)
    }
}

/// What the reader should know of the end of an answer.
fn note(reason: &FinishReason) -> Option<String> {
    match reason {
        FinishReason::EndOfText(_) | FinishReason::StopToken(_) | FinishReason::StopString(_) => None,
        FinishReason::MaxTokens => Some("(the answer was cut: --tokens allows longer ones)".to_owned()),
        FinishReason::ContextFull => Some("(the context is full: /reset begins a new conversation)".to_owned()),
        FinishReason::Cancelled => Some("(stopped)".to_owned()),
        FinishReason::Failed(error) => Some(format!("(no token could be drawn: {error})")),
        other => Some(format!("({})", other.name())),
    }
}
