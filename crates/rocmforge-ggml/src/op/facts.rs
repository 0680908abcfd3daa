//! Facts of ops: what passes, the planner, validation and checks of indices ask instead of listing ops.

use crate::planner::Overwrites;
use crate::{DType, PagedAttention};

/// What holds of an op with its parameters, whatever its operands hold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub(crate) output: Output,
    pub(crate) overwrites: Overwrites,
    pub(crate) rows: Rows,
    pub(crate) types: Types,
    pub(crate) indices: Indices,
}

/// Where the first output of an op lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// In memory of its own.
    Own,
    /// In its input's memory, and then nothing is computed; or in memory of its own.
    Alias,
    /// In the memory of the second input, of which every element that is not written stays.
    Second,
    /// As [`Self::Second`], and what was there is read.
    SecondRead,
    /// In the memory of the second input if there is one; else in memory of its own.
    SecondIfAny,
}

/// Which operands' rows a row of the result depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rows {
    /// On more than one row, or on where the row is; or no pass gains from knowing.
    Mixed,
    /// On the same row of the first operand and on all of the others, if those are vectors or one matrix.
    First,
    /// On the same row of each operand; of an operand with a single row, on that.
    Each,
}

/// Types of the one operand that may be of several: the weight of a product, the table of GET_ROWS, keys of attention, what SET_ROWS writes
/// to, what is moved or converted; else the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Types {
    F32,
    /// f32, f16, bf16.
    Floats,
    /// These and integers: types of which each element lies by itself.
    Numbers,
    /// Floats and all types in blocks.
    Weights,
    WeightsOrNumbers,
    /// Types that f32 can be written as.
    Encodable,
    /// f32, f16, bf16 and q8_0.
    Caches,
    Any,
}

impl Types {
    pub(crate) fn contain(self, dtype: DType) -> bool {
        match self {
            Self::F32 => dtype == DType::F32,
            Self::Floats => dtype.is_plain_float(),
            Self::Numbers => dtype.is_plain_number(),
            Self::Weights => dtype.is_weight(),
            Self::WeightsOrNumbers => dtype.is_weight() || dtype.is_plain_number(),
            Self::Encodable => dtype.is_encodable(),
            Self::Caches => matches!(dtype, DType::F32 | DType::F16 | DType::Bf16 | DType::Q8_0),
            Self::Any => true,
        }
    }
}

/// Which operands hold indices, and what they must be below.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Indices {
    No,
    /// Those of an operand.
    Of(usize, Below),
    /// Those of two, in the order in which they are checked.
    OfBoth([(usize, Below); 2]),
    /// Those of a paged attention, whose table may hold anything where no token looks.
    Paged(PagedAttention),
}

/// What the indices of an operand must be below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// A number.
    Number(usize),
    /// The elements of an operand.
    Elements(usize),
    /// The first dimension of an operand.
    First(usize),
    /// The rows of each matrix of an operand.
    Rows(usize),
}
