//! Waves and workgroups: the loop over instructions, the order of workgroups, and host threads.

pub(crate) mod group;
mod group_order;
pub(crate) mod part;
mod spare;
pub(crate) mod threads;
