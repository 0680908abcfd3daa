//! I: modules and their functions.

use crate::rig::*;
use rocmforge_hip_sys::*;
use std::ptr::null_mut;

both! {
    i04_load_null,
    i05_load_of_an_empty_text,
    i06_unload_null,
    i08_get_function_null,
    i09_get_function_of_what_is_not_there,
    i10_get_function_of_a_device_function,
    i11_get_global_null,
    i12_get_unknown_global,
}

fn i04_load_null(rig: &Rig) {
    let mut module = null_mut();
    answers!(
        hipErrorInvalidValue,
        rig.hipModuleLoadData(null_mut(), rig.probe().as_ptr().cast())
    );
    answers!(hipErrorInvalidValue, rig.hipModuleLoadData(&raw mut module, null_mut()));
}

fn i05_load_of_an_empty_text(rig: &Rig) {
    let mut module = null_mut();
    answers!(
        hipErrorInvalidImage,
        rig.hipModuleLoadData(&raw mut module, c"".as_ptr().cast())
    );
    answers!(
        hipErrorInvalidImage,
        rig.hipModuleLoadData(&raw mut module, c"no code object".as_ptr().cast())
    );
}

fn i06_unload_null(rig: &Rig) {
    answers!(hipErrorInvalidHandle, rig.hipModuleUnload(null_mut()));
}

fn i08_get_function_null(rig: &Rig) {
    let (module, mut function) = (rig.load(), null_mut());
    answers!(
        hipErrorInvalidValue,
        rig.hipModuleGetFunction(null_mut(), module, c"scale".as_ptr())
    );
    answers!(
        hipErrorInvalidValue,
        rig.hipModuleGetFunction(&raw mut function, module, null_mut())
    );
}

fn i09_get_function_of_what_is_not_there(rig: &Rig) {
    let (module, mut function) = (rig.load(), null_mut());
    let empty = rig.by_platform(hipErrorNotFound, hipErrorInvalidValue);
    for (name, expected) in [
        (c"no_such_kernel", hipErrorNotFound),
        (c"scale.kd", hipErrorNotFound),
        (c"", empty),
    ] {
        answers!(
            expected,
            rig.hipModuleGetFunction(&raw mut function, module, name.as_ptr())
        );
    }
    assert!(function.is_null());
}

fn i10_get_function_of_a_device_function(rig: &Rig) {
    let (module, mut function) = (rig.load(), null_mut());
    for name in [c"helper", c"table"] {
        answers!(
            hipErrorNotFound,
            rig.hipModuleGetFunction(&raw mut function, module, name.as_ptr())
        );
    }
    assert!(function.is_null());
}

fn i11_get_global_null(rig: &Rig) {
    let (module, mut address, mut bytes) = (rig.load(), null_mut(), 0);
    let (at, size) = (&raw mut address, &raw mut bytes);
    answers!(
        hipErrorInvalidValue,
        rig.hipModuleGetGlobal(at, size, module, null_mut())
    );
    answers!(hipSuccess, rig.hipModuleGetGlobal(at, size, module, c"table".as_ptr()));
    assert_eq!(bytes, 16);
    assert!(!address.is_null());
}

fn i12_get_unknown_global(rig: &Rig) {
    let (module, mut address, mut bytes) = (rig.load(), null_mut(), 0);
    let (at, size) = (&raw mut address, &raw mut bytes);
    for name in [c"no_such_variable", c"scale.kd"] {
        answers!(
            hipErrorNotFound,
            rig.hipModuleGetGlobal(at, size, module, name.as_ptr())
        );
    }
    assert!(address.is_null());
}
