//! Vector extensions of the host: which builds of the handlers it runs, and what those do with intrinsics.
//!
//! Most loops over lanes are left to the compiler. [`masks`] and [`rows`] have the few that it makes several times as long as they need
//! to be.

pub(crate) mod masks;
pub(crate) mod rows;

use std::sync::atomic::{AtomicU8, Ordering};

/// What [`fast`] says, once it has been asked; 0 before.
static ANSWER: AtomicU8 = AtomicU8::new(0);
const NO: u8 = 1;
const YES: u8 = 2;

/// Whether this host runs the fast builds: on x86-64 it needs AVX2, unless `ROCMFORGE_SIMD=off` asks for what others run.
#[inline(always)]
pub(crate) fn fast() -> bool {
    // Handlers ask: one comparison with memory. Relaxed, because the answer is all that is passed on.
    match ANSWER.load(Ordering::Relaxed) {
        YES => true,
        _ => find_out(),
    }
}

#[cold]
#[inline(never)]
fn find_out() -> bool {
    if ANSWER.load(Ordering::Relaxed) == NO {
        return false;
    }
    let fast = has_wide() && std::env::var_os("ROCMFORGE_SIMD").is_none_or(|value| value != "off");
    ANSWER.store(if fast { YES } else { NO }, Ordering::Relaxed);
    fast
}

/// A function that runs another, in the build for this host and as a function of its own: for bodies that several handlers share. Behind its
/// name stand its generic parameters, and once more their names alone. The body has one more, a `bool`: false only in the build for x86-64
/// without AVX2. There the body leaves out what it does only to be quicker, because that build is rarely run and costs as much to compile.
macro_rules! by_host {
    (
        $(#[$attribute:meta])*
        fn $name:ident [$($generics:tt)*] [$($names:tt)*] ($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? = $body:ident
    ) => {
        $(#[$attribute])*
        fn $name<$($generics)*>($($arg: $ty),*) $(-> $ret)? {
            #[cfg(target_arch = "x86_64")]
            #[inline(never)]
            #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
            fn wide<$($generics)*>($($arg: $ty),*) $(-> $ret)? {
                $body::<$($names)*, true>($($arg),*)
            }
            #[inline(never)]
            fn base<$($generics)*>($($arg: $ty),*) $(-> $ret)? {
                $body::<$($names)*, { cfg!(not(target_arch = "x86_64")) }>($($arg),*)
            }
            #[cfg(target_arch = "x86_64")]
            if $crate::exec::simd::fast() {
                // SAFETY: `fast` has found that the host has what the function needs.
                return unsafe { wide::<$($names)*>($($arg),*) };
            }
            base::<$($names)*>($($arg),*)
        }
    };
}
pub(crate) use by_host;

#[cfg(target_arch = "x86_64")]
fn has_wide() -> bool {
    use std::arch::is_x86_feature_detected as has;
    has!("avx2") && has!("fma") && has!("f16c") && has!("bmi1") && has!("bmi2") && has!("lzcnt") && has!("popcnt")
}

#[cfg(not(target_arch = "x86_64"))]
fn has_wide() -> bool {
    true
}
