//! Offload bundles: code objects for several targets in one file, plain or compressed, as clang writes them into host programs.
//!
//! Layout: clang's documentation of `clang-offload-bundler`, sections "Bundled Binary File Layout" and "Compressed Bundle".

mod memory;

pub use memory::Image;

use crate::Target;
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::ops::Range;

const PLAIN: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED: &[u8] = b"CCOB";
/// Bytes of a bundle after unpacking, at most; one that says more is taken for damaged.
pub const MAX_UNPACKED: u64 = 1 << 30;
/// Entries of one bundle; ROCm's largest libraries have about twenty.
const MAX_ENTRIES: u64 = 1024;

/// Why a bundle cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleError {
    /// Its tables contradict each other, or it ends too early.
    #[error("the offload bundle is damaged: {0}")]
    Damaged(String),
    /// A version of the compressed format that is not known.
    #[error("compressed bundles of version {0} are not read here (1 to 3 are)")]
    Version(u16),
    /// A method of compression that is not known.
    #[error("the bundle is compressed by method {0}; 0 (zlib) and 1 (zstd) are read here")]
    Method(u16),
    /// It would need more memory than any real bundle.
    #[error("the bundle unpacks to more than {MAX_UNPACKED} B")]
    TooLarge,
}

impl BundleError {
    fn damaged(what: impl std::fmt::Display) -> Self {
        Self::Damaged(what.to_string())
    }
}

/// One code object of a bundle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// What it is for: `hipv4-amdgcn-amd-amdhsa--gfx1100`, with features after colons.
    pub target: &'a str,
    /// The code object: an ELF file.
    pub bytes: &'a [u8],
}

impl Entry<'_> {
    /// The processor of its target, features left out: `gfx1100`, `gfx11-generic`.
    pub fn arch(&self) -> &str {
        let start = self.target.find("gfx").unwrap_or(self.target.len());
        let name = &self.target[start..];
        name.split(':').next().unwrap_or(name)
    }
}

/// The code objects of one offload bundle.
///
/// ```
/// use rocmforge_code_object::Bundle;
/// assert_eq!(Bundle::parse(b"not a bundle")?, None);
/// # Ok::<(), rocmforge_code_object::BundleError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bundle<'a> {
    bytes: Cow<'a, [u8]>,
    entries: Vec<(String, Range<usize>)>,
}

impl<'a> Bundle<'a> {
    /// Reads the bundle at the start of `bytes`, which may go on behind it; `None` if there is none.
    ///
    /// # Errors
    /// It starts like a bundle, and is damaged or of a kind that is not read here.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<Self>, BundleError> {
        let bytes = if bytes.starts_with(COMPRESSED) {
            let header = Compressed::parse(bytes)?;
            let data = bytes
                .get(header.data..)
                .ok_or_else(|| BundleError::damaged("it is cut off"))?;
            Cow::Owned(header.unpack(data)?)
        } else if bytes.starts_with(PLAIN) {
            Cow::Borrowed(bytes)
        } else {
            return Ok(None);
        };
        let entries = table(&bytes)?;
        Ok(Some(Self { bytes, entries }))
    }

    /// All bundles of a host program or library: clang keeps them in the section `.hip_fatbin`, one for each source file. Empty if
    /// `program` is no ELF file or has no such section.
    ///
    /// # Errors
    /// As [`Self::parse`], for the first of them that cannot be read.
    pub fn of_host_program(program: &'a [u8]) -> Result<Vec<Self>, BundleError> {
        let Ok(file) = object::read::elf::ElfFile64::<object::Endianness>::parse(program) else {
            return Ok(Vec::new());
        };
        let Some(section) = file.section_by_name(".hip_fatbin") else {
            return Ok(Vec::new());
        };
        let data = section
            .data()
            .map_err(|error| BundleError::damaged(format!("section .hip_fatbin: {error}")))?;
        // Each starts at a page.
        let starts = (0..data.len()).step_by(4096);
        starts
            .filter_map(|start| Self::parse(&data[start..]).transpose())
            .collect()
    }

    /// Its code objects for AMD GPUs, in the order of the file. The host's entry is left out: it is empty.
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.entries.iter().map(|(target, range)| Entry {
            target,
            bytes: &self.bytes[range.clone()],
        })
    }

    /// The code object that runs on a processor (`gfx1100`): the processor's own, else that of its family (`gfx11-generic`).
    pub fn for_processor(&self, processor: &str) -> Option<Entry<'_>> {
        let family = |entry: &Entry<'_>| {
            let target = Target {
                arch: entry.arch().to_owned(),
                ..Target::default()
            };
            target.runs_on(processor)
        };
        let own = self.entries().find(|entry| entry.arch() == processor);
        own.or_else(|| self.entries().find(family))
    }
}

/// The entries of a plain bundle that are code for AMD GPUs.
fn table(bytes: &[u8]) -> Result<Vec<(String, Range<usize>)>, BundleError> {
    if !bytes.starts_with(PLAIN) {
        return Err(BundleError::damaged("its magic number is missing"));
    }
    let mut at = PLAIN.len();
    let count = take_u64(bytes, &mut at).ok_or_else(|| BundleError::damaged("it ends before its list"))?;
    if count > MAX_ENTRIES {
        return Err(BundleError::damaged(format_args!(
            "it says that it has {count} entries"
        )));
    }
    let mut found = Vec::new();
    let mut total = 0u64;
    for _ in 0..count {
        let mut number = || take_u64(bytes, &mut at).ok_or_else(|| BundleError::damaged("it ends inside its list"));
        let (offset, size, length) = (number()?, number()?, number()?);
        let inside = |start: u64, length: u64| {
            let start = usize::try_from(start).ok()?;
            let range = start..start.checked_add(usize::try_from(length).ok()?)?;
            bytes.get(range.clone()).map(|part| (range, part))
        };
        let (_, target) = inside(at as u64, length).ok_or_else(|| BundleError::damaged("a name is cut off"))?;
        let (range, _) =
            inside(offset, size).ok_or_else(|| BundleError::damaged("an entry lies outside of the file"))?;
        at += target.len();
        total = total.saturating_add(size);
        if total > MAX_UNPACKED {
            return Err(BundleError::TooLarge);
        }
        let target = String::from_utf8_lossy(target).into_owned();
        if !range.is_empty() && target.contains("amdgcn") {
            found.push((target, range));
        }
    }
    Ok(found)
}

fn take_u64(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let field = bytes.get(*at..at.checked_add(8)?)?;
    *at += 8;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}

/// The header of a compressed bundle: magic, version, method, sizes (unpacked in 32 bits in version 1; total and unpacked in 32
/// bits in version 2, in 64 bits in version 3), hash.
struct Compressed {
    method: u16,
    /// Where the data starts.
    data: usize,
    /// Bytes of the whole, where the header says it.
    total: Option<u64>,
}

impl Compressed {
    /// Bytes of the longest header.
    const LONGEST: usize = 32;

    fn parse(bytes: &[u8]) -> Result<Self, BundleError> {
        let cut = || BundleError::damaged("it is cut off");
        let u16_at = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
        let (version, method) = (u16_at(4).ok_or_else(cut)?, u16_at(6).ok_or_else(cut)?);
        let (data, size) = match version {
            1 => (20, 0..0),
            2 => (24, 8..12),
            3 => (32, 8..16),
            other => return Err(BundleError::Version(other)),
        };
        if method > 1 {
            return Err(BundleError::Method(method));
        }
        let mut total = [0; 8];
        let field = bytes.get(size).ok_or_else(cut)?;
        total[..field.len()].copy_from_slice(field);
        Ok(Self {
            method,
            data,
            total: (!field.is_empty()).then_some(u64::from_le_bytes(total)),
        })
    }

    /// Unpacks the one stream at the start of `data`. Other bundles may follow it.
    fn unpack(&self, data: impl BufRead) -> Result<Vec<u8>, BundleError> {
        let mut out = Vec::new();
        let limit = MAX_UNPACKED + 1;
        let read = if self.method == 0 {
            flate2::bufread::ZlibDecoder::new(data)
                .take(limit)
                .read_to_end(&mut out)
        } else {
            zstd::stream::read::Decoder::with_buffer(data)
                .and_then(|decoder| decoder.single_frame().take(limit).read_to_end(&mut out))
        };
        read.map_err(|error| BundleError::damaged(format_args!("its compressed data: {error}")))?;
        if out.len() as u64 > MAX_UNPACKED {
            return Err(BundleError::TooLarge);
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests;
