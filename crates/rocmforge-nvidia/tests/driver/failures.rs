//! Every function, with each of the driver calls it makes failing in turn: the failure is handed on and remembered, whichever
//! call it was.

use crate::fake::build;
use rocmforge_hip_sys::*;
use rocmforge_nvidia::CudaDriver;
use std::collections::BTreeSet;
use std::ffi::{c_char, c_void};
use std::ptr::{null_mut, without_provenance_mut};

/// A function's name, a call of it that works over the stand-in, and what it answers then.
type Case<'a> = (&'static str, hipError_t, Box<dyn Fn(&CudaDriver) -> hipError_t + 'a>);

/// Room for whatever a function writes. Large enough for the properties structs.
#[repr(C, align(16))]
struct Room([u8; 2048]);

/// The functions that make no call of the driver's, and one whose failure is an answer.
const WITHOUT: [&str; 5] = [
    "hipGetDevice",
    "hipGetLastError",
    "hipPeekAtLastError",
    "hipExtGetLastError",
    "hipPointerGetAttributes",
];

macro_rules! cases {
    ($($function:ident($($argument:expr),*) => $answer:expr;)*) => {
        vec![$((
            stringify!($function),
            $answer,
            // SAFETY: the stand-in's handles, and pointers to rooms that outlive the call.
            Box::new(move |driver: &CudaDriver| unsafe { driver.$function($($argument),*) }) as Box<dyn Fn(&CudaDriver) -> hipError_t>,
        )),*]
    };
}

unsafe extern "C" fn nothing(_user: *mut c_void) {}

/// `out` and `more` are rooms, `memory` 64 bytes that the stand-in takes for the device's.
fn cases<'a>(out: *mut c_void, more: *mut c_void, memory: *mut c_void) -> Vec<Case<'a>> {
    let ok = hipSuccess;
    let (stream, event, module) = (7, 8, 9);
    let (function, graph, exec) = (10, 11, 12);
    let at = without_provenance_mut::<c_void>;
    cases! {
        hipInit(0) => ok;
        hipRuntimeGetVersion(out.cast()) => ok;
        hipDriverGetVersion(out.cast()) => ok;
        hipGetDeviceCount(out.cast()) => ok;
        hipSetDevice(0) => ok;
        hipDeviceGet(out.cast(), 0) => ok;
        hipDeviceGetName(out.cast::<c_char>(), 16, 0) => ok;
        hipDeviceGetAttribute(out.cast(), hipDeviceAttributeWarpSize, 0) => ok;
        hipDeviceTotalMem(out.cast(), 0) => ok;
        hipDeviceGetPCIBusId(out.cast::<c_char>(), 16, 0) => ok;
        hipDeviceGetStreamPriorityRange(out.cast(), more.cast()) => ok;
        hipGetDevicePropertiesR0600(out.cast(), 0) => ok;
        hipGetDeviceProperties(out.cast(), 0) => ok;
        hipMemGetInfo(out.cast(), more.cast()) => ok;
        hipMalloc(out.cast(), 64) => ok;
        hipHostMalloc(more.cast(), 64, 0) => ok;
        // What the two before have left.
        hipFree(*out.cast::<*mut c_void>()) => ok;
        hipHostFree(*more.cast::<*mut c_void>()) => ok;
        hipHostRegister(memory, 64, 0) => hipErrorHostMemoryAlreadyRegistered;
        hipHostUnregister(memory) => hipErrorHostMemoryNotRegistered;
        hipHostGetDevicePointer(out.cast(), memory, 0) => ok;
        hipHostGetFlags(out.cast(), memory) => ok;
        hipMemcpyAsync(memory, memory, 64, hipMemcpyHostToDevice, at(stream).cast()) => ok;
        hipMemsetAsync(memory, 0, 64, at(stream).cast()) => ok;
        hipMemsetD32Async(memory, 0, 16, at(stream).cast()) => ok;
        hipStreamCreateWithFlags(out.cast(), hipStreamNonBlocking) => ok;
        hipStreamCreateWithPriority(out.cast(), hipStreamNonBlocking, -1) => ok;
        hipStreamDestroy(at(stream).cast()) => ok;
        hipStreamQuery(at(stream).cast()) => hipErrorNotReady;
        hipStreamSynchronize(at(stream).cast()) => ok;
        hipStreamWaitEvent(at(stream).cast(), at(event).cast(), 0) => ok;
        hipStreamGetFlags(at(stream).cast(), out.cast()) => ok;
        hipStreamGetPriority(at(stream).cast(), out.cast()) => ok;
        hipStreamGetDevice(at(stream).cast(), out.cast()) => ok;
        hipLaunchHostFunc(at(stream).cast(), Some(nothing), null_mut()) => ok;
        hipEventCreateWithFlags(out.cast(), hipEventDisableTiming) => ok;
        hipEventDestroy(at(event).cast()) => ok;
        hipEventRecord(at(event).cast(), at(stream).cast()) => ok;
        hipEventQuery(at(event).cast()) => ok;
        hipEventSynchronize(at(event).cast()) => ok;
        hipEventElapsedTime(out.cast(), at(event).cast(), at(event).cast()) => ok;
        hipModuleLoadData(out.cast(), c".version 8.0".as_ptr().cast()) => ok;
        hipModuleUnload(at(module).cast()) => ok;
        hipModuleGetFunction(out.cast(), at(module).cast(), c"known".as_ptr()) => ok;
        hipModuleGetGlobal(out.cast(), more.cast(), at(module).cast(), c"known".as_ptr()) => ok;
        hipFuncGetAttribute(out.cast(), HIP_FUNC_ATTRIBUTE_NUM_REGS, at(function).cast()) => ok;
        hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(out.cast(), at(function).cast(), 64, 0) => ok;
        hipModuleLaunchKernel(at(function).cast(), 1, 1, 1, 1, 1, 1, 0, at(stream).cast(), null_mut(), null_mut()) => ok;
        hipStreamBeginCapture(at(stream).cast(), hipStreamCaptureModeRelaxed) => ok;
        hipStreamIsCapturing(at(stream).cast(), out.cast()) => ok;
        hipStreamEndCapture(at(stream).cast(), out.cast()) => ok;
        hipGraphInstantiate(out.cast(), at(graph).cast(), null_mut(), null_mut(), 0) => ok;
        hipGraphLaunch(at(exec).cast(), at(stream).cast()) => ok;
        hipGraphExecUpdate(at(exec).cast(), at(graph).cast(), out.cast(), more.cast()) => ok;
        hipGraphExecDestroy(at(exec).cast()) => ok;
        hipGraphDestroy(at(graph).cast()) => ok;
    }
}

#[test]
fn whichever_call_of_the_driver_fails_is_handed_on_and_remembered() {
    let fake = build(&[]);
    let driver = fake.driver();
    let (mut out, mut more, mut memory) = (Room([0; 2048]), Room([0; 2048]), Room([0; 2048]));
    let cases = cases(
        out.0.as_mut_ptr().cast(),
        more.0.as_mut_ptr().cast(),
        memory.0.as_mut_ptr().cast(),
    );
    // SAFETY: takes nothing.
    let last = || unsafe { driver.hipGetLastError() };
    // The context is there, so that only a function's own calls count.
    // SAFETY: takes a number.
    assert_eq!(unsafe { driver.hipSetDevice(0) }, hipSuccess);
    let mut calls = 0;
    for (name, answer, call) in &cases {
        let mut own = 0;
        loop {
            let _ = last();
            fake.answer_after(own, 719);
            let status = call(&driver);
            if !fake.has_answered() {
                // It makes no more calls than that.
                fake.answer(0);
                assert_eq!(status, *answer, "{name}");
                break;
            }
            assert_eq!(status, hipErrorLaunchFailure, "{name}, call {own}");
            assert_eq!(last(), hipErrorLaunchFailure, "{name}, call {own}");
            own += 1;
        }
        assert!(own > 0, "{name} makes no call");
        calls += own;
    }
    assert!(calls as usize > cases.len(), "some make two");
    let covered: BTreeSet<&str> = cases.iter().map(|(name, ..)| *name).chain(WITHOUT).collect();
    let all: BTreeSet<&str> = CORE_FUNCTIONS.iter().chain(OPTIONAL_FUNCTIONS).copied().collect();
    assert_eq!(covered, all);
}

#[test]
fn a_context_that_cannot_be_made_fails_the_call_and_is_tried_again() {
    // Finding the device, taking its context, making it current.
    for failing in 0..3 {
        let fake = build(&[]);
        let driver = fake.driver();
        let attempt = || {
            let (mut free, mut total) = (0, 0);
            // SAFETY: both live for the call.
            unsafe { driver.hipMemGetInfo(&mut free, &mut total) }
        };
        // A thread of its own: one that has a context keeps it.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                fake.answer_after(failing, 2);
                assert_eq!(attempt(), hipErrorOutOfMemory, "call {failing}");
                assert!(fake.has_answered());
                // SAFETY: takes nothing.
                assert_eq!(unsafe { driver.hipGetLastError() }, hipErrorOutOfMemory);
                assert_eq!(attempt(), hipSuccess, "call {failing}");
                assert_eq!(fake.contexts(), 1);
            });
        });
    }
}
