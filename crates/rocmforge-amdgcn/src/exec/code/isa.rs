//! Builds of the handlers: for the host's baseline and, on x86-64, for AVX2 with FMA.
//!
//! Handlers are `#[inline(always)]` trait functions; the two wrappers below give them a body compiled with or without the
//! wider instruction set. Which one a lowered instruction points to is decided once, when a program is loaded.
//!
//! Vector arithmetic, which is most of the code here, is not compiled twice: processors of x86-64 without AVX2 are rare
//! by now and get a small body that takes one lane after the other (see [`lanes`]). Twice the whole took the compiler
//! minutes. Operations that compilers seldom make have only the small body, on every host.

use crate::exec::simd::fast;
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::wave::Wave;

/// What an instruction does to a wave.
pub(crate) trait Handler {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins);
}

fn base<H: Handler>(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
    H::run(w, c, i);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
fn wide<H: Handler>(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
    H::run(w, c, i);
}

/// The build of a handler whose loops over lanes gain from wide vectors.
pub(crate) fn vector<H: Handler>() -> Run {
    #[cfg(target_arch = "x86_64")]
    if fast() {
        return wide::<H>;
    }
    base::<H>
}

/// The fast one of two handlers of the same, or the small one where it would run without wide vectors.
pub(crate) fn lanes<Fast: Handler, Small: Handler>() -> Run {
    if !fast() {
        return base::<Small>;
    }
    #[cfg(target_arch = "x86_64")]
    return wide::<Fast>;
    #[cfg(not(target_arch = "x86_64"))]
    base::<Fast>
}

/// Runs what [`lanes`] gives, as a function of its own.
#[inline(always)]
pub(crate) fn lanes_now<Fast: Handler, Small: Handler>(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
    if !fast() {
        return base::<Small>(w, c, i);
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: `fast` has found that the host has what the function needs.
    return unsafe { wide::<Fast>(w, c, i) };
    #[cfg(not(target_arch = "x86_64"))]
    base::<Fast>(w, c, i)
}

/// The build of a handler that has no such loop.
pub(crate) fn plain<H: Handler>() -> Run {
    base::<H>
}
