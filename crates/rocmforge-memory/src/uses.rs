//! Last uses of a piece of memory: the last write and the last read of each stream, as (stream, cursor).
//!
//! Whoever uses the memory next waits for what is in this list, and for nothing else: work of its own stream comes
//! before it anyway, and what is known to be done needs no wait. A [`Block`](crate::Block) takes its list along into the
//! pool and out of it, so a new owner waits for the old one's work by the same rule.

use std::fmt;
use std::sync::Arc;

/// How an operation touches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Access {
    /// Reads.
    Read,
    /// Writes, and may read.
    Write,
}

/// A stream as last-use lists see it: work that is done in the order in which it was enqueued.
pub trait Queue {
    /// A number that no other stream of the process has or will have.
    fn id(&self) -> u64;

    /// How many of its operations are known to be done. Never falls; everything, once the stream is gone.
    fn completed(&self) -> u64;
}

impl<Q: Queue + ?Sized> Queue for Arc<Q> {
    fn id(&self) -> u64 {
        (**self).id()
    }

    fn completed(&self) -> u64 {
        (**self).completed()
    }
}

/// The `cursor`-th operation of a stream.
#[derive(Clone)]
pub struct Use<S> {
    /// The stream.
    pub stream: S,
    /// The operation's number on it, from 1.
    pub cursor: u64,
}

impl<S: Queue> Use<S> {
    /// Whether it is known to be done. Asks nobody.
    pub fn is_done(&self) -> bool {
        self.stream.completed() >= self.cursor
    }
}

impl<S: Queue> fmt::Debug for Use<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "operation {} of stream {}", self.cursor, self.stream.id())
    }
}

/// The uses of one piece of memory that a later operation may have to wait for.
///
/// It is only right if the look ([`before`](Self::before)), the waits, the operation and the note ([`note`](Self::note))
/// are one step: keep it behind a lock, and hold the lock from the look to the note.
///
/// ```
/// use rocmforge_memory::{Access, Queue, Uses};
///
/// #[derive(Clone)]
/// struct Stream(u64);
/// impl Queue for Stream {
///     fn id(&self) -> u64 {
///         self.0
///     }
///     fn completed(&self) -> u64 {
///         0
///     }
/// }
///
/// let (copy, compute) = (Stream(1), Stream(2));
/// let mut uses = Uses::default();
/// uses.note(Access::Write, &copy, 1);
/// assert_eq!(uses.before(Access::Read, &compute).count(), 1);
/// assert_eq!(uses.before(Access::Read, &copy).count(), 0);
/// ```
pub struct Uses<S> {
    write: Option<Use<S>>,
    reads: Vec<Use<S>>,
}

impl<S> Default for Uses<S> {
    fn default() -> Self {
        Self {
            write: None,
            reads: Vec::new(),
        }
    }
}

impl<S: Queue + Clone> Uses<S> {
    /// What an operation on `stream` has to wait for. Its own stream's operations come before it anyway.
    pub fn before<'a>(&'a self, access: Access, stream: &S) -> impl Iterator<Item = &'a Use<S>> {
        let reads: &[Use<S>] = if access == Access::Write { &self.reads } else { &[] };
        let id = stream.id();
        let all = self.write.iter().chain(reads);
        all.filter(move |last| last.stream.id() != id && !last.is_done())
    }

    /// Notes an operation that was enqueued behind everything [`before`](Self::before) named.
    pub fn note(&mut self, access: Access, stream: &S, cursor: u64) {
        let mine = |last: &Use<S>| last.stream.id() == stream.id();
        match access {
            Access::Write => {
                // The write waited for every read, so whoever waits for the write waits for them.
                self.reads.clear();
                match &mut self.write {
                    Some(last) if mine(last) => last.cursor = cursor,
                    last => *last = Some(Use::of(stream, cursor)),
                }
            }
            Access::Read => match self.reads.iter_mut().find(|last| mine(last)) {
                // A module's launches are noted after they were enqueued, so two threads may note theirs in either order.
                Some(last) => last.cursor = last.cursor.max(cursor),
                None => {
                    self.reads.retain(|last| !last.is_done());
                    self.reads.push(Use::of(stream, cursor));
                }
            },
        }
    }

    /// The uses that are not known to be done.
    pub fn pending(&self) -> impl Iterator<Item = &Use<S>> {
        self.write.iter().chain(&self.reads).filter(|last| !last.is_done())
    }

    /// Whether nothing is pending.
    pub fn is_done(&self) -> bool {
        self.pending().next().is_none()
    }

    /// Whether an operation on `stream` has nothing to wait for, whatever it does.
    pub fn is_free_for(&self, stream: &S) -> bool {
        self.before(Access::Write, stream).next().is_none()
    }

    /// The stream of the last operation known here: where the memory is best used next.
    pub(crate) fn home(&self) -> Option<u64> {
        let last = self.reads.last().or(self.write.as_ref());
        last.map(|last| last.stream.id())
    }

    /// Forgets what is done, and with it the streams.
    pub(crate) fn forget_done(&mut self) {
        self.write.take_if(|last| last.is_done());
        self.reads.retain(|last| !last.is_done());
    }
}

impl<S: Clone> Use<S> {
    fn of(stream: &S, cursor: u64) -> Self {
        Self {
            stream: stream.clone(),
            cursor,
        }
    }
}

impl<S: Queue> fmt::Debug for Uses<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uses")
            .field("write", &self.write)
            .field("reads", &self.reads)
            .finish()
    }
}
