//! Handles: submit requests from any thread, and read what comes of them.

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use rocmforge_ggml::HostAccess;

use super::error::ServeError;
use super::shared::{Figures, Shared};
use super::worker::Command;
use crate::Input;
use crate::config::DecoderConfig;
use crate::generate::{Event, GenerateError, Generator, Prompt, Request};
use crate::tokenizer::Tokenizer;

/// What a request is checked against before it is sent.
#[derive(Clone, Debug)]
pub(super) struct Limits {
    tokenizer: Arc<Tokenizer>,
    context: usize,
    config: DecoderConfig,
    /// Most bytes of a text that could fit.
    text_bytes: usize,
}

/// Normalizers may leave bytes out: NFC makes one character of three. So many times more bytes are looked at than tokens can hold.
const LEFT_OUT: usize = 4;

impl Limits {
    pub(super) fn of<B: HostAccess>(generator: &Generator<B>) -> Self {
        let tokenizer = generator.tokenizer();
        let context = generator.engine().max_context();
        let ids = 0..u32::try_from(tokenizer.vocab_size()).unwrap_or(u32::MAX);
        let longest = ids.filter_map(|id| Some(tokenizer.token_bytes(id)?.len())).max();
        Self {
            tokenizer: Arc::clone(tokenizer),
            context,
            text_bytes: (longest.unwrap_or(1).max(1))
                .saturating_mul(context)
                .saturating_mul(LEFT_OUT),
            config: generator.engine().config().clone(),
        }
    }
}

/// Submits requests to a server. Clones submit to the same one.
#[derive(Clone, Debug)]
pub struct Handle {
    commands: Sender<Command>,
    shared: Arc<Shared<Event>>,
    limits: Limits,
}

impl Handle {
    pub(super) fn new(commands: Sender<Command>, shared: Arc<Shared<Event>>, limits: Limits) -> Self {
        Self {
            commands,
            shared,
            limits,
        }
    }

    /// The tokenizer.
    #[must_use]
    pub fn tokenizer(&self) -> &Arc<Tokenizer> {
        &self.limits.tokenizer
    }

    /// The tokens of a prompt, and its rows of embeddings. A text that is too long for the context whatever is in it is refused unread.
    ///
    /// # Errors
    /// [`ServeError::Refused`] for a prompt that can never run.
    pub fn encode(&self, prompt: &Prompt) -> Result<Vec<Input>, ServeError> {
        let Limits {
            tokenizer,
            context,
            config,
            ..
        } = &self.limits;
        self.check_length(prompt.text_bytes())?;
        prompt.inputs(tokenizer, *context, config).map_err(refused)
    }

    /// Refuses a text that is too long for the context whatever is in it.
    ///
    /// # Errors
    /// [`ServeError::Refused`] says how many bytes could fit.
    pub fn check_length(&self, bytes: usize) -> Result<(), ServeError> {
        let (most, context) = (self.limits.text_bytes, self.limits.context);
        match bytes > most {
            true => Err(refused(GenerateError::TextTooLong { bytes, most, context })),
            false => Ok(()),
        }
    }

    /// Submits a request and returns its events as they come. Dropping them cancels the request.
    ///
    /// # Errors
    /// [`ServeError::Refused`] for a prompt that can never run (other parameters are looked at later, and refused as the only event), [`ServeError::QueueFull`], [`ServeError::Draining`], [`ServeError::Stopped`].
    pub fn submit(&self, request: Request) -> Result<Events, ServeError> {
        let (events, received) = mpsc::channel();
        // A receiver that was dropped ends delivery.
        let ticket = self.submit_to(request, move |event| drop(events.send(event)))?;
        Ok(Events { received, ticket })
    }

    /// Submits a request whose events go to `sink`. It must not wait: the engine's thread calls it, and whatever thread stops the server. A sink that
    /// panics gets no more, and its request ends.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub fn submit_to(
        &self,
        mut request: Request,
        sink: impl FnMut(Result<Event, ServeError>) + Send + 'static,
    ) -> Result<Ticket, ServeError> {
        // Texts become tokens here, and not on the engine's thread.
        request.prompt = Prompt::Inputs(self.encode(&request.prompt)?);
        let number = self.shared.open(Box::new(sink))?;
        let ticket = Ticket {
            number,
            commands: self.commands.clone(),
        };
        if self.commands.send(Command::Submit(number, Box::new(request))).is_err() {
            self.shared.stop(&ServeError::Stopped);
        }
        Ok(ticket)
    }

    /// Takes no more requests. The server ends when those that it has are done.
    pub fn drain(&self) {
        self.shared.drain();
        let _ = self.commands.send(Command::Wake);
    }

    /// Ends all requests with an error, and the server.
    pub fn stop(&self) {
        self.shared.stop(&ServeError::Stopped);
        let _ = self.commands.send(Command::Wake);
    }

    /// How the server is.
    #[must_use]
    pub fn figures(&self) -> Figures {
        self.shared.figures()
    }
}

fn refused(error: GenerateError) -> ServeError {
    ServeError::Refused(Arc::new(error))
}

/// Names an open request.
#[derive(Clone, Debug)]
pub struct Ticket {
    number: u64,
    commands: Sender<Command>,
}

impl Ticket {
    /// Ends the request, within one step. Its last event says so, unless it has had its last event before.
    pub fn cancel(&self) {
        let _ = self.commands.send(Command::Cancel(self.number));
    }
}

/// Events of one request, until the last.
#[derive(Debug)]
pub struct Events {
    received: Receiver<Result<Event, ServeError>>,
    ticket: Ticket,
}

impl Events {
    /// Ends the request; what still comes ends with its last event.
    pub fn cancel(&self) {
        self.ticket.cancel();
    }
}

impl Iterator for Events {
    type Item = Result<Event, ServeError>;

    /// Waits for the next event; `None` after the last.
    fn next(&mut self) -> Option<Self::Item> {
        self.received.recv().ok()
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.ticket.cancel();
    }
}
