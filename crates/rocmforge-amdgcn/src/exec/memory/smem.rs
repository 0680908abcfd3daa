//! Scalar loads.

use crate::byte_state::ByteState;
use crate::exec::code::isa::{Handler, plain};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::request::{Data, Place, Request, Shape};
use crate::exec::state::wave::{NULL, Wave};
use crate::fault::{Access, FaultKind};
use rocmforge_isa::Op;

/// The address that a scalar load names.
pub(super) fn address(w: &Wave, i: &Ins) -> u64 {
    let offset = i64::from(i.imm) + i64::from(w.scalar(&i.b));
    w.scalar64(&i.a).wrapping_add_signed(offset)
}

/// Loads `N` words at base + register offset + immediate.
struct Load<const N: usize>;

impl<const N: usize> Handler for Load<N> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let address = address(w, i);
        check_alignment(w, c, i, address, N);
        // The hardware ignores the low two bits.
        let address = address & !3;
        observe(w, c, i, address, N as u32 * 4);
        let off = c.memory.offset(address, N * 4);
        let there = off.and_then(|off| c.memory.bytes(off, N * 4, c.check_uninit));
        if let Some(words) = there.and_then(|bytes| bytes.as_chunks::<4>().0.first_chunk::<N>()) {
            return put(w, i.dst, words);
        }
        let mut words = [[0; 4]; N];
        if c.memory
            .read_elsewhere(address, words.as_flattened_mut(), c.check_uninit)
        {
            return put(w, i.dst, &words);
        }
        if !off.is_some_and(|off| c.memory.readable(off, N * 4, false)) {
            c.global_fault(w, i, Access::Scalar, 0, address, N as u32 * 4);
        }
        let words = std::array::from_fn(|n| {
            // Past the last address there is the first, which is no memory either.
            let at = address.wrapping_add(n as u64 * 4);
            c.loading = Some(i.dst.wrapping_add(n as u8));
            // The words that are fine still arrive, so that one fault does not cause others.
            word(w, c, at).unwrap_or(crate::fault::POISON).to_le_bytes()
        });
        c.loading = None;
        put::<N>(w, i.dst, &words);
    }
}

/// Writes the words that a load has given to scalar registers.
#[inline(always)]
fn put<const N: usize>(w: &mut Wave, dst: u8, words: &[[u8; 4]; N]) {
    let first = dst as usize;
    // All at once, where no special register is among them.
    if let Some(registers) = w.s[..NULL].get_mut(first..first + N) {
        for (register, word) in registers.iter_mut().zip(words) {
            *register = u32::from_le_bytes(*word);
        }
        return;
    }
    for (n, word) in words.iter().enumerate() {
        w.set(dst.wrapping_add(n as u8) & 127, u32::from_le_bytes(*word));
    }
}

/// Reports a load of some words at an address that is not one of a word.
#[inline(always)]
fn check_alignment(w: &Wave, c: &mut Ctx<'_>, i: &Ins, address: u64, words: usize) {
    if !address.is_multiple_of(4) {
        c.fault(
            w,
            i,
            FaultKind::Misaligned,
            Access::Scalar,
            0,
            address,
            words as u32 * 4,
        );
    }
}

/// Loads `N` words through a buffer descriptor; words past its end are 0.
struct BufferLoad<const N: usize>;

impl<const N: usize> Handler for BufferLoad<N> {
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let (base, size) = buffer(w, i);
        let offset = i64::from(i.imm).wrapping_add(i64::from(w.scalar(&i.b))) as u64;
        // The low bits of both are ignored, rather than those of the sum.
        check_alignment(w, c, i, base.wrapping_add(offset & !3) | offset & 3, N);
        let offset = offset & !3;
        for n in 0..N {
            let at = offset.wrapping_add(n as u64 * 4);
            let inside = at.checked_add(4).is_some_and(|end| end <= size);
            let word = if inside {
                let address = base.wrapping_add(at) & !3;
                observe(w, c, i, address, 4);
                c.loading = Some(i.dst.wrapping_add(n as u8));
                word(w, c, address).unwrap_or_else(|| {
                    c.global_fault(w, i, Access::Scalar, 0, address, 4);
                    crate::fault::POISON
                })
            } else {
                0
            };
            c.loading = None;
            w.set(i.dst.wrapping_add(n as u8) & 127, word);
        }
    }
}

/// Base and size in bytes of the buffer that a descriptor describes.
pub(crate) fn buffer(w: &Wave, i: &Ins) -> (u64, u64) {
    let descriptor: [u32; 3] = std::array::from_fn(|n| w.s[(i.a.reg as usize + n) & 127]);
    let base = u64::from(descriptor[0]) | u64::from(descriptor[1] & 0xFFFF) << 32;
    let stride = u64::from(descriptor[1] >> 16 & 0x3FFF).max(1);
    (base, u64::from(descriptor[2]) * stride)
}

/// A word of a scalar load; `None` where there is no memory.
fn word(w: &Wave, c: &mut Ctx<'_>, address: u64) -> Option<u32> {
    let off = c.memory.offset(address, 4);
    let mut word = [0; 4];
    if c.memory.read_elsewhere(address, &mut word, c.check_uninit) {
        return Some(u32::from_le_bytes(word));
    }
    let held = u32::from_le_bytes(*off.and_then(|off| c.memory.bytes(off, 4, false))?.first_chunk()?);
    if off.is_some_and(|off| c.memory.readable(off, 4, c.check_uninit)) {
        return Some(held);
    }
    let missing = (0..4).filter(|&n| c.memory.state_at(address + n) == ByteState::Uninit);
    let missing = missing.fold(0, |mask, n| mask | 1 << n);
    if c.unwritten(w, Place::Global, Access::Scalar, 0, address, missing) != Some(missing) {
        return Some(held);
    }
    Some(crate::fault::POISON)
}

/// Tells who watches about a scalar load that is about to run.
#[inline(always)]
pub(crate) fn observe(w: &Wave, c: &mut Ctx<'_>, i: &Ins, address: u64, size: u32) {
    if c.observed {
        let request = Request {
            place: Place::Global,
            access: Access::Scalar,
            size,
            exec: 1,
            at: &[address; 32],
            shape: Shape::Contiguous,
            data: Data::None,
        };
        c.observe(w, i, &request);
    }
}

/// The handler of a scalar load.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    Some(match op {
        Op::SLoadB32 => plain::<Load<1>>(),
        Op::SLoadB64 => plain::<Load<2>>(),
        Op::SLoadB96 => plain::<Load<3>>(),
        Op::SLoadB128 => plain::<Load<4>>(),
        Op::SLoadB256 => plain::<Load<8>>(),
        Op::SLoadB512 => plain::<Load<16>>(),
        Op::SBufferLoadB32 => plain::<BufferLoad<1>>(),
        Op::SBufferLoadB64 => plain::<BufferLoad<2>>(),
        Op::SBufferLoadB96 => plain::<BufferLoad<3>>(),
        Op::SBufferLoadB128 => plain::<BufferLoad<4>>(),
        Op::SBufferLoadB256 => plain::<BufferLoad<8>>(),
        Op::SBufferLoadB512 => plain::<BufferLoad<16>>(),
        _ => return None,
    })
}
