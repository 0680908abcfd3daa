//! Properties, attributes, contexts, and what else is asked before work.

use crate::support::*;
use hip::*;
use rocmforge_sim::{CardConfig, SimConfig, SimHost};
use std::ffi::c_char;
use std::ptr::null_mut;

fn properties(sim: &SimHost, device: i32) -> (DeviceProperties6, DeviceProperties5) {
    let mut new = hipDeviceProp_tR0600([0xAA; 1472]);
    let mut old = hipDeviceProp_tR0000([0xAA; 792]);
    answers!(hipSuccess, sim.hipGetDevicePropertiesR0600(&raw mut new, device));
    answers!(hipSuccess, sim.hipGetDeviceProperties(&raw mut old, device));
    ((&new).into(), (&old).into())
}

fn attribute(sim: &SimHost, attribute: hipDeviceAttribute_t) -> i32 {
    let mut value = -1;
    answers!(hipSuccess, sim.hipDeviceGetAttribute(&raw mut value, attribute, 0));
    value
}

#[test]
fn every_field_that_programs_read_has_a_number() {
    for (card, arch, major, bus, wgps) in [
        (CardConfig::default(), "gfx1100", 11, 320, 42),
        (
            CardConfig::default().with_arch(rocmforge_sim::Arch::Gfx1201),
            "gfx1201",
            12,
            256,
            32,
        ),
    ] {
        let sim = machine_with(|config| config.cards = vec![card.clone()]);
        let (new, old) = properties(&sim, 0);
        let text: Vec<u8> = new.gcnArchName.iter().take(7).map(|c| *c as u8).collect();
        assert_eq!(text, arch.as_bytes());
        assert_eq!((new.major, new.warpSize, new.multiProcessorCount), (major, 32, wgps));
        assert_eq!((new.sharedMemPerBlock, new.sharedMemPerBlockOptin), (65_536, 65_536));
        assert_eq!((new.maxThreadsPerBlock, new.maxThreadsPerMultiProcessor), (1024, 2048));
        assert_eq!((new.regsPerBlock, new.memoryBusWidth, new.pciBusID), (65_536, bus, 3));
        assert!(new.clockRate > 1_000_000 && new.memoryClockRate > 1_000_000 && new.l2CacheSize > 1 << 20);
        assert_eq!(new.totalGlobalMem as u64, card.vram.0);
        assert_eq!(old.gcnArch.to_string(), arch[3..]);
        assert_eq!(
            (old.totalGlobalMem, old.clockRate, old.gcnArchName),
            (new.totalGlobalMem, new.clockRate, new.gcnArchName)
        );
    }
}

#[test]
fn attributes_are_the_fields_of_the_properties() {
    let sim = machine();
    let (p, _) = properties(&sim, 0);
    for (asked, field) in [
        (hipDeviceAttributeClockRate, p.clockRate),
        (hipDeviceAttributeMemoryBusWidth, p.memoryBusWidth),
        (hipDeviceAttributeMaxGridDimY, p.maxGridSize[1]),
        (
            hipDeviceAttributeSharedMemPerBlockOptin,
            p.sharedMemPerBlockOptin as i32,
        ),
        (hipDeviceAttributeMaxRegistersPerBlock, p.regsPerBlock),
        (hipDeviceAttributeCooperativeLaunch, p.cooperativeLaunch),
        (hipDeviceAttributeManagedMemory, p.managedMemory),
        (hipDeviceAttributeHostNativeAtomicSupported, 1),
        (hipDeviceAttributeMaxPitch, p.memPitch as i32),
        (hipDeviceAttributeTotalGlobalMem, i32::MAX),
        (hipDeviceAttributeWallClockRate, 100_000),
    ] {
        assert_eq!(attribute(&sim, asked), field, "{asked}");
    }
    // HIP gives these numbers to nothing.
    for unknown in [64, 86, 92, 9999, 10_001, 20_000] {
        let mut value = -1;
        answers!(
            hipErrorInvalidValue,
            sim.hipDeviceGetAttribute(&raw mut value, unknown, 0)
        );
    }
    // Two attributes answer an address.
    let mut address = u64::MAX;
    answers!(
        hipSuccess,
        sim.hipDeviceGetAttribute((&raw mut address).cast(), hipDeviceAttributeHdpMemFlushCntl, 0)
    );
    assert_eq!(address, 0);
}

#[test]
fn a_device_is_found_by_its_address_and_by_what_it_has() {
    let sim = SimHost::new(SimConfig::with_cards(2));
    let mut device = -1;
    let found = &raw mut device;
    answers!(hipSuccess, sim.hipDeviceGetByPCIBusId(found, c"0000:04:00.0".as_ptr()));
    assert_eq!(device, 1);
    for wrong in [c"0000:09:00.0", c"0000:04:00.1", c"04", c"", c"zz:zz:zz.z"] {
        answers!(hipErrorInvalidValue, sim.hipDeviceGetByPCIBusId(found, wrong.as_ptr()));
    }
    answers!(
        hipErrorInvalidValue,
        sim.hipDeviceGetByPCIBusId(null_mut(), c"0000:04:00.0".as_ptr())
    );
    let mut wanted = hipDeviceProp_tR0600([0; 1472]);
    answers!(hipSuccess, sim.hipChooseDeviceR0600(found, &raw const wanted));
    assert_eq!(device, 0);
    let mut fields = DeviceProperties6::from(&wanted);
    (fields.major, fields.totalGlobalMem) = (11, 1 << 30);
    wanted = (&fields).into();
    answers!(hipSuccess, sim.hipChooseDeviceR0600(found, &raw const wanted));
    assert_eq!(device, 0);
    let mut numbers = [hipUUID { bytes: [0; 16] }; 2];
    for (device, to) in numbers.iter_mut().enumerate() {
        answers!(hipSuccess, sim.hipDeviceGetUuid(to, device as i32));
        assert!(to.bytes.iter().all(|byte| (*byte as u8).is_ascii_hexdigit()));
    }
    assert_ne!(numbers[0].bytes, numbers[1].bytes);
    let mut value = 9;
    answers!(
        hipSuccess,
        sim.hipDeviceGetP2PAttribute(&raw mut value, hipDevP2PAttrAccessSupported, 0, 1)
    );
    assert_eq!(value, 0);
    answers!(
        hipErrorInvalidDevice,
        sim.hipDeviceGetP2PAttribute(&raw mut value, 0, 0, 0)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipDeviceGetP2PAttribute(&raw mut value, 4, 0, 1)
    );
}

#[test]
fn a_thread_has_a_stack_of_contexts() {
    let sim = SimHost::new(SimConfig::with_cards(2));
    let (mut first, mut second, mut found) = (null_mut(), null_mut(), null_mut());
    answers!(hipErrorInvalidContext, sim.hipCtxPopCurrent(&raw mut found));
    answers!(hipSuccess, sim.hipDevicePrimaryCtxRetain(&raw mut first, 0));
    answers!(hipErrorInvalidValue, sim.hipCtxCreate(&raw mut second, 0, 7));
    answers!(hipSuccess, sim.hipCtxCreate(&raw mut second, 0, 1));
    assert_ne!(first, second);
    answers!(hipSuccess, sim.hipCtxPushCurrent(second));
    let mut device = -1;
    answers!(hipSuccess, sim.hipCtxGetDevice(&raw mut device));
    assert_eq!(device, 1);
    answers!(hipSuccess, sim.hipCtxPopCurrent(&raw mut found));
    assert_eq!(found, second);
    answers!(hipSuccess, sim.hipCtxSetCurrent(first));
    answers!(hipSuccess, sim.hipCtxGetCurrent(&raw mut found));
    assert_eq!(found, first);
    let wrong: hipCtx_t = std::ptr::without_provenance_mut(0x1000);
    answers!(hipErrorInvalidContext, sim.hipCtxPushCurrent(wrong));
    answers!(hipErrorInvalidContext, sim.hipCtxSetCurrent(wrong));
    answers!(hipErrorInvalidContext, sim.hipCtxDestroy(wrong));
    answers!(hipErrorInvalidValue, sim.hipCtxDestroy(null_mut()));
    answers!(hipErrorContextAlreadyInUse, sim.hipDevicePrimaryCtxSetFlags(0, 0));
    let mut active = 9;
    answers!(
        hipSuccess,
        sim.hipDevicePrimaryCtxGetState(0, null_mut(), &raw mut active)
    );
    assert_eq!(active, 0);
    malloc(&sim, 8);
    answers!(
        hipSuccess,
        sim.hipDevicePrimaryCtxGetState(0, null_mut(), &raw mut active)
    );
    assert_eq!(active, 1);
}

#[test]
fn settings_that_amds_cards_do_not_have_are_accepted_and_wrong_ones_refused() {
    let sim = machine();
    answers!(hipSuccess, sim.hipDeviceSetCacheConfig(hipFuncCachePreferL1));
    answers!(hipErrorInvalidValue, sim.hipDeviceSetCacheConfig(4));
    answers!(hipErrorInvalidValue, sim.hipDeviceSetSharedMemConfig(3));
    answers!(hipErrorInvalidValue, sim.hipDeviceGetCacheConfig(null_mut()));
    answers!(hipErrorInvalidDeviceFunction, sim.hipFuncSetCacheConfig(null_mut(), 0));
    answers!(hipErrorNotSupported, sim.hipProfilerStart());
    let (mut event, mut handle) = (null_mut(), hipIpcEventHandle_t { reserved: [0; 64] });
    let flags = hipEventInterprocess | hipEventDisableTiming;
    answers!(hipSuccess, sim.hipEventCreateWithFlags(&raw mut event, flags));
    answers!(hipSuccess, sim.hipIpcGetEventHandle(&raw mut handle, event));
    answers!(
        hipErrorInvalidContext,
        sim.hipIpcOpenEventHandle(&raw mut event, handle)
    );
    let plain = crate::support::event(&sim);
    answers!(
        hipErrorInvalidConfiguration,
        sim.hipIpcGetEventHandle(&raw mut handle, plain)
    );
    answers!(hipErrorInvalidValue, sim.hipIpcCloseMemHandle(malloc(&sim, 8)));
    clean(&sim);
}

#[test]
fn several_attributes_of_a_pointer_at_once() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    let (mut start, mut size, mut kind) = (null_mut::<c_char>(), 0u32, 0u32);
    let mut asked = [
        HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        HIP_POINTER_ATTRIBUTE_RANGE_SIZE,
        HIP_POINTER_ATTRIBUTE_MEMORY_TYPE,
    ];
    let mut data = [(&raw mut start).cast(), (&raw mut size).cast(), (&raw mut kind).cast()];
    let (asked, data) = (asked.as_mut_ptr(), data.as_mut_ptr());
    answers!(hipSuccess, sim.hipDrvPointerGetAttributes(3, asked, data, at(ptr, 8)));
    assert_eq!((start.cast(), size, kind), (ptr, N as u32, hipMemoryTypeDevice));
    let mut local = 0u64;
    answers!(
        hipSuccess,
        sim.hipDrvPointerGetAttributes(3, asked, data, (&raw mut local).cast())
    );
    assert_eq!((start.is_null(), size, kind), (true, 0, 0));
    answers!(
        hipErrorInvalidValue,
        sim.hipDrvPointerGetAttributes(0, asked, data, ptr)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipDrvPointerGetAttributes(3, asked, data, null_mut())
    );
}

#[test]
fn the_last_prefetch_is_known_from_its_call_on() {
    let sim = machine();
    let (mut ptr, mut value) = (null_mut(), -9i32);
    answers!(hipSuccess, sim.hipMallocManaged(&raw mut ptr, N, hipMemAttachGlobal));
    let data = (&raw mut value).cast();
    let attribute = hipMemRangeAttributeLastPrefetchLocation;
    answers!(hipSuccess, sim.hipMemRangeGetAttribute(data, 4, attribute, ptr, N));
    assert_eq!(value, hipInvalidDeviceId);
    for device in [hipCpuDeviceId, 0] {
        answers!(hipSuccess, sim.hipMemPrefetchAsync(ptr, N, device, null_mut()));
        answers!(hipSuccess, sim.hipMemRangeGetAttribute(data, 4, attribute, ptr, N));
        assert_eq!(value, device);
    }
}

#[test]
fn advice_is_for_memory_that_the_host_reaches() {
    let sim = machine();
    let ptr = malloc(&sim, N);
    answers!(
        hipErrorInvalidValue,
        sim.hipMemAdvise(ptr, N, hipMemAdviseSetReadMostly, 0)
    );
}

#[test]
fn flags_that_change_no_result_are_taken() {
    let (sim, mut ptr, mut memory) = (machine(), null_mut(), [0u8; 64]);
    answers!(hipSuccess, sim.hipExtMallocWithFlags(&raw mut ptr, 8, 0x3));
    let host = memory.as_mut_ptr().cast();
    answers!(hipSuccess, sim.hipHostRegister(host, 64, 0x8 | hipHostRegisterPortable));
    answers!(hipSuccess, sim.hipHostUnregister(host));
}

#[test]
fn advice_is_kept_and_answered() {
    let sim = machine();
    let (host, mut value) = (pinned(&sim, N), -9i32);
    let data = (&raw mut value).cast();
    answers!(
        hipSuccess,
        sim.hipMemAdvise(host.cast(), N, hipMemAdviseSetReadMostly, 0)
    );
    answers!(
        hipSuccess,
        sim.hipMemRangeGetAttribute(data, 4, hipMemRangeAttributeReadMostly, host.cast(), N)
    );
    assert_eq!(value, 1);
    answers!(
        hipSuccess,
        sim.hipMemAdvise(host.cast(), N, hipMemAdviseSetPreferredLocation, hipCpuDeviceId)
    );
    answers!(
        hipSuccess,
        sim.hipMemRangeGetAttribute(data, 4, hipMemRangeAttributePreferredLocation, host.cast(), N)
    );
    assert_eq!(value, hipCpuDeviceId);
    answers!(
        hipErrorInvalidValue,
        sim.hipMemAdvise(host.cast(), N + 1, hipMemAdviseSetReadMostly, 0)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMemAdvise(null_mut(), N, hipMemAdviseSetReadMostly, 0)
    );
    answers!(
        hipErrorInvalidDevice,
        sim.hipMemAdvise(host.cast(), N, hipMemAdviseSetAccessedBy, 5)
    );
    answers!(hipErrorInvalidValue, sim.hipMemAdvise(host.cast(), N, 77, 0));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemRangeGetAttribute(data, 3, hipMemRangeAttributeReadMostly, host.cast(), N)
    );
}

#[test]
fn the_block_that_fills_a_processor_best() {
    const PROBE: &[u8] = include_bytes!("../kernels/probe-gfx1100.co");
    let (sim, mut module, mut function) = (machine(), null_mut(), null_mut());
    answers!(
        hipSuccess,
        sim.hipModuleLoadData(&raw mut module, PROBE.as_ptr().cast())
    );
    answers!(
        hipSuccess,
        sim.hipModuleGetFunction(&raw mut function, module, c"nothing".as_ptr())
    );
    let (mut grid, mut block, mut fit) = (0, 0, 0);
    let (g, b) = (&raw mut grid, &raw mut block);
    answers!(
        hipSuccess,
        sim.hipModuleOccupancyMaxPotentialBlockSize(g, b, function, 0, 0)
    );
    assert!(block % 32 == 0 && block >= 256, "{block}");
    answers!(
        hipSuccess,
        sim.hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(&raw mut fit, function, block, 0)
    );
    assert_eq!(grid, fit * 42);
    answers!(
        hipSuccess,
        sim.hipModuleOccupancyMaxPotentialBlockSize(g, b, function, 0, 64)
    );
    assert!(block <= 64);
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleOccupancyMaxPotentialBlockSize(g, b, null_mut(), 0, 0)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleOccupancyMaxPotentialBlockSize(g, b, function, 0, -1)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipModuleOccupancyMaxPotentialBlockSizeWithFlags(g, b, function, 0, 0, 2)
    );
}
