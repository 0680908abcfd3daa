//! Tests of the bindings check: it finds planted differences.

use super::header::{self, Header};
use super::probe::{c_type, compare};
use super::{BindingsError, Subject, known};
use rocmforge_gpu_test::say;
use rocmforge_hip_sys::abi::{Constant, Function, Layout, Tag};
use std::path::Path;

#[test]
fn absent_headers_are_a_clear_error() {
    let error = header::find(Some(Path::new("/nonexistent"))).unwrap_err();
    assert!(matches!(error, BindingsError::HeadersAbsent { .. }));
    assert!(
        error.to_string().contains("libamdhip64-dev") && error.to_string().contains("/nonexistent"),
        "{error}"
    );
}

#[test]
fn rust_types_become_c_types() {
    for (rust, c) in [
        ("c_int", "int"),
        ("* mut c_int", "int*"),
        ("*mut *mut c_void", "void**"),
        ("*const c_char", "char const*"),
        ("usize", "size_t"),
        ("*mut hipDeviceProp_tR0000", "hipDeviceProp_t*"),
        ("hipStream_t", "hipStream_t"),
        ("Option < hipHostFn_t >", "hipHostFn_t"),
        ("*mut u32", "uint32_t*"),
        ("c_ulonglong", "unsigned long long"),
        ("hipLimit_t", "enum hipLimit_t"),
    ] {
        assert_eq!(c_type(rust, (5, 2)), c);
    }
    assert_eq!(c_type("*mut hipDeviceProp_tR0000", (6, 0)), "hipDeviceProp_tR0000*");
}

#[test]
fn known_differences_depend_on_the_version() {
    assert!(known::different("hipMemoryTypeHost", (5, 2)).is_some());
    assert!(known::different("hipMemoryTypeHost", (6, 0)).is_none());
    assert!(known::incomparable("hipGetDeviceProperties", (6, 0)).is_some());
    assert!(known::incomparable("hipGetDeviceProperties", (5, 7)).is_none());
    assert!(known::absent("hipExtGetLastError", (5, 7)).is_some());
    assert!(known::absent("hipExtGetLastError", (6, 0)).is_none());
    assert!(known::absent("hipMalloc", (5, 2)).is_none());
}

/// One doctored entry of each kind, all of which the probe must call wrong.
#[test]
fn planted_differences_are_found() {
    let Ok(include) = header::find(None) else {
        say!("SKIP planted_differences_are_found: no HIP headers (Debian: libamdhip64-dev)");
        return;
    };
    let header = Header::read(&include).unwrap();
    let function = |name, args| Function {
        name,
        tag: Tag::Core,
        args,
    };
    let subject = Subject {
        functions: vec![
            function("hipSetDevice", &[("device", "c_uint")]),
            function("hipMalloc", &[("ptr", "*mut *mut c_void")]),
            function("hipFree", &[("ptr", "*const c_void")]),
            function("hipNoSuchFunction", &[]),
        ],
        constants: vec![Constant {
            group: "hipEventFlags",
            name: "hipEventDisableTiming",
            value: 1,
        }],
        layouts: vec![Layout {
            name: "hipPointerAttribute_t",
            c_name: "hipPointerAttribute_t",
            majors: (5, u32::MAX),
            size: 40,
            fields: &[("device", 0, 8)],
        }],
        types: vec![("hipStream_t", 4)],
    };
    let rows = compare(&header, &subject).unwrap();
    let wrong: Vec<&str> = rows
        .iter()
        .filter(|row| row.is_failure())
        .map(|row| row.name.as_str())
        .collect();
    assert_eq!(
        wrong,
        [
            "hipNoSuchFunction",
            "hipSetDevice",
            "hipMalloc",
            "hipFree",
            "hipEventDisableTiming",
            "hipStream_t",
            "hipPointerAttribute_t",
            "hipPointerAttribute_t.device",
            "hipPointerAttribute_t.device (bytes)",
        ]
    );
    // The callbacks are compared as they are.
    assert_eq!(rows.len(), wrong.len() + 2);
}
