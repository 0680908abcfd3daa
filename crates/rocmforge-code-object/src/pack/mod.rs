//! Pack files: the code objects of one target that were compiled from one source, compressed, with what they were made from.
//!
//! `kernels/prebuilt/<target>/<family>.pack` is one. Numbers are little-endian; a text is its length (u32) and UTF-8.
//!
//! | bytes | in the file |
//! |---|---|
//! | 8 | `RFKPACK3` |
//! | text | the target: `gfx1101` |
//! | text | the near target, or nothing: the contents are compressed as what differs from those of the near target's file of the same name |
//! | text | the name of a like file of the same target, or nothing: and from those of that one |
//! | u32 | size of the contents |
//! | 32 | SHA-256 of the contents |
//! | the rest | the contents, as one zstd frame |
//!
//! | bytes | in the contents |
//! |---|---|
//! | text | the manifest: JSON, which the builder of the packs writes and checks (`tools/kernels`), and which nobody needs to run the code |
//! | u32 | number of objects: one in the file of a kernel family |
//! | text, u64 | name and size of each |
//! | the rest | the objects, one after another |
//!
//! A file that needs the contents of a near target's takes a tenth of the room where both targets have almost the same code, and one that needs those of a
//! like file two thirds where both have the same kernel for two types.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

mod error;
#[cfg(test)]
mod tests;

pub use error::PackError;

const MAGIC: &[u8; 8] = b"RFKPACK3";
/// A real file unpacks to less than a twentieth of it. A small frame can claim to hold terabytes.
const MAX_CONTENTS: usize = 64 << 20;
/// A real file is below 300 KB.
const MAX_FILE: u64 = 16 << 20;
/// As a power of two: the window a decoder may allocate.
const MAX_WINDOW_LOG: u32 = 27;
const MAX_NAME: usize = 64;
const MAX_OBJECTS: u32 = 1024;
/// Files that a file needs, one after the other: gfx1150 that of gfx1151, that the one of gfx1101, that the one of gfx1100, and that a like one.
const MAX_CHAIN: u32 = 4;

/// High enough that more gains nothing on a few hundred kilobytes.
const LEVEL: i32 = 19;
/// As a power of two: holds three contents, so that every byte of one can refer to the other.
const WINDOW_LOG: u32 = 24;

/// A pack file, unpacked and verified.
///
/// Only layout and hash are checked: the objects are data, and running them is the caller's responsibility.
///
/// ```
/// use rocmforge_code_object::PackFile;
///
/// let objects = [("scale".to_owned(), b"code".to_vec())].into();
/// let file = PackFile::new("gfx1100", "{}", &objects)?;
/// let bytes = file.compress(None, None)?;
/// let read = PackFile::read(&bytes, |_| Ok(None))?;
/// assert_eq!((read.target(), read.object("scale")), ("gfx1100", Some(&b"code"[..])));
/// # Ok::<(), rocmforge_code_object::PackError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackFile {
    target: String,
    contents: Vec<u8>,
    manifest: Range<usize>,
    objects: BTreeMap<String, Range<usize>>,
}

/// A file whose contents another one needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed<'a> {
    /// That of the same name, for this target.
    Target(&'a str),
    /// That of this name, for the same target.
    Name(&'a str),
}

impl PackFile {
    /// The file of these objects, by name.
    ///
    /// # Errors
    ///
    /// A name or a size is more than a file may have.
    pub fn new(target: &str, manifest: &str, objects: &BTreeMap<String, Vec<u8>>) -> Result<Self, PackError> {
        let mut contents = Vec::new();
        text(&mut contents, manifest);
        contents.extend((objects.len() as u32).to_le_bytes());
        for (name, object) in objects {
            text(&mut contents, name);
            contents.extend((object.len() as u64).to_le_bytes());
        }
        for object in objects.values() {
            contents.extend(object);
        }
        Self::parse(target.to_owned(), contents)
    }

    /// The bytes of the file, compressed against the contents of `near`, that of the same name for another target, and of `like`, that of this name for the
    /// same target.
    ///
    /// # Errors
    ///
    /// zstd fails.
    pub fn compress(&self, near: Option<&PackFile>, like: Option<(&str, &PackFile)>) -> Result<Vec<u8>, PackError> {
        let mut file = MAGIC.to_vec();
        text(&mut file, &self.target);
        text(&mut file, near.map_or("", |near| &near.target));
        text(&mut file, like.map_or("", |(name, _)| name));
        file.extend((self.contents.len() as u32).to_le_bytes());
        file.extend(Sha256::digest(&self.contents));
        let prefix = prefix(near, like.map(|(_, like)| like));
        let mut encoder = zstd::stream::Encoder::with_ref_prefix(file, LEVEL, &prefix)?;
        // The header has both already.
        encoder.include_checksum(false)?;
        encoder.include_contentsize(false)?;
        if !prefix.is_empty() {
            encoder.window_log(WINDOW_LOG)?;
            encoder.long_distance_matching(true)?;
        }
        encoder.set_pledged_src_size(Some(self.contents.len() as u64))?;
        encoder.write_all(&self.contents)?;
        Ok(encoder.finish()?)
    }

    /// Unpacks and verifies a file. Hostile bytes give an error, and memory stays below a fixed limit. `find` gives a file that this one needs, or
    /// nothing.
    ///
    /// # Errors
    ///
    /// [`PackError`], that of `find` included.
    pub fn read(
        file: &[u8],
        mut find: impl FnMut(Needed<'_>) -> Result<Option<PackFile>, PackError>,
    ) -> Result<Self, PackError> {
        let header = Header::read(file)?;
        let mut found = |needed: Option<Needed<'_>>| -> Result<Option<PackFile>, PackError> {
            let Some(needed) = needed else { return Ok(None) };
            let file = find(needed)?.ok_or_else(|| PackError::NoNear {
                target: header.target.to_owned(),
                near: match needed {
                    Needed::Target(name) | Needed::Name(name) => name.to_owned(),
                },
            });
            file.map(Some)
        };
        let [near, like] = header.needs();
        let (near, like) = (found(near)?, found(like)?);
        let prefix = prefix(near.as_ref(), like.as_ref());
        let mut decoder = zstd::stream::read::Decoder::with_ref_prefix(header.frame, &prefix)?;
        decoder.window_log_max(MAX_WINDOW_LOG)?;
        let mut contents = Vec::with_capacity(header.size.min(1 << 20));
        decoder.take(header.size as u64 + 1).read_to_end(&mut contents)?;
        if contents.len() != header.size {
            return Err(PackError::Size {
                expected: header.size,
                more: contents.len() > header.size,
                found: contents.len().min(header.size),
            });
        }
        let found = Sha256::digest(&contents);
        if found[..] != *header.sha256 {
            return Err(PackError::Hash {
                expected: hexadecimal(header.sha256),
                found: hexadecimal(&found),
            });
        }
        Self::parse(header.target.to_owned(), contents)
    }

    /// What a file needs to be unpacked: that of a near target, and a like one.
    ///
    /// # Errors
    ///
    /// [`PackError`] of the header; nothing is unpacked.
    pub fn needs(file: &[u8]) -> Result<[Option<Needed<'_>>; 2], PackError> {
        Ok(Header::read(file)?.needs())
    }

    /// Reads a file `<target>/<name>.pack`, and those that it needs: of the same name in the near target's folder beside its own, and in its own folder.
    ///
    /// # Errors
    ///
    /// [`PackError`].
    pub fn open(path: &Path) -> Result<Self, PackError> {
        Self::open_chain(path, MAX_CHAIN)
    }

    fn open_chain(path: &Path, left: u32) -> Result<Self, PackError> {
        let at = |source| PackError::File {
            path: path.to_owned(),
            source,
        };
        let mut bytes = Vec::new();
        let opened = std::fs::File::open(path).map_err(at)?;
        opened.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(at)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(PackError::TooLarge {
                what: "the file",
                limit: MAX_FILE,
            });
        }
        Self::read(&bytes, |needed| {
            let Some(left) = left.checked_sub(1) else {
                return Err(PackError::Chain { limit: MAX_CHAIN });
            };
            let place = || {
                let folder = path.parent()?;
                Some(match needed {
                    Needed::Target(target) => folder.parent()?.join(target).join(path.file_name()?),
                    Needed::Name(name) => folder.join(format!("{name}.pack")),
                })
            };
            let place: Option<PathBuf> = place();
            place.map(|place| Self::open_chain(&place, left)).transpose()
        })
    }

    fn parse(target: String, contents: Vec<u8>) -> Result<Self, PackError> {
        if contents.len() > MAX_CONTENTS {
            return Err(PackError::TooLarge {
                what: "the contents",
                limit: MAX_CONTENTS as u64,
            });
        }
        let mut cursor = Cursor {
            part: "contents",
            bytes: &contents,
            at: 0,
        };
        let manifest = cursor.text("a manifest", MAX_CONTENTS)?;
        let manifest = cursor.at - manifest.len()..cursor.at;
        let count = cursor.u32()?;
        if count > MAX_OBJECTS {
            return Err(cursor.malformed("a number of objects up to 1024"));
        }
        let mut sizes = Vec::new();
        for _ in 0..count {
            let name = cursor.text("a name of up to 64 bytes", MAX_NAME)?.to_owned();
            let size = u64::from_le_bytes(cursor.array()?);
            sizes.push((
                name,
                usize::try_from(size).map_err(|_| cursor.malformed("an object's size"))?,
            ));
        }
        let mut objects = BTreeMap::new();
        for (name, size) in sizes {
            let start = cursor.at;
            cursor.take(size, "the object's bytes")?;
            if objects.insert(name, start..cursor.at).is_some() {
                return Err(cursor.malformed("each object once"));
            }
        }
        if cursor.at != contents.len() {
            return Err(cursor.malformed("the end"));
        }
        Ok(Self {
            target,
            manifest,
            objects,
            contents,
        })
    }

    /// What it is for: `gfx1100`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// What the objects were made from, and what the compiler made of it: JSON.
    pub fn manifest(&self) -> &str {
        std::str::from_utf8(&self.contents[self.manifest.clone()]).unwrap_or_default()
    }

    /// An object by name: an ELF file, or PTX.
    pub fn object(&self, name: &str) -> Option<&[u8]> {
        self.objects.get(name).map(|range| &self.contents[range.clone()])
    }

    /// Name and bytes of each object, by name.
    pub fn objects(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.objects
            .iter()
            .map(|(name, range)| (name.as_str(), &self.contents[range.clone()]))
    }

    /// SHA-256 of the contents, in hexadecimal digits.
    pub fn sha256(&self) -> String {
        hexadecimal(&Sha256::digest(&self.contents))
    }
}

/// What stands before the frame.
struct Header<'a> {
    target: &'a str,
    /// Both empty if the frame is whole.
    near: &'a str,
    like: &'a str,
    size: usize,
    sha256: &'a [u8],
    frame: &'a [u8],
}

impl<'a> Header<'a> {
    fn read(file: &'a [u8]) -> Result<Self, PackError> {
        let mut cursor = Cursor {
            part: "header",
            bytes: file,
            at: 0,
        };
        if cursor.take(MAGIC.len(), "RFKPACK3")? != MAGIC {
            cursor.at = 0;
            return Err(cursor.malformed("RFKPACK3"));
        }
        let target = cursor.name()?;
        let (near, like) = (cursor.name()?, cursor.name()?);
        if target.is_empty() || target == near {
            return Err(cursor.malformed("a target, and another one near to it or none"));
        }
        let size = cursor.u32()? as usize;
        if size > MAX_CONTENTS {
            return Err(PackError::TooLarge {
                what: "the contents",
                limit: MAX_CONTENTS as u64,
            });
        }
        let sha256 = cursor.take(32, "a hash of 32 bytes")?;
        Ok(Self {
            target,
            near,
            like,
            size,
            sha256,
            frame: &file[cursor.at..],
        })
    }

    fn needs(&self) -> [Option<Needed<'a>>; 2] {
        let some = |name: &'a str| (!name.is_empty()).then_some(name);
        [some(self.near).map(Needed::Target), some(self.like).map(Needed::Name)]
    }
}

/// What a frame is compressed against.
fn prefix(near: Option<&PackFile>, like: Option<&PackFile>) -> Vec<u8> {
    let contents = [like, near].into_iter().flatten().map(|file| &file.contents[..]);
    contents.collect::<Vec<_>>().concat()
}

fn text(to: &mut Vec<u8>, text: &str) {
    to.extend((text.len() as u32).to_le_bytes());
    to.extend(text.as_bytes());
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads forward; every step is checked against what is left.
struct Cursor<'a> {
    /// What is read, as an error names it.
    part: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn malformed(&self, expected: &'static str) -> PackError {
        PackError::Malformed {
            part: self.part,
            offset: self.at,
            expected,
        }
    }

    fn take(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], PackError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.bytes.len());
        let end = end.ok_or_else(|| self.malformed(expected))?;
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

    fn text(&mut self, expected: &'static str, most: usize) -> Result<&'a str, PackError> {
        let length = self.u32()? as usize;
        if length > most {
            return Err(self.malformed(expected));
        }
        let taken = self.take(length, expected)?;
        std::str::from_utf8(taken).map_err(|_| self.malformed("UTF-8"))
    }

    /// The name of a target or of a family, which is also that of a folder or a file, or nothing.
    fn name(&mut self) -> Result<&'a str, PackError> {
        let name = self.text("a name of up to 64 bytes", MAX_NAME)?;
        match name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
        {
            true => Ok(name),
            false => Err(self.malformed("a name of letters, digits, `_` and `-`")),
        }
    }
}
