//! `kernels check`: whether the committed packs are what the sources give.

use crate::build::compile_all;
use crate::compile::{self, Compiler};
use crate::describe::describe;
use crate::manifest::Manifest;
use crate::targets::FAMILIES;
use crate::{KernelsError, faulty, pack, prebuilt, ptxas, workspace_root};
use rocmforge_gpu_test::say;

/// Fails where a pack was made from other sources, or this compiler, if it is the same, gives other bytes. Compiles for `compiled` alone, or for all
/// if that is empty.
pub(crate) fn check(arch: Vec<String>, compiled: &[String], strict: bool) -> Result<(), KernelsError> {
    let manifest = Manifest::read(&prebuilt())?;
    let source = compile::source_hash(workspace_root())?;
    let all = arch.is_empty();
    let targets: Vec<String> = if all {
        manifest.targets.keys().cloned().collect()
    } else {
        arch
    };
    for target in compiled {
        manifest.target(target)?;
    }
    let mut differ = Vec::new();
    for target in &targets {
        let entry = manifest.target(target)?;
        if entry.source_sha256 != source {
            differ.push(format!("{target} (made from other sources)"));
        }
        let pack = pack::load(target)?;
        if compile::sha256(&pack) != entry.pack_sha256 {
            differ.push(format!("{target} (the pack is not the manifest's)"));
        }
        let objects =
            pack::read(&pack).ok_or_else(|| KernelsError::Manifest(format!("what {target} has is no pack")))?;
        describe(target, &objects)?;
    }
    if all {
        differ.extend(faulty::differing(None)?);
        let families = compile::families(workspace_root())?;
        manifest.check_families(FAMILIES, &families)?;
        manifest.check_kernels(FAMILIES, &source)?;
    }
    none_differ(&differ)?;
    ptxas::check(&targets)?;
    let not_comparable = |why: String| {
        if strict {
            return Err(KernelsError::NotComparable(why));
        }
        say!("sources and packs match the manifest; code is not comparable: {why}");
        Ok(())
    };
    let compiler = match Compiler::find() {
        Ok(compiler) => compiler,
        Err(error @ KernelsError::NoCompiler { .. }) => return not_comparable(error.to_string()),
        Err(error) => return Err(error),
    };
    let (targets, left): (Vec<String>, Vec<String>) = targets
        .into_iter()
        .partition(|target| compiled.is_empty() || compiled.contains(target));
    if !left.is_empty() {
        say!(
            "{}: sources and packs match the manifest; not compiled",
            left.join(", ")
        );
    }
    let (comparable, others): (Vec<String>, Vec<String>) = targets.into_iter().partition(|t| {
        let entry = manifest.targets.get(t);
        entry.is_some_and(|entry| entry.compiler == compiler.version)
    });
    for (target, objects) in compile_all(&compiler, &comparable, None)? {
        if compile::sha256(&pack::write(&target, &objects)) != manifest.target(&target)?.pack_sha256 {
            let same = |family: &String, bytes: &Vec<u8>| {
                let known = manifest.targets[&target].families.get(family);
                known.is_some_and(|f| f.sha256 == compile::sha256(bytes))
            };
            let others = objects.iter().filter(|(f, b)| !same(f, b));
            let families: Vec<&str> = others.map(|(f, _)| f.as_str()).collect();
            differ.push(format!("{target} ({})", families.join(" ")));
        } else {
            say!("{target}: {} families, the same bytes", objects.len());
        }
    }
    if all {
        differ.extend(faulty::differing(Some(&compiler))?);
    }
    none_differ(&differ)?;
    if !others.is_empty() {
        return not_comparable(format!(
            "{} were made by another compiler than this \"{}\"",
            others.join(", "),
            compiler.version
        ));
    }
    Ok(())
}

/// Fails with the packs that differ, if any does.
fn none_differ(packs: &[String]) -> Result<(), KernelsError> {
    if packs.is_empty() {
        return Ok(());
    }
    Err(KernelsError::Differ {
        count: packs.len(),
        list: packs.join(", "),
    })
}
