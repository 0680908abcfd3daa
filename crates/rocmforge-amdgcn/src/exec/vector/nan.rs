//! NaN operands: an operation of several gives the first of them, made quiet.
//!
//! Which one a host's own addition or multiplication gives depends on its instruction set and on the order in which the compiler hands
//! the operands over. So where a result is NaN, it is looked up here once more; most waves never get that far.

use super::elem::{Elem, H, Ret};
use crate::exec::number::mode::Mode;
use crate::exec::state::ctx::Ins;
use crate::exec::state::wave::Wave;
use crate::exec::vector::elem::LaneOp;

/// A result of which the first NaN operand decides.
#[derive(Clone, Copy)]
pub(crate) struct First<T>(pub(crate) T);

/// A float, or floats, among the results of 32 lanes.
pub(crate) trait Floats: Ret {
    /// Floats in a lane.
    const PARTS: usize = 1;
    /// Whether some lane's result is NaN: cheap, as it is asked after every operation.
    fn any_nan(out: &Self::Out) -> bool;
    fn is_nan(out: &Self::Out, lane: usize, part: usize) -> bool;
    fn copied(out: &Self::Out) -> Self::Out;
    /// Puts a NaN there, as [`Elem::nan`] gives it.
    fn put(out: &mut Self::Out, lane: usize, part: usize, nan: u64);
}

impl Floats for f32 {
    #[inline(always)]
    fn any_nan(out: &Self::Out) -> bool {
        // Two at a time: hosts have one comparison for whether either is NaN.
        let float = |l: usize| f32::from_bits(out[l]);
        (0..16).fold(false, |any, l| any | (float(l).is_nan() | float(l + 16).is_nan()))
    }
    fn is_nan(out: &Self::Out, lane: usize, _: usize) -> bool {
        f32::from_bits(out[lane]).is_nan()
    }
    #[inline(always)]
    fn copied(out: &Self::Out) -> Self::Out {
        std::array::from_fn(|l| out[l])
    }
    fn put(out: &mut Self::Out, lane: usize, _: usize, nan: u64) {
        out[lane] = nan as u32;
    }
}

impl Floats for f64 {
    #[inline(always)]
    fn any_nan(out: &Self::Out) -> bool {
        let float = |l: usize| f64::from_bits(out[l]);
        (0..16).fold(false, |any, l| any | (float(l).is_nan() | float(l + 16).is_nan()))
    }
    fn is_nan(out: &Self::Out, lane: usize, _: usize) -> bool {
        f64::from_bits(out[lane]).is_nan()
    }
    #[inline(always)]
    fn copied(out: &Self::Out) -> Self::Out {
        std::array::from_fn(|l| out[l])
    }
    fn put(out: &mut Self::Out, lane: usize, _: usize, nan: u64) {
        out[lane] = nan;
    }
}

impl Floats for H {
    #[inline(always)]
    fn any_nan(out: &Self::Out) -> bool {
        (0..16).fold(false, |any, l| any | (out[l].is_nan() | out[l + 16].is_nan()))
    }
    fn is_nan(out: &Self::Out, lane: usize, _: usize) -> bool {
        out[lane].is_nan()
    }
    #[inline(always)]
    fn copied(out: &Self::Out) -> Self::Out {
        std::array::from_fn(|l| out[l])
    }
    fn put(out: &mut Self::Out, lane: usize, _: usize, nan: u64) {
        out[lane] = f32::from_bits(nan as u32);
    }
}

impl Floats for [H; 2] {
    const PARTS: usize = 2;
    #[inline(always)]
    fn any_nan(out: &Self::Out) -> bool {
        out.iter().fold(false, |any, x| any | x[0].is_nan() | x[1].is_nan())
    }
    fn is_nan(out: &Self::Out, lane: usize, part: usize) -> bool {
        out[lane][part].is_nan()
    }
    #[inline(always)]
    fn copied(out: &Self::Out) -> Self::Out {
        std::array::from_fn(|l| out[l])
    }
    fn put(out: &mut Self::Out, lane: usize, part: usize, nan: u64) {
        out[lane][part] = f32::from_bits(nan as u32);
    }
}

impl<T: Floats> Ret for First<T> {
    const MODS: bool = T::MODS;
    const SHORT: bool = T::SHORT;
    type Out = T::Out;
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        T::set(out, lane, value.0);
    }
    #[inline(always)]
    fn chosen_by_host(out: &Self::Out) -> bool {
        T::any_nan(out)
    }
    #[inline(always)]
    fn replaced<O: LaneOp>(out: &Self::Out, a: &[O::A; 32], b: &[O::B; 32], c: &[O::C; 32]) -> Option<Self::Out> {
        // A copy is handed on, so that the results themselves need not be in memory where nothing is NaN.
        T::any_nan(out).then(|| first::<T, O>(T::copied(out), a, b, c))
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        T::store::<M>(w, i, out);
    }
    #[inline(always)]
    fn output(self, i: &Ins, mode: Mode) -> Self {
        Self(self.0.output(i, mode))
    }
}

/// Puts the first NaN operand, if there is one, in the place of each result that is NaN.
#[cold]
#[inline(never)]
fn first<T: Floats, O: LaneOp>(mut out: T::Out, a: &[O::A; 32], b: &[O::B; 32], c: &[O::C; 32]) -> T::Out {
    for l in 0..32 {
        for part in 0..T::PARTS {
            let operand = a[l].nan(part).or_else(|| b[l].nan(part)).or_else(|| c[l].nan(part));
            if let Some(nan) = operand.filter(|_| T::is_nan(&out, l, part)) {
                T::put(&mut out, l, part, nan);
            }
        }
    }
    out
}
