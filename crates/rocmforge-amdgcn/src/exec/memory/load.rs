//! Loads.

use crate::exec::clock;
use crate::exec::code::isa::{self, Handler, vector};
use crate::exec::memory::bytes::Memory;
use crate::exec::memory::form::{BySize, COHERENT, LoadedSmall};
use crate::exec::memory::lane::{self, LaneAccess};
use crate::exec::memory::space::Space;
use crate::exec::simd::by_host;
use crate::exec::simd::masks::spread;
use crate::exec::simd::rows::{prefetch_behind, to_registers};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::request::{Addresses, Data, Place, Request, Shape, addresses_of_row, filled, shape};
use crate::exec::state::wave::{Lanes, Wave};
use crate::fault::{Access, POISON};
use std::marker::PhantomData;

#[inline(always)]
fn word(bytes: &[u8], n: usize) -> u32 {
    let mut four = [0; 4];
    four.copy_from_slice(&bytes[n * 4..n * 4 + 4]);
    u32::from_le_bytes(four)
}

/// Loads `R` registers for each of all lanes from one run of bytes; false where some byte may not be read.
#[inline(always)]
fn run_of_words<M: Memory, const R: usize>(w: &mut Wave, c: &Ctx<'_>, first: u64, dst: u8) -> bool {
    // Arrays rather than slices: no bounds checks, so the lanes become shuffles.
    let Some(lanes) = M::range(c, first, 32 * R * 4)
        .and_then(|bytes| bytes.as_chunks::<4>().0.as_chunks::<R>().0.first_chunk::<32>())
    else {
        return false;
    };
    if M::PREFETCH {
        prefetch_behind(lanes);
    }
    if let Some(registers) = w.v[dst as usize..].first_chunk_mut::<R>() {
        to_registers(lanes, registers);
    } else {
        let mut registers = [Lanes([0; 32]); R];
        to_registers(lanes, &mut registers);
        for (r, register) in registers.iter().enumerate() {
            w.v[(dst as usize + r) & 255] = *register;
        }
    }
    true
}

/// Loads `R` registers for each of all lanes, whose addresses lie one behind the other; false, and nothing is loaded, where that is not so.
#[inline(always)]
fn row<S: Space, const R: usize>(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) -> bool {
    if w.exec() != u32::MAX || i.half & COHERENT != 0 {
        return false;
    }
    let Some(first) = S::in_a_row(w, i, R as u32 * 4) else {
        return false;
    };
    let size = R * 4;
    if c.observed {
        c.observe_row(w, i, S::PLACE, Access::Load, first, size);
    }
    // In a share of memory a second time, once it may read what it has claimed.
    for tried in [false, true] {
        if run_of_words::<S::Memory, R>(w, c, first, i.dst) {
            return true;
        }
        if tried || !S::Memory::share_range(c, first, 32 * size) {
            break;
        }
    }
    shaped::<S::Memory, R>(w, c, i, S::PLACE, &addresses_of_row(first, size), true, i.dst);
    true
}

/// Loads `R` registers per lane.
pub(crate) fn words<S: Space, const R: usize>(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins, at: &Addresses, dst: u8) {
    shaped::<S::Memory, R>(w, c, i, S::PLACE, at, false, dst);
}

by_host! {
    /// The same, also for a row that has been observed as such: one body for all spaces of a memory.
    fn shaped[M: Memory, const R: usize][M, R](
        w: &mut Wave,
        c: &mut Ctx<'_>,
        i: &Ins,
        place: Place,
        at: &Addresses,
        is_row: bool,
        dst: u8,
    ) = shaped_any
}

#[inline(always)]
fn shaped_any<M: Memory, const R: usize, const FAST: bool>(
    w: &mut Wave,
    c: &mut Ctx<'_>,
    i: &Ins,
    place: Place,
    at: &Addresses,
    is_row: bool,
    dst: u8,
) {
    let exec = w.exec();
    if exec == 0 {
        return;
    }
    if i.half & COHERENT != 0 {
        clock::keep_up(w, c);
    }
    let size = R * 4;
    let shape = if is_row {
        Shape::Contiguous
    } else {
        shape(at, exec, size as u64)
    };
    if c.observed && !is_row {
        let request = Request {
            place,
            access: Access::Load,
            size: size as u32,
            exec,
            at,
            shape,
            data: Data::Into(dst),
        };
        c.observe(w, i, &request);
    }
    if FAST {
        // In a share of memory a second time, once it may read what it has claimed.
        for tried in [false, true] {
            if at_once::<M, R>(w, c, at, exec, shape, dst) {
                return;
            }
            if tried || !M::share(c, at, exec, size) {
                break;
            }
        }
    }
    lane_by_lane(w, c, i, place, at, R, dst);
}

/// Loads `R` registers for all active lanes; false, and nothing is loaded, where some byte may not be read.
#[inline(always)]
fn at_once<M: Memory, const R: usize>(
    w: &mut Wave,
    c: &Ctx<'_>,
    at: &Addresses,
    exec: u32,
    shape: Shape,
    dst: u8,
) -> bool {
    let reg = |r: usize| (dst as usize + r) & 255;
    let size = R * 4;
    match shape {
        Shape::Contiguous if exec == u32::MAX => run_of_words::<M, R>(w, c, at[0], dst),
        Shape::Contiguous => {
            let first = exec.trailing_zeros() as usize;
            let count = exec.count_ones() as usize;
            let Some(bytes) = M::range(c, at[first & 31], count * size) else {
                return false;
            };
            for n in 0..count {
                for r in 0..R {
                    w.v[reg(r)].0[(first + n) & 31] = word(bytes, n * R + r);
                }
            }
            true
        }
        Shape::Uniform => {
            let Some(bytes) = M::range(c, at[exec.trailing_zeros() as usize & 31], size) else {
                return false;
            };
            for r in 0..R {
                let value = [word(bytes, r); 32];
                w.put(reg(r) as u8, &value);
            }
            true
        }
        Shape::Scattered => {
            let Some(gathered) = M::gather(c, &filled(at, exec), size) else {
                return false;
            };
            let mut lanes = [[[0; 4]; R]; 32];
            for l in 0..32 {
                for (r, word) in lanes[l].iter_mut().enumerate() {
                    *word = *gathered.word(l, r);
                }
            }
            let mut loaded = [Lanes([0; 32]); R];
            to_registers(&lanes, &mut loaded);
            for r in 0..R {
                w.put(reg(r) as u8, &loaded[r].0);
            }
            true
        }
    }
}

/// Loads some registers for each active lane by itself.
#[inline(never)]
fn lane_by_lane(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins, place: Place, at: &Addresses, registers: usize, dst: u8) {
    let exec = w.exec();
    c.loading = Some(dst);
    for l in (0..32).filter(|l| exec >> l & 1 != 0) {
        let access = LaneAccess::new(place, Access::Load, l, at[l]);
        let bytes = lane::read(c, w, i, access, registers * 4);
        let mut words = [POISON; 4];
        if let Some(bytes) = bytes {
            for (word, bytes) in words.iter_mut().zip(bytes.as_chunks().0) {
                *word = u32::from_le_bytes(*bytes);
            }
        }
        for (r, word) in words.iter().take(registers).enumerate() {
            w.v[(dst as usize + r) & 255].0[l] = *word;
        }
    }
    c.loading = None;
}

/// Loads whole registers; `FAST`: looks for rows first.
pub(crate) struct Words<S, const R: usize, const FAST: bool>(PhantomData<S>);

impl<S: Space, const R: usize, const FAST: bool> Handler for Words<S, R, FAST> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        if FAST && row::<S, R>(w, c, i) {
            return;
        }
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        words::<S, R>(w, c, i, &at, i.dst);
    }
}

/// Loads less than a register, `SIZE` bytes.
pub(crate) struct Small<S, const SIZE: usize>(PhantomData<S>);

impl<S: Space, const SIZE: usize> Handler for Small<S, SIZE> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let exec = w.exec();
        if exec == 0 {
            return;
        }
        let raw = fetch::<S, SIZE>(w, c, i);
        put_small(w, i, exec, &raw);
    }
}

/// Puts what lanes have loaded, less than a register, into the part of the destination that the instruction writes.
#[inline(always)]
pub(crate) fn put_small(w: &mut Wave, i: &Ins, lanes: u32, raw: &[u32; 32]) {
    let small = LoadedSmall::of(&i.b);
    let on = spread(lanes);
    let out = &mut w.v[i.dst as usize].0;
    for l in 0..32 {
        out[l] ^= (out[l] ^ small.extended(raw[l])) & small.written & on[l];
    }
}

by_host! {
    /// What the active lanes load, zero-extended: one body for all that is made of it.
    fn fetch[S: Space, const SIZE: usize][S, SIZE](w: &Wave, c: &mut Ctx<'_>, i: &Ins) -> [u32; 32] = fetch_any
}

#[inline(always)]
fn fetch_any<S: Space, const SIZE: usize, const FAST: bool>(w: &Wave, c: &mut Ctx<'_>, i: &Ins) -> [u32; 32] {
    let mut at = [0; 32];
    S::addresses(w, i, &mut at);
    fetch_at::<S::Memory, SIZE>(w, c, i, S::PLACE, &at)
}

by_host! {
    /// The same from these addresses: one body for all spaces of a memory.
    fn fetch_at[M: Memory, const SIZE: usize][M, SIZE](
        w: &Wave,
        c: &mut Ctx<'_>,
        i: &Ins,
        place: Place,
        at: &Addresses,
    ) -> [u32; 32] = fetch_at_any
}

#[inline(always)]
fn fetch_at_any<M: Memory, const SIZE: usize, const FAST: bool>(
    w: &Wave,
    c: &mut Ctx<'_>,
    i: &Ins,
    place: Place,
    at: &Addresses,
) -> [u32; 32] {
    let exec = w.exec();
    let shape = shape(at, exec, SIZE as u64);
    if c.observed {
        let request = Request {
            place,
            access: Access::Load,
            size: SIZE as u32,
            exec,
            at,
            shape,
            data: Data::Into(i.dst),
        };
        c.observe(w, i, &request);
    }
    let mut raw = [0; 32];
    if FAST {
        // In a share of memory a second time, once it may read what it has claimed.
        for tried in [false, true] {
            if fetch_at_once::<M, SIZE>(c, at, exec, shape, &mut raw) {
                return raw;
            }
            if tried || !M::share(c, at, exec, SIZE) {
                break;
            }
        }
    }
    fetch_by_lane(w, c, i, place, at, SIZE, &mut raw);
    raw
}

/// Little-endian bytes as a number.
#[inline(always)]
fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// What all active lanes load; false where some byte may not be read.
#[inline(always)]
fn fetch_at_once<M: Memory, const SIZE: usize>(
    c: &Ctx<'_>,
    at: &Addresses,
    exec: u32,
    shape: Shape,
    raw: &mut [u32; 32],
) -> bool {
    if let Shape::Contiguous = shape {
        let first = exec.trailing_zeros() as usize;
        let count = exec.count_ones() as usize;
        if let Some(bytes) = M::range(c, at[first & 31], count * SIZE) {
            for (raw, bytes) in raw[first & 31..].iter_mut().zip(bytes.as_chunks::<SIZE>().0) {
                *raw = number(bytes);
            }
            return true;
        }
    }
    let Some(gathered) = M::gather(c, &filled(at, exec), SIZE) else {
        return false;
    };
    for l in 0..32 {
        raw[l] = number(gathered.lane::<SIZE>(l));
    }
    true
}

/// What each active lane loads by itself.
#[inline(never)]
fn fetch_by_lane(w: &Wave, c: &mut Ctx<'_>, i: &Ins, place: Place, at: &Addresses, size: usize, raw: &mut [u32; 32]) {
    let exec = w.exec();
    c.loading = Some(i.dst);
    for l in (0..32).filter(|l| exec >> l & 1 != 0) {
        let bytes = lane::read(c, w, i, LaneAccess::new(place, Access::Load, l, at[l]), size);
        raw[l] = bytes.map_or(POISON & (u32::MAX >> (32 - 8 * size)), number);
    }
    c.loading = None;
}

/// The loads of a space.
pub(crate) struct Of<S>(PhantomData<S>);

impl<S: Space> BySize for Of<S> {
    fn words<const R: usize>() -> Run {
        isa::lanes::<Words<S, R, true>, Words<S, R, false>>()
    }

    fn small<const N: usize>() -> Run {
        vector::<Small<S, N>>()
    }
}
