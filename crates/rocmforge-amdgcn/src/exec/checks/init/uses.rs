//! Uses of values that were never written: registers read and written, by kind of operation.

use crate::exec::checks::init::bits::{Bits, is_sum_of_halves};
use crate::exec::lower::halves;
use crate::exec::state::wave::{EXEC, VCC};
use rocmforge_isa::{
    Dependence, Flow, Format, Inst, Lanes, Memory, OpSel, Operand, Registers, Relative, Small, Ty, Unit,
};
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
    /// An operation whose result is made of bits of its sources.
    Bits(Bits),
    /// An operation of 16-bit values.
    Halves(Halves),
    /// Values of one lowered source go from lane to lane, as they are.
    Exchange {
        data: usize,
    },
    /// With a DPP control: the first source comes from other lanes, and is the result if it is only moved.
    Permuted {
        moves: bool,
    },
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

/// Bytes of a register that an operation of 16-bit values writes: all, of which each half depends on halves of the sources, or on what the low one does; or one half.
pub(super) const BOTH_HALVES: u8 = 0x1F;
pub(super) const WHOLE: u8 = 0xF;
pub(super) const LOW_HALF: u8 = 0b0011;
pub(super) const HIGH_HALF: u8 = 0b1100;

/// The bytes of the sources that the halves of a result depend on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Halves {
    pub(super) src: [Operand; 3],
    pub(super) low: [u8; 3],
    pub(super) high: [u8; 3],
    /// The low byte of a half depends on low bytes alone.
    pub(super) upwards: bool,
    /// What of the destination is written.
    pub(super) written: u8,
}

/// The bytes of its destination that an operation of vectors writes, which is not packed.
fn written(inst: &Inst) -> u8 {
    match inst.dst {
        _ if !inst.ty.dst.is_half() => WHOLE,
        Operand::VgprHalf { hi: true, .. } => HIGH_HALF,
        Operand::Vgpr(_) if inst.mods.op_sel & 8 != 0 => HIGH_HALF,
        _ => LOW_HALF,
    }
}

impl Halves {
    /// `None` for operations without 16-bit operands, and where it is not known which half they use.
    fn of(inst: &Inst) -> Option<Self> {
        let facts = inst.op.facts();
        if facts.unit != Unit::Vector || facts.op_sel != OpSel::Halves || facts.reads.has(Registers::DST) {
            return None;
        }
        let half = |chosen: u8, n: usize| if chosen >> n & 1 != 0 { 0b1100 } else { 0b0011 };
        let (mods, types) = (&inst.mods, inst.ty.src);
        let sources = || (0..3).filter(|&n| inst.src[n] != Operand::None);
        let is_pair = |ty: Ty| matches!(ty, Ty::Pk16 | Ty::PkF16);
        let packed = inst.format == Format::Vop3p;
        let fits = if packed {
            is_pair(inst.ty.dst) && sources().all(|n| is_pair(types[n]))
        } else {
            sources().any(|n| types[n].is_half()) && sources().all(|n| types[n].regs() == 1 && types[n] != Ty::Mask)
        };
        let low = |n: usize| {
            if packed || types[n].is_half() {
                half(mods.op_sel, n)
            } else {
                0b1111
            }
        };
        let high = |n: usize| if packed { half(mods.op_sel_hi, n) } else { 0 };
        let written = if packed { BOTH_HALVES } else { written(inst) };
        fits.then(|| Self {
            src: inst.src,
            low: std::array::from_fn(low),
            high: std::array::from_fn(high),
            upwards: is_sum_of_halves(inst.op) && !mods.clamp,
            written,
        })
    }
}

/// Memory that an instruction changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Changes {
    /// None, or LDS or private memory.
    Nothing,
    Global,
    /// By generic addresses.
    Any,
}

/// One half of an instruction, which is all of it except for VOPD.
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
    /// Of a vector load of less than a register.
    pub(super) narrow: Option<Small>,
    /// Bytes of memory that a lane of a load gets.
    pub(super) loads: u32,
    /// The operands of a selection. Then: which sources give their high half, and which part of the destination is written.
    pub(super) select: [Operand; 3],
    pub(super) op_sel: u8,
    pub(super) written: u8,
    /// What memory it changes that is not private by its format.
    pub(super) changes: Changes,
    /// Registers whose numbers are relative to `m0`.
    relative: Relative,
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

/// Whether the first two sources are the same, read alike.
fn has_equal_sources(inst: &Inst) -> bool {
    let mods = &inst.mods;
    let differ = |bits: u8| (bits ^ bits >> 1) & 1 != 0;
    inst.src[0] == inst.src[1] && ![mods.neg, mods.abs, mods.op_sel].into_iter().any(differ)
}

/// What a scalar operation does with unknown bits.
fn scalar_rule(inst: &Inst) -> What {
    match inst.op.facts().dependence {
        Dependence::And => What::And,
        Dependence::Or => What::Or,
        Dependence::Select => What::Select,
        Dependence::None => What::Known,
        Dependence::Cancels if has_equal_sources(inst) => What::Known,
        Dependence::Cancels | Dependence::LowWord | Dependence::All => What::Compute,
    }
}

impl Use {
    /// Of an instruction of `gfx11`, or of gfx12; `wide`: for waves of 64 lanes, of which each half does its own part if it is `split`.
    pub(super) fn of(inst: &Inst, gfx11: bool, wide: bool, split: bool) -> Self {
        let masks = if wide && !split { 2 } else { 1 };
        let mut parts = vec![Part::of(inst, gfx11, masks)];
        // An exchange of two registers is two moves, which read before either writes.
        if let (Some(first), Some(back)) = (parts.first_mut(), Bits::backwards(inst))
            && let (What::Bits(_), &[dst, src]) = (first.what, &first.writes[..])
        {
            let mut second = first.clone();
            (first.reads, first.writes) = (vec![src], vec![dst]);
            (second.what, second.reads, second.writes) = (What::Bits(back), vec![dst], vec![src]);
            parts.push(second);
        }
        parts.extend(inst.dual.as_deref().map(|half| Part::of(half, gfx11, masks)));
        let high = split.then(|| halves::high(inst).ok()).flatten();
        let high = high.iter().map(|high| Part::of(high, gfx11, masks)).collect();
        Self { parts, high }
    }
}

/// Parts with the registers that they use where those are relative to `m0`.
pub(super) fn moved(parts: &[Part], m0: u32) -> Cow<'_, [Part]> {
    if parts.iter().any(|part| part.relative != Relative::None) {
        parts.iter().map(|part| part.at(m0)).collect()
    } else {
        Cow::Borrowed(parts)
    }
}

impl Part {
    /// The same with the registers that it uses. Those that no wave has are a fault of their own.
    fn at(&self, m0: u32) -> Self {
        let mut part = self.clone();
        if let Some((source, destination)) = self.relative.distances(m0) {
            let by = |distance: u32| {
                move |reg: &Reg| match *reg {
                    Reg::V(first, count) => {
                        let number = u32::from(first).wrapping_add(distance);
                        u8::try_from(number).ok().map(|number| Reg::V(number, count))
                    }
                    // The handlers wrap around too.
                    Reg::S(first, count) => Some(Reg::S((u32::from(first).wrapping_add(distance) & 127) as u8, count)),
                    other => Some(other),
                }
            };
            // An exchange writes its source behind its destination.
            let (first, rest) = self.writes.split_at(1.min(self.writes.len()));
            part.reads = self.reads.iter().filter_map(by(source)).collect();
            part.writes = first.iter().filter_map(by(destination)).collect();
            part.writes.extend(rest.iter().filter_map(by(source)));
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
        let exchanges = facts.writes.has(Registers::SRC);
        if exchanges {
            writes.extend(reg(inst.src[0], inst.ty.src[0].regs()));
        }
        if facts.reads.has(Registers::DST) {
            reads.extend(reg(inst.dst, inst.ty.dst.regs()));
        }
        let mut what;
        let mut address = 0;
        let mut saves = None;
        match facts.unit {
            Unit::Scalar => {
                // A conditional move selects by it: see `Init::select`.
                what = match scalar_rule(inst) {
                    What::Compute => Bits::of(inst).map_or(What::Compute, What::Bits),
                    other => other,
                };
                if facts.reads.has(Registers::SCC) && what != What::Select {
                    reads.push(Reg::Scc);
                }
                if facts.reads.has(Registers::VCC) {
                    reads.push(Reg::S(VCC as u8, masks));
                }
                if facts.writes.has(Registers::EXEC) {
                    if facts.saves_exec {
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
                reads.extend(inst.image_sources().filter_map(|(operand, ty)| reg(operand, ty.regs())));
                address = reads.len();
                reads.extend(of(1));
                reads.extend(if ds { of(2) } else { None });
                what = match facts.memory {
                    // Permutations of lanes: what they move is behind the lanes that they name, if they do.
                    Memory::None if ds && facts.lanes == Lanes::Others && inst.dst != Operand::None && masks == 1 => {
                        What::Exchange {
                            data: usize::from(inst.src[1] != Operand::None),
                        }
                    }
                    // Cache operations.
                    Memory::None => What::Known,
                    Memory::Load | Memory::Prefetch => What::Load,
                    Memory::Store => What::Store,
                    Memory::Atomic | Memory::Exchange => What::Atomic,
                };
            }
            Unit::Vector | Unit::Transcendental | Unit::Dot | Unit::Matrix | Unit::SparseMatrix => {
                if facts.reads.has(Registers::VCC) {
                    reads.push(Reg::Mask(VCC as u8));
                }
                let matrix = matches!(facts.unit, Unit::Matrix | Unit::SparseMatrix);
                let lanes = inst.mods.dpp.is_some() || facts.lanes != Lanes::Own && !matrix;
                what = match facts.dependence {
                    // See `Use::of`; both registers of other exchanges count as written.
                    _ if exchanges && facts.relative == Relative::None => {
                        Bits::of(inst).map_or(What::Known, What::Bits)
                    }
                    _ if exchanges => What::Known,
                    _ if facts.relative != Relative::None => What::Compute,
                    Dependence::Select if lanes => What::Known,
                    _ if inst.mods.dpp.is_some() => What::Permuted {
                        moves: Bits::of(inst).is_some_and(|bits| bits.moves()),
                    },
                    // Compilers load a register whole and then write single lanes of it: all of it counts as written.
                    _ if facts.lanes == Lanes::Named => What::Known,
                    _ if lanes && masks == 1 => What::Exchange { data: 0 },
                    _ if lanes => What::Known,
                    _ if facts.unit == Unit::Matrix && gfx11 => What::Matrix,
                    Dependence::LowWord => What::Wide,
                    Dependence::Select => What::Select,
                    Dependence::Cancels if has_equal_sources(inst) => What::Known,
                    _ => (Bits::of(inst).map(What::Bits))
                        .or_else(|| Halves::of(inst).map(What::Halves))
                        .unwrap_or(What::Compute),
                };
            }
        }
        let narrow = facts.element.small().filter(|_| facts.memory == Memory::Load);
        let loads = narrow.map_or(u32::from(inst.ty.dst.regs()) * 4, |narrow| narrow.bytes.into());
        let writes_memory = matches!(facts.memory, Memory::Store | Memory::Atomic | Memory::Exchange);
        let changes = match inst.format {
            _ if !writes_memory => Changes::Nothing,
            Format::Ds | Format::Scratch => Changes::Nothing,
            Format::Flat => Changes::Any,
            _ => Changes::Global,
        };
        // The exec mask is no operand where it only says which lanes take part.
        let exec = writes.contains(&Reg::S(EXEC as u8, 1));
        Self {
            what,
            reads,
            address,
            writes,
            saves,
            whole: facts.lanes == Lanes::Named,
            exec,
            buffer: inst.format == Format::Mubuf,
            narrow,
            loads,
            select: inst.src,
            op_sel: inst.mods.op_sel,
            written: written(inst),
            changes,
            relative: facts.relative,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_isa::{Arch, decode_for};

    /// What an instruction of gfx1100 does with unknown values.
    fn what(words: [u32; 2]) -> What {
        let inst = decode_for(Arch::Gfx1100, &words, 0).expect("an instruction");
        Use::of(&inst, true, false, false).parts[0].what
    }

    #[test]
    fn equal_sources_cancel_each_other_out_if_they_are_read_alike() {
        // `v_sub_f32_e64 v1, v2, v2`, with both negated, and `v_sub_nc_i16 v1, v2, v2`.
        for words in [
            [0xd504_0001, 0x0002_0502],
            [0xd504_0001, 0x6002_0502],
            [0xd70e_0001, 0x0002_0502],
        ] {
            assert_eq!(what(words), What::Known, "{words:x?}");
        }
        // With the second negated, the first without its sign, and the high half of the first.
        for words in [
            [0xd504_0001, 0x4002_0502],
            [0xd504_0101, 0x0002_0502],
            [0xd70e_0801, 0x0002_0502],
        ] {
            assert_ne!(what(words), What::Known, "{words:x?}");
        }
    }

    #[test]
    fn an_exchange_of_registers_is_two_moves() {
        // `v_swap_b32 v5, v1`.
        let inst = decode_for(Arch::Gfx1100, &[0x7E0A_CB01, 0], 0).expect("an instruction");
        let parts = Use::of(&inst, true, false, false).parts;
        let moves = parts.iter().map(|part| (&part.reads[..], &part.writes[..]));
        let (one, five) = (Reg::V(1, 1), Reg::V(5, 1));
        assert!(moves.eq([(&[one][..], &[five][..]), (&[five], &[one])]));
        assert!(parts.iter().all(|part| matches!(part.what, What::Bits(_))));
    }
}
