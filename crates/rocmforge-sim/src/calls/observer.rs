//! Observer of calls: what a test sees of each HIP call, before and after it.

use crate::calls::sim::SimHost;
use crate::faults::arguments::Arguments;
use rocmforge_hip_sys::{hipError_t, hipEvent_t, hipStream_t};
use std::sync::Arc;

/// A HIP call, as it begins or as it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObservedCall {
    /// The function.
    pub api: &'static str,
    /// The first stream among its arguments, by its handle; 0 is the null stream. None: no argument is a stream.
    pub stream: Option<usize>,
    /// The first event among its arguments, by its handle.
    pub event: Option<usize>,
    /// What it answers. None: it begins.
    pub status: Option<hipError_t>,
}

/// What is called with each.
pub(super) type Observer = dyn Fn(&ObservedCall) + Send + Sync;

impl SimHost {
    /// Calls `observer` as each HIP call begins, before anything of it happens, and as it ends, on the thread that makes it. A test can
    /// keep the order of calls so, with the streams and events that they name, or do something in the middle of a call of the
    /// program. The observer may call HIP; it sees its own calls too.
    pub fn set_observer(&self, observer: impl Fn(&ObservedCall) + Send + Sync + 'static) {
        *self.observer.lock() = Some(Arc::new(observer));
    }

    pub(super) fn observe(&self, api: &'static str, arguments: Arguments<'_>, status: Option<hipError_t>) {
        let observer = self.observer.lock().clone();
        if let Some(observer) = observer {
            observer(&ObservedCall {
                api,
                stream: arguments.first().map(hipStream_t::addr),
                event: arguments.first().map(hipEvent_t::addr),
                status,
            });
        }
    }
}
