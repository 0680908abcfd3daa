//! Twins of functions for programs whose default stream is one of each thread (`-fgpu-default-stream=per-thread`): a null stream means
//! `hipStreamPerThread`.

use crate::forwarded;
use crate::launch;
use crate::symbol;
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

/// `hipStreamPerThread`.
const PER_THREAD: usize = 2;

/// The stream that a program means.
fn meant(stream: hipStream_t) -> hipStream_t {
    if stream.is_null() {
        std::ptr::without_provenance_mut(PER_THREAD)
    } else {
        stream
    }
}

/// Twins whose last argument but those in brackets is a stream.
macro_rules! twins {
    ($($twin:ident => $module:ident::$of:ident($($arg:ident: $ty:ty),*; stream $(, $rest:ident: $rest_ty:ty)*);)*) => {$(
        pub(crate) unsafe extern "C" fn $twin($($arg: $ty,)* stream: hipStream_t $(, $rest: $rest_ty)*) -> hipError_t {
            // SAFETY: promised by the program, as for the function itself.
            unsafe { $module::$of($($arg,)* meant(stream) $(, $rest)*) }
        }
    )*};
}

/// Twins of functions that wait: the asynchronous one, and a wait.
macro_rules! waiting_twins {
    ($($twin:ident => $module:ident::$of:ident($($arg:ident: $ty:ty),*);)*) => {$(
        pub(crate) unsafe extern "C" fn $twin($($arg: $ty),*) -> hipError_t {
            let stream = meant(std::ptr::null_mut());
            // SAFETY: promised by the program, as for the function itself; the wait is below.
            let status = unsafe { $module::$of($($arg,)* stream) };
            if !status.is_success() {
                return status;
            }
            // SAFETY: no pointers.
            unsafe { forwarded::hipStreamSynchronize(stream) }
        }
    )*};
}

twins! {
    hipMemcpyAsync_spt => forwarded::hipMemcpyAsync(to: *mut c_void, from: *const c_void, size: usize, kind: hipMemcpyKind; stream);
    hipMemcpy2DAsync_spt => forwarded::hipMemcpy2DAsync(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: hipMemcpyKind; stream);
    hipMemsetAsync_spt => forwarded::hipMemsetAsync(to: *mut c_void, value: c_int, size: usize; stream);
    hipMemset2DAsync_spt => forwarded::hipMemset2DAsync(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize; stream);
    hipMemset3DAsync_spt => forwarded::hipMemset3DAsync(to: hipPitchedPtr, value: c_int, extent: hipExtent; stream);
    hipMemcpy3DAsync_spt => forwarded::hipMemcpy3DAsync(copy: *const hipMemcpy3DParms; stream);
    hipMemcpy2DToArrayAsync_spt => forwarded::hipMemcpy2DToArrayAsync(
        to: hipArray_t, x: usize, y: usize, from: *const c_void, pitch: usize, width: usize, height: usize, kind: hipMemcpyKind; stream);
    hipMemcpy2DFromArrayAsync_spt => forwarded::hipMemcpy2DFromArrayAsync(
        to: *mut c_void, pitch: usize, from: hipArray_const_t, x: usize, y: usize, width: usize, height: usize, kind: hipMemcpyKind; stream);
    hipStreamGetCaptureInfo_spt => forwarded::hipStreamGetCaptureInfo(
        ; stream, status: *mut hipStreamCaptureStatus, id: *mut c_ulonglong);
    hipStreamGetCaptureInfo_v2_spt => forwarded::hipStreamGetCaptureInfo_v2(
        ; stream, status: *mut hipStreamCaptureStatus, id: *mut c_ulonglong, graph: *mut hipGraph_t,
        dependencies: *mut *const hipGraphNode_t, count: *mut usize);
    hipMemcpyToSymbolAsync_spt => symbol::hipMemcpyToSymbolAsync(
        symbol: *const c_void, from: *const c_void, size: usize, offset: usize, kind: hipMemcpyKind; stream);
    hipMemcpyFromSymbolAsync_spt => symbol::hipMemcpyFromSymbolAsync(
        to: *mut c_void, symbol: *const c_void, size: usize, offset: usize, kind: hipMemcpyKind; stream);
    hipStreamSynchronize_spt => forwarded::hipStreamSynchronize(; stream);
    hipStreamQuery_spt => forwarded::hipStreamQuery(; stream);
    hipStreamGetFlags_spt => forwarded::hipStreamGetFlags(; stream, flags: *mut c_uint);
    hipStreamGetPriority_spt => forwarded::hipStreamGetPriority(; stream, priority: *mut c_int);
    hipStreamWaitEvent_spt => forwarded::hipStreamWaitEvent(; stream, event: hipEvent_t, flags: c_uint);
    hipStreamAddCallback_spt => forwarded::hipStreamAddCallback(
        ; stream, callback: Option<hipStreamCallback_t>, user: *mut c_void, flags: c_uint);
    hipStreamBeginCapture_spt => forwarded::hipStreamBeginCapture(; stream, mode: hipStreamCaptureMode);
    hipStreamEndCapture_spt => forwarded::hipStreamEndCapture(; stream, graph: *mut hipGraph_t);
    hipStreamIsCapturing_spt => forwarded::hipStreamIsCapturing(; stream, status: *mut hipStreamCaptureStatus);
    hipLaunchHostFunc_spt => forwarded::hipLaunchHostFunc(; stream, function: Option<hipHostFn_t>, user: *mut c_void);
    hipEventRecord_spt => forwarded::hipEventRecord(event: hipEvent_t; stream);
    hipGraphLaunch_spt => forwarded::hipGraphLaunch(exec: hipGraphExec_t; stream);
    hipLaunchKernel_spt => launch::hipLaunchKernel(
        host: *const c_void, grid: dim3, block: dim3, params: *mut *mut c_void, lds: usize; stream);
    hipLaunchCooperativeKernel_spt => launch::hipLaunchCooperativeKernel(
        host: *const c_void, grid: dim3, block: dim3, params: *mut *mut c_void, lds: c_uint; stream);
}

waiting_twins! {
    hipMemcpy_spt => forwarded::hipMemcpyAsync(to: *mut c_void, from: *const c_void, size: usize, kind: hipMemcpyKind);
    hipMemcpy2D_spt => forwarded::hipMemcpy2DAsync(
        to: *mut c_void, to_pitch: usize, from: *const c_void, from_pitch: usize, width: usize, height: usize, kind: hipMemcpyKind);
    hipMemset_spt => forwarded::hipMemsetAsync(to: *mut c_void, value: c_int, size: usize);
    hipMemset2D_spt => forwarded::hipMemset2DAsync(to: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize);
    hipMemset3D_spt => forwarded::hipMemset3DAsync(to: hipPitchedPtr, value: c_int, extent: hipExtent);
    hipMemcpy3D_spt => forwarded::hipMemcpy3DAsync(copy: *const hipMemcpy3DParms);
    hipMemcpy2DToArray_spt => forwarded::hipMemcpy2DToArrayAsync(
        to: hipArray_t, x: usize, y: usize, from: *const c_void, pitch: usize, width: usize, height: usize, kind: hipMemcpyKind);
    hipMemcpy2DFromArray_spt => forwarded::hipMemcpy2DFromArrayAsync(
        to: *mut c_void, pitch: usize, from: hipArray_const_t, x: usize, y: usize, width: usize, height: usize, kind: hipMemcpyKind);
    hipMemcpyToSymbol_spt => symbol::hipMemcpyToSymbolAsync(
        symbol: *const c_void, from: *const c_void, size: usize, offset: usize, kind: hipMemcpyKind);
    hipMemcpyFromSymbol_spt => symbol::hipMemcpyFromSymbolAsync(
        to: *mut c_void, symbol: *const c_void, size: usize, offset: usize, kind: hipMemcpyKind);
}
