//! Accesses of a function to its private memory, by a data flow of addresses.
//!
//! Code that is not optimised keeps its variables in private memory, at fixed distances from the stack pointer or, in a kernel, from 0. It
//! makes generic pointers to them, with the upper word of `src_private_base`, and keeps those in private memory too. [`Private::of`] finds
//! the bytes that each load and store there accesses. It gives `None` if the function may access private memory
//! at an unknown address: it calls a function, uses an address that is not known, or stores a pointer to private memory elsewhere.
//!
//! A register has two [`Word`]s, one for the lanes that are on and one for those that are off. They are joined where `exec` is written, and
//! each with its like where paths meet. A word of private memory has one for the whole function. The function is gone through until nothing
//! changes. Lanes that are off when it starts do not count: they come on only where all lanes are saved and restored.
//!
//! The upper word of these pointers is also in the kernel arguments and the queue of code for older cards. That is not looked for.

use crate::exec::lower::decoded::{Decoded, crosses_lanes, each_half, writes_exec};
use crate::exec::lower::paths::{self, Value};
use crate::exec::lower::unused::is_whole_result;
use crate::exec::lower::values::{REGISTERS, Register, SCALAR, register};
use rocmforge_isa::{Element, Flow, Format, Inst, Memory, Mods, Op, Operand, Registers, Ty};
use std::collections::HashMap;
use std::ops::Range;

const STACK_POINTER: Register = SCALAR + 32;
const ZERO: Word = Word::constant(0);

/// What is known of 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    /// No path that has been followed so far writes them.
    Unset,
    /// A constant; with `stack`, what is added to the stack pointer that the function starts with.
    Number { stack: bool, value: u32 },
    /// The upper word of generic pointers to private memory.
    Aperture,
    /// A mask with this bit in every lane that is on.
    Lanes(bool),
    /// Unknown, but neither the upper word of a pointer to private memory nor computed from one.
    Other,
    /// Anything.
    Any,
}

impl Word {
    const fn constant(value: u32) -> Self {
        Word::Number { stack: false, value }
    }

    /// What an operation gives that is not looked at closer.
    fn made_of(pointer: bool) -> Self {
        if pointer { Word::Any } else { Word::Other }
    }

    fn may_point(self) -> bool {
        matches!(self, Word::Aperture | Word::Any)
    }

    /// The sum of a constant and another number.
    fn plus(self, other: Self) -> Option<Self> {
        let (Word::Number { stack: a, value: x }, Word::Number { stack: b, value: y }) = (self, other) else {
            return None;
        };
        let value = x.wrapping_add(y);
        (!(a && b)).then_some(Word::Number { stack: a || b, value })
    }
}

impl paths::Value for Word {
    fn or(self, other: Self) -> Self {
        match (self, other) {
            (a, b) if a == b => a,
            (Word::Unset, known) | (known, Word::Unset) => known,
            (a, b) => Self::made_of(a.may_point() || b.may_point()),
        }
    }
}

/// What registers hold at one place of the code.
type State = paths::State<Word>;

/// What an instruction writes to a register.
struct Write {
    register: Register,
    word: Word,
    /// The register may keep part of what it has, or lanes that are off may get it too.
    partial: bool,
}

fn writes(to: Operand, words: Vec<Word>, partial: bool) -> impl Iterator<Item = Write> {
    let registers = register(to).into_iter().flat_map(|first| first..);
    registers.zip(words).map(move |(register, word)| Write {
        register,
        word,
        partial,
    })
}

impl State {
    fn at_start() -> Self {
        let mut start = Self::new(Word::Other, Word::Unset);
        start.on[STACK_POINTER] = Word::Number { stack: true, value: 0 };
        start
    }

    /// Masks of lanes are others when other lanes are on.
    fn forget_masks(&mut self) {
        for mask in &mut self.on[SCALAR..] {
            if matches!(mask, Word::Lanes(_)) {
                *mask = Word::Other;
            }
        }
    }

    fn read(&self, operand: Operand, ty: Ty) -> Vec<Word> {
        let count = usize::from(ty.regs());
        if let Some(first) = register(operand) {
            return (first..first + count).map(|r| self.on[r % REGISTERS]).collect();
        }
        if let Some(bits) = operand.constant(ty) {
            return (0..count).map(|n| Word::constant((bits >> (32 * n)) as u32)).collect();
        }
        match operand {
            Operand::Null => vec![ZERO; count],
            Operand::PrivateBase if count == 2 => vec![Word::Other, Word::Aperture],
            Operand::PrivateBase | Operand::PrivateLimit => vec![Word::Any; count],
            _ => vec![Word::Other; count],
        }
    }

    /// Whether an operand that an instruction reads may have part of a pointer to private memory. One bit for each lane is none.
    fn may_point(&self, inst: &Inst, operand: Operand, ty: Ty) -> bool {
        // One of the hardware registers has it.
        if matches!(operand, Operand::HwReg(_)) {
            return true;
        }
        let first = register(operand).filter(|_| crosses_lanes(inst)).unwrap_or(REGISTERS);
        let off = self.off.iter().skip(first).take(ty.regs().into());
        ty != Ty::Mask && self.read(operand, ty).iter().chain(off).any(|word| word.may_point())
    }

    fn any_source_may_point(&self, inst: &Inst) -> bool {
        let mut sources = inst.src.into_iter().zip(inst.ty.src);
        sources.any(|(operand, ty)| self.may_point(inst, operand, ty))
    }

    fn write(&mut self, write: &Write) {
        let (register, word) = (write.register % REGISTERS, write.word);
        let partial = write.partial && register < SCALAR;
        let on = &mut self.on[register];
        *on = if partial { on.or(word) } else { word };
        if partial {
            self.off[register] = self.off[register].or(word);
        }
    }
}

/// Which bytes of private memory a function accesses.
#[derive(Default)]
pub(super) struct Private {
    /// Bytes that an instruction accesses.
    accessed: HashMap<usize, Range<i64>>,
    /// Instructions that read a word.
    readers: HashMap<i64, Vec<usize>>,
}

/// Words that some of these bytes are in.
fn words(bytes: &Range<i64>) -> Range<i64> {
    bytes.start.div_euclid(4)..(bytes.end + 3).div_euclid(4)
}

impl Private {
    /// Finds the accesses of a function; `wide` says that its waves have 64 lanes.
    pub(super) fn of(function: &[Decoded], wide: bool) -> Option<Self> {
        let has = |flow: Flow| function.iter().any(|at| at.inst.op.facts().flow == flow);
        // A jump is a return, unless the function makes addresses of code.
        let jumps = has(Flow::Jump) && function.iter().any(|at| at.inst.op == Op::SGetpcB64);
        if has(Flow::Call) || jumps {
            return None;
        }
        let mut pass = Pass {
            function,
            wide,
            memory: HashMap::new(),
            stack: None,
            changed: false,
            found: Self::default(),
        };
        paths::follow(function, &State::at_start(), &mut pass)?;
        Some(pass.found)
    }

    /// The instructions that may read what a store has put into private memory; `None` if that is not known.
    pub(super) fn readers(&self, store: usize) -> Option<impl Iterator<Item = usize>> {
        let read = words(self.accessed.get(&store)?).filter_map(|word| self.readers.get(&word));
        Some(read.flatten().copied())
    }
}

struct Pass<'a> {
    function: &'a [Decoded],
    wide: bool,
    memory: HashMap<i64, Word>,
    /// Whether the addresses in private memory are relative to the stack pointer: all of them are, or none.
    stack: Option<bool>,
    /// A word of private memory has another [`Word`] than before.
    changed: bool,
    found: Private,
}

impl paths::Pass for Pass<'_> {
    type Value = Word;

    fn begin(&mut self) {
        (self.changed, self.found) = (false, Private::default());
    }

    fn step(&mut self, n: usize, state: &mut State) -> Option<()> {
        let inst = &self.function[n].inst;
        let facts = inst.op.facts();
        let mut written = Vec::new();
        if facts.memory != Memory::None {
            self.access(n, inst, state, &mut written)?;
        } else if facts.reads.has(Registers::M0) && inst.dst != Operand::None {
            // `m0` has the number of a register.
            return None;
        } else {
            each_half(inst).for_each(|half| self.operate(half, state, &mut written));
        }
        written.iter().for_each(|write| state.write(write));
        if each_half(inst).any(writes_exec) {
            state.change_lanes();
            state.forget_masks();
        }
        Some(())
    }

    fn changed(&self) -> bool {
        self.changed
    }
}

impl Pass<'_> {
    /// The registers of a mask.
    fn mask(&self, word: Word) -> Vec<Word> {
        vec![word; if self.wide { 2 } else { 1 }]
    }

    /// Notes what an instruction writes that does not access memory.
    fn operate(&self, inst: &Inst, state: &State, written: &mut Vec<Write>) {
        let facts = inst.op.facts();
        let keeps = facts.reads.has(Registers::DST);
        let pointer = state.any_source_may_point(inst) || keeps && state.may_point(inst, inst.dst, inst.ty.dst);
        let word = Word::made_of(pointer);
        let mut put = |to, words, partial| written.extend(writes(to, words, partial));
        if facts.writes.has(Registers::VCC) {
            put(Operand::VccLo, self.mask(Word::Other), false);
        }
        if facts.writes.has(Registers::M0) {
            put(Operand::M0, vec![Word::Other], false);
        }
        let exact = self.exact(inst, state);
        let partial = exact.is_none() && !is_whole_result(inst);
        let plain = |ty: Ty| vec![word; ty.regs().into()];
        match (inst.ty.dst, inst.ty.sdst) {
            (Ty::None, Ty::Mask) => put(inst.sdst, exact.unwrap_or(self.mask(Word::Other)), false),
            (dst, sdst) => {
                let carry = if sdst == Ty::Mask {
                    self.mask(Word::Other)
                } else {
                    plain(sdst)
                };
                put(inst.dst, exact.unwrap_or(plain(dst)), partial);
                put(inst.sdst, carry, false);
            }
        }
        // It exchanges the two.
        if facts.writes.has(Registers::SRC) {
            put(inst.src[0], plain(inst.ty.src[0]), true);
        }
    }

    /// The result of an operation that addresses are made with.
    fn exact(&self, inst: &Inst, state: &State) -> Option<Vec<Word>> {
        if inst.mods != Mods::default() {
            return None;
        }
        let read = |n: usize| state.read(inst.src[n], inst.ty.src[n]);
        Some(match inst.op {
            Op::SMovB32 | Op::SMovB64 | Op::VMovB32 => read(0),
            Op::SMovkI32 => vec![Word::constant(inst.imm as u32)],
            Op::SAddI32 | Op::SAddCoI32 | Op::SAddU32 | Op::SAddCoU32 | Op::VAddNcU32 => {
                vec![read(0)[0].plus(read(1)[0])?]
            }
            // The upper word of a pointer.
            Op::SLshrB64 if read(1)[0] == Word::constant(32) => vec![read(0)[1], ZERO],
            // A pointer to private memory becomes a null pointer if it is -1.
            Op::VCmpNeU32 => match (read(0)[0], read(1)[0]) {
                (a @ Word::Number { stack, .. }, b @ Word::Number { stack: false, value })
                    if !stack || value == u32::MAX =>
                {
                    self.mask(Word::Lanes(a != b))
                }
                _ => return None,
            },
            Op::VCndmaskB32 => {
                let mask = state.on.get(register(inst.src[2])?..)?;
                let on = [false, true]
                    .into_iter()
                    .find(|on| mask.starts_with(&self.mask(Word::Lanes(*on))))?;
                read(usize::from(on))
            }
            _ => return None,
        })
    }

    /// Notes what a memory instruction accesses and writes; `None` if that may be any private memory.
    fn access(&mut self, n: usize, inst: &Inst, state: &State, written: &mut Vec<Write>) -> Option<()> {
        let memory = inst.op.facts().memory;
        let loaded = match place(inst, state)? {
            Place::Private { stack, from } if *self.stack.get_or_insert(stack) == stack => {
                self.access_private(n, inst, state, from)
            }
            Place::Elsewhere if !state.any_source_may_point(inst) => vec![Word::Other; inst.ty.dst.regs().into()],
            _ => return None,
        };
        // A load of less than a register may keep the rest.
        let partial = memory == Memory::Load && inst.op.facts().element != Element::Words;
        let exchanged = (memory == Memory::Exchange).then_some((inst.src[0], vec![Word::Other]));
        for (to, words) in [(inst.dst, loaded)].into_iter().chain(exchanged) {
            written.extend(writes(to, words, partial));
        }
        Some(())
    }

    /// Notes an access of private memory and what it leaves there. Gives what it loads.
    fn access_private(&mut self, n: usize, inst: &Inst, state: &State, from: i64) -> Vec<Word> {
        let memory = inst.op.facts().memory;
        let results = usize::from(inst.ty.dst.regs());
        let data = state.read(inst.src[1], inst.ty.src[1]);
        // At most: it may be part of a register.
        let bytes = from..from + 4 * results.max(data.len()) as i64;
        let held: Vec<Word> = words(&bytes)
            .map(|word| self.memory.get(&word).copied().unwrap_or(Word::Unset))
            .collect();
        let mixed = Word::made_of(held.iter().chain(&data).any(|word| word.may_point()));
        let exact = inst.op.facts().element == Element::Words && from % 4 == 0;
        for (n, word) in words(&bytes).enumerate().filter(|_| memory != Memory::Load) {
            let stored = data.get(n).copied().filter(|_| exact);
            self.put(word, stored.unwrap_or(mixed));
        }
        for word in words(&bytes).filter(|_| memory != Memory::Store) {
            self.found.readers.entry(word).or_default().push(n);
        }
        self.found.accessed.insert(n, bytes);
        if exact { held } else { vec![mixed; results] }
    }

    fn put(&mut self, word: i64, stored: Word) {
        let held = self.memory.entry(word).or_insert(Word::Unset);
        let joined = held.or(stored);
        self.changed |= joined != *held;
        *held = joined;
    }
}

/// What a memory instruction accesses.
enum Place {
    /// Private memory from this byte on, which `stack` says is relative to the stack pointer.
    Private { stack: bool, from: i64 },
    /// Other memory, unless one of the operands may have part of a pointer to private memory.
    Elsewhere,
}

/// `None` if it may be any private memory.
fn place(inst: &Inst, state: &State) -> Option<Place> {
    let base = (!matches!(inst.src[2], Operand::None | Operand::Null)).then_some(inst.src[2]);
    let address = match inst.format {
        Format::Scratch => {
            let lane = inst.mem.sve.then_some(inst.src[0]);
            let parts = [lane, base].into_iter().flatten();
            let mut parts = parts.map(|part| state.read(part, Ty::B32)[0]);
            parts.try_fold(ZERO, Word::plus)?
        }
        Format::Flat if base.is_none() => match state.read(inst.src[0], Ty::B64)[..] {
            [low, Word::Aperture] => low,
            _ => return Some(Place::Elsewhere),
        },
        _ => return Some(Place::Elsewhere),
    };
    match address {
        Word::Number { stack, value } => Some(Place::Private {
            stack,
            from: i64::from(value.wrapping_add(inst.imm as u32) as i32),
        }),
        _ => None,
    }
}
