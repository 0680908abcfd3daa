//! The host's part while a kernel runs.

use crate::memory::GlobalMemory;
use rocmforge_code_object::Frame;

/// Serves what a kernel asks of the host while it runs: see [`execute_attended`](crate::execute_attended).
pub trait Attendant {
    /// Called whenever a wave sleeps (`s_sleep`) and whenever the next wave gets its turn. May change the memory; what it writes is
    /// ordered before what the kernel does next.
    fn attend(&mut self, memory: &mut GlobalMemory);

    /// A lane has got a block from device `malloc`, which AMD's device library has as `__ockl_dm_alloc`.
    fn allocated(&mut self, memory: &mut GlobalMemory, block: &HeapBlock<'_>) {
        let _ = (memory, block);
    }

    /// A lane gives a block back to device `free` (`__ockl_dm_dealloc`), which runs only if that is right.
    fn released(&mut self, memory: &mut GlobalMemory, address: u64) -> Result<(), WrongFree> {
        let _ = (memory, address);
        Ok(())
    }
}

/// A block of device `malloc`.
#[derive(Debug, Clone)]
pub struct HeapBlock<'a> {
    /// Its first byte.
    pub address: u64,
    /// Bytes that the kernel asked for.
    pub size: u64,
    /// The call, innermost inlined function first, then the calls that lead there.
    pub frames: &'a [Frame],
}

/// Why a block cannot be given back to device `free`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrongFree {
    /// It has been given back before.
    Twice,
    /// It is no address that device `malloc` has given.
    Unknown,
}
