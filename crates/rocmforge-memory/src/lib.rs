//! A VRAM budget that is a promise: ledger, budget, reservations. No unsafe, no HIP.
