//! A HIP that counts, logs, fails and hangs on demand. Nothing runs when it is enqueued: a query runs what it asks about.
//!
//! It has no kernels and no sanitizers; the simulated device has. This one exists because it can fail the k-th call.

use parking_lot::Mutex;
use rocmforge_hip_sys::*;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::Arc;
use std::time::Duration;

/// One HIP call that matters to ordering: name, stream, event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) name: &'static str,
    pub(crate) stream: usize,
    pub(crate) event: usize,
}

enum Op {
    Copy { dst: usize, src: usize, len: usize },
    Set { dst: usize, value: u8, len: usize },
    Launch { params: Vec<u64> },
    Record { event: usize, nth: u64 },
    Wait { event: usize, nth: u64 },
}

#[derive(Default)]
struct Event {
    recorded: u64,
    done: u64,
    /// Nobody may name it any more. What waits for its record still does: the driver releases it behind that.
    destroyed: bool,
}

#[derive(Default)]
struct State {
    next: usize,
    memory: BTreeMap<usize, Vec<u8>>,
    pinned: BTreeMap<usize, Vec<u8>>,
    streams: HashMap<usize, VecDeque<Op>>,
    events: HashMap<usize, Event>,
    modules: Vec<usize>,
    counts: BTreeMap<&'static str, u64>,
    log: Vec<Call>,
    calls: u64,
    fail: Option<(u64, hipError_t)>,
    fail_from: Option<(&'static str, hipError_t)>,
    failed: Option<&'static str>,
    null: Option<&'static str>,
    hang_until: Option<Duration>,
    stuck: Option<usize>,
    violations: Vec<String>,
    launches: Vec<Vec<u64>>,
    attributes: HashMap<u32, i32>,
}

/// A call's name, and what happens in it.
type Hook = (&'static str, Box<dyn FnOnce() + Send>);

pub(crate) struct Fake {
    state: Mutex<State>,
    time: Mutex<Duration>,
    hook: Mutex<Option<Hook>>,
    pub(crate) old_properties: bool,
    pub(crate) devices: i32,
    pub(crate) arch: &'static str,
    pub(crate) total: usize,
}

impl Default for Fake {
    fn default() -> Self {
        let limits = [
            (hipDeviceAttributeWarpSize, 32),
            (hipDeviceAttributeMultiprocessorCount, 42),
            (hipDeviceAttributeMaxThreadsPerBlock, 1024),
            (hipDeviceAttributeMaxBlockDimX, 1024),
            (hipDeviceAttributeMaxBlockDimY, 1024),
            (hipDeviceAttributeMaxBlockDimZ, 1024),
            (hipDeviceAttributeMaxGridDimX, i32::MAX),
            (hipDeviceAttributeMaxGridDimY, 65536),
            (hipDeviceAttributeMaxGridDimZ, 65536),
            (hipDeviceAttributeMaxSharedMemoryPerBlock, 65536),
        ];
        let state = State {
            next: 0x1000,
            attributes: limits.into_iter().collect(),
            ..State::default()
        };
        Self {
            state: Mutex::new(state),
            time: Mutex::default(),
            hook: Mutex::default(),
            old_properties: false,
            devices: 1,
            arch: "gfx1100",
            total: 1 << 30,
        }
    }
}

impl HipClock for Fake {
    fn now(&self) -> Duration {
        *self.time.lock()
    }
    fn pause(&self, pause: Duration) {
        *self.time.lock() += pause;
        self.state.lock().hang_until.take_if(|end| *end <= self.now());
    }
}

impl Fake {
    /// One with something changed.
    pub(crate) fn with(change: impl FnOnce(&mut Self)) -> Arc<Self> {
        let mut fake = Self::default();
        change(&mut fake);
        Arc::new(fake)
    }
    pub(crate) fn set_attribute(&self, attribute: u32, value: i32) {
        self.state.lock().attributes.insert(attribute, value);
    }
    pub(crate) fn count(&self, name: &str) -> u64 {
        self.state.lock().counts.get(name).copied().unwrap_or(0)
    }
    pub(crate) fn calls(&self) -> u64 {
        self.state.lock().calls
    }
    pub(crate) fn log(&self) -> Vec<Call> {
        self.state.lock().log.clone()
    }
    pub(crate) fn clear_log(&self) {
        self.state.lock().log.clear();
    }
    /// Runs `hook` once, at the start of the next call of that name (of `hipFree done`: at its end).
    pub(crate) fn at(&self, name: &'static str, hook: impl FnOnce() + Send + 'static) {
        *self.hook.lock() = Some((name, Box::new(hook)));
    }
    fn reach(&self, name: &str) {
        let hook = self.hook.lock().take_if(|(at, _)| *at == name);
        if let Some((_, hook)) = hook {
            hook();
        }
    }
    /// From now on this stream gets nothing done; none: all do again.
    pub(crate) fn stick(&self, stream: Option<usize>) {
        self.state.lock().stuck = stream;
    }
    pub(crate) fn live_bytes(&self) -> usize {
        self.state.lock().memory.values().map(Vec::len).sum()
    }
    /// From now on nothing queued is ever done.
    pub(crate) fn hang(&self) {
        self.state.lock().hang_until = Some(Duration::MAX);
    }
    /// For so long nothing queued is done.
    pub(crate) fn work(&self, time: Duration) {
        let end = self.now() + time;
        self.state.lock().hang_until = Some(end);
    }
    /// The `nth` call from now on (0 is the next) fails, once.
    pub(crate) fn fail_nth(&self, nth: u64, status: hipError_t) {
        let mut state = self.state.lock();
        let at = state.calls + nth;
        state.fail = Some((at, status));
        state.failed = None;
    }
    /// Every call of that name fails until `None`.
    pub(crate) fn fail_all(&self, what: Option<(&'static str, hipError_t)>) {
        self.state.lock().fail_from = what;
    }
    /// From now on every call of that name reports success and gives null.
    pub(crate) fn give_null(&self, name: &'static str) {
        self.state.lock().null = Some(name);
    }
    /// The call that `fail_nth` failed.
    pub(crate) fn failed(&self) -> Option<&'static str> {
        self.state.lock().failed
    }
    pub(crate) fn live_memory(&self) -> usize {
        self.state.lock().memory.len()
    }
    pub(crate) fn live_pinned(&self) -> usize {
        self.state.lock().pinned.len()
    }
    pub(crate) fn live_handles(&self) -> usize {
        let state = self.state.lock();
        let events = state.events.values().filter(|event| !event.destroyed);
        state.streams.len() + events.count() + state.modules.len()
    }
    pub(crate) fn launches(&self) -> Vec<Vec<u64>> {
        self.state.lock().launches.clone()
    }
    /// What a correct runtime never does: double frees, frees of memory in use, use of unknown addresses.
    pub(crate) fn violations(&self) -> Vec<String> {
        self.state.lock().violations.clone()
    }
}

impl State {
    fn fresh(&mut self) -> usize {
        self.next += 0x1000;
        self.next
    }

    /// Runs `stream` to its end, and of other streams what it waits for. False if it cannot.
    fn run(&mut self, stream: usize) -> bool {
        self.run_until(stream, None, 0)
    }

    /// Runs `stream` to its end, or until the `nth` record of an event is done. Of a stream that is waited for no more is run than the
    /// record: what follows may wait for the first one in turn.
    fn run_until(&mut self, stream: usize, until: Option<(usize, u64)>, depth: usize) -> bool {
        assert!(depth < 64, "a circle of waits");
        if self.hang_until.is_some() || self.stuck == Some(stream) {
            return self.streams.get(&stream).is_none_or(VecDeque::is_empty);
        }
        while until.is_none_or(|(event, nth)| self.is_pending(event, nth))
            && let Some(op) = self.streams.get(&stream).and_then(VecDeque::front)
        {
            if let &Op::Wait { event, nth } = op {
                let others: Vec<usize> = self.streams.keys().copied().filter(|&other| other != stream).collect();
                for &other in &others {
                    if self.is_pending(event, nth) && self.records(other, event) {
                        self.run_until(other, Some((event, nth)), depth + 1);
                    }
                }
                if self.is_pending(event, nth) && others.iter().any(|&other| self.records(other, event)) {
                    return false;
                }
            }
            if let Some(op) = self.streams.get_mut(&stream).and_then(VecDeque::pop_front) {
                self.execute(op);
            }
        }
        true
    }

    fn is_pending(&self, event: usize, nth: u64) -> bool {
        self.events.get(&event).is_some_and(|event| event.done < nth)
    }

    /// An event that is not destroyed.
    fn event(&mut self, event: hipEvent_t) -> Option<&mut Event> {
        self.events.get_mut(&event.addr()).filter(|event| !event.destroyed)
    }

    fn records(&self, stream: usize, event: usize) -> bool {
        self.streams[&stream]
            .iter()
            .any(|op| matches!(op, Op::Record { event: e, .. } if *e == event))
    }

    fn execute(&mut self, op: Op) {
        match op {
            Op::Record { event, nth } => {
                if let Some(event) = self.events.get_mut(&event) {
                    event.done = event.done.max(nth);
                }
            }
            Op::Set { dst, value, len } => self.bytes(dst, len, |bytes| bytes.fill(value)),
            Op::Copy { dst, src, len } => {
                let mut data = vec![0; len];
                self.bytes(src, len, |bytes| data.copy_from_slice(bytes));
                self.bytes(dst, len, |bytes| bytes.copy_from_slice(&data));
            }
            Op::Launch { params } => self.launches.push(params),
            Op::Wait { .. } => {}
        }
    }

    /// The bytes at a device or pinned address, by whichever allocation holds them.
    fn bytes(&mut self, at: usize, len: usize, f: impl FnOnce(&mut [u8])) {
        let device = self
            .memory
            .range_mut(..=at)
            .next_back()
            .filter(|(base, bytes)| at + len <= *base + bytes.len());
        if let Some((base, bytes)) = device {
            return f(&mut bytes[at - base..at - base + len]);
        }
        let held = |(_, bytes): &(&usize, &mut Vec<u8>)| {
            let base = bytes.as_ptr().addr();
            base <= at && at + len <= base + bytes.len()
        };
        match self.pinned.iter_mut().find(held) {
            Some((_, bytes)) => {
                let base = bytes.as_ptr().addr();
                f(&mut bytes[at - base..at - base + len]);
            }
            None => self
                .violations
                .push(format!("{len} bytes at {at:#x} are not allocated")),
        }
    }

    fn in_use(&self, at: usize, len: usize) -> bool {
        let hit = |address: usize, bytes: usize| address < at + len && at < address + bytes;
        self.streams.values().flatten().any(|op| match op {
            Op::Copy { dst, src, len } => hit(*dst, *len) || hit(*src, *len),
            Op::Set { dst, len, .. } => hit(*dst, *len),
            _ => false,
        })
    }
}

/// Counts a call, logs it, and fails it if a test wants that.
macro_rules! enter {
    ($self:ident, $name:literal) => {
        enter!($self, $name, 0, 0)
    };
    ($self:ident, $name:literal, $stream:expr, $event:expr) => {{
        $self.reach($name);
        let mut state = $self.state.lock();
        *state.counts.entry($name).or_default() += 1;
        let (stream, event) = ($stream as usize, $event as usize);
        state.log.push(Call {
            name: $name,
            stream,
            event,
        });
        let call = state.calls;
        state.calls += 1;
        if let Some((at, status)) = state.fail
            && at == call
        {
            state.fail = None;
            state.failed = Some($name);
            return status;
        }
        if let Some((name, status)) = state.fail_from
            && name == $name
        {
            return status;
        }
        state
    }};
}

/// What a call that makes something starts with: gives null if a test wants that.
macro_rules! make {
    ($self:ident, $name:literal, $out:ident) => {{
        let state = enter!($self, $name);
        if state.null == Some($name) {
            unsafe { *$out = std::ptr::null_mut() };
            return hipSuccess;
        }
        state
    }};
}

// SAFETY (of every block below): the runtime passes live out-pointers; this is what its tests are about.
// SAFETY (of the impl): memory it gives out is its own until it is freed, work is done in its stream's order, and a query says so only
// then; what it answers wrongly on purpose (a status, null) is what the runtime has to take.
#[allow(clippy::undocumented_unsafe_blocks, clippy::multiple_unsafe_ops_per_block)] // said above, once
unsafe impl HipApi for Fake {
    unsafe fn hipInit(&self, _: c_uint) -> hipError_t {
        drop(enter!(self, "hipInit"));
        hipSuccess
    }
    unsafe fn hipRuntimeGetVersion(&self, version: *mut c_int) -> hipError_t {
        drop(enter!(self, "hipRuntimeGetVersion"));
        unsafe { *version = 60_241_134 };
        hipSuccess
    }
    unsafe fn hipDriverGetVersion(&self, _: *mut c_int) -> hipError_t {
        hipErrorNotSupported
    }
    unsafe fn hipGetDeviceCount(&self, count: *mut c_int) -> hipError_t {
        drop(enter!(self, "hipGetDeviceCount"));
        unsafe { *count = self.devices };
        hipSuccess
    }
    unsafe fn hipSetDevice(&self, device: c_int) -> hipError_t {
        drop(enter!(self, "hipSetDevice"));
        CURRENT.set(device);
        hipSuccess
    }
    unsafe fn hipGetDevice(&self, device: *mut c_int) -> hipError_t {
        drop(enter!(self, "hipGetDevice"));
        unsafe { *device = CURRENT.get() };
        hipSuccess
    }
    unsafe fn hipDeviceGet(&self, device: *mut hipDevice_t, ordinal: c_int) -> hipError_t {
        drop(enter!(self, "hipDeviceGet"));
        unsafe { *device = ordinal };
        hipSuccess
    }
    unsafe fn hipDeviceGetName(&self, name: *mut c_char, len: c_int, _: hipDevice_t) -> hipError_t {
        drop(enter!(self, "hipDeviceGetName"));
        unsafe { write(name, len, "Fake Radeon") };
        hipSuccess
    }
    unsafe fn hipDeviceGetAttribute(&self, value: *mut c_int, attribute: hipDeviceAttribute_t, _: c_int) -> hipError_t {
        let state = enter!(self, "hipDeviceGetAttribute");
        unsafe { *value = state.attributes.get(&attribute).copied().unwrap_or(0) };
        hipSuccess
    }
    unsafe fn hipDeviceTotalMem(&self, bytes: *mut usize, _: hipDevice_t) -> hipError_t {
        drop(enter!(self, "hipDeviceTotalMem"));
        unsafe { *bytes = self.total };
        hipSuccess
    }
    unsafe fn hipDeviceGetPCIBusId(&self, id: *mut c_char, len: c_int, device: c_int) -> hipError_t {
        drop(enter!(self, "hipDeviceGetPCIBusId"));
        unsafe { write(id, len, &format!("fake:0{device}:00.0")) };
        hipSuccess
    }
    unsafe fn hipDeviceGetStreamPriorityRange(&self, _: *mut c_int, _: *mut c_int) -> hipError_t {
        hipErrorNotSupported
    }
    unsafe fn hipGetLastError(&self) -> hipError_t {
        hipSuccess
    }
    unsafe fn hipPeekAtLastError(&self) -> hipError_t {
        hipSuccess
    }
    unsafe fn hipMemGetInfo(&self, free: *mut usize, total: *mut usize) -> hipError_t {
        let state = enter!(self, "hipMemGetInfo");
        let used: usize = state.memory.values().map(Vec::len).sum();
        unsafe { (*free, *total) = (self.total.saturating_sub(used), self.total) };
        hipSuccess
    }
    unsafe fn hipMalloc(&self, ptr: *mut *mut c_void, size: usize) -> hipError_t {
        let mut state = make!(self, "hipMalloc", ptr);
        let address = state.fresh();
        state.next += size.next_multiple_of(256);
        state.memory.insert(address, vec![0xcd; size]);
        unsafe { *ptr = std::ptr::without_provenance_mut(address) };
        hipSuccess
    }
    unsafe fn hipFree(&self, ptr: *mut c_void) -> hipError_t {
        let mut state = enter!(self, "hipFree");
        match state.memory.remove(&ptr.addr()) {
            Some(bytes) => {
                if state.in_use(ptr.addr(), bytes.len()) {
                    state
                        .violations
                        .push(format!("{ptr:p} freed while queued work uses it"));
                }
                drop(state);
                self.reach("hipFree done");
                hipSuccess
            }
            None => {
                state.violations.push(format!("{ptr:p} freed, but it is not allocated"));
                hipErrorInvalidValue
            }
        }
    }
    unsafe fn hipHostMalloc(&self, ptr: *mut *mut c_void, size: usize, _: c_uint) -> hipError_t {
        let mut state = make!(self, "hipHostMalloc", ptr);
        let mut bytes = vec![0xee; size];
        let address = bytes.as_mut_ptr();
        unsafe { *ptr = address.cast() };
        state.pinned.insert(address.addr(), bytes);
        hipSuccess
    }
    unsafe fn hipHostFree(&self, ptr: *mut c_void) -> hipError_t {
        let mut state = enter!(self, "hipHostFree");
        match state.pinned.remove(&ptr.addr()) {
            Some(bytes) => {
                if state.in_use(ptr.addr(), bytes.len()) {
                    state
                        .violations
                        .push(format!("pinned {ptr:p} freed while queued work uses it"));
                }
                hipSuccess
            }
            None => {
                state
                    .violations
                    .push(format!("pinned {ptr:p} freed, but it is not allocated"));
                hipErrorInvalidValue
            }
        }
    }
    unsafe fn hipPointerGetAttributes(&self, _: *mut hipPointerAttribute_t, _: *const c_void) -> hipError_t {
        hipErrorNotSupported
    }
    unsafe fn hipMemcpyAsync(
        &self,
        dst: *mut c_void,
        src: *const c_void,
        len: usize,
        _: hipMemcpyKind,
        stream: hipStream_t,
    ) -> hipError_t {
        let mut state = enter!(self, "hipMemcpyAsync", stream, 0);
        state.enqueue(
            stream,
            Op::Copy {
                dst: dst.addr(),
                src: src.addr(),
                len,
            },
        )
    }
    unsafe fn hipMemsetAsync(&self, dst: *mut c_void, value: c_int, len: usize, stream: hipStream_t) -> hipError_t {
        let mut state = enter!(self, "hipMemsetAsync", stream, 0);
        state.enqueue(
            stream,
            Op::Set {
                dst: dst.addr(),
                value: value as u8,
                len,
            },
        )
    }
    unsafe fn hipMemsetD32Async(&self, _: hipDeviceptr_t, _: c_int, _: usize, _: hipStream_t) -> hipError_t {
        hipErrorNotSupported
    }
    unsafe fn hipStreamCreateWithFlags(&self, stream: *mut hipStream_t, flags: c_uint) -> hipError_t {
        let mut state = make!(self, "hipStreamCreateWithFlags", stream);
        if flags != hipStreamNonBlocking {
            state.violations.push("a blocking stream".to_owned());
        }
        let handle = state.fresh();
        state.streams.insert(handle, VecDeque::new());
        unsafe { *stream = std::ptr::without_provenance_mut(handle) };
        hipSuccess
    }
    unsafe fn hipStreamCreateWithPriority(&self, _: *mut hipStream_t, _: c_uint, _: c_int) -> hipError_t {
        hipErrorNotSupported
    }
    unsafe fn hipStreamDestroy(&self, stream: hipStream_t) -> hipError_t {
        let mut state = enter!(self, "hipStreamDestroy", stream, 0);
        match state.streams.remove(&stream.addr()) {
            Some(queue) if queue.is_empty() => {}
            other => state
                .violations
                .push(format!("{stream:p} destroyed, busy or unknown: {}", other.is_some())),
        }
        hipSuccess
    }
    unsafe fn hipStreamQuery(&self, stream: hipStream_t) -> hipError_t {
        let mut state = enter!(self, "hipStreamQuery", stream, 0);
        if state.run(stream.addr()) {
            hipSuccess
        } else {
            hipErrorNotReady
        }
    }
    unsafe fn hipStreamSynchronize(&self, _: hipStream_t) -> hipError_t {
        let mut state = enter!(self, "hipStreamSynchronize");
        state.violations.push("a wait without a deadline".to_owned());
        hipErrorNotSupported
    }
    unsafe fn hipStreamWaitEvent(&self, stream: hipStream_t, event: hipEvent_t, _: c_uint) -> hipError_t {
        let mut state = enter!(self, "hipStreamWaitEvent", stream, event);
        let Some(nth) = state.event(event).map(|event| event.recorded) else {
            state.violations.push(format!("wait for unknown event {event:p}"));
            return hipErrorInvalidHandle;
        };
        state.enqueue(
            stream,
            Op::Wait {
                event: event.addr(),
                nth,
            },
        )
    }
    unsafe fn hipStreamGetFlags(&self, _: hipStream_t, _: *mut c_uint) -> hipError_t {
        hipErrorNotSupported
    }
    unsafe fn hipStreamGetPriority(&self, _: hipStream_t, _: *mut c_int) -> hipError_t {
        hipErrorNotSupported
    }
    unsafe fn hipEventCreateWithFlags(&self, event: *mut hipEvent_t, _: c_uint) -> hipError_t {
        let mut state = make!(self, "hipEventCreateWithFlags", event);
        let handle = state.fresh();
        state.events.insert(handle, Event::default());
        unsafe { *event = std::ptr::without_provenance_mut(handle) };
        hipSuccess
    }
    unsafe fn hipEventDestroy(&self, event: hipEvent_t) -> hipError_t {
        let mut state = enter!(self, "hipEventDestroy", 0, event);
        match state.event(event) {
            Some(event) => event.destroyed = true,
            None => state.violations.push(format!("{event:p} destroyed twice")),
        }
        hipSuccess
    }
    unsafe fn hipEventRecord(&self, event: hipEvent_t, stream: hipStream_t) -> hipError_t {
        let mut state = enter!(self, "hipEventRecord", stream, event);
        let Some(record) = state.event(event) else {
            return hipErrorInvalidHandle;
        };
        record.recorded += 1;
        let nth = record.recorded;
        state.enqueue(
            stream,
            Op::Record {
                event: event.addr(),
                nth,
            },
        )
    }
    unsafe fn hipEventQuery(&self, event: hipEvent_t) -> hipError_t {
        let mut state = enter!(self, "hipEventQuery", 0, event);
        let streams: Vec<usize> = state.streams.keys().copied().collect();
        for stream in streams {
            if state.records(stream, event.addr()) {
                state.run(stream);
            }
        }
        match state.event(event) {
            Some(event) if event.done >= event.recorded => hipSuccess,
            Some(_) => hipErrorNotReady,
            None => hipErrorInvalidHandle,
        }
    }
    unsafe fn hipEventSynchronize(&self, _: hipEvent_t) -> hipError_t {
        let mut state = enter!(self, "hipEventSynchronize");
        state.violations.push("a wait without a deadline".to_owned());
        hipErrorNotSupported
    }
    unsafe fn hipEventElapsedTime(&self, milliseconds: *mut f32, _: hipEvent_t, _: hipEvent_t) -> hipError_t {
        drop(enter!(self, "hipEventElapsedTime"));
        unsafe { *milliseconds = 1.5 };
        hipSuccess
    }
    unsafe fn hipModuleLoadData(&self, module: *mut hipModule_t, _: *const c_void) -> hipError_t {
        let mut state = make!(self, "hipModuleLoadData", module);
        let handle = state.fresh();
        state.modules.push(handle);
        unsafe { *module = std::ptr::without_provenance_mut(handle) };
        hipSuccess
    }
    unsafe fn hipModuleUnload(&self, module: hipModule_t) -> hipError_t {
        let mut state = enter!(self, "hipModuleUnload");
        match state.modules.iter().position(|&live| live == module.addr()) {
            Some(index) => {
                state.modules.swap_remove(index);
            }
            None => state.violations.push(format!("{module:p} unloaded twice")),
        }
        if state
            .streams
            .values()
            .flatten()
            .any(|op| matches!(op, Op::Launch { .. }))
        {
            state
                .violations
                .push(format!("{module:p} unloaded while a launch is queued"));
        }
        hipSuccess
    }
    unsafe fn hipModuleGetFunction(
        &self,
        function: *mut hipFunction_t,
        _: hipModule_t,
        _: *const c_char,
    ) -> hipError_t {
        let mut state = make!(self, "hipModuleGetFunction", function);
        let handle = state.fresh();
        unsafe { *function = std::ptr::without_provenance_mut(handle) };
        hipSuccess
    }
    unsafe fn hipFuncGetAttribute(&self, _: *mut c_int, _: hipFunction_attribute, _: hipFunction_t) -> hipError_t {
        hipErrorNotSupported
    }
    unsafe fn hipModuleLaunchKernel(
        &self,
        _: hipFunction_t,
        gx: c_uint,
        _: c_uint,
        _: c_uint,
        bx: c_uint,
        _: c_uint,
        _: c_uint,
        _: c_uint,
        stream: hipStream_t,
        params: *mut *mut c_void,
        _: *mut *mut c_void,
    ) -> hipError_t {
        let mut state = enter!(self, "hipModuleLaunchKernel", stream, 0);
        // The fixture kernel `scale` takes two pointers, a float and a count.
        let words = unsafe {
            let at = |index: usize| *params.add(index);
            vec![
                u64::from(gx),
                u64::from(bx),
                at(0).cast::<u64>().read_unaligned(),
                at(1).cast::<u64>().read_unaligned(),
                u64::from(at(2).cast::<u32>().read_unaligned()),
                u64::from(at(3).cast::<u32>().read_unaligned()),
            ]
        };
        state.enqueue(stream, Op::Launch { params: words })
    }
    unsafe fn hipGetDevicePropertiesR0600(&self, properties: *mut hipDeviceProp_tR0600, _: c_int) -> hipError_t {
        if self.old_properties {
            return hipErrorNotSupported;
        }
        drop(enter!(self, "hipGetDevicePropertiesR0600"));
        let at = hipDeviceProp_tR0600::GCN_ARCH_NAME;
        unsafe { write(properties.cast::<c_char>().add(at), 256, self.arch) };
        hipSuccess
    }
    unsafe fn hipGetDeviceProperties(&self, properties: *mut hipDeviceProp_tR0000, _: c_int) -> hipError_t {
        drop(enter!(self, "hipGetDeviceProperties"));
        let at = hipDeviceProp_tR0000::GCN_ARCH_NAME;
        unsafe { write(properties.cast::<c_char>().add(at), 256, self.arch) };
        hipSuccess
    }
    // Graphs without content: enough to begin and end a capture in which nothing is enqueued.
    unsafe fn hipStreamBeginCapture(&self, _: hipStream_t, _: hipStreamCaptureMode) -> hipError_t {
        drop(enter!(self, "hipStreamBeginCapture"));
        hipSuccess
    }
    unsafe fn hipStreamIsCapturing(&self, _: hipStream_t, status: *mut hipStreamCaptureStatus) -> hipError_t {
        drop(enter!(self, "hipStreamIsCapturing"));
        unsafe { *status = hipStreamCaptureStatusNone };
        hipSuccess
    }
    unsafe fn hipStreamEndCapture(&self, _: hipStream_t, graph: *mut hipGraph_t) -> hipError_t {
        let mut state = make!(self, "hipStreamEndCapture", graph);
        unsafe { *graph = std::ptr::without_provenance_mut(state.fresh()) };
        hipSuccess
    }
    unsafe fn hipGraphInstantiate(
        &self,
        exec: *mut hipGraphExec_t,
        _: hipGraph_t,
        _: *mut hipGraphNode_t,
        _: *mut c_char,
        _: usize,
    ) -> hipError_t {
        let mut state = make!(self, "hipGraphInstantiate", exec);
        unsafe { *exec = std::ptr::without_provenance_mut(state.fresh()) };
        hipSuccess
    }
    unsafe fn hipGraphDestroy(&self, _: hipGraph_t) -> hipError_t {
        drop(enter!(self, "hipGraphDestroy"));
        hipSuccess
    }
    unsafe fn hipGraphExecDestroy(&self, _: hipGraphExec_t) -> hipError_t {
        drop(enter!(self, "hipGraphExecDestroy"));
        hipSuccess
    }
}

impl State {
    fn enqueue(&mut self, stream: hipStream_t, op: Op) -> hipError_t {
        match self.streams.get_mut(&stream.addr()) {
            Some(queue) => {
                queue.push_back(op);
                hipSuccess
            }
            None => {
                self.violations.push(format!("work for unknown stream {stream:p}"));
                hipErrorInvalidHandle
            }
        }
    }
}

std::thread_local! {
    static CURRENT: std::cell::Cell<c_int> = const { std::cell::Cell::new(0) };
}

/// # Safety
///
/// `to` has `len` writable bytes.
unsafe fn write(to: *mut c_char, len: c_int, text: &str) {
    assert!(text.len() < len as usize);
    // SAFETY: checked above, and the caller promises the room.
    unsafe { std::ptr::copy_nonoverlapping(text.as_ptr(), to.cast(), text.len()) };
}

/// A backend over a fresh fake.
pub(crate) fn backend() -> (Arc<Fake>, Arc<rocmforge_runtime::HipBackend>) {
    let fake = Arc::new(Fake::default());
    let backend = open(&fake).expect("the fake opens");
    (fake, backend)
}

/// A backend over this fake, each of whose buffers is a `hipMalloc` of its own.
pub(crate) fn open(fake: &Arc<Fake>) -> rocmforge_runtime::HipResult<Arc<rocmforge_runtime::HipBackend>> {
    open_with(fake, rocmforge_runtime::PoolOptions::OFF)
}

/// A backend over this fake with a pool.
pub(crate) fn open_with(
    fake: &Arc<Fake>,
    pool: rocmforge_runtime::PoolOptions,
) -> rocmforge_runtime::HipResult<Arc<rocmforge_runtime::HipBackend>> {
    use rocmforge_runtime::{BackendOptions, HipBackend, Policy, Provider};
    let api: Arc<dyn HipApi> = Arc::<Fake>::clone(fake);
    let provider = Provider::new(api).with_clock(Arc::<Fake>::clone(fake));
    HipBackend::open(
        provider,
        BackendOptions {
            policy: Policy::headless(),
            pool,
            ..BackendOptions::default()
        },
    )
}
