//! A simulated machine, called through HIP as any program calls it. Every unsafe call of this crate is here.

use crate::error::{Error, Place};
use crate::launch_file::ScheduleKind;
use crate::plan::Plan;
use rocmforge_hip_sys::*;
use rocmforge_memory::Bytes;
use rocmforge_sim::{CardConfig, Report, Schedule, SimConfig, SimHost};
use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::Arc;

/// Changes of priority in a run under [`ScheduleKind::Pct`].
const PCT_DEPTH: u32 = 3;
/// Memory of the card beyond the buffers: for padding and rounding.
const SPARE: u64 = 256 << 20;

pub(crate) struct Machine {
    sim: Arc<SimHost>,
}

/// A launch with its arguments laid out one after another, each in 8 bytes or more.
pub(crate) struct Launch<'a> {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) lds: u32,
    pub(crate) args: &'a [Vec<u8>],
}

/// A call that was not answered with success.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refusal {
    pub(crate) call: &'static str,
    pub(crate) status: hipError_t,
}

pub(crate) fn refuse(call: &'static str, status: hipError_t) -> Result<(), Refusal> {
    if status == hipSuccess {
        Ok(())
    } else {
        Err(Refusal { call, status })
    }
}

impl Machine {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Result<Self, Error> {
        let (file, arch) = (&plan.file, plan.processor());
        let bytes: u64 = file.buffers.iter().map(|buffer| buffer.bytes() as u64).sum();
        let schedule = match file.schedule {
            ScheduleKind::Lazy => Schedule::Lazy,
            ScheduleKind::Eager => Schedule::Eager,
            ScheduleKind::Reverse => Schedule::Reverse,
            ScheduleKind::Random => Schedule::Random(seed),
            ScheduleKind::Pct => Schedule::Pct { seed, depth: PCT_DEPTH },
        };
        let card = CardConfig {
            arch: arch.to_owned(),
            name: format!("Simulated Radeon ({arch})"),
            ..CardConfig::with_vram(Bytes(SPARE + 2 * bytes))
        };
        let config = SimConfig {
            cards: vec![card],
            seed,
            schedule,
            strict: file.strict,
            instruction_budget: file.budget,
            tools: file.tools,
            padding: plan.options.padding,
            ..SimConfig::default()
        };
        Ok(Self {
            sim: SimHost::try_new(config)?,
        })
    }

    pub(crate) fn take_reports(&self) -> Vec<Report> {
        self.sim.take_reports()
    }

    /// Number of the latest call, as reports name it.
    pub(crate) fn calls(&self) -> u64 {
        self.sim.counters().calls
    }

    pub(crate) fn instructions(&self) -> u64 {
        self.sim.counters().instructions
    }

    fn check(&self, at: &Place, call: &'static str, status: hipError_t) -> Result<(), Error> {
        refuse(call, status).map_err(|refusal| self.error(at, refusal))
    }

    /// What is rarely meant in the kernels and copies that have run.
    pub(crate) fn warnings(&self) -> Vec<Report> {
        self.sim.warnings().into_iter().filter(Report::is_of_memory).collect()
    }

    /// An error about a call, with what the simulator says of it.
    pub(crate) fn error(&self, at: &Place, Refusal { call, status }: Refusal) -> Error {
        let mut reasons: Vec<String> = self.sim.take_reports().iter().map(ToString::to_string).collect();
        reasons.extend(self.sim.warnings().iter().map(|warning| warning.message.clone()));
        Error::Refused {
            at: at.clone(),
            call,
            status,
            reasons,
        }
    }

    pub(crate) fn load(&self, at: &Place, elf: &[u8]) -> Result<hipModule_t, Error> {
        let mut module = null_mut();
        // SAFETY: `elf` was parsed as a code object, so it is as long as its tables say; `module` is a live out-pointer.
        let status = unsafe { self.sim.hipModuleLoadData(&mut module, elf.as_ptr().cast()) };
        self.check(at, "hipModuleLoadData", status)?;
        Ok(module)
    }

    pub(crate) fn function(&self, at: &Place, module: hipModule_t, name: &str) -> Result<hipFunction_t, Error> {
        let mut function = null_mut();
        // A name with a NUL in it is not the name of a kernel that was found.
        let name = CString::new(name).unwrap_or_default();
        // SAFETY: `name` is a text that ends with NUL, `function` a live out-pointer.
        let status = unsafe { self.sim.hipModuleGetFunction(&mut function, module, name.as_ptr()) };
        self.check(at, "hipModuleGetFunction", status)?;
        Ok(function)
    }

    pub(crate) fn stream(&self, at: &Place) -> Result<hipStream_t, Error> {
        let mut stream = null_mut();
        // SAFETY: `stream` is a live out-pointer.
        let status = unsafe { self.sim.hipStreamCreateWithFlags(&mut stream, hipStreamNonBlocking) };
        self.check(at, "hipStreamCreateWithFlags", status)?;
        Ok(stream)
    }

    pub(crate) fn event(&self, at: &Place) -> Result<hipEvent_t, Error> {
        let mut event = null_mut();
        // SAFETY: `event` is a live out-pointer.
        let status = unsafe { self.sim.hipEventCreateWithFlags(&mut event, hipEventDisableTiming) };
        self.check(at, "hipEventCreateWithFlags", status)?;
        Ok(event)
    }

    pub(crate) fn record(&self, at: &Place, event: hipEvent_t, stream: hipStream_t) -> Result<(), Error> {
        // SAFETY: both handles were made here and are never destroyed.
        let status = unsafe { self.sim.hipEventRecord(event, stream) };
        self.check(at, "hipEventRecord", status)
    }

    pub(crate) fn wait(&self, at: &Place, stream: hipStream_t, event: hipEvent_t) -> Result<(), Error> {
        // SAFETY: as for `record`.
        let status = unsafe { self.sim.hipStreamWaitEvent(stream, event, 0) };
        self.check(at, "hipStreamWaitEvent", status)
    }

    /// Allocates and names a buffer, and gives its address.
    pub(crate) fn allocate(&self, at: &Place, bytes: usize, label: &str) -> Result<u64, Refusal> {
        let mut ptr = null_mut();
        // SAFETY: `ptr` is a live out-pointer.
        let status = unsafe { self.sim.hipMalloc(&mut ptr, bytes) };
        refuse("hipMalloc", status)?;
        HipNames::name_allocation(&*self.sim, ptr, label, &at.to_string());
        Ok(ptr.addr() as u64)
    }

    /// Frees what lies at `address`. What is wrong with that is a report.
    pub(crate) fn free(&self, address: u64) -> hipError_t {
        let ptr: *mut c_void = std::ptr::without_provenance_mut(address as usize);
        // SAFETY: the simulator follows no device pointer; one that is not allocated it refuses.
        unsafe { self.sim.hipFree(ptr) }
    }

    /// Queues a copy on the device.
    pub(crate) fn copy(&self, to: u64, from: u64, bytes: u64, stream: hipStream_t) -> hipError_t {
        let to: *mut c_void = std::ptr::without_provenance_mut(to as usize);
        let from: *const c_void = std::ptr::without_provenance(from as usize);
        // SAFETY: both are device addresses, which the simulator looks up; it refuses those that are not allocated.
        unsafe {
            self.sim
                .hipMemcpyAsync(to, from, bytes as usize, hipMemcpyDeviceToDevice, stream)
        }
    }

    /// What is still allocated.
    pub(crate) fn leaks(&self) -> Vec<Report> {
        self.sim.leaks()
    }

    /// Copies `bytes` to the device, and waits.
    pub(crate) fn upload(&self, address: u64, bytes: &[u8], stream: hipStream_t) -> Result<(), Refusal> {
        let to: *mut c_void = std::ptr::without_provenance_mut(address as usize);
        // SAFETY: `bytes` lives until the wait below has returned; the device range was allocated with this size.
        let status = unsafe {
            self.sim
                .hipMemcpyAsync(to, bytes.as_ptr().cast(), bytes.len(), hipMemcpyHostToDevice, stream)
        };
        refuse("hipMemcpyAsync", status)?;
        refuse("hipStreamSynchronize", self.synchronize(stream))
    }

    /// Copies device memory to the host, and waits.
    pub(crate) fn download(&self, address: u64, bytes: &mut [u8], stream: hipStream_t) -> hipError_t {
        let from: *const c_void = std::ptr::without_provenance(address as usize);
        // SAFETY: `bytes` lives until the wait below has returned; the device range was allocated with this size.
        let status = unsafe {
            self.sim.hipMemcpyAsync(
                bytes.as_mut_ptr().cast(),
                from,
                bytes.len(),
                hipMemcpyDeviceToHost,
                stream,
            )
        };
        if status == hipSuccess {
            self.synchronize(stream)
        } else {
            status
        }
    }

    pub(crate) fn synchronize(&self, stream: hipStream_t) -> hipError_t {
        // SAFETY: the stream was made here and is never destroyed.
        unsafe { self.sim.hipStreamSynchronize(stream) }
    }

    pub(crate) fn launch(&self, function: hipFunction_t, launch: &Launch<'_>, stream: hipStream_t) -> hipError_t {
        let mut params: Vec<*mut c_void> = launch.args.iter().map(|arg| arg.as_ptr().cast_mut().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        // SAFETY: there is a pointer for each argument of the kernel, to as many bytes as it declares (`Plan` has compared
        // them); they are read before the call returns.
        unsafe {
            self.sim.hipModuleLaunchKernel(
                function,
                gx,
                gy,
                gz,
                bx,
                by,
                bz,
                launch.lds,
                stream,
                params.as_mut_ptr(),
                null_mut(),
            )
        }
    }
}
