//! Tools: the checks that a launch runs under.

use crate::fault::FaultKind;

/// The checks of a launch, named as NVIDIA's compute-sanitizer names its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tools {
    /// Accesses outside allocations, LDS and private memory, after a free, and misaligned ones. Without it such an access
    /// is still suppressed, silently.
    pub memcheck: bool,
    /// Uses of values from global memory, LDS and private memory that nobody has written, and of those that shuffles give of lanes that are off.
    pub initcheck: bool,
    /// Uses of registers whose value comes from memory or registers nobody has written.
    pub init_registers: bool,
    /// Conflicting accesses that nothing orders, in LDS and in global memory.
    pub racecheck: bool,
    /// Barriers that not every lane or wave reaches.
    pub synccheck: bool,
}

impl Default for Tools {
    /// memcheck, initcheck and synccheck.
    fn default() -> Self {
        Self {
            memcheck: true,
            initcheck: true,
            synccheck: true,
            ..Self::none()
        }
    }
}

impl Tools {
    /// Every tool but [`init_registers`](Self::init_registers), which is slow and has to be asked for by name.
    pub fn all() -> Self {
        Self {
            racecheck: true,
            ..Self::default()
        }
    }

    /// No tool: only what ends a launch is reported.
    pub fn none() -> Self {
        Self {
            memcheck: false,
            initcheck: false,
            init_registers: false,
            racecheck: false,
            synccheck: false,
        }
    }

    /// Whether faults of this kind are wanted. Those that end a wave or a launch always are.
    pub(crate) fn wants(self, kind: FaultKind) -> bool {
        use FaultKind as K;
        match kind {
            K::GlobalOutOfBounds | K::UseAfterFree | K::LdsOutOfBounds | K::ScratchOutOfBounds | K::Misaligned => {
                self.memcheck
            }
            K::DoubleFree | K::InvalidFree => self.memcheck,
            K::UninitialisedGlobal | K::UninitialisedLds | K::UninitialisedPrivate | K::InactiveLane => self.initcheck,
            K::UninitialisedRegister => self.init_registers,
            K::LdsRace | K::GlobalRace => self.racecheck,
            K::BarrierDivergence | K::WaveEnded => self.synccheck,
            K::PcOutOfCode | K::Trap | K::BudgetExhausted | K::Spinning | K::BadLaunch => true,
            K::NoHostMemory | K::RegisterOutOfRange | K::MatrixHalves | K::BufferDescriptor => true,
        }
    }
}
