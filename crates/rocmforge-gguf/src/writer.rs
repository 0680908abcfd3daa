//! GGUF writer: metadata and tensors in the order they are added, format version 3.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{GgufError, Result};
use crate::limits::{self, ALIGNMENT_KEY, DEFAULT_ALIGNMENT};
use crate::tensor_type::TensorType;
use crate::value::{Array, Value};

/// Bytes before the metadata: magic number, version, two counts.
const HEADER_BYTES: u64 = 24;

/// A tensor to be written.
#[derive(Clone, Debug)]
struct Tensor<'a> {
    name: String,
    dims: Vec<u64>,
    ty: TensorType,
    bytes: Cow<'a, [u8]>,
}

/// A GGUF file in the making. What the reader would refuse is refused when it is added, so a file that is written can
/// be read.
///
/// The tensors' data are aligned to `general.alignment` (a `u32`) where that is among the metadata, else to 32 bytes.
#[derive(Clone, Debug)]
pub struct Writer<'a> {
    keys: HashSet<String>,
    /// The metadata entries as they stand in the file.
    metadata: Vec<u8>,
    /// Strings in all arrays.
    strings: u64,
    alignment: usize,
    names: HashSet<String>,
    tensors: Vec<Tensor<'a>>,
    /// Bytes of the tensors' entries.
    table_bytes: u64,
}

impl Default for Writer<'_> {
    fn default() -> Self {
        Writer::new()
    }
}

impl<'a> Writer<'a> {
    /// A file without metadata and tensors.
    pub fn new() -> Writer<'a> {
        Writer {
            keys: HashSet::new(),
            metadata: Vec::new(),
            strings: 0,
            alignment: DEFAULT_ALIGNMENT,
            names: HashSet::new(),
            tensors: Vec::new(),
            table_bytes: 0,
        }
    }

    /// Adds a metadata entry.
    ///
    /// # Errors [`GgufError::EmptyKey`], [`GgufError::KeyTooLong`], [`GgufError::ControlCharacter`], [`GgufError::DuplicateKey`],
    /// [`GgufError::TooMany`] for the entry after 65,536 others, a string of more than 2^30 bytes, an array of more than 2^30 elements or more
    /// than 4,194,304 strings in all arrays, [`GgufError::BadAlignment`] and
    /// [`GgufError::AlignmentType`] for `general.alignment`. A position in an error is where the entry would stand. The
    /// writer is unchanged then.
    pub fn metadata(&mut self, key: impl Into<String>, value: impl Into<Value>) -> Result<&mut Self> {
        let (key, value) = (key.into(), value.into());
        let at = HEADER_BYTES + self.metadata.len() as u64;
        limits::check_key(key.len() as u64, at)?;
        limits::check_name(&key, "a metadata key", at)?;
        limits::check_count("metadata entries", self.keys.len() + 1, limits::MAX_ENTRIES, at)?;
        if self.keys.contains(&key) {
            return Err(GgufError::DuplicateKey { key, at });
        }
        check_lengths(&value, limits::MAX_STRINGS - self.strings, at)?;
        if key == ALIGNMENT_KEY {
            self.alignment = match &value {
                Value::U32(alignment) => limits::check_alignment(u64::from(*alignment))?,
                other => {
                    return Err(GgufError::AlignmentType {
                        found: other.value_type(),
                    });
                }
            };
        }
        if let Value::Array(Array::String(items)) = &value {
            self.strings += items.len() as u64;
        }
        put_text(&mut self.metadata, &key);
        put_value(&mut self.metadata, &value);
        self.keys.insert(key);
        Ok(self)
    }

    /// Adds a tensor: its dimensions, the contiguous one first, and its data, whole blocks of `ty`.
    ///
    /// # Errors [`GgufError::BadNameLength`], [`GgufError::ControlCharacter`], [`GgufError::TooMany`] for the tensor after 262,144 others,
    /// [`GgufError::DuplicateTensor`], [`GgufError::BadDimCount`],
    /// [`GgufError::ZeroDim`], [`GgufError::TensorTooLarge`], [`GgufError::RowNotBlocks`],
    /// [`GgufError::WrongByteLength`]. The writer is unchanged then.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        dims: &[usize],
        ty: TensorType,
        bytes: impl Into<Cow<'a, [u8]>>,
    ) -> Result<&mut Self> {
        let (name, bytes) = (name.into(), bytes.into());
        let len = name.len() as u64;
        let at = HEADER_BYTES + self.metadata.len() as u64 + self.table_bytes;
        if len == 0 || len > limits::MAX_NAME_BYTES {
            return Err(GgufError::BadNameLength {
                at,
                len,
                most: limits::MAX_NAME_BYTES,
            });
        }
        limits::check_name(&name, "a tensor name", at)?;
        limits::check_count("tensors", self.names.len() + 1, limits::MAX_TENSORS, at)?;
        if self.names.contains(&name) {
            return Err(GgufError::DuplicateTensor { name });
        }
        let dims: Vec<u64> = dims.iter().map(|&dim| dim as u64).collect();
        let (_, expected) = limits::tensor_size(&name, &dims, ty)?;
        if bytes.len() != expected {
            return Err(GgufError::WrongByteLength {
                name,
                found: bytes.len() as u64,
                expected: expected as u64,
            });
        }
        self.table_bytes += 8 + len + 4 + 8 * dims.len() as u64 + 4 + 8;
        self.names.insert(name.clone());
        self.tensors.push(Tensor { name, dims, ty, bytes });
        Ok(self)
    }

    /// Writes the file to a stream.
    ///
    /// # Errors
    /// [`GgufError::Write`] with the stream's error.
    pub fn write_to(&self, mut out: impl Write) -> Result<()> {
        let head = self.head();
        out.write_all(&head)?;
        write_padding(&mut out, head.len(), self.alignment)?;
        for tensor in &self.tensors {
            out.write_all(&tensor.bytes)?;
            write_padding(&mut out, tensor.bytes.len(), self.alignment)?;
        }
        out.flush()?;
        Ok(())
    }

    /// The file's bytes.
    ///
    /// # Errors
    /// None at present; as [`Writer::write_to`].
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes the file under `path`, in place of a file that is there. The data go to a file beside it, which is
    /// renamed when it is complete and on disk: at no time is there half a file under the name.
    ///
    /// # Errors
    /// [`GgufError::Io`]; the file beside is removed and `path` is as it was.
    pub fn write_file(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let beside = beside(path);
        let file = File::create_new(&beside).map_err(|source| io_error("open", &beside, source))?;
        let written = self
            .fill(file, &beside)
            .and_then(|()| fs::rename(&beside, path).map_err(|source| io_error("rename", path, source)));
        if written.is_err() {
            // The first error is the one to report; a file that cannot be removed stays under its own name.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    fn fill(&self, file: File, path: &Path) -> Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, file);
        self.write_to(&mut out).map_err(|error| match error {
            GgufError::Write(source) => io_error("write", path, source),
            error => error,
        })?;
        out.get_ref()
            .sync_all()
            .map_err(|source| io_error("write", path, source))
    }

    /// Everything before the tensors' data, without padding.
    fn head(&self) -> Vec<u8> {
        let mut head = Vec::new();
        head.extend(b"GGUF");
        head.extend(3_u32.to_le_bytes());
        head.extend((self.tensors.len() as u64).to_le_bytes());
        head.extend((self.keys.len() as u64).to_le_bytes());
        head.extend(&self.metadata);
        let mut offset = 0_u64;
        for Tensor { name, dims, ty, bytes } in &self.tensors {
            put_text(&mut head, name);
            head.extend((dims.len() as u32).to_le_bytes());
            dims.iter().for_each(|dim| head.extend(dim.to_le_bytes()));
            head.extend(ty.id().to_le_bytes());
            head.extend(offset.to_le_bytes());
            // The tensors are in this machine's memory, so their sum with padding is far below 2^64.
            offset += (bytes.len() as u64).next_multiple_of(self.alignment as u64);
        }
        head
    }
}

fn io_error(action: &'static str, path: &Path, source: std::io::Error) -> GgufError {
    GgufError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}

/// A name in the same folder that no other writer of this or another process uses.
fn beside(path: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut name = std::ffi::OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.{number}.part", std::process::id()));
    path.with_file_name(name)
}

/// Zeros from `len` to the next multiple of `alignment`.
fn write_padding(out: &mut impl Write, len: usize, alignment: usize) -> Result<()> {
    let zeros = vec![0; len.next_multiple_of(alignment) - len];
    out.write_all(&zeros)?;
    Ok(())
}

/// The limits on strings and arrays.
/// That texts and arrays are no longer than a reader takes, which is `strings` for one of texts.
fn check_lengths(value: &Value, strings: u64, at: u64) -> Result<()> {
    let check_text = |text: &String| limits::check_count("bytes of a metadata string", text.len(), limits::MAX_LEN, at);
    match value {
        Value::String(text) => check_text(text),
        Value::Array(Array::String(items)) => {
            limits::check_count("array elements", items.len(), strings, at)?;
            items.iter().try_for_each(check_text)
        }
        Value::Array(array) => limits::check_count("array elements", array.len(), limits::MAX_LEN, at),
        _ => Ok(()),
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u64).to_le_bytes());
    out.extend(text.as_bytes());
}

fn put_value(out: &mut Vec<u8>, value: &Value) {
    out.extend(value.value_type().id().to_le_bytes());
    match value {
        Value::U8(value) => out.extend(value.to_le_bytes()),
        Value::I8(value) => out.extend(value.to_le_bytes()),
        Value::U16(value) => out.extend(value.to_le_bytes()),
        Value::I16(value) => out.extend(value.to_le_bytes()),
        Value::U32(value) => out.extend(value.to_le_bytes()),
        Value::I32(value) => out.extend(value.to_le_bytes()),
        Value::F32(value) => out.extend(value.to_le_bytes()),
        Value::Bool(value) => out.push(u8::from(*value)),
        Value::String(value) => put_text(out, value),
        Value::U64(value) => out.extend(value.to_le_bytes()),
        Value::I64(value) => out.extend(value.to_le_bytes()),
        Value::F64(value) => out.extend(value.to_le_bytes()),
        Value::Array(array) => {
            out.extend(array.value_type().id().to_le_bytes());
            out.extend((array.len() as u64).to_le_bytes());
            put_elements(out, array);
        }
    }
}

fn put_elements(out: &mut Vec<u8>, array: &Array) {
    fn each<T: Copy, const N: usize>(out: &mut Vec<u8>, items: &[T], bytes: fn(T) -> [u8; N]) {
        items.iter().for_each(|&item| out.extend(bytes(item)));
    }
    match array {
        Array::U8(items) => out.extend(items),
        Array::I8(items) => each(out, items, i8::to_le_bytes),
        Array::U16(items) => each(out, items, u16::to_le_bytes),
        Array::I16(items) => each(out, items, i16::to_le_bytes),
        Array::U32(items) => each(out, items, u32::to_le_bytes),
        Array::I32(items) => each(out, items, i32::to_le_bytes),
        Array::F32(items) => each(out, items, f32::to_le_bytes),
        Array::Bool(items) => out.extend(items.iter().map(|&item| u8::from(item))),
        Array::String(items) => items.iter().for_each(|text| put_text(out, text)),
        Array::U64(items) => each(out, items, u64::to_le_bytes),
        Array::I64(items) => each(out, items, i64::to_le_bytes),
        Array::F64(items) => each(out, items, f64::to_le_bytes),
    }
}
