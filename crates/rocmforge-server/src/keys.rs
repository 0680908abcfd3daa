//! Keys of those who may ask. Only digests are kept, and each comparison takes the same time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::files;

/// The shortest key that is taken: 16 characters of base64 have 96 bits.
const SHORTEST: usize = 16;

/// Keys; without any, everybody may ask.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Digests, with the names of their owners.
    digests: Vec<([u8; 32], String)>,
}

/// Why keys are not taken.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// A key is too short.
    #[error(
        "the key of line {line} has {length} characters: a key has at least {SHORTEST}, such as `openssl rand -hex 24` prints"
    )]
    Short {
        /// Its line, from 1.
        line: usize,
        /// Its length.
        length: usize,
    },
    /// A file without a key.
    #[error("there is no key: each line has one, with a name before it if one is wanted (`NAME:KEY`)")]
    Empty,
}

impl Keys {
    /// Keys of a text: one a line, as `KEY` or `NAME:KEY`. Empty lines and lines that begin with `#` are left out.
    ///
    /// # Errors
    /// There is no key, or one is too short.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut digests = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let number = index + 1;
            let (name, key) = match line.split_once(':') {
                Some((name, key)) => (name.trim().to_owned(), key.trim()),
                None => (format!("line {number}"), line),
            };
            let length = key.chars().count();
            if length < SHORTEST {
                return Err(KeyError::Short { line: number, length });
            }
            digests.push((Sha256::digest(key).into(), name));
        }
        match digests.is_empty() {
            true => Err(KeyError::Empty),
            false => Ok(Self { digests }),
        }
    }

    /// Keys of a file, as [`Self::parse`] reads them.
    ///
    /// # Errors
    /// The file cannot be read, or has no usable keys.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let with_path = |error| KeyError::File {
            path: path.to_owned(),
            error,
        };
        let text = String::from_utf8(files::read_small(path).map_err(with_path)?);
        Self::parse(&text.map_err(|error| with_path(std::io::Error::other(error.utf8_error())))?)
    }

    /// Whether there are no keys.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
    }

    /// Owners of keys.
    pub(crate) fn len(&self) -> usize {
        let names: BTreeMap<_, _> = self.digests.iter().map(|(_, name)| (name, ())).collect();
        names.len()
    }

    /// The owner of a key.
    pub(crate) fn owner(&self, key: &str) -> Option<&str> {
        self.owner_by(key, differ)
    }

    /// All digests are looked at, and all bytes of each: how long it takes says nothing about the keys.
    fn owner_by(&self, key: &str, mut differ: impl FnMut(u8, u8) -> u8) -> Option<&str> {
        let digest: [u8; 32] = Sha256::digest(key).into();
        let mut found = None;
        for (known, name) in &self.digests {
            let difference = known.iter().zip(digest).fold(0, |sum, (a, b)| sum | differ(*a, b));
            if std::hint::black_box(difference) == 0 {
                found = Some(name.as_str());
            }
        }
        found
    }
}

/// The bits in which two bytes differ.
const fn differ(a: u8, b: u8) -> u8 {
    a ^ b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_owners() {
        let text = "# of this machine\n\n0123456789abcdef\n ada : fedcba9876543210 \n";
        let keys = Keys::parse(text).expect("two keys");
        assert_eq!(keys.len(), 2);
        assert_eq!(keys.owner("0123456789abcdef"), Some("line 3"));
        assert_eq!(keys.owner("fedcba9876543210"), Some("ada"));
        for other in ["", "0123456789abcde", "0123456789abcdef0", "ada"] {
            assert_eq!(keys.owner(other), None, "{other}");
        }
        assert!(!format!("{keys:?}").contains("0123456789abcdef"));
    }

    #[test]
    fn every_byte_of_every_digest_is_compared_whichever_key_is_right() {
        let lines: Vec<String> = (0..5).map(|i| format!("n{i}:0123456789abcde{i}")).collect();
        let keys = Keys::parse(&lines.join("\n")).expect("five keys");
        for key in ["0123456789abcde0", "0123456789abcde2", "0123456789abcde4", "wrong", ""] {
            let mut compared = 0;
            let owner = keys.owner_by(key, |a, b| {
                compared += 1;
                differ(a, b)
            });
            assert_eq!(owner, keys.owner(key));
            assert_eq!(owner.is_some(), key.len() == 16, "{key}");
            assert_eq!(compared, 5 * 32, "{key}");
        }
    }

    #[test]
    fn short_keys_and_empty_files_are_refused() {
        assert!(matches!(
            Keys::parse("a\n"),
            Err(KeyError::Short { line: 1, length: 1 })
        ));
        assert!(matches!(Keys::parse("# nothing\n"), Err(KeyError::Empty)));
        assert!(matches!(Keys::read(Path::new("/dev/zero")), Err(KeyError::File { .. })));
    }
}
