//! The kernel argument segment: explicit arguments and the hidden ones the launch fills in.

use rocmforge_code_object::{ArgKind, HiddenArg, KernelMeta, UserSgpr};

/// Why the argument segment cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KernargError {
    /// Wrong number of explicit arguments.
    #[error("kernel `{kernel}` takes {expected} arguments, {given} were given")]
    Count {
        /// The kernel.
        kernel: String,
        /// Arguments it declares.
        expected: usize,
        /// Arguments passed.
        given: usize,
    },
    /// An explicit argument of the wrong size.
    #[error("argument {index} of kernel `{kernel}` has {expected} B, {given} B were given")]
    Size {
        /// The kernel.
        kernel: String,
        /// Which explicit argument, from 0.
        index: usize,
        /// Bytes it declares.
        expected: u32,
        /// Bytes passed.
        given: usize,
    },
    /// An argument that does not fit the segment (a damaged code object).
    #[error("argument at offset {offset} of kernel `{kernel}` lies outside its {size} B of arguments")]
    Outside {
        /// The kernel.
        kernel: String,
        /// Offset of the argument.
        offset: u32,
        /// Size of the segment.
        size: u32,
    },
}

/// Geometry that the hidden arguments tell the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Geometry {
    /// Workgroups in x, y, z.
    pub grid: [u32; 3],
    /// Work-items of a workgroup in x, y, z.
    pub block: [u32; 3],
    /// Bytes of dynamic LDS.
    pub dynamic_lds: u32,
}

/// Upper half of a generic address that means LDS.
pub const SHARED_APERTURE: u32 = 0x0001_0000;
/// Upper half of a generic address that means private memory.
pub const PRIVATE_APERTURE: u32 = 0x0002_0000;

/// Bytes of the dispatch packet that kernels of code object version 4 read their geometry from.
const PACKET: usize = 64;
/// Bytes of the queue they read the apertures from, as far as it is described.
const QUEUE: usize = 128;

/// Whether the kernel gets a pointer to either in its registers.
fn wants_packet(meta: &KernelMeta) -> bool {
    meta.code.as_ref().is_some_and(|code| {
        let mut wanted = code.descriptor.user_sgprs();
        wanted.any(|(what, _)| matches!(what, UserSgpr::DispatchPtr | UserSgpr::QueuePtr))
    })
}

/// Where in the segment the dispatch packet lies, behind the arguments; the queue lies behind it.
pub(crate) fn packet_offset(kernarg_size: u32) -> u64 {
    u64::from(kernarg_size).next_multiple_of(64)
}

/// Where the queue lies.
pub(crate) fn queue_offset(kernarg_size: u32) -> u64 {
    packet_offset(kernarg_size) + PACKET as u64
}

/// The AQL dispatch packet and the queue, as the HSA runtime specification and LLVM's AMDGPU usage guide lay them out.
fn packet_and_queue(meta: &KernelMeta, geometry: &Geometry) -> [u8; PACKET + QUEUE] {
    let mut out = [0; PACKET + QUEUE];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    let (kernel_dispatch, dimensions) = (2u16, 3u16);
    put(0, &kernel_dispatch.to_le_bytes());
    put(2, &dimensions.to_le_bytes());
    for (n, (grid, block)) in geometry.grid.iter().zip(geometry.block).enumerate() {
        put(4 + 2 * n, &(block as u16).to_le_bytes());
        put(12 + 4 * n, &grid.saturating_mul(block).to_le_bytes());
    }
    put(24, &meta.private_size.to_le_bytes());
    put(28, &meta.lds_size.saturating_add(geometry.dynamic_lds).to_le_bytes());
    put(PACKET + 0x40, &SHARED_APERTURE.to_le_bytes());
    put(PACKET + 0x44, &PRIVATE_APERTURE.to_le_bytes());
    out
}

/// Lays out the segment a kernel reads its arguments from: `explicit` in order, one slice per explicit argument.
///
/// Its length is rounded up to 64 bytes: compilers widen scalar loads of arguments past the last one. Behind the arguments
/// lie the dispatch packet and the queue that kernels of code object version 4 point to.
///
/// # Errors
/// [`KernargError`] when number or sizes do not fit the kernel's metadata.
pub fn kernarg_bytes(meta: &KernelMeta, explicit: &[&[u8]], geometry: &Geometry) -> Result<Vec<u8>, KernargError> {
    let kernel = || meta.name.clone();
    let expected = meta.explicit_args().count();
    if expected != explicit.len() {
        return Err(KernargError::Count {
            kernel: kernel(),
            expected,
            given: explicit.len(),
        });
    }
    let mut out = vec![0; (meta.kernarg_size as usize).next_multiple_of(64)];
    let mut put = |offset: u32, bytes: &[u8]| {
        let range = offset as usize..(offset as usize).saturating_add(bytes.len());
        match out.get_mut(range) {
            Some(slot) => {
                slot.copy_from_slice(bytes);
                Ok(())
            }
            None => Err(KernargError::Outside {
                kernel: kernel(),
                offset,
                size: meta.kernarg_size,
            }),
        }
    };
    for (index, (arg, bytes)) in meta.explicit_args().zip(explicit).enumerate() {
        if arg.size as usize != bytes.len() {
            return Err(KernargError::Size {
                kernel: kernel(),
                index,
                expected: arg.size,
                given: bytes.len(),
            });
        }
        put(arg.offset, bytes)?;
    }
    for arg in &meta.args {
        if let ArgKind::Hidden(hidden) = arg.kind {
            let value = hidden_value(hidden, geometry).to_le_bytes();
            put(arg.offset, &value[..(arg.size as usize).min(8)])?;
        }
    }
    if wants_packet(meta) {
        out.extend(packet_and_queue(meta, geometry));
    }
    Ok(out)
}

/// Writes a hidden argument that only the launch knows, an address in most cases, into an argument segment; false if the kernel does not
/// ask for it.
pub fn set_hidden(meta: &KernelMeta, segment: &mut [u8], hidden: HiddenArg, value: u64) -> bool {
    let Some(arg) = meta.args.iter().find(|arg| arg.kind == ArgKind::Hidden(hidden)) else {
        return false;
    };
    let (at, size) = (arg.offset as usize, (arg.size as usize).min(8));
    let slot = segment.get_mut(at..at.saturating_add(size));
    slot.map(|slot| slot.copy_from_slice(&value.to_le_bytes()[..size]))
        .is_some()
}

fn hidden_value(arg: HiddenArg, geometry: &Geometry) -> u64 {
    let Geometry {
        grid,
        block,
        dynamic_lds,
    } = geometry;
    let dims = match grid
        .iter()
        .zip(block)
        .map(|(g, b)| u64::from(*g) * u64::from(*b) > 1)
        .collect::<Vec<_>>()[..]
    {
        [_, _, true] => 3,
        [_, true, _] => 2,
        _ => 1,
    };
    match arg {
        HiddenArg::BlockCountX => grid[0].into(),
        HiddenArg::BlockCountY => grid[1].into(),
        HiddenArg::BlockCountZ => grid[2].into(),
        HiddenArg::GroupSizeX => block[0].into(),
        HiddenArg::GroupSizeY => block[1].into(),
        HiddenArg::GroupSizeZ => block[2].into(),
        HiddenArg::GridDims => dims,
        HiddenArg::DynamicLdsSize => (*dynamic_lds).into(),
        HiddenArg::PrivateBase => PRIVATE_APERTURE.into(),
        HiddenArg::SharedBase => SHARED_APERTURE.into(),
        // HIP launches whole workgroups, so remainders and offsets are 0. `set_hidden` fills in what only the launch
        // knows; a kernel that dereferences a null pointer of another faults there.
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_code_object::ArgMeta;

    fn arg(offset: u32, size: u32, kind: ArgKind) -> ArgMeta {
        ArgMeta {
            offset,
            size,
            kind,
            name: None,
            type_name: None,
            address_space: None,
            is_const: false,
        }
    }

    #[test]
    fn explicit_and_hidden_arguments_land_at_their_offsets() {
        let meta = KernelMeta {
            name: "k".into(),
            kernarg_size: 32,
            args: vec![
                arg(0, 8, ArgKind::GlobalPointer),
                arg(8, 4, ArgKind::Value),
                arg(16, 4, ArgKind::Hidden(HiddenArg::BlockCountX)),
                arg(20, 2, ArgKind::Hidden(HiddenArg::GroupSizeY)),
                arg(22, 2, ArgKind::Hidden(HiddenArg::GridDims)),
                arg(24, 4, ArgKind::Hidden(HiddenArg::DynamicLdsSize)),
            ],
            ..KernelMeta::default()
        };
        let geometry = Geometry {
            grid: [7, 1, 1],
            block: [32, 4, 1],
            dynamic_lds: 96,
        };
        let bytes = kernarg_bytes(&meta, &[&9u64.to_le_bytes(), &5u32.to_le_bytes()], &geometry).expect("fits");
        assert_eq!(bytes[0], 9);
        assert_eq!(bytes[8], 5);
        assert_eq!((bytes[16], bytes[20], bytes[22], bytes[24]), (7, 4, 2, 96));
        let wrong = kernarg_bytes(&meta, &[&9u64.to_le_bytes(), &[5]], &geometry).expect_err("size");
        assert_eq!(
            wrong,
            KernargError::Size {
                kernel: "k".into(),
                index: 1,
                expected: 4,
                given: 1
            }
        );
        assert!(matches!(
            kernarg_bytes(&meta, &[], &geometry),
            Err(KernargError::Count {
                expected: 2,
                given: 0,
                ..
            })
        ));
    }
}
