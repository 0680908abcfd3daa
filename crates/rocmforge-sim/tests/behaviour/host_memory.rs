//! C: host memory.

use super::modes::*;
use hip::*;
use std::ptr::null_mut;

rows! {
    c05_host_alloc_is_host_malloc,
}

fn c05_host_alloc_is_host_malloc(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    answers!(hipErrorOutOfMemory, sim.hipHostAlloc(&raw mut ptr, usize::MAX, 0));
    answers!(hipErrorInvalidValue, sim.hipHostAlloc(&raw mut ptr, 16, u32::MAX));
    answers!(hipErrorInvalidValue, sim.hipHostAlloc(null_mut(), 16, 0));
    answers!(hipSuccess, sim.hipHostAlloc(&raw mut ptr, 16, 0));
    answers!(hipSuccess, sim.hipHostFree(ptr));
    clean(&sim);
}
