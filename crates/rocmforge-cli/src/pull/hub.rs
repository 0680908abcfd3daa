//! Hugging Face's hub: which files of a repository are the model that is meant.

use serde::Deserialize;

use super::download::{Client, Wanted};
use crate::failure::Failure;
use crate::store::is_allowed;

/// The quantisation that is taken where none is named, if the repository has it.
const USUAL: &str = "Q4_K_M";

/// `hf:OWNER/REPO[:QUANT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Repository {
    owner: String,
    name: String,
    quant: Option<String>,
}

impl Repository {
    /// Parses what stands after `hf:`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let form = || format!("hf:{text} is not hf:OWNER/REPO or hf:OWNER/REPO:QUANT");
        let (path, quant) = match text.split_once(':') {
            Some((path, quant)) => (path, Some(quant)),
            None => (text, None),
        };
        let (owner, name) = path.split_once('/').ok_or_else(form)?;
        let is_name = |name: &str| {
            let letters = name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            letters && !name.is_empty() && !name.starts_with('.')
        };
        if !is_name(owner) || !is_name(name) || quant.is_some_and(|quant| !is_name(quant)) {
            return Err(form().into());
        }
        Ok(Self {
            owner: owner.to_owned(),
            name: name.to_owned(),
            quant: quant.map(str::to_owned),
        })
    }
}

/// A file as the hub lists it.
#[derive(Debug, Deserialize)]
struct Listed {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    size: u64,
    lfs: Option<Lfs>,
}

/// A large file: the hub knows its hash.
#[derive(Debug, Deserialize)]
struct Lfs {
    oid: String,
}

/// The hub's address.
pub(crate) fn endpoint() -> String {
    let endpoint = std::env::var("HF_ENDPOINT").unwrap_or_default();
    match endpoint.trim_end_matches('/') {
        "" => "https://huggingface.co".to_owned(),
        endpoint => endpoint.to_owned(),
    }
}

/// A client of the hub, with the user's token.
pub(crate) fn client() -> Client {
    let token = std::env::var("HF_TOKEN").ok().filter(|token| !token.is_empty());
    Client::new().with_token(&format!("{}/", endpoint()), token)
}

/// The files of a repository that are the model, and which of them is opened: `.` for the folder.
pub(crate) fn files(client: &Client, repository: &Repository) -> Result<(Vec<Wanted>, String), Failure> {
    let (endpoint, path) = (endpoint(), format!("{}/{}", repository.owner, repository.name));
    let list = client.text(
        &format!("{endpoint}/api/models/{path}/tree/main?recursive=true"),
        "application/json",
    )?;
    let list: Vec<Listed> = serde_json::from_str(&list)?;
    let list: Vec<Listed> = list
        .into_iter()
        .filter(|file| file.kind == "file" && is_allowed(&file.path))
        .collect();
    let (chosen, open) = choose(&list, repository)?;
    let wanted = |file: &&Listed| Wanted {
        url: format!(
            "{endpoint}/{path}/resolve/main/{}",
            file.path
                .replace('%', "%25")
                .replace(' ', "%20")
                .replace('#', "%23")
                .replace('?', "%3F")
        ),
        path: file.path.clone(),
        bytes: Some(file.size),
        sha256: file.lfs.as_ref().map(|lfs| lfs.oid.clone()),
        most: None,
    };
    Ok((chosen.iter().map(wanted).collect(), open))
}

/// Chooses the model's files.
fn choose<'a>(list: &'a [Listed], repository: &Repository) -> Result<(Vec<&'a Listed>, String), Failure> {
    let ggufs: Vec<&Listed> = list.iter().filter(|file| is_model(&file.path)).collect();
    if ggufs.is_empty() && repository.quant.is_none() && list.iter().any(|file| file.path == "config.json") {
        let wanted = |file: &&Listed| match file.path.contains('/') {
            true => is_of_module(&file.path),
            false => [".safetensors", ".json", ".jinja"]
                .iter()
                .any(|end| file.path.ends_with(end)),
        };
        return Ok((list.iter().filter(wanted).collect(), ".".to_owned()));
    }
    let mut quants: Vec<&str> = ggufs.iter().map(|file| quant_of(&file.path)).collect();
    quants.sort_unstable();
    quants.dedup();
    let asked = repository.quant.as_deref();
    let is = |quant: &str, other: &str| quant.eq_ignore_ascii_case(other);
    let quant = match asked {
        Some(asked) => quants.iter().find(|quant| is(quant, asked)),
        None if quants.len() == 1 => quants.first(),
        None => quants.iter().find(|quant| is(quant, USUAL)),
    };
    let Some(quant) = quant else {
        let (owner, name) = (&repository.owner, &repository.name);
        return Err(match quants.as_slice() {
            [] => {
                format!("hf:{owner}/{name} has no GGUF file and no config.json: it is no model that can be run").into()
            }
            quants => format!(
                "hf:{owner}/{name}:QUANT says which file; there are: {}",
                quants.join(", ")
            )
            .into(),
        });
    };
    let mut files: Vec<&Listed> = ggufs
        .into_iter()
        .filter(|file| quant_of(&file.path) == *quant)
        .collect();
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    // Parts of one model have a common start; other models of the same quantisation do not.
    let first = files[0];
    let Some(split) = Split::of(&first.path) else {
        return Ok((vec![first], first.path.clone()));
    };
    files.retain(|file| {
        Split::of(&file.path).is_some_and(|other| (other.stem, other.count) == (split.stem, split.count))
    });
    let is_whole = files
        .iter()
        .map(|file| file.path.clone())
        .eq((1..=split.count).map(|part| split.name(part)));
    if !is_whole {
        return Err(format!(
            "hf:{}/{} lists {} of the {} parts of {}.gguf: the model cannot be fetched whole",
            repository.owner,
            repository.name,
            files.len(),
            split.count,
            split.stem
        )
        .into());
    }
    Ok((files, first.path.clone()))
}

/// Files of a module of sentence-transformers.
pub(super) const OF_MODULES: [&str; 2] = ["config.json", "model.safetensors"];

/// Whether a file is one of a module's, in a folder such as `1_Pooling`: what follows the model, its pooling and maps.
pub(super) fn is_of_module(path: &str) -> bool {
    let Some((folder, file)) = path.split_once('/') else {
        return false;
    };
    let number = folder.split_once('_').map_or("", |(number, _)| number);
    OF_MODULES.contains(&file) && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a file is a language model: projectors of pictures and importance matrices are GGUF files as well.
fn is_model(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with(".gguf") && !name.starts_with("mmproj") && !name.contains("imatrix")
}

/// The name of a part of a split model: `STEM-00001-of-00003.gguf`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Split<'a> {
    stem: &'a str,
    /// The part's number, from 1.
    pub(crate) part: u32,
    pub(crate) count: u32,
}

impl<'a> Split<'a> {
    /// What a path names, if it names a part.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let (before, count) = path.strip_suffix(".gguf")?.rsplit_once("-of-")?;
        let (stem, part) = before.rsplit_once('-')?;
        let number = |text: &str| match text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit()) {
            true => text.parse().ok(),
            false => None,
        };
        let (part, count) = (number(part)?, number(count)?);
        Some(Self { stem, part, count })
    }

    /// The path of a part, counted from 1.
    pub(crate) fn name(&self, part: u32) -> String {
        format!("{}-{part:05}-of-{:05}.gguf", self.stem, self.count)
    }
}

/// A file's path without `.gguf` and the number of its part.
fn stem(path: &str) -> &str {
    let whole = path.strip_suffix(".gguf").unwrap_or(path);
    Split::of(path).map_or(whole, |split| split.stem)
}

/// The quantisation that a file's name ends with: what stands after its last `-` or `.`.
fn quant_of(path: &str) -> &str {
    let stem = stem(path);
    let at = stem.rfind(['-', '.', '/']).map_or(0, |at| at + 1);
    &stem[at..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(paths: &[&str]) -> Vec<Listed> {
        let file = |path: &&str| Listed {
            kind: "file".to_owned(),
            path: (*path).to_owned(),
            size: 1,
            lfs: None,
        };
        paths.iter().map(file).collect()
    }

    fn chosen(paths: &[&str], repository: &str) -> Result<(Vec<String>, String), String> {
        let list = listed(paths);
        let repository = Repository::parse(repository).map_err(|error| error.to_string())?;
        let (files, open) = choose(&list, &repository).map_err(|error| error.to_string())?;
        Ok((files.iter().map(|file| file.path.clone()).collect(), open))
    }

    #[test]
    fn the_quantisation_decides_which_files_are_fetched() {
        let files = [
            "README.md",
            "mmproj-model-f16.gguf",
            "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
            "Llama-3.2-1B-Instruct-Q8_0.gguf",
            "BF16/Llama-3.2-1B-Instruct-BF16-00001-of-00002.gguf",
            "BF16/Llama-3.2-1B-Instruct-BF16-00002-of-00002.gguf",
        ];
        let one = |path: &str| Ok((vec![path.to_owned()], path.to_owned()));
        assert_eq!(chosen(&files, "a/b"), one(files[2]));
        assert_eq!(chosen(&files, "a/b:q8_0"), one(files[3]));
        let both = vec![files[4].to_owned(), files[5].to_owned()];
        assert_eq!(chosen(&files, "a/b:BF16"), Ok((both, files[4].to_owned())));
        let error = chosen(&files, "a/b:Q2_K").expect_err("it is not there");
        assert!(error.ends_with("there are: BF16, Q4_K_M, Q8_0"), "{error}");
        let error = chosen(&files[..5], "a/b:BF16").expect_err("a part is missing");
        assert!(error.contains("1 of the 2 parts"), "{error}");
        let error = chosen(&files[3..], "a/b").expect_err("several");
        assert!(error.ends_with("there are: BF16, Q8_0"), "{error}");
    }

    #[test]
    fn a_repository_without_gguf_is_fetched_as_a_folder() {
        let files = [
            "README.md",
            "config.json",
            "model.safetensors",
            "onnx/model.safetensors",
            "tokenizer.json",
            "modules.json",
            "1_Pooling/config.json",
            "1_Pooling/README.md",
            "2_Dense/model.safetensors",
        ];
        let (found, open) = chosen(&files, "a/b").expect("a model");
        let expected = [
            "config.json",
            "model.safetensors",
            "tokenizer.json",
            "modules.json",
            "1_Pooling/config.json",
            "2_Dense/model.safetensors",
        ];
        assert_eq!(found, expected);
        assert_eq!(open, ".");
        let error = chosen(&["README.md"], "a/b").expect_err("nothing");
        assert!(error.contains("no GGUF file"), "{error}");
    }

    #[test]
    fn names_of_repositories_are_names() {
        for wrong in ["a", "a/b/c", "/b", "a/", "a/../b", "a/b:", "a/b?x", "a/.b", "a/b:c/d"] {
            assert!(Repository::parse(wrong).is_err(), "{wrong}");
        }
    }
}
