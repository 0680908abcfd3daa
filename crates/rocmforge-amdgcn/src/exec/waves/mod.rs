//! Waves and workgroups: registers, what a workgroup shares, the loop over instructions, and threads.

pub(crate) mod ctx;
pub(crate) mod group;
mod group_order;
pub(crate) mod gws;
pub(crate) mod threads;
pub(crate) mod wave;
