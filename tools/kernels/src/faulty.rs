//! The faulty kernels that the sanitizer is tested with: each source at each level of optimisation, in a pack of their own.
//! They are not part of the product, so they may spill, and only the simulated processors have packs; and NVIDIA's, on whose
//! cards compute-sanitizer is asked about the same faults.

use crate::compile::{Compiler, sha256, sorted};
use crate::manifest::{read_json, write_json};
use crate::pack::Objects;
use crate::parallel::in_parallel;
use crate::workspace_root;
use crate::{KernelsError, at, pack, read, write};
use rocmforge_gpu_test::say;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

const DIRECTORY: &str = "crates/rocmforge-sanitize/tests/kernels";
const TARGETS: [Target; 3] = [
    // A fault must be found at its line whatever the compiler does with it.
    Target {
        arch: "gfx1100",
        levels: &["-O1", "-O2", "-O3"],
        includes: &["-Ikernels/include", "-Icrates/rocmforge-sanitize/tests/kernels"],
    },
    Target {
        arch: "gfx1201",
        levels: &["-O1", "-O2", "-O3"],
        includes: &["-Ikernels/include", "-Icrates/rocmforge-sanitize/tests/kernels"],
    },
    // The driver's compiler optimises once more, as it does with the project's own kernels.
    Target {
        arch: "sm_75",
        levels: &["-O1"],
        includes: &["-Ikernels/include", "-Icrates/rocmforge-sanitize/tests/kernels/ptx"],
    },
];

/// What the faulty kernels are compiled for.
struct Target {
    arch: &'static str,
    levels: &'static [&'static str],
    includes: &'static [&'static str],
}

impl Target {
    /// Whether a source is compiled for it; `but`: the lists of sources for AMD's cards alone, and for gfx1100 alone.
    fn has(&self, source: &str, but: &[Vec<String>; 2]) -> bool {
        let [amd_only, gfx1100_only] = but.each_ref().map(|names| names.iter().any(|name| name == source));
        match self.arch {
            "gfx1100" => true,
            "gfx1201" => !gfx1100_only,
            _ => !(source.starts_with("host/") || amd_only),
        }
    }
}

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

/// Lists of sources that not every target has.
const LISTS: [&str; 2] = ["amd-only.txt", "gfx1100-only.txt"];

/// The sources of such a list: the first word of each line.
fn listed(list: &str) -> Result<Vec<String>, KernelsError> {
    let text = read(&workspace_root().join(DIRECTORY).join(list))?;
    let text = String::from_utf8_lossy(&text);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let words = lines.filter_map(|line| line.split(' ').next());
    Ok(words.map(str::to_owned).collect())
}

fn source_hash() -> Result<String, KernelsError> {
    let directory = workspace_root().join(DIRECTORY);
    let mut text = sha256(&read(&workspace_root().join("kernels/include/rf.h"))?);
    text.push_str(&sha256(&read(&workspace_root().join("kernels/include/ptx.h"))?));
    text.push_str(&sha256(&read(&directory.join("ptx/faulty.h"))?));
    for list in LISTS {
        text.push_str(&sha256(&read(&directory.join(list))?));
    }
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
    let but = [listed(LISTS[0])?, listed(LISTS[1])?];
    for source in sources()? {
        for target in TARGETS.iter().filter(|target| target.has(&source, &but)) {
            jobs.extend(target.levels.iter().map(|level| (source.clone(), target, *level)));
        }
    }
    let objects = in_parallel(&jobs, |(source, target, level)| {
        let mut more = vec![*level];
        more.extend(target.includes);
        compiler.compile_file(
            workspace_root(),
            &format!("{DIRECTORY}/{source}.hip"),
            target.arch,
            &more,
        )
    })?;
    let mut by_target: BTreeMap<String, Objects> = BTreeMap::new();
    for ((source, target, level), object) in jobs.into_iter().zip(objects) {
        let name = format!("{source}{}", level.replace('-', "."));
        let objects = by_target.entry(target.arch.to_owned()).or_default();
        objects.insert(name, object);
    }
    let packed = |(target, objects): (String, Objects)| {
        let pack = pack::write(&target, &objects);
        (target, pack)
    };
    Ok(by_target.into_iter().map(packed).collect())
}

fn compile_example(compiler: &Compiler) -> Result<Vec<u8>, KernelsError> {
    compiler.compile_file(workspace_root(), &format!("{EXAMPLE}.hip"), TARGETS[0].arch, &[])
}

fn example() -> PathBuf {
    workspace_root().join(format!("{EXAMPLE}.co"))
}

/// Compiles them and writes packs and manifest.
pub(crate) fn build(compiler: &Compiler) -> Result<(), KernelsError> {
    std::fs::create_dir_all(prebuilt()).map_err(at(prebuilt()))?;
    let packs = compile(compiler)?;
    for (target, bytes) in &packs {
        let packed = pack::compress(bytes, &[])?;
        write(&prebuilt().join(pack::file_name(target)), &packed)?;
        say!(
            "{target}: faulty kernels, {} bytes of objects in a pack of {}",
            bytes.len(),
            packed.len()
        );
    }
    let example_object = compile_example(compiler)?;
    write(&example(), &example_object)?;
    let hashed = |(target, bytes): (&String, &Vec<u8>)| (target.clone(), sha256(bytes));
    let manifest = Manifest {
        example_sha256: sha256(&example_object),
        compiler: compiler.version.clone(),
        source_sha256: source_hash()?,
        pack_sha256: packs.iter().map(hashed).collect(),
    };
    write_json(&prebuilt(), &manifest)
}

/// The packs that are not what the sources give: without a compiler, that are not the manifest's or have older sources;
/// with the one that made them, whose bytes differ.
pub(crate) fn differing(compiler: Option<&Compiler>) -> Result<Vec<String>, KernelsError> {
    let manifest: Manifest = read_json(&prebuilt())?;
    let Some(compiler) = compiler else {
        let mut differ = Vec::new();
        if manifest.source_sha256 != source_hash()? {
            differ.push("the faulty kernels (made from other sources)".to_owned());
        }
        for (target, hash) in &manifest.pack_sha256 {
            let path = prebuilt().join(pack::file_name(target));
            let bytes = pack::decompress(&read(&path)?, &[]).map_err(at(path))?;
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
