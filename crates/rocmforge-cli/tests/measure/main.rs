//! Commands that measure.

mod bench;
mod tune;
