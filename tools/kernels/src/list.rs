//! `kernels list`: what the manifest says of each kernel.

use crate::manifest::Manifest;
use crate::{KernelsError, prebuilt};
use rocmforge_gpu_test::say;

/// Prints registers, LDS and spills of every kernel.
pub(crate) fn list(arch: Vec<String>) -> Result<(), KernelsError> {
    let manifest = Manifest::read(&prebuilt())?;
    let targets = if arch.is_empty() {
        vec!["gfx1100".to_owned()]
    } else {
        arch
    };
    for target in targets {
        say!(
            "{target:<10} {:<28} {:>5} {:>5} {:>5} {:>6} {:>6}",
            "kernel",
            "vgpr",
            "agpr",
            "sgpr",
            "LDS B",
            "spills"
        );
        for family in manifest.target(&target)?.families.values() {
            for (name, k) in &family.kernels {
                say!(
                    "{target:<10} {name:<28} {:>5} {:>5} {:>5} {:>6} {:>6}",
                    k.vgprs,
                    k.agprs,
                    k.sgprs,
                    k.lds_bytes,
                    k.vgpr_spills + k.sgpr_spills
                );
            }
        }
    }
    Ok(())
}
