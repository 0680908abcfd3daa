//! Typed getters of the metadata: values, absence, wrong types, numbers that do not fit.

use std::borrow::Cow;

use crate::common::sample;
use rocmforge_gguf::{Gguf, GgufError};

#[test]
fn getters_convert_what_fits() {
    let model = Gguf::from_bytes(sample().to_bytes().unwrap()).unwrap();
    let metadata = model.metadata();
    assert_eq!(metadata.string("text").unwrap(), "größer 🙂\0");
    assert_eq!(metadata.u32("u8").unwrap(), 200);
    assert_eq!(metadata.u32("u16").unwrap(), 60_000);
    assert_eq!(metadata.u64("u64").unwrap(), u64::MAX);
    assert_eq!(metadata.usize("u32").unwrap(), 4_000_000_000);
    assert_eq!(metadata.i32("i16").unwrap(), -30_000);
    assert_eq!(metadata.f32("f32").unwrap(), 0.1);
    assert_eq!(metadata.f32("f64").unwrap(), 0.1);
    assert!(metadata.bool("bool").unwrap());
    assert_eq!(metadata.strings("strings").unwrap(), ["a", "", "ü"]);
    assert_eq!(metadata.bools("bools").unwrap(), [true, false, true]);
    assert!(matches!(metadata.f32s("f32s").unwrap(), Cow::Borrowed([1.5, 0.0])));
    assert_eq!(metadata.f32s("f64s").unwrap()[..], [f32::INFINITY]);
    assert!(matches!(metadata.i32s("i32s").unwrap(), Cow::Borrowed([i32::MIN, 1])));
    assert_eq!(metadata.i32s("i8s").unwrap()[..], [-1, 2]);
    assert!(matches!(metadata.u32s("u32s").unwrap(), Cow::Borrowed([1, u32::MAX])));
    assert_eq!(metadata.u32s("u8s").unwrap()[..], [1, 2, 3]);
    assert!(metadata.u32s("none").unwrap().is_empty());
}

#[test]
fn errors_name_key_expected_and_found() {
    let model = Gguf::from_bytes(sample().to_bytes().unwrap()).unwrap();
    let metadata = model.metadata();
    let cases: Vec<(GgufError, &str)> = vec![
        (
            metadata.string("absent").unwrap_err(),
            "metadata `absent` is missing (expected: string)",
        ),
        (
            metadata.string("u8").unwrap_err(),
            "metadata `u8` is u8 (expected: string)",
        ),
        (
            metadata.u32("text").unwrap_err(),
            "metadata `text` is string (expected: integer of 32 bits, not negative)",
        ),
        (
            metadata.u32("f32").unwrap_err(),
            "metadata `f32` is f32 (expected: integer of 32 bits, not negative)",
        ),
        (
            metadata.u32("i8").unwrap_err(),
            "metadata `i8` is -100 (expected: integer of 32 bits, not negative)",
        ),
        (
            metadata.i32("u32").unwrap_err(),
            "metadata `u32` is 4000000000 (expected: integer of 32 bits)",
        ),
        (
            metadata.u64("i64").unwrap_err(),
            "metadata `i64` is -9223372036854775808 (expected: integer of 64 bits, not negative)",
        ),
        (
            metadata.f32("u8").unwrap_err(),
            "metadata `u8` is u8 (expected: f32 or f64)",
        ),
        (metadata.bool("u8").unwrap_err(), "metadata `u8` is u8 (expected: bool)"),
        (
            metadata.strings("text").unwrap_err(),
            "metadata `text` is string (expected: array of string)",
        ),
        (
            metadata.strings("u8s").unwrap_err(),
            "metadata `u8s` is array of 3 u8 (expected: array of string)",
        ),
        (
            metadata.bools("u8s").unwrap_err(),
            "metadata `u8s` is array of 3 u8 (expected: array of bool)",
        ),
        (
            metadata.f32s("i32s").unwrap_err(),
            "metadata `i32s` is array of 2 i32 (expected: array of f32 or f64)",
        ),
        (
            metadata.i32s("u32s").unwrap_err(),
            "metadata `u32s` is 4294967295 (expected: array of integers of 32 bits)",
        ),
        (
            metadata.i32s("i32").unwrap_err(),
            "metadata `i32` is i32 (expected: array of integers of 32 bits)",
        ),
        (
            metadata.u32s("strings").unwrap_err(),
            "metadata `strings` is array of 3 string (expected: array of integers of 32 bits, not negative)",
        ),
    ];
    for (error, expected) in cases {
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn optional_getters_tell_absence_from_a_wrong_type() {
    let model = Gguf::from_bytes(sample().to_bytes().unwrap()).unwrap();
    let metadata = model.metadata();
    assert!(matches!(metadata.opt_string("absent"), Ok(None)));
    assert!(matches!(metadata.opt_u32("absent"), Ok(None)));
    assert!(matches!(metadata.opt_i32("absent"), Ok(None)));
    assert!(matches!(metadata.opt_u64("absent"), Ok(None)));
    assert!(matches!(metadata.opt_usize("absent"), Ok(None)));
    assert!(matches!(metadata.opt_f32("absent"), Ok(None)));
    assert!(matches!(metadata.opt_bool("absent"), Ok(None)));
    assert!(matches!(metadata.opt_strings("absent"), Ok(None)));
    assert!(matches!(metadata.opt_bools("absent"), Ok(None)));
    assert!(matches!(metadata.opt_f32s("absent"), Ok(None)));
    assert!(matches!(metadata.opt_i32s("absent"), Ok(None)));
    assert!(matches!(metadata.opt_u32s("absent"), Ok(None)));
    assert!(matches!(metadata.opt_u32("text"), Err(GgufError::WrongType { .. })));
    assert_eq!(metadata.opt_u32("u8").unwrap(), Some(200));
}
