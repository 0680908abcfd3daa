//! Vector instructions that move values between lanes or halves and bytes of registers, or give a scalar result.

use crate::exec::code::isa::{Handler, plain};
use crate::exec::gfx12::fp8::{from_bf8, from_fp8, to_bf8, to_fp8};
use crate::exec::number::num::{clamp32, exp2, f32_to_half, flush};
use crate::exec::simd::masks::BIT;
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::{ABS, NEG};
use crate::exec::state::wave::{EXEC, Wave};
use crate::exec::vector::elem::{Elem, H};
use rocmforge_isa::Op;
use std::mem::MaybeUninit;

macro_rules! handlers {
    ($($name:ident($w:ident, $i:ident) $body:block)*) => {$(
        struct $name;
        impl Handler for $name {
            fn run($w: &mut Wave, _: &mut Ctx<'_>, $i: &Ins) $body
        }
    )*};
}

fn permute(w: &mut Wave, i: &Ins, other_row: u32) {
    let exec = w.s[EXEC];
    let (fetch_inactive, zero) = (i.imm & 1 != 0, i.imm & 2 != 0);
    let (source, select) = (w.v[i.a.reg as usize].0, w.v[i.b.reg as usize].0);
    for l in (0..32u32).filter(|&l| exec & BIT[l as usize] != 0) {
        let from = ((l & 16) ^ other_row) | (select[l as usize] & 15);
        let out = &mut w.v[i.dst as usize].0[l as usize];
        if fetch_inactive || exec & BIT[from as usize] != 0 {
            *out = source[from as usize];
        } else if zero {
            *out = 0;
        }
    }
}

/// A byte of each lane of `src0`, which `i.imm` picks, converted.
fn from_byte(w: &mut Wave, i: &Ins, convert: impl Fn(u8) -> f32) {
    let mut buffer = MaybeUninit::uninit();
    let lanes = *w.lanes(&i.a, &mut buffer);
    let (negate, absolute) = (i.a.mods & NEG != 0, i.a.mods & ABS != 0);
    let out = lanes.map(|lane| {
        let x = convert((lane >> (8 * i.imm)) as u8);
        let x = if absolute { x.abs() } else { x };
        let x = if negate { -x } else { x };
        (if i.clamp { clamp32(x) } else { x }).to_bits()
    });
    w.put(i.dst, &out);
}

/// Both bytes of a half of each lane of `src0`.
fn from_pair(w: &mut Wave, i: &Ins, convert: impl Fn(u8) -> f32) {
    let mut buffer = MaybeUninit::uninit();
    let lanes = *w.lanes(&i.a, &mut buffer);
    for byte in 0..2u8 {
        let shift = 16 * u32::from(i.imm as u8 & 1) + 8 * u32::from(byte);
        let out = lanes.map(|lane| {
            let x = convert((lane >> shift) as u8);
            (if i.clamp { clamp32(x) } else { x }).to_bits()
        });
        w.put(i.dst.wrapping_add(byte), &out);
    }
}

/// Stochastic rounding: `src1` without its `drop` lowest bits is added to the mantissa before it is cut.
fn to_byte(w: &mut Wave, i: &Ins, drop: u32, convert: impl Fn(f32) -> u8) {
    let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    let values = *f32::fetch::<true>(w, &i.a, &mut a);
    let noise = *w.lanes(&i.b, &mut b);
    let shift = 8 * i.imm as u32;
    let mut out = w.v[i.dst as usize].0;
    for l in 0..32 {
        let bits = values[l].to_bits();
        let mantissa = (bits & 0x7F_FFFF).wrapping_add(noise[l] >> drop) & 0x7F_FFFF;
        let byte = convert(f32::from_bits(bits & !0x7F_FFFF | mantissa));
        out[l] = out[l] & !(0xFF << shift) | u32::from(byte) << shift;
    }
    w.put(i.dst, &out);
}

/// A scalar operand with its modifiers, and a scalar result.
fn single(w: &mut Wave, i: &Ins, f: impl Fn(f32) -> f32) {
    let mut buffer = MaybeUninit::uninit();
    let x = f(f32::fetch::<true>(w, &i.a, &mut buffer)[0]);
    w.set(i.dst, (if i.clamp { clamp32(x) } else { x }).to_bits());
}

fn half(w: &mut Wave, i: &Ins, f: impl Fn(f32) -> f32) {
    let mut buffer = MaybeUninit::uninit();
    let x = f(H::fetch::<true>(w, &i.a, &mut buffer)[0].0);
    w.set(i.dst, f32_to_half(if i.clamp { clamp32(x) } else { x }).into());
}

handlers! {
    Permlane16Var(w, i) { permute(w, i, 0) }
    Permlanex16Var(w, i) { permute(w, i, 16) }
    F32Fp8(w, i) { from_byte(w, i, from_fp8) }
    F32Bf8(w, i) { from_byte(w, i, from_bf8) }
    PkF32Fp8(w, i) { from_pair(w, i, from_fp8) }
    PkF32Bf8(w, i) { from_pair(w, i, from_bf8) }
    SrFp8(w, i) { to_byte(w, i, 12, to_fp8) }
    SrBf8(w, i) { to_byte(w, i, 11, to_bf8) }
    SExp32(w, i) { single(w, i, |x| exp2(flush(x))) }
    SLog32(w, i) { single(w, i, |x| flush(x).log2()) }
    SRcp32(w, i) { single(w, i, |x| flush(1.0 / flush(x))) }
    SRsq32(w, i) { single(w, i, |x| (1.0 / f64::from(flush(x)).sqrt()) as f32) }
    SSqrt32(w, i) { single(w, i, |x| flush(x).sqrt()) }
    SExp16(w, i) { half(w, i, exp2) }
    SLog16(w, i) { half(w, i, f32::log2) }
    SRcp16(w, i) { half(w, i, |x| 1.0 / x) }
    SRsq16(w, i) { half(w, i, |x| (1.0 / f64::from(x).sqrt()) as f32) }
    SSqrt16(w, i) { half(w, i, f32::sqrt) }
}

/// The handler of an operation of this file.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    Some(match op {
        Op::VPermlane16VarB32 => plain::<Permlane16Var>(),
        Op::VPermlanex16VarB32 => plain::<Permlanex16Var>(),
        Op::VCvtF32Fp8 => plain::<F32Fp8>(),
        Op::VCvtF32Bf8 => plain::<F32Bf8>(),
        Op::VCvtPkF32Fp8 => plain::<PkF32Fp8>(),
        Op::VCvtPkF32Bf8 => plain::<PkF32Bf8>(),
        Op::VCvtSrFp8F32 => plain::<SrFp8>(),
        Op::VCvtSrBf8F32 => plain::<SrBf8>(),
        Op::VSExpF32 => plain::<SExp32>(),
        Op::VSLogF32 => plain::<SLog32>(),
        Op::VSRcpF32 => plain::<SRcp32>(),
        Op::VSRsqF32 => plain::<SRsq32>(),
        Op::VSSqrtF32 => plain::<SSqrt32>(),
        Op::VSExpF16 => plain::<SExp16>(),
        Op::VSLogF16 => plain::<SLog16>(),
        Op::VSRcpF16 => plain::<SRcp16>(),
        Op::VSRsqF16 => plain::<SRsq16>(),
        Op::VSSqrtF16 => plain::<SSqrt16>(),
        _ => return None,
    })
}
