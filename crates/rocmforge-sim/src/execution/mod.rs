//! Execution: what a machine does when an operation runs, time passes or a planned fault is due.

pub(crate) mod desktop;
pub(crate) mod faults;
pub(crate) mod figures;
pub(crate) mod graphs;
pub(crate) mod host_functions;
pub(crate) mod launch;
pub(crate) mod operation;
mod padding;
pub(crate) mod races;
pub(crate) mod timeline;
pub(crate) mod watches;
