//! Captures and graphs.

use crate::cuda::UpdateInfo;
use crate::driver::{Driver, remember};
use rocmforge_hip_sys::*;
use std::ffi::c_char;

impl Driver {
    pub(crate) unsafe fn hipStreamBeginCapture(&self, stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.capture_begin)(stream.cast(), mode) })
    }

    pub(crate) unsafe fn hipStreamEndCapture(&self, stream: hipStream_t, graph: *mut hipGraph_t) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.capture_end)(stream.cast(), graph.cast()) })
    }

    pub(crate) unsafe fn hipStreamIsCapturing(
        &self,
        stream: hipStream_t,
        status: *mut hipStreamCaptureStatus,
    ) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.capture_status)(stream.cast(), status) })
    }

    /// Whether launches of the stream become nodes of a graph. Of a stream that the driver does not know this is false: the launch then says what is
    /// wrong with it.
    pub(crate) fn is_capturing(&self, stream: hipStream_t) -> bool {
        let mut status = 0;
        // SAFETY: `status` is a live out-pointer for the call; the stream is the caller's.
        let asked = self.on_device_unremembered(|cuda| unsafe { (cuda.capture_status)(stream.cast(), &mut status) });
        asked.is_success() && status == hipStreamCaptureStatusActive
    }

    pub(crate) unsafe fn hipGraphDestroy(&self, graph: hipGraph_t) -> hipError_t {
        if graph.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.graph_destroy)(graph.cast()) })
    }

    /// The driver of CUDA 12 tells neither a node nor a text; what the caller gives for them is left as it is.
    pub(crate) unsafe fn hipGraphInstantiate(
        &self,
        exec: *mut hipGraphExec_t,
        graph: hipGraph_t,
        _error_node: *mut hipGraphNode_t,
        _log: *mut c_char,
        _log_len: usize,
    ) -> hipError_t {
        if exec.is_null() || graph.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: none is null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.graph_instantiate)(exec.cast(), graph.cast(), 0) })
    }

    pub(crate) unsafe fn hipGraphLaunch(&self, exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t {
        if exec.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.graph_launch)(exec.cast(), stream.cast()) })
    }

    pub(crate) unsafe fn hipGraphExecDestroy(&self, exec: hipGraphExec_t) -> hipError_t {
        if exec.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.graph_exec_destroy)(exec.cast()) })
    }

    /// `node` and `result` are written on failure: that is when they say something.
    pub(crate) unsafe fn hipGraphExecUpdate(
        &self,
        exec: hipGraphExec_t,
        graph: hipGraph_t,
        node: *mut hipGraphNode_t,
        result: *mut hipGraphExecUpdateResult,
    ) -> hipError_t {
        if exec.is_null() || graph.is_null() || node.is_null() || result.is_null() {
            return remember(hipErrorInvalidValue);
        }
        let mut info = UpdateInfo {
            result: hipGraphExecUpdateError,
            node: std::ptr::null_mut(),
            from: std::ptr::null_mut(),
        };
        // SAFETY: `info` is a live out-pointer for the call, and no graph is null; the caller's.
        let updated = self.on_device(|cuda| unsafe { (cuda.graph_exec_update)(exec.cast(), graph.cast(), &mut info) });
        let answer = match info.result {
            known @ hipGraphExecUpdateSuccess..=hipGraphExecUpdateErrorUnsupportedFunctionChange => known,
            // CUDA 12 has one more: the attributes of a kernel node differ.
            _ => hipGraphExecUpdateError,
        };
        // SAFETY: not null; the caller's.
        unsafe { node.write(info.node.cast()) };
        // SAFETY: not null; the caller's.
        unsafe { result.write(answer) };
        updated
    }
}
