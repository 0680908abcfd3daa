//! Occupancy: how many waves of each kernel a SIMD must hold on AMD's processors.
//!
//! A kernel that needs more registers or LDS than before fails the build until its line here says so. The figure is what
//! registers, LDS and the kernel's own block size allow, without dynamic LDS.

use super::KernelsError;
use rocmforge_code_object::{ComputeUnit, KernelMeta};

/// The fewest waves of a SIMD, on processors with so many registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Least {
    /// gfx1100, gfx1101, gfx1151 and gfx12: of 16 waves.
    vgprs_1536: u32,
    /// gfx1030, gfx1102, gfx1103 and gfx1150: of 16 waves.
    vgprs_1024: u32,
    /// gfx90a and gfx942: of 8 waves of 64 lanes.
    vgprs_512: u32,
}

const fn least(vgprs_1536: u32, vgprs_1024: u32, vgprs_512: u32) -> Least {
    Least {
        vgprs_1536,
        vgprs_1024,
        vgprs_512,
    }
}

/// A kernel that no pattern names.
const USUAL: Least = least(8, 8, 4);

/// The kernels that get by with less: a name, in which `*` stands for any characters. The first that fits counts.
const STATED: &[(&str, Least)] = &[
    // A tile of keys and values, and the queries' outputs, are in LDS and registers: fewer, longer waves.
    ("flash_attention*_d32", least(9, 9, 2)),
    ("flash_attention*_d64", least(5, 5, 1)),
    ("flash_attention*_d*", least(3, 3, 1)),
    // A tile of keys and of values in LDS, the outputs of 16 queries in the registers of a wave. For heads over 64 elements LDS has the queries or
    // outputs too: three blocks to 128 KiB on RDNA, three of 64 KiB on CDNA.
    ("attention16_*_d64", least(8, 4, 4)),
    ("attention16_*_d128", least(3, 3, 3)),
    ("attention16_*_d256", least(2, 2, 2)),
    // The same, and addresses of pages.
    ("paged16_*d64", least(6, 4, 4)),
    ("paged16_*d128", least(3, 3, 3)),
    ("paged16_*d256", least(2, 2, 2)),
    // A row of the output in registers, in q8_0 beside words and scales.
    ("flash_attn_ext_f16_d128", least(10, 6, 3)),
    ("flash_attn_ext_*_d256", least(8, 4, 2)),
    ("paged_attention_q8_0_d256", least(6, 4, 2)),
    ("paged_attention_*_d256", least(8, 4, 3)),
    ("paged_wide_*", least(8, 6, 3)),
    // 58,512 bytes of LDS for 12 waves, each with the outputs of 32 rows in registers.
    ("paged_wide16_*", least(4, 3, 2)),
    // The part of a state that a wave has is in its registers.
    ("recurrent16", least(4, 4, 2)),
    // The sums of two or four heads by eight teams are in LDS: 17 KiB for 4 x 128 or 2 x 256 elements, 34 KiB for 4 x 256.
    ("paged_split_*_d256_r4", least(6, 6, 1)),
    ("paged_split_*_d128_r4", least(8, 8, 3)),
    ("paged_split_*_d256_r2", least(8, 8, 3)),
    // 32 results to a thread, and the next tiles beside them.
    ("matmul_f16", least(10, 7, 4)),
    ("matmul_views_nt_f16", least(10, 7, 4)),
    // Two buffers of 15 KiB for a block of four waves, each with 64 x 32 of the sums in registers. Loads run a step ahead.
    ("matmul16_*", least(4, 4, 2)),
    // A step of activations in LDS, 33 KiB on RDNA and 17 on CDNA; the next step, weights of the next run and 32 x 32 sums of a wave in registers.
    ("packed16_*_t1", least(4, 4, 2)),
    ("packed16_*_t2", least(6, 4, 3)),
    // Activations of 8 bits in LDS, once for a block that does many rows of weights: two blocks a multiprocessor.
    ("matvec_q8_*", least(6, 6, 1)),
    ("experts_*", least(6, 6, 1)),
    // Eight rows of activations in registers.
    ("matvec_q*_m8", least(8, 8, 3)),
    ("matvec_iq*_m8", least(8, 8, 3)),
    // Queries and keys of eight tokens are in LDS.
    ("delta_net_rows_256", least(8, 8, 3)),
    // The candidates of a row are in LDS.
    ("argsort", least(8, 8, 2)),
    ("top_k*", least(6, 6, 1)),
];

/// Refuses a kernel of which fewer waves fit than stated. A processor without figures of its registers is skipped.
pub(crate) fn check(arch: &str, kernel: &KernelMeta) -> Result<(), KernelsError> {
    let Some(unit) = ComputeUnit::of(arch) else {
        return Ok(());
    };
    let stated = STATED.iter().find(|(pattern, _)| fits(pattern, &kernel.name));
    let stated = stated.map_or(USUAL, |(_, least)| *least);
    let least = match unit.vgprs {
        1024 => stated.vgprs_1024,
        512 => stated.vgprs_512,
        _ => stated.vgprs_1536,
    };
    let found = unit.occupancy(kernel.vgpr_count, kernel.lds_size, kernel.max_workgroup_size);
    if found.waves_per_simd >= least {
        return Ok(());
    }
    Err(KernelsError::Occupancy {
        arch: arch.to_owned(),
        kernel: kernel.name.clone(),
        waves: found.waves_per_simd,
        least,
        vgprs: found.vgprs,
        lds: found.lds,
        block: kernel.max_workgroup_size,
    })
}

/// Whether a name is a pattern's, in which `*` stands for any characters, also none.
fn fits(pattern: &str, name: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(mut left) = name.strip_prefix(first) else {
        return false;
    };
    let mut parts = rest.split('*').peekable();
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return left.ends_with(part);
        }
        let Some(at) = left.find(part) else {
            return false;
        };
        left = &left[at + part.len()..];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prebuilt::{self, Pack};

    fn kernel(name: &str, vgpr_count: u32, lds_size: u32) -> KernelMeta {
        KernelMeta {
            name: name.to_owned(),
            vgpr_count,
            lds_size,
            max_workgroup_size: 256,
            ..KernelMeta::default()
        }
    }

    #[test]
    fn a_kernel_may_not_need_more_than_stated() {
        // Eight waves of 1536 registers have 192 each, of 1024 have 128, and four of 512 have 128.
        for (arch, most) in [
            ("gfx1100", 192),
            ("gfx1201", 192),
            ("gfx1102", 128),
            ("gfx1030", 128),
            ("gfx942", 128),
        ] {
            assert!(check(arch, &kernel("new", most, 0)).is_ok(), "{arch}");
            let error = check(arch, &kernel("new", most + 1, 0)).unwrap_err().to_string();
            assert!(error.contains(arch) && error.contains("new"), "{error}");
        }
        assert!(check("gfx1100", &kernel("new", 24, 32 << 10)).is_ok());
        assert!(check("gfx1100", &kernel("new", 24, 33 << 10)).is_err());
        assert!(check("gfx1100", &kernel("top_k", 24, 33 << 10)).is_ok());
        assert!(
            check("gfx906", &kernel("new", 256, 64 << 10)).is_ok(),
            "no figures for it"
        );
    }

    #[test]
    fn a_pattern_names_what_its_stars_leave_open() {
        for (pattern, name, fit) in [
            ("argsort", "argsort", true),
            ("argsort", "argsort_2", false),
            ("flash_attention*_d32", "flash_attention_d32", true),
            ("flash_attention*_d32", "flash_attention_masked_d32", true),
            ("flash_attention*_d32", "flash_attention_d320", false),
            ("flash_attention*_d*", "flash_attention_causal_d256", true),
            ("flash_attention*_d*", "flash_attn_ext_f16_d256", false),
            ("flash_attention*_d*", "flash_attention", false),
            ("*", "", true),
        ] {
            assert_eq!(fits(pattern, name), fit, "{pattern} {name}");
        }
    }

    /// A line that names no kernel any more, or that the usual figures cover, is harmless but misleading.
    #[test]
    fn every_line_is_needed() {
        let mut kernels = std::collections::BTreeSet::new();
        for (target, families) in prebuilt::files().unwrap() {
            for family in families {
                kernels.extend(Pack::load(&target, &family).unwrap().manifest.kernels.into_keys());
            }
        }
        for (at, (pattern, stated)) in STATED.iter().enumerate() {
            let first = |name: &&String| STATED.iter().position(|(pattern, _)| fits(pattern, name)) == Some(at);
            assert!(kernels.iter().any(|name| first(&name)), "{pattern}");
            let usual = stated.vgprs_1536 >= USUAL.vgprs_1536
                && stated.vgprs_1024 >= USUAL.vgprs_1024
                && stated.vgprs_512 >= USUAL.vgprs_512;
            assert!(!usual, "{pattern}");
        }
    }
}
