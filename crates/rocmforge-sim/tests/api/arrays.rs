//! Arrays, and copies and fills in two and three dimensions.

use crate::support::*;
use hip::*;
use rocmforge_sim::SimHost;
use std::ffi::c_void;
use std::ptr::null_mut;

fn extent(width: usize, height: usize, depth: usize) -> hipExtent {
    hipExtent { width, height, depth }
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + 1) as u8).collect()
}

fn array(sim: &SimHost, width: usize, height: usize, depth: usize) -> hipArray_t {
    let desc = sim.hipCreateChannelDesc(16, 16, 0, 0, hipChannelFormatKindSigned);
    let mut made = null_mut();
    answers!(
        hipSuccess,
        sim.hipMalloc3DArray(&raw mut made, &raw const desc, extent(width, height, depth), 0)
    );
    made
}

fn linear(ptr: *mut c_void, pitch: usize, rows: usize) -> hipPitchedPtr {
    hipPitchedPtr {
        ptr,
        pitch,
        xsize: pitch,
        ysize: rows,
    }
}

const NOWHERE: hipPos = hipPos { x: 0, y: 0, z: 0 };

fn nothing() -> hipMemcpy3DParms {
    hipMemcpy3DParms {
        srcArray: null_mut(),
        srcPos: NOWHERE,
        srcPtr: linear(null_mut(), 0, 0),
        dstArray: null_mut(),
        dstPos: NOWHERE,
        dstPtr: linear(null_mut(), 0, 0),
        extent: extent(0, 0, 0),
        kind: hipMemcpyDefault,
    }
}

#[test]
fn bytes_go_to_an_array_and_come_back() {
    let sim = machine();
    // 4 bytes an element.
    let array = array(&sim, 10, 6, 0);
    let (source, mut back) = (bytes(40 * 6), vec![0u8; 40 * 6]);
    answers!(
        hipSuccess,
        sim.hipMemcpy2DToArray(array, 0, 0, source.as_ptr().cast(), 40, 40, 6, hipMemcpyHostToDevice)
    );
    answers!(
        hipSuccess,
        sim.hipMemcpy2DFromArray(back.as_mut_ptr().cast(), 40, array, 0, 0, 40, 6, hipMemcpyDeviceToHost)
    );
    assert_eq!(back, source);
    // A part: two rows of 8 bytes from the third element of the second row on.
    let mut part = [0u8; 16];
    answers!(
        hipSuccess,
        sim.hipMemcpy2DFromArray(part.as_mut_ptr().cast(), 8, array, 8, 1, 8, 2, hipMemcpyDeviceToHost)
    );
    assert_eq!((&part[..8], &part[8..]), (&source[48..56], &source[88..96]));
    let mut row = [0u8; 12];
    answers!(hipSuccess, sim.hipMemcpyAtoH(row.as_mut_ptr().cast(), array, 4, 12));
    assert_eq!(row, source[4..16]);
    let (mut desc, mut size, mut flags) = (sim.hipCreateChannelDesc(0, 0, 0, 0, 3), extent(0, 0, 0), 9);
    answers!(
        hipSuccess,
        sim.hipArrayGetInfo(&raw mut desc, &raw mut size, &raw mut flags, array)
    );
    assert_eq!((desc.x, desc.y, desc.z, size, flags), (16, 16, 0, extent(10, 6, 0), 0));
    answers!(hipSuccess, sim.hipFreeArray(array));
    assert_eq!(sim.allocation_stats(0).live, 0);
    clean(&sim);
}

#[test]
fn arrays_refuse_what_does_not_fit() {
    let sim = machine();
    let (array, source) = (array(&sim, 10, 6, 0), bytes(400));
    let from = source.as_ptr().cast();
    let kind = hipMemcpyHostToDevice;
    answers!(
        hipErrorInvalidValue,
        sim.hipMemcpy2DToArray(array, 4, 0, from, 40, 40, 6, kind)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipMemcpy2DToArray(array, 0, 1, from, 40, 40, 6, kind)
    );
    answers!(
        hipErrorInvalidPitchValue,
        sim.hipMemcpy2DToArray(array, 0, 0, from, 39, 40, 6, kind)
    );
    answers!(
        hipErrorInvalidHandle,
        sim.hipMemcpy2DToArray(null_mut(), 0, 0, from, 40, 40, 6, kind)
    );
    answers!(
        hipErrorInvalidMemcpyDirection,
        sim.hipMemcpy2DToArray(array, 0, 0, from, 40, 40, 6, 9)
    );
    let wrong = usize::MAX;
    answers!(
        hipErrorInvalidValue,
        sim.hipMemcpy2DToArray(array, wrong, wrong, from, 40, 40, 6, kind)
    );
    let mut made = null_mut();
    let desc = |x, y, f| sim.hipCreateChannelDesc(x, y, 0, 0, f);
    for (desc, size, flags) in [
        (desc(0, 0, 0), (4, 4), 0),
        (desc(16, 8, 0), (4, 4), 0),
        (desc(64, 0, 0), (4, 4), 0),
        (desc(32, 0, 2), (0, 4), 0),
        (desc(32, 0, 2), (1 << 20, 4), 0),
        (desc(32, 0, 2), (4, 4), hipArrayCubemap),
    ] {
        answers!(
            hipErrorInvalidValue,
            sim.hipMallocArray(&raw mut made, &raw const desc, size.0, size.1, flags)
        );
    }
    assert!(made.is_null());
    answers!(
        hipErrorInvalidHandle,
        sim.hipArrayGetInfo(null_mut(), null_mut(), null_mut(), null_mut())
    );
}

#[test]
fn boxes_are_copied_between_memory_and_arrays() {
    let sim = machine();
    let [width, height, depth] = [24, 5, 3];
    let source = bytes(width * height * depth);
    let array = array(&sim, width / 4, height, depth);
    let mut there = nothing();
    there.srcPtr = linear(source.as_ptr().cast_mut().cast(), width, height);
    there.dstArray = array;
    // In elements of the array.
    there.extent = extent(width / 4, height, depth);
    there.kind = hipMemcpyHostToDevice;
    answers!(hipSuccess, sim.hipMemcpy3D(&raw const there));
    let mut pitched = linear(null_mut(), 0, 0);
    answers!(
        hipSuccess,
        sim.hipMalloc3D(&raw mut pitched, extent(width, height, depth))
    );
    let mut across = nothing();
    (across.srcArray, across.dstPtr, across.extent) = (array, pitched, extent(width / 4, height, depth));
    across.kind = hipMemcpyDeviceToDevice;
    answers!(hipSuccess, sim.hipMemcpy3D(&raw const across));
    let mut back = vec![0u8; source.len()];
    let mut home = nothing();
    home.srcPtr = pitched;
    home.dstPtr = linear(back.as_mut_ptr().cast(), width, height);
    home.extent = extent(width, height, depth);
    home.kind = hipMemcpyDeviceToHost;
    answers!(hipSuccess, sim.hipMemcpy3DAsync(&raw const home, null_mut()));
    answers!(hipSuccess, sim.hipDeviceSynchronize());
    assert_eq!(back, source);
    clean(&sim);
    // Both an array and memory, or neither, or rows that reach into each other.
    let mut both = home;
    both.srcArray = array;
    answers!(hipErrorInvalidValue, sim.hipMemcpy3D(&raw const both));
    answers!(hipErrorInvalidValue, sim.hipMemcpy3D(&nothing()));
    answers!(hipErrorInvalidValue, sim.hipMemcpy3D(null_mut()));
    let mut wide = home;
    wide.dstPtr.pitch = width - 1;
    answers!(hipErrorInvalidPitchValue, sim.hipMemcpy3D(&raw const wide));
}

#[test]
fn fills_in_three_dimensions_leave_the_rest_alone() {
    let sim = machine();
    let mut pitched = linear(null_mut(), 0, 0);
    answers!(hipSuccess, sim.hipMalloc3D(&raw mut pitched, extent(20, 3, 2)));
    let all = pitched.pitch * 6;
    answers!(hipSuccess, sim.hipMemset(pitched.ptr, 1, all));
    answers!(hipSuccess, sim.hipMemset3D(pitched, 9, extent(10, 2, 2)));
    let found = download(&sim, pitched.ptr, all);
    for (at, byte) in found.iter().enumerate() {
        let (x, y) = (at % pitched.pitch, at / pitched.pitch % 3);
        assert_eq!(*byte, if x < 10 && y < 2 { 9 } else { 1 }, "{at}");
    }
    answers!(hipSuccess, sim.hipMemset3D(pitched, 9, extent(10, 0, 2)));
    answers!(
        hipErrorInvalidValue,
        sim.hipMemset3D(pitched, 9, extent(pitched.pitch + 1, 2, 2))
    );
    let mut lost = pitched;
    lost.ptr = null_mut();
    answers!(hipErrorInvalidValue, sim.hipMemset3D(lost, 9, extent(10, 2, 2)));
    clean(&sim);
}

#[test]
fn a_copy_as_the_driver_describes_it() {
    let sim = machine();
    let (source, dst) = (bytes(64 * 4), malloc(&sim, 64 * 4));
    let copy = hip_Memcpy2D {
        srcXInBytes: 8,
        srcY: 1,
        srcMemoryType: hipMemoryTypeHost,
        srcHost: source.as_ptr().cast(),
        srcDevice: null_mut(),
        srcArray: null_mut(),
        srcPitch: 64,
        dstXInBytes: 0,
        dstY: 0,
        dstMemoryType: hipMemoryTypeDevice,
        dstHost: null_mut(),
        dstDevice: dst,
        dstArray: null_mut(),
        dstPitch: 16,
        WidthInBytes: 16,
        Height: 3,
    };
    answers!(hipSuccess, sim.hipMemcpyParam2D(&raw const copy));
    let found = download(&sim, dst, 48);
    for row in 0..3 {
        let start = 64 * (row + 1) + 8;
        assert_eq!(found[16 * row..16 * (row + 1)], source[start..start + 16]);
    }
    answers!(hipErrorInvalidValue, sim.hipMemcpyParam2D(null_mut()));
    let mut nowhere = copy;
    nowhere.srcMemoryType = hipMemoryTypeArray;
    answers!(hipErrorInvalidValue, sim.hipDrvMemcpy2DUnaligned(&raw const nowhere));
    let mut odd = copy;
    odd.srcMemoryType = 77;
    answers!(hipErrorInvalidValue, sim.hipMemcpyParam2D(&raw const odd));
    let (mut ptr, mut pitch) = (null_mut(), 0);
    answers!(
        hipErrorInvalidValue,
        sim.hipMemAllocPitch(&raw mut ptr, &raw mut pitch, 8, 8, 3)
    );
    answers!(hipSuccess, sim.hipMemAllocPitch(&raw mut ptr, &raw mut pitch, 8, 8, 4));
    assert_eq!(pitch, 256);
    clean(&sim);
}
