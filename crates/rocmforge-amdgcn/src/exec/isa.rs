//! One source, two builds of every handler: for the host's baseline and, on x86-64, for AVX2 with FMA.
//!
//! Handlers are `#[inline(always)]` trait functions; the two wrappers below give them a body compiled with or without the
//! wider instruction set. Which one a lowered instruction points to is decided once, when a program is loaded.

use super::code::Ins;
use super::ctx::Ctx;
use super::wave::Wave;

/// Code of one lowered instruction.
///
/// # Safety
/// Call it only on the host that chose it: it may use instructions found by run-time detection.
pub(crate) type Run = unsafe fn(&mut Wave, &mut Ctx<'_>, &Ins);

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

/// Whether this host runs the wide builds.
#[cfg(target_arch = "x86_64")]
pub(crate) fn has_wide() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("fma") && has!("f16c") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

/// Whether this host runs the wide builds.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn has_wide() -> bool {
    false
}

/// The build of a handler whose loops over lanes gain from wide vectors.
pub(crate) fn vector<H: Handler>() -> Run {
    #[cfg(target_arch = "x86_64")]
    if has_wide() {
        return wide::<H>;
    }
    base::<H>
}

/// The build of a handler that has no such loop.
pub(crate) fn plain<H: Handler>() -> Run {
    base::<H>
}
