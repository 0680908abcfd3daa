//! The only place this crate takes its locks from.
//!
//! One file, so that a model checker can replace the primitive without touching anything else: under `--cfg loom` it is
//! loom's, and `tests/loom.rs` explores every order in which threads can take it. Otherwise it is `std`'s, behind a
//! wrapper that ignores poisoning: every critical section here leaves the state consistent at each step, and a test that
//! panicked with a lease in its hands must not turn the next test's drop into a second panic.

#[cfg(loom)]
use loom::sync as primitives;
#[cfg(not(loom))]
use std::sync as primitives;
use std::sync::PoisonError;

pub(crate) use primitives::MutexGuard;
// Hints, on which nothing is decided that the mutex does not decide again: no model checker needs to see them.
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// A mutex whose `lock` cannot fail.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(primitives::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(primitives::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
