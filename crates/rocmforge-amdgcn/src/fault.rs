//! Faults: each mistake of a launch, with the lane and the source line.

use crate::calls::Calls;
use rocmforge_code_object::Frame;
use std::fmt;

/// What a suppressed load gives: a NaN with a payload that is easy to see.
pub const POISON: u32 = 0x7FBA_DBAD;

/// The class of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum FaultKind {
    /// Global memory outside every allocation.
    GlobalOutOfBounds,
    /// Global memory of a freed allocation.
    UseAfterFree,
    /// A kernel gives a block back to device `free` a second time.
    DoubleFree,
    /// A kernel gives something back to device `free` that device `malloc` has not given.
    InvalidFree,
    /// Global memory nobody has written, whose value something depends on.
    UninitialisedGlobal,
    /// LDS beyond the kernel's static and dynamic size.
    LdsOutOfBounds,
    /// LDS no wave of this workgroup has written yet; often a missing barrier.
    UninitialisedLds,
    /// Private (scratch) memory nobody has written.
    UninitialisedPrivate,
    /// The value of a lane that is off, which a shuffle has given and something depends on.
    InactiveLane,
    /// Private (scratch) memory beyond the kernel's size per lane.
    ScratchOutOfBounds,
    /// Some lanes of a wave pass a barrier by and go on behind it, or waves of the workgroup meet at different barriers. A card lets them go on.
    BarrierDivergence,
    /// A wave has passed a barrier by at which others of its workgroup wait, has written to memory by code behind it, and has ended. A card lets
    /// the others go on without it. A wave that has only returned is no fault.
    WaveEnded,
    /// Two waves touch the same LDS, at least one of them writes, and no barrier or atomic lies between; or lanes of one wave store to the
    /// same bytes in one instruction.
    LdsRace,
    /// Two waves touch the same global memory, at least one of them writes, and nothing orders them; or lanes of one wave store to the same
    /// bytes in one instruction.
    GlobalRace,
    /// A decision, an address or a result depends on a register nobody has written.
    UninitialisedRegister,
    /// A vector register beyond those the kernel asked for: one that `m0` leads to, or, with init_registers, any.
    RegisterOutOfRange,
    /// A matrix instruction of gfx11 reads A or B from lanes 16 to 31 that do not repeat lanes 0 to 15.
    MatrixHalves,
    /// A buffer instruction with a resource descriptor that asks for what is not modelled; the note says what.
    BufferDescriptor,
    /// An atomic or scalar access that is not aligned to its size.
    Misaligned,
    /// Execution left the code of the program.
    PcOutOfCode,
    /// `s_trap`: the kernel gave up by itself.
    Trap,
    /// The launch used up its instruction budget here; often an endless loop.
    BudgetExhausted,
    /// Every wave of the workgroup that has not ended waits in a loop for something that none of them does.
    Spinning,
    /// The launch cannot start: geometry, LDS or arguments do not fit the kernel.
    BadLaunch,
    /// The launch cannot start: the host refused memory that a checker needs.
    NoHostMemory,
}

impl FaultKind {
    /// A value that is undefined where it comes from, and a fault once something depends on it.
    pub(crate) fn is_undefined_value(self) -> bool {
        matches!(
            self,
            Self::UninitialisedGlobal | Self::UninitialisedLds | Self::UninitialisedPrivate | Self::InactiveLane
        )
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::GlobalOutOfBounds => "global memory out of bounds",
            Self::UseAfterFree => "use of freed global memory",
            Self::DoubleFree => "device memory that was freed before is freed",
            Self::InvalidFree => "device memory is freed that device malloc has not given",
            Self::UninitialisedGlobal => "read of global memory that was never written",
            Self::LdsOutOfBounds => "LDS out of bounds",
            Self::UninitialisedLds => "read of LDS that no wave has written yet (missing barrier?)",
            Self::UninitialisedPrivate => "read of private memory that was never written",
            Self::InactiveLane => "shuffle from a lane that is not active",
            Self::ScratchOutOfBounds => "private memory out of bounds",
            Self::BarrierDivergence => "barrier that not every wave of the workgroup reaches",
            Self::WaveEnded => "wave passed a barrier by at which others wait",
            Self::LdsRace => "race in LDS",
            Self::GlobalRace => "race in global memory",
            Self::UninitialisedRegister => "use of a register that was never written",
            Self::RegisterOutOfRange => "vector register beyond the kernel's allocation",
            Self::MatrixHalves => "lanes 16 to 31 of a matrix operand do not repeat lanes 0 to 15",
            Self::BufferDescriptor => "resource descriptor that the simulated card does not model",
            Self::Spinning => "every wave waits for another (endless loop)",
            Self::Misaligned => "misaligned access",
            Self::PcOutOfCode => "execution left the code",
            Self::Trap => "trap",
            Self::BudgetExhausted => "instruction budget exhausted (endless loop?)",
            Self::BadLaunch => "launch does not fit the kernel",
            Self::NoHostMemory => "the host refused memory for a checker",
        })
    }
}

/// How memory was touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Vector load.
    Load,
    /// Vector store.
    Store,
    /// Read-modify-write.
    Atomic,
    /// Scalar load.
    Scalar,
    /// Not a memory access.
    None,
}

/// The other access of a fault that takes two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Side {
    /// How memory was touched.
    pub access: Access,
    /// Address of the instruction as `llvm-objdump` prints it (ELF virtual address).
    pub pc: u64,
    /// Source position, innermost inlined function first, then the calls that lead to it, if they are known; empty without line tables.
    pub frames: Vec<Frame>,
    /// Workgroup.
    pub workgroup: [u32; 3],
    /// Wave inside the workgroup.
    pub wave: u32,
    /// Lane inside the wave.
    pub lane: u32,
    /// As those of [`Fault`].
    pub(crate) calls: Calls,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.access != Access::None {
            write!(f, "{} at ", format!("{:?}", self.access).to_lowercase())?;
        }
        let [x, y, z] = self.workgroup;
        write!(
            f,
            "pc {:#x}, workgroup ({x}, {y}, {z}), wave {}, lane {}",
            self.pc, self.wave, self.lane
        )?;
        for frame in &self.frames {
            write!(f, "\n    at {frame}")?;
        }
        Ok(())
    }
}

/// One fault; others of the same kind at the same instruction are counted in `count`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its class.
    pub kind: FaultKind,
    /// How memory was touched.
    pub access: Access,
    /// First byte of the access: a device address, or an offset in LDS or in a lane's private memory.
    pub address: u64,
    /// Bytes of the access per lane.
    pub size: u32,
    /// Address of the instruction as `llvm-objdump` prints it (ELF virtual address).
    pub pc: u64,
    /// Source position, innermost inlined function first, then the calls that lead to it; empty without line tables.
    pub frames: Vec<Frame>,
    /// Workgroup of the first occurrence.
    pub workgroup: [u32; 3],
    /// Wave inside the workgroup.
    pub wave: u32,
    /// Lane inside the wave.
    pub lane: u32,
    /// Lanes that did the same at this instruction, over the whole launch.
    pub count: u64,
    /// The other of two accesses, or the other of two places, where it takes two.
    pub other: Option<Box<Side>>,
    /// More, where there is more to say; else empty.
    pub note: String,
    /// Calls that the wave was in: its [frames](Self::frames) are made of them when the launch is over.
    pub(crate) calls: Calls,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if self.access != Access::None {
            let how = format!("{:?}", self.access).to_lowercase();
            write!(f, ": {how} of {} B at {:#x}", self.size, self.address)?;
        }
        if !self.note.is_empty() {
            write!(f, ": {}", self.note)?;
        }
        let [x, y, z] = self.workgroup;
        write!(
            f,
            ", pc {:#x}, workgroup ({x}, {y}, {z}), wave {}, lane {}",
            self.pc, self.wave, self.lane
        )?;
        if self.count > 1 {
            write!(f, ", {} lanes in all", self.count)?;
        }
        for frame in &self.frames {
            write!(f, "\n    at {frame}")?;
        }
        if let Some(other) = &self.other {
            write!(f, "\n  the other: {other}")?;
        }
        Ok(())
    }
}
