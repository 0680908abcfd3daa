//! Targets and families: what each pack is for, and which kernels it has.
//!
//! A family is a file `kernels/<family>.hip`. All are compiled for every base target; [`FAMILIES`] states the exceptions.

/// The families of a name for each type of weights that can be packed.
macro_rules! by_type {
    ($name:literal) => {
        [
            concat!($name, "q4_0"),
            concat!($name, "q4_1"),
            concat!($name, "q5_0"),
            concat!($name, "q5_1"),
            concat!($name, "q8_0"),
            concat!($name, "q2_k"),
            concat!($name, "q3_k"),
            concat!($name, "q4_k"),
            concat!($name, "q5_k"),
            concat!($name, "q6_k"),
            concat!($name, "iq4_nl"),
            concat!($name, "iq4_xs"),
            concat!($name, "mxfp4"),
        ]
    };
}

/// What a pack is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// As clang's `--offload-arch` has it.
    pub(crate) arch: &'static str,
    /// The target whose pack has the families that this one lacks. A target without one is a base target.
    pub(crate) fallback: Option<&'static str>,
    /// A target with similar code, a base target of its own: a pack is compressed as what differs from that one's of the same family. All of them whole
    /// would be more than the 10 MiB that crates.io takes.
    pub(crate) near: Option<&'static str>,
}

/// The targets whose packs are committed. PTX runs on later cards too, that of `sm_90a` on compute capability 9.0 only.
pub(crate) const TARGETS: [Target; 13] = [
    like("gfx1030", "gfx1100"),
    base("gfx1100"),
    like("gfx1101", "gfx1100"),
    like("gfx1102", "gfx1100"),
    like("gfx1150", "gfx1151"),
    like("gfx1151", "gfx1101"),
    like("gfx1200", "gfx1201"),
    like("gfx1201", "gfx1100"),
    like("gfx90a", "gfx1100"),
    like("gfx942", "gfx90a"),
    base("sm_75"),
    // mma.sync, ldmatrix of four matrices, cp.async.
    over("sm_80", "sm_75"),
    // wgmma and TMA, and launches that begin early.
    Target {
        near: Some("sm_75"),
        ..over("sm_90a", "sm_80")
    },
];

const fn base(arch: &'static str) -> Target {
    Target {
        arch,
        fallback: None,
        near: None,
    }
}

/// A base target that is compressed against another.
const fn like(arch: &'static str, near: &'static str) -> Target {
    Target {
        near: Some(near),
        ..base(arch)
    }
}

/// A target whose pack holds only the families that [`FAMILIES`] gives it.
const fn over(arch: &'static str, fallback: &'static str) -> Target {
    Target {
        fallback: Some(fallback),
        ..base(arch)
    }
}

/// The target whose pack has what the pack of `arch` lacks. A target that is not committed has all families itself.
pub(crate) fn fallback(arch: &str) -> Option<&'static str> {
    TARGETS.iter().find(|target| target.arch == arch)?.fallback
}

/// The target whose pack that of `arch` is compressed against.
pub(crate) fn near(arch: &str) -> Option<&'static str> {
    TARGETS.iter().find(|target| target.arch == arch)?.near
}

/// Whether the compiler makes PTX for it; AMD's code otherwise.
pub(crate) fn is_ptx(arch: &str) -> bool {
    arch.starts_with("sm_")
}

/// Families of the same kernels for each type of weights, one after another: the packs of all but the first are compressed against that one's.
const BY_TYPE: &[[&str; 13]] = &[
    by_type!("experts_q8_"),
    by_type!("half_rows_"),
    by_type!("matmul_q8_"),
    by_type!("matvec_q8_"),
    by_type!("weights_"),
];

/// Other families whose kernels differ in a type or a size, the first of them first.
const OTHERS: &[&[&str]] = &[
    &["attention16_f16", "attention16_bf16"],
    &["attention16_f16_extra", "attention16_bf16_extra"],
    &["paged16", "paged16_capped"],
    &[
        "paged_split_f16_d128",
        "paged_split_f16_d64",
        "paged_split_f16_d256",
        "paged_split_bf16_d64",
        "paged_split_bf16_d128",
        "paged_split_bf16_d256",
        "paged_split_q8_0_d64",
        "paged_split_q8_0_d128",
        "paged_split_q8_0_d256",
    ],
    &["weights_f16", "weights_bf16", "weights_f32"],
    &["half_rows_f16", "half_rows_bf16", "half_rows_f32"],
];

/// The family with similar code against whose pack of the same target that of `family` is compressed.
pub(crate) fn like_family(family: &str) -> Option<&'static str> {
    let by_type = BY_TYPE.iter().map(|families| &families[..]);
    let mut all = by_type.chain(OTHERS.iter().copied());
    let likes = all.find(|families| families.contains(&family))?;
    (likes[0] != family).then_some(likes[0])
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

/// The families that are stated. Every other one is compiled for the base targets, with the same kernels on each.
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
    hopper("paged16_hopper"),
    on_integer_units("matmul_q8_q4_0"),
    on_integer_units("matmul_q8_q4_1"),
    on_integer_units("matmul_q8_q5_0"),
    on_integer_units("matmul_q8_q5_1"),
    on_integer_units("matmul_q8_q8_0"),
    on_integer_units("matmul_q8_q2_k"),
    on_integer_units("matmul_q8_q3_k"),
    on_integer_units("matmul_q8_q4_k"),
    on_integer_units("matmul_q8_q5_k"),
    on_integer_units("matmul_q8_q6_k"),
    on_integer_units("matmul_q8_iq4_nl"),
    on_integer_units("matmul_q8_iq4_xs"),
    on_integer_units("matmul_q8_mxfp4"),
    begins_early("experts_q8_q4_0"),
    begins_early("experts_q8_q4_1"),
    begins_early("experts_q8_q5_0"),
    begins_early("experts_q8_q5_1"),
    begins_early("experts_q8_q8_0"),
    begins_early("experts_q8_q2_k"),
    begins_early("experts_q8_q3_k"),
    begins_early("experts_q8_q4_k"),
    begins_early("experts_q8_q5_k"),
    begins_early("experts_q8_q6_k"),
    begins_early("experts_q8_iq4_nl"),
    begins_early("experts_q8_iq4_xs"),
    begins_early("experts_q8_mxfp4"),
    with_own_blocks("matvec_q8_q4_0"),
    with_own_blocks("matvec_q8_q4_1"),
    with_own_blocks("matvec_q8_q5_0"),
    with_own_blocks("matvec_q8_q5_1"),
    with_own_blocks("matvec_q8_q8_0"),
    with_own_blocks("matvec_q8_q2_k"),
    with_own_blocks("matvec_q8_q3_k"),
    with_own_blocks("matvec_q8_q4_k"),
    with_own_blocks("matvec_q8_q5_k"),
    with_own_blocks("matvec_q8_q6_k"),
    with_own_blocks("matvec_q8_iq4_nl"),
    with_own_blocks("matvec_q8_iq4_xs"),
    with_own_blocks("matvec_q8_mxfp4"),
    begins_early("add_rms_norm"),
    begins_early("elementwise"),
    begins_early("paged_combine"),
    begins_early("paged_split_f16_d64"),
    begins_early("paged_split_f16_d128"),
    begins_early("paged_split_f16_d256"),
    begins_early("paged_split_bf16_d64"),
    begins_early("paged_split_bf16_d128"),
    begins_early("paged_split_bf16_d256"),
    begins_early("paged_split_q8_0_d64"),
    begins_early("paged_split_q8_0_d128"),
    begins_early("paged_split_q8_0_d256"),
    begins_early("quantize_q8"),
    begins_early("recurrent"),
    begins_early("rms_norm"),
    begins_early("rope_kv"),
    begins_early("route"),
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

/// A family of matrix instructions of 8-bit integers, which gfx1030 lacks, too. NVIDIA's cards have those of these shapes from 8.0 on.
const fn on_integer_units(name: &'static str) -> Family {
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

/// A family of kernels that begin early, whose launchers ask for the threads of their blocks.
const fn with_own_blocks(name: &'static str) -> Family {
    Family {
        own_blocks: true,
        ..begins_early(name)
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

/// Whether a target's pack has a family.
pub(crate) fn has_family(families: &[Family], arch: &str, name: &str) -> bool {
    let Some(family) = families.iter().find(|family| family.name == name) else {
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
    let family = families.iter().find(|family| family.name == name);
    let only = family.and_then(|family| family.only.iter().find(|(only, _)| *only == kernel));
    only.is_none_or(|(_, targets)| targets.contains(&arch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn like_families_are_there_and_each_stands_in_one_list() {
        let all = crate::compile::families(crate::workspace_root()).unwrap();
        let by_type = BY_TYPE.iter().map(|families| &families[..]);
        let mut seen = std::collections::BTreeSet::new();
        for families in by_type.chain(OTHERS.iter().copied()) {
            assert_eq!(like_family(families[0]), None, "{}", families[0]);
            for &family in families {
                assert!(all.iter().any(|known| known == family), "{family} is no family");
                assert!(seen.insert(family), "{family} stands in two lists");
                assert!(
                    family == families[0] || like_family(family) == Some(families[0]),
                    "{family}"
                );
            }
        }
    }

    #[test]
    fn every_fallback_ends_at_a_base_target() {
        for target in TARGETS {
            let chain = std::iter::successors(Some(target.arch), |arch| fallback(arch));
            let chain: Vec<&str> = chain.take(TARGETS.len()).collect();
            assert!(chain.len() < TARGETS.len(), "{} falls back to itself", target.arch);
            assert!(
                chain.iter().all(|arch| TARGETS.iter().any(|known| known.arch == *arch)),
                "{chain:?}"
            );
        }
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
