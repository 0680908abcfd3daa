//! The provider over a stand-in for NVIDIA's driver, compiled from `cuda.c`: no card is needed.
#![allow(clippy::multiple_unsafe_ops_per_block, reason = "one sequence of calls, one promise")]

mod failures;
mod fake;
mod graphs;
mod nvml;

use fake::build;
use rocmforge_hip_sys::*;
use rocmforge_nvidia::{CudaDriver, LoadError};
use std::ffi::{c_int, c_void};
use std::ptr::{null, null_mut, without_provenance_mut};

/// Free memory as the stand-in has it: 100 plus the number of the device whose context is current.
fn context_of(driver: &CudaDriver) -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both live for the call.
    assert_eq!(unsafe { driver.hipMemGetInfo(&mut free, &mut total) }, hipSuccess);
    free
}

#[test]
fn a_driver_that_is_not_there_or_too_old_is_an_error_with_its_name() {
    match CudaDriver::load_from("libcuda-of-nobody.so.1") {
        Err(LoadError::NotFound { library, .. }) => assert_eq!(library, "libcuda-of-nobody.so.1"),
        other => panic!("{other:?}"),
    }
    let old = build(&["cuLaunchHostFunc", "cuMemFree_v2"]);
    match CudaDriver::load_from(old.path.to_str().unwrap()) {
        Err(LoadError::MissingFunctions { functions, .. }) => {
            assert_eq!(functions, ["cuMemFree_v2", "cuLaunchHostFunc"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_thread_has_its_device_and_starts_with_the_first() {
    let fake = build(&[]);
    let driver = fake.driver();
    assert_eq!(context_of(&driver), 100);
    // SAFETY: takes a number.
    assert_eq!(unsafe { driver.hipSetDevice(1) }, hipSuccess);
    assert_eq!(context_of(&driver), 101);
    std::thread::scope(|scope| {
        scope.spawn(|| assert_eq!(context_of(&driver), 100));
    });
    // SAFETY: takes a number.
    assert_eq!(unsafe { driver.hipSetDevice(2) }, hipErrorInvalidDevice);
    assert_eq!(context_of(&driver), 101, "a refused device changes nothing");
    assert_eq!(fake.contexts(), 2, "one context a device, whoever asks");
}

#[test]
fn the_last_error_is_the_threads_and_success_does_not_hide_it() {
    let fake = build(&[]);
    let driver = fake.driver();
    fake.answer(700);
    // SAFETY: a null stream is the default one.
    let failed = unsafe { driver.hipStreamSynchronize(null_mut()) };
    assert_eq!(failed, hipErrorIllegalAddress);
    // SAFETY: as above. Not ready is an answer, not an error.
    assert_eq!(unsafe { driver.hipStreamQuery(null_mut()) }, hipErrorNotReady);
    assert_eq!(context_of(&driver), 100);
    std::thread::scope(|scope| {
        // SAFETY: takes nothing.
        scope.spawn(|| assert_eq!(unsafe { driver.hipPeekAtLastError() }, hipSuccess));
    });
    // SAFETY: these take nothing.
    let errors = unsafe { [driver.hipPeekAtLastError(), driver.hipGetLastError()] };
    assert_eq!(errors, [hipErrorIllegalAddress; 2]);
    // SAFETY: takes nothing.
    assert_eq!(unsafe { driver.hipGetLastError() }, hipSuccess);
}

#[test]
fn the_processor_is_named_as_its_code_is() {
    let driver = build(&[]).driver();
    let mut properties = hipDeviceProp_tR0600([0xaa; 1472]);
    // SAFETY: a whole struct.
    let status = unsafe { driver.hipGetDevicePropertiesR0600(&mut properties, 1) };
    assert_eq!(status, hipSuccess);
    let at = hipDeviceProp_tR0600::GCN_ARCH_NAME;
    assert_eq!(&properties.0[at..at + 6], b"sm_100");
    assert_eq!(&properties.0[..7], b"second\0");
    let mut old = hipDeviceProp_tR0000([0xaa; 792]);
    // SAFETY: a whole struct.
    let status = unsafe { driver.hipGetDeviceProperties(&mut old, 1) };
    assert_eq!(status, hipSuccess);
    let at = hipDeviceProp_tR0000::GCN_ARCH_NAME;
    assert_eq!(&old.0[at..at + 7], b"sm_100\0");
    assert_eq!(&old.0[..7], b"second\0");
    // SAFETY: refused before anything is written.
    unsafe {
        assert_eq!(driver.hipGetDeviceProperties(null_mut(), 1), hipErrorInvalidValue);
        assert_eq!(driver.hipGetDeviceProperties(&mut old, 2), hipErrorInvalidDevice);
        assert_eq!(&old.0[..7], b"second\0");
    }
    let mut warp = 0;
    // SAFETY: `warp` lives for the call.
    let status = unsafe { driver.hipDeviceGetAttribute(&mut warp, hipDeviceAttributeWarpSize, 0) };
    assert_eq!(
        (status, warp),
        (hipSuccess, 10),
        "the driver's number for the warp size"
    );
    let mut name = [1; 8];
    // SAFETY: refused before anything is written; the last has room.
    unsafe {
        assert_eq!(driver.hipDeviceGetName(null_mut(), 8, 0), hipErrorInvalidValue);
        assert_eq!(driver.hipDeviceGetName(name.as_mut_ptr(), 0, 0), hipErrorInvalidValue);
        assert_eq!(driver.hipDeviceGetName(name.as_mut_ptr(), -1, 0), hipErrorInvalidValue);
        assert_eq!(name, [1; 8]);
        assert_eq!(driver.hipDeviceGetName(name.as_mut_ptr(), 8, 0), hipSuccess);
    }
    // SAFETY: as above.
    let unknown = unsafe { driver.hipDeviceGetAttribute(&mut warp, 999, 0) };
    assert_eq!(unknown, hipErrorInvalidValue);
}

#[test]
fn empty_allocations_and_null_frees_are_hips() {
    let fake = build(&[]);
    let driver = fake.driver();
    let mut ptr: *mut c_void = without_provenance_mut(1);
    // SAFETY: `ptr` lives for each call; what is freed was allocated here.
    unsafe {
        assert_eq!(driver.hipMalloc(&mut ptr, 0), hipSuccess);
        assert!(ptr.is_null());
        assert_eq!(driver.hipFree(null_mut()), hipSuccess);
        assert_eq!(driver.hipHostFree(null_mut()), hipSuccess);
        assert_eq!(driver.hipMalloc(null_mut(), 4), hipErrorInvalidValue);
        assert_eq!(driver.hipMalloc(&mut ptr, 1 << 30), hipErrorOutOfMemory);
        assert!(ptr.is_null(), "a failure leaves it as it was");
        assert_eq!(
            driver.hipHostMalloc(&mut ptr, 16, hipHostMallocWriteCombined),
            hipSuccess
        );
        assert_eq!(fake.seen(0), 4 | 3, "portable and mapped, as HIP's default is");
        assert_eq!(driver.hipHostFree(ptr), hipSuccess);
        assert_eq!(driver.hipHostMalloc(&mut ptr, 16, 0x100), hipErrorInvalidValue);
        let both = hipHostMallocCoherent | hipHostMallocNonCoherent;
        assert_eq!(driver.hipHostMalloc(&mut ptr, 16, both), hipErrorInvalidValue);
    }
}

#[test]
fn copies_and_fills_go_in_the_direction_of_their_arguments() {
    let fake = build(&[]);
    let driver = fake.driver();
    let (from, mut to) = ([1u8, 2, 3, 4], [0u8; 8]);
    for (kind, call) in [
        (hipMemcpyHostToDevice, 1),
        (hipMemcpyDeviceToHost, 2),
        (hipMemcpyDeviceToDevice, 3),
        (hipMemcpyDefault, 4),
    ] {
        to = [0; 8];
        // SAFETY: both have four bytes, and the stand-in's device memory is the host's.
        let status =
            unsafe { driver.hipMemcpyAsync(to.as_mut_ptr().cast(), from.as_ptr().cast(), 4, kind, null_mut()) };
        assert_eq!((status, fake.seen(0), &to[..4]), (hipSuccess, call, &from[..]));
    }
    // SAFETY: a size of 0 touches nothing; a direction that does not exist is refused.
    unsafe {
        assert_eq!(
            driver.hipMemcpyAsync(null_mut(), null(), 0, hipMemcpyDefault, null_mut()),
            hipSuccess
        );
        assert_eq!(
            driver.hipMemcpyAsync(null_mut(), null(), 1, 9, null_mut()),
            hipErrorInvalidMemcpyDirection
        );
    }
    // SAFETY: eight bytes.
    let status = unsafe { driver.hipMemsetAsync(to.as_mut_ptr().cast(), 0x1ab, 4, null_mut()) };
    assert_eq!((status, to), (hipSuccess, [0xab, 0xab, 0xab, 0xab, 0, 0, 0, 0]));
    let mut words = [0u32; 2];
    // SAFETY: two words.
    let status = unsafe { driver.hipMemsetD32Async(words.as_mut_ptr().cast(), -2, 2, null_mut()) };
    assert_eq!((status, words), (hipSuccess, [u32::MAX - 1; 2]));
    // SAFETY: refused before the driver could count its bytes.
    let wraps = unsafe { driver.hipMemsetD32Async(words.as_mut_ptr().cast(), 0, usize::MAX / 4 + 1, null_mut()) };
    assert_eq!(wraps, hipErrorInvalidValue);
}

#[test]
fn a_pointer_of_the_device_and_one_of_nobody() {
    let driver = build(&[]).driver();
    let ask = |ptr: usize| {
        let mut answer = std::mem::MaybeUninit::<hipPointerAttribute_t>::uninit();
        // SAFETY: a whole struct; the pointer is not followed.
        let status = unsafe { driver.hipPointerGetAttributes(answer.as_mut_ptr(), without_provenance_mut(ptr)) };
        assert_eq!(status, hipSuccess);
        // SAFETY: success wrote all of it.
        unsafe { answer.assume_init() }
    };
    let device = ask(4100);
    assert_eq!((device.r#type, device.device), (hipMemoryTypeDevice, 1));
    assert_eq!(device.devicePointer.addr(), 4100);
    let unknown = ask(64);
    assert_eq!(unknown.r#type, hipMemoryTypeUnregistered);
    // SAFETY: takes nothing.
    let last = unsafe { driver.hipGetLastError() };
    assert_eq!(last, hipSuccess, "an unknown pointer is no failure");
}

#[test]
fn a_launch_arrives_as_it_was_given() {
    let fake = build(&[]);
    let driver = fake.driver();
    let (mut module, mut function) = (null_mut(), null_mut());
    // SAFETY: the stand-in reads the image as text and compares the name.
    unsafe {
        assert_eq!(
            driver.hipModuleLoadData(&mut module, c".version 8.0".as_ptr().cast()),
            hipSuccess
        );
        assert_eq!(fake.seen(0), 12);
        assert_eq!(
            driver.hipModuleGetFunction(&mut function, module, c"unknown".as_ptr()),
            hipErrorNotFound
        );
        assert_eq!(
            driver.hipModuleGetFunction(&mut function, module, c"known".as_ptr()),
            hipSuccess
        );
        let (stream, params) = (without_provenance_mut(19), without_provenance_mut(20));
        assert_eq!(
            driver.hipModuleLaunchKernel(function, 12, 13, 14, 15, 16, 17, 18, stream, params, null_mut()),
            hipSuccess
        );
    }
    let seen: Vec<u64> = (0..11).map(|index| fake.seen(index)).collect();
    assert_eq!(seen, [10, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0]);
    let extra = without_provenance_mut(21);
    // SAFETY: refused before anything is followed.
    let status = unsafe { driver.hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, null_mut(), null_mut(), extra) };
    assert_eq!(status, hipErrorNotSupported);
}

/// A kernel that waits for the launches before by itself is launched early, in captures.
#[test]
fn an_early_kernel_is_launched_early_in_a_graph() {
    let ptx = c".version 8.0 .entry known() { griddepcontrol.wait; }";
    let fake = build(&[]);
    let driver = fake.driver();
    for (text, stream, early) in [(ptx, 19, 601), (ptx, 40, 0), (c".entry known() { ret; }", 19, 0)] {
        let (mut module, mut function) = (null_mut(), null_mut());
        let (stream, params) = (without_provenance_mut(stream), without_provenance_mut(20));
        // SAFETY: the stand-in reads the image as text and compares the name; it follows no handle.
        unsafe {
            assert_eq!(driver.hipModuleLoadData(&mut module, text.as_ptr().cast()), hipSuccess);
            assert_eq!(
                driver.hipModuleGetFunction(&mut function, module, c"known".as_ptr()),
                hipSuccess
            );
            assert_eq!(
                driver.hipModuleLaunchKernel(function, 12, 13, 14, 15, 16, 17, 18, stream, params, null_mut()),
                hipSuccess
            );
        }
        let seen: Vec<u64> = (0..12).map(|index| fake.seen(index)).collect();
        assert_eq!(
            seen,
            [10, 12, 13, 14, 15, 16, 17, 18, stream.addr() as u64, 20, 0, early]
        );
        // SAFETY: the stand-in follows no handle.
        assert_eq!(unsafe { driver.hipModuleUnload(module) }, hipSuccess);
    }
}

#[test]
fn a_function_may_have_the_shared_memory_that_a_block_of_the_device_can_have() {
    let fake = build(&[]);
    let driver = fake.driver();
    let (mut most, mut function) = (0, null_mut());
    let module = without_provenance_mut(9);
    // SAFETY: both live for the calls; the stand-in follows no handle.
    unsafe {
        let attribute = hipDeviceAttributeMaxSharedMemoryPerBlock;
        assert_eq!(driver.hipDeviceGetAttribute(&mut most, attribute, 0), hipSuccess);
        assert_eq!(most, 227 << 10, "what a Hopper card answers");
        assert_eq!(
            driver.hipModuleGetFunction(&mut function, module, c"unknown".as_ptr()),
            hipErrorNotFound
        );
        assert_eq!(fake.seen(12), 0, "one that is not there is allowed nothing");
        assert_eq!(
            driver.hipModuleGetFunction(&mut function, module, c"known".as_ptr()),
            hipSuccess
        );
    }
    // The stand-in's function 10 declares one byte: the number of that attribute.
    assert_eq!([fake.seen(12), fake.seen(13), fake.seen(14)], [10, 8, (227 << 10) - 1]);
}

#[test]
fn events_keep_the_flags_both_platforms_know() {
    let fake = build(&[]);
    let driver = fake.driver();
    let mut event = null_mut();
    let flags = hipEventDisableTiming | hipEventReleaseToSystem;
    // SAFETY: `event` lives for each call.
    unsafe {
        assert_eq!(driver.hipEventCreateWithFlags(&mut event, flags), hipSuccess);
        assert_eq!(fake.seen(0), u64::from(hipEventDisableTiming));
        for both in [hipEventBlockingSync, hipEventDisableTiming | hipEventInterprocess, 7] {
            assert_eq!(driver.hipEventCreateWithFlags(&mut event, both), hipSuccess);
            assert_eq!(fake.seen(0), u64::from(both));
        }
        for hint in [hipEventReleaseToDevice, hipEventReleaseToSystem] {
            assert_eq!(driver.hipEventCreateWithFlags(&mut event, hint), hipSuccess);
            assert_eq!(fake.seen(0), 0);
        }
        assert_eq!(driver.hipEventCreateWithFlags(&mut event, 0x8), hipErrorInvalidValue);
        let both = hipEventReleaseToDevice | hipEventReleaseToSystem;
        assert_eq!(driver.hipEventCreateWithFlags(&mut event, both), hipErrorInvalidValue);
        assert_eq!(driver.hipStreamWaitEvent(null_mut(), event, 1), hipErrorInvalidValue);
        assert_eq!(driver.hipStreamWaitEvent(null_mut(), event, 0), hipSuccess);
        assert_eq!(driver.hipEventRecord(null_mut(), null_mut()), hipErrorInvalidHandle);
        assert_eq!(driver.hipEventDestroy(event), hipSuccess);
    }
}

#[test]
fn a_stream_knows_its_device_by_its_context() {
    let driver = build(&[]).driver();
    let (ours, strangers) = (without_provenance_mut(7), without_provenance_mut(17));
    for device in [1, 0] {
        let mut found = -1;
        // SAFETY: `found` lives for each call.
        unsafe {
            assert_eq!(driver.hipSetDevice(device), hipSuccess);
            assert_eq!(driver.hipStreamGetDevice(ours, &mut found), hipSuccess);
            assert_eq!(found, device);
            assert_eq!(driver.hipStreamGetDevice(strangers, &mut found), hipErrorInvalidContext);
            assert_eq!(driver.hipStreamGetDevice(ours, null_mut()), hipErrorInvalidValue);
        }
        assert_eq!(found, device);
    }
}

#[test]
fn the_attributes_of_a_function_are_the_drivers_up_to_the_last_that_hip_has() {
    let driver = build(&[]).driver();
    let (function, mut value) = (without_provenance_mut(10), -1);
    let last = HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    // SAFETY: `value` lives for each call; the stand-in answers an attribute's own number and follows no handle.
    unsafe {
        for attribute in [0, HIP_FUNC_ATTRIBUTE_NUM_REGS, last] {
            assert_eq!(driver.hipFuncGetAttribute(&mut value, attribute, function), hipSuccess);
            assert_eq!(value, attribute as c_int);
        }
        assert_eq!(
            driver.hipFuncGetAttribute(&mut value, last + 1, function),
            hipErrorInvalidValue
        );
        assert_eq!(
            driver.hipFuncGetAttribute(&mut value, 0, null_mut()),
            hipErrorInvalidDeviceFunction
        );
        assert_eq!(value, last as c_int);
    }
}

#[test]
fn what_nobody_implements_here_says_so() {
    let driver = build(&[]).driver();
    // SAFETY: not supported: nothing is followed.
    assert_eq!(unsafe { driver.hipExtGetLastError() }, hipErrorNotSupported);
}
