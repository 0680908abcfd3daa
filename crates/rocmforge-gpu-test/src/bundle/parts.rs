//! Parts of a file too large for the bundle: they travel one by one and are joined where the bundle is unpacked.

use super::checksum::{Expected, copy, hex};
use super::error::{BundleError, LARGEST, at};
use crate::beneath::inside;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The folder of parts in a bundle.
pub(super) const FOLDER: &str = "parts";
/// The largest file that is joined.
const LARGEST_WHOLE: u64 = 1 << 30;

/// A file that the bundle has in parts.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Whole {
    /// Relative to the unpacked folder.
    path: String,
    sha256: String,
    /// In their order.
    parts: Vec<Part>,
}

/// A part, in the bundle's folder of parts.
#[derive(Debug, Serialize, Deserialize)]
struct Part {
    name: String,
    bytes: u64,
    sha256: String,
}

impl Whole {
    pub(super) fn expected(&self) -> Expected {
        Expected {
            path: self.path.clone(),
            bytes: self.parts.iter().map(|part| part.bytes).fold(0, u64::saturating_add),
            sha256: self.sha256.clone(),
        }
    }
}

impl Part {
    fn missing(&self, place: &Path, why: String) -> BundleError {
        BundleError::Part {
            path: place.to_owned(),
            why,
            bytes: self.bytes,
            sha256: self.sha256.clone(),
        }
    }
}

/// Cuts the file `from` into as few parts of the same size as a bundle's limit allows; `path` is its place once unpacked.
pub(super) fn cut(from: &Path, path: String, bundle: &Path) -> Result<Whole, BundleError> {
    cut_to(from, path, bundle, LARGEST)
}

pub(super) fn cut_to(from: &Path, path: String, bundle: &Path, most: u64) -> Result<Whole, BundleError> {
    let folder = bundle.join(FOLDER);
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let mut file = File::open(from).map_err(at(from))?;
    let total = file.metadata().map_err(at(from))?.len();
    let count = total.div_ceil(most).max(1);
    let stem = path.rsplit('/').next().unwrap_or(&path).to_owned();
    let (mut whole, mut parts) = (Sha256::new(), Vec::new());
    for index in 1..=count {
        let name = format!("{stem}.part{index}-of-{count}");
        let place = folder.join(&name);
        let mut part = File::create(&place).map_err(at(&place))?;
        let mut hash = Sha256::new();
        let bytes = copy(&mut file, total.div_ceil(count), |chunk| {
            whole.update(chunk);
            hash.update(chunk);
            part.write_all(chunk)
        });
        parts.push(Part {
            name,
            bytes: bytes.map_err(at(&place))?,
            sha256: hex(&hash.finalize()),
        });
    }
    Ok(Whole {
        path,
        sha256: hex(&whole.finalize()),
        parts,
    })
}

/// Joins the parts in `bundle` into a file of the unpacked folder, unless that was done before. It comes into its place in one step,
/// once all of it is known to be right, and replaces nothing.
pub(super) fn join(whole: &Whole, bundle: &Path, unpacked: &Path) -> Result<(), BundleError> {
    let names = whole.parts.iter().map(|part| &part.name);
    let usable = inside(Path::new(&whole.path)) && names.clone().all(|name| inside(Path::new(name)));
    if !usable || whole.expected().bytes > LARGEST_WHOLE {
        let why = format!("{:?} or a part of it is no usable name or size", whole.path);
        return Err(BundleError::Unreadable(bundle.to_owned(), why));
    }
    let to = unpacked.join(&whole.path);
    // Whether it is right is looked at later, as with every file.
    if to.symlink_metadata().is_ok() {
        return Ok(());
    }
    // All of them before the first is copied.
    let places: Vec<PathBuf> = names.map(|name| bundle.join(FOLDER).join(name)).collect();
    for (part, place) in whole.parts.iter().zip(&places) {
        match fs::metadata(place) {
            Ok(file) if file.is_file() && file.len() == part.bytes => {}
            Ok(file) => return Err(part.missing(place, format!("it has {} bytes", file.len()))),
            Err(error) => return Err(part.missing(place, error.to_string())),
        }
    }
    let folder = to.parent().unwrap_or(unpacked);
    fs::create_dir_all(folder).map_err(at(folder))?;
    let mut file = tempfile::Builder::new()
        .prefix(".joining-")
        .permissions(fs::Permissions::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(at(folder))?;
    let mut hash = Sha256::new();
    for (part, place) in whole.parts.iter().zip(&places) {
        let mut from = File::open(place).map_err(at(place))?;
        let mut hash_of_part = Sha256::new();
        let copied = copy(&mut from, part.bytes, |chunk| {
            hash.update(chunk);
            hash_of_part.update(chunk);
            file.write_all(chunk)
        });
        copied.map_err(at(place))?;
        let found = hex(&hash_of_part.finalize());
        if found != part.sha256 {
            return Err(part.missing(place, format!("it is damaged: its SHA-256 is {found}")));
        }
    }
    whole.expected().compare(&hex(&hash.finalize()))?;
    match file.persist_noclobber(&to) {
        // Somebody else was faster; theirs is the same.
        Err(_) if to.exists() => Ok(()),
        Err(error) => Err(at(&to)(error.error)),
        Ok(_) => Ok(()),
    }
}
