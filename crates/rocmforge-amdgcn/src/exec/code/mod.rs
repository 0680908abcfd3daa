//! Lowered instructions.

pub(crate) mod halves;
pub(crate) mod idioms;
pub(crate) mod isa;
pub(crate) mod lower;
pub(crate) mod updates;
mod values;

use crate::counters::Class;
use crate::debug_info::DebugInfo;
use crate::exec::checks::count::PART;
use crate::program::LoadError;
use idioms::Decoded;
use isa::Run;
use rocmforge_isa::{Arch, Inst, Memory, Unit, decode_for};
use std::ops::Range;

/// Where an operand comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Vector register.
    V,
    /// Scalar register.
    S,
    /// Constant.
    C,
    /// The wave's temporary.
    T,
    Scc,
    VccZ,
    ExecZ,
}

/// An operand of a lowered instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Src {
    pub(crate) kind: Kind,
    pub(crate) reg: u8,
    /// See the constants below.
    pub(crate) mods: u8,
    /// Half of the register a 16-bit operand reads: 0 or 16, as a shift.
    pub(crate) shift: u8,
    pub(crate) lo: u32,
    pub(crate) up: u32,
}

pub(crate) const NEG: u8 = 1;
pub(crate) const ABS: u8 = 2;
/// Packed operands: negate the high lane; which half each lane reads.
pub(crate) const NEG_HI: u8 = 4;
pub(crate) const SEL_LO: u8 = 8;
pub(crate) const SEL_HI: u8 = 16;

impl Src {
    pub(crate) const ZERO: Self = Self::constant(0);

    pub(crate) const fn constant(value: u64) -> Self {
        Self {
            kind: Kind::C,
            reg: 0,
            mods: 0,
            shift: 0,
            lo: value as u32,
            up: (value >> 32) as u32,
        }
    }

    pub(crate) const fn reg(kind: Kind, reg: u8) -> Self {
        Self {
            kind,
            reg,
            mods: 0,
            shift: 0,
            lo: 0,
            up: 0,
        }
    }
}

/// What the loop over instructions does with one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Flow {
    /// Calls its handler and goes on.
    Next,
    Branch,
    Scc0,
    Scc1,
    Vccz,
    Vccnz,
    Execz,
    Execnz,
    /// The same four of waves of 64 lanes.
    Vccz64,
    Vccnz64,
    Execz64,
    Execnz64,
    /// Of waves of 64 lanes: the lower lanes run the next `imm` instructions, then the upper ones the `target` behind those. `sdst` is
    /// the mask that they write, `half` says whether they read `vcc` by lane without naming it.
    Halves,
    /// Jumps to a pair of SGPRs (`a`), writing the return address to `dst` if it is not null.
    SetPc,
    Barrier,
    /// Global wave sync: the handler is in [`crate::exec::waves::gws`].
    Gws,
    End,
    Trap,
    /// Past the last instruction of a function.
    OffEnd,
}

/// A lowered instruction.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Ins {
    pub(crate) run: Run,
    pub(crate) a: Src,
    pub(crate) b: Src,
    pub(crate) c: Src,
    pub(crate) flow: Flow,
    pub(crate) dst: u8,
    pub(crate) sdst: u8,
    pub(crate) clamp: bool,
    /// Shift of the half of `dst` that a 16-bit result goes to.
    pub(crate) half: u8,
    /// How many instructions from this one on the loop runs one after the other, before it has to look at `flow` again.
    pub(crate) straight: u16,
    pub(crate) imm: i32,
    /// Branches: index of the target.
    pub(crate) target: u32,
    /// Offset of the instruction in `.text`.
    pub(crate) at: u32,
}

/// A branch whose target is not known yet.
struct Branch {
    /// Its index.
    ins: usize,
    /// ELF addresses of where it leads, and its own.
    target: u64,
    pc: u64,
}

/// Lanes of the waves that run a function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WaveLanes {
    Of32,
    Of64,
    /// No kernel, among kernels of both kinds.
    Unknown,
}

/// A function: its ELF addresses, and for which waves it was compiled.
pub(crate) struct Function {
    pub(crate) addresses: Range<u64>,
    pub(crate) lanes: WaveLanes,
}

/// All code of a program.
pub(crate) struct Code {
    pub(crate) ins: Vec<Ins>,
    /// [`Class`] of each, [`PART`] for those that only complete the one before.
    pub(crate) classes: Vec<u8>,
    /// Functions whose workgroups may depend on each other: entry points of those with atomics on global memory or calls.
    shared: Vec<u64>,
    /// By word of `.text`: index of the first lowered instruction, `u32::MAX` where none starts.
    index: Vec<u32>,
    /// ELF address of `.text`.
    pub(crate) start: u64,
    /// Device address of `.text`.
    pub(crate) device: u64,
    /// Whether waves may be in another floating-point mode than the default.
    pub(crate) modal: bool,
    /// Whether some instruction changes that mode.
    pub(crate) changes_mode: bool,
    /// Functions that cannot run: their ELF addresses, and why. None of their instructions are there.
    refused: Vec<(Range<u64>, LoadError)>,
    /// Registers of the trap handler that hold something when a kernel starts, or are written in the function that is being lowered:
    /// a bit for each.
    pub(crate) trap_registers: u16,
    /// The function that is being lowered is for waves of 64 lanes.
    pub(crate) wide: bool,
    /// ELF addresses of the functions that are.
    wide_functions: Vec<Range<u64>>,
    /// Calls in functions that keep values in private memory, until all functions are lowered.
    calls: Vec<idioms::Calls>,
}

impl Code {
    /// Decodes and lowers all functions of `.text`, which starts at ELF address `start`; `modal`: some kernel starts in
    /// another floating-point mode than the default.
    pub(crate) fn lower(
        arch: Arch,
        words: &[u32],
        start: u64,
        base: u64,
        functions: &[Function],
        debug: &DebugInfo,
        modal: bool,
    ) -> Result<Self, LoadError> {
        let code = Self::lower_for(arch, words, start, base, functions, debug, modal)?;
        if code.changes_mode && !modal {
            return Self::lower_for(arch, words, start, base, functions, debug, true);
        }
        Ok(code)
    }

    fn lower_for(
        arch: Arch,
        words: &[u32],
        start: u64,
        base: u64,
        functions: &[Function],
        debug: &DebugInfo,
        modal: bool,
    ) -> Result<Self, LoadError> {
        let mut code = Self {
            ins: Vec::new(),
            classes: Vec::new(),
            shared: Vec::new(),
            index: vec![u32::MAX; words.len()],
            start,
            device: base + start,
            modal,
            changes_mode: false,
            refused: Vec::new(),
            trap_registers: 0,
            wide: false,
            wide_functions: Vec::new(),
            calls: Vec::new(),
        };
        let mut branches = Vec::new();
        for Function { addresses, lanes } in functions {
            let before = (code.ins.len(), branches.len(), code.calls.len());
            code.wide = *lanes == WaveLanes::Of64;
            if code.wide {
                code.wide_functions.push(addresses.clone());
            }
            let lowered = if *lanes == WaveLanes::Unknown {
                Err(LoadError::Unmodelled {
                    pc: addresses.start,
                    text: "a function beside kernels of both wave sizes".into(),
                    why: "it may be for waves of 32 lanes or of 64",
                    frames: debug.frames(addresses.start),
                })
            } else {
                code.function(arch, words, addresses.clone(), debug, &mut branches)
            };
            if let Err(why) = lowered {
                code.ins.truncate(before.0);
                code.classes.truncate(before.0);
                branches.truncate(before.1);
                code.calls.truncate(before.2);
                code.refuse(addresses.clone(), why);
            }
        }
        // A function that leads into one that cannot run cannot run either.
        while let Some(branch) = branches
            .iter()
            .find(|branch| code.refusal(branch.target).is_some() && code.refusal(branch.pc).is_none())
        {
            let function = functions
                .iter()
                .find(|function| function.addresses.contains(&branch.pc));
            let function = function.expect("branches are in functions");
            code.refuse(
                function.addresses.clone(),
                LoadError::Unmodelled {
                    pc: branch.pc,
                    text: format!("a branch to {:#x}", branch.target),
                    why: "the function there cannot run",
                    frames: debug.frames(branch.pc),
                },
            );
        }
        for Branch { ins, target, pc } in branches {
            let Some(index) = code.index_of(target) else {
                if code.refusal(pc).is_some() {
                    continue;
                }
                let text = format!("branch at {pc:#x} to {target:#x}, which is no instruction");
                return Err(LoadError::Layout(text));
            };
            code.ins[ins].target = index as u32;
        }
        idioms::mark_calls(&std::mem::take(&mut code.calls), &mut code.ins);
        let mut straight = 0u16;
        for ins in code.ins.iter_mut().rev() {
            straight = if ins.flow == Flow::Next {
                straight.saturating_add(1)
            } else {
                0
            };
            ins.straight = straight;
        }
        Ok(code)
    }

    /// Decodes and lowers a function.
    fn function(
        &mut self,
        arch: Arch,
        words: &[u32],
        addresses: Range<u64>,
        debug: &DebugInfo,
        branches: &mut Vec<Branch>,
    ) -> Result<(), LoadError> {
        let word = |pc: u64| ((pc - self.start) / 4) as usize;
        let (mut pc, stop) = (addresses.start, word(addresses.end));
        let mut decoded = Vec::new();
        // LLVM's AMDGPU usage guide, "Initial Kernel Execution State": ttmp7 to ttmp9 have the numbers of workgroup and wave.
        self.trap_registers = match arch {
            Arch::Gfx1100 => 0,
            Arch::Gfx1201 => 0b111 << 7,
        };
        while pc < addresses.end {
            let at = ((pc - self.start) / 4) as usize;
            let inst = decode_for(arch, &words[at..stop], pc).map_err(|error| LoadError::Decode {
                error,
                frames: debug.frames(pc),
            })?;
            self.index[at] = self.ins.len() as u32;
            let first = self.ins.len();
            let lower = if self.wide { halves::lower } else { lower::lower };
            lower(&inst, pc, self).map_err(|why| LoadError::Unmodelled {
                pc,
                text: inst.to_string(),
                why,
                frames: debug.frames(pc),
            })?;
            for ins in &mut self.ins[first..] {
                ins.at = (pc - self.start) as u32;
            }
            if shares(&inst) && self.shared.last() != Some(&addresses.start) {
                self.shared.push(addresses.start);
            }
            if self.ins.len() > first {
                self.classes.push(Class::of(&inst) as u8);
                self.classes.resize(self.ins.len(), PART);
            }
            if let Some(target) = inst.branch_target(pc) {
                branches.push(Branch {
                    ins: self.ins.len() - 1,
                    target,
                    pc,
                });
            }
            let size = inst.size;
            decoded.push(Decoded { inst, pc, index: first });
            pc += u64::from(size.max(4));
        }
        self.calls.extend(idioms::mark(&decoded, &mut self.ins));
        updates::mark(&decoded, &mut self.ins);
        self.ins.push(Ins {
            flow: Flow::OffEnd,
            at: (addresses.end - self.start) as u32,
            ..lower::NOTHING
        });
        self.classes.push(PART);
        Ok(())
    }

    /// Makes a function one that nothing can enter.
    fn refuse(&mut self, addresses: Range<u64>, why: LoadError) {
        let word = |pc: u64| ((pc - self.start) / 4) as usize;
        self.index[word(addresses.start)..word(addresses.end)].fill(u32::MAX);
        self.refused.push((addresses, why));
    }

    /// Why the function at an ELF address cannot run; `None` where it can, and where there is none.
    pub(crate) fn refusal(&self, pc: u64) -> Option<&LoadError> {
        let (_, why) = self.refused.iter().find(|(addresses, _)| addresses.contains(&pc))?;
        Some(why)
    }

    /// The same of a device address.
    pub(crate) fn refusal_at(&self, address: u64) -> Option<&LoadError> {
        self.refusal(address.wrapping_sub(self.device).wrapping_add(self.start))
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

    /// Index of the instruction at an ELF address.
    pub(crate) fn index_of(&self, pc: u64) -> Option<usize> {
        let offset = pc.checked_sub(self.start).filter(|offset| offset % 4 == 0)?;
        let index = *self.index.get(usize::try_from(offset / 4).ok()?)?;
        (index != u32::MAX).then_some(index as usize)
    }

    /// Index of the instruction at a device address.
    pub(crate) fn index_at(&self, address: u64) -> Option<usize> {
        self.index_of(address.wrapping_sub(self.device).wrapping_add(self.start))
    }
}

/// Whether an instruction can make workgroups depend on each other, or may lead to one that does.
fn shares(inst: &Inst) -> bool {
    let facts = inst.op.facts();
    let atomic = facts.unit == Unit::VectorMemory && facts.memory == Memory::Atomic;
    atomic
        || crate::exec::waves::gws::is_sync(inst.op)
        || matches!(facts.flow, rocmforge_isa::Flow::Call | rocmforge_isa::Flow::Jump)
}
