//! Form of a lowered memory instruction: what kind of access it is, and the marks in its fields.

use crate::exec::simd::masks::bits_of_bytes;
use crate::exec::state::ctx::{Ins, Run};
use crate::exec::state::fields::Src;
use rocmforge_isa::{Atomic, Element, Facts, Inst, MemBits, Memory, Op, Small};

/// `Ins::half` of a load or store: it is coherent, as compilers write atomic loads and volatile accesses.
pub(crate) const COHERENT: u8 = 1;
/// `Ins::half` of a load: it is volatile.
pub(crate) const VOLATILE: u8 = 2;

/// `Ins::half` of a volatile store: what it may store to LDS is behind a wait for LDS: see [`crate::exec::lower::fenced`].
pub(crate) const FENCED: u8 = 2;
/// `Ins::half` of a load: it is a look at a flag that the wave waits for: see [`crate::exec::lower::polls`].
pub(crate) const POLL: u8 = 4;
/// `Ins::half` of a load: a compare-and-swap expects its value: see [`crate::exec::lower::idioms`].
pub(crate) const GUESS: u8 = 8;
/// `Ins::half` of a store: it writes back what was made of a value from the same address: see [`crate::exec::lower::updates`].
pub(crate) const UPDATE: u8 = 8;
/// The same, if the address is the base in scalar registers without the offset of a lane.
pub(crate) const UPDATE_OF_BASE: u8 = 16;

/// `Ins::half` of an atomic: it orders everything before it with everything after it: see [`crate::exec::lower::library`].
pub(crate) const ORDERED: u8 = 32;
/// `Ins::half` of an atomic: nobody uses what it gives back: see [`crate::exec::lower::unused`].
pub(crate) const UNUSED: u8 = 64;

/// `Ins::sdst` of an atomic: the old value is wanted; the second operand is in `c` rather than behind the first.
pub(crate) const RETURN: u8 = 1;
pub(crate) const SECOND: u8 = 2;
/// `Ins::sdst` of an atomic: it takes locks, as an exchange and a compare-and-swap do.
pub(crate) const EXCHANGE: u8 = 4;
/// `Ins::sdst` of an atomic: the new value does not depend on the old one.
pub(crate) const SWAP: u8 = 8;

/// `Ins::half` of a load.
pub(crate) fn coherence_of_load(bits: MemBits) -> u8 {
    match (bits.glc, bits.dlc) {
        (true, true) => COHERENT | VOLATILE,
        (true, false) => COHERENT,
        (false, _) => 0,
    }
}

/// `Ins::half` of a store or atomic.
pub(crate) fn coherence_of_store(bits: MemBits) -> u8 {
    if bits.dlc && !bits.slc { COHERENT } else { 0 }
}

/// What a load of less than a register makes of what it has loaded.
pub(crate) struct LoadedSmall {
    /// Bytes in memory.
    pub(crate) bytes: u64,
    /// Bits of the register that it writes.
    pub(crate) written: u32,
    /// How far what is loaded lies above the lowest bit.
    shift: u8,
    /// How far the sign is below the highest bit; 0 where zeros fill the register up.
    sign: u8,
}

impl LoadedSmall {
    /// It as an operand that the load does not use otherwise.
    pub(crate) fn operand(small: Small) -> Src {
        Src {
            reg: small.bytes,
            lo: bits_of_bytes(small.written),
            shift: 8 * small.first,
            mods: if small.signed { 32 - 8 * small.bytes } else { 0 },
            ..Src::ZERO
        }
    }

    /// What [`Self::operand`] has put there.
    #[inline(always)]
    pub(crate) fn of(operand: &Src) -> Self {
        Self {
            bytes: operand.reg.into(),
            written: operand.lo,
            shift: operand.shift,
            sign: operand.mods,
        }
    }

    /// What is loaded, zero-extended, at its place in the register; for the bits that are [written](Self::written).
    #[inline(always)]
    pub(crate) fn extended(&self, raw: u32) -> u32 {
        (((raw << self.sign) as i32 >> self.sign) as u32) << self.shift
    }
}

/// Puts into a lowered memory operation what its handler has to know of it: `b` of a load of less than a register is a [`LoadedSmall`],
/// `b.shift` of a store of less is the place of its bytes, and `b.lo` of an atomic is the number of the operation in [`Op::ALL`].
pub(crate) fn describe(op: Op, ins: &mut Ins) {
    let facts = op.facts();
    match facts.element.small() {
        Some(small) if facts.memory == Memory::Load => ins.b = LoadedSmall::operand(small),
        Some(small) => ins.b.shift = 8 * small.first,
        None => {}
    }
    if facts.memory == Memory::Atomic {
        ins.b.lo = u32::from(op as u16);
    }
    ins.sdst |= match facts.atomic {
        Atomic::Swap => EXCHANGE | SWAP,
        Atomic::CompareAndSwap => EXCHANGE,
        Atomic::Compute | Atomic::None => 0,
    };
}

/// Handlers of loads, or of stores, that do the same for another number of bytes.
pub(crate) trait BySize {
    /// Of `R` registers.
    fn words<const R: usize>() -> Run;
    /// Of less than a register, `N` bytes.
    fn small<const N: usize>() -> Run;
}

/// The handler of a load or store, and the bytes of a lane.
pub(crate) fn by_size<H: BySize>(inst: &Inst) -> Option<(Run, u8)> {
    let Facts { element, memory, .. } = *inst.op.facts();
    let data = if memory == Memory::Load {
        inst.ty.dst
    } else {
        inst.ty.src[1]
    };
    let registers = data.regs();
    let bytes = element.small().map_or(4 * registers, |small| small.bytes);
    let words = element == Element::Words;
    let run = match bytes {
        1 => H::small::<1>(),
        2 => H::small::<2>(),
        4 if words => H::words::<1>(),
        8 if words => H::words::<2>(),
        12 if words => H::words::<3>(),
        16 if words => H::words::<4>(),
        _ => return None,
    };
    Some((run, bytes))
}

/// How an instruction is lowered: handler, and what it does with the fields.
pub(crate) enum Access {
    /// `dst` from address.
    Load(Run),
    /// `src[1]` to address.
    Store(Run),
    /// `src[1]` (and compare value behind it) into address, the old value to `dst` if asked for.
    Atomic(Run),
    /// A DS instruction: address, two data operands, destination.
    Ds(Run),
}

impl Access {
    /// The handler.
    pub(crate) fn run(self) -> Run {
        let (Self::Load(run) | Self::Store(run) | Self::Atomic(run) | Self::Ds(run)) = self;
        run
    }
}
