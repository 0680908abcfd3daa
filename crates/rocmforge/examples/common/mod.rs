//! Shared parts of the examples `generate` and `chat`: options, devices, loading, progress and figures.

pub(crate) mod load;
pub(crate) mod machine;
pub(crate) mod options;
pub(crate) mod progress;
pub(crate) mod report;
