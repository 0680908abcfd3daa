//! LDS instructions.

use crate::exec::code::isa::{Handler, plain, vector};
use crate::exec::memory::lane::{self, LaneAccess};
use crate::exec::memory::space::{Global, Lds, Space};
use crate::exec::memory::{atomic, load, store};
use crate::exec::simd::masks::spread;
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::Src;
use crate::exec::state::request::{Addresses, Place};
use crate::exec::state::wave::{EXEC, M0, Wave};
use crate::exec::vector::wide;
use crate::fault::{Access, POISON};
use rocmforge_isa::{Arch, Op};
use std::mem::MaybeUninit;

/// The second addresses of a `2addr` instruction: `Ins::target` bytes behind the first, with wrap-around.
#[inline(always)]
fn second(i: &Ins, first: &Addresses) -> Addresses {
    let mut at = [0; 32];
    for l in 0..32 {
        at[l] = u64::from((first[l] as u32).wrapping_add(i.target));
    }
    at
}

struct Load2<const R: usize>;

impl<const R: usize> Handler for Load2<R> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut at = [0; 32];
        Lds::addresses(w, i, &mut at);
        load::words::<Lds, R>(w, c, i, &at, i.dst);
        load::words::<Lds, R>(w, c, i, &second(i, &at), i.dst.wrapping_add(R as u8));
    }
}

struct Store2<const R: usize>;

impl<const R: usize> Handler for Store2<R> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut at = [0; 32];
        Lds::addresses(w, i, &mut at);
        store::words::<Lds, R>(w, c, i, &at, i.b.reg);
        store::words::<Lds, R>(w, c, i, &second(i, &at), i.c.reg);
    }
}

/// Each lane gets what another one has, `from` modulo 32, or 0 where that one is not active.
#[inline(always)]
fn exchange(w: &mut Wave, c: &mut Ctx<'_>, data: &Src, from: &[u32; 32], dst: u8) {
    if w.exec() != u32::MAX {
        c.shuffled(w.exec().into(), from);
    }
    let on = spread(w.s[EXEC]);
    let mut buffer = MaybeUninit::uninit();
    let data = w.lanes(data, &mut buffer);
    let mut active = [0; 32];
    for l in 0..32 {
        active[l] = data[l] & on[l];
    }
    let mut out = [0; 32];
    for l in 0..32 {
        out[l] = active[from[l] as usize & 31];
    }
    w.put(dst, &out);
}

/// Each lane reads the lane its address names.
struct Bpermute;

impl Handler for Bpermute {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut buffer = MaybeUninit::uninit();
        let select = w.lanes(&i.a, &mut buffer);
        let mut from = [0; 32];
        for l in 0..32 {
            from[l] = select[l].wrapping_add(i.imm as u32) >> 2;
        }
        exchange(w, c, &i.b, &from, i.dst);
    }
}

/// Each lane writes to the lane its address names; the last one wins, lanes nobody writes get 0.
struct Permute;

impl Handler for Permute {
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let exec = w.s[EXEC];
        let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let (select, data) = (*w.lanes(&i.a, &mut a), *w.lanes(&i.b, &mut b));
        let mut out = [0; 32];
        for l in (0..32).filter(|l| exec >> l & 1 != 0) {
            out[(select[l].wrapping_add(i.imm as u32) >> 2) as usize & 31] = data[l];
        }
        w.put(i.dst, &out);
    }
}

struct Swizzle;

impl Handler for Swizzle {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        exchange(w, c, &i.a, &swizzled(i.imm as u32), i.dst);
    }
}

/// The lane from which each lane gets its value, by the offset field of a swizzle.
#[inline(always)]
fn swizzled(offset: u32) -> [u32; 32] {
    let mut from = [0; 32];
    let mask = offset & 31;
    match offset {
        // Butterflies of a Fourier transform.
        0xE000.. => {
            for l in 0..32u32 {
                from[l as usize] = ((l.reverse_bits() >> 27) >> mask.count_ones()) | (l & mask);
            }
        }
        // Rotation of the lanes that the mask leaves free.
        0xC000.. => {
            let n = offset >> 5 & 31;
            let n = if offset >> 10 & 1 != 0 { n.wrapping_neg() } else { n };
            for l in 0..32u32 {
                from[l as usize] = (l & mask) | (l.wrapping_add(n) & !mask & 31);
            }
        }
        // Any order within each four lanes.
        0x8000.. => {
            for l in 0..32u32 {
                from[l as usize] = (l & !3) | (offset >> (2 * (l & 3)) & 3);
            }
        }
        _ => {
            let (or, xor) = (offset >> 5 & 31, offset >> 10 & 31);
            for l in 0..32u32 {
                from[l as usize] = ((l & mask) | or) ^ xor;
            }
        }
    }
    from
}

/// Adds a number to a counter, or takes it away, as a lane; the old value.
fn count<const UP: bool>(w: &Wave, c: &mut Ctx<'_>, i: &Ins, lane: u32, at: u64, n: u32) -> u32 {
    atomic::observe(w, c, i, Place::Lds, 1 << lane, &[at; 32], 4);
    atomic::check_alignment(w, c, i, lane, at, 4);
    let access = LaneAccess::new(Place::Lds, Access::Atomic, lane as usize, at);
    let Some(old) = atomic::read(w, c, i, access, 4) else {
        return POISON;
    };
    let old = old as u32;
    let new = if UP { old.wrapping_add(n) } else { old.wrapping_sub(n) };
    lane::write(c, w, i, access, &new.to_le_bytes());
    old
}

/// Exchanges `R` registers at each of two addresses.
struct Exchange2<const R: u8>;

impl<const R: u8> Handler for Exchange2<R> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut first = [0; 32];
        Lds::addresses(w, i, &mut first);
        let second = second(i, &first);
        let exec = w.exec();
        let size = usize::from(R) * 4;
        atomic::observe(w, c, i, Place::Lds, exec, &first, size);
        atomic::observe(w, c, i, Place::Lds, exec, &second, size);
        for l in (0..32).filter(|l| exec >> l & 1 != 0) {
            let data = [i.b.reg, i.c.reg].map(|reg| atomic::get(w, reg, R, l));
            let access = [first[l], second[l]].map(|at| LaneAccess::new(Place::Lds, Access::Atomic, l, at));
            let dst = [i.dst, i.dst.wrapping_add(R)];
            let mut old = [None; 2];
            for n in 0..2 {
                atomic::check_alignment(w, c, i, l as u32, access[n].at, size);
                c.loading = Some(dst[n]);
                old[n] = atomic::read(w, c, i, access[n], size);
            }
            c.loading = None;
            for n in 0..2 {
                if old[n].is_some() {
                    lane::write(c, w, i, access[n], &data[n].to_le_bytes()[..size]);
                }
                atomic::put(w, dst[n], R, l, old[n].unwrap_or(atomic::POISONED));
            }
        }
    }
}

/// Writes each of two words whose data has the sign bit, without it.
struct ConditionalExchange;

impl Handler for ConditionalExchange {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut first = [0; 32];
        Lds::addresses(w, i, &mut first);
        // Both words are aligned, whatever the address says.
        let first = first.map(|at| at & 0xFFF8);
        let exec = w.exec();
        atomic::observe(w, c, i, Place::Lds, exec, &first, 8);
        for l in (0..32).filter(|l| exec >> l & 1 != 0) {
            for n in 0..2u8 {
                let access = LaneAccess::new(Place::Lds, Access::Atomic, l, first[l] + 4 * u64::from(n));
                let data = atomic::get(w, i.b.reg.wrapping_add(n), 1, l);
                let old = atomic::read(w, c, i, access, 4);
                if old.is_some() && data >> 31 != 0 {
                    let new = data & 0x7FFF_FFFF;
                    lane::write(c, w, i, access, &new.to_le_bytes()[..4]);
                }
                atomic::put(w, i.dst.wrapping_add(n), 1, l, old.unwrap_or(atomic::POISONED));
            }
        }
    }
}

/// Words at an address that all lanes share, four bytes further for each lane.
fn by_lane(base: u64) -> Addresses {
    std::array::from_fn(|l| base.wrapping_add(4 * l as u64))
}

fn shared_base(w: &Wave, i: &Ins) -> u64 {
    u64::from((w.s[M0] & 0xFFFF).wrapping_add(i.imm as u32))
}

struct LoadByLane;

impl Handler for LoadByLane {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let at = by_lane(shared_base(w, i));
        load::words::<Lds, 1>(w, c, i, &at, i.dst);
    }
}

struct StoreByLane;

impl Handler for StoreByLane {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let at = by_lane(shared_base(w, i));
        store::words::<Lds, 1>(w, c, i, &at, i.b.reg);
    }
}

fn global_base(w: &Wave, i: &Ins) -> u64 {
    w.scalar64(&i.c).wrapping_add_signed(i.imm.into())
}

/// `global_load_addtid_b32`.
pub(crate) struct GlobalLoadByLane;

impl Handler for GlobalLoadByLane {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let at = by_lane(global_base(w, i));
        load::words::<Global, 1>(w, c, i, &at, i.dst);
    }
}

/// `global_store_addtid_b32`.
pub(crate) struct GlobalStoreByLane;

impl Handler for GlobalStoreByLane {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let at = by_lane(global_base(w, i));
        store::words::<Global, 1>(w, c, i, &at, i.b.reg);
    }
}

/// The handler of a DS instruction that is no load, store or atomic of one address.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    Some(match op {
        Op::DsLoad2addrB32 | Op::DsLoad2addrStride64B32 => vector::<Load2<1>>(),
        Op::DsLoad2addrB64 | Op::DsLoad2addrStride64B64 => vector::<Load2<2>>(),
        Op::DsStore2addrB32 | Op::DsStore2addrStride64B32 => vector::<Store2<1>>(),
        Op::DsStore2addrB64 | Op::DsStore2addrStride64B64 => vector::<Store2<2>>(),
        Op::DsAppend => plain::<Count<true>>(),
        Op::DsConsume => plain::<Count<false>>(),
        Op::DsStorexchg2addrRtnB32 | Op::DsStorexchg2addrStride64RtnB32 => plain::<Exchange2<1>>(),
        Op::DsStorexchg2addrRtnB64 | Op::DsStorexchg2addrStride64RtnB64 => plain::<Exchange2<2>>(),
        Op::DsCondxchg32RtnB64 => plain::<ConditionalExchange>(),
        Op::DsLoadAddtidB32 => plain::<LoadByLane>(),
        Op::DsStoreAddtidB32 => plain::<StoreByLane>(),
        Op::DsBpermuteB32 => vector::<Bpermute>(),
        Op::DsPermuteB32 => plain::<Permute>(),
        Op::DsSwizzleB32 => vector::<Swizzle>(),
        _ => return None,
    })
}

/// [`Bpermute`] and [`Permute`] of gfx1201 over the 64 lanes of a wave: on gfx1100 each half of a wave exchanges within itself.
struct PermuteWide<const BACK: bool>;

impl<const BACK: bool> Handler for PermuteWide<BACK> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let exec = w.exec64();
        let upper = |w: &Wave, reg: u8| w.high.as_ref().map_or([0; 32], |high| high.v[reg as usize].0);
        let lanes = |w: &Wave, reg: u8| [w.v[reg as usize].0, upper(w, reg)].concat();
        let (select, data) = (lanes(w, i.a.reg), lanes(w, i.b.reg));
        let others: [u32; 64] = std::array::from_fn(|l| select[l].wrapping_add(i.imm as u32) >> 2 & 63);
        if BACK && exec != u64::MAX {
            c.shuffled(exec, &others);
        }
        let mut out = [[0; 32]; 2];
        for (l, other) in others.into_iter().enumerate() {
            let other = other as usize;
            let (from, to) = if BACK { (other, l) } else { (l, other) };
            if exec >> from & 1 != 0 {
                out[to / 32][to % 32] = data[from];
            }
        }
        wide::put(w, i.dst, &out[0], &out[1]);
    }
}

/// Adds the number of active lanes to a counter, or takes it away; all get the old value. `m0` holds the address.
struct Count<const UP: bool>;

impl<const UP: bool> Handler for Count<UP> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let exec = w.exec64();
        if exec == 0 {
            return;
        }
        // The upper lanes' `m0` is a copy that may be old.
        let (lane, at) = (exec.trailing_zeros(), shared_base(w, i));
        let half = match &w.high {
            Some(high) if lane >= 32 => high,
            _ => &*w,
        };
        let all = [count::<UP>(half, c, i, lane % 32, at, exec.count_ones()); 32];
        wide::put(w, i.dst, &all, &all);
    }
}

/// The handler of an instruction that the 64 lanes of a wave execute together; `None` for all others, which each half executes by
/// itself.
pub(crate) fn lookup_wide(op: Op, arch: Arch) -> Option<Run> {
    Some(match op {
        Op::DsAppend => plain::<Count<true>>(),
        Op::DsConsume => plain::<Count<false>>(),
        Op::DsBpermuteB32 if arch == Arch::Gfx1201 => plain::<PermuteWide<true>>(),
        Op::DsPermuteB32 if arch == Arch::Gfx1201 => plain::<PermuteWide<false>>(),
        _ => return None,
    })
}
