//! Bounded cursor over a file's bytes: every read names what it reads and fails at the end.

use crate::error::{GgufError, Result};

/// A position in `bytes`.
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Cursor<'a> {
        Cursor { bytes, at: 0 }
    }

    pub(crate) fn at(&self) -> u64 {
        self.at as u64
    }

    pub(crate) fn rest(&self) -> u64 {
        (self.bytes.len() - self.at) as u64
    }

    pub(crate) fn take(&mut self, len: u64, what: &'static str) -> Result<&'a [u8]> {
        // `len` fits usize where it is at most the rest, which is the length of a slice.
        if len > self.rest() {
            return Err(GgufError::Truncated {
                what,
                at: self.at(),
                need: len,
                have: self.rest(),
            });
        }
        let start = self.at;
        self.at += len as usize;
        Ok(&self.bytes[start..self.at])
    }

    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N]> {
        let bytes = self.take(N as u64, what)?;
        let mut array = [0; N];
        array.copy_from_slice(bytes);
        Ok(array)
    }

    pub(crate) fn u32(&mut self, what: &'static str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self, what: &'static str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A count of things of at least `least_bytes` each, at most `most`, that the rest of the file can hold.
    pub(crate) fn count(&mut self, what: &'static str, least_bytes: u64, most: u64) -> Result<u64> {
        let at = self.at();
        let count = self.u64(what)?;
        self.check_count(what, at, count, least_bytes, most)?;
        Ok(count)
    }

    pub(crate) fn check_count(
        &self,
        what: &'static str,
        at: u64,
        count: u64,
        least_bytes: u64,
        most: u64,
    ) -> Result<()> {
        let most = most.min(self.rest() / least_bytes);
        if count > most {
            return Err(GgufError::TooMany { what, at, count, most });
        }
        Ok(())
    }

    /// The `len` bytes of a string.
    pub(crate) fn text(&mut self, len: u64, what: &'static str) -> Result<String> {
        let at = self.at();
        // Copied first: the bytes may be those of a mapped file, which another process could change after the check.
        let bytes = self.take(len, what)?.to_vec();
        String::from_utf8(bytes).map_err(|error| GgufError::NotUtf8 {
            what,
            at,
            valid: error.utf8_error().valid_up_to(),
        })
    }
}
