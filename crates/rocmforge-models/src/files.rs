//! Files of a model directory: opened as regular files, read with a limit or mapped.

use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use rocmforge_gguf::open_regular;
use serde::de::DeserializeOwned;

/// The most bytes of a file that is read as a whole. The largest tokenizer in use, of 262,144 tokens, has 33 MB.
const LIMIT: u64 = 64 << 20;

/// Why a file of a model directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// It cannot be read, or it is not a regular file.
    #[error("{}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// It is larger than anything of its kind.
    #[error("{}: {size} bytes, more than the {limit} that such a file may have", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// It is not the JSON that it should be.
    #[error("{}: {}", path.display(), crate::text::brief(source))]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
}

impl FileError {
    /// A constructor of [`FileError::Read`] for this file.
    fn read(path: &Path) -> impl Fn(std::io::Error) -> Self {
        move |source| Self::Read {
            path: path.to_path_buf(),
            source,
        }
    }

    /// A constructor of [`FileError::Json`] for this file.
    pub(crate) fn json(path: &Path) -> impl Fn(serde_json::Error) -> Self {
        move |source| Self::Json {
            path: path.to_path_buf(),
            source,
        }
    }
}

/// The result, or `None` if the file does not exist.
fn if_there<T>(result: Result<T, FileError>) -> Result<Option<T>, FileError> {
    match result {
        Err(FileError::Read { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// The whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    read_within(path, LIMIT)
}

/// The whole file, unless it has more bytes than `limit`.
fn read_within(path: &Path, limit: u64) -> Result<Vec<u8>, FileError> {
    let (file, size) = open_regular(path).map_err(FileError::read(path))?;
    let mut bytes = Vec::new();
    // Read to one byte past the limit: the file can have grown since it was opened.
    let size = match size <= limit {
        true => file
            .take(limit + 1)
            .read_to_end(&mut bytes)
            .map_err(FileError::read(path))? as u64,
        false => size,
    };
    if size > limit {
        return Err(FileError::TooLarge {
            path: path.to_path_buf(),
            size,
            limit,
        });
    }
    Ok(bytes)
}

/// The whole file as text, or `None` if it does not exist.
pub(crate) fn read_text_if_there(path: &Path) -> Result<Option<String>, FileError> {
    let invalid = |error| FileError::read(path)(std::io::Error::new(ErrorKind::InvalidData, error));
    if_there(read(path))?
        .map(|bytes| String::from_utf8(bytes).map_err(invalid))
        .transpose()
}

/// The file as JSON, unless it has more bytes than `limit`.
pub(crate) fn read_json_within<T: DeserializeOwned>(path: &Path, limit: u64) -> Result<T, FileError> {
    from_json(&read_within(path, limit)?).map_err(FileError::json(path))
}

/// What is in JSON, or in what Python's module of that name writes: it has numbers that JSON lacks.
fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> serde_json::Result<T> {
    serde_json::from_slice(bytes).or_else(|error| match without_infinity(bytes) {
        Some(texts) => serde_json::from_slice(&texts),
        None => Err(error),
    })
}

/// The same with `Infinity`, `-Infinity` and `NaN` as texts, if there are any outside of texts.
fn without_infinity(bytes: &[u8]) -> Option<Vec<u8>> {
    const NUMBERS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let mut texts = Vec::with_capacity(bytes.len());
    let (mut left, mut in_text, mut found) = (bytes, false, false);
    while let Some(&byte) = left.first() {
        let number = NUMBERS.into_iter().find(|number| !in_text && left.starts_with(number));
        let escaped = in_text && byte == b'\\';
        let length = number.map_or(if escaped { 2 } else { 1 }, <[u8]>::len);
        let (part, rest) = left.split_at(length.min(left.len()));
        in_text ^= byte == b'"';
        found |= number.is_some();
        let quote: &[u8] = if number.is_some() { b"\"" } else { b"" };
        texts.extend([quote, part, quote].into_iter().flatten());
        left = rest;
    }
    found.then_some(texts)
}

/// The file as JSON, or `None` if it does not exist.
pub(crate) fn read_json_if_there<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, FileError> {
    read_json_if_there_within(path, LIMIT)
}

/// The same of a file of at most `limit` bytes.
pub(crate) fn read_json_if_there_within<T: DeserializeOwned>(path: &Path, limit: u64) -> Result<Option<T>, FileError> {
    if_there(read_json_within(path, limit))
}

/// The file, mapped into memory.
pub(crate) fn map(path: &Path) -> Result<Mmap, FileError> {
    let (file, _) = open_regular(path).map_err(FileError::read(path))?;
    // SAFETY: `open_regular` gives regular files only. The map is only ever read as bytes, for which every bit pattern is valid. As with
    // every mapped file, another process that shortens it while it is mapped ends ours with SIGBUS: model files are not edited in use.
    unsafe { Mmap::map(&file) }.map_err(FileError::read(path))
}
