//! Footprint: the global memory that a launch accessed.

use crate::fault::Access;

/// A range of global memory that a launch touched in one way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// First byte.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// How: [`Access::Load`] (scalar loads too), [`Access::Store`] or [`Access::Atomic`].
    pub access: Access,
    /// Instruction of the first such access to the range, as `llvm-objdump` prints its address.
    pub pc: u64,
    /// Its workgroup.
    pub workgroup: [u32; 3],
    /// Its wave inside the workgroup.
    pub wave: u32,
    /// Its lane inside the wave.
    pub lane: u32,
}

/// The global memory a launch touched, to the byte: what another launch, a copy or the host must be ordered with.
///
/// Filled by racecheck, else empty. Sorted by first byte; ranges of the same access do not overlap. A byte that was stored
/// to appears as a store only; one that was loaded and updated by atomics appears as both, as another launch's atomic
/// conflicts with the load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// The ranges.
    pub touches: Vec<Touch>,
}

impl Footprint {
    /// Whether nothing was touched, or nobody looked.
    pub fn is_empty(&self) -> bool {
        self.touches.is_empty()
    }
}
