//! Arguments of a HIP call, by their types.

use rocmforge_hip_sys::*;
use std::any::Any;
use std::ffi::{c_int, c_uint, c_ulonglong, c_void};

/// The arguments of a call, in order.
#[derive(Clone, Copy)]
pub(crate) struct Arguments<'a>(pub(crate) &'a [&'a dyn Any]);

impl Arguments<'_> {
    /// The first argument of a type.
    pub(crate) fn first<T: Copy + 'static>(self) -> Option<T> {
        self.0.iter().find_map(|argument| argument.downcast_ref().copied())
    }

    /// Writes `number` where the function gives its one handle, address or integer, by [`GIVES`]. False: it is not among them, or it was
    /// given a null pointer.
    ///
    /// # Safety
    /// Pointers among the arguments are null or valid, as the C functions ask.
    pub(crate) unsafe fn give(self, api: &str, number: i64) -> bool {
        let row = GIVES.iter().find(|(name, _)| *name == api);
        let Some(argument) = row.and_then(|(_, position)| self.0.get(*position)) else {
            return false;
        };
        let handle = std::ptr::without_provenance_mut::<c_void>(number as usize);
        macro_rules! write_as {
            ($($ty:ty: $value:expr),* $(,)?) => {$(
                if let Some(place) = argument.downcast_ref::<*mut $ty>().filter(|place| !place.is_null()) {
                    // SAFETY: not null (`filter`), and the caller promises that it is valid as the function asks: the row of `GIVES`
                    // says that the function writes one value of this type there.
                    unsafe { place.write($value) };
                    return true;
                }
            )*};
        }
        write_as! {
            *mut c_void: handle,
            hipStream_t: handle.cast(),
            hipEvent_t: handle.cast(),
            hipModule_t: handle.cast(),
            hipFunction_t: handle.cast(),
            hipGraph_t: handle.cast(),
            hipGraphExec_t: handle.cast(),
            hipMemPool_t: handle.cast(),
            usize: number as usize,
            c_ulonglong: number as c_ulonglong,
            c_int: number as c_int,
            c_uint: number as c_uint,
        }
        false
    }
}

/// Functions that give one handle, address or integer through a pointer, with the position of that argument. Pointers to what the
/// caller gives, such as `params` of `hipModuleLaunchKernel`, have the same types, so a type does not tell.
pub(crate) const GIVES: &[(&str, usize)] = &[
    // Devices
    ("hipRuntimeGetVersion", 0),
    ("hipDriverGetVersion", 0),
    ("hipGetDeviceCount", 0),
    ("hipGetDevice", 0),
    ("hipDeviceGet", 0),
    ("hipDeviceGetAttribute", 0),
    ("hipDeviceTotalMem", 0),
    ("hipDeviceGetLimit", 0),
    ("hipGetDeviceFlags", 0),
    ("hipDeviceCanAccessPeer", 0),
    // Memory
    ("hipMalloc", 0),
    ("hipMallocAsync", 0),
    ("hipMallocFromPoolAsync", 0),
    ("hipMallocManaged", 0),
    ("hipExtMallocWithFlags", 0),
    ("hipHostMalloc", 0),
    ("hipHostAlloc", 0),
    ("hipMallocHost", 0),
    ("hipMemAllocHost", 0),
    ("hipHostGetDevicePointer", 0),
    ("hipHostGetFlags", 0),
    ("hipMemPtrGetInfo", 1),
    ("hipMemAddressReserve", 0),
    ("hipMemGetAllocationGranularity", 0),
    ("hipMemPoolCreate", 0),
    ("hipDeviceGetMemPool", 0),
    ("hipDeviceGetDefaultMemPool", 0),
    // Streams and events
    ("hipStreamCreate", 0),
    ("hipStreamCreateWithFlags", 0),
    ("hipStreamCreateWithPriority", 0),
    ("hipStreamGetFlags", 1),
    ("hipStreamGetPriority", 1),
    ("hipStreamGetDevice", 1),
    ("hipStreamGetId", 1),
    ("hipEventCreate", 0),
    ("hipEventCreateWithFlags", 0),
    // Modules
    ("hipModuleLoad", 0),
    ("hipModuleLoadData", 0),
    ("hipModuleGetFunction", 0),
    ("hipFuncGetAttribute", 0),
    ("hipModuleOccupancyMaxActiveBlocksPerMultiprocessor", 0),
    ("hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", 0),
    // Graphs
    ("hipStreamEndCapture", 1),
    ("hipGraphCreate", 0),
    ("hipGraphClone", 0),
    ("hipGraphInstantiate", 0),
    ("hipGraphInstantiateWithFlags", 0),
    ("hipGraphExecGetFlags", 1),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::TypeId;
    use std::collections::BTreeMap;
    use std::ffi::{c_char, c_uchar, c_ushort};

    /// Types of the arguments of every function.
    fn signatures() -> BTreeMap<&'static str, Vec<TypeId>> {
        macro_rules! rows {
            ($($tag:ident { $(fn $name:ident($($arg:ident: $ty:ty),* $(,)?);)* })*) => {
                BTreeMap::from([$($((stringify!($name), vec![$(TypeId::of::<$ty>()),*]),)*)*])
            };
        }
        for_each_hip_function!(rows)
    }

    #[test]
    fn every_row_names_a_pointer_that_a_number_can_be_written_through() {
        let signatures = signatures();
        let mut place = 0u64;
        macro_rules! pointers {
            ($($ty:ty),*) => { [$(Box::new((&raw mut place).cast::<$ty>()) as Box<dyn Any>),*] };
        }
        let pointers = pointers![
            *mut c_void,
            hipStream_t,
            hipEvent_t,
            hipModule_t,
            hipFunction_t,
            hipGraph_t,
            hipGraphExec_t,
            hipMemPool_t,
            usize,
            c_ulonglong,
            c_int,
            c_uint
        ];
        for &(api, position) in GIVES {
            let ty = signatures[api][position];
            let pointer = pointers.iter().find(|pointer| (***pointer).type_id() == ty);
            let pointer: &dyn Any = &**pointer.unwrap_or_else(|| panic!("{api}: no number fits there"));
            let mut arguments: Vec<&dyn Any> = vec![&(); signatures[api].len()];
            arguments[position] = pointer;
            // SAFETY: the pointer is to `place`, which has room for the largest of the types.
            assert!(unsafe { Arguments(&arguments).give(api, 7) }, "{api}");
            assert_eq!(std::mem::take(&mut place), 7, "{api}");
        }
    }
}
