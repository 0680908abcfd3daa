//! Vector extensions of the host: which builds of the handlers it runs.

use std::sync::OnceLock;

/// Whether this host runs the fast builds: on x86-64 it needs AVX2, unless `ROCMFORGE_SIMD=off` asks for what others run.
#[inline]
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
