//! HIP's calls: one thin function for each that this crate uses, grouped by object, with the status turned into an error.
//!
//! The table of raw functions is visible in this module only. A function that is given a [`Handle`] is safe: the handle is live, and
//! what destroys it takes it. A function is `unsafe` where it enqueues work on memory or kernels, which must live, and be left alone,
//! until the work is done; whoever enqueued it has promised that when they are freed.

pub(crate) mod copy;
pub(crate) mod device;
mod driver;
pub(crate) mod event;
pub(crate) mod graph;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod stream;

pub(crate) use driver::{Driver, Handle, unique_id};
pub(crate) use memory::HostMemory;

use rocmforge_hip_sys::{hipGraphExec, ihipEvent_t, ihipGraph, ihipModule_t, ihipModuleSymbol_t, ihipStream_t};
use std::ffi::c_void;

/// Device memory, by its address.
pub(crate) type Address = Handle<c_void>;
pub(crate) type Stream = Handle<ihipStream_t>;
pub(crate) type Event = Handle<ihipEvent_t>;
pub(crate) type Module = Handle<ihipModule_t>;
/// A kernel. Valid while its module is loaded; `launch` is `unsafe` for that reason.
pub(crate) type Function = Handle<ihipModuleSymbol_t>;
pub(crate) type Graph = Handle<ihipGraph>;
pub(crate) type GraphExec = Handle<hipGraphExec>;
