//! Tensor types: id, name and block layout of every element format a GGUF file may hold.

use std::fmt;

/// What the table below holds for one type.
struct Layout {
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
}

macro_rules! tensor_types {
    ($($variant:ident = $id:literal, $name:literal, $len:literal, $bytes:literal;)*) => {
        /// The element format of a tensor. A tensor's row is a whole number of blocks: [`TensorType::block_len`]
        /// elements in [`TensorType::block_bytes`] bytes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u32)]
        pub enum TensorType {
            $(#[doc = concat!("`", $name, "`: ", $len, " element(s) in ", $bytes, " byte(s).")] $variant = $id,)*
        }

        impl TensorType {
            /// Every type, by ascending id.
            pub const ALL: &'static [TensorType] = &[$(TensorType::$variant),*];

            /// The type with this id, or `None` for an id that was never given or has been withdrawn
            /// (4, 5, 31 to 33 and 36 to 38).
            pub const fn from_id(id: u32) -> Option<TensorType> {
                match id {
                    $($id => Some(TensorType::$variant),)*
                    _ => None,
                }
            }

            const fn layout(self) -> Layout {
                match self {
                    $(TensorType::$variant => Layout { name: $name, block_len: $len, block_bytes: $bytes },)*
                }
            }
        }
    };
}

// id, name, elements per block, bytes per block.
tensor_types! {
    F32 = 0, "f32", 1, 4;
    F16 = 1, "f16", 1, 2;
    Q4_0 = 2, "q4_0", 32, 18;
    Q4_1 = 3, "q4_1", 32, 20;
    Q5_0 = 6, "q5_0", 32, 22;
    Q5_1 = 7, "q5_1", 32, 24;
    Q8_0 = 8, "q8_0", 32, 34;
    Q8_1 = 9, "q8_1", 32, 36;
    Q2K = 10, "q2_K", 256, 84;
    Q3K = 11, "q3_K", 256, 110;
    Q4K = 12, "q4_K", 256, 144;
    Q5K = 13, "q5_K", 256, 176;
    Q6K = 14, "q6_K", 256, 210;
    Q8K = 15, "q8_K", 256, 292;
    Iq2Xxs = 16, "iq2_xxs", 256, 66;
    Iq2Xs = 17, "iq2_xs", 256, 74;
    Iq3Xxs = 18, "iq3_xxs", 256, 98;
    Iq1S = 19, "iq1_s", 256, 50;
    Iq4Nl = 20, "iq4_nl", 32, 18;
    Iq3S = 21, "iq3_s", 256, 110;
    Iq2S = 22, "iq2_s", 256, 82;
    Iq4Xs = 23, "iq4_xs", 256, 136;
    I8 = 24, "i8", 1, 1;
    I16 = 25, "i16", 1, 2;
    I32 = 26, "i32", 1, 4;
    I64 = 27, "i64", 1, 8;
    F64 = 28, "f64", 1, 8;
    Iq1M = 29, "iq1_m", 256, 56;
    Bf16 = 30, "bf16", 1, 2;
    Tq1_0 = 34, "tq1_0", 256, 54;
    Tq2_0 = 35, "tq2_0", 256, 66;
    Mxfp4 = 39, "mxfp4", 32, 17;
    Nvfp4 = 40, "nvfp4", 64, 36;
    Q1_0 = 41, "q1_0", 128, 18;
    Q2_0 = 42, "q2_0", 64, 18;
}

impl TensorType {
    /// The id that stands in the file.
    pub const fn id(self) -> u32 {
        self as u32
    }

    /// The name as the field writes it, such as `q4_K`.
    pub const fn name(self) -> &'static str {
        self.layout().name
    }

    /// The type with this name, such as `q4_K`, or `None`.
    pub fn from_name(name: &str) -> Option<TensorType> {
        TensorType::ALL.iter().copied().find(|ty| ty.name() == name)
    }

    /// Elements in one block; 1 for plain types.
    pub const fn block_len(self) -> usize {
        self.layout().block_len
    }

    /// Bytes of one block.
    pub const fn block_bytes(self) -> usize {
        self.layout().block_bytes
    }

    /// Bytes of a row of `n` elements, or `None` where `n` is no whole number of blocks or the size exceeds `usize`.
    pub const fn row_bytes(self, n: usize) -> Option<usize> {
        let layout = self.layout();
        if !n.is_multiple_of(layout.block_len) {
            return None;
        }
        (n / layout.block_len).checked_mul(layout.block_bytes)
    }

    /// Storage of one element in bits, such as 4.5 for `q4_K`.
    pub fn bits_per_weight(self) -> f64 {
        (8 * self.block_bytes()) as f64 / self.block_len() as f64
    }
}

impl fmt::Display for TensorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_names_and_sizes_agree() {
        assert_eq!(TensorType::ALL.len(), 35);
        for &ty in TensorType::ALL {
            assert_eq!(TensorType::from_id(ty.id()), Some(ty));
            assert_eq!(TensorType::from_name(ty.name()), Some(ty));
            assert_eq!(ty.row_bytes(3 * ty.block_len()), Some(3 * ty.block_bytes()));
            if ty.block_len() > 1 {
                assert_eq!(ty.row_bytes(ty.block_len() + 1), None);
            }
        }
        assert!(TensorType::ALL.is_sorted_by_key(|ty| ty.id()));
        for dead in [4, 5, 31, 32, 33, 36, 37, 38, 43, u32::MAX] {
            assert_eq!(TensorType::from_id(dead), None);
        }
        assert_eq!(TensorType::F64.row_bytes(usize::MAX), None);
        assert_eq!(TensorType::Q4K.bits_per_weight(), 4.5);
        assert_eq!(TensorType::Q6K.bits_per_weight(), 6.5625);
    }
}
