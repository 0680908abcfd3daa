//! Atomics: read, compute, write, lane after lane.

use crate::exec::clock;
use crate::exec::code::isa::{Handler, plain};
use crate::exec::gfx12::vector::{num_max32, num_max64, num_min32, num_min64};
use crate::exec::memory::form::{RETURN, SECOND, SWAP};
use crate::exec::memory::lane::{self, LaneAccess};
use crate::exec::memory::space::Space;
use crate::exec::number::num::{bf16_to_f32, f32_to_bf16, f32_to_half, half_to_f32, max32, max64, min32, min64};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::request::{Addresses, Data, Place, Request, Shape};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind, POISON};
use rocmforge_isa::Op;
use std::marker::PhantomData;

/// A number of one or two registers of a lane.
pub(crate) fn get(w: &Wave, reg: u8, registers: u8, lane: usize) -> u64 {
    let word = |n: u8| u64::from(w.v[reg.wrapping_add(n) as usize].0[lane]) << (32 * n);
    (0..registers).fold(0, |all, n| all | word(n))
}

/// Puts a number into one or two registers of a lane.
pub(crate) fn put(w: &mut Wave, reg: u8, registers: u8, lane: usize, value: u64) {
    for n in 0..registers {
        w.v[reg.wrapping_add(n) as usize].0[lane] = (value >> (32 * n)) as u32;
    }
}

/// Reads what an atomic works on; `None` after noting a fault.
pub(crate) fn read(w: &Wave, c: &mut Ctx<'_>, i: &Ins, access: LaneAccess, size: usize) -> Option<u64> {
    let bytes = lane::read(c, w, i, access, size)?;
    Some(bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
}

/// What an atomic gives back after a fault.
pub(crate) const POISONED: u64 = POISON as u64 | (POISON as u64) << 32;

/// Tells who watches that the lanes of `exec` are about to do an atomic.
#[inline(always)]
pub(crate) fn observe(w: &Wave, c: &mut Ctx<'_>, i: &Ins, place: Place, exec: u32, at: &Addresses, size: usize) {
    if exec == 0 {
        return;
    }
    c.writes(i, place, at[exec.trailing_zeros() as usize & 31]);
    if c.observed {
        let request = Request {
            place,
            access: Access::Atomic,
            size: size as u32,
            exec,
            at,
            shape: Shape::Scattered,
            data: Data::None,
        };
        c.observe(w, i, &request);
    }
}

/// Reports an atomic that is not aligned to its size. AMD's ISA documents ask for that of atomics alone: loads and stores need no
/// alignment as Linux sets the cards up (`SH_MEM_CONFIG.alignment_mode`).
#[inline(always)]
pub(crate) fn check_alignment(w: &Wave, c: &mut Ctx<'_>, i: &Ins, lane: u32, at: u64, size: usize) {
    if at & (size as u64 - 1) != 0 {
        c.fault(w, i, FaultKind::Misaligned, Access::Atomic, lane, at, size as u32);
    }
}

struct Atomic<S>(PhantomData<S>);

impl<S: Space> Handler for Atomic<S> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let op = Op::ALL[i.b.lo as usize];
        let Some(registers) = registers(op) else { return };
        clock::keep_up(w, c);
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        let inside = S::inside(w, c, i);
        let exec = w.exec() & inside;
        let size = usize::from(registers) * 4;
        observe(w, c, i, S::PLACE, exec, &at, size);
        let second = if i.sdst & SECOND != 0 {
            i.c.reg
        } else {
            i.b.reg.wrapping_add(registers)
        };
        c.loading = (i.sdst & SWAP != 0).then_some(i.dst);
        for l in (0..32).filter(|l| exec >> l & 1 != 0) {
            let data = get(w, i.b.reg, registers, l);
            let second = get(w, second, registers, l);
            let access = LaneAccess::new(S::PLACE, Access::Atomic, l, at[l]);
            check_alignment(w, c, i, access.lane, at[l], size);
            let old = read(w, c, i, access, size);
            if let Some(new) = old.and_then(|old| computed(op, old, data, second)) {
                lane::write(c, w, i, access, &new.to_le_bytes()[..size]);
            }
            if i.sdst & RETURN != 0 {
                put(w, i.dst, registers, l, old.unwrap_or(POISONED));
            }
        }
        c.loading = None;
        if i.sdst & RETURN != 0 {
            let outside = w.exec() & !inside;
            for l in (0..32).filter(|l| outside >> l & 1 != 0) {
                put(w, i.dst, registers, l, 0);
            }
        }
    }
}

/// The handler of an atomic: one for all operations of a space, as hundreds would take the compiler long.
pub(crate) fn lookup<S: Space>(op: Op) -> Option<Run> {
    registers(op).map(|_| plain::<Atomic<S>>())
}

fn float(f: impl Fn(f32, f32) -> f32, a: u32, b: u32) -> u32 {
    f(f32::from_bits(a), f32::from_bits(b)).to_bits()
}

/// Adds two values of 16 bits.
fn pairs(a: u32, b: u32, widen: impl Fn(u16) -> f32, narrow: impl Fn(f32) -> u16) -> u32 {
    let add = |shift: u32| u32::from(narrow(widen((a >> shift) as u16) + widen((b >> shift) as u16))) << shift;
    add(0) | add(16)
}

fn double(f: impl Fn(f64, f64) -> f64, a: u64, b: u64) -> u64 {
    f(f64::from_bits(a), f64::from_bits(b)).to_bits()
}

macro_rules! atomics {
    ($($($($op:ident)|+ $ty:ident,)+ ($old:ident, $data:ident, $second:ident) $body:expr;)*) => {
        /// Registers of what an atomic works on; `None` for everything else.
        pub(crate) fn registers(op: Op) -> Option<u8> {
            match op {
                $($($(Op::$op)|+ => Some(size_of::<$ty>() as u8 / 4),)+)*
                _ => None,
            }
        }

        /// What an atomic makes of the old value, its operand, and its second operand; `None` for everything else.
        fn computed(op: Op, old: u64, data: u64, second: u64) -> Option<u64> {
            Some(match op {
                $($($(Op::$op)|+ => {
                    let ($old, $data, $second) = (old as $ty, data as $ty, second as $ty);
                    u64::from($body)
                })+)*
                _ => return None,
            })
        }
    };
}

atomics! {
    GlobalAtomicAddU32 | FlatAtomicAddU32 | BufferAtomicAddU32 | DsAddU32 | DsAddRtnU32 u32,
    GlobalAtomicAddU64 | FlatAtomicAddU64 | BufferAtomicAddU64 | DsAddU64 | DsAddRtnU64 u64,
        (old, d, _s) old.wrapping_add(d);
    GlobalAtomicSubU32 | FlatAtomicSubU32 | BufferAtomicSubU32 | DsSubU32 | DsSubRtnU32 u32,
    GlobalAtomicSubU64 | FlatAtomicSubU64 | BufferAtomicSubU64 | DsSubU64 | DsSubRtnU64 u64,
        (old, d, _s) old.wrapping_sub(d);
    DsRsubU32 | DsRsubRtnU32 u32,
    DsRsubU64 | DsRsubRtnU64 u64,
        (old, d, _s) d.wrapping_sub(old);
    GlobalAtomicCsubU32 | BufferAtomicCsubU32 | GlobalAtomicSubClampU32 | FlatAtomicSubClampU32 | BufferAtomicSubClampU32 | DsSubClampU32 | DsSubClampRtnU32 u32,
        (old, d, _s) old.saturating_sub(d);
    GlobalAtomicMinI32 | FlatAtomicMinI32 | BufferAtomicMinI32 | DsMinI32 | DsMinRtnI32 u32,
        (old, d, _s) (old as i32).min(d as i32) as u32;
    GlobalAtomicMaxI32 | FlatAtomicMaxI32 | BufferAtomicMaxI32 | DsMaxI32 | DsMaxRtnI32 u32,
        (old, d, _s) (old as i32).max(d as i32) as u32;
    GlobalAtomicMinU32 | FlatAtomicMinU32 | BufferAtomicMinU32 | DsMinU32 | DsMinRtnU32 u32,
    GlobalAtomicMinU64 | FlatAtomicMinU64 | BufferAtomicMinU64 | DsMinU64 | DsMinRtnU64 u64,
        (old, d, _s) old.min(d);
    GlobalAtomicMaxU32 | FlatAtomicMaxU32 | BufferAtomicMaxU32 | DsMaxU32 | DsMaxRtnU32 u32,
    GlobalAtomicMaxU64 | FlatAtomicMaxU64 | BufferAtomicMaxU64 | DsMaxU64 | DsMaxRtnU64 u64,
        (old, d, _s) old.max(d);
    GlobalAtomicAndB32 | FlatAtomicAndB32 | BufferAtomicAndB32 | DsAndB32 | DsAndRtnB32 u32,
    GlobalAtomicAndB64 | FlatAtomicAndB64 | BufferAtomicAndB64 | DsAndB64 | DsAndRtnB64 u64,
        (old, d, _s) old & d;
    GlobalAtomicOrB32 | FlatAtomicOrB32 | BufferAtomicOrB32 | DsOrB32 | DsOrRtnB32 u32,
    GlobalAtomicOrB64 | FlatAtomicOrB64 | BufferAtomicOrB64 | DsOrB64 | DsOrRtnB64 u64,
        (old, d, _s) old | d;
    GlobalAtomicXorB32 | FlatAtomicXorB32 | BufferAtomicXorB32 | DsXorB32 | DsXorRtnB32 u32,
    GlobalAtomicXorB64 | FlatAtomicXorB64 | BufferAtomicXorB64 | DsXorB64 | DsXorRtnB64 u64,
        (old, d, _s) old ^ d;
    GlobalAtomicIncU32 | FlatAtomicIncU32 | BufferAtomicIncU32 | DsIncU32 | DsIncRtnU32 u32,
    GlobalAtomicIncU64 | FlatAtomicIncU64 | BufferAtomicIncU64 | DsIncU64 | DsIncRtnU64 u64,
        (old, d, _s) if old >= d { 0 } else { old + 1 };
    GlobalAtomicDecU32 | FlatAtomicDecU32 | BufferAtomicDecU32 | DsDecU32 | DsDecRtnU32 u32,
    GlobalAtomicDecU64 | FlatAtomicDecU64 | BufferAtomicDecU64 | DsDecU64 | DsDecRtnU64 u64,
        (old, d, _s) if old == 0 || old > d { d } else { old - 1 };
    GlobalAtomicSwapB32 | FlatAtomicSwapB32 | BufferAtomicSwapB32 | DsStorexchgRtnB32 u32,
    GlobalAtomicSwapB64 | FlatAtomicSwapB64 | BufferAtomicSwapB64 | DsStorexchgRtnB64 u64,
        (_old, d, _s) d;
    GlobalAtomicCmpswapB32 | FlatAtomicCmpswapB32 | BufferAtomicCmpswapB32 | DsCmpstoreB32 | DsCmpstoreRtnB32 u32,
    GlobalAtomicCmpswapB64 | FlatAtomicCmpswapB64 | BufferAtomicCmpswapB64 | DsCmpstoreB64 | DsCmpstoreRtnB64 u64,
        (old, d, s) if old == s { d } else { old };
    GlobalAtomicCmpswapF32 | FlatAtomicCmpswapF32 | BufferAtomicCmpswapF32 | DsCmpstoreF32 | DsCmpstoreRtnF32 u32,
        (old, d, s) if f32::from_bits(old) == f32::from_bits(s) { d } else { old };
    GlobalAtomicAddF32 | FlatAtomicAddF32 | BufferAtomicAddF32 | DsAddF32 | DsAddRtnF32 u32,
        (old, d, _s) float(|a, b| a + b, old, d);
    GlobalAtomicMinNumF32 | FlatAtomicMinNumF32 | BufferAtomicMinNumF32 | DsMinNumF32 | DsMinNumRtnF32 u32,
        (old, d, _s) float(num_min32, d, old);
    GlobalAtomicMaxNumF32 | FlatAtomicMaxNumF32 | BufferAtomicMaxNumF32 | DsMaxNumF32 | DsMaxNumRtnF32 u32,
        (old, d, _s) float(num_max32, d, old);
    GlobalAtomicCondSubU32 | FlatAtomicCondSubU32 | BufferAtomicCondSubU32 | DsCondSubU32 | DsCondSubRtnU32 u32,
        (old, d, _s) if old >= d { old - d } else { old };
    GlobalAtomicPkAddF16 | FlatAtomicPkAddF16 | BufferAtomicPkAddF16 | DsPkAddF16 | DsPkAddRtnF16 u32,
        (old, d, _s) pairs(old, d, half_to_f32, f32_to_half);
    GlobalAtomicPkAddBf16 | FlatAtomicPkAddBf16 | BufferAtomicPkAddBf16 | DsPkAddBf16 | DsPkAddRtnBf16 u32,
        (old, d, _s) pairs(old, d, bf16_to_f32, f32_to_bf16);
    GlobalAtomicMinF32 | FlatAtomicMinF32 | BufferAtomicMinF32 | DsMinF32 | DsMinRtnF32 u32,
        (old, d, _s) float(min32, old, d);
    GlobalAtomicMaxF32 | FlatAtomicMaxF32 | BufferAtomicMaxF32 | DsMaxF32 | DsMaxRtnF32 u32,
        (old, d, _s) float(max32, old, d);
    DsMskorB32 | DsMskorRtnB32 u32,
    DsMskorB64 | DsMskorRtnB64 u64,
        (old, d, s) old & !d | s;
    DsWrapRtnB32 u32,
        (old, d, s) if old >= d { old - d } else { old.wrapping_add(s) };
    GlobalAtomicMinI64 | FlatAtomicMinI64 | BufferAtomicMinI64 | DsMinI64 | DsMinRtnI64 u64,
        (old, d, _s) (old as i64).min(d as i64) as u64;
    GlobalAtomicMaxI64 | FlatAtomicMaxI64 | BufferAtomicMaxI64 | DsMaxI64 | DsMaxRtnI64 u64,
        (old, d, _s) (old as i64).max(d as i64) as u64;
    DsCmpstoreF64 | DsCmpstoreRtnF64 u64,
        (old, d, s) if f64::from_bits(old) == f64::from_bits(s) { d } else { old };
    DsMinNumF64 | DsMinNumRtnF64 u64,
        (old, d, _s) double(num_min64, d, old);
    DsMaxNumF64 | DsMaxNumRtnF64 u64,
        (old, d, _s) double(num_max64, d, old);
    DsMinF64 | DsMinRtnF64 u64,
        (old, d, _s) double(min64, old, d);
    DsMaxF64 | DsMaxRtnF64 u64,
        (old, d, _s) double(max64, old, d);
}

#[cfg(test)]
mod tests {
    use super::computed;
    use rocmforge_isa::{Atomic as Kind, Op};

    /// Locks and compare-and-swap loops are recognised by the fact, so it must be what the handler does.
    #[test]
    fn facts_of_atomics_say_what_the_handlers_do() {
        const DATA: u64 = 7;
        const EXPECTED: u64 = 5;
        let mut handled = 0;
        for &op in Op::ALL {
            let of = |old: u64| computed(op, old, DATA, EXPECTED);
            let Some(equal) = of(EXPECTED) else { continue };
            handled += 1;
            let others = [0, 1, 9, 1 << 20].map(|old| (old, of(old).expect("as before")));
            let kind = match () {
                () if equal == DATA && others.iter().all(|&(_, new)| new == DATA) => Kind::Swap,
                () if equal == DATA && others.iter().all(|&(old, new)| new == old) => Kind::CompareAndSwap,
                () => Kind::Compute,
            };
            assert_eq!(op.facts().atomic, kind, "{}", op.mnemonic());
        }
        assert!(handled > 190, "{handled} atomics with a handler");
    }
}
