//! Everything that is alive on a card: exact bytes and handles, each with its label and the place that made it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::card::Shared;
use crate::{Bytes, Site};

/// A driver object that is not device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandleKind {
    /// Page-locked host memory of this size.
    PinnedHost(Bytes),
    /// A stream.
    Stream,
    /// An event.
    Event,
    /// A loaded code object.
    Module,
    /// An instantiated graph.
    Graph,
}

/// What one entry of the ledger stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// Device memory.
    Buffer(Bytes),
    /// Device memory that is reserved and not yet allocated.
    Reserved(Bytes),
    /// A driver object.
    Handle(HandleKind),
}

impl EntryKind {
    /// Device bytes of the entry.
    pub const fn device_bytes(self) -> Bytes {
        match self {
            EntryKind::Buffer(bytes) | EntryKind::Reserved(bytes) => bytes,
            EntryKind::Handle(_) => Bytes::ZERO,
        }
    }

    /// Page-locked host bytes of the entry.
    pub const fn pinned_bytes(self) -> Bytes {
        match self {
            EntryKind::Handle(HandleKind::PinnedHost(bytes)) => bytes,
            _ => Bytes::ZERO,
        }
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryKind::Buffer(bytes) => write!(f, "buffer of {bytes}"),
            EntryKind::Reserved(bytes) => write!(f, "reservation of {bytes}"),
            EntryKind::Handle(HandleKind::PinnedHost(bytes)) => write!(f, "pinned host memory of {bytes}"),
            EntryKind::Handle(HandleKind::Stream) => f.write_str("stream"),
            EntryKind::Handle(HandleKind::Event) => f.write_str("event"),
            EntryKind::Handle(HandleKind::Module) => f.write_str("module"),
            EntryKind::Handle(HandleKind::Graph) => f.write_str("graph"),
        }
    }
}

/// One living thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its number on this card, rising with time, never used twice.
    pub id: u64,
    /// What it is.
    pub kind: EntryKind,
    /// What it is for.
    pub label: Arc<str>,
    /// Who made it.
    pub site: Site,
    /// Whether it is meant to live on: no epoch calls it a leak.
    pub retained: bool,
    /// Whether it was left to the driver because the backend could no longer be asked to free it.
    pub abandoned: bool,
    /// Why, if its owner said so: the error that a destructor could give to nobody.
    pub reason: Option<Arc<str>>,
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{} {} `{}` made at {}", self.id, self.kind, self.label, self.site)?;
        if self.abandoned {
            f.write_str(" (abandoned to the driver")?;
            if let Some(reason) = &self.reason {
                write!(f, ": {reason}")?;
            }
            f.write_str(")")
        } else {
            Ok(())
        }
    }
}

/// The entries of a card, inside its mutex.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    next: u64,
    live: BTreeMap<u64, Entry>,
    /// Abandoned entries, with what was `next` then: they are leaks of the epoch in which they were given up.
    abandoned: BTreeMap<u64, u64>,
}

impl Entries {
    pub(crate) fn add(&mut self, kind: EntryKind, label: &str, site: Site) -> u64 {
        let id = self.next;
        self.next += 1;
        self.live.insert(
            id,
            Entry {
                id,
                kind,
                label: label.into(),
                site,
                retained: false,
                abandoned: false,
                reason: None,
            },
        );
        id
    }

    pub(crate) fn remove(&mut self, id: u64) {
        self.live.remove(&id);
    }

    /// Moves device bytes from one buffer's entry to another's.
    pub(crate) fn transfer(&mut self, bytes: Bytes, from: u64, to: u64) {
        if let Some(entry) = self.live.get_mut(&from) {
            let held = entry.kind.device_bytes();
            debug_assert!(bytes <= held, "{bytes} of {held}");
            entry.kind = EntryKind::Buffer(held.saturating_sub(bytes));
        }
        if let Some(entry) = self.live.get_mut(&to) {
            entry.kind = EntryKind::Buffer(entry.kind.device_bytes().saturating_add(bytes));
        }
    }

    /// Marks an entry as left to the driver. Even what was meant to live on is a leak from then on: its owner is gone.
    pub(crate) fn abandon(&mut self, id: u64, reason: Option<&str>) {
        if let Some(entry) = self.live.get_mut(&id) {
            (entry.abandoned, entry.retained) = (true, false);
            entry.reason = reason.map(Arc::from);
            self.abandoned.insert(id, self.next);
            // An epoch that begins now begins after this.
            self.next += 1;
        }
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut Entry> {
        self.live.get_mut(&id)
    }

    /// Entries made or given up since `first` was the next one.
    fn since(&self, first: u64) -> impl Iterator<Item = &Entry> {
        let given_up = self.abandoned.range(..first).filter(move |(_, at)| **at >= first);
        let before = given_up.filter_map(|(id, _)| self.live.get(id));
        before.chain(self.live.range(first..).map(|(_, entry)| entry))
    }
}

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
        let entries: Vec<Entry> = state
            .entries
            .since(self.first)
            .filter(|entry| !entry.retained)
            .cloned()
            .collect();
        let bytes = entries.iter().map(|entry| entry.kind.device_bytes()).sum();
        let pinned = entries.iter().map(|entry| entry.kind.pinned_bytes()).sum();
        let handles = entries
            .iter()
            .filter(|entry| matches!(entry.kind, EntryKind::Handle(_)))
            .count();
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
