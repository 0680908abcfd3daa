//! Who used an allocation last: the last write and the last read of each stream, as (stream, cursor).
//!
//! An event is made only when another stream must wait, so a program with one stream makes none.

use crate::stream::StreamShared;
use std::sync::Arc;

/// How an operation touches a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Read,
    /// Writes, and may read.
    Write,
}

/// The `cursor`-th operation of a stream.
#[derive(Clone)]
pub(crate) struct Use {
    pub(crate) stream: Arc<StreamShared>,
    pub(crate) cursor: u64,
}

impl Use {
    pub(crate) fn is_done(&self) -> bool {
        self.stream.completed() >= self.cursor
    }
}

/// The uses of one allocation that a later operation may have to wait for.
#[derive(Default)]
pub(crate) struct Uses {
    write: Option<Use>,
    reads: Vec<Use>,
}

impl Uses {
    /// What an operation on `stream` has to wait for. Its own stream's operations come before it anyway.
    pub(crate) fn before<'a>(&'a self, access: Access, stream: &StreamShared) -> impl Iterator<Item = &'a Use> {
        let reads: &[Use] = if access == Access::Write { &self.reads } else { &[] };
        let id = stream.id();
        self.write
            .iter()
            .chain(reads)
            .filter(move |last| last.stream.id() != id && !last.is_done())
    }

    /// Notes an operation that was enqueued.
    pub(crate) fn note(&mut self, access: Access, stream: &Arc<StreamShared>, cursor: u64) {
        let mine = |last: &Use| last.stream.id() == stream.id();
        match access {
            Access::Write => {
                // The write waited for every read, so whoever waits for the write waits for them.
                self.reads.clear();
                match &mut self.write {
                    Some(last) if mine(last) => last.cursor = cursor,
                    last => {
                        *last = Some(Use {
                            stream: Arc::clone(stream),
                            cursor,
                        })
                    }
                }
            }
            Access::Read => match self.reads.iter_mut().find(|last| mine(last)) {
                // A module's launches are noted after they were enqueued, so two threads may note theirs in either order.
                Some(last) => last.cursor = last.cursor.max(cursor),
                None => {
                    self.reads.retain(|last| !last.is_done());
                    self.reads.push(Use {
                        stream: Arc::clone(stream),
                        cursor,
                    });
                }
            },
        }
    }

    /// The uses that are not known to be done.
    pub(crate) fn pending(&self) -> impl Iterator<Item = &Use> {
        self.write.iter().chain(&self.reads).filter(|last| !last.is_done())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{BackendOptions, HipBackend, Provider};
    use rocmforge_sim::{SimConfig, SimHost};

    #[test]
    fn a_use_noted_late_does_not_hide_a_later_one() {
        let sim = SimHost::new(SimConfig::default());
        let provider = Provider::new(sim.api())
            .with_clock(sim.clock())
            .with_readings(Box::new(sim.readings(0)));
        let backend = HipBackend::open(provider, BackendOptions::default()).unwrap();
        let stream = backend.stream().shared();
        let mut uses = Uses::default();
        uses.note(Access::Read, stream, 1006);
        uses.note(Access::Read, stream, 1005);
        let pending: Vec<u64> = uses.pending().map(|last| last.cursor).collect();
        assert_eq!(pending, [1006]);
    }
}
