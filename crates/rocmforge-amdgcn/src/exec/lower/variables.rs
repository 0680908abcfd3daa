//! Data flow of variable addresses: finds memory instructions whose address is that of a variable of the code object plus an index.
//!
//! Compilers make the address of a variable from the program counter and a constant, and add an index to it. The sum is followed through
//! registers along all paths of a function, until an instruction uses it as an address. An instruction is marked only if its address comes
//! from one such constant on every path and in every lane: a sum that is chosen from several, or that went through memory, is not followed.
//! What the marks are for is in [`crate::exec::state::variables`].

use crate::exec::code::Code;
use crate::exec::lower::decoded::Decoded;
use crate::exec::lower::halves;
use crate::exec::lower::paths;
use crate::exec::lower::values::{REGISTERS, Register, SCALAR, is_kept, is_plain, register};
use crate::exec::memory::{self, variable};
use crate::exec::state::ctx::Watched;
use crate::exec::state::variables::VariableInstruction;
use crate::fault::Access;
use rocmforge_isa::{Flow, Format, Inst, Memory, Op, Operand, Registers, Relative, Ty, Unit};
use std::collections::HashMap;

/// What a register holds, in the lanes that are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// No address of a variable.
    Other,
    /// A word of this ELF address, or of the sum of it and an index.
    Of(u32),
    /// What was loaded with such an address. In a table of distances from itself to variables it is one of those.
    Loaded(u32),
    /// Of several addresses, or of one that was changed in another way.
    Mixed,
}

impl Value {
    /// The value of a sum.
    fn plus(self, other: Self) -> Self {
        match (self, other) {
            (Value::Other, value) | (value, Value::Other) => value,
            (Value::Of(a), Value::Loaded(b)) | (Value::Loaded(b), Value::Of(a)) if a != b => Value::Of(a),
            _ => self.or(other),
        }
    }

    /// The value of what is one of two.
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Value::Other, Value::Loaded(a)) | (Value::Loaded(a), Value::Other) => Value::Loaded(a),
            _ => Value::Mixed,
        }
    }

    /// The value of any other result.
    fn changed(self) -> Self {
        self.or(Value::Other)
    }
}

/// The values of all registers.
#[derive(Clone)]
struct State([Value; REGISTERS]);

impl paths::State for State {
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for (value, other) in self.0.iter_mut().zip(other.0) {
            let both = value.or(other);
            changed |= both != *value;
            *value = both;
        }
        changed
    }
}

/// Marks such instructions of a function.
pub(super) fn mark(function: &[Decoded], code: &mut Code) {
    let constants: HashMap<_, _> = (0..function.len()).filter_map(|n| constant(function, n)).collect();
    if constants.is_empty() {
        return;
    }
    let by_address = function.iter().enumerate().map(|(n, at)| (at.pc, n)).collect();
    let mut pass = Pass {
        function,
        wide: code.wide,
        constants,
        found: Vec::new(),
    };
    if paths::follow(function, &by_address, &State([Value::Other; REGISTERS]), &mut pass).is_none() {
        return;
    }
    for (n, constant) in pass.found {
        let Decoded { inst, index, pc } = &function[n];
        let (Some(addresses), Some((how, data))) = (memory::addresses(inst), access(inst)) else {
            continue;
        };
        let number = code.watched.len() as u32;
        let mut run = None;
        for ins in halves::each(&mut code.ins, *index) {
            run = Some(ins.run);
            (ins.run, ins.target) = (variable::handler(), number);
        }
        code.watched.extend(run.map(|run| Watched { run, addresses }));
        let constant = u64::from(constant).wrapping_add(code.device).wrapping_sub(code.start);
        code.variables.instructions.push(VariableInstruction {
            how,
            size: inst
                .op
                .facts()
                .element
                .small()
                .map_or(4 * u32::from(data.regs()), |small| small.bytes.into()),
            pc: *pc,
            base: code.variables.at(constant),
        });
    }
}

/// How an instruction accesses memory, and what.
fn access(inst: &Inst) -> Option<(Access, Ty)> {
    let facts = inst.op.facts();
    Some(match (facts.memory, facts.unit) {
        (Memory::Load, Unit::ScalarMemory) => (Access::Scalar, inst.ty.dst),
        (Memory::Load, _) => (Access::Load, inst.ty.dst),
        (Memory::Store, _) => (Access::Store, inst.ty.src[1]),
        (Memory::Atomic, _) => (Access::Atomic, facts.returned),
        _ => return None,
    })
}

/// The address that instructions from the `n`th on make from the program counter: the last of them, the lower register of the pair, and the
/// ELF address.
fn constant(function: &[Decoded], n: usize) -> Option<(usize, (Register, u32))> {
    let Decoded { inst, pc, .. } = &function[n];
    if inst.op != Op::SGetpcB64 {
        return None;
    }
    let low = register(inst.dst)?;
    let word = |inst: &Inst, to: Register| {
        let [a, b, _] = inst.src;
        let constant = if register(a) == Some(to) { b } else { a };
        let adds = register(inst.dst) == Some(to) && [a, b].map(register).contains(&Some(to));
        constant.constant(Ty::B32).filter(|_| adds)
    };
    let waits = |at: &Decoded| at.inst.format == Format::Sopp && at.inst.op.facts().flow == Flow::Next;
    let mut next = (n + 1..)
        .zip(&function[n + 1..])
        .filter(|(_, at)| !waits(at))
        .peekable();
    // gfx12 has addresses of 48 bits.
    next.next_if(|(_, at)| at.inst.op == Op::SSextI32I16 && register(at.inst.dst) == Some(low + 1));
    let (_, first) = next.next()?;
    let (last, second) = next.next()?;
    if !matches!(first.inst.op, Op::SAddU32 | Op::SAddCoU32)
        || !matches!(second.inst.op, Op::SAddcU32 | Op::SAddCoCiU32)
    {
        return None;
    }
    let offset = word(&first.inst, low)? & 0xFFFF_FFFF | word(&second.inst, low + 1)? << 32;
    let address = (pc + u64::from(inst.size)).wrapping_add(offset);
    Some((last, (low, u32::try_from(address).ok()?)))
}

/// Follows the addresses in a function.
struct Pass<'a> {
    function: &'a [Decoded],
    /// It is for waves of 64 lanes.
    wide: bool,
    /// The lower register and the ELF address, by the instruction that completes it.
    constants: HashMap<usize, (Register, u32)>,
    /// Instructions whose address is computed from one constant, and the constant.
    found: Vec<(usize, u32)>,
}

impl paths::Pass for Pass<'_> {
    type State = State;

    fn begin(&mut self) {
        self.found.clear();
    }

    fn step(&mut self, n: usize, state: &mut State) -> Option<()> {
        let inst = &self.function[n].inst;
        if let Some(constant) = constant_of(inst, state) {
            self.found.push((n, constant));
        }
        let facts = inst.op.facts();
        if facts.relative != Relative::None {
            return None;
        }
        match facts.flow {
            // Back to the caller, else into code that no branch leads to.
            Flow::Jump => return (read(inst.src[0], Ty::B64, state) == Value::Other).then_some(()),
            Flow::Call => {
                for register in (0..REGISTERS).filter(|&register| !is_kept(register)) {
                    state.0[register] = Value::Other;
                }
                return Some(());
            }
            _ => {}
        }
        // Both halves of a pair read before either writes.
        let parts = [Some(inst), inst.dual.as_deref()];
        let results = parts.map(|part| part.map(|part| (part, result(part, state))));
        for (part, value) in results.into_iter().flatten() {
            for (operand, ty) in [(part.dst, part.ty.dst), (part.sdst, part.ty.sdst)] {
                match ty {
                    Ty::Mask if self.wide => write(operand, Ty::B64, Value::Other, state),
                    Ty::Mask => write(operand, Ty::B32, Value::Other, state),
                    _ => write(operand, ty, value, state),
                }
            }
            if part.op.facts().writes.has(Registers::SRC) {
                write(part.src[0], part.ty.src[0], value, state);
            }
        }
        if facts.writes.has(Registers::VCC) {
            write(Operand::VccLo, Ty::B64, Value::Other, state);
        }
        if let Some(&(low, address)) = self.constants.get(&n) {
            let pair = state.0.iter_mut().skip(low).take(2);
            pair.for_each(|word| *word = Value::Of(address));
        }
        // Lanes that come on have other values in their registers.
        let exec = |operand| matches!(operand, Operand::ExecLo | Operand::ExecHi);
        if facts.writes.has(Registers::EXEC) || exec(inst.dst) || exec(inst.sdst) {
            for value in &mut state.0[..SCALAR] {
                *value = value.changed();
            }
        }
        Some(())
    }

    fn changed(&self) -> bool {
        false
    }
}

/// The constant that the address of a memory instruction is computed from, if it is one.
fn constant_of(inst: &Inst, state: &State) -> Option<u32> {
    let of = match inst.src {
        [of, ..] if inst.format == Format::Smem => of,
        [of, _, Operand::None | Operand::Null] => of,
        [lanes, _, of] if read(lanes, Ty::B32, state) == Value::Other => of,
        _ => return None,
    };
    let low = register(of)?;
    match (state.0.get(low)?, state.0.get(low + 1)?) {
        (Value::Of(low), Value::Of(high)) if low == high => Some(*low),
        _ => None,
    }
}

/// The value of what an instruction writes.
fn result(inst: &Inst, state: &State) -> Value {
    let facts = inst.op.facts();
    if facts.memory != Memory::None && facts.unit != Unit::Lds {
        return constant_of(inst, state).map_or(Value::Other, Value::Loaded);
    }
    let sources = inst.src.into_iter().zip(inst.ty.src);
    // A carry is no part of an address.
    let words = sources.filter(|(_, ty)| *ty != Ty::Mask);
    let all = words.map(|(operand, ty)| read(operand, ty, state));
    let all = all.fold(Value::Other, Value::plus);
    match inst.op {
        // A factor is no summand.
        Op::VMadU64U32 | Op::VMadCoU64U32 if is_plain(&inst.mods) => {
            let [a, b, sum] = [0, 1, 2].map(|n| read(inst.src[n], inst.ty.src[n], state));
            return a.plus(b).changed().plus(sum);
        }
        op if is_sum(op) && is_plain(&inst.mods) => return all,
        _ => {}
    }
    let old = if facts.reads.has(Registers::DST) {
        read(inst.dst, inst.ty.dst, state)
    } else {
        Value::Other
    };
    all.plus(old).changed()
}

/// Whether compilers add indices to addresses with it, or copy them.
fn is_sum(op: Op) -> bool {
    matches!(
        op,
        Op::SMovB32
            | Op::SMovB64
            | Op::VMovB32
            | Op::VReadfirstlaneB32
            | Op::SAddU32
            | Op::SAddcU32
            | Op::SAddCoU32
            | Op::SAddCoCiU32
            | Op::SAddNcU64
            | Op::VAddCoU32
            | Op::VAddCoCiU32
    )
}

fn read(operand: Operand, ty: Ty, state: &State) -> Value {
    let words = register(operand).and_then(|first| state.0.get(first..first + usize::from(ty.regs())));
    words
        .into_iter()
        .flatten()
        .fold(Value::Other, |all, &word| all.plus(word))
}

fn write(operand: Operand, ty: Ty, value: Value, state: &mut State) {
    let words = register(operand).and_then(|first| state.0.get_mut(first..first + usize::from(ty.regs())));
    words.into_iter().for_each(|words| words.fill(value));
}
