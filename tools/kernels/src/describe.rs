//! Metadata of a compiled object, and the limits that each kernel must keep.

use crate::targets::is_ptx;
use crate::{KernelsError, flat, occupancy};
use rocmforge_code_object::{CodeObject, KernelMeta};

/// LDS that a workgroup of AMD's targets can have.
const AMD_LDS: u32 = 64 << 10;
/// Shared memory that PTX may declare: the driver refuses the whole module otherwise. More exists on most cards, but as dynamic
/// shared memory only (CUDA C++ Programming Guide, "Compute Capabilities").
const PTX_LDS: u32 = 48 << 10;

/// Instruction cache that two or more compute units share, in bytes: RDNA's and CDNA 2's; CDNA 3 has twice that. A kernel that is longer waits for
/// its own code at every turn of a loop that does not fit.
const CODE: u64 = 32 << 10;
/// gfx1030 has that cache too, and no matrix instructions: 128 FMA take the place of one, so that attention in 16 bits has up to 73 KiB there.
const CODE_OF_FMA: u64 = 80 << 10;

/// Reads what an object says of itself and refuses spills, private memory (in PTX `.local`), too much LDS, fewer waves than
/// stated, AMD code beyond the instruction cache and flat addresses.
pub(crate) fn describe(arch: &str, family: &str, bytes: &[u8]) -> Result<CodeObject, KernelsError> {
    let bad = |reason: String| KernelsError::BadObject {
        arch: arch.into(),
        family: family.into(),
        reason,
    };
    let object = CodeObject::parse(bytes).map_err(|e| bad(e.to_string()))?;
    if object.target.arch != arch {
        return Err(bad(format!("it is for {}", object.target.arch)));
    }
    for kernel in &object.kernels {
        fits(arch, kernel)?;
        occupancy::check(arch, kernel)?;
        short(arch, kernel, &object)?;
    }
    flat::check(arch, family, bytes)?;
    Ok(object)
}

/// Refuses a kernel that the instruction cache does not hold. Its code ends before that of the next one.
fn short(arch: &str, kernel: &KernelMeta, object: &CodeObject) -> Result<(), KernelsError> {
    let Some(code) = kernel.code else { return Ok(()) };
    let others = object.kernels.iter().filter_map(|other| other.code);
    let behind = others.filter_map(|other| other.entry_address.checked_sub(code.entry_address));
    let bytes = behind.filter(|&n| n > 0).fold(code.code_limit, u64::min);
    let limit = if arch == "gfx1030" { CODE_OF_FMA } else { CODE };
    if bytes <= limit {
        return Ok(());
    }
    Err(KernelsError::Code {
        arch: arch.into(),
        kernel: kernel.name.clone(),
        bytes,
        limit,
    })
}

fn fits(arch: &str, kernel: &KernelMeta) -> Result<(), KernelsError> {
    let limit = if is_ptx(arch) { PTX_LDS } else { AMD_LDS };
    if kernel.lds_size > limit {
        return Err(KernelsError::Lds {
            arch: arch.into(),
            kernel: kernel.name.clone(),
            bytes: kernel.lds_size,
            limit,
        });
    }
    let what = match kernel {
        k if k.vgpr_spills > 0 => format!("spills {} vector registers", k.vgpr_spills),
        k if k.sgpr_spills > 0 => format!("spills {} scalar registers", k.sgpr_spills),
        k if k.private_size > 0 => format!("uses {} bytes of private memory", k.private_size),
        k if k.uses_dynamic_stack => "has a dynamic stack".to_owned(),
        _ => return Ok(()),
    };
    Err(KernelsError::Spills {
        arch: arch.into(),
        kernel: kernel.name.clone(),
        what,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_code_object::{KernelCode, KernelDescriptor};

    /// PTX of one kernel with so many bytes of shared memory.
    fn ptx(bytes: u32) -> String {
        format!(
            ".version 8.0\n.target sm_75\n.address_size 64\n.shared .align 16 .b8 tile[{bytes}];\n\
             .visible .entry k()\n.maxntid 128, 1, 1\n{{\n\tst.shared.u32 [tile], 0;\n\tret;\n}}\n\0"
        )
    }

    #[test]
    fn ptx_has_48_kib_of_static_shared_memory_and_no_more() {
        assert_eq!(
            describe("sm_75", "family", ptx(49_152).as_bytes()).unwrap().kernels[0].lds_size,
            49_152
        );
        let error = describe("sm_75", "family", ptx(49_153).as_bytes()).unwrap_err();
        assert!(
            matches!(
                &error,
                KernelsError::Lds {
                    bytes: 49_153,
                    limit: 49_152,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn code_beyond_the_instruction_cache_is_refused() {
        let kernel = |name: &str, entry_address, code_limit| KernelMeta {
            name: name.into(),
            code: Some(KernelCode {
                descriptor_address: 0,
                entry_address,
                code_limit,
                descriptor: KernelDescriptor::parse(&[0; 64]),
            }),
            ..KernelMeta::default()
        };
        let object = CodeObject {
            kernels: vec![kernel("last", 0x9000, 0x8000), kernel("first", 0x1000, 0x10000)],
            ..CodeObject::default()
        };
        for kernel in &object.kernels {
            short("gfx1100", kernel, &object).expect("32 KiB each");
        }
        let object = CodeObject {
            kernels: vec![kernel("last", 0x9100, 0x8100), kernel("first", 0x1000, 0x10000)],
            ..CodeObject::default()
        };
        for kernel in &object.kernels {
            let error = short("gfx1100", kernel, &object).unwrap_err();
            assert!(matches!(error, KernelsError::Code { bytes: 0x8100, .. }), "{error}");
        }
    }

    /// What clang makes of an array whose index it cannot tell when it compiles.
    #[test]
    fn local_memory_of_ptx_is_refused() {
        let text = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k()\n.maxntid 128, 1, 1\n{\n\
                    \t.local .align 16 .b8 \t__local_depot0[4144];\n\t.reg .b64 \t%SP;\n\tret;\n}\n\0";
        let error = describe("sm_75", "family", text.as_bytes()).unwrap_err();
        assert!(
            matches!(&error, KernelsError::Spills { kernel, what, .. } if kernel == "k" && what.contains("4144")),
            "{error}"
        );
    }

    #[test]
    fn an_object_for_another_target_is_refused() {
        let error = describe("sm_90", "family", ptx(4).as_bytes()).unwrap_err();
        assert!(matches!(&error, KernelsError::BadObject { .. }), "{error}");
    }
}
