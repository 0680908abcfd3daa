//! Accesses of one lane: its bytes in whichever memory they lie, and the faults of those that it may not access.

use crate::byte_state::ByteState;
use crate::exec::memory::bytes::Memory;
use crate::exec::memory::space::{Global, Lds};
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::request::Place;
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind, POISON};
use crate::kernarg::{PRIVATE_APERTURE, SHARED_APERTURE};

/// An access of one lane, except for its length.
#[derive(Clone, Copy)]
pub(crate) struct LaneAccess {
    /// What `at` is an address in.
    pub(crate) place: Place,
    pub(crate) how: Access,
    pub(crate) lane: u32,
    pub(crate) at: u64,
}

impl LaneAccess {
    pub(crate) fn new(place: Place, how: Access, lane: usize, at: u64) -> Self {
        Self {
            place,
            how,
            lane: lane as u32,
            at,
        }
    }

    /// The same with the memory that a generic address is in, and the address there. It stays generic in global memory.
    fn resolved(self) -> Self {
        let aperture = (self.at >> 32) as u32;
        let (place, at) = match (self.place, aperture) {
            (Place::Flat, SHARED_APERTURE) => (Place::Lds, self.at & 0xFFFF_FFFF),
            (Place::Flat, PRIVATE_APERTURE) => (Place::Scratch, self.at & 0xFFFF_FFFF),
            other => (other.0, self.at),
        };
        Self { place, at, ..self }
    }
}

/// Bytes that a lane reads. `None` after noting a fault.
pub(crate) fn read<'a>(c: &'a mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, len: usize) -> Option<&'a [u8]> {
    let access = access.resolved();
    match access.place {
        Place::Lds => read_lds(c, w, i, access, len),
        Place::Scratch => read_scratch(c, w, i, access, len),
        Place::Global | Place::Flat => match c.memory.offset(access.at, len) {
            Some(off) if c.memory.readable(off, len, c.check_uninit) => c.memory.bytes(off, len, c.check_uninit),
            Some(off) if c.memory.readable(off, len, false) => unwritten_global(c, w, i, access, len, off),
            _ => read_elsewhere(c, w, i, access, len),
        },
    }
}

/// Writes the bytes of a lane. False after noting a fault.
pub(crate) fn write(c: &mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, bytes: &[u8]) -> bool {
    let access = access.resolved();
    match access.place {
        Place::Lds => write_lds(c, w, i, access, bytes),
        Place::Scratch => write_scratch(c, w, i, access, bytes),
        Place::Global | Place::Flat => {
            put(Global::range_mut(c, access.at, bytes.len()), bytes) || write_elsewhere(c, w, i, access, bytes)
        }
    }
}

/// Writes bytes to where they go, if there is such a place.
fn put(to: Option<&mut [u8]>, bytes: &[u8]) -> bool {
    to.map(|to| to.copy_from_slice(bytes)).is_some()
}

/// Bytes of which some were never written: poison in those, if what becomes of them is followed.
#[cold]
#[inline(never)]
fn unwritten_global<'a>(
    c: &'a mut Ctx<'_>,
    w: &Wave,
    i: &Ins,
    LaneAccess { how, lane, at, .. }: LaneAccess,
    len: usize,
    off: usize,
) -> Option<&'a [u8]> {
    let missing = (0..len).filter(|&n| c.memory.state_at(at + n as u64) == ByteState::Uninit);
    let missing = missing.fold(0, |mask, n| mask | 1 << n);
    // In a share that is a fault at once: one thread runs the launch again, and follows the value.
    let share = c.memory.share.is_some();
    let followed = if share {
        None
    } else {
        c.unwritten(w, Place::Global, how, lane, at, missing)
    };
    let Some(fresh) = followed else {
        c.global_fault(w, i, how, lane, at, len as u32);
        return None;
    };
    let bytes = c.memory.bytes_as_they_are(off, len)?;
    poison(bytes, fresh);
    Some(bytes)
}

/// Bytes that are not simply there: those a share reads for the first time or has in chunks of its own, host memory, or a fault.
#[cold]
#[inline(never)]
fn read_elsewhere<'a>(c: &'a mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, len: usize) -> Option<&'a [u8]> {
    if c.in_allocator(i)
        && let Some(bytes) = c.elsewhere.get_mut(..len)
        && c.memory.peek(access.at, bytes)
    {
        return c.elsewhere.get(..len);
    }
    if let Some(bytes) = c.elsewhere.get_mut(..len)
        && c.memory.read_elsewhere(access.at, bytes, c.check_uninit)
    {
        return c.elsewhere.get(..len);
    }
    if unwritten_of_peer(c, w, access, len) {
        return c.elsewhere.get(..len);
    }
    outside(c, w, i, access, len);
    None
}

/// Bytes of a peer of which some were never written: poison in those, if what becomes of them is followed.
fn unwritten_of_peer(c: &mut Ctx<'_>, w: &Wave, access: LaneAccess, len: usize) -> bool {
    let readable = |c: &mut Ctx<'_>| {
        let bytes = c.elsewhere.get_mut(..len);
        bytes.is_some_and(|bytes| c.memory.read_elsewhere(access.at, bytes, false))
    };
    if c.memory.share.is_some() || !readable(c) {
        return false;
    }
    let missing = (0..len).filter(|&n| c.memory.state_at(access.at + n as u64) == ByteState::Uninit);
    let missing = missing.fold(0, |mask, n| mask | 1 << n);
    let fresh = c.unwritten(w, Place::Global, access.how, access.lane, access.at, missing);
    if let Some(fresh) = fresh {
        poison(&mut c.elsewhere[..len], fresh);
    }
    fresh.is_some()
}

/// The same for a write.
#[cold]
#[inline(never)]
fn write_elsewhere(c: &mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, bytes: &[u8]) -> bool {
    if c.in_allocator(i) && c.memory.poke(access.at, bytes) {
        // From now on it is memory as all other: the checks follow what the allocator does there.
        c.memory.set_state(access.at, bytes.len() as u64, ByteState::Init);
        return true;
    }
    let done = c.memory.write_elsewhere(access.at, bytes);
    if !done {
        outside(c, w, i, access, bytes.len());
    }
    done
}

/// Notes an access outside of global memory and host memory. A generic address up to 2 GiB below an aperture is that of an element before an
/// array in LDS or private memory; code that knows the memory counts in 32 bits, and so does the fault.
#[cold]
fn outside(c: &mut Ctx<'_>, w: &Wave, i: &Ins, LaneAccess { place, how, lane, at }: LaneAccess, len: usize) {
    const BELOW: u64 = 1 << 31;
    let kind = match (at.wrapping_add(BELOW) >> 32) as u32 {
        SHARED_APERTURE if place == Place::Flat => FaultKind::LdsOutOfBounds,
        PRIVATE_APERTURE if place == Place::Flat => FaultKind::ScratchOutOfBounds,
        _ => return c.global_fault(w, i, how, lane, at, len as u32),
    };
    c.fault(w, i, kind, how, lane, at & 0xFFFF_FFFF, len as u32);
}

/// Bytes of a piece of LDS or private memory that nobody has written, a bit for each.
fn missing(states: &[u8]) -> u64 {
    let missing = states.iter().enumerate().filter(|(_, state)| **state != 3);
    missing.fold(0, |mask, (n, _)| mask | 1 << n)
}

/// Puts poison into bytes that nobody has written.
fn poison(bytes: &mut [u8], missing: u64) {
    for (n, byte) in bytes.iter_mut().enumerate().filter(|(n, _)| missing >> n & 1 != 0) {
        *byte = POISON.to_le_bytes()[n % 4];
    }
}

fn read_lds<'a>(c: &'a mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, len: usize) -> Option<&'a [u8]> {
    let at = access.at as usize;
    if Lds::range(c, access.at, len).is_none() && !unwritten_lds(c, w, i, access, len) {
        return None;
    }
    c.lds.get(at..at + len)
}

fn write_lds(c: &mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, bytes: &[u8]) -> bool {
    if access.at as usize + bytes.len() > c.lds.len() {
        lds_fault(c, w, i, access, bytes.len());
        return false;
    }
    put(Lds::range_mut(c, access.at, bytes.len()), bytes)
}

/// Puts poison into the bytes of a piece of LDS that nobody has written, if what becomes of them is followed. False after noting a
/// fault.
#[cold]
#[inline(never)]
fn unwritten_lds(c: &mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, len: usize) -> bool {
    let at = access.at as usize;
    let missing = c.lds_state.get(at..at + len).map_or(0, missing);
    let fresh = if missing == 0 {
        None
    } else {
        c.unwritten(w, Place::Lds, access.how, access.lane, access.at, missing)
    };
    match fresh {
        Some(fresh) => poison(&mut c.lds[at..at + len], fresh),
        None => lds_fault(c, w, i, access, len),
    }
    fresh.is_some()
}

#[cold]
#[inline(never)]
fn lds_fault(c: &mut Ctx<'_>, w: &Wave, i: &Ins, LaneAccess { how, lane, at, .. }: LaneAccess, len: usize) {
    let outside = at as usize + len > c.lds.len();
    let kind = if outside {
        FaultKind::LdsOutOfBounds
    } else {
        FaultKind::UninitialisedLds
    };
    c.fault(w, i, kind, how, lane, at, len as u32);
}

fn read_scratch<'a>(c: &'a mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, len: usize) -> Option<&'a [u8]> {
    let start = scratch_at(c, w, i, access, len)?;
    let missing = c.scratch_state.get(start..start + len).map_or(0, missing);
    if missing != 0
        && let Some(fresh) = c.unwritten(w, Place::Scratch, access.how, access.lane, access.at, missing)
    {
        poison(&mut c.scratch[start..start + len], fresh);
    }
    c.scratch.get(start..start + len)
}

fn write_scratch(c: &mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, bytes: &[u8]) -> bool {
    let len = bytes.len();
    let Some(at) = scratch_at(c, w, i, access, len) else {
        return false;
    };
    if let Some(state) = c.scratch_state.get_mut(at..at + len) {
        state.fill(3);
        c.scratch_written = true;
    }
    put(c.scratch.get_mut(at..at + len), bytes)
}

/// Where a lane's private memory lies, if the access is inside it.
fn scratch_at(c: &mut Ctx<'_>, w: &Wave, i: &Ins, access: LaneAccess, len: usize) -> Option<usize> {
    let LaneAccess { how, lane, at, .. } = access;
    if at as usize + len > c.scratch_size {
        c.fault(w, i, FaultKind::ScratchOutOfBounds, how, lane, at, len as u32);
        return None;
    }
    Some((w.slot as usize + lane as usize) * c.scratch_size + at as usize)
}
