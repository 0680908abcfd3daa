//! A simulated machine on which a program runs, and which remembers the line of each of its HIP calls.

use rocmforge_hip_sys::*;
use rocmforge_kernels::Pack;
use rocmforge_sim::{SimConfig, SimHost};
use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::panic::Location;
use std::ptr::null_mut;
use std::sync::{Arc, LazyLock};

/// Elements of the programs' buffers, which are of f32.
pub(crate) const N: usize = 64;
/// Their bytes.
pub(crate) const BYTES: usize = N * 4;

/// `host/basic.hip`
static OBJECT: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let pack = Pack::read(include_bytes!("../kernels/prebuilt/gfx1100.pack")).expect("the pack is committed");
    pack.object("host/basic.O2")
        .expect("the pack is sound")
        .expect("cargo xtask kernels build")
});

pub(crate) type Ptr = *mut c_void;

pub(crate) struct Host {
    pub(crate) sim: Arc<SimHost>,
    lines: RefCell<HashMap<u64, u32>>,
}

/// One argument of a launch.
#[derive(Clone, Copy)]
pub(crate) enum Arg {
    Ptr(Ptr),
    F32(f32),
    U32(u32),
}

/// Makes a call and remembers where.
macro_rules! call {
    ($host:ident . $function:ident ( $($arg:expr),* $(,)? )) => {{
        // SAFETY: the programs pass valid pointers, or such that the simulator must refuse without following them.
        let status = unsafe { $host.sim.$function($($arg),*) };
        $host.noted(status)
    }};
}

impl Host {
    pub(crate) fn new(config: SimConfig) -> Self {
        Self {
            sim: SimHost::new(config),
            lines: RefCell::default(),
        }
    }

    /// The line a call was made at.
    pub(crate) fn line(&self, call: u64) -> Option<u32> {
        self.lines.borrow().get(&call).copied()
    }

    #[track_caller]
    fn noted(&self, status: hipError_t) -> hipError_t {
        let call = self.sim.counters().calls;
        self.lines.borrow_mut().insert(call, Location::caller().line());
        status
    }

    #[track_caller]
    pub(crate) fn malloc(&self) -> Ptr {
        let mut ptr = null_mut();
        assert_eq!(call!(self.hipMalloc(&raw mut ptr, BYTES)), hipSuccess);
        ptr
    }

    /// As `malloc`, of another size.
    #[track_caller]
    pub(crate) fn malloc_of(&self, bytes: usize) -> Ptr {
        let mut ptr = null_mut();
        assert_eq!(call!(self.hipMalloc(&raw mut ptr, bytes)), hipSuccess);
        ptr
    }

    /// As `malloc`; null where the card has stopped.
    #[track_caller]
    pub(crate) fn try_malloc(&self) -> Ptr {
        let mut ptr = null_mut();
        call!(self.hipMalloc(&raw mut ptr, BYTES));
        ptr
    }

    #[track_caller]
    pub(crate) fn free(&self, ptr: Ptr) -> hipError_t {
        call!(self.hipFree(ptr))
    }

    #[track_caller]
    pub(crate) fn malloc_async(&self, stream: hipStream_t) -> Ptr {
        let mut ptr = null_mut();
        assert_eq!(call!(self.hipMallocAsync(&raw mut ptr, BYTES, stream)), hipSuccess);
        ptr
    }

    #[track_caller]
    pub(crate) fn free_async(&self, ptr: Ptr, stream: hipStream_t) -> hipError_t {
        call!(self.hipFreeAsync(ptr, stream))
    }

    #[track_caller]
    pub(crate) fn pinned(&self) -> Ptr {
        let mut ptr = null_mut();
        assert_eq!(call!(self.hipHostMalloc(&raw mut ptr, BYTES, 0)), hipSuccess);
        // SAFETY: just allocated with this size.
        unsafe { ptr.cast::<u8>().write_bytes(0, BYTES) };
        ptr
    }

    #[track_caller]
    pub(crate) fn host_free(&self, ptr: Ptr) -> hipError_t {
        call!(self.hipHostFree(ptr))
    }

    #[track_caller]
    pub(crate) fn register(&self, ptr: Ptr, bytes: usize) -> hipError_t {
        call!(self.hipHostRegister(ptr, bytes, 0))
    }

    #[track_caller]
    pub(crate) fn unregister(&self, ptr: Ptr) -> hipError_t {
        call!(self.hipHostUnregister(ptr))
    }

    #[track_caller]
    pub(crate) fn memset(&self, ptr: Ptr, bytes: usize, stream: hipStream_t) -> hipError_t {
        call!(self.hipMemsetAsync(ptr, 0, bytes, stream))
    }

    /// An asynchronous copy whose kind is left to HIP.
    #[track_caller]
    pub(crate) fn copy(&self, to: Ptr, from: Ptr, bytes: usize, stream: hipStream_t) -> hipError_t {
        call!(self.hipMemcpyAsync(to, from, bytes, hipMemcpyDefault, stream))
    }

    #[track_caller]
    pub(crate) fn copy_as(&self, kind: hipMemcpyKind, to: Ptr, from: Ptr, stream: hipStream_t) -> hipError_t {
        call!(self.hipMemcpyAsync(to, from, BYTES, kind, stream))
    }

    #[track_caller]
    pub(crate) fn stream(&self) -> hipStream_t {
        self.stream_with(hipStreamNonBlocking)
    }

    #[track_caller]
    pub(crate) fn stream_with(&self, flags: u32) -> hipStream_t {
        let mut stream = null_mut();
        let status = call!(self.hipStreamCreateWithFlags(&raw mut stream, flags));
        assert_eq!(status, hipSuccess);
        stream
    }

    #[track_caller]
    pub(crate) fn destroy(&self, stream: hipStream_t) -> hipError_t {
        call!(self.hipStreamDestroy(stream))
    }

    #[track_caller]
    pub(crate) fn sync(&self, stream: hipStream_t) -> hipError_t {
        call!(self.hipStreamSynchronize(stream))
    }

    #[track_caller]
    pub(crate) fn sync_device(&self) -> hipError_t {
        call!(self.hipDeviceSynchronize())
    }

    #[track_caller]
    pub(crate) fn reset(&self) -> hipError_t {
        call!(self.hipDeviceReset())
    }

    #[track_caller]
    pub(crate) fn set_device(&self, device: i32) -> hipError_t {
        call!(self.hipSetDevice(device))
    }

    #[track_caller]
    pub(crate) fn event(&self) -> hipEvent_t {
        let mut event = null_mut();
        let status = call!(self.hipEventCreateWithFlags(&raw mut event, hipEventDisableTiming));
        assert_eq!(status, hipSuccess);
        event
    }

    #[track_caller]
    pub(crate) fn destroy_event(&self, event: hipEvent_t) -> hipError_t {
        call!(self.hipEventDestroy(event))
    }

    #[track_caller]
    pub(crate) fn record(&self, event: hipEvent_t, stream: hipStream_t) -> hipError_t {
        call!(self.hipEventRecord(event, stream))
    }

    #[track_caller]
    pub(crate) fn wait(&self, stream: hipStream_t, event: hipEvent_t) -> hipError_t {
        call!(self.hipStreamWaitEvent(stream, event, 0))
    }

    #[track_caller]
    pub(crate) fn sync_event(&self, event: hipEvent_t) -> hipError_t {
        call!(self.hipEventSynchronize(event))
    }

    #[track_caller]
    pub(crate) fn module(&self) -> hipModule_t {
        let mut module = null_mut();
        let status = call!(self.hipModuleLoadData(&raw mut module, OBJECT.as_ptr().cast()));
        assert_eq!(status, hipSuccess);
        module
    }

    #[track_caller]
    pub(crate) fn unload(&self, module: hipModule_t) -> hipError_t {
        call!(self.hipModuleUnload(module))
    }

    #[track_caller]
    pub(crate) fn function(&self, module: hipModule_t, name: &CStr) -> hipFunction_t {
        let mut function = null_mut();
        let status = call!(self.hipModuleGetFunction(&raw mut function, module, name.as_ptr()));
        assert_eq!(status, hipSuccess);
        function
    }

    /// Two groups of 32.
    #[track_caller]
    pub(crate) fn launch(&self, function: hipFunction_t, args: &[Arg], stream: hipStream_t) -> hipError_t {
        self.launch_with(function, [2, 1, 1], [32, 1, 1], args, stream)
    }

    #[track_caller]
    pub(crate) fn launch_with(
        &self,
        function: hipFunction_t,
        [gx, gy, gz]: [u32; 3],
        [bx, by, bz]: [u32; 3],
        args: &[Arg],
        stream: hipStream_t,
    ) -> hipError_t {
        let values: Vec<[u8; 8]> = args
            .iter()
            .map(|arg| match *arg {
                Arg::Ptr(ptr) => (ptr.addr() as u64).to_le_bytes(),
                Arg::F32(value) => u64::from(value.to_bits()).to_le_bytes(),
                Arg::U32(value) => u64::from(value).to_le_bytes(),
            })
            .collect();
        let mut params: Vec<Ptr> = values.iter().map(|value| value.as_ptr().cast_mut().cast()).collect();
        self.launch_raw(function, [gx, gy, gz], [bx, by, bz], &mut params, stream)
    }

    /// With the list that HIP takes: a pointer to each argument.
    #[track_caller]
    pub(crate) fn launch_raw(
        &self,
        function: hipFunction_t,
        [gx, gy, gz]: [u32; 3],
        [bx, by, bz]: [u32; 3],
        params: &mut [Ptr],
        stream: hipStream_t,
    ) -> hipError_t {
        call!(self.hipModuleLaunchKernel(
            function,
            gx,
            gy,
            gz,
            bx,
            by,
            bz,
            0,
            stream,
            params.as_mut_ptr(),
            null_mut()
        ))
    }

    /// With all arguments in one buffer.
    #[track_caller]
    pub(crate) fn launch_packed(&self, function: hipFunction_t, bytes: &[u8], stream: hipStream_t) -> hipError_t {
        let mut size = bytes.len();
        let mut extra = [
            HIP_LAUNCH_PARAM_BUFFER_POINTER,
            bytes.as_ptr().cast_mut().cast(),
            HIP_LAUNCH_PARAM_BUFFER_SIZE,
            (&raw mut size).cast(),
            HIP_LAUNCH_PARAM_END,
        ];
        call!(self.hipModuleLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, stream, null_mut(), extra.as_mut_ptr()))
    }

    /// Queues a host function, which gets this host, and waits for it. Calls inside of it count as made here.
    #[track_caller]
    pub(crate) fn inside(&self, stream: hipStream_t, function: hipHostFn_t) {
        let before = self.sim.counters().calls;
        let user = (&raw const *self).cast_mut().cast();
        // SAFETY: the function takes a host, and this one lives until the wait below has returned.
        let queued = unsafe { self.sim.hipLaunchHostFunc(stream, Some(function), user) };
        assert_eq!(queued, hipSuccess);
        // SAFETY: a live stream.
        let waited = unsafe { self.sim.hipStreamSynchronize(stream) };
        assert_eq!(waited, hipSuccess);
        let line = Location::caller().line();
        let inside = before + 1..=self.sim.counters().calls;
        self.lines.borrow_mut().extend(inside.map(|call| (call, line)));
    }

    /// Fills `ptr` on `stream` by a kernel.
    #[track_caller]
    pub(crate) fn fill(&self, function: hipFunction_t, ptr: Ptr, stream: hipStream_t) -> hipError_t {
        self.launch(function, &[Arg::Ptr(ptr), Arg::F32(1.0), Arg::U32(N as u32)], stream)
    }

    /// A buffer that holds zeros, and nothing queued.
    #[track_caller]
    pub(crate) fn zeroed(&self) -> Ptr {
        let ptr = self.malloc();
        let stream = self.stream();
        assert_eq!(self.memset(ptr, BYTES, stream), hipSuccess);
        assert_eq!(self.sync(stream), hipSuccess);
        assert_eq!(self.destroy(stream), hipSuccess);
        ptr
    }
}

pub(crate) fn at(ptr: Ptr, offset: usize) -> Ptr {
    ptr.wrapping_byte_add(offset)
}
