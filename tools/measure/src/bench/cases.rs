//! Cases of the comparison: operations and their shapes.

/// An operation at a shape; what the numbers mean, `Op::plan` of the benches says.
pub(crate) struct Case {
    pub(crate) op: &'static str,
    pub(crate) shape: &'static [usize],
    /// The largest difference that rounding explains, in units of the largest value.
    pub(crate) tolerance: f64,
    /// Fewest bytes of one set of buffers.
    pub(crate) bytes: u64,
}

const N: usize = 1 << 28;

/// Figures that only the order of additions differs in.
const ROUNDING: f64 = 1e-5;
/// Sums of thousands of products.
const SUMS: f64 = 1e-4;

/// Two f16 that are neighbours, of the largest magnitude.
const HALVES: f64 = 1.0 / 1024.0;

/// Besides, weights that were rounded to f16.
const HALF_WEIGHTS: f64 = 1.0 / 512.0;

const fn case(op: &'static str, shape: &'static [usize], tolerance: f64, elements: usize) -> Case {
    Case {
        op,
        shape,
        tolerance,
        bytes: 4 * elements as u64,
    }
}

/// The first is what the shares of the others are of.
pub(crate) const CASES: &[Case] = &[
    case("driver_copy", &[N], 0.0, 2 * N),
    case("copy", &[N], 0.0, 2 * N),
    case("scale", &[N], 0.0, 2 * N),
    case("add", &[N], 0.0, 3 * N),
    case("softmax", &[N / 4096, 4096], ROUNDING, 2 * N),
    case("softmax", &[N / 512, 512], ROUNDING, 2 * N),
    case("softmax", &[2048, 4096], ROUNDING, 2 * 2048 * 4096),
    case("layer_norm", &[N / 4096, 4096], ROUNDING, 2 * N),
    case("layer_norm", &[N / 512, 512], ROUNDING, 2 * N),
    case("layer_norm", &[2048, 4096], ROUNDING, 2 * 2048 * 4096),
    case("rms_norm", &[N / 4096, 4096], ROUNDING, 2 * N),
    case("rms_norm", &[N / 512, 512], ROUNDING, 2 * N),
    case("rms_norm", &[2048, 4096], ROUNDING, 2 * 2048 * 4096),
    case("matmul_nn", &[4096, 4096, 4096], SUMS, 3 * 4096 * 4096),
    case("matmul_nt", &[4096, 4096, 4096], SUMS, 3 * 4096 * 4096),
    case("matmul_nt", &[512, 4096, 4096], SUMS, 5 * 4096 * 1024),
    case("matmul_nt", &[1, 4096, 4096], SUMS, 4096 * 4096),
    case("matmul_f16", &[8192, 8192, 8192], HALVES, 3 * 8192 * 4096),
    case("matmul_f16", &[4096, 4096, 4096], HALVES, 3 * 4096 * 2048),
    case(
        "matmul_f16",
        &[2048, 14_336, 4096],
        HALVES,
        14_336 * 2048 + 1024 * 14_336,
    ),
    case("matmul_f16", &[64, 4096, 4096], HALVES, 4096 * 2048),
    case("matmul_f16", &[8, 4096, 4096], HALVES, 4096 * 2048),
    case("matmul_f16", &[1, 4096, 4096], HALVES, 4096 * 2048),
    case("flash_attention", &[1, 32, 2048, 2048, 128], SUMS, 4 * 32 * 2048 * 128),
    case(
        "flash_attention_causal",
        &[1, 32, 2048, 2048, 128],
        SUMS,
        4 * 32 * 2048 * 128,
    ),
    case("flash_attention", &[4, 16, 1024, 1024, 64], SUMS, 4 * 64 * 1024 * 64),
    case("flash_attention", &[1, 32, 1, 8192, 128], SUMS, 2 * 32 * 8192 * 128),
    case(
        "attention_f16_causal",
        &[1, 32, 2048, 2048, 128],
        HALF_WEIGHTS,
        2 * 32 * 2048 * 128,
    ),
    case(
        "attention_f16_causal",
        &[1, 32, 8192, 8192, 128],
        HALF_WEIGHTS,
        2 * 32 * 8192 * 128,
    ),
    case(
        "attention_f16",
        &[4, 32, 2048, 2048, 64],
        HALF_WEIGHTS,
        2 * 128 * 2048 * 64,
    ),
    decode(&[16, 32, 8, 8192, 128], 16 * 32 * 128 + 16 * 8 * 8192 * 128),
    decode(&[1, 32, 8, 8192, 128], 32 * 128 + 8 * 8192 * 128),
    decode(&[1, 32, 8, 131_072, 128], 32 * 128 + 8 * 131_072 * 128),
];

/// The same operations small enough for the simulated card.
pub(crate) const REHEARSAL: &[Case] = &[
    case("driver_copy", &[4096], 0.0, 2 * 4096),
    case("softmax", &[4, 2048], ROUNDING, 2 * 4 * 2048),
    case("matmul_nt", &[64, 64, 64], SUMS, 3 * 4096),
    case("matmul_f16", &[64, 64, 64], HALVES, 3 * 2048),
    case("flash_attention", &[1, 2, 64, 64, 32], SUMS, 4 * 4096),
    case("attention_f16_causal", &[1, 2, 64, 64, 64], HALF_WEIGHTS, 2 * 2 * 4096),
    decode(&[1, 4, 2, 600, 64], 4 * 64 + 2 * 600 * 64),
];

/// One query of each of so many sequences: batch, heads, heads of keys, keys, elements of a head.
const fn decode(shape: &'static [usize], elements: usize) -> Case {
    case("attention_f16_decode", shape, HALF_WEIGHTS, elements)
}
