//! Elements of matrices: their types, as numbers and as bytes.

use half::{bf16, f16};
use std::ffi::c_int;

/// The type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    F16,
    Bf16,
    F32,
    F64,
}

impl Element {
    /// Of `hipblasDatatype_t` or `hipDataType`, which have no number in common.
    pub(crate) fn of_data_type(number: c_int) -> Option<Self> {
        match number {
            150 | 2 => Some(Self::F16),
            168 | 14 => Some(Self::Bf16),
            151 | 0 => Some(Self::F32),
            152 | 1 => Some(Self::F64),
            _ => None,
        }
    }

    /// Of the arithmetic of a product, `hipblasDatatype_t` or `hipblasComputeType_t`: the type of its two factors.
    pub(crate) fn of_compute_type(number: c_int) -> Option<Self> {
        match number {
            150 | 0 | 1 => Some(Self::F16),
            // F32, and F32 with inputs that may be shortened on the way.
            151 | 2..=6 => Some(Self::F32),
            152 | 7 | 8 => Some(Self::F64),
            _ => None,
        }
    }

    pub(crate) fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }

    /// Values of bytes.
    pub(crate) fn decode<'a>(self, bytes: &'a [u8]) -> impl ExactSizeIterator<Item = f64> + 'a {
        bytes.chunks_exact(self.size()).map(move |chunk| match (self, chunk) {
            (Self::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f64(),
            (Self::Bf16, &[a, b]) => bf16::from_le_bytes([a, b]).to_f64(),
            (Self::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
            (Self::F64, &[a, b, c, d, e, f, g, h]) => f64::from_le_bytes([a, b, c, d, e, f, g, h]),
            _ => unreachable!("chunks have the size of an element"),
        })
    }

    /// Adds the bytes of a value, rounded to the nearest.
    pub(crate) fn encode(self, value: f64, bytes: &mut Vec<u8>) {
        match self {
            Self::F16 => bytes.extend(f16::from_f64(value).to_le_bytes()),
            Self::Bf16 => bytes.extend(bf16::from_f64(value).to_le_bytes()),
            Self::F32 => bytes.extend((value as f32).to_le_bytes()),
            Self::F64 => bytes.extend(value.to_le_bytes()),
        }
    }
}
