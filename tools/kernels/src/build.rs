//! `kernels build`: the packs and the manifest.

use crate::cache::Cache;
use crate::compile::{self, Compiler, PINNED};
use crate::describe::describe;
use crate::manifest::{Manifest, TargetEntry};
use crate::pack::Objects;
use crate::parallel::in_parallel;
use crate::targets::{FAMILIES, TARGETS, has_family, near};
use crate::{KernelsError, at, faulty, pack, prebuilt, workspace_root, write};
use rocmforge_gpu_test::say;
use std::collections::BTreeMap;

/// Compiles what has changed since the last build here, and writes all packs of these targets.
pub(crate) fn build(arch: Vec<String>, any_compiler: bool, faulty_only: bool) -> Result<(), KernelsError> {
    let compiler = Compiler::find()?;
    if !any_compiler && !compiler.is_pinned() {
        return Err(KernelsError::WrongCompiler {
            pinned: PINNED,
            found: compiler.version,
        });
    }
    let targets: Vec<String> = if arch.is_empty() {
        TARGETS.map(|target| target.arch.to_owned()).to_vec()
    } else {
        arch
    };
    if faulty_only {
        return faulty::build(&compiler);
    }
    if targets.len() == TARGETS.len() {
        faulty::build(&compiler)?;
    }
    let source = compile::source_hash(workspace_root())?;
    let mut manifest = Manifest::read(&prebuilt()).unwrap_or_default();
    // Those that are not built, but compressed against one that is.
    let stay = |near: Option<&str>| near.is_some_and(|near| targets.iter().any(|target| target == near));
    let mut packs = BTreeMap::new();
    for target in TARGETS.iter().filter(|target| stay(target.near)) {
        if targets.iter().all(|built| built != target.arch) {
            packs.insert(target.arch.to_owned(), pack::load(target.arch)?);
        }
    }
    for (target, objects) in compile_all(&compiler, &targets, Some(&Cache::new(&compiler.version)))? {
        let described = describe(&target, &objects)?;
        let pack = pack::write(&target, &objects);
        let entry = TargetEntry::new(&compiler.version, &source, &pack, &objects, &described);
        let kernels: usize = described.values().map(|o| o.kernels.len()).sum();
        say!(
            "{target}: {} families, {kernels} kernels, no spills, {} bytes of objects",
            objects.len(),
            pack.len()
        );
        manifest.insert(&target, entry, &described)?;
        packs.insert(target, pack);
    }
    write_packs(&packs)?;
    manifest.check_kernels(FAMILIES, &source)?;
    let texts = |flags: &[&str]| flags.iter().map(|&flag| flag.to_owned()).collect();
    manifest.flags = texts(compile::FLAGS);
    manifest.ptx_flags = texts(compile::PTX_FLAGS);
    manifest.write(&prebuilt())?;
    write(
        &prebuilt().join("packs.rs"),
        pack::registry(manifest.targets.keys()).as_bytes(),
    )
}

/// Compresses and writes packs, each against the one that is near, if that is written too or is committed.
fn write_packs(packs: &BTreeMap<String, Vec<u8>>) -> Result<(), KernelsError> {
    std::fs::create_dir_all(prebuilt()).map_err(at(prebuilt()))?;
    for (target, pack) in packs {
        let near = match near(target) {
            None => Vec::new(),
            Some(near) => packs.get(near).cloned().map_or_else(|| pack::load(near), Ok)?,
        };
        let packed = pack::compress(pack, &near)?;
        write(&prebuilt().join(pack::file_name(target)), &packed)?;
        say!("{target}: a pack of {} bytes", packed.len());
    }
    Ok(())
}

/// Compiles for every target the families that it has. A target's pack may be empty.
/// With a cache only what it lacks.
pub(crate) fn compile_all(
    compiler: &Compiler,
    targets: &[String],
    cache: Option<&Cache>,
) -> Result<BTreeMap<String, Objects>, KernelsError> {
    let families = compile::families(workspace_root())?;
    let jobs: Vec<(&String, &String)> = targets
        .iter()
        .flat_map(|t| families.iter().map(move |f| (t, f)))
        .filter(|(t, f)| has_family(FAMILIES, t, f))
        .collect();
    let objects = in_parallel(&jobs, |(target, family)| {
        let compile = || compiler.compile(workspace_root(), family, target);
        match cache {
            Some(cache) => cache.object(target, family, compile),
            None => compile(),
        }
    })?;
    let empty = |target: &String| (target.clone(), Objects::new());
    let mut done: BTreeMap<String, Objects> = targets.iter().map(empty).collect();
    for ((target, family), object) in jobs.into_iter().zip(objects) {
        done.entry(target.clone()).or_default().insert(family.clone(), object);
    }
    Ok(done)
}
