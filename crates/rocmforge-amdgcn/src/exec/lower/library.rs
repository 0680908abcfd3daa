//! Library: functions of AMD's device library whose accesses order more than their instructions say.
//!
//! `malloc` and `free` of device code (`__ockl_dm_alloc`, `__ockl_dm_dealloc`) share their lists by relaxed atomics. Relaxed atomic stores are
//! plain stores in gfx1100 code; and nothing in it orders what a lane did with a block before it freed it, with what the block's next owner
//! does, though C++ has a `free` come before the `malloc` that gives the block out again. Their names are the library's interface: they are
//! never inlined, and compilers call them for `malloc` and `free`.

use crate::exec::lower::decoded::Decoded;
use crate::exec::lower::halves;
use crate::exec::memory::form::{COHERENT, ORDERED};
use crate::exec::state::ctx::Ins;
use rocmforge_isa::{Format, Memory};
use std::ops::Range;

/// A function that kernels call.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Entry {
    /// `malloc`: takes a number of bytes, gives an address or 0.
    Allocate,
    /// `free`: takes an address or 0.
    Free,
}

/// One of these functions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Allocator {
    /// `None`: one that they call.
    entry: Option<Entry>,
}

impl Allocator {
    /// The one of that name.
    pub(crate) fn of(name: &str) -> Option<Self> {
        let entry = match name.strip_prefix("__ockl_dm_")? {
            "alloc" => Some(Entry::Allocate),
            "dealloc" => Some(Entry::Free),
            _ => None,
        };
        Some(Self { entry })
    }
}

/// These functions of a program.
#[derive(Default)]
pub(crate) struct Heap {
    functions: Vec<(Range<u64>, Allocator)>,
}

impl Heap {
    /// Adds the function at these ELF addresses.
    pub(crate) fn add(&mut self, addresses: Range<u64>, allocator: Allocator) {
        self.functions.push((addresses, allocator));
    }

    /// Whether blocks of it can be followed.
    pub(crate) fn allocates(&self) -> bool {
        self.functions.iter().any(|(_, of)| of.entry == Some(Entry::Allocate))
    }

    /// The function that starts at an ELF address.
    pub(crate) fn entry(&self, pc: u64) -> Option<Entry> {
        let found = self.functions.iter().find(|(addresses, _)| addresses.start == pc)?;
        found.1.entry
    }

    /// Whether an ELF address is in one of them.
    pub(crate) fn contains(&self, pc: u64) -> bool {
        self.functions.iter().any(|(addresses, _)| addresses.contains(&pc))
    }
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
