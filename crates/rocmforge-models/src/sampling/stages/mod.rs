//! The stages of a sampler, each a function that changes or shortens a list of candidates.
//!
//! Probabilities are those of the softmax over the candidates that are left. No stage removes the last candidate. Of candidates with
//! equal logits, the lower id ranks higher.

mod dry;
mod penalties;
mod truncate;

pub use dry::dry;
pub(super) use dry::{breakers, dry_with};
pub use penalties::{logit_bias, penalties, temperature};
pub(super) use truncate::min_p_bound;
pub use truncate::{min_p, mirostat, top_k, top_n_sigma, top_p, typical, xtc};
