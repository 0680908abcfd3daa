//! The runtime's own logic, over a fake HIP that can fail, hang and count.

mod fake;

mod basics;
mod device;
#[path = "../common/drop_orders.rs"]
mod drop_orders;
mod drops;
mod failures;
mod launch;
mod ordering;
mod pool;
mod races;
mod shared_ledger;
