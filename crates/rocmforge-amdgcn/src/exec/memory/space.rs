//! Address spaces: the addresses of the lanes of an access.

use crate::exec::memory::bytes::Memory;
use crate::exec::simd::rows::{all_equal, in_steps};
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::fields::Kind;
use crate::exec::state::request::{Addresses, Place};
use crate::exec::state::wave::Wave;
use std::mem::MaybeUninit;

/// An address space.
pub(crate) trait Space {
    /// What requests to it are observed as.
    const PLACE: Place;
    /// The memory in which all lanes of a wave can be served at once.
    type Memory: Memory;

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
    type Memory = Self;

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
    type Memory = Global;

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
    type Memory = Self;

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
}

impl Space for Scratch {
    const PLACE: Place = Place::Scratch;
    type Memory = Self;

    #[inline(always)]
    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses) {
        let base = w.scalar(&i.c).wrapping_add(i.imm as u32);
        let mut buffer = MaybeUninit::uninit();
        let offset = w.lanes(&i.a, &mut buffer);
        for l in 0..32 {
            out[l] = u64::from(base.wrapping_add(offset[l]));
        }
    }
}

impl Space for Flat {
    const PLACE: Place = Place::Flat;
    // Both apertures lie outside global memory, so bytes inside it are global.
    type Memory = Global;

    #[inline(always)]
    fn addresses(w: &Wave, i: &Ins, out: &mut Addresses) {
        debug_assert!(i.a.kind == Kind::V);
        pair(w, i, out);
    }

    #[inline(always)]
    fn in_a_row(w: &Wave, i: &Ins, size: u32) -> Option<u64> {
        pair_in_a_row(w, i, size)
    }
}
