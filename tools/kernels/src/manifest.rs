//! Manifest of a pack file: what the family's code was made from, and what the compiler made of it.

use crate::KernelsError;
use crate::families::{self, has_kernel};
use rocmforge_code_object::{ArgKind, ArgMeta, CodeObject, KernelMeta};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The manifest of a family for a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// [Hash of the inputs](crate::inputs::hash).
    pub(crate) inputs: String,
    /// First line of the compiler's `--version`, if it is another build than `compiler.json` names.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) compiler: Option<String>,
    pub(crate) kernels: BTreeMap<String, Kernel>,
}

/// What a launch must know of a kernel, and what it takes of a compute unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kernel {
    /// Bytes of the explicit arguments.
    argument_bytes: u32,
    max_workgroup_size: u32,
    arguments: Vec<Argument>,
    pub(crate) vgprs: u32,
    pub(crate) agprs: u32,
    pub(crate) sgprs: u32,
    pub(crate) lds_bytes: u32,
    private_bytes: u32,
    pub(crate) vgpr_spills: u32,
    pub(crate) sgpr_spills: u32,
    wave_size: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Argument {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    name: Option<String>,
    kind: String,
    offset: u32,
    size: u32,
}

impl Manifest {
    pub(crate) fn of(inputs: String, compiler: Option<String>, object: &CodeObject) -> Self {
        let kernels = object.kernels.iter();
        Self {
            inputs,
            compiler,
            kernels: kernels.map(|k| (k.name.clone(), Kernel::of(k))).collect(),
        }
    }
}

impl Kernel {
    fn of(kernel: &KernelMeta) -> Self {
        let arguments: Vec<Argument> = kernel.explicit_args().map(Argument::of).collect();
        Self {
            argument_bytes: arguments.last().map_or(0, |a| a.offset + a.size),
            max_workgroup_size: kernel.max_workgroup_size,
            arguments,
            vgprs: kernel.vgpr_count,
            agprs: kernel.agpr_count,
            sgprs: kernel.sgpr_count,
            lds_bytes: kernel.lds_size,
            private_bytes: kernel.private_size,
            vgpr_spills: kernel.vgpr_spills,
            sgpr_spills: kernel.sgpr_spills,
            wave_size: kernel.wavefront_size,
        }
    }

    /// Waves of the largest workgroup.
    fn waves(&self) -> u32 {
        self.max_workgroup_size / self.wave_size.max(1)
    }

    /// Whether a launch may be the same, in blocks of as many threads or, for kernels that are written by waves, of as many waves, unless the
    /// launcher asks for its `own_blocks`. PTX does not tell the arguments' names.
    fn same_launch(&self, other: &Self, own_blocks: bool) -> bool {
        let argument = |a: &Argument, b: &Argument| (&a.kind, a.offset, a.size) == (&b.kind, b.offset, b.size);
        self.argument_bytes == other.argument_bytes
            && (own_blocks || self.max_workgroup_size == other.max_workgroup_size || self.waves() == other.waves())
            && self.arguments.len() == other.arguments.len()
            && self.arguments.iter().zip(&other.arguments).all(|(a, b)| argument(a, b))
    }
}

impl Argument {
    fn of(arg: &ArgMeta) -> Self {
        let kind = match &arg.kind {
            ArgKind::Value => "value",
            ArgKind::GlobalPointer => "global_pointer",
            ArgKind::DynamicSharedPointer => "dynamic_lds",
            _ => "other",
        };
        Self {
            name: arg.name.clone(),
            kind: kind.to_owned(),
            offset: arg.offset,
            size: arg.size,
        }
    }
}

/// That a family has the same kernels on all its targets, and that each is launched alike. Some kernels are stated to exist on a few targets. Takes
/// the manifests of the targets that were made from the same sources.
pub(crate) fn agree(
    stated: &[families::Family],
    family: &str,
    manifests: &BTreeMap<&str, &Manifest>,
) -> Result<(), KernelsError> {
    let of_family = families::stated(stated, family);
    let mut names: BTreeSet<&str> = of_family
        .iter()
        .flat_map(|f| f.only.iter().map(|(kernel, _)| *kernel))
        .collect();
    names.extend(manifests.values().flat_map(|m| m.kernels.keys().map(String::as_str)));
    for name in names {
        let mut first: Option<&Kernel> = None;
        for (arch, manifest) in manifests {
            let kernel = manifest.kernels.get(name);
            if kernel.is_some() != has_kernel(stated, arch, family, name) {
                return Err(KernelsError::Kernel {
                    arch: (*arch).to_owned(),
                    family: family.to_owned(),
                    kernel: name.to_owned(),
                    exists: kernel.is_some(),
                });
            }
            let Some(kernel) = kernel else { continue };
            let own_blocks = of_family.is_some_and(|family| family.own_blocks);
            if !first.get_or_insert(kernel).same_launch(kernel, own_blocks) {
                return Err(KernelsError::ArgumentLayout {
                    arch: (*arch).to_owned(),
                    kernel: name.to_owned(),
                });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::Base;

    const STATED: &[families::Family] = &[families::Family {
        base: Base::Without(&["gfx1030"]),
        also: &["sm_90a"],
        only: &[("gemm_wgmma", &["sm_90a"])],
        ..families::Family::new("gemm")
    }];

    /// The manifest of PTX with kernels of one argument of so many bits.
    fn manifest(arch: &str, bits: u32, kernels: &[&str]) -> Manifest {
        let mut text = format!(".version 8.0\n.target {arch}\n.address_size 64\n");
        for kernel in kernels {
            text.push_str(&format!(
                ".visible .entry {kernel}(.param .b{bits} {kernel}_param_0)\n{{ ret; }}\n"
            ));
        }
        let object = CodeObject::parse(text.as_bytes()).unwrap();
        Manifest::of("inputs".to_owned(), None, &object)
    }

    /// What is wrong with the kernels of these targets, each with the bits of an argument.
    fn checked(targets: &[(&str, u32, &[&str])]) -> Result<(), String> {
        let made: Vec<(&str, Manifest)> = (targets.iter())
            .map(|(arch, bits, kernels)| (*arch, manifest(arch, *bits, kernels)))
            .collect();
        let manifests = made.iter().map(|(arch, manifest)| (*arch, manifest)).collect();
        agree(STATED, "gemm", &manifests).map_err(|e| e.to_string())
    }

    #[test]
    fn a_kernel_exists_where_it_is_stated_to_and_all_others_everywhere() {
        let gemm: &[&str] = &["gemm_nn", "gemm_nt"];
        let all: &[&str] = &["gemm_nn", "gemm_nt", "gemm_wgmma"];
        assert_eq!(checked(&[("sm_75", 64, gemm), ("sm_90a", 64, all)]), Ok(()));
        for (wrong, said) in [
            (("sm_90a", 64, gemm), "sm_90a: family gemm lacks kernel gemm_wgmma"),
            (
                ("sm_90a", 64, &["gemm_nn", "gemm_wgmma"] as &[_]),
                "sm_90a: family gemm lacks kernel gemm_nt",
            ),
            (("sm_60", 64, all), "sm_60: family gemm has kernel gemm_wgmma"),
        ] {
            let error = checked(&[("sm_75", 64, gemm), wrong]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn a_kernel_has_the_same_parameters_wherever_it_exists() {
        let wrong = [
            ("sm_75", 64, &["gemm_nn"] as &[&str]),
            // One that only this target has is compared with nothing.
            ("sm_90a", 64, &["gemm_nn", "gemm_wgmma"]),
            ("sm_80", 32, &["gemm_nn"]),
        ];
        let error = checked(&wrong).unwrap_err();
        assert!(error.contains("gemm_nn has another argument layout"), "{error}");
        assert_eq!(checked(&wrong[..2]), Ok(()));
    }

    #[test]
    fn blocks_have_as_many_threads_or_as_many_waves() {
        let of = |max_workgroup_size, wavefront_size| {
            Kernel::of(&KernelMeta {
                max_workgroup_size,
                wavefront_size,
                ..KernelMeta::default()
            })
        };
        for (size, wave, same) in [
            (128, 32, true),
            (256, 64, true),
            (128, 64, true),
            (256, 32, false),
            (512, 64, false),
        ] {
            assert_eq!(
                of(128, 32).same_launch(&of(size, wave), false),
                same,
                "{size} threads in waves of {wave}"
            );
        }
        assert!(
            of(256, 32).same_launch(&of(512, 32), true),
            "the launcher asks for the number"
        );
    }

    #[test]
    fn a_manifest_is_read_as_it_was_written() {
        let mut manifest = manifest("sm_75", 64, &["gemm_nn"]);
        for compiler in [None, Some("clang of somebody".to_owned())] {
            manifest.compiler = compiler;
            let text = serde_json::to_string(&manifest).unwrap();
            assert_eq!(serde_json::from_str::<Manifest>(&text).unwrap(), manifest);
        }
    }
}
