//! Ledger of a card: the view of its living things, the tokens of driver objects, and the leaks of an epoch.

use std::fmt;
use std::sync::Arc;

use crate::card::shared::Shared;
use crate::entries::{Entry, EntryKind, HandleKind};
use crate::{Bytes, Site};

/// The view of a card's living things. Cheap to clone; every clone sees the same ledger.
///
/// ```
/// use rocmforge_memory::{Bytes, Card, DeviceKey, FixedReadings, HandleKind, Policy, Reading, Site};
///
/// let card = Card::new(DeviceKey::new("sim:0"), Policy::desktop(), Box::new(FixedReadings(Reading::default())));
/// let epoch = card.ledger().epoch();
/// let stream = card.ledger().track(HandleKind::Stream, "copy", Site::caller());
/// assert_eq!(epoch.leaks().handles, 1);
/// drop(stream);
/// assert!(epoch.leaks().is_clean());
/// ```
#[derive(Clone)]
pub struct Ledger {
    pub(crate) shared: Arc<Shared>,
}

impl Ledger {
    /// Enters a driver object; dropping the token takes it out again.
    pub fn track(&self, kind: HandleKind, label: &str, site: Site) -> HandleToken {
        let id = self.shared.lock().entries.add(EntryKind::Handle(kind), label, site);
        HandleToken {
            shared: Some(self.shared.clone()),
            id,
            kind,
        }
    }

    /// Begins an epoch: what is made from now on and still alive later is a leak of it.
    pub fn epoch(&self) -> Epoch {
        let first = self.shared.lock().entries.next;
        Epoch {
            shared: self.shared.clone(),
            first,
        }
    }

    /// Everything alive, oldest first.
    pub fn live(&self) -> Vec<Entry> {
        self.shared.lock().entries.since(0).cloned().collect()
    }

    /// Committed device bytes.
    pub fn live_bytes(&self) -> Bytes {
        Bytes(self.shared.lock().live)
    }

    /// The most device bytes that were ever committed at once.
    pub fn peak(&self) -> Bytes {
        Bytes(self.shared.lock().peak)
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.live()).finish()
    }
}

/// A driver object's entry in the ledger. The wrapper of the object owns it and drops it after the object.
#[must_use = "the entry lives as long as its token"]
pub struct HandleToken {
    /// `None` once abandoned: the entry stays.
    shared: Option<Arc<Shared>>,
    id: u64,
    kind: HandleKind,
}

impl HandleToken {
    /// Its number in the ledger.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Declares that it lives on by design (a backend's own stream or staging memory): no leak.
    pub fn retain(&self) {
        if let Some(shared) = &self.shared {
            shared.retain(self.id);
        }
    }

    /// Leaves the object to the driver: the entry stays, marked abandoned, for as long as the card is open; with the reason, for
    /// whoever reads the ledger.
    pub fn abandon(mut self, reason: Option<&str>) {
        if let Some(shared) = self.shared.take() {
            shared.lock().entries.abandon(self.id, reason);
        }
    }
}

impl Drop for HandleToken {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.lock().entries.remove(self.id);
        }
    }
}

impl fmt::Debug for HandleToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandleToken")
            .field("id", &self.id)
            .field("kind", &self.kind)
            .finish()
    }
}

/// A stretch of time on one card, from its making to each question.
#[derive(Clone)]
pub struct Epoch {
    shared: Arc<Shared>,
    first: u64,
}

impl Epoch {
    /// What was made in this epoch, is still alive and was not declared to live on; and what was left to the driver in
    /// it, whenever it was made. Exact: 0 bytes and 0 handles, or the list of them.
    pub fn leaks(&self) -> LeakReport {
        let state = self.shared.lock();
        let left = state.entries.since(self.first).filter(|entry| !entry.retained);
        let entries: Vec<Entry> = left.cloned().collect();
        let bytes = entries.iter().map(|entry| entry.kind.device_bytes()).sum();
        let pinned = entries.iter().map(|entry| entry.kind.pinned_bytes()).sum();
        let is_handle = |entry: &&Entry| matches!(entry.kind, EntryKind::Handle(_));
        let handles = entries.iter().filter(is_handle).count();
        LeakReport {
            bytes,
            pinned,
            handles,
            entries,
        }
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Epoch")
            .field("first", &self.first)
            .finish_non_exhaustive()
    }
}

/// What an epoch left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a leak report that nobody reads finds no leak"]
pub struct LeakReport {
    /// Device bytes, reservations included.
    pub bytes: Bytes,
    /// Page-locked host bytes.
    pub pinned: Bytes,
    /// Driver objects, page-locked ranges included.
    pub handles: usize,
    /// Each of them, oldest first.
    pub entries: Vec<Entry>,
}

impl LeakReport {
    /// Whether nothing is left, not even an empty buffer.
    pub fn is_clean(&self) -> bool {
        self.entries.is_empty()
    }
}

impl fmt::Display for LeakReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_clean() {
            return f.write_str("no leak");
        }
        let buffers = self.entries.len() - self.handles;
        write!(
            f,
            "leaked {} in {buffers} buffers, and {} handles",
            self.bytes, self.handles
        )?;
        if self.pinned > Bytes::ZERO {
            write!(f, " with {} of pinned host memory", self.pinned)?;
        }
        for entry in &self.entries {
            write!(f, "\n  {entry}")?;
        }
        Ok(())
    }
}
