//! Opened models: one GGUF file or all parts of a split one, mapped or in memory.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use crate::error::{GgufError, Result};
use crate::file::open_regular;
use crate::metadata::Metadata;
use crate::parse::{Parsed, TensorInfo, parse};

/// Metadata key of a part's number, from 0.
const SPLIT_NO: &str = "split.no";
/// Metadata key of the number of parts.
const SPLIT_COUNT: &str = "split.count";
/// Metadata key of the number of tensors in all parts.
const SPLIT_TENSORS: &str = "split.tensors.count";

/// The bytes of one file.
#[derive(Debug)]
enum Storage {
    Mapped(Mmap),
    Memory(Vec<u8>),
}

impl Storage {
    fn bytes(&self) -> &[u8] {
        match self {
            Storage::Mapped(map) => map,
            Storage::Memory(bytes) => bytes,
        }
    }
}

/// An opened model: one file, or all parts of a split one.
#[derive(Debug)]
pub struct Gguf {
    parts: Vec<Storage>,
    version: u32,
    alignment: usize,
    metadata: Metadata,
    tensors: Vec<TensorInfo>,
    index: HashMap<String, usize>,
}

impl Gguf {
    /// Opens a model by mapping its file; nothing of the tensors is read before it is used.
    ///
    /// Of a split model `path` must name the first part, `PREFIX-00001-of-COUNT.gguf`; the others are looked for beside
    /// it. The metadata are those of the first part.
    ///
    /// While the model is open no other process may shorten or rewrite its files: reading a page that a shorter file no
    /// longer has ends this process with SIGBUS, and rewritten tensors are seen rewritten. [`Gguf::open_read`] has
    /// neither limit and needs memory for the whole file.
    ///
    /// # Errors
    /// [`GgufError::Io`] where a file cannot be opened, else [`GgufError::File`] with what is wrong in it.
    pub fn open(path: impl AsRef<Path>) -> Result<Gguf> {
        Gguf::open_with(path.as_ref(), map)
    }

    /// Opens a model by reading its files into memory. Later changes of the files have no effect.
    ///
    /// # Errors
    /// As [`Gguf::open`].
    pub fn open_read(path: impl AsRef<Path>) -> Result<Gguf> {
        Gguf::open_with(path.as_ref(), read)
    }

    /// A model of one file whose bytes are in memory.
    ///
    /// # Errors
    /// What is wrong with the bytes; [`GgufError::SplitInMemory`] for a part of a split model.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Gguf> {
        let parsed = parse(&bytes, 0)?;
        let count = parsed.metadata.opt_u64(SPLIT_COUNT)?.unwrap_or(1);
        if count > 1 {
            return Err(GgufError::SplitInMemory { count });
        }
        Gguf::of_first(Storage::Memory(bytes), parsed)
    }

    fn open_with(path: &Path, load: fn(&Path) -> Result<Storage>) -> Result<Gguf> {
        let storage = load(path).map_err(|error| error.in_file(path))?;
        let (mut gguf, siblings) = first_part(storage, path).map_err(|error| error.in_file(path))?;
        let count = siblings.len() as u64 + 1;
        for (number, sibling) in (1..).zip(&siblings) {
            let added = load(sibling).and_then(|storage| gguf.add_part(storage, number, count));
            added.map_err(|error| error.in_file(sibling))?;
        }
        gguf.check_tensor_count().map_err(|error| error.in_file(path))?;
        Ok(gguf)
    }

    fn of_first(storage: Storage, parsed: Parsed) -> Result<Gguf> {
        let Parsed {
            version,
            alignment,
            metadata,
            tensors,
        } = parsed;
        let mut gguf = Gguf {
            parts: vec![storage],
            version,
            alignment,
            metadata,
            tensors: Vec::new(),
            index: HashMap::new(),
        };
        gguf.add_tensors(tensors)?;
        Ok(gguf)
    }

    /// Adds part `number` (from 0) of `count`.
    fn add_part(&mut self, storage: Storage, number: u64, count: u64) -> Result<()> {
        let parsed = parse(storage.bytes(), self.parts.len())?;
        for (key, expected) in [(SPLIT_NO, number), (SPLIT_COUNT, count)] {
            let found = parsed.metadata.u64(key)?;
            if found != expected {
                return Err(GgufError::WrongPart { key, found, expected });
            }
        }
        self.parts.push(storage);
        self.add_tensors(parsed.tensors)
    }

    fn add_tensors(&mut self, tensors: Vec<TensorInfo>) -> Result<()> {
        self.index.reserve(tensors.len());
        self.tensors.reserve(tensors.len());
        for tensor in tensors {
            if self.index.insert(tensor.name.clone(), self.tensors.len()).is_some() {
                return Err(GgufError::DuplicateTensor { name: tensor.name });
            }
            self.tensors.push(tensor);
        }
        Ok(())
    }

    fn check_tensor_count(&self) -> Result<()> {
        let expected = self.tensors.len() as u64;
        match self.metadata.opt_u64(SPLIT_TENSORS)? {
            Some(found) if self.parts.len() > 1 && found != expected => Err(GgufError::WrongPart {
                key: SPLIT_TENSORS,
                found,
                expected,
            }),
            _ => Ok(()),
        }
    }

    /// The format's version, 2 or 3.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// Alignment of the tensors' data in the (first) file, in bytes: a power of two.
    pub fn alignment(&self) -> usize {
        self.alignment
    }

    /// The metadata; of a split model those of the first part.
    pub fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// All tensors, in file order.
    pub fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    /// The tensor with this name.
    pub fn tensor(&self, name: &str) -> Option<&TensorInfo> {
        self.tensors.get(*self.index.get(name)?)
    }

    /// The data of a tensor of this model: exactly [`TensorInfo::byte_len`] bytes, not copied.
    ///
    /// Mapped data are aligned to [`Gguf::alignment`] or a page, whichever is less; data in memory may be unaligned.
    /// The tensor of another model gives other bytes, or none where this one is shorter.
    pub fn data(&self, tensor: &TensorInfo) -> &[u8] {
        let part = self.parts.get(tensor.part).map_or(&[][..], Storage::bytes);
        part.get(tensor.start..)
            .and_then(|rest| rest.get(..tensor.byte_len))
            .unwrap_or_default()
    }

    /// Number of files: 1 except for a split model.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Length of all files in bytes.
    pub fn file_len(&self) -> u64 {
        self.parts.iter().map(|part| part.bytes().len() as u64).sum()
    }
}

/// The model of a first part, and the paths of the parts after it.
fn first_part(storage: Storage, path: &Path) -> Result<(Gguf, Vec<PathBuf>)> {
    let parsed = parse(storage.bytes(), 0)?;
    let count = parsed.metadata.opt_u64(SPLIT_COUNT)?.unwrap_or(1);
    let number = parsed.metadata.opt_u64(SPLIT_NO)?.unwrap_or(0);
    let mut siblings = Vec::new();
    if count > 1 {
        if number != 0 {
            return Err(GgufError::NotFirstPart { number, count });
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let prefix = name.strip_suffix(&format!("-00001-of-{count:05}.gguf"));
        // Five digits: a larger count has no name.
        let Some(prefix) = prefix.filter(|_| count <= 99_999) else {
            return Err(GgufError::BadPartName { count });
        };
        siblings = (2..=count)
            .map(|i| path.with_file_name(format!("{prefix}-{i:05}-of-{count:05}.gguf")))
            .collect();
    }
    Ok((Gguf::of_first(storage, parsed)?, siblings))
}

fn open_file(path: &Path) -> Result<(File, u64)> {
    open_regular(path).map_err(|source| GgufError::Io {
        action: "open",
        path: path.to_path_buf(),
        source,
    })
}

fn map(path: &Path) -> Result<Storage> {
    let (file, len) = open_file(path)?;
    if len == 0 {
        // An empty range cannot be mapped.
        return Ok(Storage::Memory(Vec::new()));
    }
    // SAFETY: the map is read-only and private to this model. Its length is that of the file, which `Mmap::map` reads.
    // That the file keeps its length and contents is a condition that `Gguf::open` states: the system has no call that
    // secures it. Bytes are only read as plain numbers, and text is copied before it is checked as UTF-8.
    let mapped = unsafe { Mmap::map(&file) };
    mapped.map(Storage::Mapped).map_err(|source| GgufError::Io {
        action: "map",
        path: path.to_path_buf(),
        source,
    })
}

fn read(path: &Path) -> Result<Storage> {
    let (file, len) = open_file(path)?;
    let io_error = |source| GgufError::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    };
    let mut bytes = Vec::new();
    // The length is only a hint; a file larger than the memory is an error, not an abort.
    let reserved = usize::try_from(len)
        .ok()
        .and_then(|len| bytes.try_reserve_exact(len).ok());
    reserved.ok_or_else(|| io_error(std::io::Error::from(std::io::ErrorKind::OutOfMemory)))?;
    file.take(len).read_to_end(&mut bytes).map_err(io_error)?;
    Ok(Storage::Memory(bytes))
}
