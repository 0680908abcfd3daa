//! Scalar loads of bytes and half words.

use crate::exec::code::isa::{Handler, plain};
use crate::exec::memory::smem;
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind};
use rocmforge_isa::Op;

/// Loads `N` bytes, extended by their sign or by zeros; `BUFFER`: through a buffer descriptor, past whose end there are
/// zeros.
struct Narrow<const N: usize, const SIGNED: bool, const BUFFER: bool>;

impl<const N: usize, const SIGNED: bool, const BUFFER: bool> Handler for Narrow<N, SIGNED, BUFFER> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let offset = i64::from(i.imm).wrapping_add(i64::from(w.scalar(&i.b)));
        let (base, inside) = if BUFFER {
            let (base, size) = smem::buffer(w, i);
            let end = (offset as u64).checked_add(N as u64);
            (base, end.is_some_and(|end| end <= size))
        } else {
            (w.scalar64(&i.a), true)
        };
        let address = base.wrapping_add_signed(offset);
        if !address.is_multiple_of(N as u64) {
            c.fault(w, i, FaultKind::Misaligned, Access::Scalar, 0, address, N as u32);
        }
        let address = address & !(N as u64 - 1);
        let raw = if inside { bytes::<N>(w, c, i, address) } else { 0 };
        let unused = 32 - 8 * N as u32;
        let value = if SIGNED {
            (raw << unused) as i32 >> unused
        } else {
            raw as i32
        };
        w.set(i.dst, value as u32);
    }
}

fn bytes<const N: usize>(w: &Wave, c: &mut Ctx<'_>, i: &Ins, address: u64) -> u32 {
    smem::observe(w, c, i, address, N as u32);
    let found = c.memory.offset(address, N);
    let mut word = [0; 4];
    match found.and_then(|off| c.memory.bytes(off, N, c.check_uninit)) {
        Some(bytes) => {
            word[..N].copy_from_slice(bytes);
            u32::from_le_bytes(word)
        }
        None => {
            if c.memory.read_elsewhere(address, &mut word[..N], c.check_uninit) {
                return u32::from_le_bytes(word);
            }
            c.global_fault(w, i, Access::Scalar, 0, address, N as u32);
            crate::fault::POISON
        }
    }
}

/// The handler of a load of this file.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    Some(match op {
        Op::SLoadU8 => plain::<Narrow<1, false, false>>(),
        Op::SLoadI8 => plain::<Narrow<1, true, false>>(),
        Op::SLoadU16 => plain::<Narrow<2, false, false>>(),
        Op::SLoadI16 => plain::<Narrow<2, true, false>>(),
        Op::SBufferLoadU8 => plain::<Narrow<1, false, true>>(),
        Op::SBufferLoadI8 => plain::<Narrow<1, true, true>>(),
        Op::SBufferLoadU16 => plain::<Narrow<2, false, true>>(),
        Op::SBufferLoadI16 => plain::<Narrow<2, true, true>>(),
        _ => return None,
    })
}
