//! A device for one row, through [`HipApi`] alone: simulated, or real.

pub(crate) use crate::support::{N, answers, at, call, fill_host, peek};
use rocmforge_hip_sys::*;
use rocmforge_sim::{Report, ReportKind, SimHost};
use std::ffi::{CString, c_void};
use std::ops::Deref;
use std::ptr::null_mut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Whose answers are expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platform {
    /// AMD's library, version 6 or older.
    Hip6,
    /// AMD's library from version 7 on.
    Hip7,
    /// The provider over NVIDIA's driver.
    Nvidia,
}

/// A device, ready for calls: `rig.hipMalloc(..)` is the provider's.
pub(crate) struct Rig {
    api: Arc<dyn HipApi>,
    pub(crate) platform: Platform,
    pub(crate) ordinal: i32,
    probe: &'static [u8],
    sim: Option<Arc<SimHost>>,
}

/// The probe kernels (`tests/kernels/probe.hip`), if they are compiled for a processor.
pub(crate) fn probe_for(arch: &str) -> Option<&'static [u8]> {
    match arch {
        "gfx1100" => Some(include_bytes!("../kernels/probe-gfx1100.co")),
        "gfx1201" => Some(include_bytes!("../kernels/probe-gfx1201.co")),
        _ if arch.starts_with("sm_") => Some(concat!(include_str!("../kernels/probe-sm_75.ptx"), "\0").as_bytes()),
        _ => None,
    }
}

impl Deref for Rig {
    type Target = dyn HipApi;

    fn deref(&self) -> &Self::Target {
        &*self.api
    }
}

/// An argument of a kernel, by value.
pub(crate) enum Arg {
    Pointer(*mut c_void),
    Word(u32),
    Float(f32),
}

impl Arg {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        match self {
            Arg::Pointer(ptr) => (ptr.addr() as u64).to_le_bytes().to_vec(),
            Arg::Word(word) => word.to_le_bytes().to_vec(),
            Arg::Float(float) => float.to_le_bytes().to_vec(),
        }
    }
}

impl Rig {
    pub(crate) fn new(
        api: Arc<dyn HipApi>,
        platform: Platform,
        ordinal: i32,
        probe: &'static [u8],
        sim: Option<Arc<SimHost>>,
    ) -> Self {
        let rig = Self {
            api,
            platform,
            ordinal,
            probe,
            sim,
        };
        answers!(hipSuccess, rig.hipInit(0));
        answers!(hipSuccess, rig.hipSetDevice(ordinal));
        // What was wrong before is not the row's.
        let _ = call!(rig.hipGetLastError());
        rig
    }

    /// What AMD's versions answer where they differ. NVIDIA's provider answers as HIP 7.
    pub(crate) fn by_version<T>(&self, hip6: T, hip7: T) -> T {
        match self.platform {
            Platform::Hip6 => hip6,
            Platform::Hip7 | Platform::Nvidia => hip7,
        }
    }

    /// What is answered where NVIDIA's driver differs: each such row is in `docs/abi.md`, which `completeness` checks.
    pub(crate) fn by_platform<T>(&self, amd: T, nvidia: T) -> T {
        match self.platform {
            Platform::Hip6 | Platform::Hip7 => amd,
            Platform::Nvidia => nvidia,
        }
    }

    pub(crate) fn is_nvidia(&self) -> bool {
        self.platform == Platform::Nvidia
    }

    /// The number of a device that does not exist: the first after the last.
    pub(crate) fn no_device(&self) -> i32 {
        let mut count = 0;
        answers!(hipSuccess, self.hipGetDeviceCount(&raw mut count));
        count
    }

    // Memory

    pub(crate) fn malloc(&self, size: usize) -> *mut c_void {
        let mut ptr = null_mut();
        answers!(hipSuccess, self.hipMalloc(&raw mut ptr, size));
        ptr
    }

    pub(crate) fn pinned(&self, size: usize) -> *mut u8 {
        let mut ptr = null_mut();
        answers!(hipSuccess, self.hipHostMalloc(&raw mut ptr, size, 0));
        ptr.cast()
    }

    /// Device memory that holds `value` in every byte.
    pub(crate) fn filled(&self, size: usize, value: i32) -> *mut c_void {
        let ptr = self.malloc(size);
        answers!(hipSuccess, self.hipMemsetAsync(ptr, value, size, null_mut()));
        self.wait(null_mut());
        ptr
    }

    /// What device memory holds.
    pub(crate) fn download(&self, ptr: *mut c_void, size: usize) -> Vec<u8> {
        let mut bytes = vec![0xEE; size];
        let to = bytes.as_mut_ptr().cast();
        answers!(
            hipSuccess,
            self.hipMemcpyAsync(to, ptr, size, hipMemcpyDeviceToHost, null_mut())
        );
        self.wait(null_mut());
        bytes
    }

    pub(crate) fn upload(&self, values: &[f32]) -> *mut c_void {
        let size = size_of_val(values);
        let ptr = self.malloc(size);
        let from = values.as_ptr().cast();
        answers!(
            hipSuccess,
            self.hipMemcpyAsync(ptr, from, size, hipMemcpyHostToDevice, null_mut())
        );
        self.wait(null_mut());
        ptr
    }

    pub(crate) fn words(&self, ptr: *mut c_void, n: usize) -> Vec<u32> {
        let bytes = self.download(ptr, 4 * n);
        let words = bytes.as_chunks::<4>().0.iter();
        words.map(|word| u32::from_le_bytes(*word)).collect()
    }

    pub(crate) fn floats(&self, ptr: *mut c_void, n: usize) -> Vec<f32> {
        self.words(ptr, n).into_iter().map(f32::from_bits).collect()
    }

    // Streams and events

    pub(crate) fn stream(&self) -> hipStream_t {
        self.stream_with(hipStreamNonBlocking)
    }

    pub(crate) fn stream_with(&self, flags: u32) -> hipStream_t {
        let mut stream = null_mut();
        answers!(hipSuccess, self.hipStreamCreateWithFlags(&raw mut stream, flags));
        stream
    }

    pub(crate) fn event(&self) -> hipEvent_t {
        self.event_with(hipEventDefault)
    }

    pub(crate) fn event_with(&self, flags: u32) -> hipEvent_t {
        let mut event = null_mut();
        answers!(hipSuccess, self.hipEventCreateWithFlags(&raw mut event, flags));
        event
    }

    #[track_caller]
    pub(crate) fn wait(&self, stream: hipStream_t) {
        answers!(hipSuccess, self.hipStreamSynchronize(stream));
    }

    /// Keeps a stream busy until the value is ended.
    pub(crate) fn keep_busy(&self, stream: hipStream_t) -> Busy {
        let gate = self.sim.is_none().then(|| {
            let gate = Arc::new(Gate(AtomicBool::new(false)));
            let user = Arc::into_raw(gate.clone()).cast_mut().cast();
            answers!(hipSuccess, self.hipLaunchHostFunc(stream, Some(wait_at_gate), user));
            gate
        });
        let filled = self.malloc(N);
        answers!(hipSuccess, self.hipMemsetAsync(filled, 1, N, stream));
        Busy { gate, filled }
    }

    // Kernels

    /// The image of the probe kernels (`tests/kernels/probe.hip`).
    pub(crate) fn probe(&self) -> &'static [u8] {
        self.probe
    }

    pub(crate) fn load(&self) -> hipModule_t {
        let mut module = null_mut();
        let image = self.probe().as_ptr().cast();
        answers!(hipSuccess, self.hipModuleLoadData(&raw mut module, image));
        module
    }

    pub(crate) fn function(&self, module: hipModule_t, name: &str) -> hipFunction_t {
        let (name, mut function) = (CString::new(name).expect("no NUL"), null_mut());
        answers!(
            hipSuccess,
            self.hipModuleGetFunction(&raw mut function, module, name.as_ptr())
        );
        function
    }

    /// A launch on a stream; the arguments are gone when it returns.
    pub(crate) fn launch(
        &self,
        function: hipFunction_t,
        blocks: u32,
        threads: u32,
        stream: hipStream_t,
        args: &[Arg],
    ) -> hipError_t {
        let mut values: Vec<Vec<u8>> = args.iter().map(Arg::bytes).collect();
        let mut params: Vec<*mut c_void> = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        let at = params.as_mut_ptr();
        let status =
            call!(self.hipModuleLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, at, null_mut()));
        values.iter_mut().for_each(|value| value.fill(0xEE));
        status
    }

    /// Launches one kernel of the probe module on the null stream and waits.
    pub(crate) fn run(&self, name: &str, blocks: u32, threads: u32, args: &[Arg]) -> hipError_t {
        let function = self.function(self.load(), name);
        let status = self.launch(function, blocks, threads, null_mut(), args);
        if status == hipSuccess {
            call!(self.hipStreamSynchronize(null_mut()))
        } else {
            status
        }
    }

    // What the simulator alone can show

    /// The simulator has seen this mistake and no other. A card says nothing but its status.
    #[track_caller]
    pub(crate) fn only_report(&self, kind: ReportKind) {
        if let Some(sim) = &self.sim {
            crate::support::only_report(sim, kind);
        }
    }

    /// The same, and more that is to be said of the report.
    pub(crate) fn only_report_with(&self, kind: ReportKind, check: impl FnOnce(&Report)) {
        if let Some(sim) = &self.sim {
            check(&crate::support::only_report(sim, kind));
        }
    }

    /// The simulator has seen no mistake.
    #[track_caller]
    pub(crate) fn clean(&self) {
        if let Some(sim) = &self.sim {
            crate::support::clean(sim);
        }
    }

    /// More that can be asked of the simulator.
    pub(crate) fn simulated(&self, check: impl FnOnce(&SimHost)) {
        if let Some(sim) = &self.sim {
            check(sim);
        }
    }
}

struct Gate(AtomicBool);

/// A stream stays busy no longer than this, whatever becomes of the test.
const LONGEST: Duration = Duration::from_secs(20);

unsafe extern "C" fn wait_at_gate(user: *mut c_void) {
    // SAFETY: `keep_busy` has passed a reference count of its own.
    let gate = unsafe { Arc::from_raw(user.cast::<Gate>()) };
    let start = Instant::now();
    while !gate.0.load(Ordering::Acquire) && start.elapsed() < LONGEST {
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// Work that keeps a stream busy. On a card a host function waits in the stream for a gate; simulated work does not run before
/// somebody waits for it. Then a fill runs.
#[must_use = "dropped, it lets the work end"]
pub(crate) struct Busy {
    gate: Option<Arc<Gate>>,
    /// What the fill sets to 1: [`N`] bytes.
    pub(crate) filled: *mut c_void,
}

impl Busy {
    /// Lets the work end.
    pub(crate) fn end(self) {}

    /// Lets the work end while the next call, which waits for it, is under way.
    pub(crate) fn ends_soon(mut self) {
        if let Some(gate) = self.gate.take() {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                gate.0.store(true, Ordering::Release);
            });
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if let Some(gate) = &self.gate {
            gate.0.store(true, Ordering::Release);
        }
    }
}
