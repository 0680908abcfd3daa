//! Scalar loads.

use super::code::Ins;
use super::ctx::Ctx;
use super::isa::{Handler, Run, plain};
use super::wave::Wave;
use crate::fault::{Access, FaultKind};
use crate::inst::Op;

/// Loads `N` words at base + register offset + immediate.
struct Load<const N: usize>;

impl<const N: usize> Handler for Load<N> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let offset = i64::from(i.imm) + i64::from(w.scalar(&i.b));
        let address = w.scalar64(&i.a).wrapping_add_signed(offset);
        if address % 4 != 0 {
            c.fault(w, i, FaultKind::Misaligned, Access::Scalar, 0, address, N as u32 * 4);
        }
        // The hardware ignores the low two bits.
        let address = address & !3;
        let mut words = [crate::POISON; N];
        match c
            .memory
            .offset(address, N * 4)
            .filter(|&off| c.memory.readable(off, N * 4, c.check_uninit))
        {
            Some(off) => {
                for (word, bytes) in words.iter_mut().zip(c.memory.slice(off, N * 4).as_chunks::<4>().0) {
                    *word = u32::from_le_bytes(*bytes);
                }
            }
            None => {
                c.global_fault(w, i, Access::Scalar, 0, address, N as u32 * 4);
                // The words that are fine still arrive, so that one fault does not cause others.
                for (n, word) in words.iter_mut().enumerate() {
                    // Past the last address there is the first, which is no memory either.
                    let at = address.wrapping_add(n as u64 * 4);
                    if let Some(off) = c
                        .memory
                        .offset(at, 4)
                        .filter(|&off| c.memory.readable(off, 4, c.check_uninit))
                    {
                        *word = u32::from_le_bytes(c.memory.slice(off, 4).as_chunks::<4>().0[0]);
                    }
                }
            }
        }
        for (n, word) in words.into_iter().enumerate() {
            w.set(i.dst.wrapping_add(n as u8) & 127, word);
        }
    }
}

/// The handler of a scalar load.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    Some(match op {
        Op::SLoadB32 => plain::<Load<1>>(),
        Op::SLoadB64 => plain::<Load<2>>(),
        Op::SLoadB128 => plain::<Load<4>>(),
        Op::SLoadB256 => plain::<Load<8>>(),
        Op::SLoadB512 => plain::<Load<16>>(),
        _ => return None,
    })
}
