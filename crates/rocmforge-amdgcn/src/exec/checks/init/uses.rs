//! Uses of values that were never written: registers read and written, by kind of operation.

use crate::exec::checks::init::bits::Bits;
use crate::exec::lower::halves;
use crate::exec::state::wave::{EXEC, VCC};
use crate::exec::vector::cross;
use rocmforge_isa::{Flow, Format, Inst, Memory, Op, Operand, Registers, Ty, Unit};
use std::borrow::Cow;

/// A run of registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reg {
    V(u8, u8),
    S(u8, u8),
    /// A scalar register with a bit for each lane.
    Mask(u8),
    Scc,
}

/// What an instruction does with unknown values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum What {
    /// The results are unknown where a source is.
    Compute,
    /// The same, but the low word of the result depends on the low words of the sources alone: a product of words and a sum of 64 bits, whose
    /// high words compilers leave out where they need 32 bits only.
    Wide,
    /// A vector operation whose result is made of bits of its sources.
    Bits(Bits),
    /// Bitwise `and` or `or` of scalars.
    And,
    Or,
    /// One of the first two sources, by the third (or by `scc`).
    Select,
    /// The results are known.
    Known,
    /// Rows of A times columns of B plus C, with the lanes of gfx11.
    Matrix,
    /// Only the address matters (first source).
    Load,
    /// Address, then data that goes to memory as it is.
    Store,
    /// Address, then data that memory is changed by.
    Atomic,
    /// A conditional branch.
    Branch,
}

/// Bytes of its register that a load of less than one writes, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Narrow {
    /// First byte of the register.
    pub(super) first: u8,
    /// Bytes of the register that change.
    pub(super) writes: u8,
    /// Bytes that are loaded.
    loads: u32,
    /// The sign goes into the bytes above those loaded.
    pub(super) signed: bool,
}

/// How far from those that an instruction names its source and its destination are, by `m0`.
type Distances = fn(u32) -> (u32, u32);

/// One half of an instruction, which is all of it but for VOPD.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) what: What,
    pub(super) reads: Vec<Reg>,
    /// How many of the reads are address.
    pub(super) address: usize,
    pub(super) writes: Vec<Reg>,
    /// It writes what `exec` was to this register.
    pub(super) saves: Option<Reg>,
    /// It writes a lane that may be off, so that no lane of the register counts as unknown any more.
    pub(super) whole: bool,
    /// It writes `exec`.
    pub(super) exec: bool,
    /// It goes through a resource descriptor, which may keep lanes away.
    pub(super) buffer: bool,
    pub(super) narrow: Option<Narrow>,
    /// Bytes of memory that a lane of a load gets.
    pub(super) loads: u32,
    /// Operands of a selection.
    pub(super) select: [Operand; 3],
    /// Of moves whose registers are relative to `m0`.
    distances: Option<Distances>,
}

/// Registers an instruction reads and writes.
pub(super) struct Use {
    /// Both halves of a VOPD pair read before either writes.
    pub(super) parts: Vec<Part>,
    /// What the upper lanes of a wave of 64 do, where each half of the wave does its own part.
    pub(super) high: Vec<Part>,
}

fn reg(operand: Operand, regs: u8) -> Option<Reg> {
    Some(match operand {
        Operand::Vgpr(n) => Reg::V(n, regs.max(1)),
        Operand::VgprHalf { reg, .. } => Reg::V(reg, 1),
        Operand::Sgpr(n) => Reg::S(n, regs.max(1)),
        Operand::VccLo => Reg::S(VCC as u8, regs.max(1)),
        Operand::VccHi => Reg::S(VCC as u8 + 1, 1),
        Operand::ExecLo => Reg::S(EXEC as u8, 1),
        Operand::Scc => Reg::Scc,
        Operand::VccZ => Reg::S(VCC as u8, 1),
        _ => return None,
    })
}

/// What a scalar operation does with unknown bits.
fn scalar_rule(inst: &Inst) -> What {
    match inst.op {
        Op::SAndB32 | Op::SAndSaveexecB32 | Op::SAndB64 | Op::SAndSaveexecB64 => What::And,
        Op::SOrB32 | Op::SOrSaveexecB32 | Op::SOrB64 | Op::SOrSaveexecB64 => What::Or,
        Op::SCselectB32 | Op::SCselectB64 => What::Select,
        Op::SGetregB32 | Op::SGetpcB64 => What::Known,
        Op::SXorB32 | Op::SXorB64 if inst.src[0] == inst.src[1] => What::Known,
        _ => What::Compute,
    }
}

/// Operations whose destination gets the new mask of active lanes; the others that write the mask save the old one there.
fn is_wrexec(op: Op) -> bool {
    matches!(
        op,
        Op::SAndNot0WrexecB32 | Op::SAndNot0WrexecB64 | Op::SAndNot1WrexecB32 | Op::SAndNot1WrexecB64
    )
}

impl Use {
    /// Of an instruction of `gfx11`, or of gfx12; `wide`: for waves of 64 lanes, of which each half does its own part if it is `split`.
    pub(super) fn of(inst: &Inst, gfx11: bool, wide: bool, split: bool) -> Self {
        let masks = if wide && !split { 2 } else { 1 };
        let mut parts = vec![Part::of(inst, gfx11, masks)];
        parts.extend(inst.dual.as_deref().map(|half| Part::of(half, gfx11, masks)));
        let high = split.then(|| halves::high(inst).ok()).flatten();
        let high = high.iter().map(|high| Part::of(high, gfx11, masks)).collect();
        Self { parts, high }
    }
}

/// Those of a move whose registers are relative to `m0`.
fn distances(op: Op) -> Option<Distances> {
    Some(match op {
        Op::VMovrelsB32 => |m0| (m0, 0),
        Op::VMovreldB32 => |m0| (0, m0),
        Op::VMovrelsdB32 => |m0| (m0, m0),
        Op::VMovrelsd2B32 => |m0| (m0 & 0x3FF, m0 >> 16 & 0x3FF),
        _ => return None,
    })
}

/// Parts with the registers that they use where those are relative to `m0`.
pub(super) fn moved(parts: &[Part], m0: u32) -> Cow<'_, [Part]> {
    if parts.iter().any(|part| part.distances.is_some()) {
        parts.iter().map(|part| part.at(m0)).collect()
    } else {
        Cow::Borrowed(parts)
    }
}

impl Part {
    /// The same with the registers that it uses. Those that no wave has are a fault of their own.
    fn at(&self, m0: u32) -> Self {
        let mut part = self.clone();
        if let Some((source, destination)) = self.distances.map(|distances| distances(m0)) {
            let by = |distance: u32| {
                move |reg: &Reg| match *reg {
                    Reg::V(first, count) => {
                        let number = u32::from(first).wrapping_add(distance);
                        u8::try_from(number).ok().map(|number| Reg::V(number, count))
                    }
                    other => Some(other),
                }
            };
            part.reads = self.reads.iter().filter_map(by(source)).collect();
            part.writes = self.writes.iter().filter_map(by(destination)).collect();
        }
        part
    }

    /// `masks`: words of a mask that it uses without naming it.
    fn of(inst: &Inst, gfx11: bool, masks: u8) -> Self {
        let facts = inst.op.facts();
        let mut reads: Vec<Reg> = Vec::new();
        let mut writes: Vec<Reg> = Vec::new();
        for (operand, ty) in inst.src.iter().zip(inst.ty.src) {
            reads.extend(match reg(*operand, ty.regs()) {
                Some(Reg::S(n, _)) if ty == Ty::Mask => Some(Reg::Mask(n)),
                other => other,
            });
        }
        writes.extend(reg(inst.dst, inst.ty.dst.regs()));
        writes.extend(reg(inst.sdst, inst.ty.sdst.regs().min(1)));
        if facts.reads.has(Registers::DST) {
            reads.extend(reg(inst.dst, inst.ty.dst.regs()));
        }
        let mut what;
        let mut address = 0;
        let mut saves = None;
        match facts.unit {
            Unit::Scalar => {
                // A conditional move selects by it: see `Init::select`.
                what = scalar_rule(inst);
                if facts.reads.has(Registers::SCC) && what != What::Select {
                    reads.push(Reg::Scc);
                }
                if facts.reads.has(Registers::VCC) {
                    reads.push(Reg::S(VCC as u8, masks));
                }
                if facts.writes.has(Registers::EXEC) {
                    if !is_wrexec(inst.op) {
                        saves = writes.pop();
                    }
                    reads.push(Reg::S(EXEC as u8, 1));
                    writes.push(Reg::S(EXEC as u8, 1));
                }
                if facts.writes.has(Registers::SCC) {
                    writes.push(Reg::Scc);
                }
                match facts.flow {
                    Flow::ConditionalBranch => what = What::Branch,
                    Flow::Jump | Flow::Call => {
                        what = What::Load;
                        address = reads.len();
                    }
                    Flow::Next | Flow::Branch | Flow::End => {}
                }
            }
            Unit::ScalarMemory => {
                what = What::Load;
                address = reads.len();
            }
            Unit::Lds | Unit::VectorMemory => {
                let ds = inst.format == Format::Ds;
                let of = |n: usize| reg(inst.src[n], inst.ty.src[n].regs());
                reads.clear();
                reads.extend(of(0));
                // LDS operations keep their second data operand where the others keep their base.
                reads.extend(if ds { None } else { of(2) });
                reads.extend(reg(inst.mem.soffset, 1));
                address = reads.len();
                reads.extend(of(1));
                reads.extend(if ds { of(2) } else { None });
                what = match facts.memory {
                    // Permutations of lanes, and cache operations.
                    Memory::None => What::Known,
                    Memory::Load | Memory::Prefetch => What::Load,
                    Memory::Store => What::Store,
                    Memory::Atomic | Memory::Exchange => What::Atomic,
                };
            }
            Unit::Vector | Unit::Transcendental | Unit::Dot | Unit::Matrix | Unit::SparseMatrix => {
                if facts.reads.has(Registers::VCC) {
                    reads.push(Reg::S(VCC as u8, 1));
                }
                let lanes = inst.mods.dpp.is_some() || cross::lookup(inst.op, false).is_some();
                what = match inst.op {
                    _ if distances(inst.op).is_some() => What::Compute,
                    _ if lanes => What::Known,
                    _ if facts.unit == Unit::Matrix && gfx11 => What::Matrix,
                    Op::VMadU64U32 | Op::VMadI64I32 | Op::VMadCoU64U32 | Op::VMadCoI64I32 => What::Wide,
                    Op::VCndmaskB32 | Op::VCndmaskB16 => What::Select,
                    Op::VXorB32 | Op::VSubNcU32 | Op::VSubF32 if inst.src[0] == inst.src[1] => What::Known,
                    _ => Bits::of(inst).map_or(What::Compute, What::Bits),
                };
            }
        }
        let narrow = narrow(inst.op);
        let loads = narrow.map_or(u32::from(inst.ty.dst.regs()) * 4, |narrow| narrow.loads);
        // The exec mask is no operand where it only says which lanes take part.
        let exec = writes.contains(&Reg::S(EXEC as u8, 1));
        Self {
            what,
            reads,
            address,
            writes,
            saves,
            whole: inst.op == Op::VWritelaneB32,
            exec,
            buffer: inst.format == Format::Mubuf,
            narrow,
            loads,
            select: inst.src,
            distances: distances(inst.op),
        }
    }
}

/// How a load of one or two bytes writes its register.
fn narrow(op: Op) -> Option<Narrow> {
    use Op::*;
    let (first, writes, loads, signed) = match op {
        BufferLoadU8 | GlobalLoadU8 | FlatLoadU8 | ScratchLoadU8 | DsLoadU8 => (0, 0xF, 1, false),
        BufferLoadU16 | GlobalLoadU16 | FlatLoadU16 | ScratchLoadU16 | DsLoadU16 => (0, 0xF, 2, false),
        BufferLoadI8 | GlobalLoadI8 | FlatLoadI8 | ScratchLoadI8 | DsLoadI8 => (0, 0xF, 1, true),
        BufferLoadI16 | GlobalLoadI16 | FlatLoadI16 | ScratchLoadI16 | DsLoadI16 => (0, 0xF, 2, true),
        BufferLoadD16U8 | GlobalLoadD16U8 | FlatLoadD16U8 | ScratchLoadD16U8 | DsLoadU8D16 => (0, 0x3, 1, false),
        BufferLoadD16I8 | GlobalLoadD16I8 | FlatLoadD16I8 | ScratchLoadD16I8 | DsLoadI8D16 => (0, 0x3, 1, true),
        BufferLoadD16B16 | GlobalLoadD16B16 | FlatLoadD16B16 | ScratchLoadD16B16 | DsLoadU16D16 => (0, 0x3, 2, false),
        BufferLoadD16HiU8 | GlobalLoadD16HiU8 | FlatLoadD16HiU8 | ScratchLoadD16HiU8 | DsLoadU8D16Hi => {
            (2, 0xC, 1, false)
        }
        BufferLoadD16HiI8 | GlobalLoadD16HiI8 | FlatLoadD16HiI8 | ScratchLoadD16HiI8 | DsLoadI8D16Hi => {
            (2, 0xC, 1, true)
        }
        BufferLoadD16HiB16 | GlobalLoadD16HiB16 | FlatLoadD16HiB16 | ScratchLoadD16HiB16 | DsLoadU16D16Hi => {
            (2, 0xC, 2, false)
        }
        _ => return None,
    };
    Some(Narrow {
        first,
        writes,
        loads,
        signed,
    })
}
