//! The steps of division, and the compiler's sequences of them for quotients and square roots.

use crate::ARCH;
use crate::harness::{Lane, Random, edge_lanes, execute};
use crate::valu::{Args, Row, check_all};
use crate::value::{Out, Value, double, single, value};
use rocmforge_amdgcn::Arch;
use rustc_apfloat::ieee::{Double, Quad, Single};
use rustc_apfloat::{ExpInt, Float, FloatConvert, Round, Status};

/// What a step needs to know of its format.
struct Format {
    /// Bits of the fraction.
    fraction: u32,
    /// Greatest biased exponent.
    special: i32,
    /// Exponent by which operands are scaled.
    scale: ExpInt,
    /// Differences of exponents at and beyond which the quotient nearly overflows, and the fixup takes it as 0.
    great: i32,
    small: i32,
    /// Exponent up to which a numerator is tiny.
    tiny: i32,
}

const SINGLE: Format = Format {
    fraction: 23,
    special: 255,
    scale: 64,
    great: 96,
    small: -150,
    tiny: 23,
};

const DOUBLE: Format = Format {
    fraction: 52,
    special: 2047,
    scale: 128,
    great: 768,
    small: -1075,
    tiny: 53,
};

impl Format {
    fn exponent<F: Float>(&self, x: F) -> i32 {
        (x.to_bits() >> self.fraction) as i32 & self.special
    }
}

/// Whether a quotient is denormal, or too small even for that.
fn denormal<F: Float>(a: F, b: F) -> bool {
    let quotient = (a / b).value;
    quotient.is_denormal() || (quotient.is_zero() && !a.is_zero())
}

/// The operand scaled, and whether the quotient has to be scaled back; `None` where the text does not say.
///
/// Two departures from the text, without which its own sequence does not divide: where both quotient and reciprocal are
/// denormal, the denominator is scaled down; where nothing is said of the result, it is the operand.
fn div_scale<F: Float>(format: &Format, s0: F, den: F, num: F) -> Option<(F, bool)> {
    let up = |x: F| x.scalbn(format.scale);
    let down = |x: F| x.scalbn(-format.scale);
    let one = F::from_u128(1).value;
    if num.is_nan() || den.is_nan() || s0.is_nan() || num.is_infinite() || den.is_infinite() || s0.is_infinite() {
        // The fixup replaces the quotient.
        return None;
    }
    let (is_den, is_num) = (s0.bitwise_eq(den), s0.bitwise_eq(num));
    Some(if num.is_zero() || den.is_zero() {
        (F::NAN, false)
    } else if format.exponent(num) - format.exponent(den) >= format.great {
        (if is_den { up(s0) } else { s0 }, true)
    } else if den.is_denormal() {
        (up(s0), false)
    } else if denormal(one, den) && denormal(num, den) {
        (if is_den { down(s0) } else { s0 }, true)
    } else if denormal(one, den) {
        (down(s0), false)
    } else if denormal(num, den) {
        (if is_num { up(s0) } else { s0 }, true)
    } else if format.exponent(num) <= format.tiny {
        (up(s0), false)
    } else {
        (s0, false)
    })
}

fn scaled<F: Float>(format: &Format, s: [F; 3], out: fn(F) -> Out) -> Out {
    match div_scale(format, s[0], s[1], s[2]) {
        Some((scaled, back)) => out(scaled).flag(back),
        None => value(Value::Any),
    }
}

/// The last step, scaled back where the first said so: by the power that `v_div_scale` scales by, the text's smaller one
/// being an error. Up for great addends, down for others.
fn div_fmas<F: Float>(format: &Format, x: &Args, s: [F; 3], out: fn(F) -> Out, wide: fn([F; 3], ExpInt) -> F) -> Out {
    let sum = s[0].mul_add(s[1], s[2]).value;
    if !x.carry {
        return out(sum);
    }
    if sum.is_infinite() {
        // It overflows before it is scaled, or not: no division gets here.
        return value(Value::Any);
    }
    let up = format.exponent(s[2]) > format.special / 2;
    out(wide(s, if up { format.scale } else { -format.scale }))
}

fn div_fixup<F: Float>(format: &Format, quotient: F, den: F, num: F) -> Option<F> {
    let negative = den.is_negative() != num.is_negative();
    let signed = |x: F| if negative { -x } else { x };
    Some(
        if num.is_nan() || den.is_nan() || (den.is_zero() && num.is_zero()) || (den.is_infinite() && num.is_infinite())
        {
            F::NAN
        } else if den.is_zero() || num.is_infinite() {
            signed(F::INFINITY)
        } else if den.is_infinite() || num.is_zero() || format.exponent(num) - format.exponent(den) < format.small {
            signed(F::ZERO)
        } else if format.exponent(num) - format.exponent(den) > format.special / 2 {
            // Overflow, which the text tests in a way that the infinite denominator has taken already.
            return None;
        } else {
            signed(quotient.abs())
        },
    )
}

fn fixed<F: Float>(result: Option<F>, out: fn(F) -> Out) -> Out {
    result.map_or(value(Value::Any), out)
}

fn f(x: &Args) -> [Single; 3] {
    [x.f(0), x.f(1), x.f(2)]
}

fn d(x: &Args) -> [Double; 3] {
    [x.d(0), x.d(1), x.d(2)]
}

/// `(a * b + c) * 2^power` rounded once: first to odd in 113 bits, which keeps what decides the second rounding.
fn exact<F: Float + FloatConvert<Quad>>([a, b, c]: [F; 3], power: ExpInt) -> Quad {
    let widen = |x: F| crate::convert::convert::<F, Quad>(x);
    let sum = widen(a).mul_add_r(widen(b), widen(c), Round::TowardZero);
    let inexact = sum.status.contains(Status::INEXACT);
    Quad::from_bits(sum.value.to_bits() | u128::from(inexact)).scalbn(power)
}

fn exact_single(s: [Single; 3], power: ExpInt) -> Single {
    crate::convert::convert(exact(s, power))
}

fn exact_double(s: [Double; 3], power: ExpInt) -> Double {
    crate::convert::convert(exact(s, power))
}

#[rustfmt::skip]
pub(crate) const ROWS: &[Row] = &[
    ("v_div_scale_f32", |x| scaled(&SINGLE, f(x), single)),
    ("v_div_scale_f64", |x| scaled(&DOUBLE, d(x), double)),
    ("v_div_fmas_f32", |x| div_fmas(&SINGLE, x, f(x), single, exact_single)),
    ("v_div_fmas_f64", |x| div_fmas(&DOUBLE, x, d(x), double, exact_double)),
    ("v_div_fixup_f32", |x| fixed(div_fixup(&SINGLE, x.f(0), x.f(1), x.f(2)), single)),
    ("v_div_fixup_f64", |x| fixed(div_fixup(&DOUBLE, x.d(0), x.d(1), x.d(2)), double)),
];

#[test]
fn steps_of_division() {
    check_all(ROWS);
}

const SEQUENCES: &[u8] = match ARCH {
    Arch::Gfx1100 => include_bytes!("sequences-gfx1100.co"),
    Arch::Gfx1201 => include_bytes!("sequences-gfx1201.co"),
};

type Reference = fn(u64, u64) -> u64;

/// The kernel of each sequence, whether it takes 64 bits, and the correctly rounded result.
#[rustfmt::skip]
const EXACT: &[(&str, bool, Reference)] = &[
    ("divide_f32", false, |a, b| (f32::from_bits(a as u32) / f32::from_bits(b as u32)).to_bits().into()),
    ("sqrt_f32", false, |a, _| f32::from_bits(a as u32).sqrt().to_bits().into()),
    ("divide_f64", true, |a, b| (f64::from_bits(a) / f64::from_bits(b)).to_bits()),
    ("sqrt_f64", true, |a, _| f64::from_bits(a).sqrt().to_bits()),
];

/// Compares a sequence with its reference over lanes; gives how many results were the same bits or both NaN.
fn compare(kernel: &str, wide: bool, reference: Reference, lanes: &[Lane]) -> usize {
    let mut compared = 0;
    for (lane, ours) in lanes.iter().zip(execute(SEQUENCES, kernel, lanes)) {
        let model = reference(lane.a, lane.b);
        let (same, nan) = if wide {
            let nan = |bits| f64::from_bits(bits).is_nan();
            (ours == model, nan(ours) && nan(model))
        } else {
            let nan = |bits: u64| f32::from_bits(bits as u32).is_nan();
            (ours as u32 == model as u32, nan(ours) && nan(model))
        };
        assert!(
            same || nan,
            "{kernel} of {:#x} and {:#x}: {ours:#x}, correctly rounded {model:#x}",
            lane.a,
            lane.b
        );
        compared += 1;
    }
    compared
}

/// Lanes of random bits; every other pair has exponents close to each other, so that quotients are not all extreme.
fn random_lanes(random: &mut Random, count: usize, wide: bool) -> Vec<Lane> {
    (0..count)
        .map(|n| {
            let (a, mut b) = (random.next(), random.next());
            if n % 2 == 1 {
                let mask = if wide { 0x7fe0_0000_0000_0000 } else { 0x7f00_0000 };
                b = b & !mask | a & mask;
            }
            Lane { a, b, c: 0, d: 0 }
        })
        .collect()
}

#[test]
fn sequences_are_correctly_rounded() {
    for &(kernel, wide, reference) in EXACT {
        let mut lanes = edge_lanes(wide);
        lanes.extend(random_lanes(&mut Random(0xd1), 65_536, wide));
        assert_eq!(compare(kernel, wide, reference, &lanes), lanes.len());
    }
}

/// Ten million random pairs for each sequence. Run it with
/// `cargo test -p rocmforge-amdgcn --test semantics -- --ignored ten_million`.
#[test]
#[ignore = "long: ten million quotients and roots each"]
fn sequences_are_correctly_rounded_for_ten_million_pairs() {
    const CHUNK: usize = 125_024;
    for &(kernel, wide, reference) in EXACT {
        let mut random = Random(0x0010_0000_0000);
        let chunks = 10_000_000usize.div_ceil(CHUNK);
        let compared: usize = (0..chunks)
            .map(|_| compare(kernel, wide, reference, &random_lanes(&mut random, CHUNK, wide)))
            .sum();
        assert!(compared >= 10_000_000, "{kernel}: {compared} compared");
    }
}
