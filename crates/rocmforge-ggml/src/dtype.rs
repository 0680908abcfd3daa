//! Element types and their storage blocks.

use std::fmt;

use rocmforge_gguf::TensorType;
use rocmforge_kernels::KvType;

/// The types, in lists of those with a counterpart of the same name in GGUF, each list with one after it that GGUF does not have.
macro_rules! types {
    ($([$($name:ident)*] $own:ident)*) => {
        /// The element type of a tensor: plain numbers, or the block formats of GGUF.
        ///
        /// A block format stores [`DType::block_len`] consecutive elements of a row in [`DType::block_bytes`] bytes; sizes are
        /// those of the GGUF specification (`Mxfp6` is not in GGUF: it is the OCP MX format with an E8M0 scale).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[allow(missing_docs)] // The names are the documentation: they are the field's own.
        pub enum DType {
            $($($name,)* $own,)*
        }

        impl DType {
            /// Every type, in declaration order.
            pub const ALL: [Self; [$($(stringify!($name),)* stringify!($own),)*].len()] =
                [$($(Self::$name,)* Self::$own,)*];

            /// The type's counterpart in GGUF; `None` for those that GGUF does not have.
            #[must_use]
            pub const fn tensor_type(self) -> Option<TensorType> {
                match self {
                    $($(Self::$name => Some(TensorType::$name),)* Self::$own => None,)*
                }
            }
        }
    };
}

types! {
    [F32 F16 Bf16 F64 I8 I16 I32 I64] U32
    [Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 Q8_1 Q2K Q3K Q4K Q5K Q6K Q8K Iq1S Iq1M Iq2Xxs Iq2Xs Iq2S Iq3Xxs Iq3S Iq4Nl Iq4Xs Tq1_0 Tq2_0 Q1_0
     Q2_0 Mxfp4 Nvfp4] Mxfp6
}

impl DType {
    const fn block(self) -> (usize, usize) {
        match self.tensor_type() {
            Some(ty) => (ty.block_len(), ty.block_bytes()),
            None => match self {
                Self::Mxfp6 => (32, 25),
                // U32, whose name GGUF does not have.
                _ => (1, 4),
            },
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

    /// The counterpart of a type of GGUF; `None` for those that the graph does not have.
    #[must_use]
    pub fn of_tensor_type(ty: TensorType) -> Option<Self> {
        Self::ALL.into_iter().find(|dtype| dtype.tensor_type() == Some(ty))
    }
}

impl From<KvType> for DType {
    fn from(kv: KvType) -> Self {
        match kv {
            KvType::F32 => Self::F32,
            KvType::F16 => Self::F16,
            KvType::Bf16 => Self::Bf16,
            KvType::Q8_0 => Self::Q8_0,
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::{DType, TensorType};

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
    fn every_type_of_gguf_is_there_once() {
        for &ty in TensorType::ALL {
            let dtype = DType::of_tensor_type(ty).expect("every type has a counterpart");
            assert_eq!(dtype.tensor_type(), Some(ty));
        }
        let counterparts = DType::ALL.iter().filter(|dtype| dtype.tensor_type().is_some());
        assert_eq!(counterparts.count(), TensorType::ALL.len());
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
