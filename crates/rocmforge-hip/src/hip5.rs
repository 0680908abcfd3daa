//! Numbers that HIP 5 gives otherwise than HIP 6 and 7, in the functions that take or answer them: kinds of memory, and of nodes of
//! graphs.

use crate::process;
use crate::settings::Abi;
use crate::state::Process;
use rocmforge_hip_sys::*;
use std::ffi::{c_uint, c_ulonglong, c_void};

/// Kinds of memory, by HIP 5's number: host, device, array, unified, managed.
const KINDS: [hipMemoryType; 5] = [
    hipMemoryTypeHost,
    hipMemoryTypeDevice,
    hipMemoryTypeArray,
    hipMemoryTypeUnified,
    hipMemoryTypeManaged,
];

/// The machine's number for a kind of memory; a number that HIP 5 does not have stays, and the machine judges it.
fn kind_from_5(kind: hipMemoryType) -> hipMemoryType {
    KINDS.get(kind as usize).copied().unwrap_or(hipMemoryType::MAX)
}

/// HIP 5's number for a kind of memory. Memory that nobody registered is the host's.
fn kind_to_5(kind: hipMemoryType) -> hipMemoryType {
    let found = KINDS.iter().position(|known| *known == kind);
    found.unwrap_or_default() as hipMemoryType
}

/// Copies whose parameters HIP 5 has otherwise: what of HIP 5 is read, and how it becomes what the machine takes.
macro_rules! copies {
    ($($name:ident($given:ty => $params:ty, $convert:expr $(, $stream:ident)?);)*) => {$(
        pub(crate) unsafe extern "C" fn $name(params: *const $params $(, $stream: hipStream_t)?) -> hipError_t {
            process::call(|process| {
                let own: $params;
                let mut params = params;
                if process.abi == Abi::Hip5 && !params.is_null() {
                    // SAFETY: promised by the program, which was built for HIP 5; not null.
                    own = $convert(unsafe { params.cast::<$given>().read() });
                    params = &raw const own;
                }
                // SAFETY: promised by the program; the parameters live until the call has returned.
                process.with_stack(|| unsafe { process.sim.$name(params $(, $stream)?) })
            })
        }
    )*};
}

copies! {
    hipMemcpyParam2D(hip_Memcpy2D => hip_Memcpy2D, copy_2d);
    hipMemcpyParam2DAsync(hip_Memcpy2D => hip_Memcpy2D, copy_2d, stream);
    hipDrvMemcpy2DUnaligned(hip_Memcpy2D => hip_Memcpy2D, copy_2d);
    hipDrvMemcpy3D(Copy5 => HIP_MEMCPY3D, HIP_MEMCPY3D::from);
    hipDrvMemcpy3DAsync(Copy5 => HIP_MEMCPY3D, HIP_MEMCPY3D::from, stream);
}

/// A copy in two dimensions, with HIP 5's kinds of memory.
fn copy_2d(given: hip_Memcpy2D) -> hip_Memcpy2D {
    hip_Memcpy2D {
        srcMemoryType: kind_from_5(given.srcMemoryType),
        dstMemoryType: kind_from_5(given.dstMemoryType),
        ..given
    }
}

/// What `hipDrvMemcpy3D` copies, as HIP 5 has it: 32 bits for each size.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy5 {
    from: [c_uint; 4],
    from_kind: hipMemoryType,
    from_host: *const c_void,
    from_device: hipDeviceptr_t,
    from_array: hipArray_t,
    from_pitch: [c_uint; 2],
    to: [c_uint; 4],
    to_kind: hipMemoryType,
    to_host: *mut c_void,
    to_device: hipDeviceptr_t,
    to_array: hipArray_t,
    to_pitch: [c_uint; 2],
    size: [c_uint; 3],
}

impl From<Copy5> for HIP_MEMCPY3D {
    fn from(given: Copy5) -> Self {
        let [srcXInBytes, srcY, srcZ, srcLOD] = given.from.map(|size| size as usize);
        let [dstXInBytes, dstY, dstZ, dstLOD] = given.to.map(|size| size as usize);
        let [WidthInBytes, Height, Depth] = given.size.map(|size| size as usize);
        Self {
            srcXInBytes,
            srcY,
            srcZ,
            srcLOD,
            srcMemoryType: kind_from_5(given.from_kind),
            srcHost: given.from_host,
            srcDevice: given.from_device,
            srcArray: given.from_array,
            srcPitch: given.from_pitch[0] as usize,
            srcHeight: given.from_pitch[1] as usize,
            dstXInBytes,
            dstY,
            dstZ,
            dstLOD,
            dstMemoryType: kind_from_5(given.to_kind),
            dstHost: given.to_host,
            dstDevice: given.to_device,
            dstArray: given.to_array,
            dstPitch: given.to_pitch[0] as usize,
            dstHeight: given.to_pitch[1] as usize,
            WidthInBytes,
            Height,
            Depth,
        }
    }
}

/// Changes an answered kind of memory.
///
/// # Safety
/// If the attribute is the kind of memory, `data` is null or has one.
unsafe fn answer_kind(process: &Process, attribute: hipPointer_attribute, data: *mut c_void) {
    if process.abi != Abi::Hip5 || attribute != HIP_POINTER_ATTRIBUTE_MEMORY_TYPE {
        return;
    }
    // SAFETY: promised by the caller.
    if let Some(kind) = unsafe { data.cast::<hipMemoryType>().as_mut() } {
        *kind = kind_to_5(*kind);
    }
}

pub(crate) unsafe extern "C" fn hipPointerGetAttribute(
    data: *mut c_void,
    attribute: hipPointer_attribute,
    pointer: hipDeviceptr_t,
) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program.
        let status = unsafe { process.sim.hipPointerGetAttribute(data, attribute, pointer) };
        if status.is_success() {
            // SAFETY: the call has succeeded, so that it has written there.
            unsafe { answer_kind(process, attribute, data) };
        }
        status
    })
}

pub(crate) unsafe extern "C" fn hipDrvPointerGetAttributes(
    count: c_uint,
    attributes: *mut hipPointer_attribute,
    data: *mut *mut c_void,
    pointer: hipDeviceptr_t,
) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program.
        let status = unsafe { process.sim.hipDrvPointerGetAttributes(count, attributes, data, pointer) };
        if !status.is_success() || attributes.is_null() || data.is_null() {
            return status;
        }
        // SAFETY: promised by the program: the list has `count` elements; not null.
        let attributes = unsafe { std::slice::from_raw_parts(attributes, count as usize) };
        // SAFETY: as above.
        let data = unsafe { std::slice::from_raw_parts(data, count as usize) };
        for (attribute, data) in attributes.iter().zip(data) {
            // SAFETY: the call has written where the second list points.
            unsafe { answer_kind(process, *attribute, *data) };
        }
        status
    })
}

pub(crate) unsafe extern "C" fn hipPointerGetAttributes(
    attributes: *mut hipPointerAttribute_t,
    pointer: *const c_void,
) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program.
        let status = unsafe { process.sim.hipPointerGetAttributes(attributes, pointer) };
        if process.abi != Abi::Hip5 || !status.is_success() {
            return status;
        }
        // SAFETY: the call has succeeded, so that it has written there.
        let Some(found) = (unsafe { attributes.as_mut() }) else {
            return status;
        };
        // HIP 6 and 7 have a kind for memory that HIP does not know; HIP 5 has a status.
        if found.r#type == hipMemoryTypeUnregistered {
            return process.sim.answered("hipPointerGetAttributes", hipErrorInvalidValue);
        }
        found.r#type = kind_to_5(found.r#type);
        status
    })
}

/// Properties of physical memory, as HIP 5 has them.
#[repr(C)]
#[derive(Clone, Copy)]
struct Properties5 {
    compression: u8,
    location: hipMemLocation,
    handle_type: hipMemAllocationHandleType,
    kind: hipMemAllocationType,
    usage: u16,
    windows: *mut c_void,
}

impl From<Properties5> for hipMemAllocationProp {
    fn from(given: Properties5) -> Self {
        let [low, high] = given.usage.to_ne_bytes();
        Self {
            r#type: given.kind,
            requestedHandleType: given.handle_type,
            location: given.location,
            win32HandleMetaData: given.windows,
            allocFlags: [given.compression, 0, low, high],
        }
    }
}

impl From<hipMemAllocationProp> for Properties5 {
    fn from(found: hipMemAllocationProp) -> Self {
        let [compression, _, low, high] = found.allocFlags;
        Self {
            compression,
            location: found.location,
            handle_type: found.requestedHandleType,
            kind: found.r#type,
            usage: u16::from_ne_bytes([low, high]),
            windows: found.win32HandleMetaData,
        }
    }
}

/// Calls `then` with properties as the machine has them.
///
/// # Safety
/// `given` is null or has properties as the process's HIP has them.
unsafe fn with_properties(
    process: &Process,
    given: *const hipMemAllocationProp,
    then: impl FnOnce(*const hipMemAllocationProp) -> hipError_t,
) -> hipError_t {
    if process.abi != Abi::Hip5 || given.is_null() {
        return then(given);
    }
    // SAFETY: promised by the caller; not null.
    let own = hipMemAllocationProp::from(unsafe { given.cast::<Properties5>().read() });
    then(&raw const own)
}

pub(crate) unsafe extern "C" fn hipMemCreate(
    handle: *mut hipMemGenericAllocationHandle_t,
    size: usize,
    properties: *const hipMemAllocationProp,
    flags: c_ulonglong,
) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program.
        let create = |own| unsafe { process.sim.hipMemCreate(handle, size, own, flags) };
        // SAFETY: as above.
        unsafe { with_properties(process, properties, create) }
    })
}

pub(crate) unsafe extern "C" fn hipMemGetAllocationGranularity(
    granularity: *mut usize,
    properties: *const hipMemAllocationProp,
    option: hipMemAllocationGranularity_flags,
) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program.
        let ask = |own| unsafe { process.sim.hipMemGetAllocationGranularity(granularity, own, option) };
        // SAFETY: as above.
        unsafe { with_properties(process, properties, ask) }
    })
}

pub(crate) unsafe extern "C" fn hipMemGetAllocationPropertiesFromHandle(
    properties: *mut hipMemAllocationProp,
    handle: hipMemGenericAllocationHandle_t,
) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program; both layouts have the same size.
        let status = unsafe { process.sim.hipMemGetAllocationPropertiesFromHandle(properties, handle) };
        if process.abi == Abi::Hip5 && status.is_success() {
            // SAFETY: the call has succeeded, so that it has written there.
            let found = unsafe { properties.read() };
            // SAFETY: as above.
            unsafe { properties.cast::<Properties5>().write(found.into()) };
        }
        status
    })
}

const _: () = assert!(size_of::<Properties5>() == size_of::<hipMemAllocationProp>());

/// HIP 5 counts the kinds of nodes from 1.
pub(crate) unsafe extern "C" fn hipGraphNodeGetType(node: hipGraphNode_t, kind: *mut hipGraphNodeType) -> hipError_t {
    process::call(|process| {
        // SAFETY: promised by the program.
        let status = unsafe { process.sim.hipGraphNodeGetType(node, kind) };
        // SAFETY: null, or promised by the program.
        if let (Abi::Hip5, true, Some(kind)) = (process.abi, status.is_success(), unsafe { kind.as_mut() }) {
            *kind += 1;
        }
        status
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_of_memory_go_both_ways() {
        // As HIP 5.2's header has them: compression, location, kind of handle, kind of memory, usage, pointer.
        let mut bytes = [0u8; 32];
        for (at, value) in [(0, 7), (4, 1), (8, 2), (12, 3), (16, 4), (20, 5), (24, 6)] {
            bytes[at] = value;
        }
        // SAFETY: any bytes are properties, and there are enough of them.
        let given = unsafe { bytes.as_ptr().cast::<Properties5>().read_unaligned() };
        let own = hipMemAllocationProp::from(given);
        assert_eq!((own.location.r#type, own.location.id), (1, 2));
        assert_eq!((own.requestedHandleType, own.r#type), (3, 4));
        assert_eq!((own.win32HandleMetaData.addr(), own.allocFlags[0]), (6, 7));
        let back = Properties5::from(own);
        assert_eq!((back.compression, back.kind, back.usage), (7, 4, 5));
    }

    #[test]
    fn copies_in_three_dimensions_have_sizes_of_32_bits() {
        // The offsets that a C compiler gives the fields of HIP 5.2's HIP_MEMCPY3D.
        assert_eq!(size_of::<Copy5>(), 128);
        let mut bytes = [0u8; 128];
        for (at, value) in [
            (0, 1),
            (16, 0),
            (24, 2),
            (48, 3),
            (56, 4),
            (72, 1),
            (88, 5),
            (104, 6),
            (112, 7),
            (120, 8),
        ] {
            bytes[at] = value;
        }
        // SAFETY: any bytes are parameters, and there are enough of them.
        let own = HIP_MEMCPY3D::from(unsafe { bytes.as_ptr().cast::<Copy5>().read_unaligned() });
        assert_eq!((own.srcXInBytes, own.srcMemoryType), (1, hipMemoryTypeHost));
        assert_eq!((own.srcHost.addr(), own.srcPitch), (2, 3));
        assert_eq!((own.dstXInBytes, own.dstMemoryType), (4, hipMemoryTypeDevice));
        assert_eq!((own.dstDevice.addr(), own.dstPitch), (5, 6));
        assert_eq!((own.WidthInBytes, own.Depth), (7, 8));
    }

    #[test]
    fn kinds_of_memory_go_both_ways() {
        // hipMemoryTypeHost 0, Device 1, Array 2 in HIP 5; 1, 2, 10 in HIP 6.
        assert_eq!([0, 1, 2].map(kind_from_5), [1, 2, 10]);
        assert_eq!([1, 2, 10].map(kind_to_5), [0, 1, 2]);
        assert_eq!(kind_to_5(hipMemoryTypeUnregistered), 0);
        assert_eq!(kind_from_5(77), hipMemoryType::MAX);
    }
}
