//! Form of a lowered memory instruction: what kind of access it is, and the marks in its fields.

use crate::exec::state::ctx::Run;
use rocmforge_isa::MemBits;

/// `Ins::half` of a load or store: it is coherent, as compilers write atomic loads and volatile accesses.
pub(crate) const COHERENT: u8 = 1;
/// `Ins::half` of a load: it is volatile.
pub(crate) const VOLATILE: u8 = 2;

/// `Ins::half` of a load: it is part of an atomic operation or of a wait: see [`crate::exec::lower::idioms`].
pub(crate) const IDIOM: u8 = 4;
/// `Ins::half` of a store: it writes back what was made of a value from the same address: see [`crate::exec::lower::updates`].
pub(crate) const UPDATE: u8 = 8;
/// The same, if the address is the base in scalar registers without the offset of a lane.
pub(crate) const UPDATE_OF_BASE: u8 = 16;

/// `Ins::half` of an atomic: it orders everything before it with everything after it: see [`crate::exec::lower::library`].
pub(crate) const ORDERED: u8 = 32;
/// `Ins::half` of an atomic: nobody uses what it gives back: see [`crate::exec::lower::unused`].
pub(crate) const UNUSED: u8 = 64;

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
