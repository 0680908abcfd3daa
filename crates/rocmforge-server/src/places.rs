//! Places: bounds on the requests that are open, on those of each owner of a key, and on the bytes of their bodies.
//!
//! A POST takes its place before its body is read, and has it until its answer has ended. A request for several answers takes one more for each
//! but the first.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::watch;

use crate::app::App;
use crate::error::{ApiError, Kind};
use crate::trace::Trace;

/// Places that are taken.
#[derive(Default)]
pub(crate) struct Places {
    taken: Mutex<Taken>,
    /// All of them.
    all: watch::Sender<usize>,
}

#[derive(Default)]
struct Taken {
    /// Places of each owner of a key.
    of_owners: HashMap<String, usize>,
    /// Bytes of bodies.
    bytes: usize,
    /// No more are given.
    is_closed: bool,
}

/// A request's place, until it is dropped.
pub(crate) struct Place {
    places: Arc<Places>,
    owner: Option<String>,
    bytes: AtomicUsize,
    has_answer: AtomicBool,
    /// It ends with the request's last place.
    trace: Arc<Trace>,
}

fn busy<T>(message: String) -> Result<T, ApiError> {
    Err(ApiError::new(Kind::Busy, message))
}

/// Most places that the requests of an owner can have.
fn most(app: &App, owner: Option<&str>) -> usize {
    let all = app.options().limits.requests;
    match app.keys().len() + app.admin_keys().len() {
        2.. if owner.is_some() => (all / 2).max(1),
        _ => all,
    }
}

/// Refuses a request whose answers are more than it may have, or more than could ever be open.
pub(crate) fn check_answers(app: &App, owner: Option<&str>, prompts: usize, choices: usize) -> Result<(), ApiError> {
    let answers = prompts.saturating_mul(choices);
    let most = most(app, owner).min(app.options().limits.choices);
    if answers <= most {
        return Ok(());
    }
    let text =
        format!("{prompts} prompts with {choices} answers each are {answers} answers; a request may have {most}");
    Err(ApiError::field(if prompts > 1 { "prompt" } else { "n" }, text))
}

impl Place {
    /// Takes a place. Where there are several owners of keys, one has at most half of the places, so that others have some.
    pub(crate) fn take(
        places: &Arc<Places>,
        owner: Option<&str>,
        trace: Arc<Trace>,
        app: &App,
    ) -> Result<Arc<Self>, ApiError> {
        let mut taken = places.lock();
        if taken.is_closed {
            let text = "the server ends: it takes no more requests";
            return Err(ApiError::new(Kind::Unavailable, text));
        }
        Self::take_from(places, &mut taken, owner, trace, app)
    }

    fn take_from(
        places: &Arc<Places>,
        taken: &mut Taken,
        owner: Option<&str>,
        trace: Arc<Trace>,
        app: &App,
    ) -> Result<Arc<Self>, ApiError> {
        let (all, most) = (app.options().limits.requests, most(app, owner));
        let full = |most: usize, whose: &str| {
            busy(format!(
                "{most} requests{whose} are open, and no more may be: try again later"
            ))
        };
        if *places.all.borrow() >= all {
            return full(all, "");
        }
        if let Some(owner) = owner {
            let own = taken.of_owners.get(owner).copied().unwrap_or(0);
            if own >= most {
                return full(most, " with this key");
            }
            taken.of_owners.insert(owner.to_owned(), own + 1);
        }
        places.all.send_modify(|all| *all += 1);
        Ok(Arc::new(Self {
            places: Arc::clone(places),
            owner: owner.map(str::to_owned),
            bytes: AtomicUsize::new(0),
            has_answer: AtomicBool::new(false),
            trace,
        }))
    }

    /// The place of one more answer of this request. The first has the request's own.
    pub(crate) fn of_answer(self: &Arc<Self>, app: &App) -> Result<Arc<Self>, ApiError> {
        if !self.has_answer.swap(true, Ordering::AcqRel) {
            return Ok(Arc::clone(self));
        }
        // The request was taken before the end came.
        let mut taken = self.places.lock();
        Self::take_from(
            &self.places,
            &mut taken,
            self.owner.as_deref(),
            Arc::clone(&self.trace),
            app,
        )
    }

    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Counts bytes of the request's body, if all bodies together may have so many.
    pub(crate) fn add_bytes(&self, bytes: usize, most: usize) -> Result<(), ApiError> {
        let mut taken = self.places.lock();
        if bytes > most.saturating_sub(taken.bytes) {
            return busy(format!(
                "the bodies of all open requests have {} bytes, and {most} may be: try again later",
                taken.bytes
            ));
        }
        taken.bytes += bytes;
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.lock();
        taken.bytes -= *self.bytes.get_mut();
        if let Some(owner) = &self.owner
            && let Some(own) = taken.of_owners.get_mut(owner)
        {
            *own -= 1;
            if *own == 0 {
                taken.of_owners.remove(owner);
            }
        }
        self.places.all.send_modify(|all| *all -= 1);
    }
}

impl Places {
    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives no more places.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    /// Waits until all places have been given back.
    pub(crate) async fn wait_until_free(&self) {
        // The sender lives as long as the places.
        let _ = self.all.subscribe().wait_for(|all| *all == 0).await;
    }
}

/// A body that has its request's place until it has ended.
pub(crate) struct WithPlace {
    body: Body,
    _place: Arc<Place>,
}

impl WithPlace {
    pub(crate) fn body(body: Body, place: Arc<Place>) -> Body {
        Body::new(Self { body, _place: place })
    }
}

impl HttpBody for WithPlace {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
