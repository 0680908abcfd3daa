//! Settings of a card: limits, flags and peers.

use rocmforge_hip_sys::hipDeviceScheduleAuto;
use std::collections::BTreeSet;
use std::ffi::c_uint;

/// Settings that a program can change and read. None of them changes what the card does, apart from its peers.
pub(crate) struct Settings {
    pub(crate) stack: usize,
    pub(crate) heap: usize,
    pub(crate) flags: c_uint,
    /// Cards whose memory its kernels may access.
    pub(crate) peers: BTreeSet<usize>,
}

impl Settings {
    /// `hipCtxCreate` takes any flags.
    pub(crate) fn set_flags(&mut self, flags: c_uint) {
        self.flags = flags;
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stack: 1024,
            heap: 8 << 20,
            flags: hipDeviceScheduleAuto,
            peers: BTreeSet::new(),
        }
    }
}
