//! Queued launches of kernels.

use crate::machine::module::Module;
use std::sync::Arc;

/// Kernel arguments of one launch, at most: 64 KiB that a program may ask for, and what lies behind them.
pub(crate) const KERNARG_BYTES: u64 = 68 << 10;

/// A queued launch. Its arguments were copied when it was queued.
#[derive(Clone)]
pub(crate) struct Launch {
    pub(crate) module: Arc<Module>,
    pub(crate) handle: u64,
    pub(crate) kernel: usize,
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_lds: u32,
    pub(crate) kernarg: Vec<u8>,
    /// Its workgroups may wait for each other.
    pub(crate) cooperative: bool,
    /// The allocations its pointer arguments point into.
    pub(crate) given: Vec<Given>,
}

/// A device allocation that a launch was given a pointer into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// Which argument.
    pub(crate) argument: usize,
    /// The pointer.
    pub(crate) address: u64,
    /// The allocation it pointed into when the launch was queued; 0 if that had been freed before.
    pub(crate) id: u64,
}
