//! References: each kernel's results in f64, written from the mathematical definition and never from the kernel.
//!
//! Slow and plain on purpose. Inputs are the f32 values the device sees; results are f64, so that a comparison shows the
//! kernel's error and not the reference's.
//!
//! ```
//! use rocmforge_kernels::reference;
//!
//! let rows = reference::softmax(&[0.0, 0.0, 1.0, f32::NEG_INFINITY], 2, 1.0);
//! assert_eq!(rows, [0.5, 0.5, 1.0, 0.0]);
//! ```

mod activation;
mod attention;
mod attention16;
mod cast;
mod elementwise;
mod kv;
mod layout;
mod map;
mod matmul;
mod norm;
mod packed;
mod paged;
mod q8;
mod reduce;
mod rope;
mod sampling;
mod softmax;
mod strided;
mod weights;

pub use activation::{erf, geglu, gelu_erf, gelu_tanh, silu, softcap, swiglu};
pub use attention::{ExtScores, attention, flash_attn_ext, qk_matmul, weighted_matmul};
pub use attention16::{Attention16Scores, attention16};
pub use cast::{float_values, round_to};
pub use elementwise::{add, add_row_bias, mul, mul_row, scale};
pub use kv::{kv_bytes, kv_rounded, kv_values, quantize_q8_0};
pub use layout::{kv_replicate, mean_pool, swap_middle, transpose};
pub use map::{binary_repeat, glu, map};
pub use matmul::{matmul, matmul16};
pub use norm::{l2_normalize, layer_norm, rms_norm};
pub use packed::packed;
pub use paged::paged_attention;
pub use q8::{matvec_q8, quantize_q8};
pub use reduce::{add_id, argsort, cumsum, sum_rows};
pub use rope::{rope, rope_at, rope_sections, rope_tables};
pub use sampling::{arg_max, top_k};
pub use softmax::{alibi_slope, causal_mask, causal_visible, diag_mask, mask, softmax, softmax_biased, softmax_masked};
pub use strided::{set_rows_places, strided_places};
pub use weights::{dequantize, get_rows_weight, matmul_id, matmul_weight};

pub(crate) fn wide(x: &[f32]) -> Vec<f64> {
    x.iter().map(|&v| f64::from(v)).collect()
}
