//! Element types of buffers and scalars.

use half::{bf16, f16};
use std::fmt;

/// The list of types: variant, Rust's type, NumPy's code.
macro_rules! dtypes {
    ($($dtype:ident: $ty:ident, $npy:literal;)*) => {
        /// What an element is. Little endian, as the card has it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[allow(missing_docs)] // the names say it
        pub enum DType {
            $($dtype,)*
        }

        impl DType {
            /// Every type.
            pub const ALL: [Self; [$($npy),*].len()] = [$(Self::$dtype),*];

            /// The name a launch file uses: `f32`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$dtype => stringify!($ty),)*
                }
            }

            /// Bytes of an element.
            pub fn size(self) -> usize {
                match self {
                    $(Self::$dtype => size_of::<$ty>(),)*
                }
            }

            /// NumPy's code for it. bfloat16 has none there: its bits are stored as `uint16`.
            pub fn npy(self) -> &'static str {
                match self {
                    $(Self::$dtype => $npy,)*
                }
            }
        }
    };
}

dtypes! {
    U8: u8, "|u1";
    I8: i8, "|i1";
    U16: u16, "<u2";
    I16: i16, "<i2";
    U32: u32, "<u4";
    I32: i32, "<i4";
    U64: u64, "<u8";
    I64: i64, "<i8";
    F16: f16, "<f2";
    Bf16: bf16, "<u2";
    F32: f32, "<f4";
    F64: f64, "<f8";
}

/// A number as a launch file has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// Written without a point.
    Int(i128),
    /// Written with a point or an exponent, or `inf` or `nan`.
    Float(f64),
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::Float(value) => write!(f, "{value:?}"),
        }
    }
}

impl Number {
    pub(crate) fn as_f64(self) -> f64 {
        match self {
            Self::Int(value) => value as f64,
            Self::Float(value) => value,
        }
    }
}

impl DType {
    /// The type of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Whether it has a fraction.
    pub fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// The bytes of `number`; none if it does not fit, or has a fraction and the type has not.
    pub fn encode(self, number: Number) -> Option<Vec<u8>> {
        let float = number.as_f64();
        let int = || match number {
            Number::Int(value) => Some(value),
            Number::Float(_) => None,
        };
        macro_rules! int {
            ($ty:ty) => {
                <$ty>::try_from(int()?).ok()?.to_le_bytes().to_vec()
            };
        }
        Some(match self {
            Self::U8 => int!(u8),
            Self::I8 => int!(i8),
            Self::U16 => int!(u16),
            Self::I16 => int!(i16),
            Self::U32 => int!(u32),
            Self::I32 => int!(i32),
            Self::U64 => int!(u64),
            Self::I64 => int!(i64),
            Self::F16 => f16::from_f64(float).to_le_bytes().to_vec(),
            Self::Bf16 => bf16::from_f64(float).to_le_bytes().to_vec(),
            Self::F32 => (float as f32).to_le_bytes().to_vec(),
            Self::F64 => float.to_le_bytes().to_vec(),
        })
    }

    /// The smallest and the largest integer it has; none for floats.
    pub(crate) fn range(self) -> Option<(i128, i128)> {
        let bits = self.size() * 8;
        match self {
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => Some((0, (1 << bits) - 1)),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => Some((-(1 << (bits - 1)), (1 << (bits - 1)) - 1)),
            Self::F16 | Self::Bf16 | Self::F32 | Self::F64 => None,
        }
    }

    /// Whether it has `value`, or for an integer the next below it.
    pub(crate) fn has(self, value: f64) -> bool {
        match self {
            Self::F16 => f16::from_f64(value).is_finite(),
            Self::Bf16 => bf16::from_f64(value).is_finite(),
            Self::F32 => (value as f32).is_finite(),
            Self::F64 => value.is_finite(),
            _ => value.is_finite() && self.encode(Number::Int(value.floor() as i128)).is_some(),
        }
    }

    /// The bytes of the number `index`, as `iota` counts: integers wrap around.
    pub(crate) fn encode_index(self, index: u64) -> Vec<u8> {
        if self.is_float() {
            // Always fits: floats take everything.
            self.encode(Number::Float(index as f64)).unwrap_or_default()
        } else {
            index.to_le_bytes()[..self.size()].to_vec()
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_the_bytes_of_their_type() {
        assert_eq!(DType::U16.encode(Number::Int(0xABCD)), Some(vec![0xCD, 0xAB]));
        assert_eq!(DType::I8.encode(Number::Int(-1)), Some(vec![0xFF]));
        assert_eq!(
            DType::F32.encode(Number::Float(1.0)),
            Some(1.0f32.to_le_bytes().to_vec())
        );
        assert_eq!(DType::F16.encode(Number::Int(1)), Some(vec![0x00, 0x3C]));
        assert_eq!(DType::Bf16.encode(Number::Float(-2.0)), Some(vec![0x00, 0xC0]));
        assert_eq!(
            DType::U64.encode(Number::Int(u64::MAX.into())),
            Some(vec![0xFF; 8]),
            "the largest fits"
        );
        for (dtype, number) in [
            (DType::U8, Number::Int(256)),
            (DType::U32, Number::Int(-1)),
            (DType::I64, Number::Int(i128::from(u64::MAX))),
            (DType::I32, Number::Float(1.5)),
        ] {
            assert_eq!(dtype.encode(number), None, "{number} in {dtype}");
        }
    }

    #[test]
    fn names_and_sizes_belong_together() {
        for dtype in DType::ALL {
            assert_eq!(DType::named(dtype.name()), Some(dtype));
            assert_eq!(
                dtype.encode(Number::Int(1)).map(|bytes| bytes.len()),
                Some(dtype.size())
            );
            assert_eq!(dtype.encode_index(300).len(), dtype.size());
            for (end, beyond) in dtype
                .range()
                .map_or([(0, 0); 2], |(low, high)| [(low, low - 1), (high, high + 1)])
            {
                assert!(dtype.encode(Number::Int(end)).is_some(), "{end} in {dtype}");
                assert_eq!(
                    dtype.encode(Number::Int(beyond)).is_none(),
                    !dtype.is_float(),
                    "{beyond} in {dtype}"
                );
            }
        }
        assert_eq!(DType::named("float"), None);
        assert_eq!(DType::U8.encode_index(300), [44]);
    }
}
