//! Decoded instructions, on their way to lowered ones.

use rocmforge_isa::{Atomic, Inst, Lanes, Op, Operand, Registers};

/// A decoded instruction, and the first lowered one that it became.
pub(super) struct Decoded {
    pub(super) inst: Inst,
    pub(super) pc: u64,
    pub(super) index: usize,
}

/// The instruction of a function at an ELF address, as an index: they are in the order of their addresses.
pub(super) fn index_at(function: &[Decoded], pc: u64) -> Option<usize> {
    function.binary_search_by_key(&pc, |at| at.pc).ok()
}

/// An instruction, or both halves of a pair, which read before either writes.
pub(super) fn each_half(inst: &Inst) -> impl Iterator<Item = &Inst> {
    [Some(inst), inst.dual.as_deref()].into_iter().flatten()
}

/// Whether it may read lanes that are off.
pub(super) fn crosses_lanes(inst: &Inst) -> bool {
    inst.op.facts().lanes == Lanes::Others || inst.mods.dpp.is_some()
}

/// Whether it writes the mask of active lanes.
pub(super) fn writes_exec(inst: &Inst) -> bool {
    let exec = |operand| matches!(operand, Operand::ExecLo | Operand::ExecHi);
    inst.op.facts().writes.has(Registers::EXEC) || exec(inst.dst) || exec(inst.sdst)
}

/// Whether an instruction leaves a part of its destination as it was, in lanes that are on, or may.
pub(super) fn keeps_rest(inst: &Inst) -> bool {
    inst.op.facts().keeps_rest || inst.ty.dst.is_half() || inst.mods.dpp.is_some()
}

/// Whether an operation compares memory with a value and swaps it for another.
pub(super) fn is_compare_and_swap(op: Op) -> bool {
    op.facts().atomic == Atomic::CompareAndSwap
}
