//! B: memory with rows, managed memory, signal memory, arrays.

use super::modes::*;
use hip::*;
use std::ptr::null_mut;

rows! {
    b17_free_array_null,
    b18_an_array_freed_twice,
    b32_managed_of_nothing,
    b33_managed_with_invalid_flags,
    b34_managed_of_everything,
    b35_pitch_null,
    b36_pitch_of_everything_does_not_wrap,
    b37_malloc_3d_null,
    b38_malloc_3d_of_everything_does_not_wrap,
    b39_signal_memory_is_8_bytes,
    b40_ext_malloc_of_everything,
}

fn b17_free_array_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipFreeArray(null_mut()));
}

fn b18_an_array_freed_twice(mode: HipVersion) {
    let (sim, mut array) = (machine(mode), null_mut());
    let desc = sim.hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat);
    answers!(
        hipSuccess,
        sim.hipMallocArray(&raw mut array, &raw const desc, 16, 4, hipArrayDefault)
    );
    answers!(hipSuccess, sim.hipFreeArray(array));
    clean(&sim);
    answers!(hipErrorContextIsDestroyed, sim.hipFreeArray(array));
    only_report(&sim, rocmforge_sim::ReportKind::DoubleFree);
    answers!(
        hipErrorContextIsDestroyed,
        sim.hipFreeArray(std::ptr::without_provenance_mut(0x1000))
    );
    only_report(&sim, rocmforge_sim::ReportKind::InvalidFree);
}

fn b32_managed_of_nothing(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    answers!(
        hipErrorInvalidValue,
        sim.hipMallocManaged(&raw mut ptr, 0, hipMemAttachGlobal)
    );
    assert!(ptr.is_null());
}

fn b33_managed_with_invalid_flags(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    for flags in [0, 145, hipMemAttachGlobal | hipMemAttachHost] {
        answers!(hipErrorInvalidValue, sim.hipMallocManaged(&raw mut ptr, N, flags));
    }
}

fn b34_managed_of_everything(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    answers!(
        hipErrorOutOfMemory,
        sim.hipMallocManaged(&raw mut ptr, usize::MAX, hipMemAttachGlobal)
    );
}

fn b35_pitch_null(mode: HipVersion) {
    let (sim, mut ptr, mut pitch) = (machine(mode), null_mut(), 0);
    answers!(
        hipErrorInvalidValue,
        sim.hipMallocPitch(null_mut(), &raw mut pitch, 10, 10)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMallocPitch(&raw mut ptr, null_mut(), 10, 10)
    );
    answers!(hipSuccess, sim.hipMallocPitch(&raw mut ptr, &raw mut pitch, 300, 10));
    assert_eq!(pitch, 512);
    assert_eq!(sim.allocation_stats(0).live_bytes, 5120);
}

fn b36_pitch_of_everything_does_not_wrap(mode: HipVersion) {
    let (sim, mut ptr, mut pitch) = (machine(mode), null_mut(), 0);
    for (width, height) in [(10, usize::MAX), (usize::MAX, 10), (usize::MAX, usize::MAX)] {
        answers!(
            hipErrorOutOfMemory,
            sim.hipMallocPitch(&raw mut ptr, &raw mut pitch, width, height)
        );
    }
    assert!(ptr.is_null());
}

fn extent(width: usize, height: usize, depth: usize) -> hipExtent {
    hipExtent { width, height, depth }
}

fn b37_malloc_3d_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMalloc3D(null_mut(), extent(1, 1, 1)));
}

fn b38_malloc_3d_of_everything_does_not_wrap(mode: HipVersion) {
    let sim = machine(mode);
    let mut found = hipPitchedPtr {
        ptr: null_mut(),
        pitch: 0,
        xsize: 0,
        ysize: 0,
    };
    for extent in [extent(8, usize::MAX, 8), extent(8, 8, usize::MAX)] {
        answers!(hipErrorOutOfMemory, sim.hipMalloc3D(&raw mut found, extent));
    }
    assert!(found.ptr.is_null());
    answers!(hipSuccess, sim.hipMalloc3D(&raw mut found, extent(8, 3, 2)));
    assert_eq!((found.pitch, found.xsize, found.ysize), (256, 8, 3));
    assert_eq!(sim.allocation_stats(0).live_bytes, 256 * 3 * 2);
}

fn b39_signal_memory_is_8_bytes(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    for size in [0, 4, 16] {
        answers!(
            hipErrorInvalidValue,
            sim.hipExtMallocWithFlags(&raw mut ptr, size, hipMallocSignalMemory)
        );
    }
    answers!(
        hipSuccess,
        sim.hipExtMallocWithFlags(&raw mut ptr, 8, hipMallocSignalMemory)
    );
    answers!(hipErrorInvalidValue, sim.hipExtMallocWithFlags(&raw mut ptr, 8, 0x80));
}

fn b40_ext_malloc_of_everything(mode: HipVersion) {
    let (sim, mut ptr) = (machine(mode), null_mut());
    for flags in [hipDeviceMallocDefault, hipDeviceMallocFinegrained] {
        answers!(
            hipErrorOutOfMemory,
            sim.hipExtMallocWithFlags(&raw mut ptr, usize::MAX, flags)
        );
    }
}
