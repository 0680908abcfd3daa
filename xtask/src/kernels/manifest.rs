//! `kernels/prebuilt/manifest.json`: what the packs were made from and what the compiler made of it.

use super::compile::sha256;
use super::{KernelsError, Objects, read, write};
use rocmforge_code_object::{ArgKind, ArgMeta, CodeObject, KernelMeta};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Default, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// The compiler's arguments but for source, target, output and path map.
    pub(super) flags: Vec<String>,
    /// The same for PTX.
    #[serde(default)]
    pub(super) ptx_flags: Vec<String>,
    /// Argument layout and limits of each kernel, the same on every target.
    pub(super) kernels: BTreeMap<String, Layout>,
    /// By architecture.
    pub(super) targets: BTreeMap<String, TargetEntry>,
}

/// What a launch must know.
#[derive(Serialize, Deserialize)]
pub(super) struct Layout {
    family: String,
    /// Bytes of the explicit arguments.
    argument_bytes: u32,
    max_workgroup_size: u32,
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
pub(super) struct TargetEntry {
    /// First line of the compiler's `--version`.
    pub(super) compiler: String,
    /// Hash over all sources.
    pub(super) source_sha256: String,
    /// Hash of the uncompressed pack.
    pub(super) pack_sha256: String,
    pub(super) families: BTreeMap<String, Family>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct Family {
    pub(super) sha256: String,
    pub(super) bytes: usize,
    pub(super) kernels: BTreeMap<String, Figures>,
}

/// What a kernel takes of a compute unit.
#[derive(Serialize, Deserialize)]
pub(super) struct Figures {
    pub(super) vgprs: u32,
    pub(super) agprs: u32,
    pub(super) sgprs: u32,
    pub(super) lds_bytes: u32,
    pub(super) private_bytes: u32,
    pub(super) vgpr_spills: u32,
    pub(super) sgpr_spills: u32,
    pub(super) wave_size: u32,
}

impl Layout {
    fn of(family: &str, kernel: &KernelMeta) -> Self {
        let arguments: Vec<Argument> = kernel.explicit_args().map(Argument::of).collect();
        Self {
            family: family.to_owned(),
            argument_bytes: arguments.last().map_or(0, |a| a.offset + a.size),
            max_workgroup_size: kernel.max_workgroup_size,
            arguments,
        }
    }

    /// Whether a launch may be the same. PTX does not tell the arguments' names.
    fn same_launch(&self, other: &Self) -> bool {
        let key = |layout: &Self| (layout.family.clone(), layout.argument_bytes, layout.max_workgroup_size);
        let argument = |a: &Argument, b: &Argument| (&a.kind, a.offset, a.size) == (&b.kind, b.offset, b.size);
        key(self) == key(other)
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
    pub(super) fn new(
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

impl Manifest {
    pub(super) fn read(directory: &Path) -> Result<Self, KernelsError> {
        let path = directory.join("manifest.json");
        serde_json::from_slice(&read(&path)?).map_err(|e| KernelsError::Manifest(format!("{}: {e}", path.display())))
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), KernelsError> {
        let mut text = serde_json::to_string_pretty(self).map_err(|e| KernelsError::Manifest(e.to_string()))?;
        text.push('\n');
        write(&directory.join("manifest.json"), text.as_bytes())
    }

    pub(super) fn target(&self, arch: &str) -> Result<&TargetEntry, KernelsError> {
        self.targets.get(arch).ok_or_else(|| {
            KernelsError::Manifest(format!(
                "no pack for {arch}; `cargo xtask kernels build --arch {arch}` makes one"
            ))
        })
    }

    /// Takes a target in. A target made from other sources may not agree on arguments; those of the newest sources count.
    pub(super) fn insert(
        &mut self,
        arch: &str,
        entry: TargetEntry,
        described: &BTreeMap<String, CodeObject>,
    ) -> Result<(), KernelsError> {
        let others_current = self
            .targets
            .iter()
            .any(|(a, e)| a != arch && e.source_sha256 == entry.source_sha256);
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
}
