//! The floating-point mode of a wave: rounding, denormals, what NaN does to minima and clamps.
//!
//! Kernels run in [`Mode::DEFAULT`] unless they were compiled otherwise or change it. Only programs that do either are
//! lowered to the handlers that look at the mode; see [`crate::exec::vector::modal`].

use super::num::{clamp32, f32_to_half, half_to_f32};
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Double, Half, Single};

pub(crate) use rustc_apfloat::Round;

/// The `MODE` register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mode(pub(crate) u32);

impl Mode {
    /// To nearest even, denormals kept, NaN clamps to 0 (bit 8), signalling NaN wins minima (bit 9).
    pub(crate) const DEFAULT: Self = Self(0x3F0);

    fn round(field: u32) -> Round {
        match field & 3 {
            0 => Round::NearestTiesToEven,
            1 => Round::TowardPositive,
            2 => Round::TowardNegative,
            _ => Round::TowardZero,
        }
    }

    /// Rounding of single precision.
    pub(crate) fn round32(self) -> Round {
        Self::round(self.0)
    }

    /// Rounding of half and double precision.
    pub(crate) fn round16_64(self) -> Round {
        Self::round(self.0 >> 2)
    }

    fn flushes_in32(self) -> bool {
        self.0 >> 4 & 1 == 0
    }

    fn flushes_out32(self) -> bool {
        self.0 >> 5 & 1 == 0
    }

    fn flushes_in16_64(self) -> bool {
        self.0 >> 6 & 1 == 0
    }

    fn flushes_out16_64(self) -> bool {
        self.0 >> 7 & 1 == 0
    }

    fn clamps_nan(self) -> bool {
        self.0 >> 8 & 1 != 0
    }

    /// IEEE 754 rules for signalling NaN in minima and maxima.
    pub(crate) fn ieee(self) -> bool {
        self.0 >> 9 & 1 != 0
    }

    /// A single-precision operand as the operation sees it.
    pub(crate) fn input32(self, x: f32) -> f32 {
        if self.flushes_in32() { flush32(x) } else { x }
    }

    /// A half-precision operand, widened.
    pub(crate) fn input16(self, x: f32) -> f32 {
        if self.flushes_in16_64() { flush16(x) } else { x }
    }

    /// A double-precision operand.
    pub(crate) fn input64(self, x: f64) -> f64 {
        if self.flushes_in16_64() { flush64(x) } else { x }
    }

    /// A single-precision result: output modifier, clamp, denormals.
    ///
    /// The hardware ignores output modifiers where denormals are kept and where IEEE rules are on.
    pub(crate) fn output32(self, x: f32, omod: u32, clamp: bool) -> f32 {
        let scaled = if self.flushes_out32() && !self.ieee() {
            x * scale(omod)
        } else {
            x
        };
        let x = if clamp { self.clamp(scaled) } else { scaled };
        if self.flushes_out32() { flush32(x) } else { x }
    }

    /// A half-precision result, rounded to half precision but still as a single.
    pub(crate) fn output16(self, x: f32, omod: u32, clamp: bool) -> f32 {
        let half = half_to_f32(narrow16(x, self.round16_64()));
        let scaled = if self.flushes_out16_64() && !self.ieee() {
            half_to_f32(narrow16(half * scale(omod), self.round16_64()))
        } else {
            half
        };
        let x = if clamp { self.clamp(scaled) } else { scaled };
        if self.flushes_out16_64() { flush16(x) } else { x }
    }

    /// A double-precision result.
    pub(crate) fn output64(self, x: f64, omod: u32, clamp: bool) -> f64 {
        let scaled = if self.flushes_out16_64() && !self.ieee() {
            x * f64::from(scale(omod))
        } else {
            x
        };
        let x = match clamp {
            true if scaled.is_nan() && !self.clamps_nan() => scaled,
            true => (if scaled > 0.0 { scaled } else { 0.0 }).min(1.0),
            false => scaled,
        };
        if self.flushes_out16_64() { flush64(x) } else { x }
    }

    fn clamp(self, x: f32) -> f32 {
        if x.is_nan() && !self.clamps_nan() {
            x
        } else {
            clamp32(x)
        }
    }
}

/// What an output modifier multiplies by.
fn scale(omod: u32) -> f32 {
    [1.0, 2.0, 4.0, 0.5][omod as usize & 3]
}

fn flush32(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE {
        0f32.copysign(x)
    } else {
        x
    }
}

/// A half that is denormal is a normal single.
fn flush16(x: f32) -> f32 {
    if x.abs() < 6.103_515_6e-5 { 0f32.copysign(x) } else { x }
}

fn flush64(x: f64) -> f64 {
    if x.abs() < f64::MIN_POSITIVE {
        0f64.copysign(x)
    } else {
        x
    }
}

fn single(x: f32) -> Single {
    Single::from_bits(x.to_bits().into())
}

fn double(x: f64) -> Double {
    Double::from_bits(x.to_bits().into())
}

fn half(x: f32) -> Half {
    Half::from_bits(f32_to_half(x).into())
}

fn back32(x: Single) -> f32 {
    f32::from_bits(x.to_bits() as u32)
}

fn back64(x: Double) -> f64 {
    f64::from_bits(x.to_bits() as u64)
}

/// Single to half precision.
#[inline(never)]
pub(crate) fn narrow16(x: f32, round: Round) -> u16 {
    if round == Round::NearestTiesToEven || x.is_nan() {
        return f32_to_half(x);
    }
    use rustc_apfloat::FloatConvert;
    let narrowed: Half = single(x).convert_r(round, &mut false).value;
    narrowed.to_bits() as u16
}

/// Double to single precision.
#[inline(never)]
pub(crate) fn narrow32(x: f64, round: Round) -> f32 {
    if round == Round::NearestTiesToEven || x.is_nan() {
        return x as f32;
    }
    use rustc_apfloat::FloatConvert;
    let narrowed: Single = double(x).convert_r(round, &mut false).value;
    back32(narrowed)
}

/// Scaled sums of `v_div_fmas_*`, directed.
pub(crate) fn scaled_fma32(a: f32, b: f32, c: f32, round: Round) -> f32 {
    narrow32(super::num::scaled_fma32(a, b, c), round)
}

/// Scaled sums of `v_div_fmas_*`, directed.
pub(crate) fn scaled_fma64(a: f64, b: f64, c: f64, round: Round) -> f64 {
    let by = if c.abs() >= 2.0 { 128 } else { -128 };
    ldexp64(fma64(a, b, c, round), by, round)
}

/// The nearest-even result where that is the mode, or where NaN comes in or out.
macro_rules! rounded {
    ($($(#[$doc:meta])* $name:ident($($x:ident: $ty:ty),*) -> $ret:ty { $near:expr } $round:ident { $directed:expr })*) => {$(
        $(#[$doc])*
        #[inline(never)]
        pub(crate) fn $name($($x: $ty,)* $round: Round) -> $ret {
            let near = $near;
            if $round == Round::NearestTiesToEven || near.is_nan() {
                near
            } else {
                $directed
            }
        }
    )*};
}

rounded! {
    add32(a: f32, b: f32) -> f32 { a + b } round { back32(single(a).add_r(single(b), round).value) }
    mul32(a: f32, b: f32) -> f32 { a * b } round { back32(single(a).mul_r(single(b), round).value) }
    fma32(a: f32, b: f32, c: f32) -> f32 { a.mul_add(b, c) } round {
        back32(single(a).mul_add_r(single(b), single(c), round).value)
    }
    add64(a: f64, b: f64) -> f64 { a + b } round { back64(double(a).add_r(double(b), round).value) }
    mul64(a: f64, b: f64) -> f64 { a * b } round { back64(double(a).mul_r(double(b), round).value) }
    fma64(a: f64, b: f64, c: f64) -> f64 { a.mul_add(b, c) } round {
        back64(double(a).mul_add_r(double(b), double(c), round).value)
    }
    /// `x * 2^n`.
    ldexp32(x: f32, n: i32) -> f32 { super::num::ldexp32(x, n) } round {
        back32(single(x).scalbn_r(n.clamp(-400, 400), round))
    }
    /// `x * 2^n`.
    ldexp64(x: f64, n: i32) -> f64 { super::num::ldexp64(x, n) } round {
        back64(double(x).scalbn_r(n.clamp(-2200, 2200), round))
    }
    /// Operands are halves, the result is one.
    add16(a: f32, b: f32) -> f32 { a + b } round {
        half_to_f32(half(a).add_r(half(b), round).value.to_bits() as u16)
    }
    /// Operands are halves, the result is one.
    mul16(a: f32, b: f32) -> f32 { a * b } round {
        half_to_f32(half(a).mul_r(half(b), round).value.to_bits() as u16)
    }
    /// Operands are halves, the result is one where it is directed, else to be rounded to one.
    fma16(a: f32, b: f32, c: f32) -> f32 { super::num::fma_half(a, b, c) } round {
        half_to_f32(half(a).mul_add_r(half(b), half(c), round).value.to_bits() as u16)
    }
    /// An integer of at most 32 bits.
    from_int(x: i64) -> f32 { x as f32 } round { back32(Single::from_i128_r(i128::from(x), round).value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of a rounding from a value that is exact in double precision.
    fn expected(exact: f64, round: Round) -> f32 {
        let near = exact as f32;
        let (down, up) = if f64::from(near) > exact {
            (near.next_down(), near)
        } else if f64::from(near) < exact {
            (near, near.next_up())
        } else {
            (near, near)
        };
        match round {
            Round::TowardPositive => up,
            Round::TowardNegative => down,
            Round::TowardZero if exact > 0.0 => down,
            Round::TowardZero => up,
            _ => near,
        }
    }

    #[test]
    fn directed_rounding_is_on_the_right_side_of_the_exact_value() {
        let mut state = 11u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            // Exponents near each other, so that sums are exact in double precision too.
            f32::from_bits((state >> 32) as u32 & 0x83FF_FFFF | 0x3E00_0000)
        };
        for _ in 0..20_000 {
            let (a, b) = (next(), next());
            for round in [
                Round::NearestTiesToEven,
                Round::TowardPositive,
                Round::TowardNegative,
                Round::TowardZero,
            ] {
                let product = f64::from(a) * f64::from(b);
                let sum = f64::from(a) + f64::from(b);
                assert_eq!(mul32(a, b, round), expected(product, round), "{a:e} * {b:e} {round:?}");
                assert_eq!(add32(a, b, round), expected(sum, round), "{a:e} + {b:e} {round:?}");
                assert_eq!(
                    fma32(a, b, 0.0, round),
                    expected(product, round),
                    "{a:e} * {b:e} {round:?}"
                );
                assert_eq!(
                    narrow32(product, round),
                    expected(product, round),
                    "{product:e} {round:?}"
                );
            }
        }
        assert_eq!(mul32(f32::MAX, 2.0, Round::TowardZero), f32::MAX);
        assert_eq!(mul32(f32::MAX, 2.0, Round::TowardPositive), f32::INFINITY);
        assert_eq!(mul32(f32::MAX, -2.0, Round::TowardPositive), f32::MIN);
        assert_eq!(add32(1.0, -1.0, Round::TowardNegative).to_bits(), 1 << 31);
        assert_eq!(from_int(16_777_217, Round::TowardPositive), 16_777_218.0);
        assert_eq!(narrow16(1.0 + 1.0 / 4096.0, Round::TowardPositive), 0x3C01);
        assert_eq!(narrow16(1e9, Round::TowardZero), 0x7BFF);
    }

    #[test]
    fn denormals_output_modifiers_and_clamps_follow_the_mode() {
        let tiny = f32::from_bits(1);
        assert_eq!(Mode::DEFAULT.input32(tiny), tiny);
        assert_eq!(Mode(0x3C0).input32(-tiny).to_bits(), 1 << 31);
        assert_eq!(Mode(0x3E0).input32(tiny), 0.0, "denormals of results only are kept");
        assert_eq!(Mode(0x3E0).output32(tiny, 0, false), tiny);
        assert_eq!(Mode(0x0C0).output32(3.0, 3, false), 1.5);
        assert_eq!(
            Mode(0x2C0).output32(3.0, 3, false),
            3.0,
            "IEEE rules ignore output modifiers"
        );
        assert_eq!(
            Mode(0x0F0).output32(3.0, 3, false),
            3.0,
            "denormals ignore output modifiers"
        );
        assert_eq!(Mode(0x100).output32(f32::NAN, 0, true), 0.0);
        assert!(Mode(0x000).output32(f32::NAN, 0, true).is_nan());
        assert_eq!(Mode(0x030).output16(3.0e-5, 0, false), 0.0);
        assert_eq!(Mode(0x030).output64(2.0, 2, false), 8.0);
    }
}
