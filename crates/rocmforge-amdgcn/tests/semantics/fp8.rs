//! FP8 and BF8 (gfx1201): floats of eight bits as the Open Compute Project specifies them, their conversions and dot
//! products.

use crate::enc;
use crate::harness::{Lane, run, vop3};
use crate::packed::sum_of;
use crate::valu::{Args, Row, check_all};
use crate::value::{Out, Value, value};
use rocmforge_isa::Format as Encoding;

/// A format of eight bits.
pub(crate) struct Format {
    exponent: u32,
    mantissa: u32,
    /// It has infinities, and a NaN for every other fraction of the greatest exponent; else one NaN, all ones.
    infinities: bool,
}

pub(crate) const FP8: Format = Format {
    exponent: 4,
    mantissa: 3,
    infinities: false,
};
pub(crate) const BF8: Format = Format {
    exponent: 5,
    mantissa: 2,
    infinities: true,
};

impl Format {
    fn greatest_code(&self) -> u8 {
        if self.infinities { 0x7b } else { 0x7e }
    }

    /// The value of a byte.
    pub(crate) fn value(&self, byte: u8) -> f64 {
        let magnitude = byte & 0x7f;
        let exponent = i32::from(magnitude >> self.mantissa);
        let fraction = f64::from(magnitude & ((1 << self.mantissa) - 1)) / f64::from(1u32 << self.mantissa);
        let bias = (1 << (self.exponent - 1)) - 1;
        let size = match magnitude {
            0x7c if self.infinities => f64::INFINITY,
            m if m > self.greatest_code() => f64::NAN,
            _ if exponent == 0 => fraction * f64::from(1 - bias).exp2(),
            _ => (1.0 + fraction) * f64::from(exponent - bias).exp2(),
        };
        if byte >> 7 == 1 { -size } else { size }
    }

    /// The byte nearest to a number, of two the even one, found among all of them; NaN may have either sign.
    pub(crate) fn nearest(&self, x: f32) -> [u8; 2] {
        let sign = if x.is_sign_negative() { 0x80 } else { 0 };
        let size = f64::from(x).abs();
        if x.is_nan() {
            return [0x7f, 0xff];
        }
        let greatest = self.greatest_code();
        // Where the next code would lie if there was one.
        let step = self.value(greatest) - self.value(greatest - 1);
        if size > self.value(greatest) + step / 2.0 || (size == self.value(greatest) + step / 2.0 && greatest & 1 == 1)
        {
            return [if self.infinities { 0x7c } else { 0x7f } | sign; 2];
        }
        let distance = |code: &u8| (self.value(*code) - size).abs();
        let best = (0..=greatest).min_by(|a, b| distance(a).total_cmp(&distance(b)).then((a & 1).cmp(&(b & 1))));
        [best.unwrap_or(0) | sign; 2]
    }
}

/// A byte of the first source; the two bits that pick it are in reverse order.
fn widen(x: &Args, format: &Format) -> Out {
    let byte = [0, 2, 1, 3][(x.mods.op_sel & 3) as usize];
    value(Value::F32(
        (format.value((x.u(0) >> (8 * byte)) as u8) as f32).to_bits(),
    ))
}

fn widen_pair(x: &Args, format: &Format) -> Out {
    let half = x.u(0) >> (16 * (x.mods.op_sel & 1));
    let one = |byte: u32| u64::from((format.value((half >> (8 * byte)) as u8) as f32).to_bits());
    value(Value::F32x2([one(0) as u32, one(1) as u32]))
}

fn narrow_pair(x: &Args, format: &Format) -> Out {
    let ([a, other_a], [b, other_b]) = (format.nearest(x.host(0)), format.nearest(x.host(1)));
    let pair = |a: u8, b: u8| u64::from(a) | u64::from(b) << 8;
    value(Value::OneOf([
        pair(a, b),
        pair(other_a, b),
        pair(a, other_b),
        pair(other_a, other_b),
    ]))
}

/// Noise is added to the fraction, without a carry into the exponent; then it is rounded as ever.
fn stochastic(x: &Args, format: &Format, drop: u32) -> Out {
    let number = x.u(0);
    let fraction = (number & 0x7f_ffff).wrapping_add(x.u(1) >> drop) & 0x7f_ffff;
    let noisy = f32::from_bits(number & !0x7f_ffff | fraction);
    let at = 8 * (x.mods.op_sel >> 2);
    let put = |byte: u8| u64::from(x.d as u32 & !(0xff << at) | u32::from(byte) << at);
    let [a, b] = format.nearest(noisy).map(put);
    value(Value::Either(a, b))
}

fn dot(x: &Args, left: &Format, right: &Format) -> Out {
    let product = |n: u32| left.value((x.u(0) >> (8 * n)) as u8) * right.value((x.u(1) >> (8 * n)) as u8);
    let mut addend = x.host(2);
    if x.mods.abs >> 2 & 1 == 1 {
        addend = addend.abs();
    }
    if x.mods.neg >> 2 & 1 == 1 {
        addend = -addend;
    }
    sum_of(&[addend.into(), product(0), product(1), product(2), product(3)])
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    ("v_cvt_f32_fp8", |x| widen(x, &FP8)),
    ("v_cvt_f32_bf8", |x| widen(x, &BF8)),
    ("v_cvt_pk_f32_fp8", |x| widen_pair(x, &FP8)),
    ("v_cvt_pk_f32_bf8", |x| widen_pair(x, &BF8)),
    ("v_cvt_pk_fp8_f32", |x| narrow_pair(x, &FP8)),
    ("v_cvt_pk_bf8_f32", |x| narrow_pair(x, &BF8)),
    ("v_cvt_sr_fp8_f32", |x| stochastic(x, &FP8, 12)),
    ("v_cvt_sr_bf8_f32", |x| stochastic(x, &BF8, 11)),
    ("v_dot4_f32_fp8_bf8", |x| dot(x, &FP8, &BF8)),
    ("v_dot4_f32_bf8_fp8", |x| dot(x, &BF8, &FP8)),
    ("v_dot4_f32_fp8_fp8", |x| dot(x, &FP8, &FP8)),
    ("v_dot4_f32_bf8_bf8", |x| dot(x, &BF8, &BF8)),
];

#[test]
fn conversions_and_dot_products() {
    check_all(ROWS);
}

/// Every byte there and back, and the numbers around every midpoint.
#[test]
fn every_byte_and_every_midpoint() {
    for (name, format) in [("fp8", &FP8), ("bf8", &BF8)] {
        let mut numbers = vec![f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-30, 1e30, -1e30];
        for byte in 0..=format.greatest_code() {
            let (this, next) = (format.value(byte), format.value(byte + 1));
            let next = if next.is_finite() { next } else { 2.0 * this };
            let middle = ((this + next) / 2.0) as f32;
            let near = [this as f32, middle, middle.next_up(), middle.next_down()];
            numbers.extend(near.into_iter().flat_map(|x| [x, -x]));
        }
        numbers.resize(numbers.len().next_multiple_of(32), 0.0);
        let lanes: Vec<Lane> = numbers
            .iter()
            .map(|x| Lane {
                a: x.to_bits().into(),
                b: 0,
                c: 0,
                d: 0,
            })
            .collect();
        let narrow = enc::code(&format!("v_cvt_pk_{name}_f32"), Encoding::Vop3);
        let bytes = run("template_kernel", &vop3(narrow, 2), &lanes);
        for (x, got) in numbers.iter().zip(&bytes) {
            assert!(format.nearest(*x).contains(&(*got as u8)), "{x:e} to {name}: {got:#x}");
        }
    }
}
