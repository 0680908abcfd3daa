//! Host memory that a queued copy reads or writes, and that the host must leave alone meanwhile.
//!
//! The simulator does not see what the host does with its memory. It sees that the bytes are others than when the copy
//! was queued, or others than those the copy wrote, at the moment the copy runs and (pinned memory, which is known to
//! exist) at the moment the host learns that it has run.

use crate::queues::clock::Epoch;
use crate::queues::op::Place;
use crate::races::shadow::Actor;
use crate::report::Access;
use std::sync::Arc;

/// One end of a queued copy that lies in host memory.
pub(crate) struct Watch {
    /// The copy.
    pub(crate) actor: Arc<Actor>,
    pub(crate) place: Place,
    pub(crate) size: usize,
    pub(crate) access: Access,
    /// What the bytes are.
    print: u64,
    /// Whether something may have changed them that the simulator knows of.
    pub(crate) tainted: bool,
}

impl Watch {
    pub(crate) fn new(actor: Arc<Actor>, place: Place, size: usize, access: Access) -> Self {
        Self {
            actor,
            place,
            size,
            access,
            print: print(place, size),
            tainted: false,
        }
    }

    /// Whether the bytes are others than when they were looked at last, and nothing that the simulator knows of may have changed them.
    pub(crate) fn has_changed(&self) -> bool {
        !self.tainted && print(self.place, self.size) != self.print
    }

    /// Looks at the bytes: they must stay as they are from now on.
    pub(crate) fn look(&mut self) {
        (self.print, self.tainted) = (print(self.place, self.size), false);
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Watches {
    pub(crate) live: Vec<Watch>,
}

/// Copies watched at a time; what is queued beyond that is not.
const MOST: usize = 4096;
/// Bytes looked at, at most: of larger ranges the two ends.
const LOOKED_AT: usize = 1 << 20;

impl Watches {
    /// Whether no more copies are watched.
    pub(crate) fn is_full(&self) -> bool {
        self.live.len() >= MOST
    }

    /// Something the simulator knows of writes host memory.
    pub(crate) fn taint(&mut self, start: u64, end: u64, by: Option<Epoch>) {
        for watch in &mut self.live {
            let (from, to) = (watch.place.address(), watch.place.address() + watch.size as u64);
            if from < end && start < to && by != Some(watch.actor.epoch) {
                watch.tainted = true;
            }
        }
    }

    /// Host memory goes: nobody may look at it any more.
    pub(crate) fn forget(&mut self, id: u64) {
        self.live
            .retain(|watch| !matches!(watch.place, Place::Pinned { id: of, .. } if of == id));
    }
}

/// A number that changes when the bytes do.
fn print(place: Place, size: usize) -> u64 {
    let start = std::ptr::with_exposed_provenance::<u8>(place.address() as usize);
    let hash = |mut hash: u64, from: usize, to: usize| {
        let mut at = from;
        while at + 8 <= to {
            let mut word = [0; 8];
            // SAFETY: inside the range that the caller of the copy promised to keep readable until the copy has run,
            // or that lies in pinned memory which was just looked up.
            unsafe { start.wrapping_add(at).copy_to_nonoverlapping(word.as_mut_ptr(), 8) };
            hash = (hash ^ u64::from_le_bytes(word))
                .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                .rotate_left(29);
            at += 8;
        }
        for at in at..to {
            // SAFETY: as above.
            let byte = unsafe { start.wrapping_add(at).read() };
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        hash
    };
    if size <= LOOKED_AT {
        return hash(size as u64, 0, size);
    }
    let first = hash(size as u64, 0, LOOKED_AT / 2);
    hash(first, size - LOOKED_AT / 2, size)
}
