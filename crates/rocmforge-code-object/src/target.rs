//! Target: the processor that a code object was compiled for.

use crate::ParseError;

/// Whether code depends on a processor feature that can be switched on and off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FeatureSetting {
    /// Runs with either setting, or the processor has no such feature.
    #[default]
    Any,
    /// Only where it is on (`xnack+`).
    On,
    /// Only where it is off (`xnack-`).
    Off,
}

/// A target identifier such as `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`, taken apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Target {
    /// The whole identifier, as the file has it.
    pub triple: String,
    /// The processor: `gfx1100`, or a generic one such as `gfx11-generic`.
    pub arch: String,
    /// The ECC of the card's SRAM.
    pub sramecc: FeatureSetting,
    /// Retry of page faults.
    pub xnack: FeatureSetting,
    /// The processor's number in the low byte of the ELF flags (0x41 is gfx1100).
    pub mach: u8,
    /// Version of a generic target (code object version 6), else 0.
    pub generic_version: u8,
}

/// The ELF numbers of the processors this project ships kernels for; another processor's number is not checked.
const MACHS: &[(&str, u8)] = &[
    ("gfx1030", 0x36),
    ("gfx90a", 0x3f),
    ("gfx1100", 0x41),
    ("gfx1150", 0x43),
    ("gfx1101", 0x46),
    ("gfx1102", 0x47),
    ("gfx1200", 0x48),
    ("gfx1151", 0x4a),
    ("gfx942", 0x4c),
    ("gfx1201", 0x4e),
];

/// The processors that the code of a generic target runs on. LLVM's AMDGPU usage guide, "Generic processor code object
/// versioning" and the table before it.
const GENERIC: &[(&str, &[&str])] = &[
    (
        "gfx9-generic",
        &["gfx900", "gfx902", "gfx904", "gfx906", "gfx909", "gfx90c"],
    ),
    ("gfx9-4-generic", &["gfx942", "gfx950"]),
    ("gfx10-1-generic", &["gfx1010", "gfx1011", "gfx1012", "gfx1013"]),
    (
        "gfx10-3-generic",
        &[
            "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036",
        ],
    ),
    (
        "gfx11-generic",
        &[
            "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
        ],
    ),
    ("gfx12-generic", &["gfx1200", "gfx1201"]),
];

impl Target {
    /// Whether the code runs on a processor, by its name without features. PTX runs on each later one too, but that of an
    /// [`arch_specific`](Self::arch_specific) target on its own capability alone; which processors a generic target of
    /// AMD's has that is newer than this table, only the driver knows.
    pub fn runs_on(&self, processor: &str) -> bool {
        match (capability(&self.arch), capability(processor)) {
            (Some((code, true)), Some((device, _))) => return device == code,
            (Some((code, false)), Some((device, _))) => return device >= code,
            _ => {}
        }
        match GENERIC.iter().find(|(generic, _)| *generic == self.arch) {
            Some((_, processors)) => processors.contains(&processor),
            None => self.arch == processor || self.generic_version != 0,
        }
    }

    /// Whether it is PTX for one compute capability alone: `sm_90a`, whose instructions no other capability has.
    pub fn arch_specific(&self) -> bool {
        matches!(capability(&self.arch), Some((_, true)))
    }

    /// Takes an identifier apart; `flags` are the ELF header's.
    pub(crate) fn parse(triple: &str, flags: u32) -> Result<Self, ParseError> {
        let bad = || ParseError::Target(triple.chars().take(128).collect());
        let processor = processor(triple).ok_or_else(bad)?;
        let mut parts = processor.split(':');
        let arch = parts.next().unwrap_or_default();
        let known = |c: char| c.is_ascii_alphanumeric() || c == '-';
        if !arch.starts_with("gfx") || arch.len() > 32 || !arch.chars().all(known) {
            return Err(bad());
        }
        let [mach, _, _, generic_version] = flags.to_le_bytes();
        let mut target = Target {
            triple: triple.to_owned(),
            arch: arch.to_owned(),
            mach,
            generic_version,
            ..Self::default()
        };
        for feature in parts {
            match feature {
                "sramecc+" => target.sramecc = FeatureSetting::On,
                "sramecc-" => target.sramecc = FeatureSetting::Off,
                "xnack+" => target.xnack = FeatureSetting::On,
                "xnack-" => target.xnack = FeatureSetting::Off,
                _ => return Err(bad()),
            }
        }
        match MACHS.iter().find(|(name, _)| *name == arch) {
            Some((_, number)) if *number != mach => Err(ParseError::NotAmdGpu(format!(
                "its metadata says {arch} ({number:#x}), its ELF flags say processor {mach:#x}"
            ))),
            _ => Ok(target),
        }
    }
}

/// What comes after the four parts of a triple: `amdgcn`, from LLVM 23 on also `amdgpu` with a version such as `11.00`; `amd`; `amdhsa`; and an
/// environment, which is empty, or `unknown` where the triple was written in full.
fn processor(triple: &str) -> Option<&str> {
    let mut parts = triple.splitn(5, '-');
    let family = parts.next()?;
    let version = family.strip_prefix("amdgpu");
    let known = version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'));
    let rest = [parts.next()?, parts.next()?, parts.next()?];
    let system = matches!(rest, ["amd", "amdhsa", "" | "unknown"]);
    ((family == "amdgcn" || known) && system).then(|| parts.next())?
}

/// The compute capability of `sm_<number>` or `sm_<number>a`, and whether it has the `a`. A card is named by the number.
fn capability(arch: &str) -> Option<(u32, bool)> {
    let number = arch.strip_prefix("sm_")?;
    let (digits, specific) = match number.strip_suffix('a') {
        Some(digits) => (digits, true),
        None => (number, false),
    };
    Some((digits.parse().ok()?, specific))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_written_with_and_without_an_environment() {
        for triple in [
            "amdgcn-amd-amdhsa--gfx1100",
            "amdgcn-amd-amdhsa-unknown-gfx1100",
            // Triton 3.9, with LLVM 23.
            "amdgpu11.00-amd-amdhsa-unknown-gfx1100",
        ] {
            let target = Target::parse(triple, 0x41).unwrap();
            assert_eq!((target.triple.as_str(), target.arch.as_str()), (triple, "gfx1100"));
        }
        for triple in [
            "amdgcn-amd-amdhsa-gfx1100",
            "amdgcn-amd-amdhsa-linux-gfx1100",
            "gfx1100",
        ] {
            assert!(Target::parse(triple, 0x41).is_err(), "{triple}");
        }
    }

    #[test]
    fn code_runs_on_its_processor_and_ptx_on_later_ones() {
        let of = |arch: &str, generic_version| Target {
            arch: arch.to_owned(),
            generic_version,
            ..Target::default()
        };
        for (code, processor, runs) in [
            ("gfx1100", "gfx1100", true),
            ("gfx1100", "gfx1101", false),
            ("gfx1100", "sm_90", false),
            ("sm_75", "sm_75", true),
            ("sm_75", "sm_120", true),
            ("sm_90", "sm_89", false),
            ("sm_90a", "sm_90", true),
            ("sm_90a", "sm_90a", true),
            ("sm_90a", "sm_89", false),
            ("sm_90a", "sm_100", false),
            ("sm_90a", "sm_120", false),
            // A family of capabilities, whose members their names do not tell.
            ("sm_100f", "sm_103", false),
            ("sm_75", "gfx1100", false),
        ] {
            assert_eq!(of(code, 0).runs_on(processor), runs, "{code} on {processor}");
        }
        for (code, processor, runs) in [
            ("gfx11-generic", "gfx1103", true),
            ("gfx11-generic", "gfx1100", true),
            ("gfx11-generic", "gfx1201", false),
            ("gfx12-generic", "gfx1201", true),
            ("gfx9-4-generic", "gfx90a", false),
            ("gfx99-generic", "gfx9900", true),
        ] {
            assert_eq!(of(code, 1).runs_on(processor), runs, "{code} on {processor}");
        }
        for (arch, specific) in [("sm_90a", true), ("sm_90", false), ("gfx90a", false), ("sm_a", false)] {
            assert_eq!(of(arch, 0).arch_specific(), specific, "{arch}");
        }
    }
}
