//! A launch file's launches on a leased device, through HIP alone.

use rocmforge_code_object::CodeObject;
use rocmforge_hip_sys::*;
use rocmforge_kernels::Pack;
use rocmforge_sanitize::{LaunchFile, ObjectFile, Plan};
use rocmforge_testkit::GpuLease;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::path::Path;
use std::process::Command;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a kernel may take: all are done in milliseconds, or never.
const LONGEST: Duration = Duration::from_secs(10);

/// A call that was refused.
#[derive(Debug, thiserror::Error)]
#[error("{call} answers {status:?}")]
pub(crate) struct Refused {
    call: &'static str,
    status: hipError_t,
}

fn check(call: &'static str, status: hipError_t) -> Result<(), Refused> {
    if status.is_success() {
        Ok(())
    } else {
        Err(Refused { call, status })
    }
}

/// A leased device and the faulty kernels compiled for it.
pub(crate) struct Device {
    api: Arc<dyn HipApi>,
    arch: String,
    pack: Pack,
}

impl Device {
    /// `None` if there is no pack for the processor.
    pub(crate) fn of(gpu: &GpuLease) -> Option<Self> {
        let info = gpu.backend().device();
        let packed: &[u8] = match &*info.arch {
            "gfx1100" => include_bytes!("../kernels/prebuilt/gfx1100.pack"),
            arch if arch.starts_with("sm_") => include_bytes!("../kernels/prebuilt/sm_75.pack"),
            _ => return None,
        };
        let api = gpu.api().clone();
        // SAFETY: takes a number.
        let status = unsafe { api.hipSetDevice(info.ordinal) };
        assert_eq!(status, hipSuccess);
        Some(Self {
            api,
            arch: info.arch.clone(),
            pack: Pack::read(packed).expect("the pack is committed"),
        })
    }

    pub(crate) fn is_nvidia(&self) -> bool {
        self.arch.starts_with("sm_")
    }

    /// Whether the device still answers.
    pub(crate) fn is_alive(&self) -> bool {
        // SAFETY: the null stream is always there.
        unsafe { self.api.hipStreamSynchronize(null_mut()) }.is_success()
    }

    /// What the device loads: with NVIDIA's assembler at hand a cubin that knows its source lines, which the driver's own
    /// compiler does not keep.
    fn image(&self, name: &str, object: &[u8]) -> Vec<u8> {
        if !self.is_nvidia() {
            return object.to_vec();
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (ptx, cubin) = (folder.path().join("kernel.ptx"), folder.path().join("kernel.cubin"));
        std::fs::write(&ptx, object).expect("a file in it");
        let mut assembler = Command::new("ptxas");
        assembler.args(["--generate-line-info", "--gpu-name", &self.arch, "-o"]);
        match assembler.arg(&cubin).arg(&ptx).output() {
            Ok(output) if output.status.success() => std::fs::read(&cubin).expect("ptxas has written it"),
            Ok(output) => panic!("{name}: ptxas: {}", String::from_utf8_lossy(&output.stderr)),
            Err(_) => [object, &b"\0"[..]].concat(),
        }
    }
}

/// A launch file that fits its object.
pub(crate) struct Program {
    plan: Plan,
    image: Vec<u8>,
}

impl Program {
    pub(crate) fn new(device: &Device, name: &str, launch_file: &str) -> Self {
        let object = device.pack.object(&format!("{name}.O1")).expect("the pack is sound");
        let mut object = object.unwrap_or_else(|| panic!("{name}: run cargo xtask kernels build"));
        let mut text = format!("object = \"{name}\"\n{launch_file}");
        if device.is_nvidia() {
            // Tools name the kernel, and all of them are called the same.
            let own = name.replace('/', "_");
            let mut ptx = String::from_utf8(object).expect("PTX is text");
            for word in ["faulty", "correct"] {
                ptx = ptx.replace(word, &format!("{own}_{word}"));
                text = text.replace(&format!("\"{word}"), &format!("\"{own}_{word}"));
            }
            object = ptx.into_bytes();
        }
        let file = LaunchFile::parse(Path::new(name), &text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let meta = CodeObject::parse(&object).unwrap_or_else(|error| panic!("{name}: {error}"));
        let object = ObjectFile {
            processor: meta.target.arch.clone(),
            meta,
            elf: object,
        };
        let image = device.image(name, &object.elf);
        let plan = Plan::for_device(file, object).unwrap_or_else(|error| panic!("{name}: {error}"));
        Self { plan, image }
    }

    /// Launches everything, waits, and gives back what it took.
    pub(crate) fn run(&self, device: &Device) -> Result<(), Refused> {
        let mut session = Session {
            api: &*device.api,
            buffers: Vec::new(),
            streams: HashMap::new(),
            events: Vec::new(),
        };
        let ran = session.run(&self.plan, &self.image);
        let ended = session.end();
        ran.and(ended)
    }
}

/// What one run has made.
struct Session<'d> {
    api: &'d dyn HipApi,
    buffers: Vec<u64>,
    streams: HashMap<String, hipStream_t>,
    events: Vec<hipEvent_t>,
}

impl Session<'_> {
    fn run(&mut self, plan: &Plan, image: &[u8]) -> Result<(), Refused> {
        let (api, mut module) = (self.api, null_mut());
        // SAFETY: the image is a whole object, or a text that ends with NUL.
        let loaded = unsafe { api.hipModuleLoadData(&mut module, image.as_ptr().cast()) };
        check("hipModuleLoadData", loaded)?;
        for (index, buffer) in plan.file.buffers.iter().enumerate() {
            let address = self.allocate(buffer.bytes())?;
            if let Some(contents) = plan.contents(index) {
                self.upload(address, contents)?;
            }
        }
        for (index, launch) in plan.file.launches.iter().enumerate() {
            let stream = self.stream(&launch.stream)?;
            for before in &launch.after {
                // SAFETY: both were made here.
                let waits = unsafe { api.hipStreamWaitEvent(stream, self.events[*before], 0) };
                check("hipStreamWaitEvent", waits)?;
            }
            let (name, mut function) = (CString::new(&*launch.kernel).expect("no NUL"), null_mut());
            // SAFETY: the module was loaded above; the name ends with NUL.
            let found = unsafe { api.hipModuleGetFunction(&mut function, module, name.as_ptr()) };
            check("hipModuleGetFunction", found)?;
            let mut arguments = plan.arguments(index, &self.buffers);
            let mut params: Vec<*mut c_void> = arguments.iter_mut().map(|value| value.as_mut_ptr().cast()).collect();
            let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
            let (params, lds) = (params.as_mut_ptr(), launch.lds);
            // SAFETY: the plan has checked the arguments against the object. What the kernel does with them is the test.
            let launched =
                unsafe { api.hipModuleLaunchKernel(function, gx, gy, gz, bx, by, bz, lds, stream, params, null_mut()) };
            check("hipModuleLaunchKernel", launched)?;
            self.record(stream)?;
        }
        self.wait()?;
        // SAFETY: nothing of it runs any more.
        check("hipModuleUnload", unsafe { api.hipModuleUnload(module) })
    }

    fn allocate(&mut self, bytes: usize) -> Result<u64, Refused> {
        let mut ptr = null_mut();
        // SAFETY: `ptr` lives for the call.
        check("hipMalloc", unsafe { self.api.hipMalloc(&mut ptr, bytes) })?;
        self.buffers.push(ptr.addr() as u64);
        Ok(ptr.addr() as u64)
    }

    /// Copies in a stream of its own, and waits.
    fn upload(&mut self, address: u64, bytes: &[u8]) -> Result<(), Refused> {
        let (to, from) = (without_provenance_mut(address as usize), bytes.as_ptr().cast());
        let (stream, size) = (self.stream("upload")?, bytes.len());
        // SAFETY: both have this size, and live until the wait below has returned.
        let copied = unsafe { self.api.hipMemcpyAsync(to, from, size, hipMemcpyHostToDevice, stream) };
        check("hipMemcpyAsync", copied)?;
        self.wait()
    }

    fn stream(&mut self, name: &str) -> Result<hipStream_t, Refused> {
        if let Some(stream) = self.streams.get(name) {
            return Ok(*stream);
        }
        let mut stream = null_mut();
        // SAFETY: `stream` lives for the call.
        let made = unsafe { self.api.hipStreamCreateWithFlags(&mut stream, hipStreamNonBlocking) };
        check("hipStreamCreateWithFlags", made)?;
        self.streams.insert(name.to_owned(), stream);
        Ok(stream)
    }

    fn record(&mut self, stream: hipStream_t) -> Result<(), Refused> {
        let mut event = null_mut();
        // SAFETY: `event` lives for the call.
        let made = unsafe { self.api.hipEventCreateWithFlags(&mut event, hipEventDisableTiming) };
        check("hipEventCreateWithFlags", made)?;
        self.events.push(event);
        // SAFETY: both were made here.
        check("hipEventRecord", unsafe { self.api.hipEventRecord(event, stream) })
    }

    /// Waits, but not for ever: with a kernel that does not end the process ends.
    fn wait(&self) -> Result<(), Refused> {
        let start = Instant::now();
        for stream in self.streams.values() {
            loop {
                // SAFETY: made here.
                match unsafe { self.api.hipStreamQuery(*stream) } {
                    hipErrorNotReady if start.elapsed() > LONGEST => std::process::abort(),
                    hipErrorNotReady => std::thread::sleep(Duration::from_micros(100)),
                    status => break check("hipStreamQuery", status)?,
                }
            }
        }
        Ok(())
    }

    /// Gives everything back; on a card that has stopped nobody can.
    fn end(self) -> Result<(), Refused> {
        self.wait()?;
        for event in self.events {
            // SAFETY: made here, and nothing waits for it any more.
            check("hipEventDestroy", unsafe { self.api.hipEventDestroy(event) })?;
        }
        for stream in self.streams.into_values() {
            // SAFETY: made here, and idle.
            check("hipStreamDestroy", unsafe { self.api.hipStreamDestroy(stream) })?;
        }
        for address in self.buffers {
            let ptr = without_provenance_mut(address as usize);
            // SAFETY: made here, and nothing uses it any more.
            check("hipFree", unsafe { self.api.hipFree(ptr) })?;
        }
        Ok(())
    }
}
