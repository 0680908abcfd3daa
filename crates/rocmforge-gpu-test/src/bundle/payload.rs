//! Many files as two zstd frames: the model, which hardly shrinks whatever the effort, and the binaries, which share most of their
//! code: a window over all of them finds it.

use super::checksum::{Expected, hex};
use super::error::{BundleError, at};
use super::parts::{self, Whole};
use crate::beneath::{inside, open_file, open_root};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The folder of models.
pub(super) const MODELS: &str = "models";
/// The file that makes a folder a bundle.
pub(super) const MANIFEST: &str = "bundle.json";
const PAYLOAD: &str = "payload.zst";
/// The highest without a decoder that needs more than the usual memory, for binaries; and what is good enough for weights.
const LEVEL: i32 = 19;
const LEVEL_OF_MODELS: i32 = 6;
/// As a power of two: all test binaries together. Also the most that decoders take without being asked.
const WINDOW_LOG: u32 = 27;
/// Files of numbers of two bytes.
const WEIGHTS: &str = "safetensors";
/// The folder of the bundle in which it is unpacked.
const FOLDER: &str = "unpacked";
/// The largest file of an honest bundle.
const LARGEST: u64 = 1 << 30;

/// What the payload holds, in its order.
#[derive(Serialize, Deserialize)]
struct Manifest {
    /// What it was built from, as git calls it.
    revision: Option<String>,
    files: Vec<Packed>,
    /// Files that lie beside the payload, in parts.
    #[serde(default)]
    wholes: Vec<Whole>,
}

#[derive(Serialize, Deserialize)]
struct Packed {
    /// Relative to the unpacked folder.
    path: String,
    bytes: u64,
    sha256: String,
    executable: bool,
    /// Whether the payload has its [planes](split) and not itself.
    planes: bool,
}

impl Packed {
    fn expected(&self) -> Expected {
        Expected {
            path: self.path.clone(),
            bytes: self.bytes,
            sha256: self.sha256.clone(),
        }
    }

    /// Its place under `folder`, if it is there and not elsewhere.
    fn place(&self, folder: &Path) -> Option<PathBuf> {
        let path = Path::new(&self.path);
        (inside(path) && self.bytes <= LARGEST).then(|| folder.join(path))
    }
}

/// A bundle whose payload is unpacked.
#[derive(Debug, Clone)]
pub(super) struct Unpacked {
    bundle: PathBuf,
    /// Where it is unpacked, relative to the bundle.
    below: PathBuf,
    pub(super) revision: Option<String>,
    pub(super) files: Vec<Expected>,
}

impl Unpacked {
    pub(super) fn folder(&self) -> PathBuf {
        self.bundle.join(&self.below)
    }

    /// Compares every file with the manifest. No link is followed, and nothing is waited for.
    pub(super) fn verify(&self) -> Result<(), BundleError> {
        let root = open_root(&self.bundle).map_err(at(&self.bundle))?;
        self.files.iter().try_for_each(|file| {
            let path = self.below.join(&file.path);
            let mut opened = match open_file(root.as_fd(), &path) {
                Ok(opened) => opened,
                Err(error) => return file.compare(&format!("no file to read ({error})")),
            };
            let found = file.look_at(&mut opened).map_err(at(&self.bundle.join(&path)))?;
            file.compare(&found)
        })
    }
}

/// Packs the files under `parts` into the payload of `bundle`, and writes its manifest, in which `wholes` are named too.
pub(super) fn pack(
    parts: &Path,
    bundle: &Path,
    revision: Option<String>,
    wholes: Vec<Whole>,
) -> Result<(), BundleError> {
    let mut paths = Vec::new();
    collect(parts, &mut paths)?;
    // The binaries side by side.
    let is_model = |path: &PathBuf| path.starts_with(parts.join(MODELS));
    paths.sort_by_key(|path| (is_model(path), path.clone()));
    let payload = bundle.join(PAYLOAD);
    let io = at(&payload);
    let written = || -> io::Result<Vec<Packed>> {
        let mut file = BufWriter::new(File::create(&payload)?);
        let mut files = Vec::new();
        for frame in paths.chunk_by(|a, b| is_model(a) == is_model(b)) {
            let level = if is_model(&frame[0]) { LEVEL_OF_MODELS } else { LEVEL };
            let mut encoder = zstd::stream::write::Encoder::new(&mut file, level)?;
            encoder.long_distance_matching(true)?;
            encoder.window_log(WINDOW_LOG)?;
            for path in frame {
                let bytes = fs::read(path)?;
                let planes = path.extension().is_some_and(|kind| kind == WEIGHTS);
                match planes {
                    true => encoder.write_all(&split(&bytes))?,
                    false => encoder.write_all(&bytes)?,
                }
                let relative = path.strip_prefix(parts).map_err(io::Error::other)?;
                files.push(Packed {
                    path: relative.to_string_lossy().into_owned(),
                    bytes: bytes.len() as u64,
                    sha256: hex(&Sha256::digest(&bytes)),
                    executable: fs::metadata(path)?.permissions().mode() & 0o100 != 0,
                    planes,
                });
            }
            encoder.finish()?;
        }
        file.flush()?;
        Ok(files)
    };
    let files = written().map_err(io)?;
    let manifest = bundle.join(MANIFEST);
    let contents = Manifest {
        revision,
        files,
        wholes,
    };
    let text = serde_json::to_vec_pretty(&contents).expect("plain data");
    fs::write(&manifest, text).map_err(at(&manifest))
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<(), BundleError> {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let path = entry.map_err(at(folder))?.path();
        match path.is_dir() {
            true => collect(&path, paths)?,
            false => paths.push(path),
        }
    }
    Ok(())
}

/// Unpacks and checks the payload of `bundle` and joins what comes in parts, unless that was done before.
pub(super) fn unpack(bundle: &Path) -> Result<Unpacked, BundleError> {
    let bundle = bundle.canonicalize().map_err(at(bundle))?;
    let unreadable = |why: String| BundleError::Unreadable(bundle.clone(), why);
    let path = bundle.join(MANIFEST);
    let text = fs::read(&path).map_err(at(&path))?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| unreadable(error.to_string()))?;
    // Another bundle in the same place has another name here.
    let name = &hex(&Sha256::digest(&text))[..16];
    let below = Path::new(FOLDER).join(name);
    let (folder, place) = (bundle.join(FOLDER), bundle.join(&below));
    if place.symlink_metadata().is_err() {
        unpack_files(&bundle, &manifest.files, &folder, &place)?;
    }
    for whole in &manifest.wholes {
        parts::join(whole, &bundle, &place)?;
    }
    let files = manifest.files.iter().map(Packed::expected);
    let files = files.chain(manifest.wholes.iter().map(Whole::expected));
    Ok(Unpacked {
        files: files.collect(),
        revision: manifest.revision,
        bundle,
        below,
    })
}

/// Unpacks and checks the payload beside its `place` in `folder`, then moves it there.
fn unpack_files(bundle: &Path, packed: &[Packed], folder: &Path, place: &Path) -> Result<(), BundleError> {
    fs::create_dir_all(folder).map_err(at(folder))?;
    let work = tempfile::Builder::new().prefix(".unpacking-").tempdir_in(folder);
    let work = work.map_err(at(folder))?;
    let payload = bundle.join(PAYLOAD);
    let decoder = File::open(&payload).and_then(|file| {
        let mut decoder = zstd::stream::read::Decoder::new(BufReader::new(file))?;
        decoder.window_log_max(WINDOW_LOG)?;
        Ok(decoder)
    });
    let mut decoder = decoder.map_err(at(&payload))?;
    let files = work.path().join("files");
    fs::create_dir(&files).map_err(at(&files))?;
    for file in packed {
        let path = file.place(&files).ok_or_else(|| {
            let why = format!("{:?} is no usable name or size", file.path);
            BundleError::Unreadable(bundle.to_owned(), why)
        })?;
        unpack_one(&mut decoder, file, &path)?;
    }
    match fs::rename(&files, place) {
        // Somebody else was faster; theirs is the same.
        Err(_) if place.exists() => Ok(()),
        renamed => renamed.map_err(at(place)),
    }
}

fn unpack_one(from: &mut impl Read, file: &Packed, to: &Path) -> Result<(), BundleError> {
    let mut bytes = Vec::new();
    from.take(file.bytes).read_to_end(&mut bytes).map_err(at(to))?;
    if file.planes {
        bytes = joined(&bytes);
    }
    file.expected().compare(&hex(&Sha256::digest(&bytes)))?;
    let folder = to.parent().unwrap_or(to);
    fs::create_dir_all(folder).map_err(at(folder))?;
    fs::write(to, bytes).map_err(at(to))?;
    let mode = if file.executable { 0o755 } else { 0o644 };
    fs::set_permissions(to, fs::Permissions::from_mode(mode)).map_err(at(to))
}

/// First every other byte, beginning with the second, then those between: of f16 numbers, what is alike first (signs and
/// exponents), then what is not. A general compressor saves more than twice as much that way.
fn split(bytes: &[u8]) -> Vec<u8> {
    let (high, low) = (bytes.iter().skip(1).step_by(2), bytes.iter().step_by(2));
    high.chain(low).copied().collect()
}

/// What [`split`] took apart.
fn joined(planes: &[u8]) -> Vec<u8> {
    let half = planes.len() / 2;
    let place = |at: usize| if at.is_multiple_of(2) { half + at / 2 } else { at / 2 };
    (0..planes.len()).map(|at| planes[place(at)]).collect()
}
