//! The one place that sees every request to memory: what watches a launch hangs here.

use crate::exec::code::Ins;
use crate::exec::memory::{Addresses, Shape, shape};
use crate::exec::waves::ctx::Ctx;
use crate::exec::waves::wave::Wave;
use crate::fault::Access;
use crate::kernarg::{PRIVATE_APERTURE, SHARED_APERTURE};
use std::collections::HashMap;

/// The memory a request goes to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    Global,
    Lds,
    Scratch,
    /// A generic address: each lane goes where its aperture says.
    Flat,
}

/// What a store writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data {
    None,
    /// Whole registers from this one on.
    Words(u8),
    /// The low bytes of a register, after a shift to the right.
    Bytes(u8, u32),
}

impl Data {
    /// Byte `n` of what a lane stores.
    pub(crate) fn byte(self, w: &Wave, lane: usize, n: usize) -> Option<u8> {
        let (reg, shift, n) = match self {
            Data::None => return None,
            Data::Words(reg) => (reg as usize + n / 4, 0, n % 4),
            Data::Bytes(reg, shift) => (reg as usize, shift, n),
        };
        Some((w.v[reg & 255].0[lane & 31] >> shift >> (8 * n)) as u8)
    }
}

/// One request of one wave.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub(crate) place: Place,
    pub(crate) access: Access,
    /// Bytes per lane.
    pub(crate) size: u32,
    /// Lanes that take part; not 0.
    pub(crate) exec: u32,
    pub(crate) at: &'a Addresses,
    pub(crate) shape: Shape,
    pub(crate) data: Data,
}

impl Request<'_> {
    /// The same for other lanes.
    fn of<'b>(&self, place: Place, exec: u32, at: &'b Addresses) -> Request<'b> {
        Request {
            place,
            exec,
            at,
            shape: shape(at, exec, u64::from(self.size)),
            ..*self
        }
    }
}

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
    fn request(&mut self, c: &Ctx<'_>, w: &Wave, r: &Request<'_>) {
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
                return Some(c.memory.slice(offset, len).to_vec());
            }
            let mut host = vec![0; len];
            c.memory.host.read(at, &mut host).then_some(host)
        }
    }
}

impl Ctx<'_> {
    /// Tells whoever watches about a request that is about to run. Called only if [`Ctx::observed`].
    #[cold]
    #[inline(never)]
    pub(crate) fn observe(&mut self, w: &Wave, i: &Ins, request: &Request<'_>) {
        if request.place != Place::Flat {
            return self.watch(w, i, request);
        }
        let (mut lds, mut scratch) = (0, 0);
        let mut low = *request.at;
        for l in 0..32 {
            match (low[l] >> 32) as u32 {
                SHARED_APERTURE => lds |= 1 << l,
                PRIVATE_APERTURE => scratch |= 1 << l,
                _ => {}
            }
            low[l] &= 0xFFFF_FFFF;
        }
        let (lds, scratch) = (lds & request.exec, scratch & request.exec);
        let global = request.exec & !lds & !scratch;
        for (place, exec, at) in [
            (Place::Global, global, request.at),
            (Place::Lds, lds, &low),
            (Place::Scratch, scratch, &low),
        ] {
            if exec != 0 {
                self.watch(w, i, &request.of(place, exec, at));
            }
        }
    }

    fn watch(&mut self, w: &Wave, i: &Ins, request: &Request<'_>) {
        if let Some(mut probe) = self.probe.take() {
            probe.request(self, w, request);
            self.probe = Some(probe);
        }
        if let Some(mut init) = self.init.take() {
            init.request(self, w, i, request);
            self.init = Some(init);
        }
        if let Some(count) = &mut self.count {
            count.request(request);
        }
        if let Some(mut race) = self.race.take() {
            race.request(self, w, i, request);
            self.race = Some(race);
        }
    }
}
