//! Contents of buffers before the first launch.

use crate::dtype::{DType, Number};
use rocmforge_sim::Rng;
use std::path::PathBuf;

/// What a buffer holds before the first launch.
#[derive(Clone, Debug, PartialEq)]
pub enum Fill {
    /// Nothing: reading it before it is written is a report.
    Uninit,
    /// The same number everywhere.
    Constant(Number),
    /// 0, 1, 2, and so on; integers wrap around.
    Iota,
    /// Uniform random numbers, from `low` on and below `high`.
    Random {
        /// The same seed gives the same numbers.
        seed: u64,
        /// The smallest.
        low: f64,
        /// What all are below.
        high: f64,
    },
    /// These numbers, from the first element on.
    Values(Vec<Number>),
    /// An arithmetic progression.
    Range {
        /// The first number.
        start: Number,
        /// The difference between neighbours.
        step: Number,
    },
    /// Addresses of other buffers.
    Pointers(Vec<Pointer>),
    /// The bytes of a file: raw, or a `.npy` array of the same type.
    File(PathBuf),
}

/// An element of a pointer buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// The null pointer.
    Null,
    /// An address in a buffer, as it is when the pointer buffer is filled.
    Buffer {
        /// Index into [`LaunchFile::buffers`](crate::LaunchFile::buffers).
        index: usize,
        /// Bytes from its start.
        offset: u64,
    },
}

/// From 0 on and below 1.
fn unit(random: &mut Rng) -> f64 {
    (random.next() >> 11) as f64 / (1u64 << 53) as f64
}

impl Fill {
    /// The buffers that it holds addresses of.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = usize> {
        let pointers = match self {
            Self::Pointers(pointers) => &pointers[..],
            _ => &[],
        };
        pointers.iter().filter_map(|pointer| match pointer {
            Pointer::Null => None,
            Pointer::Buffer { index, .. } => Some(*index),
        })
    }

    /// A number of an arithmetic progression.
    pub(crate) fn element(start: Number, step: Number, index: u64) -> Number {
        match (start, step) {
            // Both have 64 bits, and so has the index: the product has 128 at most, and one that is cut off fits no type.
            (Number::Int(start), Number::Int(step)) => {
                Number::Int(start.saturating_add(step.saturating_mul(i128::from(index))))
            }
            (start, step) => Number::Float(start.as_f64() + step.as_f64() * index as f64),
        }
    }

    /// The bytes of `count` elements; none for memory that nobody writes. A file's are read elsewhere.
    pub(crate) fn bytes(&self, dtype: DType, count: usize) -> Option<Vec<u8>> {
        let encoded = |numbers: &mut dyn Iterator<Item = Number>| {
            let mut bytes = Vec::with_capacity(count * dtype.size());
            for number in numbers {
                bytes.extend(dtype.encode(number)?);
            }
            Some(bytes)
        };
        match self {
            // Addresses are written when they are known.
            Self::Uninit | Self::File(_) | Self::Pointers(_) => None,
            Self::Values(values) => {
                let mut bytes = encoded(&mut values.iter().copied())?;
                bytes.resize(count * dtype.size(), 0);
                Some(bytes)
            }
            Self::Range { start, step } => {
                encoded(&mut (0..count as u64).map(|index| Self::element(*start, *step, index)))
            }
            Self::Constant(number) => dtype.encode(*number).map(|one| one.repeat(count)),
            Self::Iota => Some((0..count as u64).flat_map(|i| dtype.encode_index(i)).collect()),
            Self::Random { seed, low, high } => {
                let mut random = Rng::new(*seed);
                encoded(&mut (0..count).map(|_| {
                    // Not low + (high - low) * unit: the difference may be too large for a float, and the sum may round up.
                    let unit = unit(&mut random);
                    let value = (low * (1.0 - unit) + high * unit).clamp(*low, high.next_down());
                    match dtype.is_float() {
                        true => Number::Float(value),
                        false => Number::Int(value.floor() as i128),
                    }
                }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_numbers_repeat_and_stay_in_their_range() {
        let fill = |seed| Fill::Random {
            seed,
            low: -2.0,
            high: 3.0,
        };
        let numbers: Vec<i32> = fill(7)
            .bytes(DType::I32, 1000)
            .unwrap()
            .chunks_exact(4)
            .map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        assert_eq!(numbers.iter().min(), Some(&-2));
        assert_eq!(numbers.iter().max(), Some(&2));
        assert_eq!(fill(7).bytes(DType::F32, 64), fill(7).bytes(DType::F32, 64));
        assert_ne!(fill(7).bytes(DType::F32, 64), fill(8).bytes(DType::F32, 64));
    }

    #[test]
    fn the_widest_ranges_stay_finite() {
        let fill = Fill::Random {
            seed: 1,
            low: f64::MIN,
            high: f64::MAX,
        };
        let bytes = fill.bytes(DType::F64, 1000).unwrap();
        let numbers = bytes.as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b));
        assert!(numbers.clone().all(f64::is_finite));
        assert!(numbers.clone().any(|n| n < 0.0) && numbers.clone().any(|n| n > 0.0));
    }

    #[test]
    fn iota_counts() {
        assert_eq!(Fill::Iota.bytes(DType::U16, 3), Some(vec![0, 0, 1, 0, 2, 0]));
        assert_eq!(Fill::Uninit.bytes(DType::U16, 3), None);
        let down = Fill::Range {
            start: Number::Int(5),
            step: Number::Int(-2),
        };
        assert_eq!(down.bytes(DType::I8, 4), Some(vec![5, 3, 1, 0xFF]));
        assert_eq!(down.bytes(DType::U8, 4), None, "-1 does not fit");
        let values = Fill::Values(vec![Number::Int(7), Number::Int(8)]);
        assert_eq!(values.bytes(DType::U8, 3), Some(vec![7, 8, 0]));
    }
}
