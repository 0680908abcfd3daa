//! Errors of the runtime, with figures and advice.

use rocmforge_code_object::ParseError;
use rocmforge_hip_sys::hipError_t;
use rocmforge_memory::{Bytes, DeviceKey, DisplayInUse, LaunchesStopped, OutOfBudget, OutOfHostBudget, PeersError};
use std::sync::Arc;
use std::time::Duration;

/// The result of everything in this crate.
pub type HipResult<T, E = HipError> = Result<T, E>;

/// Why the runtime refused or failed.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum HipError {
    /// No AMD GPU can be used here.
    #[error("{0}")]
    Unavailable(Arc<Unavailable>),
    /// There is no device of that number.
    #[error(
        "there is no HIP device {ordinal}: HIP shows {count} (ROCR_VISIBLE_DEVICES and HIP_VISIBLE_DEVICES filter them)"
    )]
    DeviceNotFound {
        /// The number asked for.
        ordinal: i32,
        /// How many there are.
        count: i32,
    },
    /// The card given as the budget is another device's.
    #[error("the device at {device} cannot have its budget from the card at {card}: give no card, or this device's")]
    WrongCard {
        /// The device that was to be opened.
        device: DeviceKey,
        /// The card that was given.
        card: DeviceKey,
    },
    /// The ledger that this user's processes share cannot be used, so nobody could tell what they take of the card.
    #[error("cannot share {card} with this user's other processes: {source}")]
    SharedLedger {
        /// The card.
        card: DeviceKey,
        /// Why.
        source: PeersError,
    },
    /// The device says something of itself that cannot be true.
    #[error(
        "HIP device {ordinal} reports {what}: the library and this program do not agree on the HIP ABI; run `cargo xtask doctor`"
    )]
    ImplausibleDevice {
        /// The device's number.
        ordinal: i32,
        /// What it reports.
        what: String,
    },
    /// A HIP function failed.
    #[error("{call} failed: {status}{hint}", hint = hint(*.status))]
    Call {
        /// The function.
        call: &'static str,
        /// Its status.
        status: hipError_t,
    },
    /// A HIP function reported success and gave nothing. Nothing was used of it.
    #[error(
        "{call} reported success but gave a null handle: the HIP library is damaged or made for another ABI; run `cargo xtask doctor`, \
         which names the library that was loaded, and install the one of the distribution or of ROCm anew"
    )]
    NullHandle {
        /// The function.
        call: &'static str,
    },
    /// The policy leaves the desktop on this card nothing.
    #[error(transparent)]
    DisplayInUse(Arc<DisplayInUse>),
    /// The card's budget does not allow it.
    #[error(transparent)]
    OutOfBudget(Arc<OutOfBudget>),
    /// The machine's own memory does not allow it: it is not pinned.
    #[error(transparent)]
    OutOfHostBudget(Arc<OutOfHostBudget>),
    /// The card is over-committed: nothing is launched until this program has given back what is too much. Nothing was
    /// enqueued, and the backend is as good as before.
    #[error(transparent)]
    LaunchesStopped(Arc<LaunchesStopped>),
    /// The budget allowed it, the driver did not.
    #[error(
        "the driver has no {requested} for {label:?}, though the budget allows it: close other programs that use the GPU, or lower the cap"
    )]
    DriverOutOfMemory {
        /// What was asked for.
        requested: Bytes,
        /// What it was for.
        label: String,
    },
    /// A wait reached its deadline. The backend is poisoned.
    #[error(
        "{what} was not done after {waited:?}: the GPU hangs or is far slower than the deadline allows; this backend is unusable from now on"
    )]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        waited: Duration,
    },
    /// Other threads kept all of the backend's staging memory for as long as this one was willing to wait. The backend is
    /// fine.
    #[error(
        "no staging memory was free within {waited:?}: other threads copy all the time, or hang; copy through pinned memory of your own (`PinnedBuffer`)"
    )]
    StagingBusy {
        /// How long.
        waited: Duration,
    },
    /// A capture or a graph refused.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The backend failed before and makes no HIP call any more.
    #[error("this backend is unusable since an earlier failure: {cause}; end the process to give the GPU back")]
    Poisoned {
        /// The earlier failure.
        cause: Arc<HipError>,
    },
    /// A size does not fit its type.
    #[error("{count} elements of {size} bytes are more than an address can count")]
    SizeOverflow {
        /// Elements.
        count: usize,
        /// Bytes of one.
        size: usize,
    },
    /// A range that is not inside of what it selects from.
    #[error("the range {start}..{end} is not inside of {label:?}, which has {len} elements")]
    OutOfRange {
        /// First element.
        start: usize,
        /// One past the last element.
        end: usize,
        /// How many there are.
        len: usize,
        /// The buffer.
        label: String,
    },
    /// Two things that must have the same number of elements have not.
    #[error("{what}: {left} elements against {right}")]
    LengthMismatch {
        /// What is compared.
        what: &'static str,
        /// The length of the first.
        left: usize,
        /// The length of the second.
        right: usize,
    },
    /// A tensor's shape does not hold the elements given.
    #[error("a tensor of shape {shape:?} has {expected} elements, not {actual}")]
    Shape {
        /// The shape.
        shape: Vec<usize>,
        /// What it holds.
        expected: usize,
        /// What there is.
        actual: usize,
    },
    /// A buffer cannot be read as another element type.
    #[error(
        "{label:?} ({bytes} bytes at offset {offset}) cannot be seen as elements of {size} bytes aligned to {align}"
    )]
    Cast {
        /// The buffer.
        label: String,
        /// Its bytes.
        bytes: usize,
        /// Its offset in the allocation.
        offset: usize,
        /// Bytes of an element.
        size: usize,
        /// Alignment of an element.
        align: usize,
    },
    /// Source and destination of a copy overlap.
    #[error("source and destination of a copy inside of {label:?} overlap")]
    Overlap {
        /// The allocation.
        label: String,
    },
    /// Objects of two backends were mixed.
    #[error("{what} belongs to another backend than the stream it is used on")]
    ForeignObject {
        /// The object.
        what: String,
    },
    /// An event was used before it was recorded.
    #[error("event {label:?} was never recorded: record it on a stream first")]
    NotRecorded {
        /// The event.
        label: String,
    },
    /// Not a code object this runtime loads.
    #[error("{label:?} is no loadable code object: {source}")]
    CodeObject {
        /// The module.
        label: String,
        /// Why.
        source: ParseError,
    },
    /// A code object for another processor.
    #[error(
        "{label:?} is compiled for {object}, the device is {device}: build it with `cargo xtask kernels build --arch {device}`"
    )]
    ArchMismatch {
        /// The module.
        label: String,
        /// What it is for.
        object: String,
        /// What the device is.
        device: String,
    },
    /// The module has no such kernel.
    #[error("{module:?} has no kernel {kernel:?}; it has {available:?}")]
    KernelNotFound {
        /// The module.
        module: String,
        /// The kernel asked for.
        kernel: String,
        /// The kernels it has.
        available: Vec<String>,
    },
    /// A launch that would not be what the kernel expects. Nothing was enqueued.
    #[error("launch of {kernel:?}: {error}")]
    Launch {
        /// The kernel.
        kernel: String,
        /// What is wrong.
        error: LaunchError,
    },
}

/// What is wrong with a launch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// A dimension of the grid or the block is 0.
    #[error("grid {grid:?} x block {block:?} has a dimension of 0")]
    ZeroDimension {
        /// Blocks.
        grid: [u32; 3],
        /// Threads of a block.
        block: [u32; 3],
    },
    /// A dimension is over the device's limit.
    #[error("{what} dimension {axis} is {value}, the device takes at most {limit}")]
    Dimension {
        /// `grid` or `block`.
        what: &'static str,
        /// 0 is x.
        axis: usize,
        /// The dimension.
        value: u32,
        /// The limit.
        limit: u32,
    },
    /// Too many threads in a block.
    #[error("a block of {block:?} has {threads} threads; {limited_by} takes at most {limit}")]
    Threads {
        /// The block.
        block: [u32; 3],
        /// Its threads.
        threads: u64,
        /// The limit.
        limit: u32,
        /// Whose limit it is.
        limited_by: &'static str,
    },
    /// The kernel was compiled for one block size only.
    #[error("the kernel is compiled for blocks of {required:?}, not {block:?}")]
    BlockSize {
        /// The block asked for.
        block: [u32; 3],
        /// The one it takes.
        required: [u32; 3],
    },
    /// More threads along an axis than HIP counts.
    #[error("axis {axis} has {threads} threads in all; HIP counts them in 32 bits")]
    TotalThreads {
        /// 0 is x.
        axis: usize,
        /// Blocks times threads.
        threads: u64,
    },
    /// Too much LDS.
    #[error("{fixed} + {dynamic} bytes of LDS (static + dynamic) are over the limit of {limit}")]
    Lds {
        /// Bytes the kernel declares.
        fixed: u32,
        /// Bytes the launch adds.
        dynamic: u32,
        /// Bytes a block may have.
        limit: u32,
    },
    /// Too few or too many arguments.
    #[error("{given} arguments given, the kernel takes {expected}: {signature}")]
    ArgumentCount {
        /// Given.
        given: usize,
        /// Expected.
        expected: usize,
        /// What the kernel takes.
        signature: String,
    },
    /// An argument of another size.
    #[error("argument {index}{name} has {given} bytes, the kernel takes {expected}: {signature}")]
    ArgumentSize {
        /// Its place, from 0.
        index: usize,
        /// Its name, if known: ` (name)`.
        name: String,
        /// Bytes given.
        given: u32,
        /// Bytes expected.
        expected: u32,
        /// What the kernel takes.
        signature: String,
    },
    /// A value where a buffer is expected, or the reverse.
    #[error("argument {index}{name} is {given}, the kernel takes {expected}: {signature}")]
    ArgumentKind {
        /// Its place, from 0.
        index: usize,
        /// Its name, if known: ` (name)`.
        name: String,
        /// What was given.
        given: &'static str,
        /// What is expected.
        expected: String,
        /// What the kernel takes.
        signature: String,
    },
}

impl LaunchError {
    pub(crate) fn of(self, kernel: &str) -> HipError {
        HipError::Launch {
            kernel: kernel.to_owned(),
            error: self,
        }
    }
}

/// Errors that are large, or cannot be cloned cheaply, are shared.
macro_rules! shared {
    ($($error:ident),*) => {
        $(impl From<$error> for HipError {
            fn from(error: $error) -> Self {
                Self::$error(Arc::new(error))
            }
        })*
    };
}
shared!(DisplayInUse, OutOfBudget, OutOfHostBudget, LaunchesStopped);

/// Refuses two things of different lengths that must have the same.
pub(crate) fn same_len(what: &'static str, left: usize, right: usize) -> HipResult<()> {
    if left == right {
        Ok(())
    } else {
        Err(HipError::LengthMismatch { what, left, right })
    }
}

impl HipError {
    /// The HIP status behind the error, if there is one.
    pub fn status(&self) -> Option<hipError_t> {
        match self {
            Self::Call { status, .. } => Some(*status),
            Self::Poisoned { cause } | Self::Graph(GraphError::Failed { cause }) => cause.status(),
            _ => None,
        }
    }

    /// Whether a smaller request could have succeeded.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            Self::OutOfBudget(_) | Self::OutOfHostBudget(_) | Self::DriverOutOfMemory { .. } => true,
            Self::Call { status, .. } => *status == rocmforge_hip_sys::hipErrorOutOfMemory,
            _ => false,
        }
    }
}

/// The six reasons why an AMD GPU cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// The kernel has no compute driver: there is no `/dev/kfd`.
    #[error("no AMD GPU driver: {0} does not exist; the amdgpu kernel module is not loaded, or has no compute support")]
    NoDriver(String),
    /// The driver is there, this user may not open it.
    #[error("no permission for {path}: {advice}")]
    NoPermission {
        /// The device file.
        path: String,
        /// What to do.
        advice: String,
    },
    /// The driver is there, a GPU is not, or HIP hides it.
    #[error("no AMD GPU: {0}")]
    NoDevice(String),
    /// No HIP library can be loaded.
    #[error("no usable HIP library: {0}")]
    NoLibrary(String),
    /// The HIP library cannot start.
    #[error("the HIP library does not start: {call} says {status}")]
    InitFailed {
        /// The call.
        call: &'static str,
        /// Its status.
        status: hipError_t,
    },
    /// The HIP library does not answer: a GPU that hangs does that to it.
    #[error("the HIP library has not answered for {0:?}: the GPU may hang; see `dmesg`")]
    TimedOut(Duration),
}

/// Why something cannot be captured, or a graph not be made, replayed or updated.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// A capturing stream cannot do this: it runs nothing until the graph is replayed.
    #[error("cannot {what} on stream {stream:?} while it captures: do it before the capture, or on another stream")]
    Capturing {
        /// The stream.
        stream: String,
        /// What was asked of it.
        what: &'static str,
    },
    /// The stream belongs to no capture, or to another one.
    #[error("stream {stream:?} is not part of this capture: let it wait for an event that was recorded in the capture")]
    NotCapturing {
        /// The stream.
        stream: String,
    },
    /// Another thread gave the stream work, or began a capture on it, at the same moment.
    #[error("stream {stream:?} is used by another thread at the same time: a capture needs it alone")]
    Busy {
        /// The stream.
        stream: String,
    },
    /// The capture has ended.
    #[error("the capture that this belongs to has ended")]
    Ended,
    /// A stream of one capture was to wait for another one.
    #[error("stream {stream:?} is part of another capture: two captures cannot wait for each other")]
    OtherCapture {
        /// The stream.
        stream: String,
    },
    /// A capturing stream was to wait for an event that is not part of the capture.
    #[error(
        "stream {stream:?} captures and event {event:?} was not recorded in the capture: a graph cannot wait for it (its buffers are ordered at each replay)"
    )]
    OutsideEvent {
        /// The stream.
        stream: String,
        /// The event.
        event: String,
    },
    /// The host asked for an event that was recorded in a capture: nothing has run.
    #[error("event {event:?} was recorded in a capture: nothing runs before the graph is replayed")]
    CapturedEvent {
        /// The event.
        event: String,
    },
    /// Work of another stream is in the capture and nobody waits for it.
    #[error(
        "the capture has work of stream {stream:?} that its first stream does not wait for: record an event there and wait for it before the end"
    )]
    Unjoined {
        /// The stream.
        stream: String,
    },
    /// A call failed while it was captured, so the graph would be incomplete.
    #[error("nothing was captured: {cause}")]
    Failed {
        /// The call's error.
        cause: Arc<HipError>,
    },
    /// A graph cannot take the place of another one: their operations, or the order of them, differ.
    #[error("the graph cannot be updated: operation {node} was {was} and is {is}; instantiate the new graph instead")]
    Topology {
        /// The first operation that differs, from 0 in the order of capture.
        node: usize,
        /// What it was.
        was: String,
        /// What it would be.
        is: String,
    },
    /// The driver refused an update whose operations are the same.
    #[error(
        "the driver refused the update (result {result}); this executable graph is unusable: instantiate the new graph instead"
    )]
    Refused {
        /// `hipGraphExecUpdateResult`.
        result: u32,
    },
    /// An update failed half-way, so nobody knows what the executable graph does.
    #[error("an earlier update of this executable graph failed: instantiate the graph again")]
    Broken,
}

// A misspelt constant would become a name that matches everything, which the compiler reports as unreachable arms.
#[allow(non_upper_case_globals)]
/// Statuses after which the driver answers nothing useful any more: the device's state, or the process's, is lost.
pub(crate) fn is_sticky(status: hipError_t) -> bool {
    use rocmforge_hip_sys::*;
    matches!(
        status,
        hipErrorDeinitialized
            | hipErrorPriorLaunchFailure
            | hipErrorECCNotCorrectable
            | hipErrorIllegalAddress
            | hipErrorLaunchTimeOut
            | hipErrorContextIsDestroyed
            | hipErrorAssert
            | hipErrorLaunchFailure
            | hipErrorUnknown
            | hipErrorRuntimeMemory
            | hipErrorRuntimeOther
    )
}

#[allow(non_upper_case_globals)] // as above
fn hint(status: hipError_t) -> &'static str {
    use rocmforge_hip_sys::*;
    match status {
        hipErrorOutOfMemory => ": free buffers, or close other programs that use the GPU",
        hipErrorNoDevice | hipErrorInvalidDevice => ": no such AMD GPU, or no access to it; run `cargo xtask doctor`",
        hipErrorInvalidDevicePointer | hipErrorInvalidHandle | hipErrorInvalidValue => {
            ": an address or handle the driver does not know; this is a bug, please report it"
        }
        hipErrorNoBinaryForGpu | hipErrorInvalidImage | hipErrorInvalidKernelFile => {
            ": the code object is not for this device"
        }
        hipErrorIllegalAddress | hipErrorLaunchFailure | hipErrorAssert => {
            ": a kernel went wrong; run the same test on the simulated device, which names the line"
        }
        hipErrorNotSupported => ": this HIP library lacks the function",
        _ => "",
    }
}
