//! Types of weights: their blocks, and the kernels that read them.

/// How weights lie in memory. The quantised ones are ggml's blocks along k.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WeightType {
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    Bf16,
    /// 4 bits, a scale for 32.
    Q4_0,
    /// 4 bits, a scale and a minimum for 32.
    Q4_1,
    /// 5 bits, a scale for 32.
    Q5_0,
    /// 5 bits, a scale and a minimum for 32.
    Q5_1,
    /// 8 bits, a scale for 32.
    Q8_0,
    /// 2 bits, in blocks of 256 with a scale and a minimum for 16.
    Q2K,
    /// 3 bits, in blocks of 256 with a scale for 16.
    Q3K,
    /// 4 bits, in blocks of 256 with a scale and a minimum for 32.
    Q4K,
    /// 5 bits, in blocks of 256 with a scale and a minimum for 32.
    Q5K,
    /// 6 bits, in blocks of 256 with a scale for 16.
    Q6K,
    /// An index of 4 bits into 16 values, a scale for 32.
    Iq4Nl,
    /// The same in blocks of 256 with a scale for 32.
    Iq4Xs,
    /// A float of 4 bits, a power of two for 32.
    Mxfp4,
    /// A codebook of eight magnitudes, in blocks of 256 with a scale for 32.
    Iq2Xxs,
    /// The same with a larger codebook and a scale for 16.
    Iq2Xs,
    /// The same with a codebook of 1024 and every sign.
    Iq2S,
    /// A codebook of four magnitudes, in blocks of 256 with a scale for 32.
    Iq3Xxs,
    /// The same with a larger codebook and every sign.
    Iq3S,
    /// A codebook of eight values of -1, 0 and 1, in blocks of 256 with a scale and a shift for 32.
    Iq1S,
    /// The same with a scale for 16 and a shift for 8.
    Iq1M,
    /// -1, 0 or 1, five to a byte, a scale for 256.
    Tq1_0,
    /// The same, four to a byte.
    Tq2_0,
    /// A sign, a scale for 128.
    Q1_0,
    /// -1, 0, 1 or 2, a scale for 64.
    Q2_0,
    /// A float of 4 bits, a float of 8 bits for 16.
    Nvfp4,
}

/// What the launchers need to know of a type.
pub(crate) struct Format {
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
    pub(crate) family: &'static str,
    pub(crate) products: Products,
    /// In the family `matvec_block`: for matrices of floats with few rows.
    pub(crate) block: Option<&'static str>,
    pub(crate) get_rows: &'static str,
    pub(crate) matvec_id: &'static str,
    /// Rows as f16, and the family of that kernel and of the one for packed rows.
    pub(crate) half_rows: &'static str,
    pub(crate) half_rows_family: &'static str,
}

/// Kernels of products of a type.
pub(crate) enum Products {
    /// Those of RF_WEIGHTS: for few rows of activations, and tiles for more.
    Each { matvec: [Matvec; 4], matmul: &'static str },
    /// That of RF_WEIGHTS_FEW for eight rows of activations at a time. [`Format::matvec_id`] is the one for one row.
    Eights(Matvec),
}

/// A kernel of products with few rows of activations.
pub(crate) struct Matvec {
    /// The most rows of activations.
    pub(crate) most: usize,
    /// Rows of weights that 32 lanes take together: `ROWS` of the kernel.
    pub(crate) rows: u32,
    pub(crate) name: &'static str,
}

/// Kernels of packed matrices of a type.
pub(crate) struct Packed {
    pub(crate) family: &'static str,
    /// For one row of activations in f32: one matrix, two or three, gate and up. All have as many rows to a group.
    pub(crate) row: &'static str,
    pub(crate) three: &'static str,
    pub(crate) gated: &'static str,
    pub(crate) group: u32,
    /// For several rows in 8 bits.
    pub(crate) matvec: [Matvec; 3],
    /// Makes them, in the family `pack_weights`.
    pub(crate) pack: &'static str,
    /// In the family `packed_rows`.
    pub(crate) matmul: &'static str,
    pub(crate) get_rows: &'static str,
    /// In the family [`Format::half_rows_family`].
    pub(crate) half_rows: &'static str,
    /// The family of chosen experts, and its kernels. That for gate and up and that for a sum have as many rows to a group as those for one row.
    pub(crate) experts: &'static str,
    pub(crate) experts_gated: &'static str,
    pub(crate) experts_sum: &'static str,
    pub(crate) experts_pairs: &'static str,
    /// The family of products on the matrix unit, and its kernels for 16 and 32 rows of activations.
    pub(crate) tiles: &'static str,
    pub(crate) tiles_of: [&'static str; 2],
}

/// `$rows` and `$more`: the arguments of RF_MATVEC_Q8 in the kernel's source.
macro_rules! packed {
    ($name:literal, $rows:literal, $more:literal) => {
        Packed {
            family: concat!("matvec_q8_", $name),
            row: concat!("matvec_q8_", $name, "_row"),
            three: concat!("matvec_q8_", $name, "_three"),
            gated: concat!("matvec_q8_", $name, "_gated"),
            group: $rows,
            matvec: [
                Matvec {
                    most: 2,
                    rows: $more,
                    name: concat!("matvec_q8_", $name, "_m2"),
                },
                Matvec {
                    most: 4,
                    rows: $more,
                    name: concat!("matvec_q8_", $name, "_m4"),
                },
                Matvec {
                    most: 8,
                    rows: 2,
                    name: concat!("matvec_q8_", $name, "_m8"),
                },
            ],
            pack: concat!("pack_", $name),
            matmul: concat!("matmul_packed_", $name),
            get_rows: concat!("get_rows_packed_", $name),
            half_rows: concat!("half_rows_packed_", $name),
            experts: concat!("experts_q8_", $name),
            experts_gated: concat!("experts_", $name, "_gated"),
            experts_sum: concat!("experts_", $name, "_sum"),
            experts_pairs: concat!("experts_", $name, "_pairs"),
            tiles: concat!("packed16_", $name),
            tiles_of: [concat!("packed16_", $name, "_t1"), concat!("packed16_", $name, "_t2")],
        }
    };
}

/// A matvec kernel of RF_WEIGHTS: the name of its type, rows of activations and of weights.
macro_rules! matvec {
    ($name:literal, $most:literal, $rows:literal) => {
        Matvec {
            most: $most,
            rows: $rows,
            name: concat!("matvec_", $name, "_m", $most),
        }
    };
}

/// `few`: a type of RF_WEIGHTS_FEW.
macro_rules! format {
    (few $name:literal, $len:literal, $bytes:literal) => {
        Format {
            family: concat!("weights_few_", $name),
            products: Products::Eights(matvec!($name, 8, 2)),
            block: None,
            matvec_id: concat!("matvec_", $name),
            half_rows_family: concat!("half_rows_few_", $name),
            ..format!($name, $len, $bytes)
        }
    };
    ($name:literal, $len:literal, $bytes:literal) => {
        Format {
            name: $name,
            block_len: $len,
            block_bytes: $bytes,
            family: concat!("weights_", $name),
            products: Products::Each {
                matvec: [
                    matvec!($name, 1, 4),
                    matvec!($name, 2, 4),
                    matvec!($name, 4, 2),
                    matvec!($name, 8, 2),
                ],
                matmul: concat!("matmul_", $name),
            },
            block: None,
            get_rows: concat!("get_rows_", $name),
            matvec_id: concat!("matvec_id_", $name),
            half_rows: concat!("half_rows_", $name),
            half_rows_family: concat!("half_rows_", $name),
        }
    };
}

macro_rules! float {
    ($name:literal, $bytes:literal) => {
        Format {
            block: Some(concat!("matvec_block_", $name)),
            ..format!($name, 1, $bytes)
        }
    };
}

impl WeightType {
    /// Every type.
    pub const ALL: [Self; 28] = [
        Self::F32,
        Self::F16,
        Self::Bf16,
        Self::Q4_0,
        Self::Q4_1,
        Self::Q5_0,
        Self::Q5_1,
        Self::Q8_0,
        Self::Q2K,
        Self::Q3K,
        Self::Q4K,
        Self::Q5K,
        Self::Q6K,
        Self::Iq4Nl,
        Self::Iq4Xs,
        Self::Mxfp4,
        Self::Iq2Xxs,
        Self::Iq2Xs,
        Self::Iq2S,
        Self::Iq3Xxs,
        Self::Iq3S,
        Self::Iq1S,
        Self::Iq1M,
        Self::Tq1_0,
        Self::Tq2_0,
        Self::Q1_0,
        Self::Q2_0,
        Self::Nvfp4,
    ];

    pub(crate) const fn format(self) -> &'static Format {
        match self {
            Self::F32 => &float!("f32", 4),
            Self::F16 => &float!("f16", 2),
            Self::Bf16 => &float!("bf16", 2),
            Self::Q4_0 => &format!("q4_0", 32, 18),
            Self::Q4_1 => &format!("q4_1", 32, 20),
            Self::Q5_0 => &format!("q5_0", 32, 22),
            Self::Q5_1 => &format!("q5_1", 32, 24),
            Self::Q8_0 => &format!("q8_0", 32, 34),
            Self::Q2K => &format!("q2_k", 256, 84),
            Self::Q3K => &format!("q3_k", 256, 110),
            Self::Q4K => &format!("q4_k", 256, 144),
            Self::Q5K => &format!("q5_k", 256, 176),
            Self::Q6K => &format!("q6_k", 256, 210),
            Self::Iq4Nl => &format!("iq4_nl", 32, 18),
            Self::Iq4Xs => &format!("iq4_xs", 256, 136),
            Self::Mxfp4 => &format!("mxfp4", 32, 17),
            Self::Iq2Xxs => &format!(few "iq2_xxs", 256, 66),
            Self::Iq2Xs => &format!(few "iq2_xs", 256, 74),
            Self::Iq2S => &format!(few "iq2_s", 256, 82),
            Self::Iq3Xxs => &format!(few "iq3_xxs", 256, 98),
            Self::Iq3S => &format!(few "iq3_s", 256, 110),
            Self::Iq1S => &format!(few "iq1_s", 256, 50),
            Self::Iq1M => &format!(few "iq1_m", 256, 56),
            Self::Tq1_0 => &format!(few "tq1_0", 256, 54),
            Self::Tq2_0 => &format!(few "tq2_0", 256, 66),
            Self::Q1_0 => &format!(few "q1_0", 128, 18),
            Self::Q2_0 => &format!(few "q2_0", 64, 18),
            Self::Nvfp4 => &format!(few "nvfp4", 64, 36),
        }
    }

    /// `None` for types without packed matrices.
    pub(crate) const fn packed(self) -> Option<&'static Packed> {
        Some(match self {
            Self::Q4_0 => &packed!("q4_0", 4, 4),
            Self::Q4_1 => &packed!("q4_1", 4, 4),
            Self::Q5_0 => &packed!("q5_0", 4, 4),
            Self::Q5_1 => &packed!("q5_1", 4, 2),
            Self::Q8_0 => &packed!("q8_0", 2, 2),
            Self::Q2K => &packed!("q2_k", 4, 2),
            Self::Q3K => &packed!("q3_k", 4, 2),
            Self::Q4K => &packed!("q4_k", 4, 2),
            Self::Q5K => &packed!("q5_k", 4, 2),
            Self::Q6K => &packed!("q6_k", 4, 2),
            Self::Iq4Nl => &packed!("iq4_nl", 4, 2),
            Self::Iq4Xs => &packed!("iq4_xs", 4, 2),
            Self::Mxfp4 => &packed!("mxfp4", 4, 2),
            _ => return None,
        })
    }

    /// Whether [`Kernels::pack_weight`](crate::Kernels::pack_weight) takes it: the types of blocks up to [`Self::Mxfp4`].
    pub const fn is_packable(self) -> bool {
        self.packed().is_some()
    }

    /// The most rows of activations of one [product](crate::Kernels::matmul_weight): what a grid has blocks for along its second dimension, of 64 rows or
    /// of eight.
    pub const fn product_rows(self) -> usize {
        match self.format().products {
            Products::Each { .. } => 64 * 65_535,
            Products::Eights(_) => 8 * 65_535,
        }
    }

    /// Its name in lower case, as in the names of the kernels.
    pub const fn name(self) -> &'static str {
        self.format().name
    }

    /// Weights of a block: rows are whole blocks. 1 for the floats.
    pub const fn block_len(self) -> usize {
        self.format().block_len
    }

    /// Bytes of a block.
    pub const fn block_bytes(self) -> usize {
        self.format().block_bytes
    }

    /// What the address of the weights must be a multiple of: 1, 2 or 4.
    pub const fn alignment(self) -> usize {
        match self.block_bytes() {
            bytes if bytes % 4 == 0 => 4,
            bytes if bytes % 2 == 0 => 2,
            _ => 1,
        }
    }

    /// Bytes of `k` weights. `None` if `k` is no multiple of the block, or the product overflows.
    pub const fn row_bytes(self, k: usize) -> Option<usize> {
        match k % self.block_len() {
            0 => (k / self.block_len()).checked_mul(self.block_bytes()),
            _ => None,
        }
    }
}

impl std::fmt::Display for WeightType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
