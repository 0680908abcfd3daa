//! Lowered instructions.

pub(crate) mod isa;
pub(crate) mod operands;

use crate::exec::lower::library::Heap;
use crate::exec::state::ctx::{Ins, Watched};
use crate::exec::state::variables::Variables;
use crate::load_error::LoadError;
use std::ops::Range;

/// What belongs to the instruction before it.
pub(crate) const PART: u8 = 0xFF;

/// All code of a program.
pub(crate) struct Code {
    pub(crate) ins: Vec<Ins>,
    /// [`Class`](crate::Class) of each, [`PART`] for those that only complete the one before.
    pub(crate) classes: Vec<u8>,
    /// Functions whose workgroups may depend on each other: entry points of those with atomics on global memory or calls.
    pub(in crate::exec) shared: Vec<u64>,
    /// Functions with loads of LDS whose value may be of no use.
    pub(in crate::exec) dropping: Vec<u64>,
    /// The variables of the code object, and the instructions with the address of one.
    pub(crate) variables: Variables,
    /// By the number of such an instruction.
    pub(crate) watched: Vec<Watched>,
    /// By word of `.text`: index of the first lowered instruction, `u32::MAX` where none starts.
    pub(in crate::exec) index: Vec<u32>,
    /// ELF address of `.text`.
    pub(crate) start: u64,
    /// Device address of `.text`.
    pub(crate) device: u64,
    /// Whether waves may be in another floating-point mode than the default.
    pub(crate) modal: bool,
    /// Whether some instruction changes that mode.
    pub(crate) changes_mode: bool,
    /// Functions that cannot run: their ELF addresses, and why. None of their instructions are there.
    pub(in crate::exec) refused: Vec<(Range<u64>, LoadError)>,
    /// Registers of the trap handler that hold something when a kernel starts, or are written in the function that is being lowered:
    /// a bit for each.
    pub(crate) trap_registers: u16,
    /// The function that is being lowered is for waves of 64 lanes.
    pub(crate) wide: bool,
    /// ELF addresses of the functions that are.
    pub(in crate::exec) wide_functions: Vec<Range<u64>>,
    /// The functions of device `malloc`.
    pub(crate) heap: Heap,
}

impl Code {
    /// Why the function at an ELF address cannot run; `None` where it can, and where there is none.
    pub(crate) fn refusal(&self, pc: u64) -> Option<&LoadError> {
        let (_, why) = self.refused.iter().find(|(addresses, _)| addresses.contains(&pc))?;
        Some(why)
    }

    /// The same of a device address.
    pub(crate) fn refusal_at(&self, address: u64) -> Option<&LoadError> {
        self.refusal(self.pc_of(address))
    }

    /// Offset in `.text` and index of each instruction that was not dropped.
    pub(crate) fn starts(&self) -> impl Iterator<Item = (usize, usize)> {
        let kept = |&(_, &index): &(usize, &u32)| self.ins.get(index as usize).is_some();
        let all = self.index.iter().enumerate().filter(kept);
        all.map(|(word, &index)| (word * 4, index as usize))
            .filter(|&(at, index)| self.ins[index].at as usize == at)
    }

    /// Whether the instruction at an offset in `.text` is for waves of 64 lanes.
    pub(crate) fn is_wide(&self, at: usize) -> bool {
        let pc = self.start + at as u64;
        self.wide_functions.iter().any(|addresses| addresses.contains(&pc))
    }

    /// Whether workgroups of the function at an ELF address may depend on each other.
    pub(crate) fn shares(&self, function: u64) -> bool {
        self.shared.contains(&function)
    }

    /// Whether the function at an ELF address loads of LDS what may be of no use.
    pub(crate) fn drops(&self, function: u64) -> bool {
        self.dropping.contains(&function)
    }

    /// Index of the instruction at an ELF address.
    pub(crate) fn index_of(&self, pc: u64) -> Option<usize> {
        let offset = pc.checked_sub(self.start).filter(|offset| offset % 4 == 0)?;
        let index = *self.index.get(usize::try_from(offset / 4).ok()?)?;
        (index != u32::MAX).then_some(index as usize)
    }

    /// Index of the instruction at a device address.
    pub(crate) fn index_at(&self, address: u64) -> Option<usize> {
        self.index_of(self.pc_of(address))
    }

    /// The same address as `llvm-objdump` prints it.
    pub(crate) fn pc_of(&self, address: u64) -> u64 {
        address.wrapping_sub(self.device).wrapping_add(self.start)
    }
}
