//! State of a launch, and what changes it: waves, requests to memory, what waves share, and lowered instructions.

pub(crate) mod absence;
pub(crate) mod ctx;
pub(crate) mod fields;
pub(crate) mod grid;
pub(crate) mod races;
pub(crate) mod request;
pub(crate) mod variables;
pub(crate) mod wave;
