//! Call observer: a function that is called before and after each HIP call.

use crate::faults::arguments::Arguments;
use parking_lot::Mutex;
use rocmforge_hip_sys::{hipError_t, hipEvent_t, hipStream_t};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A HIP call, as it begins or as it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
type Function = dyn Fn(&ObservedCall) + Send + Sync;

/// A machine's observer.
#[derive(Default)]
pub(super) struct Observer {
    /// Whether there is one. Most machines have none, and their calls look no further.
    set: AtomicBool,
    function: Mutex<Option<Arc<Function>>>,
}

impl Observer {
    pub(super) fn set(&self, observer: Option<Arc<Function>>) {
        let mut function = self.function.lock();
        self.set.store(observer.is_some(), Ordering::Release);
        let former = std::mem::replace(&mut *function, observer);
        // What the former one owns is dropped without the lock.
        drop(function);
        drop(former);
    }

    fn get(&self) -> Option<Arc<Function>> {
        self.set.load(Ordering::Acquire).then(|| self.function.lock().clone())?
    }

    /// A call that begins now.
    pub(super) fn observed<'a>(&self, api: &'static str, arguments: Arguments<'a>) -> Observed<'a> {
        Observed {
            observer: self.get(),
            api,
            arguments,
        }
    }
}

/// A call in progress, for the observer that was set when it began.
pub(super) struct Observed<'a> {
    observer: Option<Arc<Function>>,
    api: &'static str,
    arguments: Arguments<'a>,
}

impl Observed<'_> {
    /// Tells the observer of the call's begin (`None`) or end.
    pub(super) fn tell(&self, status: Option<hipError_t>) {
        if let Some(observer) = &self.observer {
            observer(&ObservedCall {
                api: self.api,
                stream: self.arguments.first().map(hipStream_t::addr),
                event: self.arguments.first().map(hipEvent_t::addr),
                status,
            });
        }
    }
}
