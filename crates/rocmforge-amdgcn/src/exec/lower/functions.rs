//! All code of a program: decodes its functions and lowers them.

use crate::counters::Class;
use crate::exec::code::operands::NOTHING;
use crate::exec::code::{Code, PART};
use crate::exec::lower::decoded::Decoded;
use crate::exec::lower::idioms::Calls;
use crate::exec::lower::library::{Allocator, Heap};
use crate::exec::lower::{dropped, fenced, halves, idioms, instruction, library, unused, updates, variables};
use crate::exec::memory::gws;
use crate::exec::state::ctx::Ins;
use crate::exec::state::fields::Flow;
use crate::exec::state::variables::Variables;
use crate::load_error::LoadError;
use rocmforge_code_object::DebugInfo;
use rocmforge_isa::{Arch, Inst, Memory, Unit, decode_for};
use std::ops::Range;

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
    /// It is part of AMD's device `malloc`.
    pub(crate) allocator: Option<Allocator>,
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
        variables: &Variables,
        debug: &DebugInfo,
        modal: bool,
    ) -> Result<Self, LoadError> {
        let code = Self::lower_for(arch, words, start, base, functions, variables, debug, modal)?;
        if code.changes_mode && !modal {
            return Self::lower_for(arch, words, start, base, functions, variables, debug, true);
        }
        Ok(code)
    }

    fn lower_for(
        arch: Arch,
        words: &[u32],
        start: u64,
        base: u64,
        functions: &[Function],
        variables: &Variables,
        debug: &DebugInfo,
        modal: bool,
    ) -> Result<Self, LoadError> {
        let mut code = Self {
            ins: Vec::new(),
            classes: Vec::new(),
            shared: Vec::new(),
            dropping: Vec::new(),
            variables: variables.clone(),
            watched: Vec::new(),
            index: vec![u32::MAX; words.len()],
            start,
            device: base + start,
            modal,
            changes_mode: false,
            refused: Vec::new(),
            trap_registers: 0,
            wide: false,
            wide_functions: Vec::new(),
            heap: Heap::default(),
        };
        let mut branches = Vec::new();
        // Calls in functions that keep values in private memory.
        let mut calls = Vec::new();
        for function in functions {
            let Function { addresses, lanes, .. } = function;
            if let Some(allocator) = function.allocator {
                code.heap.add(addresses.clone(), allocator);
            }
            let before = (code.ins.len(), branches.len(), calls.len());
            code.wide = *lanes == WaveLanes::Of64;
            if code.wide {
                code.wide_functions.push(addresses.clone());
            }
            let lowered = if *lanes == WaveLanes::Unknown {
                Err(LoadError::Unmodelled {
                    pc: addresses.start,
                    text: "a function beside kernels of both wave sizes".into(),
                    why: "waves of a size that is not known",
                    frames: debug.frames(addresses.start),
                })
            } else {
                code.function(arch, words, function, debug, &mut branches, &mut calls)
            };
            if let Err(why) = lowered {
                code.ins.truncate(before.0);
                code.classes.truncate(before.0);
                branches.truncate(before.1);
                calls.truncate(before.2);
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
                    why: "a function that cannot run",
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
        idioms::mark_calls(&calls, &mut code.ins);
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
        function: &Function,
        debug: &DebugInfo,
        branches: &mut Vec<Branch>,
        calls: &mut Vec<Calls>,
    ) -> Result<(), LoadError> {
        let addresses = &function.addresses;
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
            let lower = if self.wide { halves::lower } else { instruction::lower };
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
        calls.extend(idioms::mark(&decoded, &mut self.ins));
        updates::mark(&decoded, &mut self.ins);
        fenced::mark(&decoded, &mut self.ins);
        unused::mark(&decoded, &mut self.ins, self.wide);
        if dropped::any(&decoded) {
            self.dropping.push(addresses.start);
        }
        variables::mark(&decoded, self);
        if function.allocator.is_some() {
            library::mark(&decoded, &mut self.ins);
        }
        self.ins.push(Ins {
            flow: Flow::OffEnd,
            at: (addresses.end - self.start) as u32,
            ..NOTHING
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
}

/// Whether an instruction can make workgroups depend on each other, or may lead to one that does.
fn shares(inst: &Inst) -> bool {
    let facts = inst.op.facts();
    let atomic = facts.unit == Unit::VectorMemory && facts.memory == Memory::Atomic;
    atomic || gws::is_sync(inst.op) || matches!(facts.flow, rocmforge_isa::Flow::Call | rocmforge_isa::Flow::Jump)
}
