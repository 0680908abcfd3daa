//! `HipApi`, function by function: the arguments in the driver's types, its answer in HIP's words.
//!
//! What a driver call may be given is the caller's promise, as `HipApi` says; each SAFETY line adds what is checked here.

use crate::attributes;
use crate::cuda::{CuAddress, CuResult, HostFunction};
use crate::driver::{CudaDriver, last_error, remember};
use rocmforge_hip_sys::*;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// HIP's `flags` that the driver knows, with the same values; the others are AMD's own hints.
const EVENT_FLAGS: c_uint = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess;
const EVENT_HINTS: c_uint = hipEventReleaseToDevice | hipEventReleaseToSystem;

fn address(ptr: *const c_void) -> CuAddress {
    ptr.addr() as CuAddress
}

impl HipApi for CudaDriver {
    // Device and version

    unsafe fn hipInit(&self, flags: c_uint) -> hipError_t {
        // SAFETY: takes no pointer.
        self.call(|cuda| unsafe { (cuda.init)(flags) })
    }

    /// The driver's version (12 080 is CUDA 12.8): this platform has no HIP library that could have one.
    unsafe fn hipRuntimeGetVersion(&self, version: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        unsafe { self.hipDriverGetVersion(version) }
    }

    unsafe fn hipDriverGetVersion(&self, version: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.driver_version)(version) })
    }

    unsafe fn hipGetDeviceCount(&self, count: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.device_count)(count) })
    }

    unsafe fn hipSetDevice(&self, device: c_int) -> hipError_t {
        self.set_device(device)
    }

    unsafe fn hipGetDevice(&self, device: *mut c_int) -> hipError_t {
        if device.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        unsafe { device.write(self.device()) };
        hipSuccess
    }

    unsafe fn hipDeviceGet(&self, device: *mut hipDevice_t, ordinal: c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.device_get)(device, ordinal) })
    }

    unsafe fn hipDeviceGetName(&self, name: *mut c_char, len: c_int, device: hipDevice_t) -> hipError_t {
        // The driver crashes.
        if name.is_null() || len <= 0 {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null, and not without room; the caller's.
        self.call(|cuda| unsafe { (cuda.device_name)(name, len, device) })
    }

    unsafe fn hipDeviceGetAttribute(
        &self,
        value: *mut c_int,
        attribute: hipDeviceAttribute_t,
        device: c_int,
    ) -> hipError_t {
        let (attribute, device) = match (attributes::device(attribute), self.ordinal(device)) {
            (Some(attribute), Ok(device)) => (attribute, device),
            (None, _) => return remember(hipErrorInvalidValue),
            (_, Err(failure)) => return failure,
        };
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.device_attribute)(value, attribute, device) })
    }

    unsafe fn hipDeviceTotalMem(&self, bytes: *mut usize, device: hipDevice_t) -> hipError_t {
        // SAFETY: the caller's.
        self.call(|cuda| unsafe { (cuda.device_total_memory)(bytes, device) })
    }

    unsafe fn hipDeviceGetPCIBusId(&self, id: *mut c_char, len: c_int, device: c_int) -> hipError_t {
        match self.ordinal(device) {
            // SAFETY: the caller's.
            Ok(device) => self.call(|cuda| unsafe { (cuda.device_pci_bus_id)(id, len, device) }),
            Err(failure) => failure,
        }
    }

    unsafe fn hipDeviceGetStreamPriorityRange(&self, least: *mut c_int, greatest: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.context_priority_range)(least, greatest) })
    }

    unsafe fn hipGetDevicePropertiesR0600(&self, properties: *mut hipDeviceProp_tR0600, device: c_int) -> hipError_t {
        // SAFETY: the caller's.
        match unsafe { self.properties(properties, device) } {
            Ok(()) => hipSuccess,
            Err(failure) => remember(failure),
        }
    }

    // Errors

    unsafe fn hipGetLastError(&self) -> hipError_t {
        last_error(true)
    }

    unsafe fn hipPeekAtLastError(&self) -> hipError_t {
        last_error(false)
    }

    // Memory

    unsafe fn hipMemGetInfo(&self, free: *mut usize, total: *mut usize) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.memory_info)(free, total) })
    }

    unsafe fn hipMalloc(&self, ptr: *mut *mut c_void, size: usize) -> hipError_t {
        // SAFETY: the caller's.
        unsafe { self.allocate(ptr, size) }
    }

    unsafe fn hipFree(&self, ptr: *mut c_void) -> hipError_t {
        if ptr.is_null() {
            return hipSuccess;
        }
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.memory_free)(address(ptr)) })
    }

    unsafe fn hipHostMalloc(&self, ptr: *mut *mut c_void, size: usize, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's.
        unsafe { self.allocate_host(ptr, size, flags) }
    }

    unsafe fn hipHostFree(&self, ptr: *mut c_void) -> hipError_t {
        if ptr.is_null() {
            return hipSuccess;
        }
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_free)(ptr) })
    }

    unsafe fn hipHostRegister(&self, ptr: *mut c_void, size: usize, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_register)(ptr, size, flags) })
    }

    unsafe fn hipHostUnregister(&self, ptr: *mut c_void) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_unregister)(ptr) })
    }

    unsafe fn hipHostGetDevicePointer(&self, device: *mut *mut c_void, host: *mut c_void, flags: c_uint) -> hipError_t {
        // A device address has the size and the representation of a pointer on this platform.
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_device_pointer)(device.cast(), host, flags) })
    }

    unsafe fn hipHostGetFlags(&self, flags: *mut c_uint, host: *mut c_void) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.host_flags)(flags, host) })
    }

    unsafe fn hipPointerGetAttributes(&self, attributes: *mut hipPointerAttribute_t, ptr: *const c_void) -> hipError_t {
        // SAFETY: the caller's.
        unsafe { self.pointer_attributes(attributes, ptr) }
    }

    unsafe fn hipMemcpyAsync(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        size: usize,
        kind: hipMemcpyKind,
        stream: hipStream_t,
    ) -> hipError_t {
        if size == 0 {
            return hipSuccess;
        }
        let (to, from, stream) = (address(dst), address(src), stream.cast());
        match kind {
            // SAFETY: the caller's.
            hipMemcpyHostToDevice => self.on_device(|cuda| unsafe { (cuda.copy_to_device)(to, src, size, stream) }),
            // SAFETY: the caller's.
            hipMemcpyDeviceToHost => self.on_device(|cuda| unsafe { (cuda.copy_to_host)(dst, from, size, stream) }),
            // SAFETY: the caller's.
            hipMemcpyDeviceToDevice => self.on_device(|cuda| unsafe { (cuda.copy_on_device)(to, from, size, stream) }),
            hipMemcpyHostToHost | hipMemcpyDefault => {
                // SAFETY: the caller's.
                self.on_device(|cuda| unsafe { (cuda.copy)(to, from, size, stream) })
            }
            _ => remember(hipErrorInvalidMemcpyDirection),
        }
    }

    unsafe fn hipMemsetAsync(&self, dst: *mut c_void, value: c_int, size: usize, stream: hipStream_t) -> hipError_t {
        if size == 0 {
            return hipSuccess;
        }
        // As `memset`: the low byte counts.
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.set_bytes)(address(dst), value as u8, size, stream.cast()) })
    }

    unsafe fn hipMemsetD32Async(
        &self,
        dst: hipDeviceptr_t,
        value: c_int,
        count: usize,
        stream: hipStream_t,
    ) -> hipError_t {
        if count == 0 {
            return hipSuccess;
        }
        // The driver's count of bytes wraps.
        if count > usize::MAX / size_of::<c_uint>() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.set_words)(address(dst), value as c_uint, count, stream.cast()) })
    }

    // Streams

    unsafe fn hipStreamCreateWithFlags(&self, stream: *mut hipStream_t, flags: c_uint) -> hipError_t {
        // SAFETY: the caller's.
        unsafe { self.hipStreamCreateWithPriority(stream, flags, 0) }
    }

    unsafe fn hipStreamCreateWithPriority(
        &self,
        stream: *mut hipStream_t,
        flags: c_uint,
        priority: c_int,
    ) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_create)(stream.cast(), flags, priority) })
    }

    unsafe fn hipStreamDestroy(&self, stream: hipStream_t) -> hipError_t {
        if stream.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_destroy)(stream.cast()) })
    }

    unsafe fn hipStreamQuery(&self, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_query)(stream.cast()) })
    }

    unsafe fn hipStreamSynchronize(&self, stream: hipStream_t) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_synchronize)(stream.cast()) })
    }

    unsafe fn hipStreamWaitEvent(&self, stream: hipStream_t, event: hipEvent_t, flags: c_uint) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // HIP has no flag; the driver has one, for captures.
        if flags != 0 {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_wait_event)(stream.cast(), event.cast(), flags) })
    }

    unsafe fn hipStreamGetFlags(&self, stream: hipStream_t, flags: *mut c_uint) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_flags)(stream.cast(), flags) })
    }

    unsafe fn hipStreamGetPriority(&self, stream: hipStream_t, priority: *mut c_int) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.stream_priority)(stream.cast(), priority) })
    }

    unsafe fn hipLaunchHostFunc(
        &self,
        stream: hipStream_t,
        function: Option<hipHostFn_t>,
        user: *mut c_void,
    ) -> hipError_t {
        let Some(function) = function else {
            return remember(hipErrorInvalidValue);
        };
        let function: HostFunction = function;
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.launch_host_function)(stream.cast(), function, user) })
    }

    // Events

    unsafe fn hipEventCreateWithFlags(&self, event: *mut hipEvent_t, flags: c_uint) -> hipError_t {
        if flags & !(EVENT_FLAGS | EVENT_HINTS) != 0 || flags & EVENT_HINTS == EVENT_HINTS {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_create)(event.cast(), flags & EVENT_FLAGS) })
    }

    unsafe fn hipEventDestroy(&self, event: hipEvent_t) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_destroy)(event.cast()) })
    }

    unsafe fn hipEventRecord(&self, event: hipEvent_t, stream: hipStream_t) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_record)(event.cast(), stream.cast()) })
    }

    unsafe fn hipEventQuery(&self, event: hipEvent_t) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_query)(event.cast()) })
    }

    unsafe fn hipEventSynchronize(&self, event: hipEvent_t) -> hipError_t {
        if event.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_synchronize)(event.cast()) })
    }

    unsafe fn hipEventElapsedTime(&self, milliseconds: *mut f32, start: hipEvent_t, stop: hipEvent_t) -> hipError_t {
        if milliseconds.is_null() {
            return remember(hipErrorInvalidValue);
        }
        if start.is_null() || stop.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: none is null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.event_elapsed)(milliseconds, start.cast(), stop.cast()) })
    }

    // Modules and launches

    /// The image is PTX text that ends with a NUL byte, or a cubin.
    unsafe fn hipModuleLoadData(&self, module: *mut hipModule_t, image: *const c_void) -> hipError_t {
        if module.is_null() || image.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: none is null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.module_load)(module.cast(), image) })
    }

    unsafe fn hipModuleUnload(&self, module: hipModule_t) -> hipError_t {
        if module.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.module_unload)(module.cast()) })
    }

    unsafe fn hipModuleGetFunction(
        &self,
        function: *mut hipFunction_t,
        module: hipModule_t,
        name: *const c_char,
    ) -> hipError_t {
        if function.is_null() || name.is_null() {
            return remember(hipErrorInvalidValue);
        }
        if module.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: none is null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.module_function)(function.cast(), module.cast(), name) })
    }

    unsafe fn hipModuleGetGlobal(
        &self,
        global: *mut hipDeviceptr_t,
        bytes: *mut usize,
        module: hipModule_t,
        name: *const c_char,
    ) -> hipError_t {
        if module.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // SAFETY: the module is not null; the caller's. Device addresses have the representation of pointers.
        self.on_device(|cuda| unsafe { (cuda.module_global)(global.cast(), bytes, module.cast(), name) })
    }

    unsafe fn hipFuncGetAttribute(
        &self,
        value: *mut c_int,
        attribute: hipFunction_attribute,
        function: hipFunction_t,
    ) -> hipError_t {
        if function.is_null() {
            return remember(hipErrorInvalidDeviceFunction);
        }
        let Some(attribute) = attributes::function(attribute) else {
            return remember(hipErrorInvalidValue);
        };
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.function_attribute)(value, attribute, function.cast()) })
    }

    unsafe fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
        &self,
        blocks: *mut c_int,
        function: hipFunction_t,
        block_size: c_int,
        dynamic_lds: usize,
    ) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.function_occupancy)(blocks, function.cast(), block_size, dynamic_lds) })
    }

    unsafe fn hipModuleLaunchKernel(
        &self,
        function: hipFunction_t,
        grid_x: c_uint,
        grid_y: c_uint,
        grid_z: c_uint,
        block_x: c_uint,
        block_y: c_uint,
        block_z: c_uint,
        shared_bytes: c_uint,
        stream: hipStream_t,
        params: *mut *mut c_void,
        extra: *mut *mut c_void,
    ) -> hipError_t {
        if function.is_null() {
            return remember(hipErrorInvalidHandle);
        }
        // The two platforms end the list of `extra` with different values; this project passes `params`.
        if !extra.is_null() {
            return remember(hipErrorNotSupported);
        }
        // SAFETY: the function is not null; the caller's.
        self.on_device(|cuda| unsafe {
            (cuda.launch)(
                function.cast(),
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                shared_bytes,
                stream.cast(),
                params,
                std::ptr::null_mut(),
            )
        })
    }

    // Capture

    unsafe fn hipStreamBeginCapture(&self, stream: hipStream_t, mode: hipStreamCaptureMode) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.capture_begin)(stream.cast(), mode) })
    }

    unsafe fn hipStreamEndCapture(&self, stream: hipStream_t, graph: *mut hipGraph_t) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.capture_end)(stream.cast(), graph.cast()) })
    }

    unsafe fn hipStreamIsCapturing(&self, stream: hipStream_t, status: *mut hipStreamCaptureStatus) -> hipError_t {
        // SAFETY: the caller's.
        self.on_device(|cuda| unsafe { (cuda.capture_status)(stream.cast(), status) })
    }

    unsafe fn hipGraphDestroy(&self, graph: hipGraph_t) -> hipError_t {
        if graph.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.graph_destroy)(graph.cast()) })
    }

    /// The driver of CUDA 12 tells neither a node nor a text; what the caller gives for them is left as it is.
    unsafe fn hipGraphInstantiate(
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

    unsafe fn hipGraphLaunch(&self, exec: hipGraphExec_t, stream: hipStream_t) -> hipError_t {
        if exec.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.graph_launch)(exec.cast(), stream.cast()) })
    }

    unsafe fn hipGraphExecDestroy(&self, exec: hipGraphExec_t) -> hipError_t {
        if exec.is_null() {
            return remember(hipErrorInvalidValue);
        }
        // SAFETY: not null; the caller's.
        self.on_device(|cuda| unsafe { (cuda.graph_exec_destroy)(exec.cast()) })
    }
}

/// `CuResult` crosses the C boundary as the `int` it is there.
const _: () = assert!(size_of::<CuResult>() == size_of::<c_int>());
