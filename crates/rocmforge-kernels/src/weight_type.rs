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
}

/// What the launchers need to know of a type.
pub(crate) struct Format {
    name: &'static str,
    block_len: usize,
    block_bytes: usize,
    pub(crate) family: &'static str,
    pub(crate) matvec: [Matvec; 4],
    /// In the family `matvec_few`: for matrices of floats with few rows.
    pub(crate) few: Option<&'static str>,
    pub(crate) matmul: &'static str,
    pub(crate) get_rows: &'static str,
    pub(crate) matvec_id: &'static str,
    /// Rows as f16, and the family of that kernel and of the one for packed rows.
    pub(crate) half_rows: &'static str,
    pub(crate) half_rows_family: &'static str,
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
            tiles: concat!("matmul_q8_", $name),
            tiles_of: [concat!("matmul_q8_", $name, "_t1"), concat!("matmul_q8_", $name, "_t2")],
        }
    };
}

macro_rules! format {
    ($name:literal, $len:literal, $bytes:literal) => {
        Format {
            name: $name,
            block_len: $len,
            block_bytes: $bytes,
            family: concat!("weights_", $name),
            matvec: [
                Matvec {
                    most: 1,
                    rows: 4,
                    name: concat!("matvec_", $name, "_m1"),
                },
                Matvec {
                    most: 2,
                    rows: 4,
                    name: concat!("matvec_", $name, "_m2"),
                },
                Matvec {
                    most: 4,
                    rows: 2,
                    name: concat!("matvec_", $name, "_m4"),
                },
                Matvec {
                    most: 8,
                    rows: 2,
                    name: concat!("matvec_", $name, "_m8"),
                },
            ],
            few: None,
            matmul: concat!("matmul_", $name),
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
            few: Some(concat!("matvec_few_", $name)),
            ..format!($name, 1, $bytes)
        }
    };
}

impl WeightType {
    /// Every type.
    pub const ALL: [Self; 16] = [
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
            Self::F32 | Self::F16 | Self::Bf16 => return None,
        })
    }

    /// Whether [`Kernels::pack_weight`](crate::Kernels::pack_weight) takes it: every type but f32, f16 and bf16.
    pub const fn is_packable(self) -> bool {
        self.packed().is_some()
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
