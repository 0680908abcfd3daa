//! The loader against no library, the distribution's real one, and fakes compiled from C.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod child;
mod distribution;
mod fake;
mod forwarding;
#[cfg(feature = "linked")]
mod linked;
mod misbehaving;
mod search;
