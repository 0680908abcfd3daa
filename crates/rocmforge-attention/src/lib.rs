//! Attention for language models: configuration, shapes, masks and the choice of kernel.
//!
//! `out = softmax(scale q k^T + mask) v` in f32, f16 or bf16, for MHA, GQA and MQA, causal or not, with as many queries and keys as wanted:
//!
//! 1. [`AttentionConfig`] is what a layer of a model fixes: heads, head_dim, scale, causality, mask, layout. Checked once.
//! 2. [`Plan`] adds batch and lengths. It knows every buffer's size, the [`Algorithm`] and the scratch memory it takes, before
//!    anything is allocated. [`Plan::explain`] says why it has that algorithm.
//! 3. [`Attention`] holds the kernels and the scratch memory, and enqueues.
//!
//! [`PagedAttention`] is the same over a cache of keys and values in blocks, whose bookkeeping is [`mod@paged`].
//!
//! ```
//! use rocmforge_attention::{Algorithm, Attention, AttentionConfig, MaskShape};
//! use rocmforge_kernels::Kernels;
//! use rocmforge_runtime::{Bytes, Elems, HipBuffer};
//!
//! let gpu = rocmforge_testkit::gpu(); // a simulated gfx1100
//! let stream = gpu.backend().stream();
//! let kernels = Kernels::load(gpu.backend())?;
//!
//! // Four query heads that share two key and value heads; the batch's second sequence has one token less.
//! let config = AttentionConfig::builder(4, 64).kv_heads(2).causal(true).mask(MaskShape::KeyPadding).build()?;
//! let plan = config.plan(2, 3, 3)?;
//! assert_eq!(plan.algorithm(), Algorithm::FlashMasked);
//! assert_eq!(plan.scratch_bytes(), Bytes(0));
//!
//! let q = HipBuffer::from_slice(stream, &vec![0.5; plan.q_elements()], "q")?;
//! let k = HipBuffer::from_slice(stream, &vec![0.5; plan.kv_elements()], "k")?;
//! let v = HipBuffer::from_slice(stream, &vec![2.0; plan.kv_elements()], "v")?;
//! let hidden = f32::NEG_INFINITY;
//! let mask = HipBuffer::from_slice(stream, &[0.0, 0.0, 0.0, 0.0, 0.0, hidden], "mask")?;
//! let out = HipBuffer::zeroed(stream, Elems(plan.q_elements()), "out")?;
//!
//! let attention = Attention::new(&kernels, plan)?;
//! attention.forward(stream, &q, &k, &v, Some(&mask), &out)?;
//! // Every value is 2, so is every weighted mean of them.
//! assert!(out.to_vec(stream)?.iter().all(|x| (x - 2.0).abs() < 1e-6));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Hidden keys
//!
//! A key is hidden from a query by causality or by a mask value of -inf. A query that sees no key at all gives zeros, and weights of
//! zero, where the formula has no value (0 / 0). Mask values are finite or -inf; NaN and +inf give NaN.

#![forbid(unsafe_code)]

mod attention;
mod attention16;
mod config;
mod error;
mod halves;
pub mod paged;
mod paged_attention;
mod plan;

pub use attention::Attention;
pub use attention16::HalfOperands;
pub use config::{AttentionBuilder, AttentionConfig, Layout, MaskShape};
pub use error::{AttentionError, AttentionResult};
pub use paged_attention::{PagedAlgorithm, PagedAttention, PagedExplain, PagedSplit, Rounding};
pub use plan::{Algorithm, Explain, Plan};
pub use rocmforge_kernels::{FLASH_MAX_HEAD_DIM, FloatType, SequenceLengths};
