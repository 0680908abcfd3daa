//! Entries of a card's ledger: each living thing with its label and the place that made it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

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
    pub(crate) next: u64,
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
    pub(crate) fn since(&self, first: u64) -> impl Iterator<Item = &Entry> {
        let given_up = self.abandoned.range(..first).filter(move |(_, at)| **at >= first);
        let before = given_up.filter_map(|(id, _)| self.live.get(id));
        before.chain(self.live.range(first..).map(|(_, entry)| entry))
    }
}
