//! Element types: the graph's and the kernels' names.

use rocmforge_kernels::{FloatType, KvType, WeightType};

use crate::DType;

/// The graph's types of weights and the kernels'.
const WEIGHTS: &[(DType, WeightType)] = &[
    (DType::F32, WeightType::F32),
    (DType::F16, WeightType::F16),
    (DType::Bf16, WeightType::Bf16),
    (DType::Q4_0, WeightType::Q4_0),
    (DType::Q4_1, WeightType::Q4_1),
    (DType::Q5_0, WeightType::Q5_0),
    (DType::Q5_1, WeightType::Q5_1),
    (DType::Q8_0, WeightType::Q8_0),
    (DType::Q2K, WeightType::Q2K),
    (DType::Q3K, WeightType::Q3K),
    (DType::Q4K, WeightType::Q4K),
    (DType::Q5K, WeightType::Q5K),
    (DType::Q6K, WeightType::Q6K),
    (DType::Iq4Nl, WeightType::Iq4Nl),
    (DType::Iq4Xs, WeightType::Iq4Xs),
    (DType::Mxfp4, WeightType::Mxfp4),
    (DType::Iq2Xxs, WeightType::Iq2Xxs),
    (DType::Iq2Xs, WeightType::Iq2Xs),
    (DType::Iq2S, WeightType::Iq2S),
    (DType::Iq3Xxs, WeightType::Iq3Xxs),
    (DType::Iq3S, WeightType::Iq3S),
    (DType::Iq1S, WeightType::Iq1S),
    (DType::Iq1M, WeightType::Iq1M),
    (DType::Tq1_0, WeightType::Tq1_0),
    (DType::Tq2_0, WeightType::Tq2_0),
    (DType::Q1_0, WeightType::Q1_0),
    (DType::Q2_0, WeightType::Q2_0),
    (DType::Nvfp4, WeightType::Nvfp4),
];

/// The kernels' name for a type of weights.
pub(super) fn weight_type(dtype: DType) -> Option<WeightType> {
    WEIGHTS.iter().find(|row| row.0 == dtype).map(|row| row.1)
}

/// The kernels' name for a float type.
pub(super) fn float_type(dtype: DType) -> Option<FloatType> {
    match dtype {
        DType::F32 => Some(FloatType::F32),
        DType::F16 => Some(FloatType::F16),
        DType::Bf16 => Some(FloatType::Bf16),
        _ => None,
    }
}

/// The kernels' name for a type of cached keys and values, and of rows that are written by index.
pub(super) fn kv_type(dtype: DType) -> Option<KvType> {
    KvType::ALL.into_iter().find(|&kv| DType::from(kv) == dtype)
}

/// The kernels' name for a type of masks, and of keys and values that FLASH_ATTN_EXT reads where they lie.
pub(super) fn mask_type(dtype: DType) -> Option<KvType> {
    kv_type(dtype).filter(|kv| matches!(kv, KvType::F32 | KvType::F16))
}
