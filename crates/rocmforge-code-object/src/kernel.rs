//! Metadata of a kernel.

use crate::{ArgMeta, KernelDescriptor, ParseError};

/// Metadata of one kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KernelMeta {
    /// The name `hipModuleGetFunction` takes.
    pub name: String,
    /// The symbol of its descriptor, `name.kd`.
    pub symbol: String,
    /// Bytes of the kernarg segment, hidden arguments included.
    pub kernarg_size: u32,
    /// Alignment of the kernarg segment in bytes, a power of two.
    pub kernarg_align: u32,
    /// Its arguments, explicit ones first, by rising offset.
    pub args: Vec<ArgMeta>,
    /// Static LDS in bytes.
    pub lds_size: u32,
    /// Scratch in bytes for each work-item.
    pub private_size: u32,
    /// Vector registers for each work-item.
    pub vgpr_count: u32,
    /// Accumulation registers for each work-item (CDNA), within `vgpr_count`.
    pub agpr_count: u32,
    /// Scalar registers for each wave.
    pub sgpr_count: u32,
    /// Vector registers spilled to scratch.
    pub vgpr_spills: u32,
    /// Scalar registers spilled.
    pub sgpr_spills: u32,
    /// Most work-items a workgroup may have.
    pub max_workgroup_size: u32,
    /// Lanes of a wave, 32 or 64.
    pub wavefront_size: u32,
    /// Whether its stack may grow beyond `private_size` (recursion, indirect calls).
    pub uses_dynamic_stack: bool,
    /// The exact workgroup size it was compiled for, if it was.
    pub required_workgroup_size: Option<[u32; 3]>,
    /// Where its code is, for a loader. `None` for a format that has no descriptors.
    pub code: Option<KernelCode>,
}

/// Where a kernel's code is. Addresses are the ELF file's, before relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelCode {
    /// Address of the descriptor.
    pub descriptor_address: u64,
    /// Address of the first instruction, a multiple of 256.
    pub entry_address: u64,
    /// Bytes from the entry to the end of the segment that holds it: an upper bound of the code.
    pub code_limit: u64,
    /// The descriptor.
    pub descriptor: KernelDescriptor,
}

impl KernelMeta {
    /// The arguments a caller passes: those the launch does not fill in itself.
    pub fn explicit_args(&self) -> impl Iterator<Item = &ArgMeta> {
        self.args.iter().filter(|arg| !arg.kind.is_hidden())
    }

    pub(crate) fn refuse(&self, reason: String) -> ParseError {
        ParseError::Kernel {
            kernel: self.name.chars().take(256).collect(),
            reason,
        }
    }

    /// Whether the parts agree with each other and with the descriptor, which is what the hardware goes by.
    pub(crate) fn check(&self) -> Result<(), ParseError> {
        if !matches!(self.wavefront_size, 32 | 64) {
            return Err(self.refuse(format!("a wavefront of {} lanes; 32 and 64 exist", self.wavefront_size)));
        }
        if !self.kernarg_align.is_power_of_two() || self.kernarg_align > 4096 {
            return Err(self.refuse(format!(
                "kernarg alignment {} is no power of two to 4096",
                self.kernarg_align
            )));
        }
        if !(1..=1024).contains(&self.max_workgroup_size) {
            return Err(self.refuse(format!(
                "workgroups of up to {}; 1 to 1024 exist",
                self.max_workgroup_size
            )));
        }
        let mut end = 0;
        for (index, arg) in self.args.iter().enumerate() {
            let stop = arg
                .offset
                .checked_add(arg.size)
                .filter(|stop| *stop <= self.kernarg_size)
                .ok_or_else(|| {
                    let (offset, size) = (arg.offset, arg.size);
                    self.refuse(format!(
                        "argument {index} takes {size} bytes at {offset} of {}",
                        self.kernarg_size
                    ))
                })?;
            if arg.offset < end {
                return Err(self.refuse(format!("argument {index} at {} starts before {end}", arg.offset)));
            }
            end = stop;
        }
        let Some(code) = &self.code else { return Ok(()) };
        let descriptor = &code.descriptor;
        let same = [
            ("LDS", self.lds_size, descriptor.group_segment_fixed_size),
            ("scratch", self.private_size, descriptor.private_segment_fixed_size),
            ("kernarg", self.kernarg_size, descriptor.kernarg_size),
            (
                "wavefront",
                self.wavefront_size,
                if descriptor.wavefront_size32() { 32 } else { 64 },
            ),
        ];
        match same.iter().find(|(_, metadata, descriptor)| metadata != descriptor) {
            Some((what, metadata, descriptor)) => Err(self.refuse(format!(
                "{what}: metadata says {metadata}, the descriptor says {descriptor}"
            ))),
            None => Ok(()),
        }
    }
}
