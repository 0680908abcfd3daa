//! Minima and maxima of IEEE 754-2019, and operations on single lanes.

use crate::exec::gfx12::fp8::{dot4, from_bf8, from_fp8, to_bf8, to_fp8};
use crate::exec::number::num::{any_max32, any_max64, any_min32, any_min64};
use crate::exec::vector::elem::H;
use crate::exec::vector::lane_ops::lane_ops;

macro_rules! minima {
    ($num_min:ident, $num_max:ident, $minimum:ident, $maximum:ident, $any_min:ident, $any_max:ident, $float:ty, $quiet:expr) => {
        /// `minimumNumber`: a number beats NaN, signalling or not; -0 is less than +0.
        #[inline(always)]
        pub(crate) fn $num_min(a: $float, b: $float) -> $float {
            quiet!($any_min(a, b), $quiet)
        }

        /// `maximumNumber`.
        #[inline(always)]
        pub(crate) fn $num_max(a: $float, b: $float) -> $float {
            quiet!($any_max(a, b), $quiet)
        }

        /// `minimum`: NaN beats a number, signalling NaN beats a quiet one.
        #[inline(always)]
        pub(crate) fn $minimum(a: $float, b: $float) -> $float {
            nan_wins!($any_min(a, b), a, b, $quiet)
        }

        /// `maximum`.
        #[inline(always)]
        pub(crate) fn $maximum(a: $float, b: $float) -> $float {
            nan_wins!($any_max(a, b), a, b, $quiet)
        }
    };
}

macro_rules! quiet {
    ($x:expr, $quiet:expr) => {{
        let x = $x;
        let bits = if x.is_nan() { x.to_bits() | $quiet } else { x.to_bits() };
        from_same(x, bits)
    }};
}

macro_rules! nan_wins {
    ($r:expr, $a:ident, $b:ident, $quiet:expr) => {{
        let signals = $b.is_nan() && $b.to_bits() & $quiet == 0;
        let first = $a.is_nan() && !(signals && $a.to_bits() & $quiet != 0);
        let nan = if first { $a } else { $b };
        if $a.is_nan() || $b.is_nan() {
            from_same(nan, nan.to_bits() | $quiet)
        } else {
            $r
        }
    }};
}

/// Floats from bits of the same width.
trait Bits: Copy {
    type Word;
    fn make(self, bits: Self::Word) -> Self;
}

impl Bits for f32 {
    type Word = u32;
    #[inline(always)]
    fn make(self, bits: u32) -> Self {
        Self::from_bits(bits)
    }
}

impl Bits for f64 {
    type Word = u64;
    #[inline(always)]
    fn make(self, bits: u64) -> Self {
        Self::from_bits(bits)
    }
}

#[inline(always)]
fn from_same<T: Bits>(like: T, bits: T::Word) -> T {
    like.make(bits)
}

minima!(
    num_min32,
    num_max32,
    minimum32,
    maximum32,
    any_min32,
    any_max32,
    f32,
    1 << 22
);
minima!(
    num_min64,
    num_max64,
    minimum64,
    maximum64,
    any_min64,
    any_max64,
    f64,
    1 << 51
);

/// Median of three; the least where one of them is NaN.
#[inline(always)]
fn num_med32(a: f32, b: f32, c: f32) -> f32 {
    if a.is_nan() || b.is_nan() || c.is_nan() {
        return num_min32(num_min32(a, b), c);
    }
    // As the ISA has it: what is left beside the largest.
    let most = num_max32(num_max32(a, b), c);
    if most == a {
        num_max32(b, c)
    } else if most == b {
        num_max32(a, c)
    } else {
        num_max32(a, b)
    }
}

#[inline(always)]
fn pairs(a: [H; 2], b: [H; 2], f: impl Fn(f32, f32) -> f32) -> [H; 2] {
    [H(f(a[0].0, b[0].0)), H(f(a[1].0, b[1].0))]
}

lane_ops! { lookup {
    VMinNumF32(a: f32, b: f32) -> f32 { num_min32(a, b) }
    VMaxNumF32(a: f32, b: f32) -> f32 { num_max32(a, b) }
    VMax3NumF32(a: f32, b: f32, c: f32) -> f32 { num_max32(num_max32(a, b), c) }
    VMinNumF16(a: H, b: H) -> H { H(num_min32(a.0, b.0)) }
    VMaxNumF16(a: H, b: H) -> H { H(num_max32(a.0, b.0)) }
    VPkMinNumF16(a: [H; 2], b: [H; 2]) -> [H; 2] { pairs(a, b, num_min32) }
    VPkMaxNumF16(a: [H; 2], b: [H; 2]) -> [H; 2] { pairs(a, b, num_max32) }
} seldom {
    VMin3NumF32(a: f32, b: f32, c: f32) -> f32 { num_min32(num_min32(a, b), c) }
    VMed3NumF32(a: f32, b: f32, c: f32) -> f32 { num_med32(a, b, c) }
    VMaxminNumF32(a: f32, b: f32, c: f32) -> f32 { num_min32(num_max32(a, b), c) }
    VMinmaxNumF32(a: f32, b: f32, c: f32) -> f32 { num_max32(num_min32(a, b), c) }
    VMinimumF32(a: f32, b: f32) -> f32 { minimum32(a, b) }
    VMaximumF32(a: f32, b: f32) -> f32 { maximum32(a, b) }
    VMinimum3F32(a: f32, b: f32, c: f32) -> f32 { minimum32(minimum32(a, b), c) }
    VMaximum3F32(a: f32, b: f32, c: f32) -> f32 { maximum32(maximum32(a, b), c) }
    VMinimummaximumF32(a: f32, b: f32, c: f32) -> f32 { maximum32(minimum32(a, b), c) }
    VMaximumminimumF32(a: f32, b: f32, c: f32) -> f32 { minimum32(maximum32(a, b), c) }
    VMin3NumF16(a: H, b: H, c: H) -> H { H(num_min32(num_min32(a.0, b.0), c.0)) }
    VMax3NumF16(a: H, b: H, c: H) -> H { H(num_max32(num_max32(a.0, b.0), c.0)) }
    VMed3NumF16(a: H, b: H, c: H) -> H { H(num_med32(a.0, b.0, c.0)) }
    VMaxminNumF16(a: H, b: H, c: H) -> H { H(num_min32(num_max32(a.0, b.0), c.0)) }
    VMinmaxNumF16(a: H, b: H, c: H) -> H { H(num_max32(num_min32(a.0, b.0), c.0)) }
    VMinimumF16(a: H, b: H) -> H { H(minimum32(a.0, b.0)) }
    VMaximumF16(a: H, b: H) -> H { H(maximum32(a.0, b.0)) }
    VMinimum3F16(a: H, b: H, c: H) -> H { H(minimum32(minimum32(a.0, b.0), c.0)) }
    VMaximum3F16(a: H, b: H, c: H) -> H { H(maximum32(maximum32(a.0, b.0), c.0)) }
    VMinimummaximumF16(a: H, b: H, c: H) -> H { H(maximum32(minimum32(a.0, b.0), c.0)) }
    VMaximumminimumF16(a: H, b: H, c: H) -> H { H(minimum32(maximum32(a.0, b.0), c.0)) }
    VMinNumF64(a: f64, b: f64) -> f64 { num_min64(a, b) }
    VMaxNumF64(a: f64, b: f64) -> f64 { num_max64(a, b) }
    VMinimumF64(a: f64, b: f64) -> f64 { minimum64(a, b) }
    VMaximumF64(a: f64, b: f64) -> f64 { maximum64(a, b) }
    VPkMinimumF16(a: [H; 2], b: [H; 2]) -> [H; 2] { pairs(a, b, minimum32) }
    VPkMaximumF16(a: [H; 2], b: [H; 2]) -> [H; 2] { pairs(a, b, maximum32) }
    VCvtPkFp8F32(a: f32, b: f32) -> u16 { u16::from(to_fp8(a)) | u16::from(to_fp8(b)) << 8 }
    VCvtPkBf8F32(a: f32, b: f32) -> u16 { u16::from(to_bf8(a)) | u16::from(to_bf8(b)) << 8 }
    VDot4F32Fp8Bf8(a: u32, b: u32, c: f32) -> f32 { dot4(a, b, c, from_fp8, from_bf8) }
    VDot4F32Bf8Fp8(a: u32, b: u32, c: f32) -> f32 { dot4(a, b, c, from_bf8, from_fp8) }
    VDot4F32Fp8Fp8(a: u32, b: u32, c: f32) -> f32 { dot4(a, b, c, from_fp8, from_fp8) }
    VDot4F32Bf8Bf8(a: u32, b: u32, c: f32) -> f32 { dot4(a, b, c, from_bf8, from_bf8) }
} }
