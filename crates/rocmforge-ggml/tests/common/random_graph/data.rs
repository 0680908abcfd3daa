//! Data of leafs: rules that give the same bytes from the same seed.

use rocmforge_ggml::{DType, TensorDesc};
use rocmforge_testkit::data::rng;
use serde::{Deserialize, Serialize};

use super::super::reference::values::encode;
use super::super::weights::weight;

/// A rule for the elements of a leaf, in the order in which they lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Data {
    /// Uniform in `low..high`. Block formats without an encoder have blocks of their own with a small scale.
    Uniform { low: f32, high: f32 },
    /// Whole numbers below a bound.
    Whole { below: usize },
    /// Whole numbers below a bound, no two alike in a row.
    Distinct { below: usize },
    /// A mask: runs of 0, of -inf and of numbers in -1..1. The first column is never -inf.
    Mask,
}

impl Data {
    /// The bytes of a leaf.
    pub(crate) fn bytes(self, desc: &TensorDesc, seed: u64) -> Vec<u8> {
        let mut random = rng(seed).quiet();
        let block = desc.dtype.block_len();
        let count = desc.byte_size() / desc.dtype.block_bytes() * block;
        let cols = desc.shape.last().copied().unwrap_or(1).max(1);
        let values: Vec<f64> = match self {
            Self::Uniform { .. } if desc.dtype.is_quantized() && !desc.dtype.is_encodable() => {
                return weight(desc.dtype, count / block, block, seed).0;
            }
            Self::Uniform { low, high } => (0..count).map(|_| f64::from(random.uniform(low, high))).collect(),
            Self::Whole { below } => (0..count).map(|_| random.below(below.max(1)) as f64).collect(),
            Self::Distinct { below } => {
                let mut row = || {
                    let mut all: Vec<usize> = (0..below).collect();
                    for i in 0..cols.min(below) {
                        all.swap(i, i + random.below(below - i));
                    }
                    all.truncate(cols);
                    all
                };
                let rows = (0..count.div_ceil(cols)).flat_map(|_| row());
                rows.map(|i| i as f64).collect()
            }
            Self::Mask => {
                let value = |at: usize| match random.below(3) {
                    0 if !at.is_multiple_of(cols) => f64::NEG_INFINITY,
                    1 => 0.0,
                    _ => f64::from(random.uniform(-1.0, 1.0)),
                };
                (0..count).map(value).collect()
            }
        };
        debug_assert!(desc.dtype != DType::F32 || values.len() == count);
        encode(desc.dtype, &values)
    }
}
