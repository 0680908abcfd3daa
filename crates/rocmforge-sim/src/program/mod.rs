//! Host programs as data: a list of operations that can be generated, run, cut down and printed.
//!
//! Objects have small numbers for names. An operation on a name that was never made is skipped, so any part of a program
//! is a program: that is what [`shrink`] needs. A name of something that was destroyed keeps its handle: wrong programs
//! are what this is for.
//!
//! ```
//! use rocmforge_sim::program::{Op, run, shrink};
//! use rocmforge_sim::{ReportKind, SimConfig};
//!
//! let mut ops = vec![Op::Stream { stream: 1, blocking: false }];
//! for buffer in 0..20 {
//!     ops.push(Op::Malloc { buffer, size: 64 });
//!     ops.push(Op::Fill { buffer, at: 0, size: 64, stream: 1 });
//! }
//! ops.extend([Op::SyncStream { stream: 1 }, Op::Free { buffer: 7 }, Op::Free { buffer: 7 }]);
//!
//! let double_free = |ops: &[Op]| {
//!     let reports = run(ops, SimConfig::default(), &[]).reports;
//!     reports.iter().any(|report| report.kind == ReportKind::DoubleFree)
//! };
//! let small = shrink(&ops, double_free);
//! assert_eq!(small.len(), 3); // malloc, free, free
//! ```

mod machine;
mod shrink;

pub use machine::run;
pub use shrink::shrink;

use crate::Report;
use rocmforge_hip_sys::hipError_t;
use std::collections::BTreeMap;
use std::time::Duration;

/// The name of an object.
pub type Name = u32;

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The address of a device buffer, plus bytes.
    Buffer(Name, u32),
    /// The address of host memory.
    Host(Name),
    /// A number of 32 bits.
    U32(u32),
}

/// What a host function of a stream does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Writes all of a piece of host memory.
    Writes(Name),
    /// Reads all of it.
    Reads(Name),
    /// Calls HIP, which it must not.
    CallsHip,
    /// Returns after that time of the host's clock.
    Takes(Duration),
}

/// One operation of a host program. Stream 0 is the null stream. Sizes are bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // The fields say what the HIP functions' parameters of the same name say.
pub enum Op {
    /// `hipMalloc`.
    Malloc { buffer: Name, size: usize },
    /// `hipMallocAsync`.
    MallocAsync { buffer: Name, size: usize, stream: Name },
    /// `hipFree`.
    Free { buffer: Name },
    /// `hipFree` of an address inside.
    FreeInside { buffer: Name, at: usize },
    /// `hipFreeAsync`.
    FreeAsync { buffer: Name, stream: Name },
    /// `hipHostMalloc`.
    HostMalloc { host: Name, size: usize },
    /// Host memory that HIP does not know.
    HostVec { host: Name, size: usize },
    /// `hipHostFree`.
    HostFree { host: Name },
    /// `hipHostRegister` of all of it.
    Register { host: Name },
    /// `hipHostUnregister` of an address inside.
    Unregister { host: Name, at: usize },
    /// `hipStreamCreateWithFlags`.
    Stream { stream: Name, blocking: bool },
    /// `hipStreamDestroy`.
    DestroyStream { stream: Name },
    /// `hipEventCreateWithFlags`.
    Event { event: Name },
    /// `hipEventDestroy`.
    DestroyEvent { event: Name },
    /// `hipMemsetAsync`.
    Fill {
        buffer: Name,
        at: usize,
        size: usize,
        stream: Name,
    },
    /// `hipMemset`.
    FillSync { buffer: Name, at: usize, size: usize },
    /// `hipMemcpyAsync` from host memory to a buffer.
    Upload {
        host: Name,
        buffer: Name,
        at: usize,
        size: usize,
        stream: Name,
    },
    /// `hipMemcpyAsync` from a buffer to host memory.
    Download {
        buffer: Name,
        host: Name,
        at: usize,
        size: usize,
        stream: Name,
    },
    /// `hipMemcpy` from host memory to a buffer.
    UploadSync {
        host: Name,
        buffer: Name,
        at: usize,
        size: usize,
    },
    /// `hipMemcpy` from a buffer to host memory.
    DownloadSync {
        buffer: Name,
        host: Name,
        at: usize,
        size: usize,
    },
    /// `hipMemcpyAsync` between buffers.
    Copy {
        from: Name,
        to: Name,
        size: usize,
        stream: Name,
    },
    /// `hipModuleLoadData` of one of the images the program is run with.
    Load { module: Name, image: usize },
    /// `hipModuleUnload`.
    Unload { module: Name },
    /// `hipModuleGetFunction`.
    Function {
        function: Name,
        module: Name,
        kernel: &'static str,
    },
    /// `hipModuleLaunchKernel`.
    Launch {
        function: Name,
        grid: [u32; 3],
        block: [u32; 3],
        args: Vec<Arg>,
        stream: Name,
    },
    /// `hipModuleLaunchKernel` with packed arguments that are too few.
    LaunchShort { function: Name, bytes: usize, stream: Name },
    /// `hipLaunchHostFunc`.
    HostFunction { stream: Name, task: Task },
    /// `hipEventRecord`.
    Record { event: Name, stream: Name },
    /// `hipStreamWaitEvent`.
    Wait { stream: Name, event: Name },
    /// `hipEventSynchronize`.
    SyncEvent { event: Name },
    /// `hipStreamSynchronize`.
    SyncStream { stream: Name },
    /// `hipStreamQuery` until it says that all is done.
    PollStream { stream: Name },
    /// `hipDeviceSynchronize`.
    SyncDevice,
    /// The program reads host memory.
    HostRead { host: Name },
    /// The program writes host memory.
    HostWrite { host: Name },
    /// `hipSetDevice`.
    SetDevice { card: i32 },
    /// From here on the program's operations are those of this thread.
    Thread { thread: u32 },
    /// The next call of a function fails with this code, by a fault plan.
    FailNext { api: &'static str, status: hipError_t },
}

/// What became of a run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Everything the simulator reported.
    pub reports: Vec<Report>,
    /// What the calls of each operation answered: the first that was no success, else success.
    pub statuses: Vec<hipError_t>,
    /// The number of the last call before each operation; one more at the end.
    pub calls: Vec<u64>,
    /// See [`SimHost::trace_hash`](crate::SimHost::trace_hash).
    pub trace: u64,
    /// The operations whose device or pinned memory was alive when the program ended.
    pub leaks: Vec<usize>,
    /// Contents of host memory that HIP did not allocate, as it was at the end.
    pub memory: BTreeMap<Name, Vec<u8>>,
}

impl Run {
    /// The operation that made a call of this number.
    pub fn op_of_call(&self, call: u64) -> Option<usize> {
        let after = self.calls.partition_point(|before| *before < call);
        after.checked_sub(1).filter(|op| *op < self.statuses.len())
    }
}
