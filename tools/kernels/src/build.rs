//! `kernels build`: compiles the families whose inputs have changed, and writes their packs.

use crate::compile::{self, Compiler, PINNED};
use crate::describe::describe;
use crate::families::{self, FAMILIES, has_family, like_family};
use crate::manifest::{self, Manifest};
use crate::parallel::in_parallel;
use crate::prebuilt::{self, Pack, Shared, like_of, near_of, of, path, path_in};
use crate::progress::Progress;
use crate::targets::TARGETS;
use crate::{KernelsError, at, faulty, inputs, workspace_root};
use rocmforge_gpu_test::say;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// What is built.
pub(crate) struct Options {
    /// An empty list means all.
    pub(crate) families: Vec<String>,
    /// An empty list means those that are committed.
    pub(crate) targets: Vec<String>,
    pub(crate) any_compiler: bool,
    pub(crate) faulty_only: bool,
}

/// A family: the packs that are there, and the targets that it is compiled for.
struct Plan {
    family: String,
    /// By target, those whose inputs are others' included.
    packs: BTreeMap<String, Pack>,
    /// The targets to compile for, with the hash of their inputs.
    stale: Vec<(String, String)>,
}

/// Compiles what has changed, and writes the packs of that.
pub(crate) fn build(options: Options) -> Result<(), KernelsError> {
    let compiler = Compiler::find()?;
    if !options.any_compiler && !compile::is_pinned(&compiler.version) {
        return Err(KernelsError::WrongCompiler {
            pinned: PINNED,
            found: compiler.version,
        });
    }
    let all = options.families.is_empty() && options.targets.is_empty();
    if all || options.faulty_only {
        faulty::build(&compiler)?;
    }
    if options.faulty_only {
        return Ok(());
    }
    let families = chosen(&options.families)?;
    let targets = match options.targets.is_empty() {
        true => TARGETS.map(|target| target.arch.to_owned()).to_vec(),
        false => options.targets,
    };
    // Of another release, or none: it is this compiler's from now on.
    let known = Shared::read().ok().filter(|known| compile::is_pinned(&known.compiler));
    let shared = Shared::with(known.as_ref().map_or(&compiler.version, |known| &known.compiler));
    // The packs of others that are stored against these are stored anew, from what they hold now.
    let mut planned: Vec<(String, &[String])> = families.iter().map(|family| (family.clone(), &targets[..])).collect();
    for family in families::all(workspace_root())? {
        let needs = like_family(&family).is_some_and(|like| families.contains(&like));
        if needs && !families.contains(&family) {
            planned.push((family, &[]));
        }
    }
    let plans = in_parallel(&planned, |(family, targets)| {
        plan(family, targets, &shared, options.any_compiler.then_some(&compiler))
    })?;
    let count = plans.iter().map(|plan| plan.stale.len()).sum();
    let progress = Progress::new(count);
    // A family that another is like is written before that one.
    let (firsts, others): (Vec<Plan>, Vec<Plan>) =
        plans.into_iter().partition(|plan| like_family(&plan.family).is_none());
    let mut written = Vec::new();
    let mut rewritten = BTreeSet::new();
    for plans in [firsts, others] {
        let lines = in_parallel(&plans, |plan| plan.build(&compiler, &shared, &progress, &rewritten))?;
        let changed = plans.iter().zip(&lines).filter(|(_, lines)| !lines.is_empty());
        rewritten.extend(changed.map(|(plan, _)| plan.family.clone()));
        written.extend(lines.into_iter().flatten());
    }
    drop(progress);
    if options.families.is_empty() {
        written.extend(remove(&families, &targets)?);
    }
    shared.write()?;
    let registry = prebuilt::registry(&prebuilt::files()?);
    prebuilt::replace(&prebuilt::folder().join("packs.rs"), registry.as_bytes())?;
    for line in &written {
        say!("{line}");
    }
    say!("{count} compiled, {} files of kernels/prebuilt changed", written.len());
    Ok(())
}

/// The families of these names, or of sources of these names; or all.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<String>, KernelsError> {
    let all = families::all(workspace_root())?;
    if names.is_empty() {
        return Ok(all);
    }
    let mut chosen = BTreeSet::new();
    for name in names {
        let families = match all.contains(name) {
            true => vec![name.clone()],
            false => families::of_source(name),
        };
        if !families.iter().all(|family| all.contains(family)) {
            return Err(KernelsError::NoFamily { name: name.clone() });
        }
        chosen.extend(families);
    }
    Ok(chosen.into_iter().collect())
}

/// What there is of a family, and what must be compiled. `exactly`: the compiler that must have made it.
fn plan(family: &str, targets: &[String], shared: &Shared, exactly: Option<&Compiler>) -> Result<Plan, KernelsError> {
    let mut packs = BTreeMap::new();
    for target in prebuilt::targets()? {
        // One that cannot be read is made again, if its target is built.
        if let Ok(pack) = Pack::load(&target, family) {
            packs.insert(target, pack);
        }
    }
    let mut stale = Vec::new();
    for target in targets.iter().filter(|target| has_family(FAMILIES, target, family)) {
        let inputs = inputs::hash(target, family)?;
        let current = packs.get(target).is_some_and(|pack| {
            let made_by = pack.compiler(shared);
            let right = exactly.map_or_else(|| compile::is_pinned(made_by), |compiler| compiler.version == made_by);
            pack.manifest.inputs == inputs && right
        });
        if !current {
            stale.push((target.clone(), inputs));
        }
    }
    Ok(Plan {
        family: family.to_owned(),
        packs,
        stale,
    })
}

impl Plan {
    /// Compiles the family for the stale targets, checks it, and writes its packs, all of them if its like family is `rewritten`. Gives a line for each that
    /// has changed.
    fn build(
        &self,
        compiler: &Compiler,
        shared: &Shared,
        progress: &Progress,
        rewritten: &BTreeSet<String>,
    ) -> Result<Vec<String>, KernelsError> {
        let family = &self.family;
        let made = in_parallel(&self.stale, |(target, inputs)| {
            let object = progress.job(&format!("{family} {target}"), || {
                compiler.compile(workspace_root(), family, target)
            })?;
            pack(target, family, object, inputs, compiler, shared)
        })?;
        let stale = self.stale.iter().map(|(target, _)| target.as_str());
        let made: BTreeMap<&str, Pack> = stale.zip(made).collect();
        let all = like_family(family).is_some_and(|like| rewritten.contains(&like));
        write_family(&prebuilt::folder(), family, &self.packs, &made, all)
    }
}

/// The pack of an object, which must keep the limits.
fn pack(
    target: &str,
    family: &str,
    object: Vec<u8>,
    inputs: &str,
    compiler: &Compiler,
    shared: &Shared,
) -> Result<Pack, KernelsError> {
    let described = describe(target, family, &object)?;
    let other = (compiler.version != shared.compiler).then(|| compiler.version.clone());
    let manifest = Manifest::of(inputs.to_owned(), other, &described);
    Pack::new(target, family, object, manifest)
}

/// Writes the packs of a family below a folder: those that were made, and those that are compressed against one of them; or all. `known` are those that are
/// there.
fn write_family(
    folder: &Path,
    family: &str,
    known: &BTreeMap<String, Pack>,
    made: &BTreeMap<&str, Pack>,
    all: bool,
) -> Result<Vec<String>, KernelsError> {
    let mut packs: BTreeMap<&str, &Pack> = known.iter().map(|(target, pack)| (target.as_str(), pack)).collect();
    packs.extend(made.iter().map(|(target, pack)| (*target, pack)));
    // A target that was made from other sources may not agree; it is compared when it is built.
    let mut current = BTreeMap::new();
    for (target, pack) in &packs {
        if inputs::hash(target, family)? == pack.manifest.inputs && has_family(FAMILIES, target, family) {
            current.insert(*target, &pack.manifest);
        }
    }
    manifest::agree(FAMILIES, family, &current)?;
    let changed = |target: &str, pack: &Pack| {
        let chain = std::iter::successors(Some(target), |target| near_of(FAMILIES, target, family));
        let compiled = chain.take(TARGETS.len()).any(|target| made.contains_key(target));
        all || compiled || !pack.is_stored_as_stated(FAMILIES, family)
    };
    let mut lines = Vec::new();
    for (target, pack) in &packs {
        if !changed(target, pack) {
            continue;
        }
        let near = near_of(FAMILIES, target, family).and_then(|near| packs.get(near));
        let place = path_in(folder, target, family);
        // A target that is not committed may have some families only.
        let name = like_of(FAMILIES, target, family).filter(|name| path_in(folder, target, name).exists());
        let load = |name: String| Ok::<_, KernelsError>((Pack::load_from(folder, target, &name)?, name));
        let like = name.map(load).transpose()?;
        let like = like.as_ref().map(|(like, name)| (name.as_str(), &like.file));
        let bytes = (pack.file.compress(near.map(|near| &near.file), like)).map_err(of(&place))?;
        if prebuilt::replace(&place, &bytes)? {
            lines.push(format!(
                "{target} {family}: {} kernels, {} bytes of code in a pack of {}",
                pack.manifest.kernels.len(),
                pack.object(family).len(),
                bytes.len()
            ));
        }
    }
    Ok(lines)
}

/// Removes the packs of families that these targets do not have any more.
fn remove(families: &[String], targets: &[String]) -> Result<Vec<String>, KernelsError> {
    let mut lines = Vec::new();
    for (target, found) in prebuilt::files()? {
        if !targets.contains(&target) {
            continue;
        }
        for family in found {
            if !families.contains(&family) || !has_family(FAMILIES, &target, &family) {
                let path = path(&target, &family);
                std::fs::remove_file(&path).map_err(at(&path))?;
                lines.push(format!("{target} {family}: removed"));
            }
        }
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The committed packs of a family, and a folder with copies of them and of another family's.
    fn copies(families: &[&str]) -> (BTreeMap<String, Pack>, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let mut packs = BTreeMap::new();
        for target in prebuilt::targets().unwrap() {
            for family in families.iter().filter(|family| has_family(FAMILIES, &target, family)) {
                let bytes = crate::read(&path(&target, family)).unwrap();
                prebuilt::replace(&path_in(folder.path(), &target, family), &bytes).unwrap();
            }
            if let Ok(pack) = Pack::load(&target, families[0]) {
                packs.insert(target, pack);
            }
        }
        (packs, folder)
    }

    /// The same pack with another byte of code.
    fn changed(pack: &Pack, target: &str) -> Pack {
        let mut object = pack.object("copy").to_vec();
        let middle = object.len() / 2;
        object[middle] ^= 1;
        Pack::new(target, "copy", object, pack.manifest.clone()).unwrap()
    }

    #[test]
    fn a_target_that_is_built_alone_leaves_the_code_of_all_others() {
        let (packs, folder) = copies(&["copy", "mask"]);
        let bytes = |target: &str, family: &str| crate::read(&path_in(folder.path(), target, family)).unwrap();
        let before: BTreeMap<&String, [Vec<u8>; 2]> = packs
            .keys()
            .map(|target| (target, [bytes(target, "copy"), bytes(target, "mask")]))
            .collect();
        // gfx1100 is what most others are stored against, gfx942 is near to none.
        for (built, rewritten) in [("gfx942", 1), ("gfx1100", 10)] {
            let made = BTreeMap::from([(built, changed(&packs[built], built))]);
            let lines = write_family(folder.path(), "copy", &packs, &made, false).unwrap();
            assert!((1..=rewritten).contains(&lines.len()), "{lines:?}");
            assert!(lines.iter().any(|line| line.starts_with(built)), "{lines:?}");
            for (target, pack) in &packs {
                let now = Pack::load_from(folder.path(), target, "copy").unwrap();
                let expected = made.get(target.as_str()).unwrap_or(pack);
                assert!(now.file == expected.file, "{target} after {built} was built");
                assert_eq!(bytes(target, "mask"), before[target][1], "{target}");
            }
            // The next round begins with the committed packs again.
            for (target, [copy, _]) in &before {
                prebuilt::replace(&path_in(folder.path(), target, "copy"), copy).unwrap();
            }
        }
    }

    #[test]
    fn packs_that_are_like_one_that_changes_are_stored_anew_and_hold_the_same() {
        let (first, like) = ("matvec_q8_q4_0", "matvec_q8_q4_1");
        let (packs, folder) = copies(&[first, like]);
        let of = |family: &str| -> BTreeMap<String, Pack> {
            let load = |target: &String| Some((target.clone(), Pack::load_from(folder.path(), target, family).ok()?));
            packs.keys().filter_map(load).collect()
        };
        let (firsts, likes) = (of(first), of(like));
        let known = &firsts["gfx1100"];
        let other: Vec<u8> = known.object(first).iter().rev().copied().collect();
        let made = BTreeMap::from([(
            "gfx1100",
            Pack::new("gfx1100", first, other, known.manifest.clone()).unwrap(),
        )]);
        write_family(folder.path(), first, &firsts, &made, false).unwrap();
        assert!(
            Pack::load_from(folder.path(), "gfx1100", like).is_err(),
            "it was stored against the one before"
        );
        write_family(folder.path(), like, &likes, &BTreeMap::new(), true).unwrap();
        for (target, before) in &likes {
            let now = Pack::load_from(folder.path(), target, like).unwrap();
            assert!(
                now.file == before.file && now.is_stored_as_stated(FAMILIES, like),
                "{target}"
            );
        }
    }

    #[test]
    fn a_pack_that_is_stored_against_another_target_is_stored_anew() {
        let (mut packs, folder) = copies(&["copy"]);
        let place = path_in(folder.path(), "gfx1101", "copy");
        prebuilt::replace(&place, &packs["gfx1101"].file.compress(None, None).unwrap()).unwrap();
        let whole = Pack::load_from(folder.path(), "gfx1101", "copy").unwrap();
        packs.insert("gfx1101".to_owned(), whole);
        let lines = write_family(folder.path(), "copy", &packs, &BTreeMap::new(), false).unwrap();
        assert!(lines.len() == 1 && lines[0].starts_with("gfx1101 "), "{lines:?}");
        let committed = crate::read(&path("gfx1101", "copy")).unwrap();
        assert!(crate::read(&place).unwrap() == committed);
    }

    #[test]
    fn what_is_current_is_not_compiled_and_an_unknown_family_is_named() {
        let shared = Shared::read().unwrap();
        let targets = ["gfx1100".to_owned(), "sm_75".to_owned()];
        let stale = plan("copy", &targets, &shared, None).unwrap().stale;
        assert!(stale.is_empty(), "{stale:?}");
        let error = chosen(&["copy".to_owned(), "nobody".to_owned()])
            .unwrap_err()
            .to_string();
        assert!(error.contains("nobody"), "{error}");
        assert_eq!(
            chosen(&["mask".to_owned(), "copy".to_owned()]).unwrap(),
            ["copy", "mask"]
        );
        let by_source = chosen(&["half_rows".to_owned(), "half_rows_q4_0".to_owned()]).unwrap();
        assert!(
            by_source.len() == 16 && by_source[0] == "half_rows_bf16",
            "{by_source:?}"
        );
    }
}
