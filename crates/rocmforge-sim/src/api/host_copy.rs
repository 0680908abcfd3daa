//! Copies by a host function of a stream: for libraries that compute on the CPU where a stream is captured.

use super::copy::Copied;
use crate::calls::call::{Call, Hip};
use crate::calls::sim::SimHost;
use crate::machine::thread::OsThread;
use crate::queues::op::Ran;
use crate::races::shadow::Actor;
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::ffi::c_void;
use std::sync::Arc;

impl SimHost {
    /// Copies `rows` rows of `width` bytes now, as a part of the host function that the calling thread runs. HIP has no such call: there a host
    /// function must not call HIP. The copy is checked as one of the program is, and what it finds is said of `api`.
    ///
    /// # Errors
    /// `hipErrorIllegalState` where the calling thread runs no host function; else those of `hipMemcpy2D`.
    ///
    /// # Safety
    /// Host memory at `dst` or `src` is valid for the rows, which start `dst_pitch` or `src_pitch` bytes apart.
    pub unsafe fn copy_in_host_function(
        &self,
        api: &'static str,
        (dst, dst_pitch): (*mut c_void, usize),
        (src, src_pitch): (*const c_void, usize),
        width: usize,
        rows: usize,
    ) -> hipError_t {
        let copy = Copied::rows((dst, dst_pitch), (src, src_pitch), [width, rows]);
        self.in_host_function(api, |call, actor| {
            if let Some((operation, ..)) = call.prepare_copy(copy, hipMemcpyDefault)? {
                let ran = call.execute_part(operation, actor);
                debug_assert!(ran == Ran::Done, "copies end");
            }
            Ok(())
        })
    }

    /// Reports that the host function which the calling thread runs has failed, with `message`, as a call of `api` that must not be made.
    ///
    /// # Errors
    /// `hipErrorIllegalState` where the calling thread runs no host function.
    pub fn report_in_host_function(&self, api: &'static str, message: String) -> hipError_t {
        self.in_host_function(api, |call, _| {
            call.report(ReportKind::InvalidCall, message);
            Ok(())
        })
    }

    fn in_host_function(&self, api: &'static str, body: impl FnOnce(&mut Call<'_>, &Arc<Actor>) -> Hip) -> hipError_t {
        let os_thread = OsThread::current();
        let mut host = self.lock();
        let Some(actor) = host.callbacks.actor_on(os_thread).cloned() else {
            return hipErrorIllegalState;
        };
        let thread = host.host_thread(os_thread);
        let mut call = Call::new(self, host, thread, api);
        call.number = actor.call;
        body(&mut call, &actor).err().unwrap_or(hipSuccess)
    }
}
