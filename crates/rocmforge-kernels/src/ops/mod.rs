//! Safe launchers, a file per family.

mod activation;
mod attention16;
mod attention16_split;
mod cast;
mod delta_rows;
mod elementwise;
mod expert_tiles;
mod experts;
mod flash_attention;
mod flash_attn_ext;
mod glu_halves;
mod half_rows;
mod latent_kv;
mod map;
mod mask;
mod matmul;
mod matmul16;
mod matmul_halves;
mod matvec_block;
mod matvec_q8;
mod matvec_q8_joint;
mod norm;
mod packed16;
mod paged;
mod paged16;
mod paged_split;
mod paged_wide16;
mod permute;
mod pool;
mod qkv;
mod recurrent;
mod recurrent16;
mod reduce;
mod rope;
mod rope_kv;
mod route;
mod row_input;
mod sampling;
mod sequence_lengths;
mod set_rows;
mod softmax;
mod strided;
mod sum_parts;
mod unary;
mod views;
mod weights;

/// What each file declares.
pub(crate) const DECLARED: &[&[crate::declared::Declared]] = &[
    activation::DECLARED,
    attention16::DECLARED,
    attention16_split::DECLARED,
    cast::DECLARED,
    delta_rows::DECLARED,
    elementwise::DECLARED,
    expert_tiles::DECLARED,
    expert_tiles::PRODUCTS,
    experts::GATED,
    experts::SUM,
    experts::PAIRS,
    flash_attention::DECLARED,
    flash_attn_ext::DECLARED,
    glu_halves::DECLARED,
    half_rows::DECLARED,
    half_rows::PLAIN,
    half_rows::PACKED,
    latent_kv::DECLARED,
    map::DECLARED,
    mask::DECLARED,
    matmul::DECLARED,
    matmul16::DECLARED,
    matmul_halves::PLAIN,
    matmul_halves::PACKED,
    matvec_block::DECLARED,
    matvec_q8::DECLARED,
    matvec_q8::QUANTIZE,
    matvec_q8::PACKING,
    matvec_q8::PACKING_ROWS,
    matvec_q8::ROW,
    matvec_q8::MANY,
    matvec_q8::TABLE,
    matvec_q8_joint::JOINT,
    matvec_q8_joint::GATED,
    norm::DECLARED,
    paged::DECLARED,
    paged16::DECLARED,
    paged_split::DECLARED,
    paged_wide16::DECLARED,
    permute::DECLARED,
    packed16::DECLARED,
    packed16::FORMS,
    packed16::JOINT,
    packed16::JOINT_FORMS,
    pool::DECLARED,
    qkv::DECLARED,
    recurrent::DECLARED,
    recurrent16::DECLARED,
    reduce::DECLARED,
    rope::DECLARED,
    rope_kv::DECLARED,
    route::DECLARED,
    sampling::DECLARED,
    set_rows::DECLARED,
    softmax::DECLARED,
    strided::DECLARED,
    views::DECLARED,
    weights::PRODUCTS,
    weights::ROWS,
    weights::EXPERTS,
];

pub use attention16::{Attention16Operands, Attention16Options, Attention16Shape, Visible};
pub use cast::FloatType;
pub use delta_rows::DeltaNetRows;
pub use expert_tiles::ExpertTiles;
pub use experts::{BesideExperts, ExpertStack, ExpertUnit};
pub use flash_attention::{FLASH_MAX_HEAD_DIM, FlashOptions};
pub use flash_attn_ext::{ExtMask, ExtOperand, ExtOperands, ExtOptions, ExtShape};
pub use half_rows::{HalfRows, WeightMatrix};
pub use latent_kv::{LatentKvOperands, LatentKvShape, LatentTurn};
pub use map::{Binary, Map};
pub use matmul::MatmulShape;
pub use matmul16::{Half, Matmul16Activation, Matmul16Operands, Matmul16Output, Matmul16Shape};
pub use matvec_block::BlockProduct;
pub use matvec_q8::{PackedWeights, Q8Activations, Residual, WeightPacking};
pub use matvec_q8_joint::JointProduct;
pub use norm::Rounded;
pub use packed16::Packed16Tiles;
pub use paged::{PagedOperands, PagedOptions, PagedShape};
pub use recurrent::{DeltaNet, Sequences, SsmConv, SsmScan, StateSlots, States};
pub use rope::{RopePairs, RopeShape};
pub use rope_kv::{HeadNorms, RopeKvOperands};
pub use route::{Route, RouteGate};
pub use row_input::{RowInput, RowNorm};
pub use sequence_lengths::SequenceLengths;
pub use set_rows::{RowIds, RowLists};
pub use softmax::SoftmaxBias;
pub use strided::{Element, StridedCopy};
pub use unary::{GluKind, Unary};
pub use views::{ViewStrides, ViewsShape};
