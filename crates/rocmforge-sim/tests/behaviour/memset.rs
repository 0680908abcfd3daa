//! E: fills.

use super::modes::*;
use hip::*;
use rocmforge_sim::ReportKind;
use std::ptr::null_mut;

rows! {
    e10_memset_of_device_memory_is_asynchronous,
    e11_memset_of_pinned_memory_is_synchronous,
    e13_typed_memsets_of_null,
    e14_memset_2d_of_rows_longer_than_the_pitch,
}

fn e10_memset_of_device_memory_is_asynchronous(mode: HipVersion) {
    let sim = machine(mode);
    let ptr = malloc(&sim, N);
    answers!(hipSuccess, sim.hipMemset(ptr, 0, N));
    answers!(hipErrorNotReady, sim.hipStreamQuery(null_mut()));
}

fn e11_memset_of_pinned_memory_is_synchronous(mode: HipVersion) {
    let sim = machine(mode);
    let host = pinned(&sim, N);
    keep_busy(&sim, null_mut());
    answers!(hipSuccess, sim.hipMemset(host.cast(), 4, N));
    assert_eq!((peek(host, 0), peek(host, N - 1)), (4, 4));
    answers!(hipSuccess, sim.hipStreamQuery(null_mut()));
}

#[test]
fn memset_d32_writes_words() {
    let sim = machine(Hip6);
    let ptr = malloc(&sim, 20);
    answers!(hipSuccess, sim.hipMemsetD32Async(ptr, 0x0403_0201, 5, null_mut()));
    assert_eq!(download(&sim, ptr, 20), [1u8, 2, 3, 4].repeat(5));
}

fn e13_typed_memsets_of_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipMemsetD16(null_mut(), 1, 2));
    answers!(hipErrorInvalidValue, sim.hipMemsetD32(null_mut(), 1, 2));
    let ptr = filled(&sim, 12, 9);
    answers!(hipSuccess, sim.hipMemsetD16(ptr, 0x0102, 3));
    answers!(hipSuccess, sim.hipMemsetD32(at(ptr, 8), 0x0304_0506, 1));
    assert_eq!(download(&sim, ptr, 12), [2, 1, 2, 1, 2, 1, 9, 9, 6, 5, 4, 3]);
    clean(&sim);
}

fn e14_memset_2d_of_rows_longer_than_the_pitch(mode: HipVersion) {
    let sim = machine(mode);
    let (stream, ptr) = (stream(&sim), filled(&sim, 64, 9));
    answers!(hipErrorInvalidValue, sim.hipMemset2D(ptr, 16, 1, 17, 2));
    answers!(hipErrorInvalidValue, sim.hipMemset2DAsync(ptr, 16, 1, 17, 2, stream));
    answers!(hipErrorInvalidValue, sim.hipMemset2D(ptr, 16, 1, 16, 5));
    only_report(&sim, ReportKind::OutOfBounds);
    answers!(hipSuccess, sim.hipMemset2DAsync(ptr, 16, 1, 10, 4, stream));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    let bytes = download(&sim, ptr, 64);
    for (at, byte) in bytes.iter().enumerate() {
        assert_eq!(*byte, if at % 16 < 10 { 1 } else { 9 }, "byte {at}");
    }
}
