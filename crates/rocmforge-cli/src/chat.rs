//! Chat: a conversation.
//!
//! The model's own template makes the prompts. Lines that begin with `/` and a word are commands, Ctrl-C ends an answer. Where stdin is no terminal,
//! each line is a message. Answers go to stdout as they are made, everything else to stderr.

mod history;
mod input;
mod store;

use std::io::{IsTerminal, Write};
use std::sync::Arc;

use clap::Args as Arguments;
use input::{Input, LONGEST_LINE, Line};
use rocmforge::memory::Bytes;
use rocmforge::models::Model;
use rocmforge::models::chat::{
    ChatError, ChatTemplate, Conversation, Message, Role, Thinking, ThinkingMarks, ThinkingSplit,
};
use rocmforge::models::generate::{Event, FinishReason, GenerateError, Generator, Prompt, Request};
use rocmforge::models::sampling::SamplerConfig;
use store::Talk;

use crate::failure::Failure;
use crate::load;
use crate::machine::{self, Machine, Program};
use crate::options::Options;
use crate::progress::PromptProgress;
use crate::report::{self, Figures};

/// A conversation with a language model. `/help` lists its commands.
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
    let template = template.with_dates();
    let chat = Chat { args, model, template };
    machine::run(&chat, &args.options.machine)
}

impl Program for Chat<'_> {
    fn run<M: Machine>(&self, machine: M, device: &str) -> Result<(), Failure> {
        let mut input = Input::open()?;
        let mut generator = load::generator(&self.model, machine, &self.args.options)?;
        let mut talk = Talk::new(self.args.system.as_deref());
        let mut total = Figures::default();
        // Each answer has random numbers of its own.
        let mut sampler = self.args.options.sampler.config(generator.tokenizer())?;
        let mut runs = 0;
        loop {
            match input.read()? {
                Line::End => break,
                Line::Help => eprintln!("{}", input::HELP),
                Line::Unknown(why) => eprintln!("{why}"),
                Line::Reset => {
                    talk = Talk::new(talk.system());
                    eprintln!("a new conversation");
                }
                Line::System(text) => {
                    talk.set_system(Some(text.as_str()).filter(|text| !text.is_empty()));
                    eprintln!("from the next answer on");
                }
                Line::Save(path) => match talk.save(&path) {
                    Ok(()) => eprintln!("{} messages are in {}", talk.messages.len(), path.display()),
                    Err(error) => eprintln!("{}: {error}", path.display()),
                },
                Line::Load(path) => match Talk::load(&path) {
                    Ok(loaded) => {
                        talk = loaded;
                        eprintln!("{} messages of {}", talk.messages.len(), path.display());
                    }
                    Err(error) => eprintln!("{}: {}", path.display(), short(&error.to_string())),
                },
                Line::Bench => {
                    measure(&mut generator, runs)?;
                    runs += 1;
                }
                Line::TooLong => eprintln!(
                    "the line has more than {} and is left out; `rocmforge run --file` takes a text of any length",
                    Bytes(LONGEST_LINE)
                ),
                Line::Regenerate => {
                    let before = (talk.messages.clone(), talk.left_out);
                    if talk.messages.last().is_some_and(|last| last.role == Role::Assistant) {
                        talk.messages.pop();
                    }
                    if talk.messages.last().is_some_and(|last| last.role == Role::User) {
                        let failed = self.answer_last(&mut generator, &mut talk, &mut sampler, &input, &mut total)?;
                        if let Some(why) = failed {
                            (talk.messages, talk.left_out) = before;
                            eprintln!("{why}; the conversation stays as it was");
                        }
                    } else {
                        (talk.messages, talk.left_out) = before;
                        eprintln!("/regen answers your last message again, and there is none yet: write one first");
                    }
                }
                Line::Text(text) => {
                    talk.messages.push(Message::new(Role::User, text));
                    let failed = self.answer_last(&mut generator, &mut talk, &mut sampler, &input, &mut total)?;
                    if let Some(why) = failed {
                        talk.messages.pop();
                        eprintln!("{why}; the message is taken back, and /reset begins a new conversation");
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

/// Prompt and answer of `/bench`, in tokens.
const BENCH: [usize; 2] = [128, 32];

/// Measures a prompt and an answer of this model, after one that is not counted. The conversation is as before.
fn measure<M: Machine>(generator: &mut Generator<M>, run: usize) -> Result<(), Failure> {
    let (vocab, context) = (
        generator.engine().config().vocab.max(1),
        generator.engine().max_context(),
    );
    let [prompt, answer] = BENCH.map(|tokens| tokens.min(context / 3).max(1));
    for salt in 0..2 {
        let id = |at: usize| (at.wrapping_mul(7919) + salt * 104_729) % vocab;
        let request = Request {
            sampler: SamplerConfig::greedy(),
            max_tokens: answer,
            ignore_end: true,
            // What an earlier run has left in the cache is not shared.
            cache_salt: format!("bench {run}"),
            ..Request::new((0..prompt).map(|at| id(at) as u32).collect::<Vec<_>>())
        };
        let stats = generator.run(request)?.stats;
        if salt == 1 {
            eprintln!(
                "prompt of {prompt} tokens: {:.2} tokens/s; decode of {}: {:.2} tokens/s (`rocmforge bench` measures more)",
                stats.prompt_tokens_per_second(),
                stats.decoded_tokens,
                stats.decode_tokens_per_second()
            );
        }
    }
    Ok(())
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

/// The first part of a message: a file may have put a text of any length into it.
fn short(message: &str) -> String {
    const MOST: usize = 300;
    match message.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} …", &message[..end]),
        None => message.to_owned(),
    }
}

/// Whether an error is of this answer alone: the template refused the messages, or they are too long.
fn is_of_answer(error: &(dyn std::error::Error + 'static)) -> bool {
    error.is::<ChatError>() || matches!(error.downcast_ref(), Some(GenerateError::PromptTooLong { .. }))
}

impl Chat<'_> {
    /// Answers the last message and adds the answer. Where it cannot, it says why.
    fn answer_last<M: Machine>(
        &self,
        generator: &mut Generator<M>,
        talk: &mut Talk,
        sampler: &mut SamplerConfig,
        input: &Input,
        total: &mut Figures,
    ) -> Result<Option<String>, Failure> {
        let answer = self.answer(generator, talk, sampler, input, total);
        sampler.seed = sampler.seed.wrapping_add(1);
        match answer {
            Ok(answer) => {
                talk.messages.push(answer);
                Ok(None)
            }
            Err(error) if is_of_answer(&*error) => Ok(Some(short(&error.to_string()))),
            Err(error) => Err(error),
        }
    }

    /// The prompt of the conversation, and its tokens. Where it leaves no room for an answer its oldest turns are left out, until it takes at most
    /// half of the context: so the cache of what is left serves several further turns.
    fn prompt<M: Machine>(&self, generator: &Generator<M>, talk: &mut Talk) -> Result<(String, Vec<u32>), Failure> {
        let context = generator.engine().max_context();
        let room = context.saturating_sub(self.args.tokens.min(context / 4));
        let whole = self.prompt_of(generator, talk)?;
        let turns = talk.turns_after();
        let (Some(&last), true) = (turns.last(), whole.1.len() > room) else {
            return Ok(whole);
        };
        if talk.left_out == 0 {
            eprintln!("(the conversation is longer than the context: its oldest turns are left out from here on)");
        }
        // A file may bring very many turns: the first that fits is searched for by halves.
        let (mut low, mut high, mut found) = (0, turns.len(), None);
        while low < high {
            let middle = low.midpoint(high);
            talk.left_out = turns[middle];
            let shorter = self.prompt_of(generator, talk)?;
            if shorter.1.len() <= context / 2 {
                (high, found) = (middle, Some((talk.left_out, shorter)));
            } else {
                low = middle + 1;
            }
        }
        match found {
            Some((left_out, prompt)) => {
                talk.left_out = left_out;
                Ok(prompt)
            }
            None => {
                talk.left_out = last;
                self.prompt_of(generator, talk)
            }
        }
    }

    /// The prompt of what is not left out, and its tokens.
    fn prompt_of<M: Machine>(&self, generator: &Generator<M>, talk: &Talk) -> Result<(String, Vec<u32>), Failure> {
        // What the user wrote stays text, whatever control tokens it spells.
        let messages = talk.shown();
        let pieces = self
            .template
            .render_pieces(&Conversation::to_answer(&messages), generator.tokenizer())?;
        let text = pieces.iter().map(|piece| piece.text.as_str()).collect();
        Ok((text, generator.encode(&Prompt::Pieces(pieces))?))
    }

    /// Answers the last message, and shows the answer as it is made.
    fn answer<M: Machine>(
        &self,
        generator: &mut Generator<M>,
        talk: &mut Talk,
        sampler: &SamplerConfig,
        input: &Input,
        total: &mut Figures,
    ) -> Result<Message, Failure> {
        let (prompt, ids) = self.prompt(generator, talk)?;
        let request = Request {
            sampler: sampler.clone(),
            max_tokens: self.args.tokens,
            ..Request::new(ids)
        };
        let tokenizer = Arc::clone(generator.tokenizer());
        let marks = ThinkingMarks::of(&self.template, &tokenizer);
        let mut shown = Shown::new(Thinking::new(marks, &prompt));
        let stop = input.stop_answer();
        let mut figures = Figures::default();
        let mut stream = generator.generate(request)?;
        let mut progress = PromptProgress::new();
        while let Some(event) = stream.next() {
            match event? {
                Event::Prompt { done, tokens, .. } => {
                    progress.set(done, tokens, stream.generator().engine().backend().launch_count());
                }
                Event::Token { token, .. } => {
                    let split = shown.thinking.push_token(token.id, &token.text, &tokenizer);
                    shown.show(&split)?;
                }
                Event::Finished {
                    reason, text, stats, ..
                } => {
                    progress.finish();
                    let split = shown.thinking.push(&text);
                    shown.show(&split)?;
                    shown.finish()?;
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
        Ok(shown.message())
    }
}

/// An answer on its way to the screen: what is thought dim on a terminal, elsewhere not at all.
struct Shown {
    thinking: Thinking,
    said: String,
    thought: String,
    is_terminal: bool,
}

impl Shown {
    fn new(thinking: Thinking) -> Self {
        Self {
            thinking,
            said: String::new(),
            thought: String::new(),
            is_terminal: std::io::stdout().is_terminal(),
        }
    }

    fn show(&mut self, split: &ThinkingSplit) -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        if !split.reasoning.is_empty() {
            if self.thought.is_empty() && !self.is_terminal {
                eprintln!("(thinking …)");
            }
            if self.is_terminal {
                write!(out, "\x1b[2m{}\x1b[0m", split.reasoning)?;
            }
            self.thought.push_str(&split.reasoning);
        }
        if self.said.is_empty() && !split.content.is_empty() && !self.thought.is_empty() && self.is_terminal {
            // The white space between them is in neither.
            out.write_all(b"\n\n")?;
        }
        self.said.push_str(&split.content);
        out.write_all(split.content.as_bytes())?;
        out.flush()
    }

    fn finish(&mut self) -> std::io::Result<()> {
        let last = self.thinking.finish();
        self.show(&last)?;
        writeln!(std::io::stdout())
    }

    /// The answer as a message of the conversation.
    fn message(self) -> Message {
        Message {
            reasoning: Some(self.thought).filter(|thought| !thought.is_empty()),
            ..Message::new(Role::Assistant, self.said)
        }
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
