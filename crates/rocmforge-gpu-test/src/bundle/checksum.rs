//! Checksums of the files of a bundle.

use super::error::BundleError;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};

/// What is read at once.
const CHUNK: usize = 1 << 20;

/// A file as the manifest has it, once it is unpacked.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    /// Relative to the unpacked folder.
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

impl Expected {
    /// The SHA-256 of a file, or the size that shows that it is another.
    pub(super) fn look_at(&self, file: &mut File) -> io::Result<String> {
        let other_size = |bytes: u64| format!("{bytes} bytes long");
        match file.metadata()?.len() {
            bytes if bytes != self.bytes => return Ok(other_size(bytes)),
            _ => {}
        }
        let mut hash = Sha256::new();
        let hashed = copy(file, self.bytes.saturating_add(1), |chunk| {
            hash.update(chunk);
            Ok(())
        });
        match hashed? {
            bytes if bytes != self.bytes => Ok(other_size(bytes)),
            _ => Ok(hex(&hash.finalize())),
        }
    }

    /// Fails unless what was `found` is the SHA-256.
    pub(super) fn compare(&self, found: &str) -> Result<(), BundleError> {
        if found == self.sha256 {
            return Ok(());
        }
        let is_hash = found.len() == self.sha256.len() && !found.contains(' ');
        Err(BundleError::Damaged {
            path: self.path.clone(),
            found: if is_hash {
                format!("of SHA-256 {found}")
            } else {
                found.to_owned()
            },
            expected: format!("{} bytes of SHA-256 {}", self.bytes, self.sha256),
        })
    }
}

/// Gives at most `most` bytes of `from` to `take`, in chunks. How many there were.
pub(super) fn copy(from: &mut impl Read, most: u64, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<u64> {
    let (mut from, mut buffer, mut bytes) = (from.take(most), vec![0; CHUNK], 0);
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return Ok(bytes),
            Ok(n) => {
                take(&buffer[..n])?;
                bytes += n as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
