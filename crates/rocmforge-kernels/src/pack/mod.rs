//! Packs: the code objects of one target, by kernel family, unpacked one by one when they are asked for.
//!
//! A family of a target is a file, `kernels/prebuilt/<target>/<family>.pack`, whose format is [`PackFile`]'s. This crate embeds all of them, with the
//! table `packs.rs` that `cargo xtask kernels build` writes.
//!
//! A pack may hold only the families that gain from its target, and leave the others to the pack that it falls back to: NVIDIA's
//! `sm_90a` to `sm_80`, and that to `sm_75`, which has all that have no instruction of a later card.

use crate::{KernelError, KernelResult, PackError};
use rocmforge_code_object::{Needed, PackFile, Target};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[cfg(test)]
mod tests;

/// The code objects of one target, by kernel family.
///
/// ```
/// use rocmforge_kernels::Pack;
///
/// let pack = Pack::embedded("gfx1100").expect("every committed target is embedded");
/// assert_eq!(pack.arch(), "gfx1100");
/// assert!(pack.object("softmax")?.is_some_and(|elf| elf.starts_with(b"\x7fELF")));
/// # Ok::<(), rocmforge_kernels::PackError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    arch: String,
    families: BTreeMap<String, Family>,
    fallback: Option<Box<Pack>>,
}

/// Where a family's object is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Family {
    /// In this build, compressed.
    Embedded,
    /// In a file that was read.
    Read(Arc<PackFile>),
}

impl Pack {
    /// Unpacks and checks a file of one or more families that needs no other. Hostile bytes give an error, and memory stays below a fixed limit.
    ///
    /// Only layout and hash are checked: the objects are data, and running them is the caller's responsibility.
    /// [`Kernels::from_pack`](crate::Kernels::from_pack) runs the embedded code only.
    ///
    /// # Errors
    ///
    /// [`PackError`], [`NoNear`](PackError::NoNear) for a file that needs another one: [`Pack::open`] finds that.
    pub fn read(file: &[u8]) -> Result<Self, PackError> {
        let file = PackFile::read(file, |_| Ok(None))?;
        let mut pack = Self {
            arch: file.target().to_owned(),
            families: BTreeMap::new(),
            fallback: None,
        };
        pack.add(file)?;
        Ok(pack)
    }

    /// Reads all files of a target: those of the folder `<target>` that end in `.pack`, and for the files which need others those in the folders
    /// beside it, as `cargo xtask kernels build` writes them.
    ///
    /// # Errors
    ///
    /// [`PackError`], that of the first file which is not sound. A folder without a file of this kind is one too.
    pub fn open(folder: &Path) -> Result<Self, PackError> {
        let at = |source| PackError::File {
            path: folder.to_owned(),
            source,
        };
        let files: Vec<PathBuf> = std::fs::read_dir(folder)
            .map_err(at)?
            .map(|entry| Ok(entry.map_err(at)?.path()))
            .collect::<Result<_, PackError>>()?;
        let mut pack: Option<Self> = None;
        for path in files {
            if path.extension() != Some(OsStr::new("pack")) {
                continue;
            }
            let file = PackFile::open(&path)?;
            let pack = pack.get_or_insert_with(|| Self {
                arch: file.target().to_owned(),
                families: BTreeMap::new(),
                fallback: None,
            });
            pack.add(file)?;
        }
        pack.ok_or_else(|| PackError::Empty {
            path: folder.to_owned(),
        })
    }

    /// Takes the families of a file in.
    fn add(&mut self, file: PackFile) -> Result<(), PackError> {
        if file.target() != self.arch {
            return Err(PackError::Target {
                expected: self.arch.clone(),
                found: file.target().to_owned(),
            });
        }
        let file = Arc::new(file);
        for (family, _) in file.objects() {
            let known = (self.families).insert(family.to_owned(), Family::Read(Arc::clone(&file)));
            if known.is_some() {
                return Err(PackError::Twice {
                    target: self.arch.clone(),
                    object: family.to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The pack embedded for `arch`, if there is one, with the packs it falls back to. Nothing is unpacked yet.
    pub fn embedded(arch: &str) -> Option<Self> {
        let (arch, fallback) = registry::TARGETS.iter().find(|(known, _)| *known == arch)?;
        let families = registry::FILES
            .iter()
            .filter(|(_, files)| file_of(files, arch).is_some());
        Some(Self {
            arch: (*arch).to_owned(),
            families: families
                .map(|(family, _)| ((*family).to_owned(), Family::Embedded))
                .collect(),
            fallback: fallback.and_then(Self::embedded).map(Box::new),
        })
    }

    /// The embedded pack that suits a processor best: of those that run there, the one with the most packs to fall back to.
    /// On `sm_90` that is `sm_90a`'s, on `sm_86` and `sm_120` `sm_80`'s; a Radeon runs its own only.
    pub fn for_processor(processor: &str) -> Option<Self> {
        Self::embedded(best(registry::TARGETS, processor)?)
    }

    /// The same pack, which leaves the families that it lacks to another. What that one fell back to stays; what this one fell
    /// back to does not.
    #[must_use]
    pub fn with_fallback(self, fallback: Pack) -> Self {
        Self {
            fallback: Some(Box::new(fallback)),
            ..self
        }
    }

    /// The pack that has the families which this one lacks.
    pub fn fallback(&self) -> Option<&Pack> {
        self.fallback.as_deref()
    }

    /// SHA-256 of what is in it, without its fallback: of each family's name, a zero byte and the SHA-256 of its object, by name.
    ///
    /// # Errors
    ///
    /// [`PackError`]: every family is unpacked.
    pub fn sha256(&self) -> Result<String, PackError> {
        let mut all = Sha256::new();
        for family in self.families() {
            all.update(family);
            all.update([0]);
            all.update(Sha256::digest(self.own(family)?.unwrap_or_default()));
        }
        Ok(all.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// A number for the code in it and in the packs that it falls back to, as 16 hexadecimal digits: another build of the kernels has another one. Nothing is
    /// unpacked; it is no proof against a forger.
    pub fn fingerprint(&self) -> String {
        let mut all = Sha256::new();
        for pack in std::iter::successors(Some(self), |pack| pack.fallback()) {
            all.update(&pack.arch);
            for (name, family) in &pack.families {
                all.update(name);
                match family {
                    Family::Embedded => all.update(embedded_file(&pack.arch, name).unwrap_or_default()),
                    Family::Read(file) => all.update(file.object(name).unwrap_or_default()),
                }
            }
        }
        all.finalize()[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares its objects, byte for byte, with those of the embedded pack of its architecture, and gives that one, whose fallback is embedded too.
    pub(crate) fn verified(self) -> KernelResult<Self> {
        let embedded = Self::embedded(&self.arch);
        let mut names: Vec<&str> = self.families().collect();
        names.extend(embedded.iter().flat_map(Self::families));
        names.sort_unstable();
        names.dedup();
        let mut differ = Vec::new();
        for family in names {
            let known = match &embedded {
                Some(embedded) => embedded.own(family)?,
                None => None,
            };
            if known.is_none() || known != self.own(family)? {
                differ.push(family.to_owned());
            }
        }
        match embedded {
            Some(embedded) if differ.is_empty() => Ok(embedded),
            embedded => Err(KernelError::UnverifiedPack {
                arch: self.arch.clone(),
                families: differ,
                found: self.sha256()?,
                embedded: embedded.as_ref().map(Self::sha256).transpose()?,
            }),
        }
    }

    /// Whether its code runs on a processor: see [`Target::runs_on`].
    pub fn runs_on(&self, processor: &str) -> bool {
        runs_on(&self.arch, processor)
    }

    /// The architectures with an embedded pack.
    pub fn embedded_archs() -> impl Iterator<Item = &'static str> {
        registry::TARGETS.iter().map(|(arch, _)| *arch)
    }

    /// What it is for: `gfx1100`.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// The code object of a kernel family (an ELF file, or PTX), from this pack or else from the one it falls back to. An embedded one is unpacked
    /// at each call, which takes about a millisecond for each of the packs that it needs: 14 at the most.
    ///
    /// # Errors
    ///
    /// [`PackError`]: the embedded file is not sound.
    pub fn object(&self, family: &str) -> Result<Option<Vec<u8>>, PackError> {
        match (self.own(family)?, self.fallback()) {
            (None, Some(fallback)) => fallback.object(family),
            (own, _) => Ok(own),
        }
    }

    /// The object of a family that is in it, without its fallback.
    fn own(&self, family: &str) -> Result<Option<Vec<u8>>, PackError> {
        let object = |file: &PackFile| file.object(family).map(<[u8]>::to_vec);
        Ok(match self.families.get(family) {
            None => None,
            Some(Family::Read(file)) => object(file),
            Some(Family::Embedded) => unpack(&self.arch, family)?.as_ref().and_then(object),
        })
    }

    /// Whether it has a family, or the pack that it falls back to.
    pub fn has(&self, family: &str) -> bool {
        self.families.contains_key(family) || self.fallback().is_some_and(|fallback| fallback.has(family))
    }

    /// The families that are in it, by name, without what it leaves to its fallback.
    pub fn families(&self) -> impl Iterator<Item = &str> {
        self.families.keys().map(String::as_str)
    }
}

/// The bytes of the embedded file of a family for a target.
fn embedded_file(arch: &str, family: &str) -> Option<&'static [u8]> {
    let (_, files) = registry::FILES.iter().find(|(known, _)| *known == family)?;
    file_of(files, arch)
}

/// The embedded file of a family for a target, unpacked.
fn unpack(arch: &str, family: &str) -> Result<Option<PackFile>, PackError> {
    let Some(bytes) = embedded_file(arch, family) else {
        return Ok(None);
    };
    let file = PackFile::read(bytes, |needed| match needed {
        Needed::Target(near) => unpack(near, family),
        Needed::Name(like) => unpack(arch, like),
    })?;
    match file.target() == arch {
        true => Ok(Some(file)),
        false => Err(PackError::Target {
            expected: arch.to_owned(),
            found: file.target().to_owned(),
        }),
    }
}

/// The file for a target among those of a family.
fn file_of(files: &[registry::File], arch: &str) -> Option<&'static [u8]> {
    files.iter().find(|(known, _)| *known == arch).map(|(_, file)| *file)
}

fn runs_on(arch: &str, processor: &str) -> bool {
    let target = Target {
        arch: arch.to_owned(),
        ..Target::default()
    };
    target.runs_on(processor)
}

/// The architecture of the best pack for a processor: see [`Pack::for_processor`]. Targets and their fallbacks.
fn best<'a>(targets: &[(&'a str, Option<&'a str>)], processor: &str) -> Option<&'a str> {
    let fallback = |arch: &str| targets.iter().find(|(known, _)| *known == arch)?.1;
    let fallbacks = |arch: &'a str| std::iter::successors(Some(arch), |arch| fallback(arch)).count();
    let running = targets
        .iter()
        .map(|(arch, _)| *arch)
        .filter(|arch| runs_on(arch, processor));
    running.max_by_key(|arch| fallbacks(arch))
}

/// What is embedded.
mod registry {
    /// A target, and its file of a family.
    pub(crate) type File = (&'static str, &'static [u8]);

    /// A family, and its file for each of these targets.
    macro_rules! files {
        ($family:literal: $($arch:literal)*) => {
            ($family, &[$(($arch, include_bytes!(concat!($arch, "/", $family, ".pack")) as &[u8])),*])
        };
    }

    include!("../../kernels/prebuilt/packs.rs");
}
