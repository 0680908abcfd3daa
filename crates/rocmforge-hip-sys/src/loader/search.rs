//! Search path of HIP libraries.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// File names by major version, newest first. The name without a number is left out: behind it may be a version whose
/// structs nobody has compared with ours.
const SONAMES: [&str; 3] = ["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"];

/// Where to look. [`LoadOptions::from_env`] is what [`HipLibrary::load`](crate::HipLibrary::load) uses; every part can be
/// set instead, so that a program (or a test) depends on no environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadOptions {
    /// This file and no other: `ROCMFORGE_HIP_LIBRARY`.
    pub exact: Option<PathBuf>,
    /// ROCm installations to look in before anything else: `ROCM_PATH`, `HIP_PATH`. The library is in their `lib`.
    pub roots: Vec<(&'static str, PathBuf)>,
    /// Names the dynamic linker is asked for.
    pub sonames: Vec<String>,
    /// The folder that holds `rocm*` installations, `/opt`.
    pub opt: Option<PathBuf>,
}

/// One place to look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// A file, or a name without a slash for the dynamic linker to find.
    pub path: PathBuf,
    /// Where the idea came from: the variable, `dynamic linker`, or the folder.
    pub from: String,
}

impl LoadOptions {
    /// The search order, from the environment:
    ///
    /// 1. `ROCMFORGE_HIP_LIBRARY`: exactly this library; if it cannot be used, nothing else is tried
    /// 2. `lib` of `ROCM_PATH`, then of `HIP_PATH`
    /// 3. `libamdhip64.so.7`, `.6`, `.5`, as the dynamic linker finds them
    /// 4. `lib` of the installations `/opt/rocm*`, newest first
    ///
    /// An empty variable counts as not set.
    pub fn from_env() -> Self {
        Self::from_lookup(|name| std::env::var_os(name))
    }

    /// The same with another environment.
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<OsString>) -> Self {
        let path = |name: &str| lookup(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let roots = ["ROCM_PATH", "HIP_PATH"]
            .into_iter()
            .filter_map(|name| Some((name, path(name)?)));
        Self {
            exact: path("ROCMFORGE_HIP_LIBRARY"),
            roots: roots.collect(),
            sonames: SONAMES.map(str::to_owned).to_vec(),
            opt: Some(PathBuf::from("/opt")),
        }
    }

    /// A search that looks nowhere, to add to.
    pub fn nowhere() -> Self {
        Self {
            exact: None,
            roots: Vec::new(),
            sonames: Vec::new(),
            opt: None,
        }
    }

    /// What would be tried, in that order.
    pub fn candidates(&self) -> Vec<Candidate> {
        if let Some(path) = &self.exact {
            return vec![Candidate {
                path: path.clone(),
                from: "named exactly".to_owned(),
            }];
        }
        let mut found: Vec<Candidate> = Vec::new();
        let mut add = |path: PathBuf, from: String| {
            if found.iter().all(|candidate| candidate.path != path) {
                found.push(Candidate { path, from });
            }
        };
        for (variable, root) in &self.roots {
            SONAMES
                .iter()
                .for_each(|name| add(root.join("lib").join(name), (*variable).to_owned()));
        }
        for name in &self.sonames {
            add(PathBuf::from(name), "dynamic linker".to_owned());
        }
        for root in self.opt.as_deref().map(installations).unwrap_or_default() {
            let from = format!("found in {}", root.parent().unwrap_or(&root).display());
            SONAMES
                .iter()
                .for_each(|name| add(root.join("lib").join(name), from.clone()));
        }
        found
    }
}

/// The folders `rocm*`, newest version first; one installation with several names (`/opt/rocm` is often a link) counts once.
fn installations(opt: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(opt) else {
        return Vec::new();
    };
    let mut roots: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"rocm"))
        .filter_map(|entry| fs::canonicalize(entry.path()).ok())
        .filter(|path| path.is_dir())
        .collect();
    roots.sort_by_key(|root| Reverse((version(root), root.clone())));
    roots.dedup();
    roots
}

/// The numbers in a folder's name: 6.10.0 is newer than 6.9.1. Without numbers it is older than any.
fn version(root: &Path) -> Vec<u64> {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|digits| digits.parse().ok())
        .collect()
}
