//! Chain of steps that give memory back, before a request is refused and when others take from the budget.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Weak};

use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::{Bytes, Shortage, Step};

type Handler = Arc<dyn Fn(&Shortage) -> Bytes + Send + Sync>;

/// The registered steps of a card.
#[derive(Default)]
pub(crate) struct Chain {
    inner: Mutex<Inner>,
    /// A thread is giving back what is held beyond the budget.
    relieving: AtomicBool,
}

#[derive(Default)]
struct Inner {
    next: u64,
    handlers: Vec<(Step, u64, Handler)>,
    /// How often each step was taken, and what it said that it freed.
    taken: [(u64, Bytes); 3],
}

thread_local! {
    /// Whether this thread is in a handler: what it asks for must not start the chain again.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks the thread as being in a handler, also while that panics.
pub(super) struct Inside;

impl Inside {
    /// `None` if it is in one already.
    pub(super) fn enter() -> Option<Self> {
        // Made only if it is handed out: one that is dropped unmarks the thread.
        (!INSIDE.replace(true)).then(|| Self)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        INSIDE.set(false);
    }
}

impl Chain {
    /// Registers a handler of a step.
    pub(super) fn register(self: &Arc<Self>, step: Step, handler: Handler) -> Registration {
        let mut inner = self.inner.lock();
        let id = inner.next;
        inner.next += 1;
        inner.handlers.push((step, id, handler));
        Registration {
            chain: Arc::downgrade(self),
            id,
        }
    }

    /// Takes a step. `None` if nobody has registered for it.
    pub(super) fn take(&self, shortage: &Shortage) -> Option<Bytes> {
        let ids: Vec<u64> = {
            let inner = self.inner.lock();
            let of_step = inner.handlers.iter().filter(|(step, ..)| *step == shortage.step);
            of_step.map(|(_, id, _)| *id).collect()
        };
        if ids.is_empty() {
            return None;
        }
        let mut freed = Bytes::ZERO;
        for id in ids {
            let handler = {
                let inner = self.inner.lock();
                let found = inner.handlers.iter().find(|(_, other, _)| *other == id);
                found.map(|(.., handler)| Arc::clone(handler))
            };
            // No lock is held, and one that a handler before has unregistered is not called any more.
            if let Some(handler) = handler {
                freed = freed.saturating_add(handler(shortage));
            }
        }
        let (times, bytes) = &mut self.inner.lock().taken[shortage.step as usize];
        *times += 1;
        *bytes = bytes.saturating_add(freed);
        Some(freed)
    }

    /// How often each step was taken and what it freed.
    pub(crate) fn taken(&self) -> [(Step, u64, Bytes); 3] {
        let taken = self.inner.lock().taken;
        Step::ALL.map(|step| (step, taken[step as usize].0, taken[step as usize].1))
    }
}

/// A registered step; dropped, it is registered no more. A call that is under way in another thread may still finish.
#[must_use = "dropping it ends the registration"]
pub struct Registration {
    chain: Weak<Chain>,
    id: u64,
}

impl Drop for Registration {
    fn drop(&mut self) {
        let Some(chain) = self.chain.upgrade() else { return };
        // The handler may own anything, so it is dropped with no lock held.
        let gone: Vec<_> = {
            let mut inner = chain.inner.lock();
            inner.handlers.extract_if(.., |(_, id, _)| *id == self.id).collect()
        };
        drop(gone);
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

/// One thread gives back what is too much; two would give back twice as much.
pub(super) struct Relieving<'a>(&'a Chain);

impl<'a> Relieving<'a> {
    pub(super) fn begin(chain: &'a Chain) -> Option<Self> {
        (!chain.relieving.swap(true, Ordering::AcqRel)).then(|| Self(chain))
    }
}

impl Drop for Relieving<'_> {
    fn drop(&mut self) {
        self.0.relieving.store(false, Ordering::Release);
    }
}
