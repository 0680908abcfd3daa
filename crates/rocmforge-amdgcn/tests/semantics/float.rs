//! Floating-point operations, conversions, and the compiler's division sequences.

use crate::harness::{As, Lane, Random, check, lanes, low, run, vop3};

type Model = fn(f32, f32, f32) -> f32;

/// The smaller number; a NaN loses against a number, -0 is below +0.
fn min(a: f32, b: f32) -> f32 {
    match (a.is_nan(), b.is_nan()) {
        (true, _) => b,
        (_, true) => a,
        _ if a == b => {
            if a.is_sign_negative() {
                a
            } else {
                b
            }
        }
        _ => {
            if a < b {
                a
            } else {
                b
            }
        }
    }
}

fn max(a: f32, b: f32) -> f32 {
    -min(-a, -b)
}

fn median(a: f32, b: f32, c: f32) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return min(min(a, b), c);
    }
    max(min(a, b), min(max(a, b), c))
}

fn is_signalling(bits: u64) -> bool {
    let bits = bits as u32;
    f32::from_bits(bits).is_nan() && bits & 0x40_0000 == 0
}

#[rustfmt::skip]
const MODELS: &[(&str, u32, usize, Model)] = &[
    ("v_add_f32", 0x103, 2, |a, b, _| a + b),
    ("v_sub_f32", 0x104, 2, |a, b, _| a - b),
    ("v_subrev_f32", 0x105, 2, |a, b, _| b - a),
    ("v_mul_f32", 0x108, 2, |a, b, _| a * b),
    ("v_min_f32", 0x10f, 2, |a, b, _| min(a, b)),
    ("v_max_f32", 0x110, 2, |a, b, _| max(a, b)),
    ("v_trunc_f32", 0x1a1, 1, |a, _, _| a.trunc()),
    ("v_ceil_f32", 0x1a2, 1, |a, _, _| a.ceil()),
    ("v_rndne_f32", 0x1a3, 1, |a, _, _| a.round_ties_even()),
    ("v_floor_f32", 0x1a4, 1, |a, _, _| a.floor()),
    ("v_fma_f32", 0x213, 3, |a, b, c| a.mul_add(b, c)),
    ("v_min3_f32", 0x219, 3, |a, b, c| min(min(a, b), c)),
    ("v_max3_f32", 0x21c, 3, |a, b, c| max(max(a, b), c)),
    ("v_med3_f32", 0x21f, 3, median),
    ("v_minmax_f32", 0x25f, 3, |a, b, c| max(min(a, b), c)),
];

fn floats(lane: &Lane) -> [f32; 3] {
    [lane.a, lane.b, lane.c].map(|bits| f32::from_bits(bits as u32))
}

#[test]
fn operations_of_single_precision() {
    for &(name, code, sources, model) in MODELS {
        check(name, &vop3(code, sources), false, As::F32, |lane| {
            if [lane.a, lane.b, lane.c].into_iter().any(is_signalling) {
                return None;
            }
            let [a, b, c] = floats(lane);
            low(lane, model(a, b, c).to_bits())
        });
    }
}

#[test]
fn accumulation_adds_to_the_destination() {
    check("v_fmac_f32", &vop3(0x12b, 2), false, As::F32, |lane| {
        let [a, b, _] = floats(lane);
        low(lane, a.mul_add(b, f32::from_bits(lane.d as u32)).to_bits())
    });
}

#[test]
fn modifiers_apply_before_and_after() {
    // v8 = clamp(-|v2| * v4), then the same with an output modifier.
    let [first, second] = vop3(0x108, 2);
    check(
        "v_mul_f32",
        &[first | 1 << 8 | 1 << 15, second | 1 << 29],
        false,
        As::F32,
        |lane| {
            let [a, b, _] = floats(lane);
            let product = -a.abs() * b;
            let clamped = if product.is_nan() || product <= 0.0 {
                0.0
            } else {
                product.min(1.0)
            };
            // Clamping a NaN depends on a mode bit.
            (!product.is_nan()).then(|| low(lane, f32::to_bits(clamped))).flatten()
        },
    );
}

#[test]
fn conversions() {
    check("v_cvt_f32_i32", &vop3(0x185, 1), false, As::F32, |l| {
        low(l, (l.a as i32 as f32).to_bits())
    });
    check("v_cvt_f32_u32", &vop3(0x186, 1), false, As::F32, |l| {
        low(l, (l.a as u32 as f32).to_bits())
    });
    check("v_cvt_u32_f32", &vop3(0x187, 1), false, As::Bits, |l| {
        low(l, floats(l)[0] as u32)
    });
    check("v_cvt_i32_f32", &vop3(0x188, 1), false, As::Bits, |l| {
        low(l, floats(l)[0] as i32 as u32)
    });
    check("v_cvt_f32_ubyte0", &vop3(0x191, 1), false, As::F32, |l| {
        low(l, (l.a as u8 as f32).to_bits())
    });
    check("v_cvt_f32_ubyte3", &vop3(0x194, 1), false, As::F32, |l| {
        low(l, ((l.a >> 24) as u8 as f32).to_bits())
    });
    check("v_cvt_f64_f32", &vop3(0x190, 1), false, As::F64, |l| {
        Some(f64::from(floats(l)[0]).to_bits())
    });
    check("v_cvt_f32_f64", &vop3(0x18f, 1), true, As::F32, |l| {
        low(l, (f64::from_bits(l.a) as f32).to_bits())
    });
    check("v_cvt_i32_f64", &vop3(0x183, 1), true, As::Bits, |l| {
        low(l, f64::from_bits(l.a) as i32 as u32)
    });
    check("v_cvt_f64_i32", &vop3(0x184, 1), true, As::F64, |l| {
        Some(f64::from(l.a as i32).to_bits())
    });
    check("v_cvt_f16_f32", &vop3(0x18a, 1), false, As::Bits, |l| {
        let value = half::f16::from_f32(floats(l)[0]);
        // A write of half a register leaves the other half alone.
        (!value.is_nan()).then_some(l.d & !0xffff | u64::from(value.to_bits()))
    });
    check("v_cvt_f32_f16", &vop3(0x18b, 1), false, As::F32, |l| {
        low(l, half::f16::from_bits(l.a as u16).to_f32().to_bits())
    });
}

#[test]
fn scaling_by_powers_of_two() {
    check("v_ldexp_f32", &vop3(0x31c, 2), false, As::F32, |l| {
        let power = (l.b as i32).clamp(-400, 400);
        low(
            l,
            ((f64::from(floats(l)[0]) * f64::from(power).exp2()) as f32).to_bits(),
        )
    });
    check("v_frexp_exp_i32_f32", &vop3(0x1bf, 1), false, As::Bits, |l| {
        low(l, frexp(floats(l)[0]).1 as u32)
    });
    check("v_frexp_mant_f32", &vop3(0x1c0, 1), false, As::F32, |l| {
        low(l, frexp(floats(l)[0]).0.to_bits())
    });
}

/// Mantissa in [0.5, 1) and exponent.
fn frexp(value: f32) -> (f32, i32) {
    if value == 0.0 || !value.is_finite() {
        return (value, 0);
    }
    let bits = f64::from(value).to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32 - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | 1022 << 52) as f32, exponent)
}

#[test]
fn operations_of_double_precision() {
    let of = f64::from_bits;
    check("v_add_f64", &vop3(0x327, 2), true, As::F64, |l| {
        Some((of(l.a) + of(l.b)).to_bits())
    });
    check("v_mul_f64", &vop3(0x328, 2), true, As::F64, |l| {
        Some((of(l.a) * of(l.b)).to_bits())
    });
    check("v_fma_f64", &vop3(0x214, 3), true, As::F64, |l| {
        Some(of(l.a).mul_add(of(l.b), of(l.c)).to_bits())
    });
}

#[test]
fn divisions_are_correctly_rounded() {
    let mut pairs = lanes(false);
    let mut random = Random(0xd1);
    pairs.extend((0..32_768).map(|_| Lane {
        a: random.next(),
        b: random.next(),
        c: 0,
        d: 0,
    }));
    for (lane, ours) in pairs.iter().zip(run("divide_f32", &[], &pairs)) {
        let [a, b, _] = floats(lane);
        let (ours, quotient) = (f32::from_bits(ours as u32), a / b);
        let same = ours.to_bits() == quotient.to_bits() || ours.is_nan() && quotient.is_nan();
        assert!(
            same,
            "{a:e} / {b:e} = {ours:e}, the correctly rounded quotient is {quotient:e}"
        );
    }
    let mut pairs = lanes(true);
    pairs.extend((0..32_768).map(|_| Lane {
        a: random.next(),
        b: random.next(),
        c: 0,
        d: 0,
    }));
    for (lane, ours) in pairs.iter().zip(run("divide_f64", &[], &pairs)) {
        let (a, b) = (f64::from_bits(lane.a), f64::from_bits(lane.b));
        let (ours, quotient) = (f64::from_bits(ours), a / b);
        let same = ours.to_bits() == quotient.to_bits() || ours.is_nan() && quotient.is_nan();
        assert!(
            same,
            "{a:e} / {b:e} = {ours:e}, the correctly rounded quotient is {quotient:e}"
        );
    }
}

#[test]
fn the_fraction_of_a_half_is_below_one_and_that_of_nan_is_nan() {
    let words = vop3(0x1df, 1);
    let of = |bits: u64| half::f16::from_bits(bits as u16);
    check("v_fract_f16", &words, false, As::Bits, |l| {
        let a = of(l.a).to_f32();
        let rest = half::f16::from_f32((a - a.floor()).min(1.0 - 1.0 / 2048.0));
        a.is_finite().then_some(l.d & !0xffff | u64::from(rest.to_bits()))
    });
    let lanes = lanes(false);
    for (lane, ours) in lanes.iter().zip(run("template_kernel", &words, &lanes)) {
        assert!(of(lane.a).is_finite() || of(ours).is_nan(), "{lane:x?} gave {ours:#x}");
    }
}
