//! Families: the sources in `kernels`, the types that some are compiled for one by one, and the targets of each.
//!
//! A family is a file `kernels/<family>.hip`, or such a file for one of its [variants](VARIED): `matvec_q8_q4_0` is `kernels/matvec_q8.hip` for Q4_0.
//! All are compiled for every base target; [`FAMILIES`] states the exceptions.

use crate::targets::fallback;
use crate::{KernelsError, compile::sorted};
use std::path::Path;

/// One of the families of a source: the end of its name, and what the compiler defines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variant {
    ending: &'static str,
    defines: [&'static str; 3],
}

/// A variant, with the name that its kernels have and the name of its type in the sources.
macro_rules! variant {
    ($ending:literal: $name:literal, $type:literal, $more:literal) => {
        Variant {
            ending: $ending,
            defines: [concat!("-DRF_NAME=", $name), concat!("-DRF_TYPE=", $type), concat!("-D", $more)],
        }
    };
    (packed $name:literal, $type:literal) => {
        variant!($name: $name, $type, "RF_PACKABLE=1")
    };
    (plain $name:literal, $type:literal) => {
        variant!($name: $name, $type, "RF_PACKABLE=0")
    };
}

/// Types of weights that can be packed. A new one is a line here.
const PACKED: &[Variant] = &[
    variant!(packed "q4_0", "Q4_0"),
    variant!(packed "q4_1", "Q4_1"),
    variant!(packed "q5_0", "Q5_0"),
    variant!(packed "q5_1", "Q5_1"),
    variant!(packed "q8_0", "Q8_0"),
    variant!(packed "q2_k", "Q2K"),
    variant!(packed "q3_k", "Q3K"),
    variant!(packed "q4_k", "Q4K"),
    variant!(packed "q5_k", "Q5K"),
    variant!(packed "q6_k", "Q6K"),
    variant!(packed "iq4_nl", "Iq4Nl"),
    variant!(packed "iq4_xs", "Iq4Xs"),
    variant!(packed "mxfp4", "Mxfp4"),
];

/// Types of weights that are floats.
const FLOATS: &[Variant] = &[
    variant!(plain "f16", "F16"),
    variant!(plain "bf16", "Bf16"),
    variant!(plain "f32", "F32"),
];

/// Types of weights with a codebook, of one or two bits, and nvfp4: those of `kernels/include/quant_few.h`.
const FEW: &[Variant] = &[
    variant!(plain "iq2_xxs", "Iq2Xxs"),
    variant!(plain "iq2_xs", "Iq2Xs"),
    variant!(plain "iq2_s", "Iq2S"),
    variant!(plain "iq3_xxs", "Iq3Xxs"),
    variant!(plain "iq3_s", "Iq3S"),
    variant!(plain "iq1_s", "Iq1S"),
    variant!(plain "iq1_m", "Iq1M"),
    variant!(plain "tq1_0", "Tq1_0"),
    variant!(plain "tq2_0", "Tq2_0"),
    variant!(plain "q1_0", "Q1_0"),
    variant!(plain "q2_0", "Q2_0"),
    variant!(plain "nvfp4", "Nvfp4"),
];

/// Types of a cache, with the elements of a head.
const CACHES: &[Variant] = &[
    variant!("f16_d128": "f16", "Half", "RF_HEAD=128"),
    variant!("f16_d64": "f16", "Half", "RF_HEAD=64"),
    variant!("f16_d256": "f16", "Half", "RF_HEAD=256"),
    variant!("bf16_d64": "bf16", "Bf16", "RF_HEAD=64"),
    variant!("bf16_d128": "bf16", "Bf16", "RF_HEAD=128"),
    variant!("bf16_d256": "bf16", "Bf16", "RF_HEAD=256"),
    variant!("q8_0_d64": "q8_0", "Q8_0", "RF_HEAD=64"),
    variant!("q8_0_d128": "q8_0", "Q8_0", "RF_HEAD=128"),
    variant!("q8_0_d256": "q8_0", "Q8_0", "RF_HEAD=256"),
];

/// Sources that are compiled once for each variant, in groups whose code is alike.
const VARIED: &[(&str, &[&[Variant]])] = &[
    ("experts_q8", &[PACKED]),
    ("half_rows", &[PACKED, FLOATS]),
    ("half_rows_few", &[FEW]),
    ("matvec_q8", &[PACKED]),
    ("packed16", &[PACKED]),
    ("paged_split", &[CACHES]),
    ("weights", &[PACKED, FLOATS]),
    ("weights_few", &[FEW]),
];

/// Other families whose kernels differ in a type or a size, the first of them first.
const ALIKE: &[&[&str]] = &[
    &["attention16_f16", "attention16_bf16"],
    &["attention16_f16_extra", "attention16_bf16_extra"],
    &["paged16", "paged16_capped", "paged16_bf16", "paged16_q8_0"],
];

/// The name of the source of a family, without its ending, and the group of variants that the family is one of, with its place there.
fn source_of(family: &str) -> (&str, Option<(&'static [Variant], usize)>) {
    for &(source, groups) in VARIED {
        let Some(ending) = family.strip_prefix(source).and_then(|rest| rest.strip_prefix('_')) else {
            continue;
        };
        for &group in groups {
            if let Some(at) = group.iter().position(|variant| variant.ending == ending) {
                return (source, Some((group, at)));
            }
        }
    }
    (family, None)
}

/// The source of a family, from the root of the workspace on.
pub(crate) fn source(family: &str) -> String {
    format!("kernels/{}.hip", source_of(family).0)
}

/// What the compiler defines for a family.
pub(crate) fn defines(family: &str) -> &'static [&'static str] {
    source_of(family).1.map_or(&[], |(group, at)| &group[at].defines)
}

/// The families of a source.
pub(crate) fn of_source(source: &str) -> Vec<String> {
    match VARIED.iter().find(|(name, _)| *name == source) {
        Some((_, groups)) => {
            let all = groups.iter().copied().flatten();
            all.map(|variant| format!("{source}_{}", variant.ending)).collect()
        }
        None => vec![source.to_owned()],
    }
}

/// All families, sorted: those of `kernels/*.hip`.
pub(crate) fn all(root: &Path) -> Result<Vec<String>, KernelsError> {
    let names = sorted(&root.join("kernels"), "hip")?;
    let sources = names.iter().map(|name| name.trim_end_matches(".hip"));
    let mut all: Vec<String> = sources.flat_map(of_source).collect();
    all.sort();
    Ok(all)
}

/// The family with similar code against whose pack of the same target that of `family` is compressed.
pub(crate) fn like_family(family: &str) -> Option<String> {
    let first = match source_of(family) {
        (source, Some((group, _))) => format!("{source}_{}", group[0].ending),
        _ => {
            let alike = ALIKE.iter().find(|families| families.contains(&family))?;
            alike[0].to_owned()
        }
    };
    (first != family).then_some(first)
}

/// A family that is not compiled for exactly the base targets, or has kernels that some of its targets lack.
///
/// A product of matrices with a kernel for Hopper alone:
///
/// ```text
/// Family { also: &["sm_80", "sm_90a"], only: &[("gemm_f16_wgmma", &["sm_90a"])], ..Family::new("gemm_f16") }
/// ```
#[derive(Debug, Clone, Copy)]
pub(crate) struct Family {
    /// Its name; of a source with variants that of the source.
    pub(crate) name: &'static str,
    /// The base targets that have it.
    pub(crate) base: Base,
    /// The other targets that have code of their own, instead of their fallback's. That code has all kernels of the family:
    /// where a pack has the family, its fallback is not asked.
    pub(crate) also: &'static [&'static str],
    /// The kernels that exist on some of those targets only, and which those are.
    pub(crate) only: &'static [(&'static str, &'static [&'static str])],
    /// Whether the blocks of a kernel may have another number of threads on another target: its launcher asks for it.
    pub(crate) own_blocks: bool,
}

impl Family {
    /// One that is compiled for the base targets.
    pub(crate) const fn new(name: &'static str) -> Self {
        Self {
            name,
            base: Base::All,
            also: &[],
            only: &[],
            own_blocks: false,
        }
    }
}

/// The base targets of a family.
#[derive(Debug, Clone, Copy)]
#[allow(
    dead_code,
    reason = "a family may need any of them; which do changes with the kernels"
)]
pub(crate) enum Base {
    All,
    Without(&'static [&'static str]),
    None,
}

/// The families that are stated, those with variants together. Every other one is compiled for the base targets, with the same kernels on each.
pub(crate) const FAMILIES: &[Family] = &[
    on_matrix_units("attention16_f16", &[]),
    on_matrix_units("attention16_f16_extra", &[]),
    on_matrix_units("attention16_bf16", &[("attention16_bf16_d256", NOT_GFX1030)]),
    on_matrix_units(
        "attention16_bf16_extra",
        &[("attention16_bf16_extra_d256", NOT_GFX1030)],
    ),
    hopper("attention16_hopper"),
    on_matrix_units("attention16_split", &[]),
    hopper("attention16_split_hopper"),
    on_matrix_units("matmul16", &[]),
    hopper("matmul16_hopper"),
    on_matrix_units("paged16", &[("paged16_d256", NOT_GFX1030)]),
    on_matrix_units("paged16_capped", &[("paged16_capped_d256", NOT_GFX1030)]),
    on_matrix_units("paged16_bf16", &[("paged16_bf16_d256", NOT_GFX1030)]),
    on_matrix_units("paged16_q8_0", &[("paged16_q8_0_d256", NOT_GFX1030)]),
    hopper("paged16_hopper"),
    without_loops("paged_wide16"),
    with_own_blocks(Family {
        also: &["sm_80", "sm_90a"],
        ..without_loops("packed16")
    }),
    begins_early("experts_q8"),
    with_own_blocks(begins_early("matvec_q8")),
    begins_early("add_rms_norm"),
    begins_early("elementwise"),
    begins_early("glu_halves"),
    begins_early("latent_kv"),
    begins_early("matvec_block"),
    begins_early("paged_combine"),
    begins_early("paged_split"),
    begins_early("quantize_q8"),
    begins_early("recurrent"),
    without_loops("recurrent16"),
    begins_early("rms_norm"),
    begins_early("rope_kv"),
    begins_early("route"),
    begins_early("sum_parts"),
];

/// The targets of `attention16` and `paged16` but gfx1030, which has too few registers for some of its kernels.
const NOT_GFX1030: &[&str] = &[
    "gfx1100", "gfx1101", "gfx1102", "gfx1150", "gfx1151", "gfx1200", "gfx1201", "gfx90a", "gfx942", "sm_80",
];

/// A family of matrix instructions of 16-bit floats, which NVIDIA's cards have from 8.0 on.
const fn on_matrix_units(name: &'static str, only: &'static [(&'static str, &'static [&'static str])]) -> Family {
    Family {
        base: Base::Without(&["sm_75"]),
        also: &["sm_80"],
        only,
        ..Family::new(name)
    }
}

/// A family of matrix instructions that gfx1030 lacks, whose registers are too few for loops in their place.
const fn without_loops(name: &'static str) -> Family {
    Family {
        base: Base::Without(&["gfx1030", "sm_75"]),
        ..on_matrix_units(name, &[])
    }
}

/// A family of kernels that begin while the launch before ends, on cards that can.
const fn begins_early(name: &'static str) -> Family {
    Family {
        also: &["sm_90a"],
        ..Family::new(name)
    }
}

/// The same family, whose launchers ask for the threads of their blocks.
const fn with_own_blocks(family: Family) -> Family {
    Family {
        own_blocks: true,
        ..family
    }
}

/// A family of wgmma.
const fn hopper(name: &'static str) -> Family {
    Family {
        base: Base::None,
        also: &["sm_90a"],
        ..Family::new(name)
    }
}

/// What is stated of a family: that of its source, for all variants.
pub(crate) fn stated<'a>(families: &'a [Family], name: &str) -> Option<&'a Family> {
    let (source, _) = source_of(name);
    families.iter().find(|family| family.name == source)
}

/// Whether a target's pack has a family.
pub(crate) fn has_family(families: &[Family], arch: &str, name: &str) -> bool {
    let Some(family) = stated(families, name) else {
        return fallback(arch).is_none();
    };
    if fallback(arch).is_some() {
        return family.also.contains(&arch);
    }
    match family.base {
        Base::All => true,
        Base::Without(left_out) => !left_out.contains(&arch),
        Base::None => false,
    }
}

/// Whether a family has a kernel on a target that has the family.
pub(crate) fn has_kernel(families: &[Family], arch: &str, name: &str, kernel: &str) -> bool {
    let only = stated(families, name).and_then(|family| family.only.iter().find(|(only, _)| *only == kernel));
    only.is_none_or(|(_, targets)| targets.contains(&arch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::TARGETS;

    #[test]
    fn each_family_has_a_source_and_is_like_one_that_is_there() {
        let root = crate::workspace_root();
        let all = all(root).unwrap();
        for pair in all.windows(2) {
            assert_ne!(pair[0], pair[1], "twice");
        }
        for family in &all {
            assert!(root.join(source(family)).is_file(), "{family}");
            if let Some(like) = like_family(family) {
                assert!(all.contains(&like) && like_family(&like).is_none(), "{family}: {like}");
            }
        }
        let named = VARIED
            .iter()
            .map(|(source, _)| *source)
            .chain(ALIKE.iter().copied().flatten().copied());
        for source in named.chain(FAMILIES.iter().map(|family| family.name)) {
            assert!(root.join(format!("kernels/{source}.hip")).is_file(), "{source}");
        }
        assert_eq!(source("matvec_q8_iq4_nl"), "kernels/matvec_q8.hip");
        assert_eq!(
            defines("paged_split_q8_0_d64"),
            ["-DRF_NAME=q8_0", "-DRF_TYPE=Q8_0", "-DRF_HEAD=64"]
        );
        assert_eq!(like_family("weights_bf16").as_deref(), Some("weights_f16"));
        assert!(defines("pool").is_empty() && like_family("pool").is_none());
    }

    #[test]
    fn what_is_stated_names_committed_targets() {
        for family in FAMILIES {
            let left_out = match family.base {
                Base::Without(left_out) => left_out,
                Base::All | Base::None => &[],
            };
            let only = family.only.iter().flat_map(|(_, targets)| *targets);
            for arch in left_out.iter().chain(family.also).chain(only) {
                assert!(
                    TARGETS.iter().any(|target| target.arch == *arch),
                    "{}: {arch}",
                    family.name
                );
            }
            for (kernel, targets) in family.only {
                for arch in *targets {
                    assert!(has_family(FAMILIES, arch, family.name), "{kernel} on {arch}");
                }
            }
        }
    }

    #[test]
    fn a_family_is_where_it_is_stated_to_be() {
        let families = [
            Family {
                also: &["sm_80", "sm_90a"],
                only: &[("gemm_wgmma", &["sm_90a"])],
                ..Family::new("gemm")
            },
            Family {
                base: Base::Without(&["gfx1030", "sm_75"]),
                also: &["sm_80"],
                ..Family::new("wmma")
            },
            Family {
                base: Base::None,
                also: &["sm_90a"],
                ..Family::new("tma")
            },
        ];
        for (arch, gemm, wmma, tma, add) in [
            ("gfx1100", true, true, false, true),
            ("gfx1030", true, false, false, true),
            ("gfx1103", true, true, false, true),
            ("sm_75", true, false, false, true),
            ("sm_80", true, true, false, false),
            ("sm_90a", true, false, true, false),
        ] {
            let has = |name| has_family(&families, arch, name);
            assert_eq!(
                (has("gemm"), has("wmma"), has("tma"), has("add")),
                (gemm, wmma, tma, add),
                "{arch}"
            );
        }
        assert!(has_kernel(&families, "sm_90a", "gemm", "gemm_wgmma"));
        assert!(!has_kernel(&families, "sm_80", "gemm", "gemm_wgmma"));
        assert!(has_kernel(&families, "sm_80", "gemm", "gemm_f16"));
        assert!(has_kernel(&families, "gfx1100", "add", "add_row_bias"));
    }
}
