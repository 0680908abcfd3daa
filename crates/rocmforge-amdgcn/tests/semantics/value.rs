//! Expected results: bits, or a value within an error.

use rocmforge_isa::Ty;
use rustc_apfloat::Float;
use rustc_apfloat::ieee::{Double, Half, Single};

/// What a result must be.
#[derive(Clone, Copy, Debug)]
// The operations of one instruction set do not need all of them.
#[allow(dead_code)]
pub(crate) enum Value {
    /// These bits.
    Bits(u64),
    /// This value; if it is a NaN, any quiet one.
    F16(u16),
    F32(u32),
    F64(u64),
    /// Two halves.
    Pk([u16; 2]),
    /// Two singles.
    F32x2([u32; 2]),
    /// Either of two results: the text leaves open which.
    Either(u64, u64),
    OneOf([u64; 4]),
    /// Within so many units in the last place of the exact value, or within an absolute error. A denormal result may
    /// also be flushed.
    Near {
        exact: f64,
        ulps: f64,
        error: f64,
    },
    /// Nothing is said.
    Any,
}

/// Result and bit of the written mask.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) value: Value,
    pub(crate) flag: Option<bool>,
}

impl Out {
    pub(crate) fn flag(self, flag: bool) -> Self {
        Self {
            flag: Some(flag),
            ..self
        }
    }
}

pub(crate) fn value(value: Value) -> Out {
    Out { value, flag: None }
}
pub(crate) fn bits(bits: impl Into<u64>) -> Out {
    value(Value::Bits(bits.into()))
}
/// A signed result of 32 bits.
pub(crate) fn int32(value: i32) -> Out {
    bits(value as u32)
}
pub(crate) fn half(x: Half) -> Out {
    value(Value::F16(x.to_bits() as u16))
}
pub(crate) fn single(x: Single) -> Out {
    value(Value::F32(x.to_bits() as u32))
}
pub(crate) fn double(x: Double) -> Out {
    value(Value::F64(x.to_bits() as u64))
}
pub(crate) fn packed(x: [Half; 2]) -> Out {
    value(Value::Pk(x.map(|half| half.to_bits() as u16)))
}
/// A comparison.
pub(crate) fn flag(flag: bool) -> Out {
    value(Value::Any).flag(flag)
}

/// Distance between neighbours at a value, in a format of so many fraction bits and such a least exponent.
fn ulp(exact: f64, fraction: i32, least: i32) -> f64 {
    let exponent = if exact == 0.0 {
        least
    } else {
        ((exact.abs().to_bits() >> 52) as i32 - 1023).max(least)
    };
    f64::from(exponent - fraction).exp2()
}

fn to_f64(bits: u64, ty: Ty) -> f64 {
    match ty {
        Ty::F16 => half::f16::from_bits(bits as u16).to_f64(),
        Ty::F32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits),
    }
}

fn near(got: u64, ty: Ty, exact: f64, ulps: f64, error: f64, clamp: bool) -> bool {
    let (fraction, least, greatest) = match ty {
        Ty::F16 => (10, -14, 65504.0),
        Ty::F32 => (23, -126, f64::from(f32::MAX)),
        _ => (52, -1022, f64::MAX),
    };
    let got = to_f64(got, ty);
    let exact = match clamp {
        true if exact.is_nan() => 0.0,
        true => exact.clamp(0.0, 1.0),
        false => exact,
    };
    if exact.is_nan() || got.is_nan() {
        return exact.is_nan() && got.is_nan();
    }
    let step = ulp(exact, fraction, least);
    if got.is_infinite() || exact.is_infinite() {
        // Infinite where the exact value rounds past the greatest finite one.
        return got == exact || (got.is_infinite() && exact.abs() + ulps * step > greatest && got * exact > 0.0);
    }
    let least_normal = f64::from(least).exp2();
    (got - exact).abs() <= (ulps * step).max(error) || (exact.abs() < least_normal && got == 0.0)
}

/// A float between 0 and 1; NaN becomes 0.
fn clamped(bits: u64, ty: Ty) -> u64 {
    let one = match ty {
        Ty::F16 | Ty::PkF16 => 0x3c00,
        Ty::F32 => 0x3f80_0000,
        _ => 0x3ff0_0000_0000_0000,
    };
    let x = match ty {
        Ty::PkF16 => to_f64(bits, Ty::F16),
        other => to_f64(bits, other),
    };
    if x.is_nan() || x <= 0.0 {
        0
    } else if x >= 1.0 {
        one
    } else {
        bits
    }
}

/// A quiet NaN, which is what operations make of every NaN.
fn is_quiet(bits: u64, ty: Ty) -> bool {
    let first = match ty {
        Ty::F16 => 9,
        Ty::F32 => 22,
        _ => 51,
    };
    to_f64(bits, ty).is_nan() && bits >> first & 1 == 1
}

impl Value {
    pub(crate) fn accepts(self, got: u64, ty: Ty, clamp: bool) -> bool {
        let float = |model: u64, ty: Ty| {
            if clamp {
                return got == clamped(model, ty);
            }
            got == model || (to_f64(model, ty).is_nan() && is_quiet(got, ty))
        };
        match self {
            Self::Bits(model) => got == model,
            Self::F16(model) => float(model.into(), Ty::F16),
            Self::F32(model) => float(model.into(), Ty::F32),
            Self::F64(model) => float(model, Ty::F64),
            Self::Pk(model) => Self::pair_accepts(model, got as u32, clamp),
            Self::F32x2(model) => {
                let [low, high] = model.map(Self::F32);
                low.accepts(got & 0xffff_ffff, Ty::F32, clamp) && high.accepts(got >> 32, Ty::F32, clamp)
            }
            Self::Either(a, b) => got == a || got == b,
            Self::OneOf(models) => models.contains(&got),
            Self::Near { exact, ulps, error } => near(got, ty, exact, ulps, error, clamp),
            Self::Any => true,
        }
    }

    fn pair_accepts(model: [u16; 2], got: u32, clamp: bool) -> bool {
        let got = [got as u16, (got >> 16) as u16];
        (0..2).all(|n| Self::F16(model[n]).accepts(got[n].into(), Ty::F16, clamp))
    }
}
