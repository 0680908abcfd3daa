//! Value numbering of a function that calls others, or keeps its values in private memory, as compilers write it without optimisation.
//!
//! The same number means the same value, along one path: instructions in their order, and behind an unconditional branch from the
//! first branch that leads there. Copies, spills (also of scalar registers into lanes of a vector register) and variables in memory keep
//! the number of what was stored. So a plain load can be recognised whose value a compare-and-swap at the same address expects, though neither
//! address nor value is in the same registers then ([`crate::exec::lower::idioms`]).

mod sums;
#[cfg(test)]
mod tests;

use crate::exec::lower::decoded::{Decoded, index_at, is_compare_and_swap, keeps_rest};
use rocmforge_isa::{Element, Flow, Format, Inst, Lanes, Memory, Mods, Op, Operand, Registers, Relative, Ty, Unit};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;
use sums::{Sum, Sums, Terms};

/// The number of a value of 32 bits.
type Value = u32;
/// A register: vector registers, then scalar ones by their encoding, then `scc`.
pub(super) type Register = usize;

pub(super) const SCALAR: Register = 256;
pub(super) const VCC: Register = SCALAR + 106;
const M0: Register = SCALAR + 125;
pub(super) const EXEC: Register = SCALAR + 126;
pub(super) const SCC: Register = SCALAR + 128;
pub(super) const REGISTERS: usize = SCC + 1;
/// Vector registers that arguments of functions are in.
const ARGUMENTS: usize = 32;
/// The number of the constant 0.
const ZERO: Value = REGISTERS as Value + 1;

/// Registers that a call leaves alone: LLVM's AMDGPU usage guide, "Non-Kernel Functions".
pub(super) fn is_kept(register: Register) -> bool {
    match register {
        0..SCALAR => register >= 40 && register & 8 != 0,
        VCC.. => false,
        _ => register >= SCALAR + 30,
    }
}

/// A place in memory: the space, the words that its address is the sum of, and an offset.
type Place = (Space, Terms, i64);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Space {
    Generic,
    Lds,
    Private,
    /// Through a resource descriptor.
    Buffer,
}

/// What is known at one place of the code.
#[derive(Clone)]
struct State {
    registers: [Value; REGISTERS],
    memory: HashMap<Place, Value>,
}

/// A load, and the values it gave.
struct Load {
    instruction: usize,
    place: Place,
    values: Vec<Value>,
}

/// A compare-and-swap whose address and expected value are arguments of its function.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct SwapOfArguments {
    address: [Register; 2],
    offset: i64,
    expected: Vec<Register>,
}

/// A call of a function of the same object.
pub(super) struct Call {
    /// ELF address of the function.
    pub(super) target: u64,
    arguments: [Value; ARGUMENTS],
    /// How many of the loads came before it.
    loads: usize,
}

/// What the numbering of a function has found.
#[derive(Default)]
pub(super) struct Found {
    /// Loads whose value a compare-and-swap at the same address expects.
    pub(super) guesses: Vec<usize>,
    pub(super) swaps: Vec<SwapOfArguments>,
    pub(super) calls: Vec<Call>,
    loads: Vec<Load>,
    sums: Sums,
}

impl Found {
    /// The load whose value a compare-and-swap expects that the called function makes at the load's address.
    pub(super) fn guess_of(&self, call: &Call, swap: &SwapOfArguments) -> Option<usize> {
        let [low, high] = swap.address.map(|register| call.arguments[register]);
        let expected: Vec<Value> = swap.expected.iter().map(|&r| call.arguments[r]).collect();
        let (terms, offset) = self.sums.find(self.sums.pair([low, high], None, swap.offset))?;
        last(&self.loads[..call.loads], &(Space::Generic, terms, offset), &expected)
    }

    /// Loads at the place of one of some others.
    pub(super) fn loads_beside(&self, others: &[usize]) -> Vec<usize> {
        let known = self
            .loads
            .iter()
            .filter(|load| others.binary_search(&load.instruction).is_ok());
        let places: HashSet<Place> = known.map(|load| load.place).collect();
        let beside = self.loads.iter().filter(|load| places.contains(&load.place));
        beside.map(|load| load.instruction).collect()
    }
}

impl SwapOfArguments {
    /// The same as one of the function that makes this call, if it only passes arguments of its own on.
    pub(super) fn through(&self, call: &Call) -> Option<Self> {
        let own = |register: &Register| argument(call.arguments[*register]);
        Some(Self {
            address: [own(&self.address[0])?, own(&self.address[1])?],
            offset: self.offset,
            expected: self.expected.iter().map(own).collect::<Option<_>>()?,
        })
    }
}

/// The register of an argument, if a value is one.
fn argument(value: Value) -> Option<Register> {
    ((value as usize) < ARGUMENTS).then_some(value as usize)
}

/// The last load of a place that gave these values.
fn last(loads: &[Load], place: &Place, values: &[Value]) -> Option<usize> {
    let found = loads.iter().rfind(|load| load.place == *place && load.values == values);
    found.map(|load| load.instruction)
}

/// Whether a function has a call, or a compare-and-swap.
pub(super) fn may_guess(function: &[Decoded]) -> bool {
    let has = |what: &dyn Fn(&Inst) -> bool| function.iter().any(|at| what(&at.inst));
    let flows = |flow: Flow| has(&|inst| inst.op.facts().flow == flow);
    // A function that ends with a call jumps there.
    let calls = flows(Flow::Call) || flows(Flow::Jump) && has(&|inst| inst.op == Op::SGetpcB64);
    calls || has(&|inst| is_compare_and_swap(inst.op))
}

/// Numbers the values of a function.
pub(super) fn number(function: &[Decoded]) -> Found {
    let mut numbers = Numbers::new();
    let joins = joins(function);
    let mut entered: HashMap<usize, State> = HashMap::new();
    for (n, at) in function.iter().enumerate() {
        if joins.contains(&n) {
            match entered.remove(&n) {
                Some(state) => numbers.state = state,
                None => numbers.forget(),
            }
        }
        if let Some(target) = target_of(function, n).filter(|target| *target > n && joins.contains(target)) {
            entered.entry(target).or_insert_with(|| numbers.state.clone());
        }
        numbers.step(n, &at.inst, at.pc);
    }
    numbers.found.sums = numbers.sums;
    numbers.found
}

/// Instructions whose state is not that of the one before: those that do not follow it, and the first that a branch leads to behind them.
fn joins(function: &[Decoded]) -> HashSet<usize> {
    let mut joins = HashSet::new();
    let mut entered = HashSet::new();
    // A path from the start leads to the instruction.
    let mut reached = true;
    for n in 0..function.len() {
        if n > 0 && leaves(&function[n - 1].inst) {
            reached = false;
            joins.insert(n);
        }
        if !reached && entered.contains(&n) {
            reached = true;
            joins.insert(n);
        }
        if reached && let Some(target) = target_of(function, n) {
            entered.insert(target);
        }
    }
    joins
}

/// The instruction that a branch leads to.
fn target_of(function: &[Decoded], n: usize) -> Option<usize> {
    let Decoded { inst, pc, .. } = &function[n];
    index_at(function, inst.branch_target(*pc)?)
}

/// Whether the next instruction does not follow this one.
fn leaves(inst: &Inst) -> bool {
    matches!(inst.op.facts().flow, Flow::Branch | Flow::Jump | Flow::End)
}

struct Numbers {
    state: State,
    next: Value,
    constants: HashMap<u32, Value>,
    /// Results of operations on known values.
    results: HashMap<(Op, i32, Vec<Value>, usize), Value>,
    /// Vector registers whose lanes hold scalar registers, by number.
    lanes: HashMap<Value, Rc<HashMap<u32, Value>>>,
    sums: Sums,
    found: Found,
}

impl Numbers {
    fn new() -> Self {
        Self {
            state: State {
                registers: std::array::from_fn(|register| register as Value),
                memory: HashMap::new(),
            },
            next: ZERO,
            constants: HashMap::from([(0, ZERO)]),
            results: HashMap::new(),
            lanes: HashMap::new(),
            sums: Sums::new(ZERO),
            found: Found::default(),
        }
    }

    fn fresh(&mut self) -> Value {
        self.next += 1;
        self.next
    }

    fn forget(&mut self) {
        for register in 0..REGISTERS {
            self.state.registers[register] = self.fresh();
        }
        self.state.memory.clear();
    }

    fn constant(&mut self, bits: u32) -> Value {
        if let Some(&value) = self.constants.get(&bits) {
            return value;
        }
        let value = self.fresh();
        self.constants.insert(bits, value);
        self.sums.known.insert(value, bits);
        value
    }

    /// The numbers of an operand's registers, or of a constant.
    fn read(&mut self, operand: Operand, ty: Ty) -> Vec<Value> {
        let regs = usize::from(ty.regs());
        if let Some(first) = register(operand).filter(|_| !matches!(operand, Operand::VgprHalf { .. })) {
            return (first..first + regs)
                .map(|r| self.state.registers[r % REGISTERS])
                .collect();
        }
        if let Some(bits) = operand.constant(ty) {
            return (0..regs).map(|n| self.constant((bits >> (32 * n)) as u32)).collect();
        }
        let which = match operand {
            Operand::SharedBase => 0,
            Operand::SharedLimit => 1,
            Operand::PrivateBase => 2,
            Operand::PrivateLimit => 3,
            Operand::Null => return (0..regs).map(|_| self.constant(0)).collect(),
            _ => return (0..regs).map(|_| self.fresh()).collect(),
        };
        (0..regs)
            .map(|n| self.result((Op::SMovB64, which, Vec::new(), n)))
            .collect()
    }

    fn result(&mut self, key: (Op, i32, Vec<Value>, usize)) -> Value {
        if let Some(&value) = self.results.get(&key) {
            return value;
        }
        let value = self.fresh();
        self.results.insert(key, value);
        value
    }

    fn step(&mut self, n: usize, inst: &Inst, pc: u64) {
        let facts = inst.op.facts();
        if matches!(facts.flow, Flow::Call | Flow::Jump) {
            return self.call(inst, pc);
        }
        // Counters and stacks in LDS, and exchanges at two addresses.
        if facts.memory == Memory::Exchange {
            self.state.memory.retain(|place, _| place.0 != Space::Lds);
        } else if facts.two_offsets {
            return self.access_two(inst);
        }
        if let Some(place) = self.place(inst) {
            return self.access(n, inst, place);
        }
        // It may write any register.
        if !matches!(facts.relative, Relative::None | Relative::Source) {
            let vectors = matches!(inst.dst, Operand::Vgpr(_));
            for register in if vectors { 0..SCALAR } else { SCALAR..SCC } {
                self.state.registers[register] = self.fresh();
            }
            return;
        }
        // Both halves of a pair read before either writes.
        let mut written = self.results_of(inst, pc);
        if let Some(half) = inst.dual.as_deref() {
            written.extend(self.results_of(half, pc));
        }
        for (register, value) in written {
            self.state.registers[register % REGISTERS] = value;
        }
    }

    /// The place that a memory instruction accesses; `None` for all others, and where it has none that can be determined.
    fn place(&mut self, inst: &Inst) -> Option<Place> {
        let facts = inst.op.facts();
        let offset = i64::from(inst.imm);
        if !matches!(facts.memory, Memory::Load | Memory::Store | Memory::Atomic) {
            return None;
        }
        let null = |operand| matches!(operand, Operand::None | Operand::Null);
        let sum = match inst.format {
            Format::Smem if inst.ty.src[0].regs() == 2 => self.address(inst.src[0], inst.src[1], offset),
            Format::Flat | Format::Global if null(inst.src[2]) => self.address(inst.src[0], Operand::Null, offset),
            Format::Global => self.address(inst.src[2], inst.src[0], offset),
            Format::Ds => return Some(self.in_lds(inst.src[0], offset)),
            Format::Scratch => {
                let lane = inst.mem.sve.then_some(inst.src[0]);
                let base = Some(inst.src[2]).filter(|base| !null(*base));
                let words: Vec<Value> = (lane.into_iter().chain(base))
                    .map(|operand| self.read(operand, Ty::B32)[0])
                    .collect();
                let (terms, offset) = self.sums.number(self.sums.word(&words, offset));
                return Some((Space::Private, terms, offset));
            }
            Format::Mubuf => return Some(self.in_buffer(inst, [inst.src[2], inst.mem.soffset])),
            Format::Smem if inst.ty.src[0].regs() == 4 => {
                return Some(self.in_buffer(inst, [inst.src[0], inst.src[1]]));
            }
            _ => return None,
        };
        let (terms, offset) = self.sums.number(sum);
        Some((Space::Generic, terms, offset))
    }

    /// A place that a descriptor leads to: one number stands for it and the index of a lane, others for the offsets.
    fn in_buffer(&mut self, inst: &Inst, [descriptor, offset]: [Operand; 2]) -> Place {
        let mut of = self.read(descriptor, Ty::B128);
        let mut lanes = if inst.mem.offen || inst.mem.idxen {
            self.read(inst.src[0], inst.ty.src[0])
        } else {
            Vec::new()
        };
        // The index comes before the offset.
        let rest = lanes.split_off(usize::from(inst.mem.idxen).min(lanes.len()));
        of.extend(lanes);
        let whole = self.result((Op::BufferLoadB32, i32::from(inst.mem.idxen), of, 0));
        let mut words = self.read(offset, Ty::B32);
        words.extend(rest);
        let mut sum = self.sums.word(&words, inst.imm.into());
        sum.add(whole);
        let (terms, offset) = self.sums.number(sum);
        (Space::Buffer, terms, offset)
    }

    fn in_lds(&mut self, address: Operand, offset: i64) -> Place {
        let word = self.read(address, Ty::B32)[0];
        let (terms, offset) = self.sums.number(self.sums.word(&[word], offset));
        (Space::Lds, terms, offset)
    }

    /// An address of 64 bits, beside an offset in a register.
    fn address(&mut self, base: Operand, offset: Operand, constant: i64) -> Sum {
        let base = self.read(base, Ty::B64);
        let offset = self.read(offset, Ty::B32)[0];
        self.sums.pair([base[0], base[1]], Some(offset), constant)
    }

    /// A load or store of LDS at two addresses. No compare-and-swap is made of one, so that its values are no guesses.
    fn access_two(&mut self, inst: &Inst) {
        let facts = inst.op.facts();
        let base = self.in_lds(inst.src[0], 0);
        let place = |offset: i64, n: usize| {
            let offset = offset * i64::from(facts.offset_unit) + 4 * n as i64;
            (base.0, base.1, base.2 + offset)
        };
        let mut loaded = Vec::new();
        for (offset, data) in [(inst.imm.into(), 1), (inst.mem.offset1.into(), 2)] {
            if facts.memory == Memory::Store {
                let stored = self.read(inst.src[data], inst.ty.src[data]);
                self.store(place(offset, 0), &stored);
            } else {
                for n in 0..usize::from(inst.ty.dst.regs()) / 2 {
                    let place = place(offset, n);
                    let known = self.state.memory.get(&place).copied();
                    let value = known.unwrap_or_else(|| self.fresh());
                    self.state.memory.insert(place, value);
                    loaded.push(value);
                }
            }
        }
        self.write(inst.dst, &loaded);
    }

    fn access(&mut self, n: usize, inst: &Inst, place: Place) {
        let part = |n: usize| (place.0, place.1, place.2.wrapping_add(4 * n as i64));
        let facts = inst.op.facts();
        match facts.memory {
            Memory::Load => {
                let whole = facts.element == Element::Words;
                let values: Vec<Value> = (0..usize::from(inst.ty.dst.regs()))
                    .map(|n| match self.state.memory.get(&part(n)) {
                        Some(&value) if whole => value,
                        _ => self.fresh(),
                    })
                    .collect();
                for (n, &value) in values.iter().enumerate().filter(|_| whole) {
                    self.state.memory.insert(part(n), value);
                }
                self.write(inst.dst, &values);
                self.found.loads.push(Load {
                    instruction: n,
                    place,
                    values,
                });
            }
            Memory::Store => {
                let values = self.read(inst.src[1], inst.ty.src[1]);
                match facts.element.small() {
                    Some(small) => self.forget_bytes(&place, small.bytes.into()),
                    None if facts.element == Element::Words => self.store(place, &values),
                    None => self.forget_bytes(&place, 4 * values.len() as i64),
                }
            }
            _ => {
                if is_compare_and_swap(inst.op) {
                    self.swap(inst, &place);
                }
                self.forget_bytes(&place, 8);
                let values: Vec<Value> = (0..inst.ty.dst.regs()).map(|_| self.fresh()).collect();
                self.write(inst.dst, &values);
            }
        }
    }

    /// Whole registers are stored.
    fn store(&mut self, place: Place, values: &[Value]) {
        self.forget_bytes(&place, 4 * values.len() as i64);
        let (space, address, first) = place;
        let places = (0..).map(|n| (space, address, first.wrapping_add(4 * n)));
        self.state.memory.extend(places.zip(values.iter().copied()));
    }

    /// Bytes are no longer what they were: whatever word any of them is in.
    fn forget_bytes(&mut self, &(space, address, first): &Place, bytes: i64) {
        for n in -3..bytes {
            self.state.memory.remove(&(space, address, first.wrapping_add(n)));
        }
    }

    fn swap(&mut self, inst: &Inst, place: &Place) {
        // The expected value is behind the new one; LDS operations have it in an operand of its own.
        let expected = if inst.format == Format::Ds {
            self.read(inst.src[2], inst.ty.src[2])
        } else {
            let data = self.read(inst.src[1], inst.ty.src[1]);
            data[data.len() / 2..].to_vec()
        };
        self.found.guesses.extend(last(&self.found.loads, place, &expected));
        if let (Space::Generic, terms, offset) = *place
            && let Some([low, high]) = self.sums.as_pair(terms)
            && let (Some(low), Some(high)) = (argument(low), argument(high))
            && let Some(expected) = expected.into_iter().map(argument).collect()
        {
            self.found.swaps.push(SwapOfArguments {
                address: [low, high],
                offset,
                expected,
            });
        }
    }

    fn call(&mut self, inst: &Inst, pc: u64) {
        let known = self.read(inst.src[0], Ty::B64);
        let known: Vec<u64> = known
            .iter()
            .filter_map(|value| self.sums.known.get(value).map(|&bits| bits.into()))
            .collect();
        let target = match known[..] {
            [low, high] => Some(low | high << 32),
            _ => inst.branch_target(pc),
        };
        if let Some(target) = target {
            let arguments = std::array::from_fn(|register| self.state.registers[register]);
            let loads = self.found.loads.len();
            self.found.calls.push(Call {
                target,
                arguments,
                loads,
            });
        }
        for register in (0..REGISTERS).filter(|&register| !is_kept(register)) {
            self.state.registers[register] = self.fresh();
        }
    }

    fn write(&mut self, to: Operand, values: &[Value]) {
        let Some(first) = register(to) else { return };
        for (n, &value) in values.iter().enumerate() {
            self.state.registers[(first + n) % REGISTERS] = value;
        }
    }

    /// What an instruction that does not access memory writes.
    fn results_of(&mut self, inst: &Inst, pc: u64) -> Vec<(Register, Value)> {
        let mut written: Vec<(Register, Value)> = Vec::new();
        let put = |written: &mut Vec<_>, to: Operand, values: &[Value]| {
            if let Some(first) = register(to) {
                written.extend(values.iter().enumerate().map(|(n, &value)| (first + n, value)));
            }
        };
        let facts = inst.op.facts();
        let plain = is_plain(&inst.mods) && !matches!(inst.dst, Operand::VgprHalf { .. });
        match inst.op {
            Op::SMovB32 | Op::SMovB64 => {
                let values = self.read(inst.src[0], inst.ty.src[0]);
                put(&mut written, inst.dst, &values);
                return written;
            }
            Op::VMovB32 if plain => {
                let values = self.read(inst.src[0], Ty::B32);
                put(&mut written, inst.dst, &values);
                return written;
            }
            Op::SGetpcB64 => {
                let next = pc + u64::from(inst.size);
                let values = [self.constant(next as u32), self.constant((next >> 32) as u32)];
                put(&mut written, inst.dst, &values);
                return written;
            }
            // gfx12 has addresses of 48 bits.
            Op::SSextI32I16 => {
                let of = self.read(inst.src[0], Ty::B32)[0];
                if let Some(&bits) = self.sums.known.get(&of) {
                    let value = self.constant(bits as u16 as i16 as i32 as u32);
                    put(&mut written, inst.dst, &[value]);
                    return written;
                }
            }
            Op::VWritelaneB32 => {
                let old = self.read(inst.dst, Ty::B32)[0];
                let value = self.fresh();
                let lane = inst.src[1].constant(Ty::B32);
                let mut lanes = self.lanes.get(&old).map(|lanes| (**lanes).clone()).unwrap_or_default();
                match lane {
                    Some(lane) => drop(lanes.insert(lane as u32, self.read(inst.src[0], Ty::B32)[0])),
                    None => lanes.clear(),
                }
                self.lanes.insert(value, Rc::new(lanes));
                put(&mut written, inst.dst, &[value]);
                return written;
            }
            Op::VReadlaneB32 => {
                let of = self.read(inst.src[0], Ty::B32)[0];
                let lane = inst.src[1].constant(Ty::B32).map(|lane| lane as u32);
                let known = lane.and_then(|lane| self.lanes.get(&of)?.get(&lane).copied());
                let value = known.unwrap_or_else(|| self.fresh());
                put(&mut written, inst.dst, &[value]);
                return written;
            }
            _ => {}
        }
        if facts.writes.has(Registers::SRC) {
            let values = [self.read(inst.src[0], inst.ty.src[0]), self.read(inst.dst, inst.ty.dst)];
            put(&mut written, inst.dst, &values[0]);
            put(&mut written, inst.src[0], &values[1]);
            return written;
        }
        let arithmetic = matches!(facts.unit, Unit::Scalar | Unit::Vector | Unit::Transcendental);
        let sources: Vec<_> = inst
            .src
            .into_iter()
            .zip(inst.ty.src)
            .filter(|(_, ty)| *ty != Ty::None)
            .collect();
        let hardware = sources.iter().any(|(source, _)| matches!(source, Operand::HwReg(_)));
        let mut values = Vec::new();
        for (source, ty) in &sources {
            values.extend(self.read(*source, *ty));
        }
        let pure = arithmetic && plain && !sources.is_empty() && !hardware && facts.relative == Relative::None;
        for (what, register) in [(Registers::SCC, SCC), (Registers::VCC, VCC), (Registers::EXEC, EXEC)] {
            // What lanes compute for themselves does not depend on which of them do. The first of them counts as any: compilers read it
            // in a loop over the descriptors that lanes have, which then go by the same number. Where none is on, it is lane 0.
            let none = self.sums.known.get(&self.state.registers[EXEC]) == Some(&0);
            let others = facts.lanes != Lanes::Own && (!facts.scalar_result || none);
            let shared = inst.ty.sdst != Ty::None || facts.unit == Unit::Scalar || others;
            if facts.reads.has(what) && (register != EXEC || shared) {
                values.push(self.state.registers[register]);
            }
        }
        if facts.reads.has(Registers::DST) || keeps_rest(inst) {
            values.extend(self.read(inst.dst, inst.ty.dst));
        }
        // The upper word of two: how pointers become arguments.
        let shifted = match inst.op {
            Op::VLshrrevB64 => values.get(1..3).zip(values.first()),
            Op::SLshrB64 => values.get(..2).zip(values.get(2)),
            _ => None,
        };
        if let Some((words, by)) = shifted
            && self.sums.known.get(by) == Some(&32)
        {
            let upper = [words[1], self.constant(0)];
            put(&mut written, inst.dst, &upper);
            if facts.writes.has(Registers::SCC) {
                written.push((SCC, self.fresh()));
            }
            return written;
        }
        if let Some((sum, carry)) = self.sum(inst, &values) {
            put(&mut written, inst.dst, &[sum]);
            written.push((SCC, carry));
            return written;
        }
        let (dst, sdst) = (usize::from(inst.ty.dst.regs()), usize::from(inst.ty.sdst.regs()));
        let mut implicit = Vec::new();
        for (what, register) in [
            (Registers::SCC, SCC),
            (Registers::VCC, VCC),
            (Registers::EXEC, EXEC),
            (Registers::M0, M0),
        ] {
            if facts.writes.has(what) {
                implicit.push(register);
            }
        }
        let mut results: Vec<Value> = Vec::new();
        for n in 0..dst + sdst + implicit.len() {
            results.push(if pure {
                self.result((inst.op, inst.imm, values.clone(), n))
            } else {
                self.fresh()
            });
        }
        if pure {
            self.note_sum(inst.op, &values, &results);
        }
        put(&mut written, inst.dst, &results[..dst]);
        put(&mut written, inst.sdst, &results[dst..dst + sdst]);
        written.extend(implicit.into_iter().zip(results[dst + sdst..].iter().copied()));
        written
    }

    /// Notes a sum.
    fn note_sum(&mut self, op: Op, values: &[Value], results: &[Value]) {
        match (op, values) {
            // A sum with what another instruction shifts.
            (Op::VLshlAddU32, &[a, by, b, ..]) => {
                let shifted = self.result((Op::VLshlrevB32, 0, vec![by, a], 0));
                self.sums.note(Op::VAddNcU32, &[shifted, b], results);
            }
            _ => self.sums.note(op, values, results),
        }
    }

    /// A sum of constants, and its carry: addresses of functions.
    fn sum(&mut self, inst: &Inst, values: &[Value]) -> Option<(Value, Value)> {
        let carry = match inst.op {
            Op::SAddU32 | Op::SAddCoU32 => 0,
            Op::SAddcU32 | Op::SAddCoCiU32 => *self.sums.known.get(values.get(2)?)?,
            _ => return None,
        };
        let (a, b) = (
            *self.sums.known.get(values.first()?)?,
            *self.sums.known.get(values.get(1)?)?,
        );
        let sum = u64::from(a) + u64::from(b) + u64::from(carry);
        Some((self.constant(sum as u32), self.constant((sum >> 32) as u32)))
    }
}

pub(super) fn register(operand: Operand) -> Option<Register> {
    Some(match operand {
        Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => usize::from(n),
        Operand::Sgpr(n) => SCALAR + usize::from(n),
        Operand::VccLo => VCC,
        Operand::VccHi => VCC + 1,
        Operand::Ttmp(n) => SCALAR + 108 + usize::from(n),
        Operand::M0 => M0,
        Operand::ExecLo => EXEC,
        Operand::ExecHi => EXEC + 1,
        Operand::Scc => SCC,
        _ => return None,
    })
}

/// Nothing is changed on the way in or out.
pub(super) fn is_plain(mods: &Mods) -> bool {
    *mods == Mods::default()
}
