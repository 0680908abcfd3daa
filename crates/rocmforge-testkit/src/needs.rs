//! Needs of a test: the device properties it requires, and the devices where it is known to fail.

use crate::lease::GpuLease;
use std::fmt;

/// What a test's kernels are compiled to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// Waves of 32 lanes (RDNA).
    Wave32,
    /// Wave matrix instructions (RDNA3 and later).
    Wmma,
    /// Matrix instructions of CDNA.
    Mfma,
}

impl Feature {
    /// Whether a processor (`gfx1100`) has it.
    pub fn is_in(self, arch: &str) -> bool {
        // Major version: two digits from gfx10 on, one before.
        let rdna = ["gfx10", "gfx11", "gfx12"].iter().any(|start| arch.starts_with(start));
        match self {
            Self::Wave32 => rdna,
            Self::Wmma => arch.starts_with("gfx11") || arch.starts_with("gfx12"),
            Self::Mfma => ["gfx908", "gfx90a", "gfx94", "gfx95"]
                .iter()
                .any(|start| arch.starts_with(start)),
        }
    }
}

/// A set of devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// All.
    Any,
    /// The simulated ones.
    Simulated,
    /// The real ones.
    Real,
    /// Those whose processor's name begins so: `gfx11`, `gfx1201`.
    Arch(&'static str),
}

impl On {
    pub(crate) fn matches(self, lease: &GpuLease) -> bool {
        match self {
            Self::Any => true,
            Self::Simulated => lease.sim().is_some(),
            Self::Real => lease.sim().is_none(),
            Self::Arch(start) => lease.backend().device().arch.starts_with(start),
        }
    }
}

impl fmt::Display for On {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any device"),
            Self::Simulated => f.write_str("a simulated device"),
            Self::Real => f.write_str("a real device"),
            Self::Arch(start) => write!(f, "{start}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_by_processor() {
        for (arch, wave32, wmma, mfma) in [
            ("gfx906", false, false, false),
            ("gfx90a", false, false, true),
            ("gfx942", false, false, true),
            ("gfx1030", true, false, false),
            ("gfx1100", true, true, false),
            ("gfx1201", true, true, false),
        ] {
            let has = [Feature::Wave32, Feature::Wmma, Feature::Mfma].map(|feature| feature.is_in(arch));
            assert_eq!(has, [wave32, wmma, mfma], "{arch}");
        }
    }
}
