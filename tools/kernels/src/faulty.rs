//! The faulty kernels that the sanitizer is tested with: each source at each level of optimisation, in a pack of their own.
//! They are not part of the product, so they may spill, and only the simulated processors have packs; and NVIDIA's, on whose
//! cards compute-sanitizer is asked about the same faults.

use crate::compile::{Compiler, sha256, sorted};
use crate::parallel::in_parallel;
use crate::prebuilt::{of, read_json, replace, write_json};
use crate::workspace_root;
use crate::{KernelsError, read};
use rocmforge_code_object::PackFile;
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
    /// Of the contents, by target.
    pack_sha256: BTreeMap<String, String>,
    example_sha256: String,
}

fn prebuilt() -> PathBuf {
    workspace_root().join(DIRECTORY).join("prebuilt")
}

fn manifest() -> PathBuf {
    prebuilt().join("manifest.json")
}

/// The pack of a target.
fn place(target: &str) -> PathBuf {
    prebuilt().join(format!("{target}.pack"))
}

/// What is committed of them.
pub(crate) fn files() -> Vec<PathBuf> {
    let packs = TARGETS.iter().map(|target| place(target.arch));
    packs.chain([manifest(), example()]).collect()
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
fn compile(compiler: &Compiler) -> Result<BTreeMap<String, PackFile>, KernelsError> {
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
    let mut by_target: BTreeMap<String, BTreeMap<String, Vec<u8>>> = BTreeMap::new();
    for ((source, target, level), object) in jobs.into_iter().zip(objects) {
        let name = format!("{source}{}", level.replace('-', "."));
        let objects = by_target.entry(target.arch.to_owned()).or_default();
        objects.insert(name, object);
    }
    let packed = |(target, objects): (String, BTreeMap<String, Vec<u8>>)| {
        let pack = PackFile::new(&target, "{}", &objects).map_err(of(place(&target)))?;
        Ok((target, pack))
    };
    by_target.into_iter().map(packed).collect()
}

fn compile_example(compiler: &Compiler) -> Result<Vec<u8>, KernelsError> {
    compiler.compile_file(workspace_root(), &format!("{EXAMPLE}.hip"), TARGETS[0].arch, &[])
}

fn example() -> PathBuf {
    workspace_root().join(format!("{EXAMPLE}.co"))
}

/// Compiles them, if a source or the compiler has changed, and writes packs and manifest.
pub(crate) fn build(compiler: &Compiler) -> Result<(), KernelsError> {
    let known: Option<Manifest> = read_json(&manifest()).ok();
    let current = known.is_some_and(|known| known.compiler == compiler.version);
    if current && differing()?.is_empty() {
        say!("faulty kernels: nothing has changed");
        return Ok(());
    }
    say!("faulty kernels: compiling all ...");
    let packs = compile(compiler)?;
    for (target, pack) in &packs {
        let place = place(target);
        let packed = pack.compress(None, None).map_err(of(&place))?;
        replace(&place, &packed)?;
        say!("{target}: faulty kernels in a pack of {} bytes", packed.len());
    }
    let example_object = compile_example(compiler)?;
    replace(&example(), &example_object)?;
    let new = Manifest {
        example_sha256: sha256(&example_object),
        compiler: compiler.version.clone(),
        source_sha256: source_hash()?,
        pack_sha256: hashes(&packs),
    };
    write_json(&manifest(), &new)
}

fn hashes(packs: &BTreeMap<String, PackFile>) -> BTreeMap<String, String> {
    packs
        .iter()
        .map(|(target, pack)| (target.clone(), pack.sha256()))
        .collect()
}

/// The packs that are not the manifest's, or were made from other sources.
pub(crate) fn differing() -> Result<Vec<String>, KernelsError> {
    let manifest: Manifest = read_json(&manifest())?;
    let mut differ = Vec::new();
    if manifest.source_sha256 != source_hash()? {
        differ.push("the faulty kernels (made from other sources)".to_owned());
    }
    for target in &TARGETS {
        let pack = PackFile::open(&place(target.arch)).map_err(of(place(target.arch)));
        let known = manifest.pack_sha256.get(target.arch);
        if pack.map_or(true, |pack| known != Some(&pack.sha256())) {
            differ.push(format!(
                "the faulty kernels for {} (the pack is not the manifest's)",
                target.arch
            ));
        }
    }
    if read(&example()).map_or(true, |object| sha256(&object) != manifest.example_sha256) {
        differ.push("the sanitizer's example (the object is not the manifest's)".to_owned());
    }
    Ok(differ)
}

/// The packs whose bytes the compiler that made them does not give.
pub(crate) fn compared(compiler: &Compiler) -> Result<Vec<String>, KernelsError> {
    let manifest: Manifest = read_json(&manifest())?;
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
    let packs = hashes(&compile(compiler)?);
    let others = packs
        .iter()
        .filter(|(target, hash)| manifest.pack_sha256.get(*target) != Some(*hash));
    differ.extend(others.map(|(target, _)| format!("the faulty kernels for {target}")));
    Ok(differ)
}
