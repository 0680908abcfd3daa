//! The simulated machine: its cards, their memory, modules and handles.

pub(crate) mod advice;
pub(crate) mod array;
pub(crate) mod card;
pub(crate) mod handle;
pub(crate) mod host;
pub(crate) mod host_block;
pub(crate) mod module;
pub(crate) mod pinned;
pub(crate) mod pools;
pub(crate) mod settings;
pub(crate) mod space;
pub(crate) mod steps;
pub(crate) mod texture;
pub(crate) mod thread;
pub(crate) mod trace;
pub(crate) mod unoptimised;
pub(crate) mod virtual_memory;
pub(crate) mod vram;
