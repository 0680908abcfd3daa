//! Builds of the handlers: for the host's baseline and, on x86-64, for AVX2 with FMA.
//!
//! Handlers are `#[inline(always)]` trait functions; the two wrappers below give them a body compiled with or without the
//! wider instruction set. Which one a lowered instruction points to is decided once, when a program is loaded.
//!
//! Vector arithmetic, which is most of the code here, is not compiled twice: processors of x86-64 without AVX2 are rare
//! by now and get a small body that takes one lane after the other (see [`lanes`]). Twice the whole took the compiler
//! minutes.

use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::wave::Wave;
use std::sync::OnceLock;

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

/// Whether this host runs the fast builds: on x86-64 it needs AVX2, unless `ROCMFORGE_SIMD=off` asks for what others run.
pub(crate) fn fast() -> bool {
    static FAST: OnceLock<bool> = OnceLock::new();
    *FAST.get_or_init(|| has_wide() && std::env::var_os("ROCMFORGE_SIMD").is_none_or(|value| value != "off"))
}

#[cfg(target_arch = "x86_64")]
fn has_wide() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("fma") && has!("f16c") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_wide() -> bool {
    true
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

/// The build of a handler that has no such loop.
pub(crate) fn plain<H: Handler>() -> Run {
    base::<H>
}
