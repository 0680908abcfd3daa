//! Test kit for GPU code: leases with exact leak checks, simulated cards, comparison helpers.
