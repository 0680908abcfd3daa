//! Captures and graphs.

use crate::fake::build;
use rocmforge_hip_sys::*;
use std::ptr::{null_mut, without_provenance_mut};

#[test]
fn a_capture_becomes_a_graph_that_is_replayed() {
    let fake = build(&[]);
    let driver = fake.driver();
    let (mut graph, mut exec) = (null_mut(), null_mut());
    let mut status = 0;
    // SAFETY: the out-pointers live for each call; the stand-in follows no handle.
    unsafe {
        assert_eq!(
            driver.hipStreamBeginCapture(null_mut(), hipStreamCaptureModeRelaxed),
            hipSuccess
        );
        assert_eq!(fake.seen(0), u64::from(hipStreamCaptureModeRelaxed));
        assert_eq!(driver.hipStreamIsCapturing(null_mut(), &mut status), hipSuccess);
        assert_eq!(status, hipStreamCaptureStatusActive);
        assert_eq!(driver.hipStreamEndCapture(null_mut(), &mut graph), hipSuccess);
        assert_eq!(
            driver.hipGraphInstantiate(&mut exec, null_mut(), null_mut(), null_mut(), 0),
            hipErrorInvalidValue
        );
        assert!(exec.is_null());
        assert_eq!(
            driver.hipGraphInstantiate(&mut exec, graph, null_mut(), null_mut(), 0),
            hipSuccess
        );
        assert_eq!(driver.hipGraphLaunch(null_mut(), null_mut()), hipErrorInvalidValue);
        assert_eq!(driver.hipGraphLaunch(exec, null_mut()), hipSuccess);
        assert_eq!(driver.hipGraphExecDestroy(exec), hipSuccess);
        assert_eq!(driver.hipGraphExecDestroy(null_mut()), hipErrorInvalidValue);
        assert_eq!(driver.hipGraphDestroy(graph), hipSuccess);
        assert_eq!(driver.hipGraphDestroy(null_mut()), hipErrorInvalidValue);
    }
}

#[test]
fn an_update_tells_what_differs_and_where() {
    let fake = build(&[]);
    let driver = fake.driver();
    let exec = without_provenance_mut(12);
    let update = |graph: usize| {
        let (mut node, mut result) = (without_provenance_mut(1), 77);
        // SAFETY: the out-pointers live for the call; the stand-in follows no handle.
        let status = unsafe { driver.hipGraphExecUpdate(exec, without_provenance_mut(graph), &mut node, &mut result) };
        (status, node.addr(), result)
    };
    assert_eq!(update(11), (hipSuccess, 0, hipGraphExecUpdateSuccess));
    assert_eq!((fake.seen(0), fake.seen(1)), (12, 11));
    // The driver's words for what differs are HIP's; the last is one that HIP does not have.
    for (theirs, ours) in [
        (2, hipGraphExecUpdateErrorTopologyChanged),
        (5, hipGraphExecUpdateErrorParametersChanged),
        (7, hipGraphExecUpdateErrorUnsupportedFunctionChange),
        (8, hipGraphExecUpdateError),
    ] {
        assert_eq!(update(theirs), (hipErrorGraphExecUpdateFailure, 33, ours));
    }
    // A driver that says nothing about it has failed for another reason.
    fake.answer(719);
    assert_eq!(update(11), (hipErrorLaunchFailure, 0, hipGraphExecUpdateError));
}

#[test]
fn an_update_without_a_graph_or_a_place_for_the_answer_is_refused() {
    let driver = build(&[]).driver();
    let (exec, graph) = (without_provenance_mut(12), without_provenance_mut(11));
    let (mut node, mut result) = (null_mut(), 77);
    // SAFETY: refused before anything is followed.
    let refused = unsafe {
        [
            driver.hipGraphExecUpdate(null_mut(), graph, &mut node, &mut result),
            driver.hipGraphExecUpdate(exec, null_mut(), &mut node, &mut result),
            driver.hipGraphExecUpdate(exec, graph, null_mut(), &mut result),
            driver.hipGraphExecUpdate(exec, graph, &mut node, null_mut()),
        ]
    };
    assert_eq!(refused, [hipErrorInvalidValue; 4]);
    assert_eq!(result, 77);
}
