//! Functions that are not simulated: each answers that it is not supported, and is counted.

use crate::process;
use parking_lot::Mutex;
use rocmforge_hip_sys::{hipError_t, hipErrorNotSupported};
use std::collections::BTreeMap;

static CALLS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Counts a call.
pub(crate) fn count(name: &'static str) {
    *CALLS.lock().entry(name).or_default() += 1;
}

/// Counts a call of HIP and answers it.
pub(crate) fn called(name: &'static str) -> hipError_t {
    count(name);
    process::call(|process| process.sim.answered(name, hipErrorNotSupported))
}

/// Those that were called, and how often.
pub(crate) fn calls() -> BTreeMap<String, u64> {
    CALLS
        .lock()
        .iter()
        .map(|(name, calls)| ((*name).to_owned(), *calls))
        .collect()
}
