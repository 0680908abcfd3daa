//! Compute units: registers, wave slots and LDS of each processor, and how many waves of a kernel fit.

use std::fmt;

/// What four SIMDs share and have: a workgroup processor of RDNA, a compute unit of CDNA.
///
/// The figures are LLVM's (`AMDGPUBaseInfo.cpp`, workgroup-processor mode), for waves of 32 on RDNA and of 64 on CDNA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ComputeUnit {
    /// Lanes of a wave.
    pub wave_size: u32,
    /// Waves that a SIMD holds at most.
    pub wave_slots: u32,
    /// Vector registers of a SIMD, for each lane. On CDNA accumulation registers are among them.
    pub vgprs: u32,
    /// A wave gets a multiple of so many.
    pub vgpr_granule: u32,
    /// Bytes of LDS that the workgroups on the four SIMDs share.
    pub lds: u32,
    /// Workgroups of more than one wave that the four SIMDs hold at most.
    pub barriers: u32,
}

/// SIMDs of a compute unit; waves of a workgroup go round them.
const SIMDS: u32 = 4;
/// A workgroup gets a multiple of so many bytes of LDS.
const LDS_GRANULE: u32 = 1024;

const UNITS: &[(&str, ComputeUnit)] = &[
    ("gfx1030", ComputeUnit::RDNA_1024),
    ("gfx1100", ComputeUnit::RDNA_1536),
    ("gfx1101", ComputeUnit::RDNA_1536),
    ("gfx1102", ComputeUnit::RDNA_1024),
    ("gfx1103", ComputeUnit::RDNA_1024),
    ("gfx1150", ComputeUnit::RDNA_1024),
    ("gfx1151", ComputeUnit::RDNA_1536),
    ("gfx1200", ComputeUnit::RDNA_1536),
    ("gfx1201", ComputeUnit::RDNA_1536),
    ("gfx90a", ComputeUnit::CDNA),
    ("gfx942", ComputeUnit::CDNA),
];

/// What keeps more waves from running at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Wave slots.
    Waves,
    /// Vector registers.
    Vgprs,
    /// LDS.
    Lds,
    /// Workgroups.
    Workgroups,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Waves => "waves",
            Self::Vgprs => "vgprs",
            Self::Lds => "lds",
            Self::Workgroups => "workgroups",
        })
    }
}

/// How many waves of a kernel a SIMD holds at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Occupancy {
    /// Waves a SIMD holds.
    pub waves_per_simd: u32,
    /// Workgroups a compute unit (a workgroup processor of RDNA) holds.
    pub workgroups: u32,
    /// What allows no more.
    pub limit: Limit,
    /// Vector registers the kernel gets.
    pub vgprs: u32,
    /// Bytes of LDS a workgroup gets.
    pub lds: u32,
}

impl ComputeUnit {
    /// RDNA with the large register file: gfx1100, gfx1101, gfx1151 and gfx12.
    pub const RDNA_1536: Self = Self {
        wave_size: 32,
        wave_slots: 16,
        vgprs: 1536,
        vgpr_granule: 24,
        lds: 128 << 10,
        barriers: 32,
    };
    /// RDNA with the small one: gfx1030, gfx1102, gfx1103 and gfx1150.
    pub const RDNA_1024: Self = Self {
        vgprs: 1024,
        vgpr_granule: 16,
        ..Self::RDNA_1536
    };
    /// CDNA 2 and 3: gfx90a and gfx942.
    pub const CDNA: Self = Self {
        wave_size: 64,
        wave_slots: 8,
        vgprs: 512,
        vgpr_granule: 8,
        lds: 64 << 10,
        barriers: 16,
    };

    /// Those of a processor, by its name without features. `None`: its figures are not in the table.
    pub fn of(arch: &str) -> Option<&'static Self> {
        UNITS.iter().find(|(name, _)| *name == arch).map(|(_, unit)| unit)
    }

    /// Waves that fit of a kernel with so many vector registers, in workgroups of `block` work-items with so many bytes of LDS,
    /// static and dynamic.
    pub fn occupancy(&self, vgprs: u32, lds: u32, block: u32) -> Occupancy {
        let waves = block.div_ceil(self.wave_size).max(1);
        let vgprs = vgprs.max(1).next_multiple_of(self.vgpr_granule);
        let lds = lds.saturating_add(LDS_GRANULE - 1) / LDS_GRANULE * LDS_GRANULE;
        let by_registers = (self.vgprs / vgprs).min(self.wave_slots);
        // A single wave needs no barrier.
        let by_groups = if waves == 1 { u32::MAX } else { self.barriers };
        let limits = [
            (self.wave_slots * SIMDS / waves, Limit::Waves),
            (by_groups, Limit::Workgroups),
            (by_registers * SIMDS / waves, Limit::Vgprs),
            (self.lds.checked_div(lds).unwrap_or(u32::MAX), Limit::Lds),
        ];
        let least = limits.into_iter().min_by_key(|(n, _)| *n);
        let (workgroups, limit) = least.unwrap_or((0, Limit::Waves));
        Occupancy {
            waves_per_simd: (workgroups * waves).div_ceil(SIMDS).min(self.wave_slots),
            workgroups,
            limit,
            vgprs,
            lds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most registers for each number of waves, from LLVM's tables.
    #[test]
    fn registers_allow_the_waves_that_llvm_counts() {
        for (unit, table) in [
            (
                ComputeUnit::RDNA_1536,
                &[
                    (96, 16),
                    (120, 12),
                    (144, 10),
                    (168, 9),
                    (192, 8),
                    (216, 7),
                    (240, 6),
                    (256, 5),
                ][..],
            ),
            (
                ComputeUnit::RDNA_1024,
                &[
                    (64, 16),
                    (80, 12),
                    (96, 10),
                    (112, 9),
                    (128, 8),
                    (144, 7),
                    (160, 6),
                    (192, 5),
                    (256, 4),
                ],
            ),
            (ComputeUnit::CDNA, &[(64, 8), (128, 4), (168, 3), (256, 2), (512, 1)]),
        ] {
            for &(vgprs, waves) in table {
                let of = |vgprs| unit.occupancy(vgprs, 0, unit.wave_size).waves_per_simd;
                assert_eq!(of(vgprs), waves, "{vgprs} registers of {}", unit.vgprs);
                assert!(of(vgprs + 1) < waves || vgprs >= 256, "{vgprs} + 1 of {}", unit.vgprs);
            }
        }
    }

    #[test]
    fn lds_slots_and_barriers_limit_workgroups() {
        let unit = ComputeUnit::RDNA_1536;
        let of = |vgprs, lds, block| {
            let o = unit.occupancy(vgprs, lds, block);
            (o.workgroups, o.waves_per_simd, o.limit)
        };
        assert_eq!(of(24, 0, 256), (8, 16, Limit::Waves));
        assert_eq!(of(24, 0, 32), (64, 16, Limit::Waves));
        assert_eq!(of(24, 33 << 10, 256), (3, 6, Limit::Lds));
        // One byte more takes a whole KiB.
        assert_eq!(of(24, (32 << 10) + 1, 256), (3, 6, Limit::Lds));
        assert_eq!(of(193, 0, 256), (3, 6, Limit::Vgprs));
        assert_eq!(of(24, u32::MAX, 256).0, 0);
        assert_eq!(ComputeUnit::CDNA.occupancy(32, 0, 128).workgroups, 16);
    }

    #[test]
    fn the_register_files_are_those_of_the_processors() {
        for (arch, vgprs) in [
            ("gfx1100", 1536),
            ("gfx1101", 1536),
            ("gfx1151", 1536),
            ("gfx1200", 1536),
            ("gfx1201", 1536),
            ("gfx1030", 1024),
            ("gfx1102", 1024),
            ("gfx1103", 1024),
            ("gfx1150", 1024),
            ("gfx90a", 512),
        ] {
            assert_eq!(ComputeUnit::of(arch).map(|unit| unit.vgprs), Some(vgprs), "{arch}");
        }
        assert_eq!(ComputeUnit::of("sm_75"), None);
    }
}
