//! A: devices, initialisation, context.

use super::modes::*;
use hip::*;
use std::ptr::null_mut;

rows! {
    a01_device_count_without_a_card,
    a02_everything_without_a_card_answers_no_device,
    a07_current_device_is_thread_local,
    a17_device_reset_frees_under_live_pointers,
    a18_device_synchronize_idle,
    a19_device_synchronize_waits_for_every_own_stream,
    a12_get_limit_null,
    a13_get_unknown_limit,
    a14_set_unknown_limit,
    a15_get_device_flags_null,
    a16_set_invalid_device_flags,
    a21_can_access_peer_of_bad_arguments,
    a22_enabling_peer_access_is_refused,
    a23_enable_peer_access_with_flags,
    a24_disable_peer_access_never_enabled,
    a25_ipc_handle_of_freed_memory,
    a26_ipc_handle_past_the_end,
    a27_ipc_handle_opened_where_it_was_made,
}

fn a01_device_count_without_a_card(mode: HipVersion) {
    let sim = no_cards(mode);
    let mut count = -1;
    answers!(hipErrorNoDevice, sim.hipGetDeviceCount(&raw mut count));
}

fn a02_everything_without_a_card_answers_no_device(mode: HipVersion) {
    let sim = no_cards(mode);
    let (mut ptr, mut stream, mut module, mut n) = (null_mut(), null_mut(), null_mut(), 0);
    answers!(hipErrorNoDevice, sim.hipInit(0));
    answers!(hipErrorNoDevice, sim.hipSetDevice(0));
    answers!(hipErrorNoDevice, sim.hipGetDevice(&raw mut n));
    answers!(hipErrorNoDevice, sim.hipMalloc(&raw mut ptr, 16));
    answers!(hipErrorNoDevice, sim.hipHostMalloc(&raw mut ptr, 16, 0));
    answers!(hipErrorNoDevice, sim.hipStreamCreateWithFlags(&raw mut stream, 0));
    answers!(
        hipErrorNoDevice,
        sim.hipModuleLoadData(&raw mut module, b"\x7fELF".as_ptr().cast())
    );
    answers!(hipErrorNoDevice, sim.hipDeviceSynchronize());
    answers!(hipErrorNoDevice, sim.hipStreamQuery(null_mut()));
}

fn a07_current_device_is_thread_local(mode: HipVersion) {
    let sim = two_cards(mode);
    answers!(hipSuccess, sim.hipSetDevice(1));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut device = -1;
            answers!(hipSuccess, sim.hipGetDevice(&raw mut device));
            assert_eq!(device, 0, "a new thread starts on device 0");
            answers!(hipSuccess, sim.hipSetDevice(0));
        });
    });
    let mut device = -1;
    answers!(hipSuccess, sim.hipGetDevice(&raw mut device));
    assert_eq!(device, 1);
}

fn a17_device_reset_frees_under_live_pointers(mode: HipVersion) {
    let sim = machine(mode);
    let (ptr, mut flags) = (malloc(&sim, N), 99);
    answers!(hipSuccess, sim.hipSetDeviceFlags(hipDeviceScheduleSpin));
    answers!(hipSuccess, sim.hipDeviceReset());
    answers!(hipErrorInvalidValue, sim.hipFree(ptr));
    assert_eq!(sim.allocation_stats(0).live, 0);
    answers!(hipSuccess, sim.hipGetDeviceFlags(&raw mut flags));
    assert_eq!(flags, hipDeviceScheduleAuto);
}

fn a18_device_synchronize_idle(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipSuccess, sim.hipDeviceSynchronize());
}

fn a19_device_synchronize_waits_for_every_own_stream(mode: HipVersion) {
    let sim = machine(mode);
    let streams = [stream(&sim), stream(&sim), stream_with(&sim, hipStreamDefault)];
    for stream in streams {
        keep_busy(&sim, stream);
    }
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    for stream in streams {
        answers!(hipSuccess, sim.hipStreamQuery(stream));
    }
}

#[test]
fn runtime_versions_tell_the_major_version() {
    for (sim, major) in [(machine(Hip6), 6), (machine(Hip7), 7)] {
        let mut version = 0;
        answers!(hipSuccess, sim.hipRuntimeGetVersion(&raw mut version));
        assert_eq!(version / 10_000_000, major);
    }
}

#[test]
fn properties_carry_name_and_architecture_at_the_offsets_of_both_structs() {
    let sim = machine(Hip6);
    let mut new = hipDeviceProp_tR0600([0xAA; 1472]);
    let mut old = hipDeviceProp_tR0000([0xAA; 792]);
    answers!(hipSuccess, sim.hipGetDevicePropertiesR0600(&raw mut new, 0));
    answers!(hipSuccess, sim.hipGetDeviceProperties(&raw mut old, 0));
    assert_eq!(&new.0[1160..1168], b"gfx1100\0");
    assert_eq!(&old.0[396..404], b"gfx1100\0");
    answers!(hipErrorInvalidDevice, sim.hipGetDevicePropertiesR0600(&raw mut new, 1));
}

#[test]
fn attributes_are_those_of_a_navi_31() {
    let sim = machine(Hip6);
    let get = |attribute| {
        let mut value = -1;
        answers!(hipSuccess, sim.hipDeviceGetAttribute(&raw mut value, attribute, 0));
        value
    };
    assert_eq!(get(hipDeviceAttributeWarpSize), 32);
    assert_eq!(get(hipDeviceAttributeMaxThreadsPerBlock), 1024);
    assert_eq!(get(hipDeviceAttributeMaxSharedMemoryPerBlock), 65_536);
    assert_eq!(
        (
            get(hipDeviceAttributeComputeCapabilityMajor),
            get(hipDeviceAttributeComputeCapabilityMinor)
        ),
        (11, 0)
    );
    assert_eq!(
        (get(hipDeviceAttributePciDomainID), get(hipDeviceAttributePciBusId)),
        (0, 3)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipDeviceGetAttribute(null_mut(), hipDeviceAttributeWarpSize, 0)
    );
    let mut value = 0;
    answers!(hipErrorInvalidValue, sim.hipDeviceGetAttribute(&raw mut value, 9999, 0));
    answers!(
        hipErrorInvalidDevice,
        sim.hipDeviceGetAttribute(&raw mut value, hipDeviceAttributeWarpSize, 1)
    );
}

fn a12_get_limit_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(
        hipErrorInvalidValue,
        sim.hipDeviceGetLimit(null_mut(), hipLimitMallocHeapSize)
    );
}

fn a13_get_unknown_limit(mode: HipVersion) {
    let (sim, mut value) = (machine(mode), 99);
    for unknown in [u32::MAX, 3, hipLimitPrintfFifoSize] {
        answers!(hipErrorUnsupportedLimit, sim.hipDeviceGetLimit(&raw mut value, unknown));
    }
    assert_eq!(value, 99, "not written");
    answers!(
        hipSuccess,
        sim.hipDeviceGetLimit(&raw mut value, hipLimitMallocHeapSize)
    );
    assert_eq!(value, 8 << 20);
}

fn a14_set_unknown_limit(mode: HipVersion) {
    let (sim, mut value) = (machine(mode), 0);
    answers!(hipErrorUnsupportedLimit, sim.hipDeviceSetLimit(u32::MAX, 1));
    answers!(hipSuccess, sim.hipDeviceSetLimit(hipLimitStackSize, 4096));
    answers!(hipErrorInvalidValue, sim.hipDeviceSetLimit(hipLimitStackSize, 1 << 20));
    answers!(hipSuccess, sim.hipDeviceGetLimit(&raw mut value, hipLimitStackSize));
    assert_eq!(value, 4096);
}

fn a15_get_device_flags_null(mode: HipVersion) {
    let sim = machine(mode);
    answers!(hipErrorInvalidValue, sim.hipGetDeviceFlags(null_mut()));
}

fn a16_set_invalid_device_flags(mode: HipVersion) {
    let (sim, mut flags) = (machine(mode), 99);
    for invalid in [u32::MAX, 0x20, hipDeviceScheduleSpin | hipDeviceScheduleYield] {
        answers!(hipErrorInvalidValue, sim.hipSetDeviceFlags(invalid));
    }
    let wanted = hipDeviceScheduleBlockingSync | hipDeviceMapHost;
    answers!(hipSuccess, sim.hipSetDeviceFlags(wanted));
    answers!(hipSuccess, sim.hipGetDeviceFlags(&raw mut flags));
    assert_eq!(
        flags, hipDeviceScheduleBlockingSync,
        "flags that say nothing of waiting are forgotten"
    );
}

fn a21_can_access_peer_of_bad_arguments(mode: HipVersion) {
    let (sim, mut can) = (two_cards(mode), 99);
    answers!(hipErrorInvalidValue, sim.hipDeviceCanAccessPeer(null_mut(), 0, 1));
    answers!(hipErrorInvalidDevice, sim.hipDeviceCanAccessPeer(&raw mut can, 0, 2));
    answers!(hipErrorInvalidDevice, sim.hipDeviceCanAccessPeer(&raw mut can, -1, 0));
    answers!(hipSuccess, sim.hipDeviceCanAccessPeer(&raw mut can, 0, 1));
    assert_eq!(can, 0, "a simulated kernel reaches its own card only");
}

/// Not supported on purpose: no card can reach another, see `a21`.
fn a22_enabling_peer_access_is_refused(mode: HipVersion) {
    let sim = two_cards(mode);
    answers!(hipErrorNotSupported, sim.hipDeviceEnablePeerAccess(1, 0));
    answers!(hipErrorNotSupported, sim.hipDeviceEnablePeerAccess(1, 0));
    answers!(hipErrorInvalidDevice, sim.hipDeviceEnablePeerAccess(0, 0));
    answers!(hipErrorInvalidDevice, sim.hipDeviceEnablePeerAccess(2, 0));
}

fn a23_enable_peer_access_with_flags(mode: HipVersion) {
    let sim = two_cards(mode);
    answers!(hipErrorInvalidValue, sim.hipDeviceEnablePeerAccess(1, 1));
}

fn a24_disable_peer_access_never_enabled(mode: HipVersion) {
    let sim = two_cards(mode);
    answers!(hipErrorPeerAccessNotEnabled, sim.hipDeviceDisablePeerAccess(1));
    answers!(hipErrorInvalidDevice, sim.hipDeviceDisablePeerAccess(2));
}

fn no_handle() -> hipIpcMemHandle_t {
    hipIpcMemHandle_t { reserved: [0; 64] }
}

fn a25_ipc_handle_of_freed_memory(mode: HipVersion) {
    let (sim, mut handle) = (machine(mode), no_handle());
    let ptr = malloc(&sim, N);
    answers!(hipErrorInvalidValue, sim.hipIpcGetMemHandle(null_mut(), ptr));
    answers!(hipSuccess, sim.hipFree(ptr));
    answers!(hipErrorInvalidValue, sim.hipIpcGetMemHandle(&raw mut handle, ptr));
    assert_eq!(handle, no_handle(), "not written");
}

fn a26_ipc_handle_past_the_end(mode: HipVersion) {
    let (sim, mut handle) = (machine(mode), no_handle());
    let ptr = malloc(&sim, N);
    answers!(
        hipErrorInvalidValue,
        sim.hipIpcGetMemHandle(&raw mut handle, at(ptr, N))
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipIpcGetMemHandle(&raw mut handle, null_mut())
    );
    answers!(hipSuccess, sim.hipIpcGetMemHandle(&raw mut handle, ptr));
}

fn a27_ipc_handle_opened_where_it_was_made(mode: HipVersion) {
    let (sim, mut handle) = (machine(mode), no_handle());
    let (ptr, mut opened) = (malloc(&sim, N), null_mut());
    answers!(hipSuccess, sim.hipIpcGetMemHandle(&raw mut handle, ptr));
    answers!(
        hipErrorInvalidContext,
        sim.hipIpcOpenMemHandle(&raw mut opened, handle, 1)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipIpcOpenMemHandle(&raw mut opened, no_handle(), 1)
    );
    answers!(hipErrorInvalidValue, sim.hipIpcOpenMemHandle(null_mut(), handle, 1));
    assert!(opened.is_null());
}
