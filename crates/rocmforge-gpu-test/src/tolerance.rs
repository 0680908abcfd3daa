//! Tolerance of a comparison: how far an element may be from its reference.

use serde::{Deserialize, Serialize};

/// How far an element may be from its reference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tolerance {
    /// `|actual - expected| <= limit`.
    Absolute(f64),
    /// `|actual - expected| <= limit * (|expected| + 1e-6)`.
    Relative(f64),
    /// Bit-equal (as f32), signed zeros included.
    Exact,
}

impl Tolerance {
    /// How many times over the limit an element is: at most 1 passes. NaN against anything but the same kind of
    /// non-number is infinite.
    pub fn excess(self, actual: f32, expected: f64) -> f64 {
        if actual.is_nan() || expected.is_nan() {
            return f64::INFINITY;
        }
        if expected.is_infinite() || actual.is_infinite() {
            return if f64::from(actual) == expected {
                0.0
            } else {
                f64::INFINITY
            };
        }
        let difference = (f64::from(actual) - expected).abs();
        // A limit that is NaN or negative is no limit; nothing passes it but equality.
        let ratio = |limit: f64| match difference {
            0.0 => 0.0,
            _ if limit > 0.0 => difference / limit,
            _ => f64::INFINITY,
        };
        match self {
            Self::Absolute(limit) => ratio(limit),
            Self::Relative(limit) => ratio(limit * (expected.abs() + 1e-6)),
            Self::Exact => {
                if (expected as f32).to_bits() == actual.to_bits() {
                    0.0
                } else {
                    f64::INFINITY
                }
            }
        }
    }
}
