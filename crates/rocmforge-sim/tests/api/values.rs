//! Streams that write values and wait for values in memory.

use crate::support::*;
use hip::*;
use rocmforge_sim::{ReportKind, Schedule, Tools};
use std::ptr::null_mut;

#[test]
fn a_stream_waits_for_what_another_writes() {
    for schedule in [Schedule::Lazy, Schedule::Eager, Schedule::Reverse, Schedule::Random(3)] {
        let sim = machine_with(|config| (config.schedule, config.tools) = (schedule, Tools::all()));
        let (first, second) = (stream(&sim), stream(&sim));
        let (flag, data, copy) = (filled(&sim, 8, 0), filled(&sim, N, 0), malloc(&sim, N));
        answers!(
            hipSuccess,
            sim.hipStreamWaitValue32(second, flag, 5, hipStreamWaitValueEq, u32::MAX)
        );
        answers!(
            hipSuccess,
            sim.hipMemcpyAsync(copy, data, N, hipMemcpyDeviceToDevice, second)
        );
        answers!(hipErrorNotReady, sim.hipStreamQuery(second));
        answers!(hipSuccess, sim.hipMemsetAsync(data, 7, N, first));
        answers!(hipSuccess, sim.hipStreamWriteValue32(first, flag, 5, 0));
        answers!(hipSuccess, sim.hipStreamSynchronize(second));
        assert_eq!(download(&sim, copy, N), vec![7; N], "{schedule:?}");
        clean(&sim);
    }
}

#[test]
fn the_host_may_write_the_value() {
    let sim = machine();
    let (stream, flag) = (stream(&sim), pinned(&sim, 8));
    fill_host(flag, 8, 0);
    answers!(
        hipSuccess,
        sim.hipStreamWaitValue64(stream, flag.cast(), 0x0101, hipStreamWaitValueGte, 0xFFFF)
    );
    answers!(hipErrorNotReady, sim.hipStreamQuery(stream));
    fill_host(flag, 8, 1);
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    clean(&sim);
}

#[test]
fn nobody_writes_the_value() {
    let sim = machine();
    let (stream, flag) = (stream(&sim), filled(&sim, 8, 0));
    for (flags, value) in [(hipStreamWaitValueGte, 0u64), (hipStreamWaitValueNor, 0)] {
        answers!(
            hipSuccess,
            sim.hipStreamWaitValue64(stream, flag, value, flags, u64::MAX)
        );
        answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    }
    clean(&sim);
    answers!(
        hipSuccess,
        sim.hipStreamWaitValue64(stream, flag, 1, hipStreamWaitValueAnd, u64::MAX)
    );
    answers!(hipErrorLaunchTimeOut, sim.hipStreamSynchronize(stream));
    only_report(&sim, ReportKind::EndlessWait);
}

#[test]
fn values_at_bad_places_are_refused() {
    let (sim, mut local) = (machine(), 0u64);
    let (stream, ptr) = (stream(&sim), malloc(&sim, 4));
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamWriteValue32(stream, null_mut(), 1, 0)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipStreamWriteValue32(stream, (&raw mut local).cast(), 1, 0)
    );
    answers!(hipErrorInvalidValue, sim.hipStreamWriteValue64(stream, ptr, 1, 0));
    only_report(&sim, ReportKind::OutOfBounds);
    answers!(hipSuccess, sim.hipStreamWriteValue32(stream, ptr, 0x0403_0201, 0));
    answers!(hipSuccess, sim.hipStreamSynchronize(stream));
    assert_eq!(download(&sim, ptr, 4), [1, 2, 3, 4]);
    let (mut masked, mut mask) = (null_mut(), [0u32; 3]);
    answers!(
        hipErrorInvalidHandle,
        sim.hipExtStreamCreateWithCUMask(null_mut(), 1, mask.as_ptr())
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipExtStreamCreateWithCUMask(&raw mut masked, 0, mask.as_ptr())
    );
    mask[0] = 0xF0;
    answers!(
        hipSuccess,
        sim.hipExtStreamCreateWithCUMask(&raw mut masked, 3, mask.as_ptr())
    );
    mask = [9; 3];
    answers!(hipSuccess, sim.hipExtStreamGetCUMask(masked, 3, mask.as_mut_ptr()));
    assert_eq!(mask, [0xF0, 0, 9], "42 workgroup processors fill two words");
    let none = [0; 2];
    answers!(
        hipSuccess,
        sim.hipExtStreamCreateWithCUMask(&raw mut masked, 2, none.as_ptr())
    );
    answers!(hipSuccess, sim.hipExtStreamGetCUMask(masked, 2, mask.as_mut_ptr()));
    assert_eq!(mask[..2], [u32::MAX, (1 << 10) - 1]);
    clean(&sim);
}
