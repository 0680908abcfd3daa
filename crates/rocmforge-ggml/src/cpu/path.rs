//! Instruction sets of the CPU's kernels, found once per program.

use std::sync::OnceLock;

/// The instructions that a kernel may use. A value other than [`Path::Plain`] is made only where the CPU has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// What every CPU of the target has.
    Plain,
    /// AVX2, FMA and F16C.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
    /// AVX-512 F, BW, DQ and VL beside those.
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512),
}

/// Proof that the CPU has AVX2, FMA and F16C.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx2(());

/// Proof that the CPU has AVX-512 F, BW, DQ and VL, and AVX2, FMA and F16C.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx512(());

impl Path {
    /// The widest path of this CPU.
    pub(super) fn best() -> Self {
        static BEST: OnceLock<Path> = OnceLock::new();
        *BEST.get_or_init(|| Self::available().last().copied().unwrap_or(Self::Plain))
    }

    /// All paths of this CPU, the narrowest first.
    pub(super) fn available() -> Vec<Self> {
        #[allow(unused_mut)] // other targets have one path
        let mut paths = vec![Self::Plain];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c") {
            paths.push(Self::Avx2(Avx2(())));
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                paths.push(Self::Avx512(Avx512(())));
            }
        }
        paths
    }
}

/// Proof that the CPU has AVX-512 F and VNNI.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Vnni(());

#[cfg(target_arch = "x86_64")]
impl Vnni {
    /// The proof, where the CPU has them.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")).then_some(Self(()))
    }
}
