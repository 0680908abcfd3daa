//! A simulated machine of each instruction set, and calls without ceremony.

use rocmforge_hip_sys::*;
use rocmforge_sim::{Arch, CardConfig, Report, ReportKind, SimConfig, SimHost, Tools};
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// The object of `tests/kernels/device.hip`.
pub(crate) fn object(arch: Arch) -> &'static [u8] {
    match arch {
        Arch::Gfx1100 => include_bytes!("../kernels/device-gfx1100.co"),
        Arch::Gfx1201 => include_bytes!("../kernels/device-gfx1201.co"),
    }
}

/// A machine, and the kernels loaded on it.
pub(crate) struct Machine {
    pub(crate) sim: Arc<SimHost>,
    module: hipModule_t,
}

/// An argument of a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Arg {
    Ptr(*mut c_void),
    U32(u32),
    U64(u64),
}

impl Arg {
    fn bytes(self) -> Vec<u8> {
        match self {
            Arg::Ptr(ptr) => (ptr.addr() as u64).to_le_bytes().to_vec(),
            Arg::U32(n) => n.to_le_bytes().to_vec(),
            Arg::U64(n) => n.to_le_bytes().to_vec(),
        }
    }
}

/// One machine for each instruction set, with all tools.
pub(crate) fn machines() -> impl Iterator<Item = Machine> {
    machines_with(|_| {})
}

pub(crate) fn machines_with(change: impl Fn(&mut SimConfig)) -> impl Iterator<Item = Machine> {
    Arch::ALL.into_iter().map(move |arch| {
        let mut config = SimConfig {
            cards: vec![CardConfig::of(arch)],
            tools: Tools::all(),
            ..SimConfig::default()
        };
        change(&mut config);
        Machine::new(config, object(arch))
    })
}

impl Machine {
    pub(crate) fn new(config: SimConfig, object: &[u8]) -> Self {
        let sim = SimHost::new(config);
        let mut module = null_mut();
        // SAFETY: valid pointers; the image is a code object.
        let status = unsafe { sim.hipModuleLoadData(&raw mut module, object.as_ptr().cast()) };
        assert_eq!(status, hipSuccess, "{:#?}", sim.reports());
        Self { sim, module }
    }

    pub(crate) fn function(&self, kernel: &str) -> hipFunction_t {
        let (name, mut function) = (CString::new(kernel).expect("no NUL"), null_mut());
        // SAFETY: valid pointers.
        let status = unsafe {
            self.sim
                .hipModuleGetFunction(&raw mut function, self.module, name.as_ptr())
        };
        assert_eq!(status, hipSuccess, "{kernel}");
        function
    }

    /// Queues a launch on the null stream.
    pub(crate) fn launch(&self, kernel: &str, groups: u32, threads: u32, args: &[Arg]) -> hipError_t {
        let mut values: Vec<Vec<u8>> = args.iter().map(|arg| arg.bytes()).collect();
        let mut params: Vec<*mut c_void> = values.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
        let function = self.function(kernel);
        // SAFETY: one valid pointer for each argument.
        unsafe {
            self.sim.hipModuleLaunchKernel(
                function,
                groups,
                1,
                1,
                threads,
                1,
                1,
                0,
                null_mut(),
                params.as_mut_ptr(),
                null_mut(),
            )
        }
    }

    pub(crate) fn wait(&self) -> hipError_t {
        // SAFETY: no pointers.
        unsafe { self.sim.hipDeviceSynchronize() }
    }

    /// Launches, waits, and expects nothing wrong.
    #[track_caller]
    pub(crate) fn run(&self, kernel: &str, groups: u32, threads: u32, args: &[Arg]) {
        assert_eq!(self.launch(kernel, groups, threads, args), hipSuccess, "{kernel}");
        assert_eq!(self.wait(), hipSuccess, "{kernel}: {:#?}", self.sim.reports());
        self.clean();
    }

    #[track_caller]
    pub(crate) fn clean(&self) {
        let reports = self.sim.take_reports();
        assert!(reports.is_empty(), "{reports:#?}");
    }

    /// The one report there must be.
    #[track_caller]
    pub(crate) fn only_report(&self, kind: ReportKind) -> Report {
        let mut reports = self.sim.take_reports();
        assert_eq!(reports.len(), 1, "{reports:#?}");
        let report = reports.remove(0);
        assert_eq!(report.kind, kind, "{report}");
        report
    }

    pub(crate) fn pinned(&self, bytes: usize) -> *mut c_void {
        let mut ptr = null_mut();
        // SAFETY: a valid pointer.
        assert_eq!(unsafe { self.sim.hipHostMalloc(&raw mut ptr, bytes, 0) }, hipSuccess);
        ptr
    }

    pub(crate) fn managed(&self, bytes: usize) -> *mut c_void {
        let mut ptr = null_mut();
        // SAFETY: a valid pointer.
        let status = unsafe { self.sim.hipMallocManaged(&raw mut ptr, bytes, hipMemAttachGlobal) };
        assert_eq!(status, hipSuccess);
        ptr
    }

    /// Device memory that holds zeros.
    pub(crate) fn zeros(&self, bytes: usize) -> *mut c_void {
        let mut ptr = null_mut();
        // SAFETY: a valid pointer, and memory of this size.
        unsafe {
            assert_eq!(self.sim.hipMalloc(&raw mut ptr, bytes), hipSuccess);
            assert_eq!(self.sim.hipMemset(ptr, 0, bytes), hipSuccess);
        }
        ptr
    }

    /// Writes device memory.
    pub(crate) fn upload<T: Copy>(&self, ptr: *mut c_void, values: &[T]) {
        let bytes = size_of_val(values);
        // SAFETY: the slice has this size.
        let status = unsafe {
            self.sim
                .hipMemcpy(ptr, values.as_ptr().cast(), bytes, hipMemcpyHostToDevice)
        };
        assert_eq!(status, hipSuccess);
    }

    pub(crate) fn download<T: Copy + Default>(&self, ptr: *mut c_void, n: usize) -> Vec<T> {
        let mut values = vec![T::default(); n];
        let bytes = size_of_val(values.as_slice());
        // SAFETY: the vector has this size; its elements are numbers.
        let status = unsafe {
            self.sim
                .hipMemcpy(values.as_mut_ptr().cast(), ptr, bytes, hipMemcpyDeviceToHost)
        };
        assert_eq!(status, hipSuccess);
        values
    }
}

/// Writes host memory that the tests have allocated.
pub(crate) fn write<T: Copy>(ptr: *mut c_void, values: &[T]) {
    // SAFETY: the tests write within what they have allocated.
    unsafe {
        ptr.cast::<T>().copy_from_nonoverlapping(values.as_ptr(), values.len());
    }
}

/// Reads it.
pub(crate) fn read<T: Copy>(ptr: *mut c_void, n: usize) -> Vec<T> {
    // SAFETY: the tests read within what they have allocated.
    (0..n)
        .map(|at| unsafe { ptr.cast::<T>().wrapping_add(at).read() })
        .collect()
}
