//! Matrix multiply-accumulate of a wave: 16 x 16 results, 16 deep.
//!
//! Lanes 0 to 15 hold the rows of A and the columns of B, lanes 16 to 31 the same again: a card takes some products from
//! either half, so halves that differ are a fault. All lanes count, those too that `exec` turns off or that have ended,
//! because the instruction does not look at `exec`. Register `r` of the result holds row `2 r` in lanes 0 to 15 and row
//! `2 r + 1` in lanes 16 to 31.

use crate::exec::code::isa::{Handler, vector};
use crate::exec::number::num::{bf16_to_f32, f32_to_bf16, f32_to_half, half_to_f32};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::Kind;
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind};
use rocmforge_isa::Op;

/// Elements of A by depth and row, or of B by depth and column, of 16 bits each, which lie from register `reg` on: two of a row in a
/// register. `flip`: bits to change in even and in odd elements.
#[inline(always)]
fn widened(w: &Wave, reg: u8, flip: [u16; 2], widen: &impl Fn(u16) -> f32) -> [[f32; 16]; 16] {
    let mut out = [[0.0; 16]; 16];
    for (r, [even, odd]) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        let lanes = &w.v[(reg as usize + r) & 255].0;
        for n in 0..16 {
            even[n] = widen(lanes[n] as u16 ^ flip[0]);
            odd[n] = widen((lanes[n] >> 16) as u16 ^ flip[1]);
        }
    }
    out
}

/// The same of integers of `BITS` bits.
#[inline(always)]
fn integer_elements<const BITS: usize>(w: &Wave, reg: u8, signed: bool) -> [[i32; 16]; 16] {
    let (per, up) = (32 / BITS, 32 - BITS);
    let mut out = [[0; 16]; 16];
    for (k, out) in out.iter_mut().enumerate() {
        let lanes = &w.v[(reg as usize + k / per) & 255].0;
        let left = up - k % per * BITS;
        for n in 0..16 {
            let word = lanes[n] << left;
            out[n] = if signed { word as i32 >> up } else { (word >> up) as i32 };
        }
    }
    out
}

/// Old accumulator bits of register `r`.
#[inline(always)]
fn old(w: &Wave, i: &Ins, r: usize, lane: usize) -> u32 {
    if i.c.kind == Kind::V {
        w.v[(i.c.reg as usize + r) & 255].0[lane]
    } else {
        w.scalar(&i.c)
    }
}

/// Notes an operand of which lanes 16 to 31 do not repeat lanes 0 to 15. A and B have so many registers.
#[inline(always)]
fn check_halves(w: &Wave, c: &mut Ctx<'_>, i: &Ins, registers: u8) {
    let mut differ = false;
    for n in 0..registers {
        for first in [i.a.reg, i.b.reg] {
            let (low, high) = w.v[first.wrapping_add(n) as usize].0.split_at(16);
            differ |= low != high;
        }
    }
    if differ {
        report_halves(w, c, i, registers);
    }
}

#[cold]
#[inline(never)]
fn report_halves(w: &Wave, c: &mut Ctx<'_>, i: &Ins, registers: u8) {
    let operands = [("A", i.a.reg), ("B", i.b.reg)];
    let places = operands.into_iter().flat_map(|(name, first)| {
        let registers = (0..registers).map(move |n| first.wrapping_add(n));
        registers.flat_map(move |register| (0..16usize).map(move |lane| (name, register, lane)))
    });
    let value = |register: u8, lane: usize| w.v[register as usize].0[lane];
    let mut differing = places.filter(|&(_, register, lane)| value(register, lane) != value(register, lane + 16));
    let Some((name, register, lane)) = differing.next() else {
        return;
    };
    let more = differing.count();
    let twin = lane + 16;
    if let Some(fault) = c.fault(w, i, FaultKind::MatrixHalves, Access::None, twin as u32, 0, 0) {
        let (low, high) = (value(register, lane), value(register, twin));
        fault.note = format!(
            "{name} in v{register} is {high:#010x} in lane {twin} and {low:#010x} in lane {lane}; {more} more places differ"
        );
    }
}

/// Multiplies with elements widened by `widen`; results and old values pass through `read` and `write`.
#[inline(always)]
fn floats(
    w: &mut Wave,
    i: &Ins,
    widen: impl Fn(u16) -> f32,
    read: impl Fn(u32) -> f32,
    write: impl Fn(f32, u32) -> u32,
) {
    // Signs of even and odd elements of A and B; sign and absolute value of the accumulator.
    let sign = |bit: i32| ((i.imm >> bit & 1) as u16) << 15;
    let (negative, absolute) = (i.imm >> 2 & 1 != 0, i.imm >> 10 & 1 != 0);
    let a = widened(w, i.a.reg, [sign(0), sign(8)], &widen);
    let b = widened(w, i.b.reg, [sign(1), sign(9)], &widen);
    let mut out = [[0u32; 32]; 8];
    for (r, out) in out.iter_mut().enumerate() {
        for high in 0..2 {
            let row = 2 * r + high;
            let mut sum = [0.0f32; 16];
            for (n, sum) in sum.iter_mut().enumerate() {
                let c = read(old(w, i, r, high * 16 + n));
                let c = if absolute { c.abs() } else { c };
                *sum = if negative { -c } else { c };
            }
            for k in 0..16 {
                for n in 0..16 {
                    sum[n] = a[k][row].mul_add(b[k][n], sum[n]);
                }
            }
            for (n, sum) in sum.into_iter().enumerate() {
                let lane = high * 16 + n;
                out[lane] = write(sum, w.v[(i.dst as usize + r) & 255].0[lane]);
            }
        }
    }
    for (r, out) in out.iter().enumerate() {
        w.v[(i.dst as usize + r) & 255].0 = *out;
    }
}

/// Multiplies integers of `BITS` bits.
#[inline(always)]
fn integers<const BITS: usize>(w: &mut Wave, i: &Ins) {
    let a = integer_elements::<BITS>(w, i.a.reg, i.imm & 1 != 0);
    let b = integer_elements::<BITS>(w, i.b.reg, i.imm & 2 != 0);
    let mut out = [[0u32; 32]; 8];
    for (r, out) in out.iter_mut().enumerate() {
        for high in 0..2 {
            // Sixteen products of bytes fit in 32 bits, with the old value no longer.
            let mut dot = [0i32; 16];
            for k in 0..16 {
                for n in 0..16 {
                    dot[n] += a[k][2 * r + high] * b[k][n];
                }
            }
            for (n, dot) in dot.into_iter().enumerate() {
                let lane = high * 16 + n;
                let sum = i64::from(old(w, i, r, lane) as i32) + i64::from(dot);
                let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
                out[lane] = if i.clamp { clamped as u32 } else { sum as u32 };
            }
        }
    }
    for (r, out) in out.iter().enumerate() {
        w.v[(i.dst as usize + r) & 255].0 = *out;
    }
}

macro_rules! handlers {
    ($($name:ident($w:ident, $i:ident, $registers:literal) $body:block)*) => {$(
        struct $name;
        impl Handler for $name {
            #[inline(always)]
            fn run($w: &mut Wave, c: &mut Ctx<'_>, $i: &Ins) {
                check_halves($w, c, $i, $registers);
                $body
            }
        }
    )*};
}

handlers! {
    F32F16(w, i, 8) { floats(w, i, half_to_f32, f32::from_bits, |x, _| x.to_bits()) }
    F32Bf16(w, i, 8) { floats(w, i, bf16_to_f32, f32::from_bits, |x, _| x.to_bits()) }
    F16F16(w, i, 8) {
        let (half, keep) = (i.half, 0xFFFF_0000u32 >> i.half);
        let read = |bits: u32| half_to_f32((bits >> half) as u16);
        floats(w, i, half_to_f32, read, |x, old| old & keep | u32::from(f32_to_half(x)) << half)
    }
    Bf16Bf16(w, i, 8) {
        let (half, keep) = (i.half, 0xFFFF_0000u32 >> i.half);
        let read = |bits: u32| bf16_to_f32((bits >> half) as u16);
        floats(w, i, bf16_to_f32, read, |x, old| old & keep | u32::from(f32_to_bf16(x)) << half)
    }
    I32Iu8(w, i, 4) { integers::<8>(w, i) }
    I32Iu4(w, i, 2) { integers::<4>(w, i) }
}

/// The handler of a matrix instruction.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    Some(match op {
        Op::VWmmaF32_16x16x16F16 => vector::<F32F16>(),
        Op::VWmmaF32_16x16x16Bf16 => vector::<F32Bf16>(),
        Op::VWmmaF16_16x16x16F16 => vector::<F16F16>(),
        Op::VWmmaBf16_16x16x16Bf16 => vector::<Bf16Bf16>(),
        Op::VWmmaI32_16x16x16Iu8 => vector::<I32Iu8>(),
        Op::VWmmaI32_16x16x16Iu4 => vector::<I32Iu4>(),
        _ => return None,
    })
}
