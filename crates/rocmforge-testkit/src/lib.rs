//! Test kit for GPU code.
//!
//! A dev-dependency only.

pub mod compare;
pub mod data;
pub mod lock;
pub mod report;
