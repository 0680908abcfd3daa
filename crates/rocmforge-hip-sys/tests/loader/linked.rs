//! The library that this test is linked with, beside the same library found at run time.

use crate::child;
use crate::distribution::LIBRARY;
use rocmforge_hip_sys::{HipApi, HipLibrary, hipError_t};
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;

/// What the library says on a machine without a card: of each call its status and its answer.
fn answers(hip: &dyn HipApi) -> Vec<(&'static str, hipError_t, i64)> {
    let mut int: c_int = -1;
    let mut pointer = std::ptr::null_mut();
    let mut bytes = usize::MAX;
    // SAFETY: no flags exist.
    let init = unsafe { hip.hipInit(0) };
    // SAFETY: it writes one int, as the two after it.
    let mut answers = vec![
        ("hipInit", init, 0),
        (
            "hipGetDeviceCount",
            unsafe { hip.hipGetDeviceCount(&mut int) },
            int.into(),
        ),
    ];
    // SAFETY: as above.
    answers.push((
        "hipRuntimeGetVersion",
        unsafe { hip.hipRuntimeGetVersion(&mut int) },
        int.into(),
    ));
    // SAFETY: as above.
    answers.push(("hipGetDevice", unsafe { hip.hipGetDevice(&mut int) }, int.into()));
    // SAFETY: it writes one pointer.
    answers.push((
        "hipMalloc",
        unsafe { hip.hipMalloc(&mut pointer, 4096) },
        pointer.addr() as i64,
    ));
    // SAFETY: it writes two sizes.
    let memory = unsafe { hip.hipMemGetInfo(&mut bytes, &mut 0) };
    answers.push(("hipMemGetInfo", memory, bytes as i64));
    // SAFETY: without user data, and with no function of an optional one that this library may lack.
    answers.push((
        "hipLaunchHostFunc",
        unsafe { hip.hipLaunchHostFunc(std::ptr::null_mut(), None, std::ptr::null_mut()) },
        0,
    ));
    answers
}

/// `hipGetErrorName` and `hipGetErrorString` of the linked library.
fn texts(status: hipError_t) -> [String; 2] {
    type Text = unsafe extern "C" fn(hipError_t) -> *const c_char;
    [
        hip_sys::hiprt::hipGetErrorName as *const (),
        hip_sys::hiprt::hipGetErrorString as *const (),
    ]
    .map(|function| {
        // SAFETY: the status is a C enum there.
        let function = unsafe { std::mem::transmute::<*const (), Text>(function) };
        // SAFETY: any number may be asked for.
        let text = unsafe { function(status) };
        // SAFETY: it answers a constant.
        unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_owned()
    })
}

#[test]
fn the_linked_library_answers_as_the_one_that_is_found_at_run_time() {
    if child::role().is_some() {
        let (linked, loaded) = (HipLibrary::linked(), HipLibrary::load_from(LIBRARY).unwrap());
        assert_eq!(linked.path(), loaded.path());
        assert_eq!(linked.missing_optional(), loaded.missing_optional());
        let seen = answers(&linked);
        assert_eq!(seen, answers(&loaded));
        let (_, status, count) = seen[1];
        assert!(!status.is_success() && count == 0, "{seen:?}");
        let [name, text] = texts(status);
        assert_eq!(status.name(), Some(name.as_str()));
        assert!(!text.is_empty());
        println!("compared {seen:?} {text}");
        return;
    }
    // Linked with another version, this is no comparison with it.
    if !Path::new(LIBRARY).exists() || Path::new("/dev/kfd").exists() {
        println!("SKIP the linked library: it is compared with {LIBRARY}, on a machine without a card");
        return;
    }
    let name = "linked::the_linked_library_answers_as_the_one_that_is_found_at_run_time";
    let output = child::succeeds(name, "probe");
    assert!(output.contains("compared"), "{output}");
}
