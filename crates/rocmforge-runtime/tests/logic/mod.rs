//! The runtime's own logic, over a simulated machine whose calls are counted, fail by plan and can be interrupted.

mod basics;
mod device;
mod drops;
mod failures;
mod launch;
mod ordering;
mod pool;
mod races;
mod rig;
mod shared_ledger;
