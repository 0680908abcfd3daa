//! Safe launchers, a file per family.

mod activation;
mod elementwise;
mod embedding;
mod flash_attention;
mod mask;
mod matmul;
mod norm;
mod permute;
mod pool;
mod qkv;
mod rope;
mod softmax;
mod weights;

pub use activation::Gelu;
pub use flash_attention::FlashOptions;
pub use matmul::MatmulShape;
pub use rope::{RopePairs, RopeShape};
