//! Packs: every code object of one target in one zstd frame.
//!
//! Uncompressed, with little-endian numbers: `RFKPACK1`; the architecture (u32 length, UTF-8); the number of objects (u32); for each
//! object its family's name (u32 length, UTF-8) and its size (u64); then the objects, one after another, to the end.
//!
//! A pack may hold only the families that gain from its target, and leave the others to the pack that it falls back to: NVIDIA's
//! `sm_90a` to `sm_80`, and that to `sm_75`, which has all that have no instruction of a later card.

use crate::{KernelError, KernelResult, PackError};
use rocmforge_code_object::Target;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Read;

const MAGIC: &[u8; 8] = b"RFKPACK1";
/// A real pack is below half of it. A small frame can claim to hold terabytes.
const MAX_UNPACKED: u64 = 64 << 20;
/// As a power of two: the window a decoder may allocate.
const MAX_WINDOW_LOG: u32 = 26;
const MAX_NAME: usize = 64;
const MAX_OBJECTS: u32 = 1024;

/// The code objects of one target, by kernel family.
///
/// ```
/// use rocmforge_kernels::Pack;
///
/// let pack = Pack::embedded("gfx1100").expect("every committed target is embedded")?;
/// assert_eq!(pack.arch(), "gfx1100");
/// assert!(pack.object("softmax").is_some_and(|elf| elf.starts_with(b"\x7fELF")));
/// # Ok::<(), rocmforge_kernels::PackError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pack {
    arch: String,
    bytes: Vec<u8>,
    objects: BTreeMap<String, std::ops::Range<usize>>,
    fallback: Option<Box<Pack>>,
}

impl Pack {
    /// Unpacks and checks a compressed pack. Hostile bytes give an error, and memory stays below a fixed limit.
    ///
    /// Some packs of this build are stored as what differs from another's, and are read by [`Pack::embedded`] only.
    ///
    /// Only the layout is checked: the objects are data, and running them is the caller's responsibility.
    /// [`Kernels::from_pack`](crate::Kernels::from_pack) runs the embedded packs only.
    ///
    /// # Errors
    ///
    /// [`PackError`].
    pub fn read(packed: &[u8]) -> Result<Self, PackError> {
        Self::unpack(packed, &[])
    }

    /// Unpacks what was compressed as what differs from `near`.
    fn unpack(packed: &[u8], near: &[u8]) -> Result<Self, PackError> {
        let mut decoder = zstd::stream::read::Decoder::with_ref_prefix(packed, near)?;
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        let mut bytes = Vec::new();
        decoder.take(MAX_UNPACKED + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_UNPACKED {
            return Err(PackError::TooLarge { limit: MAX_UNPACKED });
        }
        Self::parse(bytes)
    }

    fn parse(bytes: Vec<u8>) -> Result<Self, PackError> {
        let mut cursor = Cursor { bytes: &bytes, at: 0 };
        if cursor.take(MAGIC.len(), "the magic RFKPACK1")? != MAGIC {
            return Err(PackError::Malformed {
                offset: 0,
                what: "the magic RFKPACK1",
            });
        }
        let arch = cursor.name()?;
        let count = cursor.u32()?;
        if count > MAX_OBJECTS {
            return Err(cursor.malformed("a sane number of objects"));
        }
        let mut sizes = Vec::new();
        for _ in 0..count {
            let name = cursor.name()?;
            let size = usize::try_from(cursor.u64()?).map_err(|_| cursor.malformed("a sane object size"))?;
            sizes.push((name, size));
        }
        let mut objects = BTreeMap::new();
        for (name, size) in sizes {
            let start = cursor.at;
            cursor.take(size, "the object's bytes")?;
            if objects.insert(name, start..cursor.at).is_some() {
                return Err(cursor.malformed("each family once"));
            }
        }
        if cursor.at != bytes.len() {
            return Err(cursor.malformed("the end"));
        }
        Ok(Self {
            arch,
            bytes,
            objects,
            fallback: None,
        })
    }

    /// The pack embedded for `arch`, if there is one, with the packs it falls back to.
    pub fn embedded(arch: &str) -> Option<Result<Self, PackError>> {
        let embedded = registry::PACKS.iter().find(|embedded| embedded.arch == arch)?;
        Some((|| {
            let fallback = embedded.fallback.and_then(Self::embedded).transpose()?;
            let near = embedded.near.and_then(Self::embedded).transpose()?;
            Ok(Self {
                fallback: fallback.map(Box::new),
                ..Self::unpack(embedded.packed, near.as_ref().map_or(&[], |near| &near.bytes))?
            })
        })())
    }

    /// The embedded pack that suits a processor best: of those that run there, the one with the most packs to fall back to.
    /// On `sm_90` that is `sm_90a`'s, on `sm_86` and `sm_120` `sm_80`'s; a Radeon runs its own only.
    pub fn for_processor(processor: &str) -> Option<Result<Self, PackError>> {
        Self::embedded(best(registry::PACKS, processor)?)
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

    /// SHA-256 of the contents, unpacked: of the layout, the names and every object.
    pub fn sha256(&self) -> String {
        let digest = Sha256::digest(&self.bytes);
        digest.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Compares it, byte for byte, with the embedded pack of its architecture, and gives that one, whose fallback is embedded too.
    pub(crate) fn verified(self) -> KernelResult<Self> {
        let embedded = Self::embedded(&self.arch).transpose()?;
        let embedded = match embedded {
            Some(embedded) if embedded.bytes == self.bytes => return Ok(embedded),
            other => other,
        };
        let known = |family: &str| embedded.as_ref().and_then(|embedded| embedded.object(family));
        let theirs = (self.objects()).filter(|(family, object)| known(family) != Some(object));
        let ours = (embedded.iter().flat_map(Self::objects)).filter(|(family, _)| self.object(family).is_none());
        Err(KernelError::UnverifiedPack {
            arch: self.arch.clone(),
            families: theirs.chain(ours).map(|(family, _)| family.to_owned()).collect(),
            found: self.sha256(),
            embedded: embedded.as_ref().map(Self::sha256),
        })
    }

    /// Whether its code runs on a processor: see [`Target::runs_on`].
    pub fn runs_on(&self, processor: &str) -> bool {
        runs_on(&self.arch, processor)
    }

    /// The architectures with an embedded pack.
    pub fn embedded_archs() -> impl Iterator<Item = &'static str> {
        registry::PACKS.iter().map(|embedded| embedded.arch)
    }

    /// What it is for: `gfx1100`.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// The code object of a kernel family (an ELF file, or PTX), from this pack or else from the one it falls back to.
    pub fn object(&self, family: &str) -> Option<&[u8]> {
        match self.objects.get(family) {
            Some(range) => Some(&self.bytes[range.clone()]),
            None => self.fallback()?.object(family),
        }
    }

    /// Family and code object of everything in it, by name, without what it leaves to its fallback.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.objects
            .iter()
            .map(|(name, range)| (name.as_str(), &self.bytes[range.clone()]))
    }
}

fn runs_on(arch: &str, processor: &str) -> bool {
    let target = Target {
        arch: arch.to_owned(),
        ..Target::default()
    };
    target.runs_on(processor)
}

/// The architecture of the best pack for a processor: see [`Pack::for_processor`].
fn best<'a>(packs: &'a [Embedded], processor: &str) -> Option<&'a str> {
    let of = |arch: &str| packs.iter().find(|embedded| embedded.arch == arch);
    let fallbacks =
        |embedded: &'a Embedded| std::iter::successors(Some(embedded), |embedded| of(embedded.fallback?)).count();
    let running = packs.iter().filter(|embedded| runs_on(embedded.arch, processor));
    running
        .max_by_key(|embedded| fallbacks(embedded))
        .map(|embedded| embedded.arch)
}

/// A pack of this build.
pub(crate) struct Embedded {
    arch: &'static str,
    /// The architecture whose pack has the families that this one lacks.
    fallback: Option<&'static str>,
    /// The architecture whose pack, unpacked, this one is compressed against.
    near: Option<&'static str>,
    packed: &'static [u8],
}

mod registry {
    use super::Embedded;

    include!("../kernels/prebuilt/packs.rs");
}

/// Reads forward; every step is checked against what is left.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn malformed(&self, what: &'static str) -> PackError {
        PackError::Malformed { offset: self.at, what }
    }

    fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], PackError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.malformed(what))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PackError> {
        let taken = self.take(N, "a number")?;
        taken.try_into().map_err(|_| self.malformed("a number"))
    }

    fn u32(&mut self) -> Result<u32, PackError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, PackError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn name(&mut self) -> Result<String, PackError> {
        let length = self.u32()? as usize;
        if length == 0 || length > MAX_NAME {
            return Err(self.malformed("a name of 1 to 64 bytes"));
        }
        let taken = self.take(length, "a name")?;
        let name = std::str::from_utf8(taken).map_err(|_| self.malformed("a name in UTF-8"))?;
        Ok(name.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<u8> {
        let mut pack = MAGIC.to_vec();
        for text in ["gfx0", "", "one", ""] {
            if text.is_empty() {
                continue;
            }
            pack.extend((text.len() as u32).to_le_bytes());
            pack.extend(text.as_bytes());
            if text == "gfx0" {
                pack.extend(1u32.to_le_bytes());
            } else {
                pack.extend(5u64.to_le_bytes());
            }
        }
        pack.extend(b"\x7fELF!");
        pack
    }

    #[test]
    fn a_pack_gives_its_objects() {
        let packed = zstd::encode_all(sample().as_slice(), 1).unwrap();
        let pack = Pack::read(&packed).unwrap();
        assert_eq!(pack.arch(), "gfx0");
        assert_eq!(pack.object("one"), Some(b"\x7fELF!".as_slice()));
        assert_eq!(pack.object("two"), None);
    }

    /// A pack with these families, whose objects are the architecture's name.
    fn pack(arch: &str, families: &[&str]) -> Pack {
        let mut bytes = MAGIC.to_vec();
        let text = |bytes: &mut Vec<u8>, text: &str| {
            bytes.extend((text.len() as u32).to_le_bytes());
            bytes.extend(text.as_bytes());
        };
        text(&mut bytes, arch);
        bytes.extend((families.len() as u32).to_le_bytes());
        for family in families {
            text(&mut bytes, family);
            bytes.extend((arch.len() as u64).to_le_bytes());
        }
        bytes.extend(families.iter().flat_map(|_| arch.as_bytes()));
        Pack::parse(bytes).unwrap()
    }

    #[test]
    fn a_family_comes_from_the_first_pack_that_has_it() {
        let base = pack("sm_75", &["copy", "gemm", "softmax"]);
        let middle = pack("sm_80", &["gemm", "softmax"]).with_fallback(base);
        let pack = pack("sm_90a", &["gemm"]).with_fallback(middle);
        for (family, from) in [
            ("gemm", Some("sm_90a")),
            ("softmax", Some("sm_80")),
            ("copy", Some("sm_75")),
            ("rope", None),
        ] {
            assert_eq!(pack.object(family), from.map(str::as_bytes), "{family}");
        }
        let own: Vec<&str> = pack.objects().map(|(family, _)| family).collect();
        assert_eq!(own, ["gemm"]);
        assert_eq!(pack.fallback().map(Pack::arch), Some("sm_80"));
    }

    #[test]
    fn the_best_pack_that_runs_is_chosen() {
        let packs = |list: &[(&'static str, Option<&'static str>)]| -> Vec<Embedded> {
            let embedded = |&(arch, fallback)| Embedded {
                arch,
                fallback,
                near: None,
                packed: b"",
            };
            list.iter().map(embedded).collect()
        };
        // In no order that could help.
        let packs = packs(&[
            ("sm_90a", Some("sm_80")),
            ("gfx1100", None),
            ("sm_75", None),
            ("sm_80", Some("sm_75")),
            ("gfx1201", None),
        ]);
        for (processor, arch) in [
            ("gfx1100", Some("gfx1100")),
            ("gfx1201", Some("gfx1201")),
            ("gfx1101", None),
            ("sm_70", None),
            ("sm_75", Some("sm_75")),
            ("sm_80", Some("sm_80")),
            ("sm_86", Some("sm_80")),
            ("sm_89", Some("sm_80")),
            ("sm_90", Some("sm_90a")),
            ("sm_100", Some("sm_80")),
            ("sm_120", Some("sm_80")),
        ] {
            assert_eq!(best(&packs, processor), arch, "{processor}");
            if processor != "gfx1101" {
                // The embedded ones are these and Radeons of other names.
                let embedded = Pack::for_processor(processor).map(|pack| pack.unwrap().arch().to_owned());
                assert_eq!(embedded.as_deref(), arch, "{processor}");
            }
        }
    }

    #[test]
    fn every_family_is_found_on_every_nvidia_card() {
        let base = Pack::embedded("sm_75").unwrap().unwrap();
        for processor in ["sm_75", "sm_86", "sm_90", "sm_120"] {
            let pack = Pack::for_processor(processor).unwrap().unwrap();
            for (family, _) in base.objects() {
                assert!(pack.object(family).is_some(), "{family} on {processor}");
            }
            // As read from a file: the pack alone. The embedded one has its fallback again.
            let alone = Pack {
                fallback: None,
                ..pack.clone()
            };
            assert_eq!(alone.verified().unwrap(), pack);
        }
    }

    #[test]
    fn every_truncation_and_every_extension_is_an_error() {
        let good = sample();
        for length in 0..good.len() {
            assert!(Pack::parse(good[..length].to_vec()).is_err(), "{length} bytes");
        }
        let mut long = good;
        long.push(0);
        assert!(Pack::parse(long).is_err());
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let good = sample();
        for at in 0..good.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bad = good.clone();
                bad[at] = value;
                // Some changes (a letter of a name) leave a valid pack; all must return.
                let _ = Pack::parse(bad);
            }
        }
    }

    #[test]
    fn a_compression_bomb_is_refused() {
        let bomb = zstd::encode_all(std::io::repeat(0).take(MAX_UNPACKED + 10), 1).unwrap();
        assert!(bomb.len() < 1 << 20, "the point is that it is small");
        assert!(matches!(Pack::read(&bomb), Err(PackError::TooLarge { .. })));
    }

    #[test]
    fn every_embedded_pack_is_readable_and_for_its_architecture() {
        assert!(Pack::embedded_archs().any(|arch| arch == "gfx1100"));
        for arch in Pack::embedded_archs() {
            let pack = Pack::embedded(arch).unwrap().unwrap();
            assert_eq!(pack.arch(), arch);
            for (family, object) in pack.objects() {
                let object = rocmforge_code_object::CodeObject::parse(object).unwrap();
                assert_eq!(object.target.arch, arch, "{family}");
                // What static shared memory may have: 48 KiB in PTX, 64 KiB on AMD's targets.
                let lds = if arch.starts_with("sm_") { 48 << 10 } else { 64 << 10 };
                for kernel in object.kernels {
                    assert!(
                        kernel.lds_size <= lds,
                        "{arch} {}: {} bytes",
                        kernel.name,
                        kernel.lds_size
                    );
                    assert_eq!(
                        (kernel.vgpr_spills, kernel.sgpr_spills, kernel.private_size),
                        (0, 0, 0),
                        "{arch} {}",
                        kernel.name
                    );
                    assert!(
                        kernel
                            .args
                            .iter()
                            .all(|arg| !matches!(arg.kind, rocmforge_code_object::ArgKind::Hidden(_)))
                    );
                }
            }
        }
    }
}
