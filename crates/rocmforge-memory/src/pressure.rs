//! Pressure: levels of scarcity of a card's memory, and the subscribers to their changes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::sync::{AtomicBool, Mutex, Ordering};
use crate::{Bytes, DeviceKey};

/// How tight a card is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Pressure {
    /// There is room.
    #[default]
    Green,
    /// More than [`Class::Cache`](crate::Class::Cache) may fill is in use: caches get nothing more.
    Yellow,
    /// More than the budget is in use, because others have taken from it: nobody gets anything more, and the excess is to be
    /// given back within a quarter of a second ([`Card::relieve`](crate::Card::relieve)).
    Red,
    /// Half of the headroom is gone too, or the driver is moving memory off the card: nothing is launched until the excess
    /// has been given back.
    Black,
}

impl Pressure {
    pub(crate) const ALL: [Self; 4] = [Self::Green, Self::Yellow, Self::Red, Self::Black];
}

impl fmt::Display for Pressure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
            Self::Black => "black",
        })
    }
}

/// A card has become tighter or less tight; the figures are those of the moment when it was noticed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PressureChange {
    /// The card.
    pub device: DeviceKey,
    /// When, on the clock of the card's readings.
    pub at: Duration,
    /// What it was.
    pub from: Pressure,
    /// What it is.
    pub to: Pressure,
    /// What we may hold.
    pub budget: Bytes,
    /// What we hold, reservations included.
    pub own: Bytes,
    /// What everybody else wants, or 0 if unknown.
    pub others: Bytes,
    /// What is kept free for the desktop.
    pub headroom: Bytes,
}

impl PressureChange {
    /// What we hold beyond the budget: to be given back.
    pub fn excess(&self) -> Bytes {
        self.own.saturating_sub(self.budget)
    }
}

impl fmt::Display for PressureChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} went from {} to {}: we hold {} of a budget of {}, others want {}",
            self.device, self.from, self.to, self.own, self.budget, self.others
        )
    }
}

type Handler = Arc<dyn Fn(&PressureChange) + Send + Sync>;

/// Subscribers, and the changes that they have not been notified of yet.
#[derive(Default)]
pub(crate) struct Subscribers {
    inner: Mutex<Inner>,
    /// Whether a change waits; read without the mutex.
    waiting: AtomicBool,
}

#[derive(Default)]
struct Inner {
    next: u64,
    handlers: Vec<(u64, Handler)>,
    waiting: VecDeque<PressureChange>,
    /// A thread is notifying them now, and will notify what is added meanwhile.
    notifying: bool,
}

impl Inner {
    fn handler(&self, id: u64) -> Option<Handler> {
        let found = self.handlers.iter().find(|(other, _)| *other == id);
        found.map(|(_, handler)| Arc::clone(handler))
    }
}

impl Subscribers {
    pub(crate) fn add(self: &Arc<Self>, handler: Handler) -> Subscription {
        let mut inner = self.inner.lock();
        let id = inner.next;
        inner.next += 1;
        inner.handlers.push((id, handler));
        Subscription {
            subscribers: Arc::downgrade(self),
            id,
        }
    }

    /// Keeps a change until [`tell`](Self::tell). Called with the card's mutex held, so that changes keep their order.
    pub(crate) fn note(&self, change: PressureChange) {
        let mut inner = self.inner.lock();
        if !inner.handlers.is_empty() {
            inner.waiting.push_back(change);
            self.waiting.store(true, Ordering::Release);
        }
    }

    /// Notifies all subscribers of the waiting changes, in order and with no lock held. If another thread is doing so, or a
    /// handler further up this thread's stack, it goes on with them and this call returns.
    pub(crate) fn notify(&self) {
        struct Notifying<'a>(&'a Subscribers);
        impl Drop for Notifying<'_> {
            fn drop(&mut self) {
                self.0.inner.lock().notifying = false;
            }
        }
        while self.waiting.load(Ordering::Acquire) {
            let next = {
                let mut inner = self.inner.lock();
                if inner.notifying {
                    return;
                }
                let Some(change) = inner.waiting.pop_front() else {
                    self.waiting.store(false, Ordering::Release);
                    return;
                };
                inner.notifying = true;
                (change, inner.handlers.iter().map(|(id, _)| *id).collect::<Vec<_>>())
            };
            // Also when a handler panics; else no later change would be notified.
            let notifying = Notifying(self);
            let (change, ids) = next;
            for id in ids {
                // One that a handler before has ended is not called any more.
                let handler = self.inner.lock().handler(id);
                if let Some(handler) = handler {
                    handler(&change);
                }
            }
            drop(notifying);
        }
    }
}

/// A subscription to a card's pressure; dropped, it ends. A call that is under way in another thread may still finish.
#[must_use = "dropping it ends the subscription"]
pub struct Subscription {
    subscribers: Weak<Subscribers>,
    id: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Some(subscribers) = self.subscribers.upgrade() else {
            return;
        };
        // The handler may own anything, so it is dropped with no lock held.
        let gone: Vec<_> = {
            let mut inner = subscribers.inner.lock();
            inner.handlers.extract_if(.., |(id, _)| *id == self.id).collect()
        };
        drop(gone);
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
