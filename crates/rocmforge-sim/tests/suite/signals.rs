//! Signal handlers that call HIP while their own thread is in a HIP call: they are refused, and never wait for themselves.

use crate::support::hip::*;
use crate::support::*;
use rocmforge_sim::ReportKind;
use std::ptr::null_mut;

#[test]
fn a_call_of_the_thread_that_has_the_lock_is_refused_and_reported_behind_it() {
    let (sim, other) = (machine(), machine());
    let mut buffer = null_mut();
    let lock = sim.lock_for_fork();
    assert!(sim.interrupted());
    answers!(hipErrorNotSupported, sim.hipMalloc(&raw mut buffer, 16));
    answers!(hipErrorNotSupported, sim.hipDeviceSynchronize());
    // Another machine has a lock of its own.
    answers!(hipSuccess, other.hipDeviceSynchronize());
    assert!(sim.interrupted(), "the other machine's mark gave this one's back");
    drop(lock);
    assert!(!sim.interrupted());
    assert!(buffer.is_null());
    assert!(sim.take_reports().is_empty(), "the next call reports it");
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    let reports = sim.take_reports();
    let [report] = &reports[..] else {
        panic!("one finding: {reports:?}")
    };
    assert_eq!(report.kind, ReportKind::InvalidCall);
    assert!(report.message.contains("a signal handler made 2 HIP calls"), "{report}");
    answers!(hipSuccess, sim.hipMalloc(&raw mut buffer, 16));
    answers!(hipSuccess, sim.hipFree(buffer));
    assert!(sim.take_reports().is_empty(), "once");
}
