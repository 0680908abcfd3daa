//! Pull: models from a hub, a URL or a path into the store.

mod download;
pub(crate) mod header;
mod hub;
mod known;
mod pins;

use std::path::Path;

use clap::Args as Arguments;
use download::{Client, Wanted};
use hub::Repository;

use crate::failure::Failure;
use crate::store::{Entry, Manifest, Pulled, Store, new_file};

/// Fetches a model: it goes on where it was cut off, and is verified.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    /// `smollm2`, `gemma3`, `hf:OWNER/REPO` or `hf:OWNER/REPO:QUANT` of Hugging Face's hub, the URL of a GGUF file, or the path of a file or folder.
    #[arg(value_name = "NAME")]
    name: String,
    /// SHA-256 that the file of a URL must have.
    #[arg(long)]
    sha256: Option<String>,
    /// Fetches it again even if it is there.
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let store = Store::of_user()?;
    let entry = match store.find(&args.name)? {
        Some(entry) if !args.force => {
            eprintln!("{} is there (--force fetches it again)", entry.path().display());
            return Ok(());
        }
        Some(old) => {
            let beside = store.beside();
            let new = pull(&beside, &args.name, args.sha256.as_deref())?;
            store.replace(&old, &new)?
        }
        None => pull(&store, &args.name, args.sha256.as_deref())?,
    };
    eprintln!("{}", entry.path().display());
    Ok(())
}

/// Whether a name can be fetched without a place.
pub(crate) fn is_known(name: &str) -> bool {
    name.starts_with("hf:") || known_names().any(|known| known == name)
}

/// Names that can be fetched without a place.
pub(crate) fn known_names() -> impl Iterator<Item = &'static str> {
    known::KNOWN.iter().map(|known| known.name)
}

/// Fetches a model into the store.
///
/// # Errors
/// It is not there, or cannot be fetched or written. What was fetched stays for the next attempt.
pub(crate) fn pull(store: &Store, name: &str, sha256: Option<&str>) -> Result<Entry, Failure> {
    let known = known::KNOWN.iter().find(|known| known.name == name);
    let url = file_of_url(name)?;
    if sha256.is_some() && url.is_none() {
        return Err("--sha256 is for a URL; other models are verified by the hashes that are known".into());
    }
    let manifest = match (name.strip_prefix("hf:"), url) {
        (Some(repository), _) => {
            let client = hub::client();
            let (files, open) = hub::files(&client, &Repository::parse(repository)?)?;
            fetch(store, name, &client, &files, open)?
        }
        (None, Some(file)) => {
            let wanted = Wanted {
                url: name.to_owned(),
                path: file.clone(),
                bytes: None,
                sha256: sha256.map(str::to_ascii_lowercase),
            };
            fetch(store, name, &Client::new(), &[wanted], file)?
        }
        (None, None) => match known {
            Some(known) => known::pull(store, known)?,
            None => copy(store, Path::new(name))?,
        },
    };
    store.finish(&manifest)?;
    let entry = store.find(&manifest.name)?;
    entry.ok_or_else(|| format!("{} was removed while it was pulled", manifest.name).into())
}

/// The GGUF file that a URL names; `None` if the name is no URL.
fn file_of_url(name: &str) -> Result<Option<String>, Failure> {
    if !name.starts_with("https://") && !name.starts_with("http://") {
        return Ok(None);
    }
    let path = name.split(['?', '#']).next();
    let file = path.and_then(|path| path.rsplit('/').next()).unwrap_or("");
    match file.ends_with(".gguf") {
        true => Ok(Some(file.to_owned())),
        false => Err(format!("{name} is not the URL of a GGUF file").into()),
    }
}

fn fetch(store: &Store, name: &str, client: &Client, files: &[Wanted], open: String) -> Result<Manifest, Failure> {
    let folder = store.folder(name);
    let fetched: Result<Vec<Pulled>, _> = files.iter().map(|file| client.fetch(file, &folder)).collect();
    Ok(Manifest {
        name: name.to_owned(),
        source: files.first().map_or_else(String::new, |file| file.url.clone()),
        open,
        files: fetched?,
    })
}

/// The error for a name that is no model's.
fn unknown(name: &str) -> Failure {
    let known = known_names().collect::<Vec<_>>().join(", ");
    format!("{name} is no model that is known ({known}), no hf:OWNER/REPO, URL or path").into()
}

/// Copies a file, or the files of a folder.
fn copy(store: &Store, from: &Path) -> Result<Manifest, Failure> {
    let Ok(metadata) = from.metadata() else {
        return Err(unknown(&from.to_string_lossy()));
    };
    let from = from.canonicalize()?;
    let base = from
        .file_name()
        .and_then(|name| name.to_str())
        .ok_or("the path has no name in UTF-8")?;
    let name = base.strip_suffix(".gguf").unwrap_or(base);
    let folder = store.folder(name);
    let paths = match metadata.is_dir() {
        false => vec![from.clone()],
        true => {
            let entries: Result<Vec<_>, _> = std::fs::read_dir(&from)?.collect();
            let paths = entries?.into_iter().map(|entry| entry.path());
            paths.filter(|path| path.is_file()).collect()
        }
    };
    // Refused before anything is copied.
    rocmforge::models::Model::open(&from)?;
    std::fs::create_dir_all(&folder)?;
    let mut files = Vec::new();
    for path in paths {
        let file = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or("a file has no name in UTF-8")?;
        let to = new_file(&folder)?;
        std::fs::copy(&path, to.path())?;
        let mut read = download::Read::default();
        let mut copied = to.reopen()?;
        read.add_all(&mut copied)?;
        copied.sync_all()?;
        to.persist(folder.join(file))?;
        files.push(Pulled {
            path: file.to_owned(),
            bytes: read.bytes(),
            sha256: read.sha256(),
        });
    }
    Ok(Manifest {
        name: name.to_owned(),
        source: from.display().to_string(),
        open: if metadata.is_dir() {
            ".".to_owned()
        } else {
            base.to_owned()
        },
        files,
    })
}
