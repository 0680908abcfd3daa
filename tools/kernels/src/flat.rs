//! Flat addresses in AMD's code: accesses whose pointer may be to global memory, LDS or private memory.
//!
//! They take both counters of waits and both paths to memory, where a plain access takes one. Whether the compiler finds out what a
//! pointer is to depends on the source, not on the target, so the two instruction sets that the simulator decodes stand for all.

use super::KernelsError;
use rocmforge_amdgcn::{Arch, Class, Inst, Program};

/// Where the object would lie: any address does.
const BASE: u64 = 1 << 20;

/// Refuses an object with a flat access, if its instructions can be read here.
pub(crate) fn check(arch: &str, family: &str, object: &[u8]) -> Result<(), KernelsError> {
    let Some(program) = load(arch, family, object)? else {
        return Ok(());
    };
    let first = flat(&program).next();
    let Some((kernel, pc, inst)) = first else {
        return Ok(());
    };
    let frames = program.frames(pc);
    Err(KernelsError::Flat {
        arch: arch.to_owned(),
        kernel: kernel.to_owned(),
        instruction: inst.to_string(),
        place: frames.first().map_or_else(|| format!("{pc:#x}"), ToString::to_string),
    })
}

/// The object's code, on a processor whose instructions are decoded here.
fn load(arch: &str, family: &str, object: &[u8]) -> Result<Option<Program>, KernelsError> {
    if arch.parse::<Arch>().is_err() {
        return Ok(None);
    }
    let program = Program::load(object, BASE).map_err(|error| KernelsError::BadObject {
        arch: arch.to_owned(),
        family: family.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(Some(program))
}

/// The flat accesses, each with the kernel before it: a function that is not inlined belongs to one of the object's kernels.
fn flat(program: &Program) -> impl Iterator<Item = (&str, u64, Inst)> {
    let flat = program
        .instructions()
        .filter(|(_, inst)| Class::of(inst) == Class::Flat);
    flat.map(|(pc, inst)| {
        let before = program.kernels().iter().filter(|kernel| kernel.entry() <= pc);
        let kernel = before.max_by_key(|kernel| kernel.entry());
        (kernel.map_or("", |kernel| kernel.name.as_str()), pc, inst)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prebuilt::{self, Pack};
    use rocmforge_code_object::PackFile;

    /// A faulty kernel of the sanitizer keeps a generic pointer to LDS.
    #[test]
    fn a_flat_access_is_refused_with_its_line() {
        let packed = include_bytes!("../../../crates/rocmforge-sanitize/tests/kernels/prebuilt/gfx1100.pack");
        let pack = PackFile::read(packed, |_| Ok(None)).expect("a pack");
        let objects: Vec<(&str, &[u8])> = pack.objects().collect();
        let flat: Vec<String> = objects
            .iter()
            .filter_map(|(name, object)| Some(check("gfx1100", name, object).err()?.to_string()))
            .collect();
        assert!(!flat.is_empty() && flat.len() < objects.len() / 2, "{flat:?}");
        assert!(
            flat.iter()
                .all(|error| error.contains("flat_") && error.contains(".hip:")),
            "{flat:?}"
        );
        // No other processor's instructions are read.
        let (name, object) = objects.first().expect("one");
        assert!(check("gfx1030", name, object).is_ok());
    }

    #[test]
    fn no_committed_kernel_has_one() {
        for arch in Arch::ALL {
            for family in &prebuilt::files().unwrap()[arch.name()] {
                let pack = Pack::load(arch.name(), family).unwrap();
                check(arch.name(), family, pack.object(family)).expect("none");
            }
        }
    }
}
