//! Classes of operations, most of them by their facts.

use crate::facts::{Memory, Registers, Unit};
use crate::op::Op;

impl Op {
    /// Vector operations that invalidate or write back caches and have no address.
    pub fn is_cache_operation(self) -> bool {
        let facts = self.facts();
        facts.unit == Unit::VectorMemory && facts.memory == Memory::None
    }

    /// Compares that write the mask of active lanes.
    pub fn is_exec_compare(self) -> bool {
        let facts = self.facts();
        facts.unit == Unit::Vector && facts.writes.has(Registers::EXEC)
    }

    /// Byte that a conversion from or to FP8 or BF8 reads or writes, by its `op_sel`: the first of a conversion, whose two bits
    /// are in reverse order, or the second. `None` for other operations.
    pub fn fp8_byte(self, op_sel: u8) -> Option<u8> {
        match self {
            Op::VCvtF32Fp8 | Op::VCvtF32Bf8 => Some((op_sel & 1) << 1 | op_sel >> 1 & 1),
            Op::VCvtSrFp8F32 | Op::VCvtSrBf8F32 => Some(op_sel >> 2),
            _ => None,
        }
    }
}
