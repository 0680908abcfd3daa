//! Library: functions of AMD's device library whose accesses order more than their instructions say.
//!
//! `malloc` and `free` of device code (`__ockl_dm_alloc`, `__ockl_dm_dealloc`) share their lists by relaxed atomics. Relaxed atomic stores are
//! plain stores in gfx1100 code; and nothing in it orders what a lane did with a block before it freed it, with what the block's next owner
//! does, though C++ has a `free` come before the `malloc` that gives the block out again.

use crate::exec::lower::decoded::Decoded;
use crate::exec::lower::halves;
use crate::exec::memory::form::{COHERENT, ORDERED};
use crate::exec::state::ctx::Ins;
use rocmforge_isa::{Format, Memory};

/// Whether a function of that name is one of them.
pub(crate) fn is_allocator(name: &str) -> bool {
    name.starts_with("__ockl_dm_")
}

/// Marks the accesses of such a function: loads and stores as atomic ones, atomics as ones that order everything.
pub(super) fn mark(function: &[Decoded], ins: &mut [Ins]) {
    for at in function
        .iter()
        .filter(|at| matches!(at.inst.format, Format::Global | Format::Flat))
    {
        let mark = match at.inst.op.facts().memory {
            Memory::Load | Memory::Store => COHERENT,
            Memory::Atomic => ORDERED,
            _ => continue,
        };
        for ins in halves::each(ins, at.index) {
            ins.half |= mark;
        }
    }
}
