//! Arithmetic the host does not have: half precision, rounding to odd, division steps.

/// Half to single precision, exact; NaN stays NaN.
#[inline(always)]
pub(crate) fn half_to_f32(h: u16) -> f32 {
    let magnitude = u32::from(h & 0x7FFF);
    let sign = u32::from(h & 0x8000) << 16;
    // 2^112 moves the exponent from half's bias to single's, and is right for denormals too.
    let scaled = (f32::from_bits(magnitude << 13) * f32::from_bits(0x7780_0000)).to_bits();
    let bits = if magnitude >= 0x7C00 {
        0x7F80_0000 | magnitude << 13
    } else {
        scaled
    };
    f32::from_bits(bits | sign)
}

/// A signalling NaN made quiet.
#[inline(always)]
pub(crate) fn quieted(x: f32) -> f32 {
    f32::from_bits(x.to_bits() | u32::from(x.is_nan()) << 22)
}

/// The same in double precision.
#[inline(always)]
pub(crate) fn quieted64(x: f64) -> f64 {
    f64::from_bits(x.to_bits() | u64::from(x.is_nan()) << 51)
}

/// The first NaN of three operands, made quiet, or the result of an operation on them: which one a host gives is up to its compiler.
#[inline(always)]
pub(crate) fn first_nan32(a: f32, b: f32, c: f32, result: f32) -> f32 {
    let rest = if b.is_nan() { b } else { c };
    let operand = if a.is_nan() { a } else { rest };
    if operand.is_nan() { quieted(operand) } else { result }
}

/// `a * b + c`, or the first NaN of these.
#[inline(always)]
pub(crate) fn fma32(a: f32, b: f32, c: f32) -> f32 {
    first_nan32(a, b, c, a.mul_add(b, c))
}

/// The same in double precision.
#[inline(always)]
pub(crate) fn fma64(a: f64, b: f64, c: f64) -> f64 {
    let rest = if b.is_nan() { b } else { c };
    let operand = if a.is_nan() { a } else { rest };
    if operand.is_nan() {
        quieted64(operand)
    } else {
        a.mul_add(b, c)
    }
}

/// Single to half precision, to nearest even.
#[inline(always)]
pub(crate) fn f32_to_half(f: f32) -> u16 {
    let bits = f.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let a = bits & 0x7FFF_FFFF;
    let nan = if a > 0x7F80_0000 {
        0x0200 | (a >> 13 & 0x3FF) as u16
    } else {
        0
    };
    let special = 0x7C00 | nan;
    // Adding 0.5 lines the bits up so that the host's own rounding does it.
    let denormal = (f32::from_bits(a) + 0.5).to_bits().wrapping_sub(0x3F00_0000) as u16;
    let normal = (a.wrapping_add(0xC800_0FFF).wrapping_add(a >> 13 & 1) >> 13) as u16;
    let magnitude = if a >= 0x4780_0000 {
        special
    } else if a < 0x3880_0000 {
        denormal
    } else {
        normal
    };
    magnitude | sign
}

/// Single to half precision, towards zero.
#[inline(always)]
pub(crate) fn f32_to_half_rtz(f: f32) -> u16 {
    let near = f32_to_half(f);
    let back = half_to_f32(near);
    // One step back where rounding went away from zero; infinity becomes the largest finite value.
    if back.abs() > f.abs() { near - 1 } else { near }
}

/// Bfloat16 to single precision, exact.
#[inline(always)]
pub(crate) fn bf16_to_f32(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

/// Single precision to bfloat16, to nearest even.
#[inline(always)]
pub(crate) fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    if x.is_nan() {
        (bits >> 16) as u16 | 0x40
    } else {
        ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16
    }
}

/// Double to single precision, to odd: rounding the result again to fewer bits rounds the double correctly.
#[inline(always)]
pub(crate) fn f64_to_f32_odd(x: f64) -> f32 {
    let near = x as f32;
    let back = f64::from(near);
    if back == x || x.is_nan() || near.to_bits() & 1 == 1 {
        return near;
    }
    let down = back.abs() > x.abs();
    f32::from_bits(if down { near.to_bits() - 1 } else { near.to_bits() | 1 })
}

/// `a * b + c` in double precision, rounded to odd.
#[inline(always)]
pub(crate) fn fma_odd(a: f64, b: f64, c: f64) -> f64 {
    let r = a.mul_add(b, c);
    if !r.is_finite() || r == 0.0 || r.to_bits() & 1 == 1 {
        return r;
    }
    // What `r` misses: exact product in two parts, exact sum of the leading ones.
    let p = a * b;
    let p_low = a.mul_add(b, -p);
    let s = p + c;
    let t = s - p;
    let s_low = (p - (s - t)) + (c - t);
    let missing = ((s - r) + s_low) + p_low;
    if missing == 0.0 || !missing.is_finite() {
        r
    } else if (missing > 0.0) == (r > 0.0) {
        f64::from_bits(r.to_bits() | 1)
    } else {
        f64::from_bits(r.to_bits() - 1)
    }
}

/// `x * 2^n`, rounded once.
#[inline(always)]
pub(crate) fn ldexp32(x: f32, n: i32) -> f32 {
    // Exact in double precision: single precision has 24 bits and exponents down to -149.
    let scale = f64::from_bits(((n.clamp(-400, 400) + 1023) as u64) << 52);
    (f64::from(x) * scale) as f32
}

/// `x * 2^n`, rounded once.
#[inline(always)]
pub(crate) fn ldexp64(mut x: f64, mut n: i32) -> f64 {
    let power = |n: i32| f64::from_bits(((n + 1023) as u64) << 52);
    n = n.clamp(-2200, 2200);
    while n > 1023 {
        x *= power(1023);
        n -= 1023;
    }
    // Steps down keep 53 bits in reserve, so that only the last one rounds.
    while n < -1022 {
        x *= power(-1022 + 53);
        n += 1022 - 53;
    }
    x * power(n)
}

/// Clamps to 0..1; NaN becomes 0.
#[inline(always)]
pub(crate) fn clamp32(x: f32) -> f32 {
    let low = if x > 0.0 { x } else { 0.0 };
    if low < 1.0 { low } else { 1.0 }
}

/// `a * b + c` of halves so that rounding it to half precision rounds once.
#[inline(always)]
pub(crate) fn fma_half(a: f32, b: f32, c: f32) -> f32 {
    f64_to_f32_odd(f64::from(a).mul_add(f64::from(b), f64::from(c)))
}

/// Biased exponent.
#[inline(always)]
fn exp32(x: f32) -> i32 {
    (x.to_bits() >> 23 & 0xFF) as i32
}

/// Biased exponent.
#[inline(always)]
fn exp64(x: f64) -> i32 {
    (x.to_bits() >> 52 & 0x7FF) as i32
}

macro_rules! div_scale {
    ($name:ident, $float:ty, $exp:ident, $ldexp:ident, $power:expr, $great:expr, $small:expr, $tiny:expr) => {
        /// `x` scaled, which is the denominator or the numerator, and whether the quotient has to be scaled back.
        ///
        /// AMD's text scales a huge denominator up where only scaling down can help; here as division needs it. What cards
        /// are known to do beside the text: a zero asks for scaling back, and so does a quotient that may be denormal by the
        /// exponents alone.
        #[inline(always)]
        pub(crate) fn $name(x: $float, den: $float, num: $float) -> ($float, bool) {
            let is_den = x.to_bits() == den.to_bits();
            let is_num = x.to_bits() == num.to_bits();
            let apart = $exp(num) - $exp(den);
            let reciprocal = (1.0 / den).abs() < <$float>::MIN_POSITIVE;
            let quotient = apart <= $small || (num / den).abs() < <$float>::MIN_POSITIVE;
            if num == 0.0 || den == 0.0 {
                (<$float>::NAN, true)
            } else if apart >= $great {
                (if is_den { $ldexp(x, $power) } else { x }, true)
            } else if $exp(den) == 0 {
                ($ldexp(x, $power), false)
            } else if reciprocal && quotient {
                (if is_den { $ldexp(x, -$power) } else { x }, true)
            } else if reciprocal {
                ($ldexp(x, -$power), false)
            } else if quotient {
                (if is_num { $ldexp(x, $power) } else { x }, true)
            } else if $exp(num) <= $tiny {
                ($ldexp(x, $power), false)
            } else {
                (x, false)
            }
        }
    };
}
div_scale!(div_scale32, f32, exp32, ldexp32, 64, 96, -126, 23);
div_scale!(div_scale64, f64, exp64, ldexp64, 128, 768, -1022, 53);

/// `v_div_fmas_f32`: the last step of a division, scaled back and rounded once.
#[inline(always)]
pub(crate) fn div_fmas32(a: f32, b: f32, c: f32, scaled: bool) -> f32 {
    if !scaled {
        return fma32(a, b, c);
    }
    first_nan32(a, b, c, scaled_fma32(a, b, c) as f32)
}

/// The scaled sum of `v_div_fmas_f32`, to be rounded to single precision.
#[inline(always)]
pub(crate) fn scaled_fma32(a: f32, b: f32, c: f32) -> f64 {
    let by = if exp32(c) > 127 { 64 } else { -64 };
    ldexp64(fma_odd(f64::from(a), f64::from(b), f64::from(c)), by)
}

/// `v_div_fmas_f64`.
#[inline(always)]
pub(crate) fn div_fmas64(a: f64, b: f64, c: f64, scaled: bool) -> f64 {
    if !scaled || a.is_nan() || b.is_nan() || c.is_nan() {
        return fma64(a, b, c);
    }
    if exp64(c) > 1023 {
        return ldexp64(a.mul_add(b, c), 128);
    }
    let near = a.mul_add(b, c);
    let down = ldexp64(near, -128);
    if down.is_nan() || down.abs() > f64::MIN_POSITIVE {
        return down;
    }
    // Scaling down reaches denormals, whose grid is coarser: the sum must be rounded to it once. Only where the nearest
    // double lies halfway between two denormals does it matter on which side of it the exact sum lies.
    let steps = ldexp64(near, 946);
    let floor = steps.floor();
    let rounded = if steps - floor == 0.5 {
        let product = a * b;
        let product_error = a.mul_add(b, -product);
        let sum = product + c;
        let part = sum - product;
        let sum_error = (product - (sum - part)) + (c - part);
        let error = (sum - near) + (sum_error + product_error);
        match error.total_cmp(&0.0) {
            _ if error == 0.0 => steps.round_ties_even(),
            std::cmp::Ordering::Greater => floor + 1.0,
            _ => floor,
        }
    } else {
        steps.round_ties_even()
    };
    // A denormal's bits are its number of steps, and the first normal number's are the next.
    f64::from_bits(rounded.abs() as u64).copysign(near)
}

macro_rules! div_fixup {
    ($name:ident, $float:ty, $exp:ident, $least:expr, $most:expr, $quiet:expr, $fails:expr) => {
        /// The special cases of division.
        #[inline(always)]
        pub(crate) fn $name(quotient: $float, den: $float, num: $float) -> $float {
            let negative = den.is_sign_negative() != num.is_sign_negative();
            let signed = |x: $float| if negative { -x } else { x };
            let quiet = |x: $float| <$float>::from_bits(x.to_bits() | $quiet);
            if num.is_nan() {
                quiet(num)
            } else if den.is_nan() {
                quiet(den)
            } else if (den == 0.0 && num == 0.0) || (den.is_infinite() && num.is_infinite()) {
                -<$float>::NAN.abs()
            } else if den == 0.0 || num.is_infinite() {
                signed(<$float>::INFINITY)
            } else if den.is_infinite() || num == 0.0 {
                signed(0.0)
            } else if $exp(num) - $exp(den) < $least {
                signed(0.0)
            } else if $exp(num) - $exp(den) > $most || ($fails && quotient.is_nan()) {
                // Too large even for the scaled steps before, which gave NaN. Cards take any NaN of theirs for that.
                signed(<$float>::INFINITY)
            } else {
                signed(quotient.abs())
            }
        }
    };
}
// Half precision in f32, whose steps are not scaled.
div_fixup!(div_fixup16, f32, exp32, -150, 128, 1 << 22, false);
div_fixup!(div_fixup32, f32, exp32, -150, 128, 1 << 22, true);
div_fixup!(div_fixup64, f64, exp64, -1075, 1024, 1 << 51, true);

macro_rules! min_max {
    ($min:ident, $max:ident, $any_min:ident, $any_max:ident, $float:ty, $int:ty, $quiet:expr) => {
        /// Minimum: a number beats NaN, -0 is less than +0.
        #[inline(always)]
        pub(crate) fn $any_min(a: $float, b: $float) -> $float {
            let r = if a < b { a } else { b };
            let zero = <$float>::from_bits(r.to_bits() | (a.to_bits() & (-0.0 as $float).to_bits()));
            let r = if a == b { zero } else { r };
            if b.is_nan() { a } else { r }
        }

        /// Maximum: a number beats NaN, +0 is more than -0.
        #[inline(always)]
        pub(crate) fn $any_max(a: $float, b: $float) -> $float {
            let r = if a > b { a } else { b };
            let zero = <$float>::from_bits(r.to_bits() & a.to_bits());
            let r = if a == b { zero } else { r };
            if b.is_nan() { a } else { r }
        }

        /// The same under IEEE rules: a signalling NaN beats a number, and becomes quiet.
        #[inline(always)]
        pub(crate) fn $min(a: $float, b: $float) -> $float {
            signalling_wins!($any_min(a, b), a, b, $float, $int, $quiet)
        }

        /// The same under IEEE rules: a signalling NaN beats a number, and becomes quiet.
        #[inline(always)]
        pub(crate) fn $max(a: $float, b: $float) -> $float {
            signalling_wins!($any_max(a, b), a, b, $float, $int, $quiet)
        }
    };
}

/// `$r`, or the first of `$a` and `$b` that is a signalling NaN. Comparisons of integers, so that lanes stay in vectors.
macro_rules! signalling_wins {
    ($r:expr, $a:ident, $b:ident, $float:ty, $int:ty, $quiet:expr) => {{
        let infinity = <$float>::INFINITY.to_bits();
        // With the quiet bit turned over, signalling NaN are the largest.
        let signals = |x: $float| ((x.to_bits() ^ $quiet) << 1 >> 1) as $int > (infinity | $quiet) as $int;
        let quiet = |x: $float| <$float>::from_bits(x.to_bits() | $quiet);
        let r = if signals($b) { quiet($b) } else { $r };
        if signals($a) { quiet($a) } else { r }
    }};
}

min_max!(min32, max32, any_min32, any_max32, f32, i32, 1 << 22);
min_max!(min64, max64, any_min64, any_max64, f64, i64, 1 << 51);

/// Median of three; the least where one of them is NaN.
#[inline(always)]
pub(crate) fn med32(a: f32, b: f32, c: f32) -> f32 {
    // Without NaN both kinds of maxima are the same. Found as the ISA does: with zeros of both signs the result is not
    // always the second in order.
    let top = any_max32(any_max32(a, b), c);
    let (bc, ac, ab) = (any_max32(b, c), any_max32(a, c), any_max32(a, b));
    let mid = if top == b { ac } else { ab };
    let mid = if top == a { bc } else { mid };
    if a.is_nan() || b.is_nan() || c.is_nan() {
        min32(min32(a, b), c)
    } else {
        mid
    }
}

/// Denormals to zero, as the units for reciprocals, roots and transcendental functions treat them.
#[inline(always)]
pub(crate) fn flush(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE {
        f32::from_bits(x.to_bits() & 0x8000_0000)
    } else {
        x
    }
}

/// `2^x` to within 1 ulp, for whole vectors: no table, no branch.
#[inline(always)]
pub(crate) fn exp2(x: f32) -> f32 {
    let limited = x.clamp(-150.0, 129.0);
    let whole = limited.round_ties_even();
    let r = limited - whole;
    // Minimax-like coefficients of (2^r - 1) / r on [-0.5, 0.5].
    let mut p = 1.535_336e-4_f32;
    p = p.mul_add(r, 1.339_887_4e-3);
    p = p.mul_add(r, 9.618_437e-3);
    p = p.mul_add(r, 5.550_332_7e-2);
    p = p.mul_add(r, 2.402_264_7e-1);
    p = p.mul_add(r, 6.931_472e-1);
    let fraction = p.mul_add(r, 1.0);
    // 2^129 does not exist, so the power goes on in two steps.
    let n = whole as i32;
    let half = n >> 1;
    let power = |n: i32| f32::from_bits(((n + 127) as u32) << 23);
    let value = fraction * power(half) * power(n - half);
    if x.is_nan() { x } else { flush(value) }
}

/// Whether `v_mullit_f32` gives the most negative number: no light from there.
#[inline(always)]
pub(crate) fn unlit(b: f32, c: f32) -> bool {
    b <= -f32::MAX || c <= 0.0 || b.is_nan() || c.is_nan()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_agrees_with_the_half_crate_on_every_value_and_its_neighbours() {
        for h in 0..=u16::MAX {
            let reference = half::f16::from_bits(h).to_f32();
            let ours = half_to_f32(h);
            assert!(ours == reference || (ours.is_nan() && reference.is_nan()), "{h:#x}");
            for delta in [-2i32, -1, 0, 1, 2, 0xFFF, 0x1000, 0x1001] {
                let x = f32::from_bits(ours.to_bits().wrapping_add_signed(delta));
                let expected = half::f16::from_f32(x);
                let got = half::f16::from_bits(f32_to_half(x));
                assert!(
                    got.to_bits() == expected.to_bits() || (got.is_nan() && expected.is_nan()),
                    "{x:e}"
                );
                let zero = half_to_f32(f32_to_half_rtz(x));
                assert!(x.is_nan() || zero.abs() <= x.abs(), "{x:e} -> {zero:e}");
            }
        }
    }

    #[test]
    fn scaling_rounds_once() {
        let mut state = 0x0123_4567_89AB_CDEFu64;
        for _ in 0..200_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let x = f32::from_bits((state >> 32) as u32);
            let n = (state >> 20 & 0x1FF) as i32 - 256;
            let expected = (f64::from(x) * 2f64.powi(n)) as f32;
            let got = ldexp32(x, n);
            assert!(got.to_bits() == expected.to_bits() || got.is_nan(), "{x:e} * 2^{n}");
        }
        assert_eq!(ldexp64(1.5, -1075), 5e-324 * 1.0);
        assert_eq!(ldexp64(f64::from_bits(1), 2097), 2f64.powi(1023));
        assert_eq!(ldexp64(1.0, 3000), f64::INFINITY);
    }

    #[test]
    fn exp2_is_within_one_ulp() {
        let mut worst = 0.0f64;
        let mut x = -126.0f32;
        while x < 128.0 {
            let exact = f64::from(x).exp2();
            let got = exp2(x);
            let ulp = f64::from(f32::from_bits(got.to_bits() + 1)) - f64::from(got);
            worst = worst.max((f64::from(got) - exact).abs() / ulp);
            x += 0.001_37;
        }
        assert!(worst < 1.0, "{worst} ulp");
        assert_eq!(exp2(0.0), 1.0);
        assert_eq!(exp2(-0.0), 1.0);
        assert_eq!(exp2(3.0), 8.0);
        assert_eq!(exp2(128.0), f32::INFINITY);
        assert_eq!(exp2(-150.0), 0.0);
        assert_eq!(exp2(f32::NEG_INFINITY), 0.0);
        assert!(exp2(f32::NAN).is_nan());
    }

    /// The sequence compilers emit for `n / d`.
    fn divide(n: f32, d: f32) -> f32 {
        let (den, _) = div_scale32(d, d, n);
        let (num, vcc) = div_scale32(n, d, n);
        let mut r = flush(1.0 / flush(den));
        let e = (-den).mul_add(r, 1.0);
        r = e.mul_add(r, r);
        let q = num * r;
        let e = (-den).mul_add(q, num);
        let q = e.mul_add(r, q);
        let e = (-den).mul_add(q, num);
        div_fixup32(div_fmas32(e, r, q, vcc), d, n)
    }

    #[test]
    fn the_division_sequence_gives_the_true_quotient() {
        let special = [
            0.0,
            -0.0,
            1.0,
            -3.0,
            f32::MAX,
            f32::MIN_POSITIVE,
            1e-45,
            1e-40,
            3e38,
            2e-38,
            f32::INFINITY,
            f32::NAN,
        ];
        for n in special {
            for d in special {
                let (got, exact) = (divide(n, d), n / d);
                assert!(
                    got.to_bits() == exact.to_bits() || (got.is_nan() && exact.is_nan()),
                    "{n:e} / {d:e}: {got:e}"
                );
            }
        }
        let mut state = 7u64;
        for _ in 0..2_000_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let n = f32::from_bits((state >> 32) as u32);
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let d = f32::from_bits((state >> 32) as u32);
            let (got, exact) = (divide(n, d), n / d);
            assert!(
                got.to_bits() == exact.to_bits() || (got.is_nan() && exact.is_nan()),
                "{n:e} / {d:e}: {got:e} {exact:e}"
            );
        }
    }
}
