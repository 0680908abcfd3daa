//! Stores.

use crate::exec::code::isa::{self, Handler, vector};
use crate::exec::memory::bytes::Memory;
use crate::exec::memory::form::BySize;
use crate::exec::memory::lane::{self, LaneAccess};
use crate::exec::memory::space::Space;
use crate::exec::simd::by_host;
use crate::exec::simd::rows::{from_registers, prefetch_behind};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::request::{Addresses, Data, Place, Request, Shape, addresses_of_row, shape};
use crate::exec::state::wave::Wave;
use crate::fault::Access;
use std::marker::PhantomData;

/// Stores `R` registers of each of all lanes to one run of bytes; false where some byte may not be written.
#[inline(always)]
fn run_of_words<M: Memory, const R: usize>(w: &Wave, c: &mut Ctx<'_>, first: u64, src: u8) -> bool {
    // Arrays rather than slices: no bounds checks, so the lanes become shuffles.
    let Some(lanes) = M::range_mut(c, first, 32 * R * 4).and_then(|bytes| {
        let words = bytes.as_chunks_mut::<4>().0;
        words.as_chunks_mut::<R>().0.first_chunk_mut::<32>()
    }) else {
        return false;
    };
    if M::PREFETCH {
        prefetch_behind(lanes);
    }
    if let Some(registers) = w.v[src as usize..].first_chunk::<R>() {
        from_registers(registers, lanes);
    } else {
        from_registers(&std::array::from_fn(|r| w.v[(src as usize + r) & 255]), lanes);
    }
    true
}

/// Stores `R` registers of each of all lanes, whose addresses lie one behind the other; false, and nothing is stored, where that is not so.
#[inline(always)]
fn row<S: Space, const R: usize>(w: &Wave, c: &mut Ctx<'_>, i: &Ins) -> bool {
    if w.exec() != u32::MAX {
        return false;
    }
    let Some(first) = S::in_a_row(w, i, R as u32 * 4) else {
        return false;
    };
    let size = R * 4;
    c.writes(i, S::PLACE, first);
    if c.observed {
        c.observe_row(w, i, S::PLACE, Access::Store, first, size);
    }
    if !run_of_words::<S::Memory, R>(w, c, first, i.b.reg) {
        shaped::<S::Memory, R>(w, c, i, S::PLACE, &addresses_of_row(first, size), true, i.b.reg);
    }
    true
}

/// Stores `R` registers per lane.
pub(crate) fn words<S: Space, const R: usize>(w: &Wave, c: &mut Ctx<'_>, i: &Ins, at: &Addresses, src: u8) {
    shaped::<S::Memory, R>(w, c, i, S::PLACE, at, false, src);
}

by_host! {
    /// The same, also for a row that has been observed as such: one body for all spaces of a memory.
    fn shaped[M: Memory, const R: usize][M, R](
        w: &Wave,
        c: &mut Ctx<'_>,
        i: &Ins,
        place: Place,
        at: &Addresses,
        is_row: bool,
        src: u8,
    ) = shaped_any
}

#[inline(always)]
fn shaped_any<M: Memory, const R: usize, const FAST: bool>(
    w: &Wave,
    c: &mut Ctx<'_>,
    i: &Ins,
    place: Place,
    at: &Addresses,
    is_row: bool,
    src: u8,
) {
    let exec = w.exec();
    if exec == 0 {
        return;
    }
    c.writes(i, place, at[exec.trailing_zeros() as usize & 31]);
    let size = R * 4;
    let shape = if is_row {
        Shape::Contiguous
    } else {
        shape(at, exec, size as u64)
    };
    if c.observed && !is_row {
        let request = Request {
            place,
            access: Access::Store,
            size: size as u32,
            exec,
            at,
            shape,
            data: Data::Words(src),
        };
        c.observe(w, i, &request);
    }
    if FAST && shape == Shape::Contiguous && contiguous::<M, R>(w, c, at, src) {
        return;
    }
    lane_by_lane(w, c, i, place, at, R, src);
}

/// Stores `R` registers of all active lanes, whose addresses lie one behind the other; false, and nothing is stored, where some byte may
/// not be written.
#[inline(always)]
fn contiguous<M: Memory, const R: usize>(w: &Wave, c: &mut Ctx<'_>, at: &Addresses, src: u8) -> bool {
    let exec = w.exec();
    if exec == u32::MAX {
        return run_of_words::<M, R>(w, c, at[0], src);
    }
    let first = exec.trailing_zeros() as usize;
    let count = exec.count_ones() as usize;
    let Some(bytes) = M::range_mut(c, at[first & 31], count * R * 4) else {
        return false;
    };
    let words = bytes.as_chunks_mut::<4>().0;
    for n in 0..count {
        for r in 0..R {
            words[n * R + r] = w.v[(src as usize + r) & 255].0[(first + n) & 31].to_le_bytes();
        }
    }
    true
}

/// Stores some registers of each active lane by itself. One body: scattered stores have nothing to gain from wide vectors.
#[inline(never)]
fn lane_by_lane(w: &Wave, c: &mut Ctx<'_>, i: &Ins, place: Place, at: &Addresses, registers: usize, src: u8) {
    let exec = w.exec();
    for l in (0..32).filter(|l| exec >> l & 1 != 0) {
        let words: [[u8; 4]; 4] = std::array::from_fn(|r| w.v[(src as usize + r) & 255].0[l].to_le_bytes());
        let bytes = &words.as_flattened()[..registers * 4];
        lane::write(c, w, i, LaneAccess::new(place, Access::Store, l, at[l]), bytes);
    }
}

/// Stores whole registers; `FAST`: looks for rows first.
pub(crate) struct Words<S, const R: usize, const FAST: bool>(PhantomData<S>);

impl<S: Space, const R: usize, const FAST: bool> Handler for Words<S, R, FAST> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        if FAST && row::<S, R>(w, c, i) {
            return;
        }
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        words::<S, R>(w, c, i, &at, i.b.reg);
    }
}

/// Stores less than a register: `N` bytes of it.
pub(crate) struct Small<S, const N: usize>(PhantomData<S>);

impl<S: Space, const N: usize> Handler for Small<S, N> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        bytes::<S::Memory, N>(w, c, i, S::PLACE, &at);
    }
}

by_host! {
    /// Stores `N` bytes of a register: one body for all spaces of a memory.
    fn bytes[M: Memory, const N: usize][M, N](
        w: &Wave,
        c: &mut Ctx<'_>,
        i: &Ins,
        place: Place,
        at: &Addresses,
    ) = bytes_any
}

#[inline(always)]
fn bytes_any<M: Memory, const N: usize, const FAST: bool>(
    w: &Wave,
    c: &mut Ctx<'_>,
    i: &Ins,
    place: Place,
    at: &Addresses,
) {
    let shift = u32::from(i.b.shift);
    let exec = w.exec();
    if exec == 0 {
        return;
    }
    c.writes(i, place, at[exec.trailing_zeros() as usize & 31]);
    let shape = shape(at, exec, N as u64);
    if c.observed {
        let request = Request {
            place,
            access: Access::Store,
            size: N as u32,
            exec,
            at,
            shape,
            data: Data::Bytes(i.b.reg, shift),
        };
        c.observe(w, i, &request);
    }
    let value = &w.v[i.b.reg as usize].0;
    if FAST && shape == Shape::Contiguous {
        let first = exec.trailing_zeros() as usize;
        let count = exec.count_ones() as usize;
        if let Some(bytes) = M::range_mut(c, at[first & 31], count * N) {
            for (n, out) in bytes.as_chunks_mut::<N>().0.iter_mut().enumerate() {
                out.copy_from_slice(&(value[(first + n) & 31] >> shift).to_le_bytes()[..N]);
            }
            return;
        }
    }
    bytes_by_lane(w, c, i, place, at, N);
}

/// Stores the low bytes of a register, shifted right, of each active lane by itself.
#[inline(never)]
fn bytes_by_lane(w: &Wave, c: &mut Ctx<'_>, i: &Ins, place: Place, at: &Addresses, count: usize) {
    let exec = w.exec();
    let value = &w.v[i.b.reg as usize].0;
    for l in (0..32).filter(|l| exec >> l & 1 != 0) {
        let bytes = (value[l] >> i.b.shift).to_le_bytes();
        lane::write(
            c,
            w,
            i,
            LaneAccess::new(place, Access::Store, l, at[l]),
            &bytes[..count],
        );
    }
}

/// The stores of a space.
pub(crate) struct Of<S>(PhantomData<S>);

impl<S: Space> BySize for Of<S> {
    fn words<const R: usize>() -> Run {
        isa::lanes::<Words<S, R, true>, Words<S, R, false>>()
    }

    fn small<const N: usize>() -> Run {
        vector::<Small<S, N>>()
    }
}
