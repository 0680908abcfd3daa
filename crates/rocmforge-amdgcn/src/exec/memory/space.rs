//! Address spaces: where the lanes of an access go, and what of it is allowed.

use crate::byte_state::ByteState;
use crate::chunk::BLOCK;
use crate::exec::simd::rows::{all_equal, in_steps};
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::fields::Kind;
use crate::exec::state::request::{Addresses, Place};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind, POISON};
use crate::gathered::Gathered;
use crate::kernarg::{PRIVATE_APERTURE, SHARED_APERTURE};
use crate::memory::all_bytes;
use std::mem::MaybeUninit;

/// An address space. Its bytes are those of global memory, if it does not say otherwise.
pub(crate) trait Space {
    /// What requests to it are observed as.
    const PLACE: Place;

    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses);

    /// The address of lane 0 if the accesses of all lanes, of `size` bytes each, lie one behind the other; `None` also where finding that
    /// out takes as long as [`Self::addresses`].
    #[inline(always)]
    fn in_a_row(_: &Wave, _: &Ins, _size: u32) -> Option<u64> {
        None
    }

    /// Lanes that an atomic reaches; the others do nothing and get zero.
    #[inline(always)]
    fn inside(_: &Wave, _: &mut Ctx<'_>, _: &Ins) -> u32 {
        u32::MAX
    }

    /// Bytes for all of a wave at once; `None` where some lane may not read, or the space is not contiguous over lanes.
    #[inline(always)]
    fn range<'a>(c: &'a Ctx<'_>, address: u64, len: usize) -> Option<&'a [u8]> {
        let off = c.memory.offset(address, len)?;
        c.memory.bytes(off, len, c.check_uninit)
    }

    /// Bytes for all of a wave to write, which count as written; `None` as for [`Self::range`].
    #[inline(always)]
    fn range_mut<'a>(c: &'a mut Ctx<'_>, address: u64, len: usize) -> Option<&'a mut [u8]> {
        let off = c.memory.offset(address, len)?;
        c.memory.bytes_mut(off, len)
    }

    /// In a share of memory: lets it read what lanes are about to, before that is tried once more. False where that would be in vain.
    #[inline(always)]
    fn share(c: &mut Ctx<'_>, at: &Addresses, exec: u32, len: usize) -> bool {
        share_lanes(c, at, exec, len)
    }

    /// The `len` bytes that each lane reads; `None` where some lane may not read, or where lanes do not read one memory.
    #[inline(always)]
    fn gather<'a>(c: &'a Ctx<'_>, at: &Addresses, len: usize) -> Option<Gathered<'a>> {
        c.memory.gather(at, len, c.check_uninit)
    }

    /// Bytes one lane reads. `None` after noting a fault.
    #[inline(always)]
    fn lane<'a>(
        c: &'a mut Ctx<'_>,
        w: &Wave,
        i: &Ins,
        how: Access,
        lane: u32,
        at: u64,
        len: usize,
    ) -> Option<&'a [u8]> {
        match c.memory.offset(at, len) {
            Some(off) if c.memory.readable(off, len, c.check_uninit) => c.memory.bytes(off, len, c.check_uninit),
            Some(off) if c.memory.readable(off, len, false) => unwritten_global(c, w, i, how, lane, at, len, off),
            _ => read_elsewhere(c, w, i, how, lane, at, len),
        }
    }

    /// Writes the bytes of one lane. False after noting a fault.
    #[inline(always)]
    fn write(c: &mut Ctx<'_>, w: &Wave, i: &Ins, how: Access, lane: u32, at: u64, bytes: &[u8]) -> bool {
        let len = bytes.len();
        let off = c.memory.offset(at, len);
        let to = off.and_then(|off| c.memory.bytes_mut(off, len));
        put(to, bytes) || write_elsewhere(c, w, i, how, lane, at, bytes)
    }
}

/// Global memory, 64-bit addresses in VGPRs.
pub(crate) struct Global;
/// Global memory, base in SGPRs and 32-bit offsets in VGPRs.
pub(crate) struct GlobalBase;
/// LDS.
pub(crate) struct Lds;
/// Private memory of each lane.
pub(crate) struct Scratch;
/// A generic address: LDS and private memory through their apertures, otherwise global.
pub(crate) struct Flat;

/// [`Space::share`] of global memory.
#[cold]
#[inline(never)]
fn share_lanes(c: &mut Ctx<'_>, at: &Addresses, exec: u32, len: usize) -> bool {
    // Lanes most often access the same few blocks.
    let mut last = 0..0;
    let mut lanes = (0..32).filter(|lane| exec >> lane & 1 != 0);
    c.memory.share.is_some()
        && lanes.all(|lane| {
            let Some(off) = c.memory.offset(at[lane], len) else {
                return false;
            };
            if last.contains(&off) && last.contains(&(off + len - 1)) {
                return true;
            }
            let block = off & !(BLOCK - 1);
            last = block..block + BLOCK;
            c.memory.share_for(off, len, false)
        })
}

/// Bytes of which some were never written: poison in those, if what becomes of them is followed.
#[cold]
#[inline(never)]
fn unwritten_global<'a>(
    c: &'a mut Ctx<'_>,
    w: &Wave,
    i: &Ins,
    how: Access,
    lane: u32,
    at: u64,
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
fn read_elsewhere<'a>(
    c: &'a mut Ctx<'_>,
    w: &Wave,
    i: &Ins,
    how: Access,
    lane: u32,
    at: u64,
    len: usize,
) -> Option<&'a [u8]> {
    if let Some(bytes) = c.elsewhere.get_mut(..len)
        && c.memory.read_elsewhere(at, bytes, c.check_uninit)
    {
        return c.elsewhere.get(..len);
    }
    c.global_fault(w, i, how, lane, at, len as u32);
    None
}

/// The same for a write.
#[cold]
#[inline(never)]
fn write_elsewhere(c: &mut Ctx<'_>, w: &Wave, i: &Ins, how: Access, lane: u32, at: u64, bytes: &[u8]) -> bool {
    let done = c.memory.write_elsewhere(at, bytes);
    if !done {
        c.global_fault(w, i, how, lane, at, bytes.len() as u32);
    }
    done
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

/// [`Space::in_a_row`] of 64-bit addresses in a pair of VGPRs.
#[inline(always)]
fn pair_in_a_row(w: &Wave, i: &Ins, size: u32) -> Option<u64> {
    let low = &w.v[i.a.reg as usize].0;
    let high = &w.v[(i.a.reg as usize + 1) & 255].0;
    let address = u64::from(low[0]) | u64::from(high[0]) << 32;
    (all_equal(high) && in_steps(low, size)).then(|| address.wrapping_add(i64::from(i.imm) as u64))
}

/// 64-bit addresses in a pair of VGPRs.
#[inline(always)]
fn pair(w: &Wave, i: &Ins, out: &mut Addresses) {
    let low = &w.v[i.a.reg as usize].0;
    let high = &w.v[(i.a.reg as usize + 1) & 255].0;
    let imm = i64::from(i.imm) as u64;
    for l in 0..32 {
        out[l] = (u64::from(low[l]) | u64::from(high[l]) << 32).wrapping_add(imm);
    }
}

impl Space for Global {
    const PLACE: Place = Place::Global;
    #[inline(always)]
    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses) {
        pair(w, i, out);
    }

    #[inline(always)]
    fn in_a_row(w: &Wave, i: &Ins, size: u32) -> Option<u64> {
        pair_in_a_row(w, i, size)
    }
}

impl Space for GlobalBase {
    const PLACE: Place = Place::Global;
    #[inline(always)]
    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses) {
        let base = w.scalar64(&i.c).wrapping_add(i64::from(i.imm) as u64);
        let mut buffer = MaybeUninit::uninit();
        let offset = w.lanes(&i.a, &mut buffer);
        for l in 0..32 {
            out[l] = base.wrapping_add(u64::from(offset[l]));
        }
    }

    #[inline(always)]
    fn in_a_row(w: &Wave, i: &Ins, size: u32) -> Option<u64> {
        if i.a.kind != Kind::V {
            return None;
        }
        let offset = &w.v[i.a.reg as usize].0;
        let base = w.scalar64(&i.c).wrapping_add(i64::from(i.imm) as u64);
        in_steps(offset, size).then(|| base.wrapping_add(u64::from(offset[0])))
    }
}

impl Space for Lds {
    const PLACE: Place = Place::Lds;
    #[inline(always)]
    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses) {
        let mut buffer = MaybeUninit::uninit();
        let offset = w.lanes(&i.a, &mut buffer);
        for l in 0..32 {
            out[l] = u64::from(offset[l].wrapping_add(i.imm as u32));
        }
    }

    #[inline(always)]
    fn in_a_row(w: &Wave, i: &Ins, size: u32) -> Option<u64> {
        if i.a.kind != Kind::V {
            return None;
        }
        let offset = &w.v[i.a.reg as usize].0;
        let first = offset[0].wrapping_add(i.imm as u32);
        // Of 32 bits, as the addresses are.
        let inside = first.checked_add(31 * size).is_some();
        (inside && in_steps(offset, size)).then_some(u64::from(first))
    }

    #[inline(always)]
    fn range<'a>(c: &'a Ctx<'_>, address: u64, len: usize) -> Option<&'a [u8]> {
        let at = address as usize;
        let state = c.lds_state.get(at..at + len)?;
        if !c.check_uninit || all_bytes(state, 3) {
            c.lds.get(at..at + len)
        } else {
            None
        }
    }

    #[inline(always)]
    fn range_mut<'a>(c: &'a mut Ctx<'_>, address: u64, len: usize) -> Option<&'a mut [u8]> {
        let at = address as usize;
        c.lds_state.get_mut(at..at + len)?.fill(3);
        c.lds_written = true;
        c.lds.get_mut(at..at + len)
    }

    #[inline(always)]
    fn share(_: &mut Ctx<'_>, _: &Addresses, _exec: u32, _len: usize) -> bool {
        false
    }

    #[inline(always)]
    fn gather<'a>(c: &'a Ctx<'_>, at: &Addresses, len: usize) -> Option<Gathered<'a>> {
        let gathered = Gathered::new(&c.lds, at, len)?;
        if c.check_uninit {
            let of_lanes = Gathered::new(&c.lds_state, at, len)?;
            // Four words, of which shorter accesses use the first.
            let mut states = [u32::MAX; 4];
            for lane in 0..32 {
                if len < 4 {
                    for byte in 0..len {
                        states[0] &= u32::from(of_lanes.byte(lane, byte)) | !0xFF;
                    }
                }
                for (word, all) in states.iter_mut().enumerate().take(len / 4) {
                    *all &= u32::from_ne_bytes(*of_lanes.word(lane, word));
                }
            }
            if states.iter().any(|states| states & 0x0303_0303 != 0x0303_0303) {
                return None;
            }
        }
        Some(gathered)
    }

    #[inline(always)]
    fn lane<'a>(
        c: &'a mut Ctx<'_>,
        w: &Wave,
        i: &Ins,
        how: Access,
        lane: u32,
        at: u64,
        len: usize,
    ) -> Option<&'a [u8]> {
        if Self::range(c, at, len).is_none() && !unwritten_lds(c, w, i, how, lane, at, len) {
            return None;
        }
        c.lds.get(at as usize..at as usize + len)
    }

    #[inline(always)]
    fn write(c: &mut Ctx<'_>, w: &Wave, i: &Ins, how: Access, lane: u32, at: u64, bytes: &[u8]) -> bool {
        let len = bytes.len();
        if at as usize + len > c.lds.len() {
            lds_fault(c, w, i, how, lane, at, len);
            return false;
        }
        put(Self::range_mut(c, at, len), bytes)
    }
}

/// Puts poison into the bytes of a piece of LDS that nobody has written, if what becomes of them is followed. False after noting a
/// fault.
#[cold]
#[inline(never)]
fn unwritten_lds(c: &mut Ctx<'_>, w: &Wave, i: &Ins, how: Access, lane: u32, at: u64, len: usize) -> bool {
    let missing = c.lds_state.get(at as usize..at as usize + len).map_or(0, missing);
    let fresh = if missing == 0 {
        None
    } else {
        c.unwritten(w, Place::Lds, how, lane, at, missing)
    };
    match fresh {
        Some(fresh) => poison(&mut c.lds[at as usize..at as usize + len], fresh),
        None => lds_fault(c, w, i, how, lane, at, len),
    }
    fresh.is_some()
}

#[cold]
#[inline(never)]
fn lds_fault(c: &mut Ctx<'_>, w: &Wave, i: &Ins, how: Access, lane: u32, at: u64, len: usize) {
    let outside = at as usize + len > c.lds.len();
    let kind = if outside {
        FaultKind::LdsOutOfBounds
    } else {
        FaultKind::UninitialisedLds
    };
    c.fault(w, i, kind, how, lane, at, len as u32);
}

/// Where a lane's private memory lies, if the access is inside it.
#[inline(always)]
fn scratch_at(c: &mut Ctx<'_>, w: &Wave, i: &Ins, how: Access, lane: u32, at: u64, len: usize) -> Option<usize> {
    if at as usize + len > c.scratch_size {
        c.fault(w, i, FaultKind::ScratchOutOfBounds, how, lane, at, len as u32);
        return None;
    }
    Some((w.slot as usize + lane as usize) * c.scratch_size + at as usize)
}

impl Space for Scratch {
    const PLACE: Place = Place::Scratch;
    #[inline(always)]
    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses) {
        let base = w.scalar(&i.c).wrapping_add(i.imm as u32);
        let mut buffer = MaybeUninit::uninit();
        let offset = w.lanes(&i.a, &mut buffer);
        for l in 0..32 {
            out[l] = u64::from(base.wrapping_add(offset[l]));
        }
    }

    fn range<'a>(_: &'a Ctx<'_>, _: u64, _: usize) -> Option<&'a [u8]> {
        None
    }

    fn range_mut<'a>(_: &'a mut Ctx<'_>, _: u64, _: usize) -> Option<&'a mut [u8]> {
        None
    }

    #[inline(always)]
    fn share(_: &mut Ctx<'_>, _: &Addresses, _exec: u32, _len: usize) -> bool {
        false
    }

    #[inline(always)]
    fn gather<'a>(_: &'a Ctx<'_>, _: &Addresses, _len: usize) -> Option<Gathered<'a>> {
        None
    }

    #[inline(always)]
    fn lane<'a>(
        c: &'a mut Ctx<'_>,
        w: &Wave,
        i: &Ins,
        how: Access,
        lane: u32,
        at: u64,
        len: usize,
    ) -> Option<&'a [u8]> {
        let start = scratch_at(c, w, i, how, lane, at, len)?;
        let missing = c.scratch_state.get(start..start + len).map_or(0, missing);
        if missing != 0
            && let Some(fresh) = c.unwritten(w, Place::Scratch, how, lane, at, missing)
        {
            poison(&mut c.scratch[start..start + len], fresh);
        }
        c.scratch.get(start..start + len)
    }

    #[inline(always)]
    fn write(c: &mut Ctx<'_>, w: &Wave, i: &Ins, how: Access, lane: u32, at: u64, bytes: &[u8]) -> bool {
        let len = bytes.len();
        let Some(at) = scratch_at(c, w, i, how, lane, at, len) else {
            return false;
        };
        if let Some(state) = c.scratch_state.get_mut(at..at + len) {
            state.fill(3);
            c.scratch_written = true;
        }
        put(c.scratch.get_mut(at..at + len), bytes)
    }
}

// Both apertures lie outside global memory, so a range inside it is global.
impl Space for Flat {
    const PLACE: Place = Place::Flat;
    #[inline(always)]
    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses) {
        debug_assert!(i.a.kind == Kind::V);
        pair(w, i, out);
    }

    #[inline(always)]
    fn in_a_row(w: &Wave, i: &Ins, size: u32) -> Option<u64> {
        pair_in_a_row(w, i, size)
    }

    fn lane<'a>(
        c: &'a mut Ctx<'_>,
        w: &Wave,
        i: &Ins,
        how: Access,
        lane: u32,
        at: u64,
        len: usize,
    ) -> Option<&'a [u8]> {
        match (at >> 32) as u32 {
            SHARED_APERTURE => Lds::lane(c, w, i, how, lane, at & 0xFFFF_FFFF, len),
            PRIVATE_APERTURE => Scratch::lane(c, w, i, how, lane, at & 0xFFFF_FFFF, len),
            _ => Global::lane(c, w, i, how, lane, at, len),
        }
    }

    fn write(c: &mut Ctx<'_>, w: &Wave, i: &Ins, how: Access, lane: u32, at: u64, bytes: &[u8]) -> bool {
        match (at >> 32) as u32 {
            SHARED_APERTURE => Lds::write(c, w, i, how, lane, at & 0xFFFF_FFFF, bytes),
            PRIVATE_APERTURE => Scratch::write(c, w, i, how, lane, at & 0xFFFF_FFFF, bytes),
            _ => Global::write(c, w, i, how, lane, at, bytes),
        }
    }
}

/// Writes bytes to where they go, if there is such a place.
#[inline(always)]
fn put(to: Option<&mut [u8]>, bytes: &[u8]) -> bool {
    to.map(|to| to.copy_from_slice(bytes)).is_some()
}
