//! Pointer attributes.

use super::memory::{UNKNOWN, pointer_to};
use super::required;
use crate::calls::call::{Call, Hip, fail_if};
use rocmforge_hip_sys::*;
use std::ffi::{c_int, c_uint, c_void};

/// One attribute's value, of the type that the attribute has.
#[derive(Clone, Copy)]
enum Value {
    Pointer(*mut c_void),
    Number(u32),
    Bool(bool),
}

impl Value {
    /// # Safety
    /// `to` is valid for writing the attribute's type.
    unsafe fn write(self, to: *mut c_void) {
        match self {
            // SAFETY: promised by the caller.
            Value::Pointer(pointer) => unsafe { to.cast::<*mut c_void>().write_unaligned(pointer) },
            // SAFETY: promised by the caller.
            Value::Number(number) => unsafe { to.cast::<u32>().write_unaligned(number) },
            // SAFETY: promised by the caller.
            Value::Bool(value) => unsafe { to.cast::<bool>().write(value) },
        }
    }
}

/// What an attribute is where HIP knows no memory; and whether asking is an error then.
fn unknown(attribute: hipPointer_attribute) -> Option<(Value, bool)> {
    Some(match attribute {
        HIP_POINTER_ATTRIBUTE_MEMORY_TYPE | HIP_POINTER_ATTRIBUTE_BUFFER_ID | HIP_POINTER_ATTRIBUTE_RANGE_SIZE => {
            (Value::Number(0), true)
        }
        HIP_POINTER_ATTRIBUTE_DEVICE_POINTER
        | HIP_POINTER_ATTRIBUTE_HOST_POINTER
        | HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR => (Value::Pointer(std::ptr::null_mut()), true),
        HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS | HIP_POINTER_ATTRIBUTE_IS_MANAGED | HIP_POINTER_ATTRIBUTE_MAPPED => {
            (Value::Bool(false), true)
        }
        HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL => (Value::Number(hipInvalidDeviceId.cast_unsigned()), true),
        HIP_POINTER_ATTRIBUTE_ACCESS_FLAGS => (Value::Number(0), false),
        _ => return None,
    })
}

impl Call<'_> {
    /// The attribute of a pointer, and the status: an unknown pointer's attributes have values too.
    fn pointer_attribute(
        &mut self,
        attribute: hipPointer_attribute,
        pointer: hipDeviceptr_t,
    ) -> (Option<Value>, hipError_t) {
        let Some((nothing, is_error)) = unknown(attribute) else {
            let status = match attribute {
                HIP_POINTER_ATTRIBUTE_CONTEXT..=HIP_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => hipErrorNotSupported,
                _ => hipErrorInvalidValue,
            };
            return (None, status);
        };
        let status = if is_error { hipErrorInvalidValue } else { hipSuccess };
        let mut found = UNKNOWN;
        // SAFETY: `found` is valid for writing.
        let asked = unsafe { self.hipPointerGetAttributes(&raw mut found, pointer) };
        if asked.is_err() || found.r#type == hipMemoryTypeUnregistered {
            return (Some(nothing), status);
        }
        let (start, size, id) = self.range_of(pointer).unwrap_or_default();
        let value = match attribute {
            HIP_POINTER_ATTRIBUTE_MEMORY_TYPE => Value::Number(found.r#type),
            HIP_POINTER_ATTRIBUTE_DEVICE_POINTER => Value::Pointer(found.devicePointer),
            HIP_POINTER_ATTRIBUTE_HOST_POINTER if found.hostPointer.is_null() => return (Some(nothing), status),
            HIP_POINTER_ATTRIBUTE_HOST_POINTER => Value::Pointer(found.hostPointer),
            HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS => Value::Bool(false),
            HIP_POINTER_ATTRIBUTE_BUFFER_ID => Value::Number(id as u32),
            HIP_POINTER_ATTRIBUTE_IS_MANAGED => Value::Bool(found.isManaged != 0),
            HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL => Value::Number(found.device.cast_unsigned()),
            HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR => Value::Pointer(pointer_to(start)),
            HIP_POINTER_ATTRIBUTE_RANGE_SIZE => Value::Number(u32::try_from(size).unwrap_or(u32::MAX)),
            HIP_POINTER_ATTRIBUTE_MAPPED => Value::Bool(true),
            _ => Value::Number(found.allocationFlags),
        };
        (Some(value), hipSuccess)
    }

    pub(crate) unsafe fn hipPointerGetAttribute(
        &mut self,
        data: *mut c_void,
        attribute: hipPointer_attribute,
        pointer: hipDeviceptr_t,
    ) -> Hip {
        required(data)?;
        required(pointer)?;
        let (value, status) = self.pointer_attribute(attribute, pointer);
        if let Some(value) = value {
            // SAFETY: promised by the caller of the HIP function: `data` points at the attribute's type.
            unsafe { value.write(data) };
        }
        status.ok()
    }

    /// Several attributes. What a pointer does not have is no error here.
    pub(crate) unsafe fn hipDrvPointerGetAttributes(
        &mut self,
        count: c_uint,
        attributes: *mut hipPointer_attribute,
        data: *mut *mut c_void,
        pointer: hipDeviceptr_t,
    ) -> Hip {
        required(attributes)?;
        required(data)?;
        required(pointer)?;
        fail_if(count == 0, hipErrorInvalidValue)?;
        for index in 0..count as usize {
            // SAFETY: promised by the caller of the HIP function: the list has `count` entries.
            let attribute = unsafe { attributes.wrapping_add(index).read() };
            // SAFETY: as above.
            let to = unsafe { data.wrapping_add(index).read() };
            if let (Some(value), _) = self.pointer_attribute(attribute, pointer)
                && !to.is_null()
            {
                // SAFETY: promised by the caller of the HIP function: `to` points at the attribute's type.
                unsafe { value.write(to) };
            }
        }
        Ok(())
    }

    /// Whether a device is what `hipMemLocation` names.
    pub(super) fn location(&self, location: &hipMemLocation) -> Hip<usize> {
        fail_if(location.r#type != hipMemLocationTypeDevice, hipErrorInvalidValue)?;
        self.card_index(location.id as c_int).map_err(|_| hipErrorInvalidValue)
    }
}
