//! Vector memory: loads, stores and atomics, over any address space.

mod atomic;
mod buffer;
mod ds;
pub(crate) mod fence;
mod gathered;
mod load;
pub(crate) mod observe;
pub(crate) mod smem;
mod space;
mod store;
mod transpose;

pub(crate) use atomic::{EXCHANGE, RETURN, SECOND};
pub(crate) use buffer::{lower as lower_buffer, reached as reached_in_buffer};
pub(crate) use ds::{lookup_wide, two_addresses};
pub(crate) use gathered::Gathered;
pub(crate) use space::{Addresses, Shape, filled, shape};

use crate::exec::code::isa::{Run, plain};
use rocmforge_isa::{Format, MemBits, Op};
use transpose::Transposed;

/// `Ins::half` of a load or store: it is coherent, as compilers write atomic loads and volatile accesses.
pub(crate) const COHERENT: u8 = 1;
/// `Ins::half` of a load: it is volatile.
pub(crate) const VOLATILE: u8 = 2;

/// `Ins::half` of a load: it is part of an atomic operation or of a wait: see [`crate::exec::code::idioms`].
pub(crate) const IDIOM: u8 = 4;
/// `Ins::half` of a store: it writes back what was made of a value from the same address: see [`crate::exec::code::updates`].
pub(crate) const UPDATE: u8 = 8;
/// The same, if the address is the base in scalar registers without the offset of a lane.
pub(crate) const UPDATE_OF_BASE: u8 = 16;

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

/// The handler of a memory instruction; `scalar_base`: its address is relative to SGPRs.
pub(crate) fn lookup(op: Op, format: Format, scalar_base: bool) -> Option<Access> {
    use space::{Flat, Global, GlobalBase, Lds, Scratch};
    match format {
        Format::Global if op == Op::GlobalLoadAddtidB32 => Some(Access::Load(plain::<ds::GlobalLoadByLane>())),
        Format::Global if op == Op::GlobalStoreAddtidB32 => Some(Access::Store(plain::<ds::GlobalStoreByLane>())),
        Format::Global if op == Op::GlobalLoadTrB64 => Some(Access::Load(transposed::<2>(scalar_base))),
        Format::Global if op == Op::GlobalLoadTrB128 => Some(Access::Load(transposed::<4>(scalar_base))),
        Format::Global if scalar_base => each::<GlobalBase>(op),
        Format::Global => each::<Global>(op),
        Format::Flat => each::<Flat>(op),
        Format::Scratch => each::<Scratch>(op),
        Format::Ds => ds::lookup::<Lds>(op).map(Access::Ds),
        _ => None,
    }
}

fn transposed<const R: usize>(scalar_base: bool) -> Run {
    if scalar_base {
        plain::<Transposed<space::GlobalBase, R>>()
    } else {
        plain::<Transposed<space::Global, R>>()
    }
}

fn each<S: space::Space>(op: Op) -> Option<Access> {
    (load::lookup::<S>(op).map(Access::Load))
        .or_else(|| store::lookup::<S>(op).map(Access::Store))
        .or_else(|| atomic::lookup::<S>(op).map(Access::Atomic))
}
