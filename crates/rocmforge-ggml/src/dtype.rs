//! Element types and their storage blocks.

use std::fmt;

use rocmforge_gguf::TensorType;

/// The element type of a tensor: plain numbers, or the block formats of GGUF.
///
/// A block format stores [`DType::block_len`] consecutive elements of a row in [`DType::block_bytes`] bytes; sizes are
/// those of the GGUF specification (`Mxfp6` is not in GGUF: it is the OCP MX format with an E8M0 scale).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // The names are the documentation: they are the field's own.
pub enum DType {
    F32,
    F16,
    Bf16,
    F64,
    I8,
    I16,
    I32,
    I64,
    U32,
    Q4_0,
    Q4_1,
    Q5_0,
    Q5_1,
    Q8_0,
    Q8_1,
    Q2K,
    Q3K,
    Q4K,
    Q5K,
    Q6K,
    Q8K,
    Iq4Nl,
    Iq4Xs,
    Mxfp4,
    Mxfp6,
}

impl DType {
    /// Every type, in declaration order.
    pub const ALL: [Self; 25] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::F64,
        Self::I8,
        Self::I16,
        Self::I32,
        Self::I64,
        Self::U32,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q8_1,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::Q8K,
        Self::Iq4Nl,
        Self::Iq4Xs,
        Self::Mxfp4,
        Self::Mxfp6,
    ];

    const fn block(self) -> (usize, usize) {
        match self {
            Self::F32 | Self::I32 | Self::U32 => (1, 4),
            Self::F16 | Self::Bf16 | Self::I16 => (1, 2),
            Self::F64 | Self::I64 => (1, 8),
            Self::I8 => (1, 1),
            Self::Q4_0 | Self::Iq4Nl => (32, 18),
            Self::Q4_1 => (32, 20),
            Self::Q5_0 => (32, 22),
            Self::Q5_1 => (32, 24),
            Self::Q8_0 => (32, 34),
            Self::Q8_1 => (32, 36),
            Self::Q2K => (256, 84),
            Self::Q3K => (256, 110),
            Self::Q4K => (256, 144),
            Self::Q5K => (256, 176),
            Self::Q6K => (256, 210),
            Self::Q8K => (256, 292),
            Self::Iq4Xs => (256, 136),
            Self::Mxfp4 => (32, 17),
            Self::Mxfp6 => (32, 25),
        }
    }

    /// Elements in one block: 1 for plain numbers.
    #[must_use]
    pub const fn block_len(self) -> usize {
        self.block().0
    }

    /// Bytes of one block; of one element for plain numbers.
    #[must_use]
    pub const fn block_bytes(self) -> usize {
        self.block().1
    }

    /// Whether elements are stored in blocks and have no address of their own.
    #[must_use]
    pub const fn is_quantized(self) -> bool {
        self.block_len() > 1
    }

    /// Whether products and look-ups take weights of this type with f32 activations: F32, F16, BF16, and the block formats of
    /// weights (Q8_1 and Q8_K are formats of activations).
    #[must_use]
    pub const fn is_weight(self) -> bool {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => true,
            Self::Q8_1 | Self::Q8K | Self::Mxfp6 => false,
            _ => self.is_quantized(),
        }
    }

    /// Whether this is F32, F16 or BF16: the types that ops compute on.
    #[must_use]
    pub const fn is_plain_float(self) -> bool {
        matches!(self, Self::F32 | Self::F16 | Self::Bf16)
    }

    /// Whether an element is one number, and no part of a block.
    #[must_use]
    pub const fn is_plain_number(self) -> bool {
        !self.is_quantized()
    }

    /// Whether f32 values can be stored in this type: the plain floats, and the block formats that `rocmforge-gguf` encodes.
    #[must_use]
    pub fn is_encodable(self) -> bool {
        let encoder = || self.tensor_type().is_some_and(rocmforge_gguf::blocks::can_quantize);
        self.is_plain_float() || (self.is_quantized() && encoder())
    }

    /// Bytes of a row of `elements`; `None` if the row is no whole number of blocks, or on overflow.
    #[must_use]
    pub const fn row_bytes(self, elements: usize) -> Option<usize> {
        if !elements.is_multiple_of(self.block_len()) {
            return None;
        }
        (elements / self.block_len()).checked_mul(self.block_bytes())
    }
}

/// GGUF's types and ours, where both have them.
const IN_GGUF: &[(DType, TensorType)] = &[
    (DType::F32, TensorType::F32),
    (DType::F16, TensorType::F16),
    (DType::Bf16, TensorType::Bf16),
    (DType::F64, TensorType::F64),
    (DType::I8, TensorType::I8),
    (DType::I16, TensorType::I16),
    (DType::I32, TensorType::I32),
    (DType::I64, TensorType::I64),
    (DType::Q4_0, TensorType::Q4_0),
    (DType::Q4_1, TensorType::Q4_1),
    (DType::Q5_0, TensorType::Q5_0),
    (DType::Q5_1, TensorType::Q5_1),
    (DType::Q8_0, TensorType::Q8_0),
    (DType::Q8_1, TensorType::Q8_1),
    (DType::Q2K, TensorType::Q2K),
    (DType::Q3K, TensorType::Q3K),
    (DType::Q4K, TensorType::Q4K),
    (DType::Q5K, TensorType::Q5K),
    (DType::Q6K, TensorType::Q6K),
    (DType::Q8K, TensorType::Q8K),
    (DType::Iq4Nl, TensorType::Iq4Nl),
    (DType::Iq4Xs, TensorType::Iq4Xs),
    (DType::Mxfp4, TensorType::Mxfp4),
];

impl DType {
    /// The type's counterpart in GGUF; `None` for those that GGUF does not have.
    #[must_use]
    pub fn tensor_type(self) -> Option<TensorType> {
        IN_GGUF.iter().find(|row| row.0 == self).map(|row| row.1)
    }

    /// The counterpart of a type of GGUF; `None` for those that the graph does not have.
    #[must_use]
    pub fn of_tensor_type(ty: TensorType) -> Option<Self> {
        IN_GGUF.iter().find(|row| row.1 == ty).map(|row| row.0)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::DType;

    #[test]
    fn gguf_bits_per_weight() {
        let bits = |d: DType| d.block_bytes() as f64 * 8.0 / d.block_len() as f64;
        for (dtype, expected) in [
            (DType::Q4_0, 4.5),
            (DType::Q5_1, 6.0),
            (DType::Q8_0, 8.5),
            (DType::Q2K, 2.625),
            (DType::Q3K, 3.4375),
            (DType::Q4K, 4.5),
            (DType::Q6K, 6.5625),
            (DType::Q8K, 9.125),
            (DType::Iq4Xs, 4.25),
            (DType::Mxfp4, 4.25),
            (DType::Mxfp6, 6.25),
            (DType::F32, 32.0),
        ] {
            assert_eq!(bits(dtype), expected, "{dtype}");
        }
    }

    #[test]
    fn sizes_are_those_of_gguf() {
        for &(dtype, ty) in super::IN_GGUF {
            assert_eq!(
                (dtype.block_len(), dtype.block_bytes()),
                (ty.block_len(), ty.block_bytes()),
                "{dtype}"
            );
            assert_eq!(DType::of_tensor_type(ty), Some(dtype));
        }
    }

    #[test]
    fn rows_are_whole_blocks() {
        assert_eq!(DType::Q4_0.row_bytes(64), Some(36));
        assert_eq!(DType::Q4_0.row_bytes(33), None);
        assert_eq!(DType::Q4K.row_bytes(32), None);
        assert_eq!(DType::F16.row_bytes(33), Some(66));
        assert_eq!(DType::F64.row_bytes(usize::MAX), None);
    }
}
