//! The kernel descriptor: 64 bytes that the command processor reads when it starts a kernel.

/// A kernel descriptor. The fields have the names of LLVM's AMDGPU usage guide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KernelDescriptor {
    /// Static LDS of a workgroup in bytes.
    pub group_segment_fixed_size: u32,
    /// Scratch of a work-item in bytes.
    pub private_segment_fixed_size: u32,
    /// Bytes of the kernarg segment.
    pub kernarg_size: u32,
    /// Bytes from the descriptor's address to the first instruction; may be negative.
    pub kernel_code_entry_byte_offset: i64,
    /// `COMPUTE_PGM_RSRC3`.
    pub compute_pgm_rsrc3: u32,
    /// `COMPUTE_PGM_RSRC1`: registers, rounding and denormal modes.
    pub compute_pgm_rsrc1: u32,
    /// `COMPUTE_PGM_RSRC2`: user SGPRs, workgroup and work-item ids, scratch.
    pub compute_pgm_rsrc2: u32,
    /// Which user SGPRs are set up, wavefront size, dynamic stack.
    pub kernel_code_properties: u16,
    /// Kernel arguments preloaded into SGPRs (gfx940): length in the low 7 bits, offset above, in dwords.
    pub kernarg_preload: u16,
}

/// What a user SGPR holds when a wave starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UserSgpr {
    /// Buffer descriptor of scratch, 4 registers.
    PrivateSegmentBuffer,
    /// Address of the AQL dispatch packet, 2 registers.
    DispatchPtr,
    /// Address of the HSA queue, 2 registers.
    QueuePtr,
    /// Address of the kernarg segment, 2 registers.
    KernargSegmentPtr,
    /// Number of the dispatch, 2 registers.
    DispatchId,
    /// Base of flat scratch, 2 registers.
    FlatScratchInit,
    /// Scratch of a work-item in bytes, 1 register.
    PrivateSegmentSize,
}

impl UserSgpr {
    /// How many registers it takes.
    pub const fn registers(self) -> u8 {
        match self {
            Self::PrivateSegmentBuffer => 4,
            Self::PrivateSegmentSize => 1,
            _ => 2,
        }
    }
}

impl KernelDescriptor {
    /// Bytes of a descriptor.
    pub const SIZE: usize = 64;

    /// Reads a descriptor. Every pattern of bytes is one; whether it makes sense is checked against the metadata.
    pub fn parse(bytes: &[u8; 64]) -> Self {
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        Self {
            group_segment_fixed_size: word(0),
            private_segment_fixed_size: word(4),
            kernarg_size: word(8),
            kernel_code_entry_byte_offset: i64::from_le_bytes(std::array::from_fn(|i| bytes[16 + i])),
            compute_pgm_rsrc3: word(44),
            compute_pgm_rsrc1: word(48),
            compute_pgm_rsrc2: word(52),
            kernel_code_properties: half(56),
            kernarg_preload: half(58),
        }
    }

    /// The user SGPRs a wave starts with: each with its first register, in register order. Preloaded kernel arguments
    /// follow behind the last.
    pub fn user_sgprs(&self) -> impl Iterator<Item = (UserSgpr, u8)> + use<> {
        const ORDER: [UserSgpr; 7] = [
            UserSgpr::PrivateSegmentBuffer,
            UserSgpr::DispatchPtr,
            UserSgpr::QueuePtr,
            UserSgpr::KernargSegmentPtr,
            UserSgpr::DispatchId,
            UserSgpr::FlatScratchInit,
            UserSgpr::PrivateSegmentSize,
        ];
        let enabled = self.kernel_code_properties;
        let mut next = 0;
        ORDER
            .into_iter()
            .enumerate()
            .filter(move |(bit, _)| enabled >> bit & 1 != 0)
            .map(move |(_, what)| {
                let first = next;
                next += what.registers();
                (what, first)
            })
    }

    /// Number of user SGPRs. The workgroup ids that are enabled follow behind them.
    pub fn user_sgpr_count(&self) -> u8 {
        (self.compute_pgm_rsrc2 >> 1 & 0x1f) as u8
    }

    /// Whether the wave runs with 32 lanes (RDNA), not 64.
    pub fn wavefront_size32(&self) -> bool {
        self.kernel_code_properties >> 10 & 1 != 0
    }

    /// Whether the stack may grow beyond the fixed size.
    pub fn uses_dynamic_stack(&self) -> bool {
        self.kernel_code_properties >> 11 & 1 != 0
    }

    /// Whether the kernel uses scratch.
    pub fn enable_private_segment(&self) -> bool {
        self.compute_pgm_rsrc2 & 1 != 0
    }

    /// Whether an SGPR holds the workgroup's id along X, Y, Z (before gfx12, which has them in trap registers).
    pub fn enable_sgpr_workgroup_id(&self) -> [bool; 3] {
        std::array::from_fn(|axis| self.compute_pgm_rsrc2 >> (7 + axis) & 1 != 0)
    }

    /// Whether an SGPR holds the workgroup's info.
    pub fn enable_sgpr_workgroup_info(&self) -> bool {
        self.compute_pgm_rsrc2 >> 10 & 1 != 0
    }

    /// How many of the work-item ids X, Y, Z the VGPRs hold beyond X: 0 (X), 1 (X, Y), 2 (X, Y, Z).
    pub fn enable_vgpr_workitem_id(&self) -> u8 {
        (self.compute_pgm_rsrc2 >> 11 & 3) as u8
    }

    /// Rounding mode of f32: 0 nearest even, 1 up, 2 down, 3 towards zero.
    pub fn float_round_mode_32(&self) -> u8 {
        (self.compute_pgm_rsrc1 >> 12 & 3) as u8
    }

    /// Rounding mode of f16 and f64.
    pub fn float_round_mode_16_64(&self) -> u8 {
        (self.compute_pgm_rsrc1 >> 14 & 3) as u8
    }

    /// Denormals of f32: 0 flush sources and results, 1 flush results, 2 flush sources, 3 keep.
    pub fn float_denorm_mode_32(&self) -> u8 {
        (self.compute_pgm_rsrc1 >> 16 & 3) as u8
    }

    /// Denormals of f16 and f64.
    pub fn float_denorm_mode_16_64(&self) -> u8 {
        (self.compute_pgm_rsrc1 >> 18 & 3) as u8
    }

    /// Whether clamping turns NaN into 0 (before gfx12).
    pub fn enable_dx10_clamp(&self) -> bool {
        self.compute_pgm_rsrc1 >> 21 & 1 != 0
    }

    /// Whether instructions quiet signalling NaN as IEEE 754-2008 says (before gfx12).
    pub fn enable_ieee_mode(&self) -> bool {
        self.compute_pgm_rsrc1 >> 23 & 1 != 0
    }

    /// Whether a workgroup runs on both halves of a work-group processor (gfx10 and later).
    pub fn enable_wgp_mode(&self) -> bool {
        self.compute_pgm_rsrc1 >> 29 & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits of LLVM's AMDGPU usage guide, one at a time.
    #[test]
    fn each_field_has_its_own_bits() {
        let of = |rsrc1: u32, rsrc2: u32| KernelDescriptor {
            compute_pgm_rsrc1: rsrc1,
            compute_pgm_rsrc2: rsrc2,
            ..KernelDescriptor::default()
        };
        for bit in 0..32 {
            let one = of(1 << bit, 0);
            let part = |first: u32| {
                if bit >= first {
                    1u8.checked_shl(bit - first).unwrap_or(0) & 3
                } else {
                    0
                }
            };
            assert_eq!(one.float_round_mode_32(), part(12), "bit {bit}");
            assert_eq!(one.float_round_mode_16_64(), part(14), "bit {bit}");
            assert_eq!(one.float_denorm_mode_32(), part(16), "bit {bit}");
            assert_eq!(one.float_denorm_mode_16_64(), part(18), "bit {bit}");
            assert_eq!(one.enable_dx10_clamp(), bit == 21, "bit {bit}");
            assert_eq!(one.enable_ieee_mode(), bit == 23, "bit {bit}");
            let two = of(0, 1 << bit);
            assert_eq!(
                two.enable_sgpr_workgroup_id(),
                [7, 8, 9].map(|axis| bit == axis),
                "bit {bit}"
            );
            assert_eq!(two.enable_sgpr_workgroup_info(), bit == 10, "bit {bit}");
            assert_eq!(two.enable_vgpr_workitem_id(), part(11), "bit {bit}");
        }
    }
}
