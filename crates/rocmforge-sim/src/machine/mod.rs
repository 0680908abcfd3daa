//! The simulated machine: its cards, their memory, modules and handles, and what every call goes through.

pub(crate) mod callbacks;
pub(crate) mod handle;
pub(crate) mod host;
pub(crate) mod leaks;
pub(crate) mod module;
pub(crate) mod os_thread;
pub(crate) mod pinned;
pub(crate) mod pools;
pub(crate) mod readings;
pub(crate) mod sim;
pub(crate) mod space;
pub(crate) mod trace;
pub(crate) mod unattended;
pub(crate) mod unoptimised;
pub(crate) mod virtual_memory;
pub(crate) mod vram;
