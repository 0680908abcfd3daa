//! HIP's calls: one thin function for each that this crate uses, grouped by object, with the status turned into an error.
//!
//! The table of raw functions is visible in this module only. A function is `unsafe` where it is given a handle or an address:
//! the handle must be live and the address must have as many bytes as the call reads or writes, until the work is done.

pub(crate) mod copy;
pub(crate) mod device;
mod driver;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod stream;

pub(crate) use driver::{Driver, Raw, unique_id};

use rocmforge_hip_sys::{hipGraphExec, ihipEvent_t, ihipGraph, ihipModule_t, ihipModuleSymbol_t, ihipStream_t};
use std::ffi::c_void;

/// Device or pinned memory, by its address.
pub(crate) type Address = Raw<c_void>;
pub(crate) type Stream = Raw<ihipStream_t>;
pub(crate) type Event = Raw<ihipEvent_t>;
pub(crate) type Module = Raw<ihipModule_t>;
pub(crate) type Function = Raw<ihipModuleSymbol_t>;
pub(crate) type Graph = Raw<ihipGraph>;
pub(crate) type GraphExec = Raw<hipGraphExec>;
