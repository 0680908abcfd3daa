//! Preflight of a card: findings against its use, and findings to know before. Nothing is changed.

mod amd;
mod finding;
mod nvidia;

pub(crate) use amd::{Facts, WITHOUT_CWSR, old_rocm};
pub use finding::Consent;
pub(crate) use finding::{Finding, Level, note};
pub(crate) use nvidia::NvidiaFacts;
