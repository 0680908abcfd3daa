//! Atomics: read, compute, write, lane after lane.

use crate::exec::clock;
use crate::exec::code::isa::{Handler, plain};
use crate::exec::gfx12::vector::{num_max32, num_max64, num_min32, num_min64};
use crate::exec::memory::lane::{self, LaneAccess};
use crate::exec::memory::space::Space;
use crate::exec::number::num::{bf16_to_f32, f32_to_bf16, f32_to_half, half_to_f32, max32, max64, min32, min64};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::request::{Addresses, Data, Place, Request, Shape};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind};
use rocmforge_isa::{Atomic as Kind, Op};
use std::marker::PhantomData;

/// What an atomic works on: 32 or 64 bits.
pub(crate) trait Word: Copy {
    const REGS: usize;
    fn read(bytes: &[u8]) -> Self;
    fn write(self, bytes: &mut [u8]);
    fn get(w: &Wave, reg: u8, lane: usize) -> Self;
    fn put(self, w: &mut Wave, reg: u8, lane: usize);
    fn poison() -> Self;
}

impl Word for u32 {
    const REGS: usize = 1;
    fn read(bytes: &[u8]) -> Self {
        bytes.iter().rev().fold(0, |x, &b| x << 8 | Self::from(b))
    }
    fn write(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_le_bytes());
    }
    fn get(w: &Wave, reg: u8, lane: usize) -> Self {
        w.v[reg as usize].0[lane]
    }
    fn put(self, w: &mut Wave, reg: u8, lane: usize) {
        w.v[reg as usize].0[lane] = self;
    }
    fn poison() -> Self {
        crate::fault::POISON
    }
}

impl Word for u64 {
    const REGS: usize = 2;
    fn read(bytes: &[u8]) -> Self {
        bytes.iter().rev().fold(0, |x, &b| x << 8 | Self::from(b))
    }
    fn write(self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.to_le_bytes());
    }
    fn get(w: &Wave, reg: u8, lane: usize) -> Self {
        Self::from(u32::get(w, reg, lane)) | Self::from(u32::get(w, reg.wrapping_add(1), lane)) << 32
    }
    fn put(self, w: &mut Wave, reg: u8, lane: usize) {
        (self as u32).put(w, reg, lane);
        ((self >> 32) as u32).put(w, reg.wrapping_add(1), lane);
    }
    fn poison() -> Self {
        Self::from(crate::fault::POISON) << 32 | Self::from(crate::fault::POISON)
    }
}

/// New value from old value, operand, and second operand.
pub(crate) trait AtomicOp {
    type T: Word;
    fn eval(old: Self::T, data: Self::T, second: Self::T) -> Self::T;
}

/// `Ins::sdst` of an atomic: the old value is wanted; the second operand is in `c` rather than behind the first.
pub(crate) const RETURN: u8 = 1;
pub(crate) const SECOND: u8 = 2;
/// `Ins::sdst` of an atomic: it takes locks, as an exchange and a compare-and-swap do.
pub(crate) const EXCHANGE: u8 = 4;
/// `Ins::sdst` of an atomic: the new value does not depend on the old one.
pub(crate) const SWAP: u8 = 8;

/// `Ins::sdst` of an atomic, as far as the operation decides it.
pub(crate) fn marks(op: Op) -> u8 {
    match op.facts().atomic {
        Kind::Swap => EXCHANGE | SWAP,
        Kind::CompareAndSwap => EXCHANGE,
        Kind::Compute | Kind::None => 0,
    }
}

/// Tells who watches that the lanes of `exec` are about to do an atomic.
#[inline(always)]
pub(crate) fn observe(w: &Wave, c: &mut Ctx<'_>, i: &Ins, place: Place, exec: u32, at: &Addresses, size: usize) {
    if c.observed && exec != 0 {
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

struct Atomic<S, O>(PhantomData<(S, O)>);

impl<S: Space, O: AtomicOp> Handler for Atomic<S, O> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        atomic::<S, O::T>(w, c, i, O::eval);
    }
}

/// One body for all operations on a space and a size: hundreds of their own would take the compiler long.
#[inline(never)]
fn atomic<S: Space, T: Word>(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins, eval: fn(old: T, data: T, second: T) -> T) {
    clock::keep_up(w, c);
    let mut at = [0; 32];
    S::addresses(w, i, &mut at);
    let inside = S::inside(w, c, i);
    let exec = w.exec() & inside;
    let size = T::REGS * 4;
    observe(w, c, i, S::PLACE, exec, &at, size);
    let second = if i.sdst & SECOND != 0 {
        i.c.reg
    } else {
        i.b.reg.wrapping_add(T::REGS as u8)
    };
    c.loading = (i.sdst & SWAP != 0).then_some(i.dst);
    for l in (0..32).filter(|l| exec >> l & 1 != 0) {
        let (data, second) = (T::get(w, i.b.reg, l), T::get(w, second, l));
        let access = LaneAccess::new(S::PLACE, Access::Atomic, l, at[l]);
        check_alignment(w, c, i, access.lane, at[l], size);
        let old = lane::read(c, w, i, access, size).map(T::read);
        if let Some(old) = old {
            let mut bytes = [0; 8];
            eval(old, data, second).write(&mut bytes[..size]);
            lane::write(c, w, i, access, &bytes[..size]);
        }
        if i.sdst & RETURN != 0 {
            old.unwrap_or_else(T::poison).put(w, i.dst, l);
        }
    }
    c.loading = None;
    if i.sdst & RETURN != 0 && inside != u32::MAX {
        let outside = w.exec() & !inside;
        for l in (0..32).filter(|l| outside >> l & 1 != 0) {
            T::read(&[]).put(w, i.dst, l);
        }
    }
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
    ($($($op:ident)|+ $ty:ident, ($old:ident, $data:ident, $second:ident) $body:expr;)*) => {
        /// The handler of an atomic.
        pub(crate) fn lookup<S: Space>(op: Op) -> Option<Run> {
            match op {
                $($(Op::$op)|+ => {
                    struct Table;
                    impl AtomicOp for Table {
                        type T = $ty;
                        fn eval($old: $ty, $data: $ty, $second: $ty) -> $ty { $body }
                    }
                    Some(plain::<Atomic<S, Table>>())
                })*
                _ => None,
            }
        }

        /// What an atomic makes of its operands.
        #[cfg(test)]
        fn result(op: Op, old: u64, data: u64, second: u64) -> Option<u64> {
            Some(match op {
                $($(Op::$op)|+ => {
                    let ($old, $data, $second) = (old as $ty, data as $ty, second as $ty);
                    u64::from($body)
                })*
                _ => return None,
            })
        }
    };
}

atomics! {
    GlobalAtomicAddU32 | FlatAtomicAddU32 | DsAddU32 | DsAddRtnU32 u32, (old, d, _s) old.wrapping_add(d);
    GlobalAtomicSubU32 | FlatAtomicSubU32 | DsSubU32 | DsSubRtnU32 u32, (old, d, _s) old.wrapping_sub(d);
    DsRsubU32 | DsRsubRtnU32 u32, (old, d, _s) d.wrapping_sub(old);
    GlobalAtomicCsubU32 u32, (old, d, _s) old.saturating_sub(d);
    GlobalAtomicMinI32 | FlatAtomicMinI32 | DsMinI32 | DsMinRtnI32 u32, (old, d, _s) (old as i32).min(d as i32) as u32;
    GlobalAtomicMaxI32 | FlatAtomicMaxI32 | DsMaxI32 | DsMaxRtnI32 u32, (old, d, _s) (old as i32).max(d as i32) as u32;
    GlobalAtomicMinU32 | FlatAtomicMinU32 | DsMinU32 | DsMinRtnU32 u32, (old, d, _s) old.min(d);
    GlobalAtomicMaxU32 | FlatAtomicMaxU32 | DsMaxU32 | DsMaxRtnU32 u32, (old, d, _s) old.max(d);
    GlobalAtomicAndB32 | FlatAtomicAndB32 | DsAndB32 | DsAndRtnB32 u32, (old, d, _s) old & d;
    GlobalAtomicOrB32 | FlatAtomicOrB32 | DsOrB32 | DsOrRtnB32 u32, (old, d, _s) old | d;
    GlobalAtomicXorB32 | FlatAtomicXorB32 | DsXorB32 | DsXorRtnB32 u32, (old, d, _s) old ^ d;
    GlobalAtomicIncU32 | FlatAtomicIncU32 | DsIncU32 | DsIncRtnU32 u32, (old, d, _s) if old >= d { 0 } else { old + 1 };
    GlobalAtomicDecU32 | FlatAtomicDecU32 | DsDecU32 | DsDecRtnU32 u32,
        (old, d, _s) if old == 0 || old > d { d } else { old - 1 };
    GlobalAtomicSwapB32 | FlatAtomicSwapB32 | DsStorexchgRtnB32 u32, (_old, d, _s) d;
    GlobalAtomicCmpswapB32 | FlatAtomicCmpswapB32 | DsCmpstoreB32 | DsCmpstoreRtnB32 u32,
        (old, d, s) if old == s { d } else { old };
    GlobalAtomicCmpswapF32 | FlatAtomicCmpswapF32 | DsCmpstoreF32 | DsCmpstoreRtnF32 u32,
        (old, d, s) if f32::from_bits(old) == f32::from_bits(s) { d } else { old };
    GlobalAtomicAddF32 | FlatAtomicAddF32 | DsAddF32 | DsAddRtnF32 u32, (old, d, _s) float(|a, b| a + b, old, d);
    GlobalAtomicMinNumF32 | FlatAtomicMinNumF32 | DsMinNumF32 | DsMinNumRtnF32 u32,
        (old, d, _s) float(num_min32, d, old);
    GlobalAtomicMaxNumF32 | FlatAtomicMaxNumF32 | DsMaxNumF32 | DsMaxNumRtnF32 u32,
        (old, d, _s) float(num_max32, d, old);
    GlobalAtomicCondSubU32 | FlatAtomicCondSubU32 | DsCondSubU32 | DsCondSubRtnU32 u32,
        (old, d, _s) if old >= d { old - d } else { old };
    GlobalAtomicPkAddF16 | FlatAtomicPkAddF16 | DsPkAddF16 | DsPkAddRtnF16 u32,
        (old, d, _s) pairs(old, d, half_to_f32, f32_to_half);
    GlobalAtomicPkAddBf16 | FlatAtomicPkAddBf16 | DsPkAddBf16 | DsPkAddRtnBf16 u32,
        (old, d, _s) pairs(old, d, bf16_to_f32, f32_to_bf16);
    GlobalAtomicMinF32 | FlatAtomicMinF32 | DsMinF32 | DsMinRtnF32 u32, (old, d, _s) float(min32, old, d);
    GlobalAtomicMaxF32 | FlatAtomicMaxF32 | DsMaxF32 | DsMaxRtnF32 u32, (old, d, _s) float(max32, old, d);
    DsMskorB32 | DsMskorRtnB32 u32, (old, d, s) old & !d | s;
    DsWrapRtnB32 u32, (old, d, s) if old >= d { old - d } else { old.wrapping_add(s) };
    GlobalAtomicAddU64 | FlatAtomicAddU64 | DsAddU64 | DsAddRtnU64 u64, (old, d, _s) old.wrapping_add(d);
    GlobalAtomicSubU64 | FlatAtomicSubU64 | DsSubU64 | DsSubRtnU64 u64, (old, d, _s) old.wrapping_sub(d);
    DsRsubU64 | DsRsubRtnU64 u64, (old, d, _s) d.wrapping_sub(old);
    GlobalAtomicMinI64 | FlatAtomicMinI64 | DsMinI64 | DsMinRtnI64 u64, (old, d, _s) (old as i64).min(d as i64) as u64;
    GlobalAtomicMaxI64 | FlatAtomicMaxI64 | DsMaxI64 | DsMaxRtnI64 u64, (old, d, _s) (old as i64).max(d as i64) as u64;
    GlobalAtomicMinU64 | FlatAtomicMinU64 | DsMinU64 | DsMinRtnU64 u64, (old, d, _s) old.min(d);
    GlobalAtomicMaxU64 | FlatAtomicMaxU64 | DsMaxU64 | DsMaxRtnU64 u64, (old, d, _s) old.max(d);
    GlobalAtomicAndB64 | FlatAtomicAndB64 | DsAndB64 | DsAndRtnB64 u64, (old, d, _s) old & d;
    GlobalAtomicOrB64 | FlatAtomicOrB64 | DsOrB64 | DsOrRtnB64 u64, (old, d, _s) old | d;
    GlobalAtomicXorB64 | FlatAtomicXorB64 | DsXorB64 | DsXorRtnB64 u64, (old, d, _s) old ^ d;
    GlobalAtomicIncU64 | FlatAtomicIncU64 | DsIncU64 | DsIncRtnU64 u64, (old, d, _s) if old >= d { 0 } else { old + 1 };
    GlobalAtomicDecU64 | FlatAtomicDecU64 | DsDecU64 | DsDecRtnU64 u64,
        (old, d, _s) if old == 0 || old > d { d } else { old - 1 };
    GlobalAtomicSwapB64 | FlatAtomicSwapB64 | DsStorexchgRtnB64 u64, (_old, d, _s) d;
    GlobalAtomicCmpswapB64 | FlatAtomicCmpswapB64 | DsCmpstoreB64 | DsCmpstoreRtnB64 u64,
        (old, d, s) if old == s { d } else { old };
    DsCmpstoreF64 | DsCmpstoreRtnF64 u64, (old, d, s) if f64::from_bits(old) == f64::from_bits(s) { d } else { old };
    DsMinNumF64 | DsMinNumRtnF64 u64, (old, d, _s) double(num_min64, d, old);
    DsMaxNumF64 | DsMaxNumRtnF64 u64, (old, d, _s) double(num_max64, d, old);
    DsMinF64 | DsMinRtnF64 u64, (old, d, _s) double(min64, old, d);
    DsMaxF64 | DsMaxRtnF64 u64, (old, d, _s) double(max64, old, d);
    DsMskorB64 | DsMskorRtnB64 u64, (old, d, s) old & !d | s;
}

#[cfg(test)]
mod tests {
    use super::{Kind, result};
    use rocmforge_isa::Op;

    /// Locks and compare-and-swap loops are recognised by the fact, so it must be what the handler does.
    #[test]
    fn facts_of_atomics_say_what_the_handlers_do() {
        const DATA: u64 = 7;
        const EXPECTED: u64 = 5;
        let mut handled = 0;
        for &op in Op::ALL {
            let of = |old: u64| result(op, old, DATA, EXPECTED);
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
        assert!(handled > 150, "{handled} atomics with a handler");
    }
}
