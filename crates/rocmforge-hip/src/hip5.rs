//! Numbers that HIP 5 gives otherwise than HIP 6 and 7, in the functions that take or answer them: kinds of memory, and of nodes of
//! graphs.

use crate::process::{self, Process};
use crate::settings::Abi;
use rocmforge_hip_sys::*;
use std::ffi::{c_uint, c_void};

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

/// Copies that name kinds of memory in their parameters.
macro_rules! copies {
    ($($name:ident($params:ty $(, $stream:ident)?);)*) => {$(
        pub(crate) unsafe extern "C" fn $name(params: *const $params $(, $stream: hipStream_t)?) -> hipError_t {
            process::call(|process| {
                let mut own;
                let mut params = params;
                // SAFETY: promised by the program: null, or parameters.
                if let (Abi::Hip5, Some(given)) = (process.abi, unsafe { params.as_ref() }) {
                    own = *given;
                    own.srcMemoryType = kind_from_5(own.srcMemoryType);
                    own.dstMemoryType = kind_from_5(own.dstMemoryType);
                    params = &raw const own;
                }
                let stack = process.stacks.take();
                // SAFETY: promised by the program; the parameters live until the call has returned.
                let status = unsafe { process.sim.$name(params $(, $stream)?) };
                if let Some(stack) = stack {
                    process.stacks.keep(process.sim.latest_call(), stack);
                }
                status
            })
        }
    )*};
}

copies! {
    hipMemcpyParam2D(hip_Memcpy2D);
    hipMemcpyParam2DAsync(hip_Memcpy2D, stream);
    hipDrvMemcpy2DUnaligned(hip_Memcpy2D);
    hipDrvMemcpy3D(HIP_MEMCPY3D);
    hipDrvMemcpy3DAsync(HIP_MEMCPY3D, stream);
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
    fn kinds_of_memory_go_both_ways() {
        // hipMemoryTypeHost 0, Device 1, Array 2 in HIP 5; 1, 2, 10 in HIP 6.
        assert_eq!([0, 1, 2].map(kind_from_5), [1, 2, 10]);
        assert_eq!([1, 2, 10].map(kind_to_5), [0, 1, 2]);
        assert_eq!(kind_to_5(hipMemoryTypeUnregistered), 0);
        assert_eq!(kind_from_5(77), hipMemoryType::MAX);
    }
}
