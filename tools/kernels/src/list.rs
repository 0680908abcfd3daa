//! `kernels list`: what the manifests say of each kernel.

use crate::KernelsError;
use crate::prebuilt::{self, Pack};
use rocmforge_gpu_test::say;

/// Prints registers, LDS and spills of every kernel.
pub(crate) fn list(arch: Vec<String>) -> Result<(), KernelsError> {
    let files = prebuilt::files()?;
    let targets = if arch.is_empty() {
        vec!["gfx1100".to_owned()]
    } else {
        arch
    };
    for target in targets {
        let Some(families) = files.get(&target) else {
            return Err(KernelsError::NoPack { target });
        };
        say!(
            "{target:<10} {:<28} {:>5} {:>5} {:>5} {:>6} {:>6}",
            "kernel",
            "vgpr",
            "agpr",
            "sgpr",
            "LDS B",
            "spills"
        );
        for family in families {
            for (name, k) in &Pack::load(&target, family)?.manifest.kernels {
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
