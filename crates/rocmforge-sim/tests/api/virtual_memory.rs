//! Virtual memory.

use crate::support::{answers, call, machine};
use rocmforge_hip_sys::*;
use rocmforge_sim::{ReportKind, SimHost};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

const PAGE: usize = 4096;

/// What the card has.
const PROPERTIES: &hipMemAllocationProp = &hipMemAllocationProp {
    r#type: hipMemAllocationTypePinned,
    requestedHandleType: hipMemHandleTypeNone,
    location: hipMemLocation {
        r#type: hipMemLocationTypeDevice,
        id: 0,
    },
    win32HandleMetaData: null_mut(),
    allocFlags: [0; 4],
};

fn access(flags: hipMemAccessFlags) -> hipMemAccessDesc {
    hipMemAccessDesc {
        location: PROPERTIES.location,
        flags,
    }
}

fn reserve(sim: &SimHost, size: usize) -> *mut c_void {
    let mut found = null_mut();
    // SAFETY: the pointer is a local's.
    let status = unsafe { sim.hipMemAddressReserve(&raw mut found, size, 0, null_mut(), 0) };
    assert_eq!(status, hipSuccess);
    found
}

fn create(sim: &SimHost, size: usize) -> Result<hipMemGenericAllocationHandle_t, hipError_t> {
    let mut found = null_mut();
    // SAFETY: the pointers are locals'.
    let status = unsafe { sim.hipMemCreate(&raw mut found, size, std::ptr::from_ref(PROPERTIES), 0) };
    if status.is_success() { Ok(found) } else { Err(status) }
}

fn set_access(sim: &SimHost, at: *mut c_void, size: usize, flags: hipMemAccessFlags) -> hipError_t {
    let wanted = access(flags);
    // SAFETY: the pointer is a local's.
    unsafe { sim.hipMemSetAccess(at, size, &raw const wanted, 1) }
}

fn map(sim: &SimHost, at: *mut c_void, size: usize, handle: hipMemGenericAllocationHandle_t) -> hipError_t {
    // SAFETY: the arguments are checked by the machine.
    unsafe { sim.hipMemMap(at, size, 0, handle, 0) }
}

fn unmap(sim: &SimHost, at: *mut c_void, size: usize) -> hipError_t {
    // SAFETY: the arguments are checked by the machine.
    unsafe { sim.hipMemUnmap(at, size) }
}

fn write(sim: &SimHost, at: *mut c_void, bytes: &[u8]) -> hipError_t {
    // SAFETY: the source has as many bytes.
    unsafe { sim.hipMemcpy(at, bytes.as_ptr().cast(), bytes.len(), hipMemcpyHostToDevice) }
}

fn read(sim: &SimHost, at: *mut c_void, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    // SAFETY: the destination has as many bytes.
    let status = unsafe { sim.hipMemcpy(bytes.as_mut_ptr().cast(), at, size, hipMemcpyDeviceToHost) };
    assert_eq!(status, hipSuccess);
    bytes
}

fn free_bytes(sim: &SimHost) -> u64 {
    sim.allocation_stats(0).charged_bytes
}

#[test]
fn memory_is_reached_when_it_is_mapped_and_accessible() {
    let sim = machine();
    let range = reserve(&sim, 4 * PAGE);
    assert_eq!(free_bytes(&sim), 0, "addresses cost nothing");
    let (first, second) = (create(&sim, PAGE).unwrap(), create(&sim, 2 * PAGE).unwrap());
    assert_eq!(free_bytes(&sim), 3 * PAGE as u64);
    assert_eq!(map(&sim, range, PAGE, first), hipSuccess);
    assert_eq!(map(&sim, range.wrapping_byte_add(PAGE), 2 * PAGE, second), hipSuccess);
    assert_eq!(write(&sim, range, &[1]), hipErrorInvalidValue, "mapped, not accessible");
    sim.take_reports();
    let bytes: Vec<u8> = (0..3 * PAGE).map(|at| at as u8).collect();
    assert_eq!(
        set_access(&sim, range, 3 * PAGE, hipMemAccessFlagsProtReadWrite),
        hipSuccess
    );
    assert_eq!(
        write(&sim, range, &bytes),
        hipSuccess,
        "a copy goes across two mappings"
    );
    assert_eq!(read(&sim, range, 3 * PAGE), bytes);
    assert!(sim.take_reports().is_empty());
    // The last page has nothing.
    assert_ne!(
        write(&sim, range.wrapping_byte_add(2 * PAGE), &[0; 2 * PAGE]),
        hipSuccess
    );
    assert!(
        sim.take_reports()
            .iter()
            .any(|report| report.kind == ReportKind::OutOfBounds)
    );
}

#[test]
fn physical_memory_keeps_its_contents_at_another_address() {
    let sim = machine();
    let (range, other) = (reserve(&sim, PAGE), reserve(&sim, PAGE));
    let handle = create(&sim, PAGE).unwrap();
    let bytes: Vec<u8> = (0..100).collect();
    assert_eq!(map(&sim, range, PAGE, handle), hipSuccess);
    assert_eq!(
        map(&sim, other, PAGE, handle),
        hipErrorNotSupported,
        "one place at a time"
    );
    assert_eq!(
        set_access(&sim, range, PAGE, hipMemAccessFlagsProtReadWrite),
        hipSuccess
    );
    assert_eq!(write(&sim, range, &bytes), hipSuccess);
    assert_eq!(unmap(&sim, range, PAGE), hipSuccess);
    assert_eq!(map(&sim, other, PAGE, handle), hipSuccess);
    assert_eq!(
        set_access(&sim, other, PAGE, hipMemAccessFlagsProtReadWrite),
        hipSuccess
    );
    assert_eq!(read(&sim, other, 100), bytes);
    assert!(sim.reports().is_empty(), "{:?}", sim.reports());
    assert_ne!(write(&sim, range, &[1]), hipSuccess, "nothing is there any more");
}

#[test]
fn physical_memory_lives_until_it_is_released_and_unmapped() {
    let sim = machine();
    let range = reserve(&sim, PAGE);
    let handle = create(&sim, PAGE).unwrap();
    assert_eq!(map(&sim, range, PAGE, handle), hipSuccess);
    answers!(hipSuccess, sim.hipMemRelease(handle));
    assert_eq!(free_bytes(&sim), PAGE as u64, "it is mapped");
    let mut again = null_mut();
    assert_eq!(
        // SAFETY: the pointer is a local's.
        unsafe { sim.hipMemRetainAllocationHandle(&raw mut again, range) },
        hipSuccess
    );
    assert_eq!(again, handle);
    let mut properties = *PROPERTIES;
    assert_eq!(
        // SAFETY: the pointer is a local's.
        unsafe { sim.hipMemGetAllocationPropertiesFromHandle(&raw mut properties, again) },
        hipSuccess
    );
    assert_eq!(properties.r#type, hipMemAllocationTypePinned);
    // It is mapped.
    answers!(hipErrorInvalidValue, sim.hipMemAddressFree(range, PAGE));
    assert_eq!(unmap(&sim, range, PAGE), hipSuccess);
    assert_eq!(free_bytes(&sim), PAGE as u64, "it is held");
    assert_eq!(sim.leaks().len(), 1);
    answers!(hipSuccess, sim.hipMemRelease(handle));
    assert_eq!(free_bytes(&sim), 0);
    answers!(hipSuccess, sim.hipMemAddressFree(range, PAGE));
    assert!(sim.leaks().is_empty());
    assert!(sim.reports().is_empty());
    answers!(hipErrorInvalidValue, sim.hipMemRelease(handle));
    assert_eq!(sim.reports().len(), 1, "a stale handle");
}

#[test]
fn physical_memory_counts_against_the_card() {
    let sim = machine();
    let (mut free, mut total) = (0, 0);
    answers!(hipSuccess, sim.hipMemGetInfo(&raw mut free, &raw mut total));
    let most = free / PAGE * PAGE;
    let handle = create(&sim, most).unwrap();
    assert_eq!(create(&sim, 4 << 20).unwrap_err(), hipErrorOutOfMemory);
    let mut pointer = null_mut();
    answers!(hipErrorOutOfMemory, sim.hipMalloc(&raw mut pointer, 4 << 20));
    answers!(hipSuccess, sim.hipMemRelease(handle));
    answers!(hipSuccess, sim.hipMalloc(&raw mut pointer, 4 << 20));
}

#[test]
fn access_is_what_was_set_last() {
    let sim = machine();
    let range = reserve(&sim, PAGE);
    let asked = || {
        let mut flags = 77;
        // SAFETY: the pointers are locals'.
        let status = unsafe { sim.hipMemGetAccess(&raw mut flags, std::ptr::from_ref(&PROPERTIES.location), range) };
        status.is_success().then_some(flags as hipMemAccessFlags).ok_or(status)
    };
    assert_eq!(asked(), Err(hipErrorInvalidValue), "nothing is mapped");
    let handle = create(&sim, PAGE).unwrap();
    assert_eq!(map(&sim, range, PAGE, handle), hipSuccess);
    for flags in [
        hipMemAccessFlagsProtNone,
        hipMemAccessFlagsProtReadWrite,
        hipMemAccessFlagsProtNone,
        hipMemAccessFlagsProtReadWrite,
    ] {
        assert_eq!(set_access(&sim, range, PAGE, flags), hipSuccess);
        assert_eq!(asked(), Ok(flags));
        let wrote = write(&sim, range, &[1]);
        assert_eq!(wrote.is_success(), flags == hipMemAccessFlagsProtReadWrite);
    }
    assert_eq!(read(&sim, range, 1), [1]);
    assert_eq!(
        set_access(&sim, range, PAGE, hipMemAccessFlagsProtRead),
        hipErrorNotSupported
    );
    assert_eq!(set_access(&sim, range, PAGE, 9), hipErrorInvalidValue);
    assert_eq!(
        set_access(&sim, range, 2 * PAGE, hipMemAccessFlagsProtNone),
        hipErrorInvalidValue
    );
    sim.take_reports();
    answers!(hipErrorInvalidValue, sim.hipFree(range));
    assert_eq!(sim.take_reports()[0].kind, ReportKind::InvalidFree);
}

#[test]
fn bad_arguments_are_refused() {
    let sim = machine();
    let range = reserve(&sim, 2 * PAGE);
    let handle = create(&sim, PAGE).unwrap();
    answers!(hipErrorInvalidValue, sim.hipMemAddressFree(range, PAGE));
    answers!(hipErrorInvalidValue, sim.hipMemAddressFree(null_mut(), PAGE));
    answers!(hipErrorInvalidValue, sim.hipMemMap(range, PAGE, PAGE, handle, 0));
    answers!(hipErrorInvalidValue, sim.hipMemMap(range, PAGE, 0, handle, 1));
    answers!(hipErrorInvalidValue, sim.hipMemMap(range, 0, 0, handle, 0));
    answers!(hipErrorInvalidValue, sim.hipMemMap(range, PAGE, 0, null_mut(), 0));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemMap(range.wrapping_byte_add(2 * PAGE), PAGE, 0, handle, 0)
    );
    answers!(hipErrorInvalidValue, sim.hipMemMap(range, 2 * PAGE, 0, handle, 0));
    answers!(hipErrorInvalidValue, sim.hipMemUnmap(range, PAGE));
    answers!(hipErrorInvalidValue, sim.hipMemSetAccess(range, PAGE, null(), 1));
    let mut granularity = 0;
    let minimum = hipMemAllocationGranularityMinimum;
    answers!(
        hipErrorInvalidValue,
        sim.hipMemGetAllocationGranularity(&raw mut granularity, null(), minimum)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMemGetAllocationGranularity(&raw mut granularity, std::ptr::from_ref(PROPERTIES), 2)
    );
    let mut other = *PROPERTIES;
    other.location.id = 1;
    answers!(
        hipErrorInvalidValue,
        sim.hipMemGetAllocationGranularity(&raw mut granularity, &raw const other, minimum)
    );
    answers!(
        hipSuccess,
        sim.hipMemGetAllocationGranularity(&raw mut granularity, std::ptr::from_ref(PROPERTIES), minimum)
    );
    assert_eq!(granularity, PAGE);
    let mut retained = null_mut();
    answers!(
        hipErrorInvalidValue,
        sim.hipMemRetainAllocationHandle(&raw mut retained, range)
    );
    let mut shared = 0;
    let shared = (&raw mut shared).cast();
    answers!(
        hipErrorNotSupported,
        sim.hipMemExportToShareableHandle(shared, handle, 1, 0)
    );
    answers!(
        hipErrorNotSupported,
        sim.hipMemImportFromShareableHandle(&raw mut retained, shared, 1)
    );
}

#[test]
fn a_reset_takes_everything() {
    let sim = machine();
    let range = reserve(&sim, PAGE);
    let handle = create(&sim, PAGE).unwrap();
    assert_eq!(map(&sim, range, PAGE, handle), hipSuccess);
    assert_eq!(
        set_access(&sim, range, PAGE, hipMemAccessFlagsProtReadWrite),
        hipSuccess
    );
    answers!(hipSuccess, sim.hipDeviceReset());
    assert_eq!(free_bytes(&sim), 0);
    assert!(sim.leaks().is_empty());
    assert_ne!(write(&sim, range, &[1]), hipSuccess);
}
