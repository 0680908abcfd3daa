//! Probe: whether what waves do for a while changes memory.

use crate::exec::state::ctx::Ctx;
use crate::exec::state::request::{Place, Request};
use crate::exec::state::wave::Wave;
use crate::fault::Access;
use std::collections::HashMap;

/// Whether the requests of a while have changed memory.
#[derive(Default)]
pub(crate) struct Probe {
    changed: bool,
    /// Bytes an atomic or a store touched, and what they held before.
    before: HashMap<(Place, u64, usize), Vec<u8>>,
}

/// Accesses of a loop that waits: in code that is not optimised each of its variables is in private memory, for every lane.
const MOST_PLACES: usize = 1 << 14;

impl Probe {
    pub(super) fn request(&mut self, c: &Ctx<'_>, w: &Wave, r: &Request<'_>) {
        if matches!(r.access, Access::Load | Access::Scalar | Access::None) {
            return;
        }
        if self.before.len() > MOST_PLACES {
            self.changed = true;
            return;
        }
        let size = r.size as usize;
        for lane in (0..32).filter(|l| r.exec >> l & 1 != 0) {
            let mut at = r.at[lane];
            if r.place == Place::Scratch {
                // Lanes have the same addresses there.
                at = at.wrapping_add((w.slot as usize + lane) as u64 * c.scratch_size as u64);
            }
            let key = (r.place, at, size);
            if !self.before.contains_key(&key)
                && let Some(old) = bytes(c, r.place, at, size)
            {
                self.before.insert(key, old);
            }
        }
    }

    /// Whether memory now differs from what it was.
    pub(crate) fn changed(&self, c: &Ctx<'_>) -> bool {
        self.changed
            || (self.before.iter()).any(|(&(place, at, size), old)| bytes(c, place, at, size).as_ref() != Some(old))
    }
}

fn bytes(c: &Ctx<'_>, place: Place, at: u64, len: usize) -> Option<Vec<u8>> {
    match place {
        Place::Lds => Some(c.lds.get(at as usize..at as usize + len)?.to_vec()),
        Place::Scratch => Some(c.scratch.get(at as usize..(at as usize).checked_add(len)?)?.to_vec()),
        _ => {
            if let Some(offset) = c.memory.offset(at, len) {
                return c.memory.bytes(offset, len, false).map(<[u8]>::to_vec);
            }
            let mut host = vec![0; len];
            c.memory.host.read(at, &mut host).then_some(host)
        }
    }
}
