//! The runtime's own logic, over a fake HIP that can fail, hang and count.

mod fake;

mod basics;
