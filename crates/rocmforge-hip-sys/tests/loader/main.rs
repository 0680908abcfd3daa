//! The loader against no library, the distribution's real one, and fakes compiled from C.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod child;
mod distribution;
mod fake;
mod forwarding;
mod misbehaving;
mod search;
