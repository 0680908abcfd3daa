//! `kernels check`: whether the committed packs are what the sources give.

use crate::build::chosen;
use crate::changes::Changes;
use crate::compile::{self, Compiler};
use crate::describe::describe;
use crate::families::{FAMILIES, has_family};
use crate::manifest::{self, Manifest};
use crate::parallel::in_parallel;
use crate::prebuilt::{self, Pack, Shared};
use crate::progress::Progress;
use crate::targets::is_ptx;
use crate::{KernelsError, faulty, inputs, ptxas, read, workspace_root};
use rocmforge_gpu_test::say;
use std::collections::BTreeMap;

/// What is checked.
pub(crate) struct Options {
    /// An empty list means all.
    pub(crate) families: Vec<String>,
    /// An empty list means all.
    pub(crate) targets: Vec<String>,
    /// Compiles all of these, not only what has changed.
    pub(crate) compile_all: bool,
    /// The commit since which a pack counts as changed.
    pub(crate) since: Option<String>,
    /// Whether what cannot be compared is a failure.
    pub(crate) strict: bool,
}

/// A pack that is as its manifest, its source and its limits say.
struct Sound {
    target: String,
    family: String,
    manifest: Manifest,
    /// Its compiler.
    compiler: String,
}

/// Fails where a pack is damaged, was made from other sources, flags or another release of the compiler, passes a limit, or does not agree with the other
/// targets'. Compiles the packs that have changed, and fails where this compiler, if it is the one that made them, gives other bytes.
pub(crate) fn check(options: Options) -> Result<(), KernelsError> {
    let whole = options.families.is_empty() && options.targets.is_empty();
    let families = chosen(&options.families)?;
    let shared = Shared::read()?;
    let mut differ = Vec::new();
    if shared != Shared::with(&shared.compiler) {
        differ.push("compiler.json (other flags)".to_owned());
    }
    let known = prebuilt::targets()?;
    let targets = match options.targets.is_empty() {
        true => known,
        false => options.targets.clone(),
    };
    differ.extend(misplaced(&targets, &families, options.families.is_empty())?);
    let jobs: Vec<(&String, &String)> = (families.iter())
        .flat_map(|family| targets.iter().map(move |target| (target, family)))
        .filter(|(target, family)| has_family(FAMILIES, target, family) && prebuilt::path(target, family).exists())
        .collect();
    let sound = in_parallel(&jobs, |(target, family)| one(target, family, &shared))?;
    let mut packs = Vec::new();
    for one in sound {
        match one {
            Ok(pack) => packs.push(pack),
            Err(why) => differ.push(why),
        }
    }
    for family in &families {
        let of_family = packs.iter().filter(|pack| pack.family == *family);
        let manifests: BTreeMap<&str, &Manifest> =
            of_family.map(|pack| (pack.target.as_str(), &pack.manifest)).collect();
        manifest::agree(FAMILIES, family, &manifests)?;
    }
    if whole {
        let registry = prebuilt::registry(&prebuilt::files()?);
        if read(&prebuilt::folder().join("packs.rs"))? != registry.as_bytes() {
            differ.push("packs.rs (it does not name the files that are there)".to_owned());
        }
        differ.extend(faulty::differing()?);
    }
    none_differ(differ)?;
    say!(
        "{} packs of {} families: sources, flags, limits and hashes are as the manifests say",
        packs.len(),
        families.len()
    );
    compare(&options, &packs, whole)
}

/// Compiles what has changed, or all, and compares it.
fn compare(options: &Options, packs: &[Sound], whole: bool) -> Result<(), KernelsError> {
    let not_comparable = |why: String| match options.strict {
        true => Err(KernelsError::NotComparable(why)),
        false => {
            say!("code is not compared: {why}");
            Ok(())
        }
    };
    let changes = match options.compile_all {
        true => Changes::everything(),
        false => match Changes::since(options.since.as_deref())? {
            Ok(changes) => changes,
            Err(why) => return not_comparable(why),
        },
    };
    let changed: Vec<&Sound> = (packs.iter())
        .filter(|pack| changes.has(&prebuilt::path(&pack.target, &pack.family)))
        .collect();
    let faulty = whole && faulty::files().iter().any(|path| changes.has(path));
    if changed.is_empty() && !faulty {
        say!("{}: nothing is compiled", changes.said());
        return Ok(());
    }
    let ptx: Vec<(&str, &str)> = (changed.iter())
        .filter(|pack| is_ptx(&pack.target))
        .map(|pack| (pack.target.as_str(), pack.family.as_str()))
        .collect();
    ptxas::check(&ptx)?;
    let compiler = match Compiler::find() {
        Ok(compiler) => compiler,
        Err(error @ KernelsError::NoCompiler { .. }) => return not_comparable(error.to_string()),
        Err(error) => return Err(error),
    };
    let (comparable, others): (Vec<&Sound>, Vec<&Sound>) =
        (changed.into_iter()).partition(|pack| pack.compiler == compiler.version);
    let progress = Progress::new(comparable.len());
    let same = in_parallel(&comparable, |pack| {
        let object = progress.job(&format!("{} {}", pack.family, pack.target), || {
            compiler.compile(workspace_root(), &pack.family, &pack.target)
        })?;
        Ok(Pack::load(&pack.target, &pack.family)?.object(&pack.family) == object)
    })?;
    drop(progress);
    let wrong = comparable.iter().zip(same).filter(|(_, same)| !same);
    let mut differ: Vec<String> = wrong
        .map(|(pack, _)| format!("{} for {}", pack.family, pack.target))
        .collect();
    if faulty {
        differ.extend(faulty::compared(&compiler)?);
    }
    none_differ(differ)?;
    say!("{}: {} compiled, the same bytes", changes.said(), comparable.len());
    match others.first() {
        None => Ok(()),
        Some(other) => not_comparable(format!(
            "{} packs were made by \"{}\", this is \"{}\"",
            others.len(),
            other.compiler,
            compiler.version
        )),
    }
}

/// Families without a pack, and packs of no family of the target. `all`: whether all families are looked at.
fn misplaced(targets: &[String], families: &[String], all: bool) -> Result<Vec<String>, KernelsError> {
    let files = prebuilt::files()?;
    let mut wrong = Vec::new();
    for target in targets {
        let found = files.get(target);
        for family in families.iter().filter(|family| has_family(FAMILIES, target, family)) {
            if !found.is_some_and(|found| found.contains(family)) {
                wrong.push(format!("{family} for {target} (absent)"));
            }
        }
        for family in found.into_iter().flatten().filter(|_| all) {
            if !families.contains(family) || !has_family(FAMILIES, target, family) {
                wrong.push(format!(
                    "{family} for {target} (kernels/*.hip and tools/kernels/src/families.rs do not give it)"
                ));
            }
        }
    }
    Ok(wrong)
}

/// Looks at one pack: gives what is wrong with it, as far as building it again helps.
fn one(target: &str, family: &str, shared: &Shared) -> Result<Result<Sound, String>, KernelsError> {
    let wrong = |why: &str| Ok(Err(format!("{family} for {target} ({why})")));
    let pack = match Pack::load(target, family) {
        Ok(pack) => pack,
        Err(error) => return wrong(&error.to_string()),
    };
    if pack.manifest.inputs != inputs::hash(target, family)? {
        return wrong("made from other sources or flags");
    }
    let compiler = pack.compiler(shared).to_owned();
    if !compile::is_pinned(&compiler) {
        return wrong(&format!("made by {compiler}"));
    }
    if !pack.is_stored_as_stated(FAMILIES, family) {
        return wrong("stored against other packs than tools/kernels/src states");
    }
    let object = describe(target, family, pack.object(family))?;
    if !pack.is_described(&object) {
        return wrong("the manifest does not describe its code");
    }
    let (target, family) = (target.to_owned(), family.to_owned());
    Ok(Ok(Sound {
        target,
        family,
        manifest: pack.manifest,
        compiler,
    }))
}

/// Fails with the packs that differ, if any does.
fn none_differ(packs: Vec<String>) -> Result<(), KernelsError> {
    match packs.is_empty() {
        true => Ok(()),
        false => Err(KernelsError::Differ { packs }),
    }
}
