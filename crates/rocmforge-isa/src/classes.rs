//! Classes of operations, by their facts.

use crate::facts::{Memory, OpSel, Registers, Unit};
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

    /// Operations whose last source is the old value of their destination, which their encodings have no field for: a product is
    /// added to it. Matrix products are not of this class.
    pub fn accumulates(self) -> bool {
        let facts = self.facts();
        let arithmetic = matches!(facts.unit, Unit::Vector | Unit::Dot);
        arithmetic && facts.reads.has(Registers::DST) && !facts.writes.has(Registers::SRC)
    }

    /// Byte that a conversion from or to FP8 or BF8 reads or writes, by its `op_sel`. `None` for other operations.
    pub fn fp8_byte(self, op_sel: u8) -> Option<u8> {
        match self.facts().op_sel {
            OpSel::SourceByte => Some((op_sel & 1) << 1 | op_sel >> 1 & 1),
            OpSel::DestinationByte => Some(op_sel >> 2),
            OpSel::Halves | OpSel::Mixed | OpSel::ThirdHalf | OpSel::SourcePair | OpSel::Options => None,
        }
    }
}
