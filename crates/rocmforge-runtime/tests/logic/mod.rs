//! The runtime's own logic, over a fake HIP that can fail, hang and count.

mod basics;
mod device;
mod drops;
mod failures;
mod fake;
mod launch;
mod ordering;
mod pool;
mod races;
mod shared_ledger;
