//! Sampling: draws the next token from a model's logits, on the CPU.
//!
//! A [`Sampler`] belongs to one sequence. Its stages change the logits or shorten the list of candidates, one after the other, then a
//! token is drawn from the softmax over what is left:
//!
//! | stage | parameters |
//! |---|---|
//! | logit bias | `logit_bias` |
//! | penalties | `repeat_penalty`, `frequency_penalty`, `presence_penalty` over the last `repeat_last_n` tokens, prompt included |
//! | DRY | `dry` |
//! | top-n-sigma, top-k, typical, top-p, min-p, XTC | `top_n_sigma`, `top_k`, `typical_p`, `top_p`, `min_p`, `xtc` |
//! | temperature | `temperature` |
//!
//! This is llama.cpp's order; other libraries put the temperature first, and the same parameters then give another distribution:
//! [`Sampler::with_stages`] takes any order. With [`Mirostat`], the stages that shorten the list are left out.
//!
//! ```
//! use rocmforge_models::sampling::{Sampler, SamplerConfig};
//!
//! let logits = [1.0, 4.0, 3.5, -2.0];
//! let mut sampler = Sampler::new(SamplerConfig { seed: 7, ..SamplerConfig::default() }, 0)?;
//! sampler.accept(3); // the prompt
//! let token = sampler.sample(&logits)?;
//! assert!(token.id == 1 || token.id == 2); // min-p leaves the two most likely
//! sampler.accept(token.id);
//!
//! let mut greedy = Sampler::new(SamplerConfig::greedy(), 0)?;
//! assert_eq!(greedy.sample(&logits)?.id, 1);
//! # Ok::<(), rocmforge_models::sampling::SamplingError>(())
//! ```
//!
//! # Equal seeds, equal text
//!
//! The random numbers are those of Philox4x32-10 under the seed as key and (sequence, number of tokens so far) as counter. A draw does
//! not depend on the other sequences of a batch, nor on draws that were repeated or thrown away. Candidates are ranked by falling
//! logit, equal ones by rising id, and summed up in f64.
//!
//! # From a row's first candidates
//!
//! [`Sampler::sample_top`] draws from the largest logits of a row, which a device has found, the very token that [`Sampler::sample`] draws from
//! the whole row; where they do not decide it, it says so.

mod candidates;
mod chain;
mod config;
mod error;
mod history;
mod logprobs;
mod philox;
mod row;
mod sampler;
pub mod stages;
mod top;

pub use candidates::{Candidate, Candidates, top_logprobs};
pub use chain::Stage;
pub use config::{DRY_BREAKERS, Dry, Mirostat, SamplerConfig, Xtc};
pub use error::{RowReason, SamplingError};
pub use philox::philox4x32;
pub use row::Row;
pub use sampler::{Sampled, Sampler};
pub use top::TopLogits;
