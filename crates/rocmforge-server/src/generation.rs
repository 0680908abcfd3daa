//! Generation: a request on a loaded model, and what comes of it.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use futures_util::Stream;
use rocmforge_models::Input;
use rocmforge_models::generate::{Completion, CompletionParts, Event, FinishReason, Prompt, Request};
use rocmforge_models::serve::{ServeError, Ticket};
use rocmforge_models::tokenizer::Tokenizer;
use tokio::sync::mpsc::{self, Receiver, Sender};

use crate::app::{App, Asker};
use crate::error::{ApiError, Kind};
use crate::metrics::RequestCounts;
use crate::places::Place;
use crate::registry::Lease;

/// A running request. Dropping it cancels the request.
pub(crate) struct Generation {
    events: Receiver<Result<Event, ServeError>>,
    ticket: Ticket,
    until: tokio::time::Instant,
    is_over: bool,
    lease: Arc<Lease>,
    place: Arc<Place>,
}

impl Generation {
    /// Submits a request.
    pub(crate) async fn start(
        app: &App,
        asker: &Asker,
        lease: &Arc<Lease>,
        mut request: Request,
    ) -> Result<Self, ApiError> {
        let limits = app.options().limits;
        let place = app.place(asker)?;
        request.client.clone_from(&asker.client);
        request.cache_salt.insert_str(0, &asker.salt());
        let lease = Arc::clone(lease);
        // A long text takes time to become tokens. If nobody waits for the end of this, its result is dropped, which cancels the request.
        let submit = tokio::task::spawn_blocking(move || {
            let (sender, events) = mpsc::channel(limits.waiting_events);
            let own: Arc<OnceLock<Ticket>> = Arc::default();
            let counts = RequestCounts::new(Arc::clone(lease.metrics()), lease.asked());
            let ticket = lease
                .handle()
                .submit_to(request, sink(sender, counts, Arc::clone(&own)));
            let ticket = ticket.inspect_err(|error| lease.metrics().end_with(error))?;
            let _ = own.set(ticket.clone());
            Ok::<_, ApiError>(Self {
                events,
                ticket,
                until: tokio::time::Instant::now() + limits.answer_time,
                is_over: false,
                lease,
                place,
            })
        });
        let submitted = submit.await;
        submitted.map_err(|_| ApiError::new(Kind::Internal, "the request could not be submitted"))?
    }

    /// The next event; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<Result<Event, ApiError>> {
        if self.is_over {
            return None;
        }
        let event = match tokio::time::timeout_at(self.until, self.events.recv()).await {
            Ok(Some(Ok(event))) => event,
            Ok(Some(Err(error))) => return Some(Err(self.fail(error.into()))),
            Ok(None) => {
                let error = ApiError::new(Kind::Internal, "the client read too slowly, or the engine has stopped");
                return Some(Err(self.fail(error)));
            }
            Err(_) => {
                let error = ApiError::new(Kind::Internal, "the answer took longer than the server allows");
                return Some(Err(self.fail(error)));
            }
        };
        if let Event::Finished { reason, stats, .. } = &event {
            self.is_over = true;
            self.place.trace().answer(self.lease.name(), stats, reason);
            if let FinishReason::Failed(error) = reason {
                return Some(Err(ApiError::new(Kind::Internal, error.to_string())));
            }
        }
        Some(Ok(event))
    }

    fn fail(&mut self, error: ApiError) -> ApiError {
        self.is_over = true;
        self.ticket.cancel();
        error
    }

    /// All events as a stream.
    pub(crate) fn into_stream(mut self) -> impl Stream<Item = Result<Event, ApiError>> + Send {
        async_stream::stream! {
            while let Some(event) = self.next().await {
                yield event;
            }
        }
    }

    /// All that comes, when it has come.
    pub(crate) async fn complete(mut self) -> Result<Completion, ApiError> {
        let mut parts = CompletionParts::default();
        while let Some(event) = self.next().await {
            if let Some(completion) = parts.take(event?) {
                return Ok(completion);
            }
        }
        Err(ApiError::new(Kind::Internal, "the answer has no end"))
    }
}

impl Drop for Generation {
    fn drop(&mut self) {
        if !self.is_over {
            self.ticket.cancel();
        }
    }
}

/// Counts events, and gives them to a client. The engine's thread calls it, and must not wait for a client: if an event finds no room, the client
/// gets no later one either, so that no answer ends as if it were whole.
fn sink(
    sender: Sender<Result<Event, ServeError>>,
    mut counts: RequestCounts,
    own: Arc<OnceLock<Ticket>>,
) -> impl FnMut(Result<Event, ServeError>) {
    let mut sender = Some(sender);
    move |event| {
        counts.take(&event);
        if sender.as_ref().is_some_and(|sender| sender.try_send(event).is_err()) {
            sender = None;
            if let Some(ticket) = own.get() {
                ticket.cancel();
            }
        }
    }
}

/// A prompt as tokens, once for all answers to it, and what `look` sees in them. A long text takes time to become tokens.
pub(crate) async fn encode<T: Send + 'static>(
    lease: &Arc<Lease>,
    prompt: Prompt,
    look: impl FnOnce(&[Input], &Tokenizer) -> T + Send + 'static,
) -> Result<(Prompt, T), ApiError> {
    let lease = Arc::clone(lease);
    let encode = tokio::task::spawn_blocking(move || {
        let inputs = lease.handle().encode(&prompt);
        let inputs = inputs.inspect_err(|error| lease.metrics().end_with(error))?;
        let seen = look(&inputs, lease.handle().tokenizer());
        Ok((Prompt::Inputs(inputs), seen))
    });
    let encoded = encode.await;
    encoded.map_err(|_| ApiError::new(Kind::Internal, "the prompt could not become tokens"))?
}

/// A random number of 32 bits, as llama.cpp draws its seeds: clients in JavaScript know no more than 53 bits.
pub(crate) fn seed() -> u64 {
    random() >> 32
}

/// A random number.
fn random() -> u64 {
    // The keys of a new hasher are random.
    RandomState::new().hash_one(0)
}

/// A name that nobody can guess, such as `chatcmpl-3f0e...`.
pub(crate) fn id(prefix: &str) -> String {
    format!("{prefix}{:016x}{:016x}", random(), random())
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn after_a_lost_event_nothing_comes() {
        let (sender, mut events) = mpsc::channel(1);
        let counts = RequestCounts::new(Arc::default(), Instant::now());
        let mut sink = sink(sender, counts, Arc::default());
        sink(Err(ServeError::Draining));
        // It finds no room. The client then makes some.
        sink(Err(ServeError::Draining));
        assert!(matches!(events.try_recv(), Ok(Err(ServeError::Draining))));
        sink(Err(ServeError::Stopped));
        assert!(matches!(
            events.try_recv(),
            Err(mpsc::error::TryRecvError::Disconnected)
        ));
    }
}
