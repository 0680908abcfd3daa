//! Unpacking what compilers wrap code objects in: clang's offload bundles, plain and compressed, and host programs that
//! carry them.

use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::io::Read;

const BUNDLE: &[u8] = b"__CLANG_OFFLOAD_BUNDLE__";
const COMPRESSED: &[u8] = b"CCOB";
/// A bundle that unpacks to more is taken for damaged.
pub(crate) const MAX_UNPACKED: u64 = 1 << 30;
/// Entries of one bundle; ROCm's largest libraries have about twenty.
const MAX_ENTRIES: u64 = 1024;

/// One code object of a bundle.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What it is for: `hipv4-amdgcn-amd-amdhsa--gfx1100`.
    pub(crate) target: String,
    pub(crate) bytes: Vec<u8>,
}

impl Entry {
    /// `gfx1100` of its target, features left out.
    pub(crate) fn arch(&self) -> &str {
        let start = self.target.rfind("gfx").unwrap_or(self.target.len());
        let name = &self.target[start..];
        name.split(':').next().unwrap_or(name)
    }
}

/// The code objects inside of `file`, or none if it is no bundle and has none.
///
/// # Errors
/// It starts like a bundle and is damaged, or is compressed in a way this does not read.
pub(crate) fn entries(file: &[u8]) -> Result<Option<Vec<Entry>>, String> {
    if file.starts_with(BUNDLE) || file.starts_with(COMPRESSED) {
        return unpack(file).map(Some);
    }
    // A host program keeps its bundles, one for each source file, in a section of their own.
    let Ok(program) = object::read::elf::ElfFile64::<object::Endianness>::parse(file) else {
        return Ok(None);
    };
    let Some(section) = program.section_by_name(".hip_fatbin") else {
        return Ok(None);
    };
    let data = section
        .data()
        .map_err(|error| format!("section .hip_fatbin: {error}"))?;
    let mut found = Vec::new();
    for start in starts(data) {
        found.extend(unpack(&data[start..])?);
    }
    Ok(Some(found))
}

/// Where bundles start in a section: each at a page.
fn starts(data: &[u8]) -> impl Iterator<Item = usize> {
    (0..data.len())
        .step_by(4096)
        .filter(|at| data[*at..].starts_with(BUNDLE) || data[*at..].starts_with(COMPRESSED))
}

fn unpack(bytes: &[u8]) -> Result<Vec<Entry>, String> {
    let bytes = if bytes.starts_with(COMPRESSED) {
        Cow::Owned(decompress(bytes)?)
    } else {
        Cow::Borrowed(bytes)
    };
    let damaged = |what: &str| format!("the offload bundle is damaged: {what}");
    if !bytes.starts_with(BUNDLE) {
        return Err(damaged("its magic number is missing"));
    }
    let mut at = BUNDLE.len();
    let count = take_u64(&bytes, &mut at).ok_or_else(|| damaged("it ends before its list"))?;
    if count > MAX_ENTRIES {
        return Err(damaged(&format!("it says that it has {count} entries")));
    }
    let mut found = Vec::new();
    let mut total = 0u64;
    for _ in 0..count {
        let mut number = || take_u64(&bytes, &mut at).ok_or_else(|| damaged("it ends inside its list"));
        let (offset, size, length) = (number()?, number()?, number()?);
        let range = |start: u64, length: u64| {
            let start = usize::try_from(start).ok()?;
            bytes.get(start..start.checked_add(usize::try_from(length).ok()?)?)
        };
        let target = range(at as u64, length).ok_or_else(|| damaged("a name is cut off"))?;
        let code = range(offset, size).ok_or_else(|| damaged("an entry lies outside of the file"))?;
        at += target.len();
        total += size;
        if total > MAX_UNPACKED {
            return Err(damaged("its entries are larger than a gigabyte"));
        }
        let target = String::from_utf8_lossy(target).into_owned();
        // The host's entry of a device-only bundle is empty.
        if !code.is_empty() && target.contains("amdgcn") {
            found.push(Entry {
                target,
                bytes: code.to_vec(),
            });
        }
    }
    Ok(found)
}

fn take_u64(bytes: &[u8], at: &mut usize) -> Option<u64> {
    let field = bytes.get(*at..at.checked_add(8)?)?;
    *at += 8;
    Some(u64::from_le_bytes(field.try_into().ok()?))
}

/// Unpacks `CCOB`: magic, version, method, sizes (none in version 1, 32 bits in 2, 64 bits in 3), hash, data.
fn decompress(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let field = |at: usize| bytes.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]]));
    let (Some(version), Some(method)) = (field(4), field(6)) else {
        return Err("the compressed bundle is cut off".to_owned());
    };
    let header = match version {
        1 => 20,
        2 => 24,
        3 => 32,
        other => {
            return Err(format!(
                "compressed bundles of version {other} are not read here (1 to 3 are)"
            ));
        }
    };
    if method != 1 {
        return Err("the bundle is compressed with zlib; zstd is read here: compile with --offload-compression-level, or -no-offload-compress".to_owned());
    }
    let data = bytes.get(header..).ok_or("the compressed bundle is cut off")?;
    let broken = |error: std::io::Error| format!("the compressed bundle is damaged: {error}");
    let decoder = zstd::stream::read::Decoder::new(data).map_err(broken)?;
    let mut out = Vec::new();
    // Other bundles may follow in the section.
    decoder
        .single_frame()
        .take(MAX_UNPACKED + 1)
        .read_to_end(&mut out)
        .map_err(broken)?;
    if out.len() as u64 > MAX_UNPACKED {
        return Err("the compressed bundle unpacks to more than a gigabyte".to_owned());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bundle as clang-offload-bundler lays it out.
    fn bundle(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut out = BUNDLE.to_vec();
        out.extend((entries.len() as u64).to_le_bytes());
        let list: usize = entries.iter().map(|(target, _)| 24 + target.len()).sum();
        let mut offset = (out.len() + list) as u64;
        for (target, code) in entries {
            for number in [offset, code.len() as u64, target.len() as u64] {
                out.extend(number.to_le_bytes());
            }
            out.extend(target.as_bytes());
            offset += code.len() as u64;
        }
        for (_, code) in entries {
            out.extend(*code);
        }
        out
    }

    fn two() -> Vec<u8> {
        bundle(&[
            ("host-x86_64-unknown-linux--", b""),
            ("hipv4-amdgcn-amd-amdhsa--gfx1100", b"first"),
            ("hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+", b"second"),
        ])
    }

    #[test]
    fn a_bundle_gives_its_code_objects() {
        let found = entries(&two()).unwrap().unwrap();
        let found: Vec<_> = found.iter().map(|e| (e.arch(), &e.bytes[..])).collect();
        assert_eq!(found, [("gfx1100", &b"first"[..]), ("gfx90a", b"second")]);
        assert_eq!(entries(b"something else"), Ok(None));
    }

    #[test]
    fn compressed_bundles_are_unpacked() {
        for (version, sizes) in [(1u16, 0), (2, 8), (3, 16)] {
            let mut file = COMPRESSED.to_vec();
            file.extend(version.to_le_bytes());
            file.extend(1u16.to_le_bytes());
            // Version 1 has the 32-bit size of the data and the hash; 2 and 3 have both sizes.
            file.extend(vec![0; if version == 1 { 4 } else { sizes }]);
            file.extend(0u64.to_le_bytes());
            file.extend(zstd::encode_all(&two()[..], 1).unwrap());
            file.extend(b"what follows");
            assert_eq!(entries(&file).unwrap().map(|e| e.len()), Some(2), "version {version}");
        }
    }

    #[test]
    fn damaged_bundles_are_refused_at_every_byte() {
        let good = two();
        for cut in BUNDLE.len()..good.len() {
            assert!(entries(&good[..cut]).is_err(), "cut at {cut}");
        }
        for at in BUNDLE.len()..good.len() {
            for value in [0, 0x7F, 0xFF] {
                let mut bad = good.clone();
                bad[at] = value;
                // Whatever it says, it says it without a panic.
                let _ = entries(&bad);
            }
        }
        let mut many = BUNDLE.to_vec();
        many.extend(u64::MAX.to_le_bytes());
        assert!(entries(&many).is_err());
    }
}
