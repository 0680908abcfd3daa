//! Safe launchers, a file per family.

mod activation;
mod cast;
mod elementwise;
mod embedding;
mod flash_attention;
mod flash_attn_ext;
mod map;
mod mask;
mod matmul;
mod norm;
mod paged;
mod permute;
mod pool;
mod qkv;
mod reduce;
mod rope;
mod sampling;
mod set_rows;
mod softmax;
mod strided;
mod views;
mod weights;

pub use activation::Gelu;
pub use cast::FloatType;
pub use flash_attention::{FLASH_MAX_HEAD_DIM, FlashOptions};
pub use flash_attn_ext::{ExtMask, ExtOperand, ExtOperands, ExtOptions, ExtShape};
pub use map::{Binary, Gate, Map};
pub use matmul::MatmulShape;
pub use paged::{KvType, PagedOperands, PagedOptions, PagedShape};
pub use rope::{RopePairs, RopeShape};
pub use sampling::{Draw, Penalties};
pub use set_rows::{RowIds, RowLists};
pub use softmax::SoftmaxBias;
pub use strided::{Element, StridedCopy};
pub use views::{ViewStrides, ViewsShape};
