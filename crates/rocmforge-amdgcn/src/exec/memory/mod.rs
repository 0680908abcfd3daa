//! Vector memory: loads, stores and atomics, over any address space.

pub(crate) mod atomic;
pub(crate) mod buffer;
mod bytes;
pub(crate) mod ds;
pub(crate) mod fence;
pub(crate) mod form;
pub(crate) mod gws;
pub(crate) mod image;
mod lane;
mod load;
pub(crate) mod smem;
mod space;
mod store;
mod texel;
mod transpose;
mod typed;
pub(crate) mod variable;

use crate::exec::code::isa::plain;
use crate::exec::memory::form::{Access, by_size};
use crate::exec::state::ctx::{Ins, Run};
use crate::exec::state::request::Addresses;
use crate::exec::state::wave::Wave;
use rocmforge_isa::{Format, Inst, Memory, Op, Operand};
use transpose::Transposed;

/// The handler of a memory instruction; `scalar_base`: its address is relative to SGPRs.
pub(crate) fn lookup(inst: &Inst, scalar_base: bool) -> Option<Access> {
    use space::{Flat, Global, GlobalBase, Lds, Scratch};
    let op = inst.op;
    match inst.format {
        Format::Global if op == Op::GlobalLoadAddtidB32 => Some(Access::Load(plain::<ds::GlobalLoadByLane>())),
        Format::Global if op == Op::GlobalStoreAddtidB32 => Some(Access::Store(plain::<ds::GlobalStoreByLane>())),
        Format::Global if op == Op::GlobalLoadTrB64 => Some(Access::Load(transposed::<2>(scalar_base))),
        Format::Global if op == Op::GlobalLoadTrB128 => Some(Access::Load(transposed::<4>(scalar_base))),
        Format::Global if scalar_base => each::<GlobalBase>(inst),
        Format::Global => each::<Global>(inst),
        Format::Flat => each::<Flat>(inst),
        Format::Scratch => of_data::<Scratch>(inst),
        Format::Ds => (ds::lookup(op))
            .or_else(|| each::<Lds>(inst).map(Access::run))
            .map(Access::Ds),
        _ => None,
    }
}

/// The addresses of the lanes of an instruction that accesses global memory, of a scalar load that of lane 0; `None` for all others, and
/// those with a resource descriptor.
pub(crate) fn addresses(inst: &Inst) -> Option<fn(&Wave, &Ins, &mut Addresses)> {
    use space::{Flat, Global, GlobalBase, Space};
    match inst.format {
        Format::Global if inst.op.facts().address_by_lane => None,
        Format::Global if matches!(inst.src[2], Operand::None | Operand::Null) => Some(Global::addresses),
        Format::Global => Some(GlobalBase::addresses),
        Format::Flat => Some(Flat::addresses),
        Format::Smem if inst.ty.src[0].regs() == 2 => Some(|w, i, at| at[0] = smem::address(w, i)),
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

fn each<S: space::Space>(inst: &Inst) -> Option<Access> {
    match inst.op.facts().memory {
        Memory::Atomic => atomic::lookup::<S>(inst.op).map(Access::Atomic),
        _ => of_data::<S>(inst),
    }
}

/// A load or store.
fn of_data<S: space::Space>(inst: &Inst) -> Option<Access> {
    match inst.op.facts().memory {
        Memory::Load => by_size::<load::Of<S>>(inst).map(|(run, _)| Access::Load(run)),
        Memory::Store => by_size::<store::Of<S>>(inst).map(|(run, _)| Access::Store(run)),
        _ => None,
    }
}
