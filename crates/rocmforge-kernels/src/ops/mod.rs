//! Safe launchers, a file per family.

mod activation;
mod cast;
mod elementwise;
mod embedding;
mod flash_attention;
mod mask;
mod matmul;
mod norm;
mod paged;
mod permute;
mod pool;
mod qkv;
mod rope;
mod sampling;
mod softmax;
mod weights;

pub use activation::Gelu;
pub use cast::FloatType;
pub use flash_attention::{FLASH_MAX_HEAD_DIM, FlashOptions};
pub use matmul::MatmulShape;
pub use paged::{KvType, PagedOperands, PagedOptions, PagedShape};
pub use rope::{RopePairs, RopeShape};
pub use sampling::{Draw, Penalties};
