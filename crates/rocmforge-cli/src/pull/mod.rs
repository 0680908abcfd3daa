//! Pull: models from a hub, a URL or a path into the store.

mod download;
pub(crate) mod header;
mod hub;
mod known;
mod pins;

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::Args as Arguments;
use download::{Client, Wanted};
use hub::{OF_MODULES, Repository, Split, is_of_module};
use pins::PinnedModel;

use crate::failure::Failure;
use crate::load;
use crate::store::{Entry, Manifest, Pulled, Store, is_allowed, new_file};

/// Fetches a model: it goes on where it was cut off, and is verified.
#[derive(Arguments, Debug)]
pub(crate) struct Args {
    /// `smollm2`, `gemma3`, `hf:OWNER/REPO` or `hf:OWNER/REPO:QUANT` of Hugging Face's hub, the URL of a GGUF file, or the path of a file or folder.
    #[arg(value_name = "NAME")]
    name: String,
    /// SHA-256 that the file of a URL must have, as 64 hexadecimal digits.
    #[arg(long, value_parser = sha256)]
    sha256: Option<String>,
    /// Fetches it again even if it is there, and then replaces it; also a model that was pulled from another place.
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let (store, source) = (Store::of_user()?, Source::parse(&args.name, args.sha256.as_deref())?);
    if !args.force
        && let Some(entry) = store.find(source.name())?
    {
        source.check_same(&entry)?;
        eprintln!("{} is there (--force fetches it again)", entry.path().display());
        return Ok(());
    }
    eprintln!("{}", source.pull(&store, args.force)?.path().display());
    Ok(())
}

/// A hash as it is typed, in lower case.
fn sha256(text: &str) -> Result<String, String> {
    match text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("it is 64 hexadecimal digits".to_owned()),
    }
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a name can be fetched without a place.
pub(crate) fn is_known(name: &str) -> bool {
    name.starts_with("hf:") || known_names().any(|known| known == name)
}

/// Names that can be fetched without a place.
pub(crate) fn known_names() -> impl Iterator<Item = &'static str> {
    known::KNOWN.iter().map(|known| known.name)
}

/// Fetches a model that is known into the store.
///
/// # Errors
/// It is not there, or cannot be fetched or written. What was fetched stays for the next attempt.
pub(crate) fn pull(store: &Store, name: &str) -> Result<Entry, Failure> {
    Source::parse(name, None)?.pull(store, false)
}

/// Where a model comes from.
enum Source {
    Known(&'static PinnedModel),
    /// The name, and what it says.
    Hub(String, Repository),
    /// A file that is named by its URL.
    Url(Wanted),
    /// The name, and the absolute path of the file or folder.
    Path(String, PathBuf),
}

impl Source {
    fn parse(name: &str, sha256: Option<&str>) -> Result<Self, Failure> {
        let url = file_of_url(name)?;
        if sha256.is_some() && url.is_none() {
            return Err("--sha256 is for a URL; other models are verified by the hashes that are known".into());
        }
        if let Some(repository) = name.strip_prefix("hf:") {
            return Ok(Self::Hub(name.to_owned(), Repository::parse(repository)?));
        }
        if let Some(file) = url {
            return Ok(Self::Url(Wanted {
                url: name.to_owned(),
                path: file,
                bytes: None,
                sha256: sha256.map(str::to_owned),
                most: None,
            }));
        }
        if let Some(known) = known::KNOWN.iter().find(|known| known.name == name) {
            return Ok(Self::Known(known));
        }
        // The name is that of the link, where the path is one.
        let mut path = std::path::absolute(name)?;
        if path.file_name().is_none() {
            path = path.canonicalize()?;
        }
        let file = file_name(&path)?;
        Ok(Self::Path(file.strip_suffix(".gguf").unwrap_or(file).to_owned(), path))
    }

    /// The model's name in the store.
    fn name(&self) -> &str {
        match self {
            Self::Known(known) => known.name,
            Self::Hub(name, _) | Self::Path(name, _) => name,
            Self::Url(wanted) => &wanted.url,
        }
    }

    /// Refuses a model of this name that came from another place, or has another hash than is asked for.
    fn check_same(&self, entry: &Entry) -> Result<(), Failure> {
        let (name, from) = (self.name(), &entry.manifest.source);
        let is_same = match self {
            Self::Known(known) => *from == known.source(),
            Self::Hub(..) => true,
            Self::Url(wanted) => {
                let there = entry.manifest.files.first().map_or("", |file| &file.sha256);
                if let Some(expected) = wanted.sha256.as_deref().filter(|expected| *expected != there) {
                    return Err(format!(
                        "{name} is there, and its SHA-256 is {there}, not {expected} (--force fetches it again)"
                    )
                    .into());
                }
                true
            }
            // A name of the store is no path.
            Self::Path(_, path) => path.to_str() == Some(from) || !path.exists(),
        };
        match is_same {
            true => Ok(()),
            false => Err(format!("a model {name} is there, which was pulled from {from} (--force replaces it)").into()),
        }
    }

    /// Fetches the model and puts it into the store. One that is there is replaced at the end, or with `force` unset returned.
    fn pull(&self, store: &Store, force: bool) -> Result<Entry, Failure> {
        if let Self::Path(_, path) = self {
            // Refused before anything is copied.
            if !path.exists() {
                return Err(unknown(&path.to_string_lossy()));
            }
            load::check(path)?;
        }
        let locked = store.lock(self.name())?;
        // Another process may have pulled it in between.
        if !force && let Some(entry) = locked.entry()? {
            self.check_same(&entry)?;
            return Ok(entry);
        }
        let folder = locked.part()?;
        let fetched = self.fetch(folder);
        // Nothing was fetched: then nothing stays.
        let _ = std::fs::remove_dir(folder);
        let manifest = fetched?;
        load::check(&folder.join(&manifest.open)).map_err(|error| {
            let name = self.name();
            format!(
                "{name} was fetched and cannot be opened: {error}. `rocmforge rm '{name}'` removes what was fetched"
            )
        })?;
        locked.finish(manifest)
    }

    /// Brings the model's files into a folder.
    fn fetch(&self, folder: &Path) -> Result<Manifest, Failure> {
        let (client, mut files, open) = match self {
            Self::Known(known) => return known::fetch(known, folder),
            Self::Path(name, path) => return copy(name, path, folder),
            Self::Hub(_, repository) => {
                let client = hub::client();
                let (files, open) = hub::files(&client, repository)?;
                (client, files, open)
            }
            Self::Url(wanted) => (Client::new(), parts_of_url(wanted)?, wanted.path.clone()),
        };
        header::check(&client, &mut files, &open)
            .map_err(|error| format!("{} is not fetched: {error}. Only its header was read", self.name()))?;
        let fetched: Result<Vec<Pulled>, _> = files.iter().map(|file| client.fetch(file, folder)).collect();
        Ok(Manifest {
            name: self.name().to_owned(),
            source: files.first().map_or_else(String::new, |file| file.url.clone()),
            open,
            files: fetched?,
        })
    }
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

/// All parts of a split model whose first part a URL names; the file alone, if it is whole.
fn parts_of_url(first: &Wanted) -> Result<Vec<Wanted>, Failure> {
    let Some(split) = Split::of(&first.path).filter(|split| split.count > 1) else {
        return Ok(vec![first.clone()]);
    };
    let (url, part, count) = (&first.url, split.part, split.count);
    if part != 1 {
        return Err(format!(
            "{url} is part {part} of {count} of a model: name the first part, {}, and the others are found",
            split.name(1)
        )
        .into());
    }
    if first.sha256.is_some() {
        return Err(format!("--sha256 is for one file, and {url} is the first of {count} parts: leave it out").into());
    }
    // The file's name stands at the end of the URL's path; a query may follow.
    let path_end = url.find(['?', '#']).unwrap_or(url.len());
    let folder = &url[..path_end.saturating_sub(first.path.len())];
    let parts = (1..=count).map(|part| Wanted {
        url: format!("{folder}{}{}", split.name(part), &url[path_end..]),
        path: split.name(part),
        ..first.clone()
    });
    Ok(parts.collect())
}

/// The error for a name that is no model's.
fn unknown(name: &str) -> Failure {
    let known = known_names().collect::<Vec<_>>().join(", ");
    format!("{name} is no model that is known ({known}), no hf:OWNER/REPO, URL or path").into()
}

/// A path's last part, as text.
fn file_name(path: &Path) -> Result<&str, Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    name.ok_or_else(|| format!("{} has no name in UTF-8", path.display()).into())
}

/// Copies a file, all parts of a split one, or the files of a folder with those of its modules.
fn copy(name: &str, from: &Path, folder: &Path) -> Result<Manifest, Failure> {
    let (root, names, open) = match from.is_dir() {
        true => (from, names_in(from)?, "."),
        false => {
            let file = file_name(from)?;
            let root = from.parent().unwrap_or(from);
            let mut names = vec![file.to_owned()];
            if let Some(split) = Split::of(file) {
                let parts = (1..=split.count).map(|part| split.name(part));
                // The model can be opened: a part that is not there is not of it.
                names.extend(parts.filter(|name| name != file && root.join(name).is_file()));
            }
            (root, names, file)
        }
    };
    let mut files = Vec::new();
    for file in names.iter().filter(|name| is_allowed(name)) {
        let path = root.join(file);
        let copied = copy_file(&path, folder, file);
        files.push(copied.map_err(|error| format!("{} cannot be copied: {error}", path.display()))?);
    }
    Ok(Manifest {
        name: name.to_owned(),
        source: from.display().to_string(),
        open: open.to_owned(),
        files,
    })
}

/// Files of a model's folder, and of the folders of its modules.
fn names_in(folder: &Path) -> Result<Vec<String>, Failure> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_file() {
            names.push(file_name(&path)?.to_owned());
        } else if let Ok(module) = file_name(&path) {
            let files = OF_MODULES.map(|file| format!("{module}/{file}"));
            names.extend(
                files
                    .into_iter()
                    .filter(|name| is_of_module(name) && folder.join(name).is_file()),
            );
        }
    }
    Ok(names)
}

/// Copies a file's bytes: the copy can be read and written, whatever the permissions of the file are.
fn copy_file(from: &Path, folder: &Path, name: &str) -> std::io::Result<Pulled> {
    let (mut from, mut to) = (File::open(from)?, new_file(folder)?);
    let mut read = download::Read::default();
    read.copy(&mut from, &mut to)?;
    to.as_file().sync_all()?;
    let path = folder.join(name);
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    to.persist(path)?;
    Ok(read.pulled(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_modules_are_of_the_model() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [
            "config.json",
            "1_Pooling/config.json",
            "2_Dense/model.safetensors",
            "2_Dense/notes.txt",
            "onnx/model.safetensors",
        ];
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("inside")).expect("made");
            std::fs::write(path, file).expect("written");
        }
        let mut names = names_in(folder.path()).expect("read");
        names.sort();
        assert_eq!(
            names,
            ["1_Pooling/config.json", "2_Dense/model.safetensors", "config.json"]
        );
        let copies = tempfile::tempdir().expect("a folder");
        let manifest = copy("tiny", folder.path(), copies.path()).expect("copied");
        assert_eq!((manifest.open.as_str(), manifest.files.len()), (".", 3));
        for name in names {
            let copied = std::fs::read_to_string(copies.path().join(&name)).expect("copied");
            assert_eq!(copied, name);
        }
    }
}
