//! Scalar loads of bytes and half words.

use crate::exec::code::isa::{Handler, plain};
use crate::exec::memory::form::LoadedSmall;
use crate::exec::memory::smem;
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::Src;
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind};
use rocmforge_isa::{Inst, Ty};

/// Loads one or two bytes, extended by their sign or by zeros; `BUFFER`: through a buffer descriptor, past whose end there are
/// zeros.
struct Small<const BUFFER: bool>;

impl<const BUFFER: bool> Handler for Small<BUFFER> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let small = LoadedSmall::of(&i.c);
        let offset = i64::from(i.imm).wrapping_add(i64::from(w.scalar(&i.b)));
        let (base, inside) = if BUFFER {
            let (base, size) = smem::buffer(w, i);
            let end = (offset as u64).checked_add(small.bytes);
            (base, end.is_some_and(|end| end <= size))
        } else {
            (w.scalar64(&i.a), true)
        };
        let address = base.wrapping_add_signed(offset);
        if !address.is_multiple_of(small.bytes) {
            c.fault(
                w,
                i,
                FaultKind::Misaligned,
                Access::Scalar,
                0,
                address,
                small.bytes as u32,
            );
        }
        let address = address & !(small.bytes - 1);
        let raw = if inside {
            load(w, c, i, address, small.bytes as usize)
        } else {
            0
        };
        w.set(i.dst, small.extended(raw));
    }
}

/// Bytes, zero-extended; poison after noting a fault.
fn load(w: &Wave, c: &mut Ctx<'_>, i: &Ins, address: u64, size: usize) -> u32 {
    smem::observe(w, c, i, address, size as u32);
    let found = c.memory.offset(address, size);
    let mut word = [0; 4];
    match found.and_then(|off| c.memory.bytes(off, size, c.check_uninit)) {
        Some(bytes) => {
            word[..size].copy_from_slice(bytes);
            u32::from_le_bytes(word)
        }
        None => {
            if c.memory.read_elsewhere(address, &mut word[..size], c.check_uninit) {
                return u32::from_le_bytes(word);
            }
            c.global_fault(w, i, Access::Scalar, 0, address, size as u32);
            crate::fault::POISON
        }
    }
}

/// The handler of a load of less than a register, and `Ins::c` for it.
pub(crate) fn lookup(inst: &Inst) -> Option<(Run, Src)> {
    let small = inst.op.facts().element.small()?;
    let run = match inst.ty.src[0] {
        Ty::B128 => plain::<Small<true>>(),
        _ => plain::<Small<false>>(),
    };
    Some((run, LoadedSmall::operand(small)))
}
