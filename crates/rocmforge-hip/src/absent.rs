//! Counts of the calls of functions that are not simulated.

use parking_lot::Mutex;
use std::collections::BTreeMap;

static CALLS: Mutex<BTreeMap<&'static str, u64>> = Mutex::new(BTreeMap::new());

/// Counts a call.
pub(crate) fn count(name: &'static str) {
    *CALLS.lock().entry(name).or_default() += 1;
}

/// Those that were called, and how often.
pub(crate) fn calls() -> BTreeMap<String, u64> {
    CALLS
        .lock()
        .iter()
        .map(|(name, calls)| ((*name).to_owned(), *calls))
        .collect()
}
