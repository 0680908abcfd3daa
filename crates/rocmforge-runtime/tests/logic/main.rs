//! The runtime's own logic, over a fake HIP that can fail, hang and count.

mod fake;

mod basics;
mod device;
mod drops;
mod failures;
mod launch;
mod ordering;
mod races;
