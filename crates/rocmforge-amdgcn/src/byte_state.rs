//! State of a byte of memory.

/// What is known about one byte of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ByteState {
    /// Never part of an allocation.
    Unmapped = 0,
    /// Part of an allocation that was freed.
    Freed = 1,
    /// Allocated, never written.
    Uninit = 2,
    /// Allocated and written.
    Init = 3,
}

impl ByteState {
    pub(crate) fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Unmapped,
            1 => Self::Freed,
            2 => Self::Uninit,
            _ => Self::Init,
        }
    }
}
