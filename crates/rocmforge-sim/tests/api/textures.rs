//! Texture and surface objects: their descriptors, and what is refused.

use crate::support::*;
use hip::*;
use rocmforge_sim::{ReportKind, SimHost};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

static HOW: hipTextureDesc = hipTextureDesc {
    addressMode: [hipAddressModeClamp; 3],
    filterMode: hipFilterModePoint,
    readMode: hipReadModeElementType,
    sRGB: 0,
    borderColor: [0.0; 4],
    normalizedCoords: 0,
    maxAnisotropy: 0,
    mipmapFilterMode: hipFilterModePoint,
    mipmapLevelBias: 0.0,
    minMipmapLevelClamp: 0.0,
    maxMipmapLevelClamp: 0.0,
};

fn float(sim: &SimHost) -> hipChannelFormatDesc {
    sim.hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat)
}

fn array(sim: &SimHost, [width, height, depth]: [usize; 3], flags: u32) -> hipArray_t {
    let (desc, mut made) = (float(sim), null_mut());
    let extent = hipExtent { width, height, depth };
    answers!(
        hipSuccess,
        sim.hipMalloc3DArray(&raw mut made, &raw const desc, extent, flags)
    );
    made
}

fn memory(sim: &SimHost, size: usize) -> *mut c_void {
    let mut made = null_mut();
    answers!(hipSuccess, sim.hipMalloc(&raw mut made, size));
    made
}

fn of_array(array: hipArray_t) -> hipResourceDesc {
    hipResourceDesc {
        resType: hipResourceTypeArray,
        res: hipResource { array },
    }
}

fn of_linear(start: *mut c_void, desc: hipChannelFormatDesc, size: usize) -> hipResourceDesc {
    hipResourceDesc {
        resType: hipResourceTypeLinear,
        res: hipResource {
            linear: hipResourceLinear {
                devPtr: start,
                desc,
                sizeInBytes: size,
            },
        },
    }
}

fn of_rows(start: *mut c_void, desc: hipChannelFormatDesc, [width, height, pitch]: [usize; 3]) -> hipResourceDesc {
    hipResourceDesc {
        resType: hipResourceTypePitch2D,
        res: hipResource {
            pitch2D: hipResourcePitch2D {
                devPtr: start,
                desc,
                width,
                height,
                pitchInBytes: pitch,
            },
        },
    }
}

/// What `hipCreateTextureObject` answers; an object that it makes is destroyed.
fn created(sim: &SimHost, resource: &hipResourceDesc, how: &hipTextureDesc) -> hipError_t {
    let mut object = null_mut();
    // SAFETY: all pointers are valid or null.
    let status = unsafe { sim.hipCreateTextureObject(&raw mut object, resource, how, null()) };
    if status == hipSuccess {
        answers!(hipSuccess, sim.hipDestroyTextureObject(object));
    }
    status
}

#[test]
fn an_object_is_device_memory_with_descriptors() {
    let sim = machine();
    let array = array(&sim, [37, 11, 0], 0);
    let (resource, mut object) = (of_array(array), null_mut());
    let how = hipTextureDesc {
        addressMode: [hipAddressModeMirror, hipAddressModeBorder, hipAddressModeClamp],
        filterMode: hipFilterModeLinear,
        normalizedCoords: 1,
        ..HOW
    };
    answers!(
        hipSuccess,
        sim.hipCreateTextureObject(&raw mut object, &raw const resource, &raw const how, null())
    );
    let mut words = [0u32; 20];
    answers!(
        hipSuccess,
        sim.hipMemcpy(words.as_mut_ptr().cast(), object.cast(), 80, hipMemcpyDeviceToHost)
    );
    // Width and height less one, a type of two dimensions, x, 0, 0, 1, a pitch of 64; FLOAT and R of HSA, and the width.
    assert_eq!((words[1] >> 30, words[2]), (0, 9 | 10 << 14));
    assert_eq!(words[1] >> 20 & 0xff, 22);
    assert_eq!(words[3..8], [9 << 28 | 4 | 1 << 9, 63, 0, 0, 0]);
    assert_eq!(words[8..11], [15, 1, 37]);
    assert_eq!((words[12], words[14], words[15]), (1 | 6 << 3 | 2 << 6, 5 << 20, 0));
    let mut same = HOW;
    answers!(hipSuccess, sim.hipGetTextureObjectTextureDesc(&raw mut same, object));
    assert_eq!(same.addressMode, how.addressMode);
    let mut same = of_array(null_mut());
    answers!(hipSuccess, sim.hipGetTextureObjectResourceDesc(&raw mut same, object));
    // SAFETY: the member of its type.
    assert_eq!((same.resType, unsafe { same.res.array }), (hipResourceTypeArray, array));
    let mut view = hipResourceViewDesc {
        format: 9,
        width: 9,
        height: 9,
        depth: 9,
        firstMipmapLevel: 9,
        lastMipmapLevel: 9,
        firstLayer: 9,
        lastLayer: 9,
    };
    answers!(
        hipSuccess,
        sim.hipGetTextureObjectResourceViewDesc(&raw mut view, object)
    );
    assert_eq!((view.format, view.width), (hipResViewFormatNone, 0));
    answers!(hipSuccess, sim.hipDestroyTextureObject(object));
    answers!(hipSuccess, sim.hipDestroyTextureObject(null_mut()));
    answers!(hipSuccess, sim.hipFreeArray(array));
    assert_eq!(sim.allocation_stats(0).live, 0);
    clean(&sim);
}

#[test]
fn textures_refuse_what_does_not_fit() {
    let sim = machine();
    let (desc, memory) = (float(&sim), memory(&sim, 4096));
    let linear = |desc, size| created(&sim, &of_linear(memory, desc, size), &HOW);
    assert_eq!(linear(desc, 4096), hipSuccess);
    assert_eq!(linear(desc, 4097), hipErrorInvalidValue, "more than the allocation has");
    assert_eq!(linear(desc, 3), hipErrorInvalidValue, "no element");
    let odd = |x, y, z| sim.hipCreateChannelDesc(x, y, z, 0, hipChannelFormatKindUnsigned);
    assert_eq!(linear(odd(32, 32, 32), 96), hipErrorInvalidValue, "three parts");
    assert_eq!(linear(odd(8, 16, 0), 96), hipErrorInvalidValue, "parts of two sizes");
    let behind = memory.wrapping_byte_add(4);
    assert_eq!(
        created(&sim, &of_linear(behind, desc, 16), &HOW),
        hipErrorInvalidValue,
        "not aligned"
    );
    assert_eq!(
        created(&sim, &of_linear(null_mut(), desc, 16), &HOW),
        hipErrorInvalidValue
    );
    let rows = |size| created(&sim, &of_rows(memory, desc, size), &HOW);
    assert_eq!(rows([64, 16, 256]), hipSuccess);
    assert_eq!(
        rows([64, 17, 256]),
        hipErrorInvalidValue,
        "more than the allocation has"
    );
    assert_eq!(rows([65, 2, 256]), hipErrorInvalidValue, "rows longer than the pitch");
    assert_eq!(rows([60, 2, 240]), hipErrorInvalidValue, "a pitch that is not aligned");
    assert_eq!(rows([0, 2, 256]), hipErrorInvalidValue);
    assert_eq!(rows([usize::MAX, usize::MAX, usize::MAX & !255]), hipErrorInvalidValue);
    let array = array(&sim, [8, 8, 0], 0);
    let how = |change: fn(&mut hipTextureDesc)| {
        let mut how = HOW;
        change(&mut how);
        created(&sim, &of_array(array), &how)
    };
    assert_eq!(how(|_| {}), hipSuccess);
    assert_eq!(how(|how| how.addressMode[2] = 4), hipErrorInvalidValue);
    assert_eq!(how(|how| how.filterMode = 2), hipErrorInvalidValue);
    assert_eq!(how(|how| how.readMode = 2), hipErrorInvalidValue);
    assert_eq!(how(|how| how.sRGB = 1), hipErrorNotSupported);
    assert_eq!(how(|how| how.maxAnisotropy = 4), hipErrorNotSupported);
    assert_eq!(how(|how| how.mipmapLevelBias = 1.0), hipErrorNotSupported);
    assert_eq!(how(|how| how.maxMipmapLevelClamp = f32::NAN), hipErrorNotSupported);
    assert_eq!(created(&sim, &of_array(null_mut()), &HOW), hipErrorInvalidValue);
    let mipmapped = hipResourceDesc {
        resType: hipResourceTypeMipmappedArray,
        res: hipResource { mipmap: array.cast() },
    };
    assert_eq!(created(&sim, &mipmapped, &HOW), hipErrorInvalidValue);
    let scaled = hipTextureDesc {
        normalizedCoords: 1,
        ..HOW
    };
    assert_eq!(created(&sim, &mipmapped, &scaled), hipErrorNotSupported);
    let other = hipResourceDesc {
        resType: 7,
        ..of_array(array)
    };
    assert_eq!(created(&sim, &other, &HOW), hipErrorInvalidValue);
    // A view of all of it, and of less.
    let (resource, mut object) = (of_array(array), null_mut());
    let mut view = hipResourceViewDesc {
        format: hipResViewFormatFloat1,
        width: 8,
        height: 8,
        depth: 0,
        firstMipmapLevel: 0,
        lastMipmapLevel: 0,
        firstLayer: 0,
        lastLayer: 0,
    };
    answers!(
        hipSuccess,
        sim.hipCreateTextureObject(&raw mut object, &raw const resource, &raw const HOW, &raw const view)
    );
    answers!(hipSuccess, sim.hipDestroyTextureObject(object));
    view.width = 7;
    answers!(
        hipErrorNotSupported,
        sim.hipCreateTextureObject(&raw mut object, &raw const resource, &raw const HOW, &raw const view)
    );
    let linear = of_linear(memory, desc, 16);
    answers!(
        hipErrorInvalidValue,
        sim.hipCreateTextureObject(&raw mut object, &raw const linear, &raw const HOW, &raw const view)
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipCreateTextureObject(null_mut(), &raw const linear, &raw const HOW, null())
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipCreateTextureObject(&raw mut object, null(), &raw const HOW, null())
    );
    answers!(
        hipErrorInvalidValue,
        sim.hipCreateTextureObject(&raw mut object, &raw const linear, null(), null())
    );
    // Surfaces are made of arrays.
    let mut surface = null_mut();
    answers!(
        hipErrorInvalidValue,
        sim.hipCreateSurfaceObject(&raw mut surface, &raw const linear)
    );
    answers!(
        hipSuccess,
        sim.hipCreateSurfaceObject(&raw mut surface, &raw const resource)
    );
    let mut same = HOW;
    answers!(
        hipErrorInvalidValue,
        sim.hipGetTextureObjectTextureDesc(&raw mut same, surface.cast())
    );
    answers!(hipSuccess, sim.hipDestroySurfaceObject(surface));
    answers!(hipSuccess, sim.hipFreeArray(array));
    answers!(
        hipErrorInvalidValue,
        sim.hipCreateTextureObject(&raw mut object, &raw const resource, &raw const HOW, null())
    );
    answers!(hipSuccess, sim.hipFree(memory));
    assert_eq!(sim.allocation_stats(0).live, 0);
    clean(&sim);
}

#[test]
fn an_object_that_is_gone_is_reported() {
    let sim = machine();
    let array = array(&sim, [8, 0, 0], 0);
    let (resource, mut object) = (of_array(array), null_mut());
    answers!(
        hipSuccess,
        sim.hipCreateTextureObject(&raw mut object, &raw const resource, &raw const HOW, null())
    );
    answers!(hipSuccess, sim.hipDestroyTextureObject(object));
    answers!(hipErrorInvalidValue, sim.hipDestroyTextureObject(object));
    answers!(
        hipErrorInvalidValue,
        sim.hipDestroySurfaceObject(std::ptr::without_provenance_mut(0x1000))
    );
    let kinds: Vec<_> = sim.take_reports().iter().map(|report| report.kind).collect();
    assert_eq!(kinds, [ReportKind::DoubleFree, ReportKind::InvalidFree]);
    answers!(hipSuccess, sim.hipFreeArray(array));
}
