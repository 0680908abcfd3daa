//! `kernels/prebuilt/manifest.json`: what the packs were made from and what the compiler made of it.

use crate::compile::sha256;
use crate::pack::Objects;
use crate::targets::{self, has_family, has_kernel};
use crate::{KernelsError, read, write};
use rocmforge_code_object::{ArgKind, ArgMeta, CodeObject, KernelMeta};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The compiler's arguments but for source, target, output and path map.
    pub(crate) flags: Vec<String>,
    /// The same for PTX.
    #[serde(default)]
    pub(crate) ptx_flags: Vec<String>,
    /// Argument layout and limits of each kernel, the same on every target.
    pub(crate) kernels: BTreeMap<String, Layout>,
    /// By architecture.
    pub(crate) targets: BTreeMap<String, TargetEntry>,
}

/// What a launch must know.
#[derive(Serialize, Deserialize)]
pub(crate) struct Layout {
    family: String,
    /// Bytes of the explicit arguments.
    argument_bytes: u32,
    max_workgroup_size: u32,
    /// Waves of such a group, on the target that was inserted first.
    #[serde(default)]
    waves: u32,
    arguments: Vec<Argument>,
}

#[derive(Serialize, Deserialize)]
struct Argument {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    name: Option<String>,
    kind: String,
    offset: u32,
    size: u32,
}

/// One target's pack.
#[derive(Serialize, Deserialize)]
pub(crate) struct TargetEntry {
    /// First line of the compiler's `--version`.
    pub(crate) compiler: String,
    /// Hash over all sources.
    pub(crate) source_sha256: String,
    /// Hash of the uncompressed pack.
    pub(crate) pack_sha256: String,
    pub(crate) families: BTreeMap<String, Family>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct Family {
    pub(crate) sha256: String,
    pub(crate) bytes: usize,
    pub(crate) kernels: BTreeMap<String, Figures>,
}

/// What a kernel takes of a compute unit.
#[derive(Serialize, Deserialize)]
pub(crate) struct Figures {
    pub(crate) vgprs: u32,
    pub(crate) agprs: u32,
    pub(crate) sgprs: u32,
    pub(crate) lds_bytes: u32,
    pub(crate) private_bytes: u32,
    pub(crate) vgpr_spills: u32,
    pub(crate) sgpr_spills: u32,
    pub(crate) wave_size: u32,
}

impl Layout {
    fn of(family: &str, kernel: &KernelMeta) -> Self {
        let arguments: Vec<Argument> = kernel.explicit_args().map(Argument::of).collect();
        Self {
            family: family.to_owned(),
            argument_bytes: arguments.last().map_or(0, |a| a.offset + a.size),
            max_workgroup_size: kernel.max_workgroup_size,
            waves: kernel.max_workgroup_size / kernel.wavefront_size.max(1),
            arguments,
        }
    }

    /// Whether a launch may be the same, in blocks of as many threads or, for kernels that are written by waves, of as many waves. PTX does not
    /// tell the arguments' names.
    fn same_launch(&self, other: &Self) -> bool {
        let key = |layout: &Self| (layout.family.clone(), layout.argument_bytes);
        let argument = |a: &Argument, b: &Argument| (&a.kind, a.offset, a.size) == (&b.kind, b.offset, b.size);
        key(self) == key(other)
            && (self.max_workgroup_size == other.max_workgroup_size || self.waves == other.waves)
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

impl TargetEntry {
    pub(crate) fn new(
        compiler: &str,
        source: &str,
        pack: &[u8],
        objects: &Objects,
        described: &BTreeMap<String, CodeObject>,
    ) -> Self {
        let family = |(name, bytes): (&String, &Vec<u8>)| {
            let kernels = described.get(name).map_or(&[][..], |object| &object.kernels);
            let figures = |k: &KernelMeta| Figures {
                vgprs: k.vgpr_count,
                agprs: k.agpr_count,
                sgprs: k.sgpr_count,
                lds_bytes: k.lds_size,
                private_bytes: k.private_size,
                vgpr_spills: k.vgpr_spills,
                sgpr_spills: k.sgpr_spills,
                wave_size: k.wavefront_size,
            };
            let entry = Family {
                sha256: sha256(bytes),
                bytes: bytes.len(),
                kernels: kernels.iter().map(|k| (k.name.clone(), figures(k))).collect(),
            };
            (name.clone(), entry)
        };
        Self {
            compiler: compiler.to_owned(),
            source_sha256: source.to_owned(),
            pack_sha256: sha256(pack),
            families: objects.iter().map(family).collect(),
        }
    }
}

/// What `manifest.json` of a folder holds.
pub(crate) fn read_json<T: DeserializeOwned>(directory: &Path) -> Result<T, KernelsError> {
    let path = directory.join("manifest.json");
    serde_json::from_slice(&read(&path)?).map_err(|e| KernelsError::Manifest(format!("{}: {e}", path.display())))
}

/// Writes `manifest.json` of a folder.
pub(crate) fn write_json(directory: &Path, manifest: &impl Serialize) -> Result<(), KernelsError> {
    let mut text = serde_json::to_string_pretty(manifest).map_err(|e| KernelsError::Manifest(e.to_string()))?;
    text.push('\n');
    write(&directory.join("manifest.json"), text.as_bytes())
}

impl Manifest {
    pub(crate) fn read(directory: &Path) -> Result<Self, KernelsError> {
        read_json(directory)
    }

    pub(crate) fn write(&self, directory: &Path) -> Result<(), KernelsError> {
        write_json(directory, self)
    }

    pub(crate) fn target(&self, arch: &str) -> Result<&TargetEntry, KernelsError> {
        self.targets.get(arch).ok_or_else(|| {
            KernelsError::Manifest(format!(
                "no pack for {arch}; `cargo xtask kernels build --arch {arch}` makes one"
            ))
        })
    }

    /// Takes a target in. A target made from other sources may not agree on arguments; those of the newest sources count.
    pub(crate) fn insert(
        &mut self,
        arch: &str,
        entry: TargetEntry,
        described: &BTreeMap<String, CodeObject>,
    ) -> Result<(), KernelsError> {
        let mut others = self.targets.iter().filter(|(other, _)| *other != arch);
        let others_current = others.any(|(_, other)| other.source_sha256 == entry.source_sha256);
        if !others_current {
            self.kernels.clear();
        }
        for (family, object) in described {
            for kernel in &object.kernels {
                let layout = Layout::of(family, kernel);
                match self.kernels.get(&kernel.name) {
                    Some(known) if !known.same_launch(&layout) => {
                        return Err(KernelsError::ArgumentLayout {
                            arch: arch.to_owned(),
                            kernel: kernel.name.clone(),
                        });
                    }
                    Some(_) => {}
                    None => {
                        self.kernels.insert(kernel.name.clone(), layout);
                    }
                }
            }
        }
        self.targets.insert(arch.to_owned(), entry);
        Ok(())
    }

    /// That each target has the families which it is stated to have, of those that there are.
    pub(crate) fn check_families(&self, stated: &[targets::Family], families: &[String]) -> Result<(), KernelsError> {
        for (arch, target) in &self.targets {
            let expected: Vec<&str> = families.iter().map(String::as_str).collect();
            let expected: Vec<&str> = expected.into_iter().filter(|f| has_family(stated, arch, f)).collect();
            let found: Vec<&str> = target.families.keys().map(String::as_str).collect();
            if found != expected {
                return Err(KernelsError::Families {
                    arch: arch.clone(),
                    found: found.join(" "),
                    expected: expected.join(" "),
                });
            }
        }
        Ok(())
    }

    /// That a family has the same kernels on all its targets, but for those that are stated to exist on some. Looks at the
    /// targets that were made from these sources.
    pub(crate) fn check_kernels(&self, stated: &[targets::Family], source: &str) -> Result<(), KernelsError> {
        let mut known: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for family in stated {
            let only = family.only.iter().map(|(kernel, _)| *kernel);
            known.entry(family.name).or_default().extend(only);
        }
        let current = || self.targets.iter().filter(|(_, target)| target.source_sha256 == source);
        for (name, family) in current().flat_map(|(_, target)| &target.families) {
            let kernels = family.kernels.keys().map(String::as_str);
            known.entry(name).or_default().extend(kernels);
        }
        for (arch, target) in current() {
            for (name, family) in &target.families {
                for kernel in &known[name.as_str()] {
                    let exists = family.kernels.contains_key(*kernel);
                    if exists != has_kernel(stated, arch, name, kernel) {
                        return Err(KernelsError::Kernel {
                            arch: arch.clone(),
                            family: name.clone(),
                            kernel: (*kernel).to_owned(),
                            exists,
                        });
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::targets::Base;

    const STATED: &[targets::Family] = &[targets::Family {
        name: "gemm",
        base: Base::Without(&["gfx1030"]),
        also: &["sm_90a"],
        only: &[("gemm_wgmma", &["sm_90a"])],
    }];

    /// Kernels by family.
    type Families<'a> = &'a [(&'a str, &'a [&'a str])];

    /// PTX with kernels of one argument of so many bits.
    fn ptx(arch: &str, bits: u32, kernels: &[&str]) -> Vec<u8> {
        let mut text = format!(".version 8.0\n.target {arch}\n.address_size 64\n");
        for kernel in kernels {
            text.push_str(&format!(
                ".visible .entry {kernel}(.param .b{bits} {kernel}_param_0)\n{{ ret; }}\n"
            ));
        }
        text.into_bytes()
    }

    fn insert(manifest: &mut Manifest, arch: &str, bits: u32, families: Families<'_>) -> Result<(), KernelsError> {
        let object = |(name, kernels): &(&str, &[&str])| ((*name).to_owned(), ptx(arch, bits, kernels));
        let objects: Objects = families.iter().map(object).collect();
        let described = objects
            .iter()
            .map(|(name, bytes)| (name.clone(), CodeObject::parse(bytes).unwrap()))
            .collect();
        let entry = TargetEntry::new("clang", "source", b"", &objects, &described);
        manifest.insert(arch, entry, &described)
    }

    /// A manifest whose targets have these families, and what is wrong with its kernels.
    fn checked(targets: &[(&str, Families<'_>)]) -> Result<(), String> {
        let mut manifest = Manifest::default();
        for (arch, families) in targets {
            insert(&mut manifest, arch, 64, families).unwrap();
        }
        let families = ["add".to_owned(), "gemm".to_owned()];
        manifest.check_families(STATED, &families).map_err(|e| e.to_string())?;
        manifest.check_kernels(STATED, "source").map_err(|e| e.to_string())
    }

    #[test]
    fn a_kernel_exists_where_it_is_stated_to_and_all_others_everywhere() {
        let (add, gemm): (&[&str], &[&str]) = (&["add"], &["gemm_nn", "gemm_nt"]);
        let sm_75: (&str, Families<'_>) = ("sm_75", &[("add", add), ("gemm", gemm)]);
        let hopper: (&str, Families<'_>) = ("sm_90a", &[("gemm", &["gemm_nn", "gemm_nt", "gemm_wgmma"])]);
        assert_eq!(checked(&[sm_75, hopper]), Ok(()));
        for (wrong, said) in [
            (
                ("sm_90a", &[("gemm", gemm)] as &[_]),
                "sm_90a: family gemm lacks kernel gemm_wgmma",
            ),
            (
                ("sm_90a", &[("gemm", &["gemm_nn", "gemm_wgmma"] as &[_])]),
                "sm_90a: family gemm lacks kernel gemm_nt",
            ),
            (
                (
                    "sm_60",
                    &[("add", add), ("gemm", &["gemm_nn", "gemm_nt", "gemm_wgmma"])],
                ),
                "sm_60: family gemm has kernel gemm_wgmma",
            ),
            (
                ("sm_60", &[("add", &["add", "add_row_bias"]), ("gemm", gemm)]),
                "sm_75: family add lacks kernel add_row_bias",
            ),
            (("sm_60", &[("add", add)]), "sm_60: the pack has the families add;"),
            (("sm_90a", &[("add", add)]), "give it gemm"),
        ] {
            let error = checked(&[sm_75, wrong]).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn blocks_have_as_many_threads_or_as_many_waves() {
        let of = |max_workgroup_size, wavefront_size| {
            let kernel = KernelMeta {
                max_workgroup_size,
                wavefront_size,
                ..KernelMeta::default()
            };
            Layout::of("gemm", &kernel)
        };
        for (size, wave, same) in [
            (128, 32, true),
            (256, 64, true),
            (128, 64, true),
            (256, 32, false),
            (512, 64, false),
        ] {
            assert_eq!(
                of(128, 32).same_launch(&of(size, wave)),
                same,
                "{size} threads in waves of {wave}"
            );
        }
    }

    #[test]
    fn a_kernel_has_the_same_parameters_wherever_it_exists() {
        let mut manifest = Manifest::default();
        insert(&mut manifest, "sm_75", 64, &[("gemm", &["gemm_nn"])]).unwrap();
        // One that only the second target has is compared with nothing.
        insert(&mut manifest, "sm_90a", 64, &[("gemm", &["gemm_nn", "gemm_wgmma"])]).unwrap();
        let error = insert(&mut manifest, "sm_80", 32, &[("gemm", &["gemm_nn"])]).unwrap_err();
        assert!(
            matches!(&error, KernelsError::ArgumentLayout { arch, kernel } if arch == "sm_80" && kernel == "gemm_nn"),
            "{error}"
        );
    }
}
