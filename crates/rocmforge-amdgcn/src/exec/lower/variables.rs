//! Data flow of variable addresses: finds memory instructions whose address is that of a variable of the code object plus an index.
//!
//! Compilers make the address of a variable from the program counter and a constant, and add an index to it. The sum is followed through
//! registers along all paths of a function, until an instruction uses it as an address. An instruction is marked only if its address comes
//! from one such constant on every path and in every lane: a sum that is chosen from several, or that went through memory, is not followed.
//! Nor is one with something that may be a distance between addresses, which leads to another variable: what is computed from an address in
//! another way, kept in private memory at a fixed offset, or a word of the same variable, as in the tables of distances that compilers
//! make of tables of pointers.
//!
//! What the marks are for is in [`crate::exec::state::variables`].

#[cfg(test)]
mod tests;

use crate::exec::code::Code;
use crate::exec::lower::decoded::{Decoded, crosses_lanes, each_half, keeps_rest, writes_exec};
use crate::exec::lower::halves;
use crate::exec::lower::paths::{self, Value as _};
use crate::exec::lower::values::{REGISTERS, Register, SCALAR, is_kept, is_plain, register};
use crate::exec::memory::{self, variable};
use crate::exec::state::ctx::Watched;
use crate::exec::state::variables::VariableInstruction;
use crate::fault::Access;
use rocmforge_isa::{Flow, Format, Inst, Lanes, Memory, Op, Operand, Registers, Relative, Ty, Unit};
use std::collections::{HashMap, HashSet};

/// What a register holds, in the lanes that are on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Value {
    /// No address of a variable.
    Other,
    /// A word of this ELF address, or of the sum of it and an index.
    Of(u32),
    /// What was loaded with such an address. In a table of distances from itself to variables it is one of those.
    Loaded(u32),
    /// Of several addresses, or of one that was changed in another way; also an address of code.
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

    /// The value of any other result.
    fn changed(self) -> Self {
        self.or(Value::Other)
    }
}

impl paths::Value for Value {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Value::Other, Value::Loaded(a)) | (Value::Loaded(a), Value::Other) => Value::Loaded(a),
            _ => Value::Mixed,
        }
    }
}

/// The values of all registers. Lanes that are off when the function starts do not count.
type State = paths::State<Value>;

/// Marks such instructions of a function.
pub(super) fn mark(function: &[Decoded], code: &mut Code) {
    for (n, constant) in find(function, code.wide) {
        let Decoded { inst, index, pc } = &function[n];
        let (Some(addresses), Some((how, size))) = (memory::addresses(inst), access(inst)) else {
            continue;
        };
        let number = code.watched.len() as u32;
        let mut run = None;
        for ins in halves::each(&mut code.ins, *index) {
            run = Some(ins.run);
            (ins.run, ins.target) = (variable::handler(), number);
        }
        let Some(run) = run else { continue };
        code.watched.push(Watched { run, addresses });
        let constant = u64::from(constant).wrapping_add(code.device).wrapping_sub(code.start);
        code.variables.instructions.push(VariableInstruction {
            how,
            size,
            pc: *pc,
            base: code.variables.at(constant),
        });
    }
}

/// Such instructions, by their numbers, and the constants; `wide`: the function's waves have 64 lanes.
fn find(function: &[Decoded], wide: bool) -> Vec<(usize, u32)> {
    if !function.iter().any(|at| at.inst.op == Op::SGetpcB64) {
        return Vec::new();
    }
    let targets: HashSet<u64> = function.iter().filter_map(|at| at.inst.branch_target(at.pc)).collect();
    let constants: HashMap<_, _> = (0..function.len())
        .filter_map(|n| constant(function, n, &targets))
        .collect();
    if constants.is_empty() {
        return Vec::new();
    }
    let mut pass = Pass {
        function,
        wide,
        constants,
        kept: HashSet::new(),
        grew: false,
        found: Vec::new(),
    };
    let start = State::new(Value::Other, Value::Other);
    match paths::follow(function, &start, &mut pass) {
        Some(()) => pass.found,
        None => Vec::new(),
    }
}

/// How an instruction accesses memory, and how many bytes of it a lane.
fn access(inst: &Inst) -> Option<(Access, u32)> {
    let facts = inst.op.facts();
    let (how, data) = match (facts.memory, facts.unit) {
        (Memory::Load, Unit::ScalarMemory) => (Access::Scalar, inst.ty.dst),
        (Memory::Load, _) => (Access::Load, inst.ty.dst),
        (Memory::Store, _) => (Access::Store, inst.ty.src[1]),
        (Memory::Atomic, _) => (Access::Atomic, facts.returned),
        _ => return None,
    };
    let words = 4 * u32::from(data.regs());
    Some((how, facts.element.small().map_or(words, |small| small.bytes.into())))
}

/// The address that instructions from the `n`th on make from the program counter: the last of them, the lower register of the pair, and the
/// ELF address. None of them but the first may be a target of a branch.
fn constant(function: &[Decoded], n: usize, targets: &HashSet<u64>) -> Option<(usize, (Register, u32))> {
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
        || function[n + 1..=last].iter().any(|at| targets.contains(&at.pc))
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
    /// Offsets of words of private memory where something made of addresses is kept.
    kept: HashSet<i64>,
    /// This pass has added to them.
    grew: bool,
    /// Instructions whose address is computed from one constant, and the constant.
    found: Vec<(usize, u32)>,
}

impl paths::Pass for Pass<'_> {
    type Value = Value;

    fn begin(&mut self) {
        self.found.clear();
        self.grew = false;
    }

    fn step(&mut self, n: usize, state: &mut State) -> Option<()> {
        let Decoded { inst, pc, .. } = &self.function[n];
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
            // A part of this function may write any register.
            Flow::Call if inst.branch_target(*pc).is_some() => return None,
            Flow::Call => {
                for register in (0..REGISTERS).filter(|&register| !is_kept(register)) {
                    state.on[register] = Value::Other;
                }
                write(inst.dst, inst.ty.dst, [Value::Mixed; 2], state);
                return Some(());
            }
            _ => {}
        }
        self.keep(inst, state);
        let results: Vec<_> = each_half(inst).map(|part| (part, self.result(part, state))).collect();
        for (part, values) in results {
            for (operand, ty) in [(part.dst, part.ty.dst), (part.sdst, part.ty.sdst)] {
                match ty {
                    Ty::Mask if self.wide => write(operand, Ty::B64, [Value::Other; 2], state),
                    Ty::Mask => write(operand, Ty::B32, [Value::Other; 2], state),
                    _ => write(operand, ty, values, state),
                }
            }
            if part.op.facts().writes.has(Registers::SRC) {
                write(part.src[0], part.ty.src[0], values, state);
            }
            if part.op.facts().lanes == Lanes::Named
                && let Some(off) = register(part.dst).and_then(|register| state.off.get_mut(register))
            {
                *off = off.plus(values[0]);
            }
        }
        for (what, operand) in [(Registers::VCC, Operand::VccLo), (Registers::EXEC, Operand::ExecLo)] {
            if facts.writes.has(what) {
                write(operand, Ty::B64, [Value::Other; 2], state);
            }
        }
        if let Some(&(low, address)) = self.constants.get(&n) {
            let pair = state.on.iter_mut().skip(low).take(2);
            pair.for_each(|word| *word = Value::Of(address));
        }
        if each_half(inst).any(writes_exec) {
            state.change_lanes();
        }
        Some(())
    }

    fn changed(&self) -> bool {
        self.grew
    }
}

/// The constant that the address of a memory instruction is computed from, if it is one.
fn constant_of(inst: &Inst, state: &State) -> Option<u32> {
    memory::addresses(inst)?;
    // The offset is in other registers, if there are any.
    let (of, offset) = match inst.src {
        [of, offset, _] if inst.format == Format::Smem => (of, read(offset, inst.ty.src[1], state)),
        [of, _, Operand::None | Operand::Null] => (of, Value::Other),
        [offset, _, of] => (of, read(offset, Ty::B32, state)),
    };
    let low = register(of)?;
    match (state.on.get(low)?, state.on.get(low + 1)?, offset) {
        (Value::Of(a), Value::Of(b), Value::Other) if a == b => Some(*a),
        (Value::Of(a), Value::Of(b), Value::Loaded(from)) if a == b && from != *a => Some(*a),
        _ => None,
    }
}

impl Pass<'_> {
    /// Words of private memory that an instruction accesses, by the offset that it has. Compilers keep registers there so.
    fn words(inst: &Inst, ty: Ty) -> impl Iterator<Item = i64> {
        let first = i64::from(inst.imm).div_euclid(4);
        let count = if inst.format == Format::Scratch { ty.regs() } else { 0 };
        first..first + i64::from(count)
    }

    /// Notes what a store keeps in private memory.
    fn keep(&mut self, inst: &Inst, state: &State) {
        let stores = inst.op.facts().memory == Memory::Store;
        if stores && read(inst.src[1], inst.ty.src[1], state) != Value::Other {
            for word in Self::words(inst, inst.ty.src[1]) {
                self.grew |= self.kept.insert(word);
            }
        }
    }

    /// The values of the first word that an instruction writes, and of the others.
    fn result(&self, inst: &Inst, state: &State) -> [Value; 2] {
        let facts = inst.op.facts();
        let mut sources: Vec<_> = inst.src.into_iter().zip(inst.ty.src).collect();
        // A carry is no part of an address.
        sources.retain(|(_, ty)| *ty != Ty::Mask);
        if let Some(factors) = factors(inst.op).filter(|_| is_plain(&inst.mods)) {
            let (factors, terms) = sources.split_at(factors);
            let product = all(factors, state).changed();
            return [0, 1].map(|n| {
                let words = terms.iter().map(|(operand, ty)| word(*operand, *ty, n, state));
                words.fold(product, Value::plus)
            });
        }
        let mut result = match (facts.memory, facts.unit) {
            (Memory::None, _) | (_, Unit::Lds) => all(&sources, state),
            (Memory::Load, _) => {
                let whole = facts.element.small().is_none();
                let kept = Self::words(inst, inst.ty.dst).any(|word| self.kept.contains(&word));
                match (constant_of(inst, state), all(&sources, state)) {
                    _ if kept => Value::Mixed,
                    // A distance takes a whole register.
                    _ if !whole => Value::Other,
                    (Some(constant), _) => Value::Loaded(constant),
                    (None, address) => address.changed(),
                }
            }
            _ => Value::Other,
        };
        if crosses_lanes(inst) {
            let off = |&(operand, ty): &(Operand, Ty)| {
                let first = register(operand).unwrap_or(SCALAR);
                state.off.iter().skip(first).take(ty.regs().into())
            };
            result = sources.iter().flat_map(off).fold(result, |all, &word| all.plus(word));
        }
        if facts.reads.has(Registers::DST) || keeps_rest(inst) {
            result = result.plus(read(inst.dst, inst.ty.dst, state));
        }
        if inst.op == Op::SGetpcB64 {
            result = Value::Mixed;
        }
        [result.changed(); 2]
    }
}

/// Whether compilers add indices to addresses with it, or copy them: how many of its sources are factors, and no terms of a sum.
fn factors(op: Op) -> Option<usize> {
    Some(match op {
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
        | Op::VAddCoCiU32 => 0,
        Op::VMadU64U32 | Op::VMadCoU64U32 => 2,
        _ => return None,
    })
}

/// The values of an operand's words.
fn words(operand: Operand, ty: Ty, state: &State) -> &[Value] {
    let words = register(operand).and_then(|first| state.on.get(first..first + usize::from(ty.regs())));
    words.unwrap_or_default()
}

/// The value of one of them.
fn word(operand: Operand, ty: Ty, n: usize, state: &State) -> Value {
    words(operand, ty, state).get(n).copied().unwrap_or(Value::Other)
}

/// The value of something made of all of them.
fn read(operand: Operand, ty: Ty, state: &State) -> Value {
    let words = words(operand, ty, state);
    words.iter().fold(Value::Other, |all, &word| all.plus(word))
}

/// The value of something made of these operands.
fn all(operands: &[(Operand, Ty)], state: &State) -> Value {
    let values = operands.iter().map(|(operand, ty)| read(*operand, *ty, state));
    values.fold(Value::Other, Value::plus)
}

fn write(operand: Operand, ty: Ty, [first, others]: [Value; 2], state: &mut State) {
    let words = register(operand).and_then(|low| state.on.get_mut(low..low + usize::from(ty.regs())));
    if let Some([low, above @ ..]) = words {
        *low = first;
        above.fill(others);
    }
}
