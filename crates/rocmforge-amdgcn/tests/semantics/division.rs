//! The steps of division, and the compiler's sequences of them for quotients and square roots.

use crate::ARCH;
use crate::enc::code;
use crate::harness::{Lane, Random, edge_lanes, execute, run, vop3};
use crate::valu::{Args, Row, check_all};
use crate::value::{Out, Value, double, single, value};
use rocmforge_isa::Arch;
use rocmforge_isa::Format as Form;
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
    /// Differences of exponents at and beyond which the quotient nearly overflows, may be denormal, and the fixup takes it as 0.
    great: i32,
    denormal: i32,
    small: i32,
    /// Exponent up to which a numerator is tiny.
    tiny: i32,
}

const SINGLE: Format = Format {
    fraction: 23,
    special: 255,
    scale: 64,
    great: 96,
    denormal: -126,
    small: -150,
    tiny: 23,
};

const DOUBLE: Format = Format {
    fraction: 52,
    special: 2047,
    scale: 128,
    great: 768,
    denormal: -1022,
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
/// denormal, the denominator is scaled down; where nothing is said of the result, it is the operand. Two more are what cards
/// do, see [`RECORDED`].
fn div_scale<F: Float>(format: &Format, s0: F, den: F, num: F) -> Option<(F, bool)> {
    let up = |x: F| x.scalbn(format.scale);
    let down = |x: F| x.scalbn(-format.scale);
    let one = F::from_u128(1).value;
    if num.is_nan() || den.is_nan() || s0.is_nan() || num.is_infinite() || den.is_infinite() || s0.is_infinite() {
        // The fixup replaces the quotient.
        return None;
    }
    let (is_den, is_num) = (s0.bitwise_eq(den), s0.bitwise_eq(num));
    let apart = format.exponent(num) - format.exponent(den);
    let small = denormal(num, den) || apart <= format.denormal;
    Some(if num.is_zero() || den.is_zero() {
        (F::NAN, true)
    } else if apart >= format.great {
        (if is_den { up(s0) } else { s0 }, true)
    } else if den.is_denormal() {
        (up(s0), false)
    } else if denormal(one, den) && small {
        (if is_den { down(s0) } else { s0 }, true)
    } else if denormal(one, den) {
        (down(s0), false)
    } else if small {
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
        } else if quotient.is_nan() {
            signed(F::INFINITY)
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

/// Flushes denormal operands and results of all formats.
const FLUSH: u32 = 0xbf92_0000;
const VCC_LO: u32 = 106;

/// `v8 = op(v2, v4, v6)` of the operands, in a mode that flushes denormals, and the bit of `vcc` that it writes if `mask`.
fn flushing(name: &str, form: Form, mask: bool, operands: [u64; 3]) -> (u64, u64) {
    let [mut first, second] = vop3(code(name, form), 3);
    first |= if mask { VCC_LO << 8 } else { 0 };
    let [a, b, c] = operands;
    let lanes = [Lane { a, b, c, d: 0 }; 32];
    // v_cndmask_b32_e64 v8, 0, 1, vcc_lo
    let [flag, sources] = [0xd501_0008, 128 | 129 << 9 | VCC_LO << 18];
    let results = run("template_kernel", &[FLUSH, first, second], &lanes);
    let flags = run("template_kernel", &[FLUSH, first, second, flag, sources], &lanes);
    (results[0], flags[0] & 1)
}

/// Operands of `v_div_scale` on cards, in a mode that flushes denormals, all of which set the mask, and whether the result is NaN. The
/// published text clears the mask.
#[rustfmt::skip]
const RECORDED: &[([f64; 3], bool)] = &[
    ([1.0, 0.0, 1.0], true),
    ([0.0, 1.0, 0.0], true),
    ([1e-320, 1e-320, 1.0], true),
    ([f64::MIN_POSITIVE, 1.0, f64::MIN_POSITIVE], false),
];

#[test]
fn cards_ask_for_scaling_back_where_the_text_does_not() {
    for &(operands, nan) in RECORDED {
        let narrow = |x: f64| match x {
            f64::MIN_POSITIVE => f32::MIN_POSITIVE,
            _ if x.is_subnormal() => 1e-40,
            _ => x as f32,
        };
        let single = operands.map(narrow);
        let bits = single.map(|x| u64::from(x.to_bits()));
        let (result, flag) = flushing("v_div_scale_f32", Form::Vop3sd, true, bits);
        let result = f32::from_bits(result as u32);
        assert_eq!((result.is_nan(), flag), (nan, 1), "{single:?}: {result:e}");
        assert!(nan || result == single[0] * 2f32.powi(64), "{single:?}: {result:e}");

        let (result, flag) = flushing("v_div_scale_f64", Form::Vop3sd, true, operands.map(f64::to_bits));
        let result = f64::from_bits(result);
        assert_eq!((result.is_nan(), flag), (nan, 1), "{operands:?}: {result:e}");
        assert!(
            nan || result == operands[0] * 2f64.powi(128),
            "{operands:?}: {result:e}"
        );
    }
}

#[test]
fn a_quotient_that_is_nan_is_fixed_to_infinity() {
    for den in [1.0, -1.0] {
        let single = [f32::NAN, den, 1.0].map(|x| u64::from(x.to_bits()));
        let (result, _) = flushing("v_div_fixup_f32", Form::Vop3, false, single);
        assert_eq!(f32::from_bits(result as u32), den * f32::INFINITY);
        let double = [f64::NAN, f64::from(den), 1.0].map(f64::to_bits);
        let (result, _) = flushing("v_div_fixup_f64", Form::Vop3, false, double);
        assert_eq!(f64::from_bits(result), f64::from(den) * f64::INFINITY);
    }
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
