//! Element types of a cache of keys and values.

/// Element type of a cache of keys or values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum KvType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16: half the memory of f32; moves logits by some hundredths.
    #[default]
    F16,
    /// The upper half of a binary32, with 8 bits of precision: for models whose keys or values are beyond f16's range.
    Bf16,
    /// ggml's blocks of 32 elements: a scale in f16, the largest magnitude / 127, and 32 signed bytes. 8.5 bits an element; a block with a value that is
    /// not finite, or over 8.3e6, reads as NaN.
    Q8_0,
}

impl KvType {
    /// All types.
    pub const ALL: [Self; 4] = [Self::F32, Self::F16, Self::Bf16, Self::Q8_0];

    /// Neighbouring elements of a head that are stored together.
    pub const fn block_len(self) -> usize {
        match self {
            Self::F32 | Self::F16 | Self::Bf16 => 1,
            Self::Q8_0 => 32,
        }
    }

    /// Bytes of [`block_len`](Self::block_len) elements.
    pub const fn block_bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
            Self::Q8_0 => 34,
        }
    }

    /// What the address of a cache must be a multiple of, in bytes.
    pub const fn alignment(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 | Self::Q8_0 => 2,
        }
    }

    /// Bytes of so many elements: whole blocks. `None` if they are not, or are more than can be counted.
    pub const fn byte_len(self, elements: usize) -> Option<usize> {
        if elements.is_multiple_of(self.block_len()) {
            (elements / self.block_len()).checked_mul(self.block_bytes())
        } else {
            None
        }
    }

    /// The type's name in kernels, and in graphs of ggml.
    pub const fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
        }
    }
}

/// The name of a kernel that there is for each type: what stands before and behind the type's name.
macro_rules! by_kv {
    ($kv:expr, $start:literal $(, $end:literal)*) => {
        match $kv {
            $crate::KvType::F32 => concat!($start, "f32" $(, $end)*),
            $crate::KvType::F16 => concat!($start, "f16" $(, $end)*),
            $crate::KvType::Bf16 => concat!($start, "bf16" $(, $end)*),
            $crate::KvType::Q8_0 => concat!($start, "q8_0" $(, $end)*),
        }
    };
}
pub(crate) use by_kv;
