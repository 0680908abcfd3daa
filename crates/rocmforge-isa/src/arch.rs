//! The instruction sets.

use rocmforge_code_object::{ComputeUnit, Target};
use std::fmt;
use std::str::FromStr;

/// An instruction set that programs are decoded and executed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arch {
    /// RDNA3: Radeon RX 7900.
    Gfx1100,
    /// RDNA4: Radeon RX 9070.
    Gfx1201,
}

impl Arch {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Gfx1100, Self::Gfx1201];

    /// The compiler's name of the target: `gfx1100`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gfx1100 => "gfx1100",
            Self::Gfx1201 => "gfx1201",
        }
    }

    /// The one that executes code for a target: its own, or the member of its family that is here.
    pub fn of(target: &Target) -> Option<Self> {
        match target.arch.as_str() {
            "gfx11-generic" => Some(Self::Gfx1100),
            "gfx12-generic" => Some(Self::Gfx1201),
            name => name.parse().ok(),
        }
    }

    /// Registers, wave slots and LDS of its workgroup processor.
    pub fn compute_unit(self) -> &'static ComputeUnit {
        match self {
            Self::Gfx1100 | Self::Gfx1201 => &ComputeUnit::RDNA_1536,
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

/// A name that is none of [`Arch::ALL`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not executed here; gfx1100 and gfx1201 are")]
pub struct UnknownArch(String);

impl FromStr for Arch {
    type Err = UnknownArch;

    fn from_str(name: &str) -> Result<Self, UnknownArch> {
        Self::ALL
            .into_iter()
            .find(|arch| arch.name() == name)
            .ok_or_else(|| UnknownArch(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_targets_belong_together() {
        for arch in Arch::ALL {
            assert_eq!(arch.name().parse(), Ok(arch));
            assert_eq!(ComputeUnit::of(arch.name()), Some(arch.compute_unit()));
        }
        assert!("gfx942".parse::<Arch>().is_err());
    }
}
