//! Reports: the mistakes of a program that the simulator has found.

use rocmforge_amdgcn::Frame;
use std::fmt;
use std::sync::Arc;

/// The list of kinds: each with the tool that finds it and its title.
macro_rules! report_kinds {
    ($($(#[$doc:meta])* $kind:ident: $tool:ident, $title:literal;)*) => {
        /// What kind of mistake it is.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum ReportKind {
            $($(#[$doc])* $kind,)*
        }

        impl ReportKind {
            /// Every kind.
            pub const ALL: [Self; [$($title),*].len()] = [$(Self::$kind),*];

            /// The checker that finds it.
            pub fn tool(self) -> Tool {
                match self {
                    $(Self::$kind => Tool::$tool,)*
                }
            }
        }

        impl fmt::Display for ReportKind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$kind => $title,)*
                })
            }
        }
    };
}

report_kinds! {
    /// Device memory outside every allocation was touched, by a kernel or by a copy.
    OutOfBounds: Memcheck, "out of bounds";
    /// Freed memory was touched, by a kernel, a copy or a call.
    UseAfterFree: Memcheck, "use after free";
    /// Device memory was read that nobody had written.
    Uninitialised: Initcheck, "read of memory that was never written";
    /// An allocation was freed a second time.
    DoubleFree: Memcheck, "double free";
    /// A pointer into an allocation was freed; HIP frees the whole allocation.
    InteriorFree: Memcheck, "free of an interior pointer";
    /// Memory was freed that HIP never allocated.
    InvalidFree: Memcheck, "free of memory HIP never allocated";
    /// A handle was used after its object had been destroyed, or was never a handle.
    StaleHandle: Api, "use of a handle that is not alive";
    /// A call that must not be made: from a host callback, with figures that wrap.
    InvalidCall: Api, "call that must not be made";
    /// LDS outside what the kernel has was touched.
    LdsOutOfBounds: Memcheck, "LDS out of bounds";
    /// LDS was read that no wave had written yet: often a missing barrier.
    UninitialisedLds: Initcheck, "read of LDS that no wave has written (missing barrier?)";
    /// Private memory beyond the kernel's share was touched.
    ScratchOutOfBounds: Memcheck, "private memory out of bounds";
    /// Some lanes of a wave, or waves of a workgroup, wait at a barrier that others pass by or never reach.
    BarrierDivergence: Synccheck, "barrier that not every wave reaches";
    /// An access that must be aligned is not.
    Misaligned: Memcheck, "misaligned access";
    /// The kernel executed more instructions than the budget: on a real card it would never end.
    EndlessKernel: Synccheck, "kernel that does not end";
    /// A call waits for work that never ends: on a real card it would never return.
    EndlessWait: Synccheck, "wait that never returns";
    /// Arguments or geometry do not fit the kernel.
    BadLaunch: Api, "launch that does not fit the kernel";
    /// The host refused memory that a checker needs: the launch did not run.
    NoHostMemory: Api, "launch that was not run: the host refused memory";
    /// A code object contains what the interpreter does not model.
    Unmodelled: Api, "code that is not modelled";
    /// The kernel ran off its code or gave up by itself.
    KernelAbort: Api, "kernel aborted";
    /// Two launches, copies or host accesses touch the same bytes, one of them writes, and nothing orders them.
    Race: Racecheck, "race: nothing orders two accesses";
    /// Two waves of a workgroup touch the same LDS, one of them writes, and no barrier stands between; or lanes of one wave write to the same
    /// LDS in one instruction.
    LdsRace: Racecheck, "race in LDS: two accesses that nothing orders";
    /// Two waves of one launch touch the same device memory, one of them writes, and nothing orders them; or lanes of one wave write to the
    /// same device memory in one instruction.
    GlobalRace: Racecheck, "race in device memory inside one launch";
    /// A register was read that the wave had not written.
    UninitialisedRegister: Initcheck, "read of a register that was never written";
    /// A kernel used a value from private memory that it had not written.
    UninitialisedPrivate: Initcheck, "read of private memory that was never written";
    /// A kernel used what a shuffle has given of a lane that was not active.
    InactiveLane: Initcheck, "shuffle from a lane that is not active";
    /// A vector register beyond those the kernel asked for was used: by an index into an array, or, with init_registers, by any instruction.
    RegisterOutOfRange: Memcheck, "vector register beyond those of the kernel";
    /// A matrix instruction read an operand whose lanes 16 to 31 must repeat lanes 0 to 15, on gfx11, and do not.
    MatrixHalves: Memcheck, "matrix operand whose lanes 16 to 31 do not repeat lanes 0 to 15";
    /// Something was never given back, see [`SimHost::leaks`](crate::SimHost::leaks).
    Leak: Memcheck, "leak";
}

/// The checker a report comes from. The names are those NVIDIA's compute-sanitizer uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Tool {
    /// Accesses outside what is allocated, and frees.
    Memcheck,
    /// Reads of what was never written.
    Initcheck,
    /// Accesses that nothing orders.
    Racecheck,
    /// Barriers, and kernels and waits that do not end.
    Synccheck,
    /// Calls, handles, arguments and code objects.
    Api,
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memcheck => "memcheck",
            Self::Initcheck => "initcheck",
            Self::Racecheck => "racecheck",
            Self::Synccheck => "synccheck",
            Self::Api => "api",
        })
    }
}

impl Tool {
    /// Every tool.
    pub const ALL: [Self; 5] = [
        Self::Memcheck,
        Self::Initcheck,
        Self::Racecheck,
        Self::Synccheck,
        Self::Api,
    ];
}

/// How memory was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Access {
    /// Read, by a vector or scalar load or as the source of a copy.
    Read,
    /// Written, by a store or as the destination of a copy or fill.
    Write,
    /// Read and written in one step.
    Atomic,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic",
        })
    }
}

/// Where memory stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AllocationState {
    /// Allocated.
    Live,
    /// Freed by the call with this number (see [`Report::call`]).
    Freed(u64),
}

/// An allocation a report is about: the one the address belongs to, belonged to, or lies next to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct AllocationInfo {
    /// What the program calls it, if it said so.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::text"))]
    pub label: Option<Arc<str>>,
    /// Where the program allocated it, if it said so.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::text"))]
    pub site: Option<Arc<str>>,
    /// First byte.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::hex"))]
    pub address: u64,
    /// Size in bytes, as asked for.
    pub size: u64,
    /// Number of the call that allocated it.
    pub allocated_by: u64,
    /// Whether it still lives.
    #[cfg_attr(feature = "serde", serde(rename = "freed_by", serialize_with = "serial::freed_by"))]
    pub state: AllocationState,
}

impl fmt::Display for AllocationInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "\"{label}\", ")?;
        }
        write!(
            f,
            "{} B at {:#x}, allocated by call {}",
            self.size, self.address, self.allocated_by
        )?;
        if let Some(site) = &self.site {
            write!(f, " ({site})")?;
        }
        match self.state {
            AllocationState::Live => f.write_str(", alive"),
            AllocationState::Freed(call) => write!(f, ", freed by call {call}"),
        }
    }
}

/// A frame whose function may have no name: of an object without symbols.
struct Place<'a>(&'a Frame);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Frame {
            function,
            file,
            line,
            column,
        } = self.0;
        if !function.is_empty() {
            write!(f, "{function} ")?;
        }
        write!(f, "{file}:{line}:{column}")
    }
}

/// The other party of a report that is about two accesses: of a race, or of a use after free the operation that is at
/// fault for it.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Side {
    /// As [`Report::api`].
    pub api: &'static str,
    /// As [`Report::call`].
    pub call: u64,
    /// As [`Report::stream`].
    pub stream: Option<u64>,
    /// The kernel, if one did it.
    pub kernel: Option<String>,
    /// As [`Report::pc`].
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::hex_or_null"))]
    pub pc: Option<u64>,
    /// How memory was touched, if it was.
    pub access: Option<Access>,
    /// Workgroup of the access.
    pub workgroup: Option<[u32; 3]>,
    /// Wave inside the workgroup.
    pub wave: u32,
    /// Lane inside the wave.
    pub lane: u32,
    /// Source position, innermost inlined function first, then the calls that lead to it.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::frames"))]
    pub frames: Vec<Frame>,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(access) = self.access {
            write!(f, "{access} by ")?;
        }
        write!(f, "{} (call {}", self.api, self.call)?;
        if let Some(stream) = self.stream {
            write!(f, ", stream {stream}")?;
        }
        f.write_str(")")?;
        if let Some(kernel) = &self.kernel {
            write!(f, " in kernel {kernel}")?;
        }
        if let Some(pc) = self.pc {
            write!(f, ", pc {pc:#x}")?;
        }
        for frame in &self.frames {
            write!(f, "\n    at {}", Place(frame))?;
        }
        if let Some([x, y, z]) = self.workgroup {
            write!(
                f,
                "\n    workgroup ({x}, {y}, {z}), wave {}, lane {}",
                self.wave, self.lane
            )?;
        }
        Ok(())
    }
}

/// One finding. A report means the program is wrong, whatever the calls returned.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Report {
    /// What it is.
    #[cfg_attr(feature = "serde", serde(flatten, serialize_with = "serial::kind"))]
    pub kind: ReportKind,
    /// What happened, in words.
    pub message: String,
    /// The HIP function or operation that did it: `"hipFree"`, `"copy"`, `"kernel"`.
    pub api: &'static str,
    /// Which call of this host it was, counted from 1; for deferred work, the call that enqueued it.
    pub call: u64,
    /// The stream of the operation, numbered in the order of creation over the whole host (each card's null stream
    /// first); none for what no stream did.
    pub stream: Option<u64>,
    /// The kernel, if one did it.
    pub kernel: Option<String>,
    /// Address of the kernel's instruction as `llvm-objdump` prints it, if one did it.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::hex_or_null"))]
    pub pc: Option<u64>,
    /// How memory was touched, if it was.
    pub access: Option<Access>,
    /// First byte of the access (a device address; an offset for LDS and private memory).
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::hex"))]
    pub address: u64,
    /// Bytes of the access.
    pub size: u64,
    /// How often it happened.
    pub count: u64,
    /// How many instructions of a kernel did it, where a compiler has made several of one place in the source.
    pub instructions: u64,
    /// Whether the launch was stopped here, before its end, because it had as many faults as
    /// [`SimConfig::max_faults`](crate::SimConfig::max_faults). What it should have written by then is not there, so the card counts as
    /// failed: every later call answers `hipErrorLaunchFailure`.
    pub stopped: bool,
    /// Workgroup of the first occurrence.
    pub workgroup: Option<[u32; 3]>,
    /// Wave inside the workgroup.
    pub wave: u32,
    /// Lane inside the wave.
    pub lane: u32,
    /// Source position, innermost inlined function first, then the calls that lead to it.
    #[cfg_attr(feature = "serde", serde(serialize_with = "crate::json::frames"))]
    pub frames: Vec<Frame>,
    /// The allocation it is about.
    pub allocation: Option<AllocationInfo>,
    /// The other party, if the report is about two.
    pub other: Option<Box<Side>>,
}

impl Report {
    /// A report about a call, without an access.
    pub(crate) fn of_call(kind: ReportKind, api: &'static str, call: u64, message: impl Into<String>) -> Self {
        Self {
            kind,
            api,
            call,
            stream: None,
            kernel: None,
            pc: None,
            address: 0,
            size: 0,
            access: None,
            frames: Vec::new(),
            workgroup: None,
            wave: 0,
            lane: 0,
            count: 1,
            instructions: 1,
            stopped: false,
            allocation: None,
            other: None,
            message: message.into(),
        }
    }

    /// Whether it is a warning about what the program does with memory, rather than about a call.
    pub fn is_of_memory(&self) -> bool {
        self.kernel.is_some() || self.access.is_some()
    }

    /// What it says in one line, as warnings are printed: kind, place in the program's own files and message.
    pub fn line(&self) -> String {
        let place = Frame::of_program(&self.frames).map(|frame| format!(" at {frame}"));
        format!("{}{}; {}", self.kind, place.unwrap_or_default(), self.message)
    }

    /// The checker it comes from.
    pub fn tool(&self) -> Tool {
        self.kind.tool()
    }

    /// The same about a kernel.
    pub(crate) fn in_kernel(mut self, kernel: &str) -> Self {
        self.kernel = Some(kernel.to_owned());
        self
    }

    /// The same with the memory it is about.
    pub(crate) fn at(mut self, access: Option<Access>, address: u64, size: u64, of: Option<AllocationInfo>) -> Self {
        self.access = access;
        self.address = address;
        self.size = size;
        self.allocation = of;
        self
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (call {}", self.kind, self.api, self.call)?;
        if let Some(stream) = self.stream {
            write!(f, ", stream {stream}")?;
        }
        f.write_str(")")?;
        if let Some(kernel) = &self.kernel {
            write!(f, " in kernel {kernel}")?;
        }
        if let Some(pc) = self.pc {
            write!(f, ", pc {pc:#x}")?;
        }
        if let Some(access) = self.access {
            write!(f, "\n  {access} of {} B at {:#x}", self.size, self.address)?;
        }
        for frame in &self.frames {
            write!(f, "\n  at {}", Place(frame))?;
        }
        if let Some([x, y, z]) = self.workgroup {
            write!(
                f,
                "\n  workgroup ({x}, {y}, {z}), wave {}, lane {}",
                self.wave, self.lane
            )?;
            if self.count > 1 {
                write!(f, ", {} lanes in all", self.count)?;
            }
            if self.instructions > 1 {
                write!(f, ", {} instructions of this line", self.instructions)?;
            }
        }
        if let Some(other) = &self.other {
            write!(f, "\n  other: {other}")?;
        }
        if let Some(allocation) = &self.allocation {
            write!(f, "\n  allocation: {allocation}")?;
        }
        if !self.message.is_empty() {
            write!(f, "\n  {}", self.message)?;
        }
        if self.stopped {
            f.write_str("\n  the launch was stopped here: it has as many findings as are kept of one launch")?;
        }
        Ok(())
    }
}

/// What JSON has of kinds, tools and states.
#[cfg(feature = "serde")]
mod serial {
    use super::{AllocationState, ReportKind, Tool};
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::ser::{Serialize, Serializer};

    /// The call that freed an allocation, if one did.
    pub(super) fn freed_by<S: Serializer>(state: &AllocationState, serializer: S) -> Result<S::Ok, S::Error> {
        match state {
            AllocationState::Live => serializer.serialize_none(),
            AllocationState::Freed(call) => serializer.serialize_some(call),
        }
    }

    /// A kind, with the tool and the title that follow from it.
    pub(super) fn kind<S: Serializer>(kind: &ReportKind, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(serde::Serialize)]
        struct View {
            kind: ReportKind,
            tool: Tool,
            title: String,
        }
        let view = View {
            kind: *kind,
            tool: kind.tool(),
            title: kind.to_string(),
        };
        view.serialize(serializer)
    }

    impl ReportKind {
        /// Its name in snake case: `lds_race`.
        pub fn name(self) -> String {
            let mut name = String::new();
            for c in format!("{self:?}").chars() {
                if c.is_ascii_uppercase() && !name.is_empty() {
                    name.push('_');
                }
                name.push(c.to_ascii_lowercase());
            }
            name
        }
    }

    /// The value of a list that has a name.
    fn named<'de, D: Deserializer<'de>, T: Copy>(
        deserializer: D,
        all: &[T],
        name: impl Fn(T) -> String,
    ) -> Result<T, D::Error> {
        let wanted = String::deserialize(deserializer)?;
        let found = all.iter().copied().find(|value| name(*value) == wanted);
        found.ok_or_else(|| D::Error::custom(format!("there is no `{wanted}`")))
    }

    impl Serialize for ReportKind {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_str(&self.name())
        }
    }

    impl<'de> Deserialize<'de> for ReportKind {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            named(deserializer, &Self::ALL, Self::name)
        }
    }

    impl Serialize for Tool {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_str(self)
        }
    }

    impl<'de> Deserialize<'de> for Tool {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            named(deserializer, &Self::ALL, |tool| tool.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ReportKind;

    #[test]
    fn every_kind_is_in_the_list() {
        for (index, kind) in ReportKind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, index, "{kind:?}: as declared");
        }
        let last = ReportKind::Leak;
        assert_eq!(ReportKind::ALL.len(), last as usize + 1);
    }
}
