//! Generation: a request on a loaded model, and what comes of it.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, OnceLock};
use std::time::{Instant, SystemTime};

use futures_util::Stream;
use rocmforge_models::generate::{Completion, CompletionParts, Event, FinishReason, Request, Stats};
use rocmforge_models::serve::{ServeError, Ticket};
use tokio::sync::mpsc::{self, Receiver};

use crate::app::{App, Asker};
use crate::error::{ApiError, Kind};
use crate::places::Place;
use crate::registry::Lease;

/// A running request. Dropping it cancels the request.
pub(crate) struct Generation {
    events: Receiver<Result<Event, ServeError>>,
    ticket: Ticket,
    lease: Arc<Lease>,
    until: tokio::time::Instant,
    begun: Instant,
    last_token: Option<Instant>,
    is_over: bool,
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
            // The engine's thread must not wait for a client.
            let own: Arc<OnceLock<Ticket>> = Arc::default();
            let of_sink = Arc::clone(&own);
            let sink = move |event| {
                if sender.try_send(event).is_err()
                    && let Some(ticket) = of_sink.get()
                {
                    ticket.cancel();
                }
            };
            let ticket = lease.handle().submit_to(request, sink)?;
            let _ = own.set(ticket.clone());
            Ok::<_, ApiError>(Self {
                events,
                ticket,
                lease,
                until: tokio::time::Instant::now() + limits.answer_time,
                begun: Instant::now(),
                last_token: None,
                is_over: false,
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
        let metrics = self.lease.metrics();
        match &event {
            Event::Prompt { .. } => {}
            Event::Token { .. } => {
                let now = Instant::now();
                match self.last_token.replace(now) {
                    None => metrics.first_token.add(now - self.begun),
                    Some(last) => metrics.next_token.add(now - last),
                }
            }
            Event::Finished { reason, stats, .. } => {
                self.is_over = true;
                self.place.trace().answer(self.lease.name(), stats, reason);
                metrics.end(reason.name(), stats, self.begun.elapsed());
                match reason {
                    FinishReason::Failed(error) => {
                        return Some(Err(ApiError::new(Kind::Internal, error.to_string())));
                    }
                    // Only an event that found no room cancels a request whose end somebody waits for.
                    FinishReason::Cancelled => {
                        let text = "the client reads too slowly: events of the answer were lost";
                        return Some(Err(ApiError::new(Kind::Internal, text)));
                    }
                    _ => {}
                }
            }
        }
        Some(Ok(event))
    }

    fn fail(&mut self, error: ApiError) -> ApiError {
        self.is_over = true;
        self.ticket.cancel();
        let name = match error.kind {
            Kind::Internal | Kind::Unavailable => "failed",
            _ => "refused",
        };
        self.lease.metrics().end(name, &Stats::default(), self.begun.elapsed());
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
            self.lease
                .metrics()
                .end("cancelled", &Stats::default(), self.begun.elapsed());
        }
    }
}

/// A random number.
pub(crate) fn random() -> u64 {
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
