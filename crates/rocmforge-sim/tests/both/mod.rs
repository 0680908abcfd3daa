//! The rows that HIP promises on both of its platforms: each is a function of a [`Rig`](crate::rig::Rig), and runs on the
//! simulator in both modes (`cargo test`) and on whatever device the supervisor leases (`tests/gpu`). What the simulator
//! alone can show of a row (reports, order under a schedule, figures) the rig checks there and nowhere else.

pub(crate) mod device;
pub(crate) mod errors;
pub(crate) mod events;
pub(crate) mod host_memory;
pub(crate) mod launches;
pub(crate) mod memcpy;
pub(crate) mod memory;
pub(crate) mod memset;
pub(crate) mod modules;
pub(crate) mod pointers;
pub(crate) mod streams;

/// Every row here, by the name of its test.
#[allow(dead_code)] // counted by `tests/behaviour`
pub(crate) fn rows() -> Vec<&'static str> {
    [
        device::ROWS,
        errors::ROWS,
        events::ROWS,
        host_memory::ROWS,
        launches::ROWS,
        memcpy::ROWS,
        memory::ROWS,
        memset::ROWS,
        modules::ROWS,
        pointers::ROWS,
        streams::ROWS,
    ]
    .concat()
}
