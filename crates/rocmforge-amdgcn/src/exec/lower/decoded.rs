//! Decoded instructions, on their way to lowered ones.

use rocmforge_isa::{Atomic, Inst, Op};

/// A decoded instruction, and the first lowered one that it became.
pub(super) struct Decoded {
    pub(super) inst: Inst,
    pub(super) pc: u64,
    pub(super) index: usize,
}

/// Whether an instruction leaves a part of its destination as it was, in lanes that are on, or may.
pub(super) fn keeps_rest(inst: &Inst) -> bool {
    inst.op.facts().keeps_rest || inst.ty.dst.is_half() || inst.mods.dpp.is_some()
}

/// Whether an operation compares memory with a value and swaps it for another.
pub(super) fn is_compare_and_swap(op: Op) -> bool {
    op.facts().atomic == Atomic::CompareAndSwap
}
