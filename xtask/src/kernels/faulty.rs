//! The faulty kernels that the sanitizer is tested with: each source at each level of optimisation, in a pack of their own.
//! They are not part of the product, so they may spill, and only the simulated processors have packs.

use super::compile::{Compiler, sha256, sorted};
use super::{KernelsError, Objects, in_parallel, pack, read, write};
use crate::workspace_root;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

const DIRECTORY: &str = "crates/rocmforge-sanitize/tests/kernels";
const TARGETS: [&str; 1] = ["gfx1100"];
/// A fault must be found at its line whatever the compiler does with it.
const LEVELS: [&str; 3] = ["-O1", "-O2", "-O3"];
const INCLUDES: [&str; 2] = ["-Ikernels/include", "-Icrates/rocmforge-sanitize/tests/kernels"];

/// The example of the sanitizer's manual, whose object lies beside it.
const EXAMPLE: &str = "crates/rocmforge-sanitize/examples/reverse";

/// `prebuilt/manifest.json` beside the packs.
#[derive(Serialize, Deserialize, PartialEq)]
struct Manifest {
    compiler: String,
    source_sha256: String,
    /// By target.
    pack_sha256: BTreeMap<String, String>,
    example_sha256: String,
}

fn prebuilt() -> PathBuf {
    workspace_root().join(DIRECTORY).join("prebuilt")
}

/// The sources: `memcheck/read_past_end`.
fn sources() -> Result<Vec<String>, KernelsError> {
    let mut names = Vec::new();
    for family in ["host", "initcheck", "memcheck", "racecheck", "synccheck"] {
        for name in sorted(&workspace_root().join(DIRECTORY).join(family), "hip")? {
            names.push(format!("{family}/{}", name.trim_end_matches(".hip")));
        }
    }
    Ok(names)
}

fn source_hash() -> Result<String, KernelsError> {
    let directory = workspace_root().join(DIRECTORY);
    let mut text = sha256(&read(&workspace_root().join("kernels/include/rf.h"))?);
    text.push_str(&sha256(&read(&workspace_root().join(format!("{EXAMPLE}.hip")))?));
    text.push_str(&sha256(&read(&directory.join("faulty.h"))?));
    for source in sources()? {
        text.push_str(&source);
        text.push_str(&sha256(&read(&directory.join(format!("{source}.hip")))?));
    }
    Ok(sha256(text.as_bytes()))
}

/// The pack of each target.
fn compile(compiler: &Compiler) -> Result<BTreeMap<String, Vec<u8>>, KernelsError> {
    let mut jobs = Vec::new();
    for source in sources()? {
        for target in TARGETS {
            jobs.extend(LEVELS.map(|level| (source.clone(), target, level)));
        }
    }
    let objects = in_parallel(&jobs, |(source, target, level)| {
        let more = [level, INCLUDES[0], INCLUDES[1]];
        compiler.compile_file(workspace_root(), &format!("{DIRECTORY}/{source}.hip"), target, &more)
    })?;
    let mut by_target: BTreeMap<String, Objects> = BTreeMap::new();
    for ((source, target, level), object) in jobs.into_iter().zip(objects) {
        let name = format!("{source}{}", level.replace('-', "."));
        by_target.entry(target.to_owned()).or_default().insert(name, object);
    }
    Ok(by_target
        .into_iter()
        .map(|(target, objects)| (target.clone(), pack::write(&target, &objects)))
        .collect())
}

fn compile_example(compiler: &Compiler) -> Result<Vec<u8>, KernelsError> {
    compiler.compile_file(workspace_root(), &format!("{EXAMPLE}.hip"), TARGETS[0], &[])
}

fn example() -> PathBuf {
    workspace_root().join(format!("{EXAMPLE}.co"))
}

/// Compiles them and writes packs and manifest.
pub(super) fn build(compiler: &Compiler) -> Result<(), KernelsError> {
    std::fs::create_dir_all(prebuilt()).map_err(|source| KernelsError::Io {
        path: prebuilt(),
        source,
    })?;
    let packs = compile(compiler)?;
    for (target, bytes) in &packs {
        let packed = pack::compress(bytes)?;
        write(&prebuilt().join(pack::file_name(target)), &packed)?;
        say!(
            "{target}: {} faulty kernels at {} levels, {} bytes of objects in a pack of {}",
            sources()?.len(),
            LEVELS.len(),
            bytes.len(),
            packed.len()
        );
    }
    let example_object = compile_example(compiler)?;
    write(&example(), &example_object)?;
    let manifest = Manifest {
        example_sha256: sha256(&example_object),
        compiler: compiler.version.clone(),
        source_sha256: source_hash()?,
        pack_sha256: packs
            .iter()
            .map(|(target, bytes)| (target.clone(), sha256(bytes)))
            .collect(),
    };
    let mut text = serde_json::to_string_pretty(&manifest).map_err(|e| KernelsError::Manifest(e.to_string()))?;
    text.push('\n');
    write(&prebuilt().join("manifest.json"), text.as_bytes())
}

/// The packs that are not what the sources give: without a compiler, that are not the manifest's or have older sources;
/// with the one that made them, whose bytes differ.
pub(super) fn differing(compiler: Option<&Compiler>) -> Result<Vec<String>, KernelsError> {
    let path = prebuilt().join("manifest.json");
    let manifest: Manifest = serde_json::from_slice(&read(&path)?)
        .map_err(|error| KernelsError::Manifest(format!("{}: {error}", path.display())))?;
    let Some(compiler) = compiler else {
        let mut differ = Vec::new();
        if manifest.source_sha256 != source_hash()? {
            differ.push("the faulty kernels (made from other sources)".to_owned());
        }
        for (target, hash) in &manifest.pack_sha256 {
            let path = prebuilt().join(pack::file_name(target));
            let bytes = pack::decompress(&read(&path)?).map_err(|source| KernelsError::Io { path, source })?;
            if sha256(&bytes) != *hash {
                differ.push(format!(
                    "the faulty kernels for {target} (the pack is not the manifest's)"
                ));
            }
        }
        if sha256(&read(&example())?) != manifest.example_sha256 {
            differ.push("the sanitizer's example (the object is not the manifest's)".to_owned());
        }
        return Ok(differ);
    };
    if compiler.version != manifest.compiler {
        say!(
            "the faulty kernels were made by another compiler: {}",
            manifest.compiler
        );
        return Ok(Vec::new());
    }
    let mut differ = Vec::new();
    if sha256(&compile_example(compiler)?) != manifest.example_sha256 {
        differ.push("the sanitizer's example".to_owned());
    }
    let packs = compile(compiler)?;
    let same = |(target, bytes): &(&String, &Vec<u8>)| manifest.pack_sha256.get(*target) == Some(&sha256(bytes));
    let others = packs.iter().filter(|pack| !same(pack));
    differ.extend(others.map(|(target, _)| format!("the faulty kernels for {target}")));
    Ok(differ)
}
