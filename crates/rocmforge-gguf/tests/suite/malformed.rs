//! Malformed files: each is refused with the error and the figures that belong to it.

use crate::common::{Bytes, sample};
use rocmforge_gguf::{Gguf, GgufError, TensorType};

type Check = fn(&GgufError) -> bool;

macro_rules! is {
    ($pattern:pat $(if $guard:expr)?) => {
        |error| matches!(error, $pattern $(if $guard)?)
    };
}

/// A tensor table of one entry, with data enough for 32 f32.
fn one(dims: &[u64], ty: u32, offset: u64) -> Bytes {
    Bytes::header(1, 0).tensor("t", dims, ty, offset).data(128)
}

/// A file of one entry under key `k`, from its type on.
fn entry() -> Bytes {
    Bytes::header(0, 1).text("k")
}

/// What is wrong, the file, whether the error is the right one.
fn cases() -> Vec<(&'static str, Bytes, Check)> {
    vec![
        (
            "empty",
            Bytes::default(),
            is!(GgufError::Truncated {
                at: 0,
                need: 4,
                have: 0,
                ..
            }),
        ),
        (
            "magic",
            Bytes(b"GGML".to_vec()).u32(3).u64(0).u64(0),
            is!(GgufError::BadMagic {
                found: [71, 71, 77, 76]
            }),
        ),
        (
            "version 0",
            Bytes(b"GGUF".to_vec()).u32(0).u64(0).u64(0),
            is!(GgufError::UnknownVersion { version: 0 }),
        ),
        (
            "version 1",
            Bytes(b"GGUF".to_vec()).u32(1).u32(0).u32(0),
            is!(GgufError::Version1),
        ),
        (
            "version 4",
            Bytes(b"GGUF".to_vec()).u32(4).u64(0).u64(0),
            is!(GgufError::UnknownVersion { version: 4 }),
        ),
        (
            "big endian",
            Bytes(b"GGUF".to_vec()).raw(&3_u32.to_be_bytes()).raw(&[0; 16]),
            is!(GgufError::OtherEndianness { version: 0x0300_0000 }),
        ),
        (
            "too many entries",
            Bytes::header(0, 4).raw(&[0; 55]),
            is!(GgufError::TooMany {
                what: "metadata entries",
                at: 16,
                count: 4,
                most: 3
            }),
        ),
        (
            "entries without end",
            Bytes::header(0, u64::MAX),
            is!(GgufError::TooMany {
                count: u64::MAX,
                most: 0,
                ..
            }),
        ),
        (
            "too many tensors",
            Bytes::header(3, 0).raw(&[0; 74]),
            is!(GgufError::TooMany {
                what: "tensors",
                at: 8,
                count: 3,
                most: 2
            }),
        ),
        (
            "too many tensors after the metadata",
            Bytes::header(2, 1).number("k", 1).raw(&[0; 49]),
            is!(GgufError::TooMany {
                what: "tensors",
                at: 8,
                count: 2,
                most: 1
            }),
        ),
        (
            "empty key",
            Bytes::header(0, 1).text("").u32(4).u32(0),
            is!(GgufError::EmptyKey { at: 24 }),
        ),
        (
            "key with an escape",
            Bytes::header(0, 1).text("k\u{1b}[2J").u32(4).u32(0),
            is!(GgufError::ControlCharacter {
                what: "a metadata key",
                at: 24,
                character: '\u{1b}'
            }),
        ),
        (
            "tensor name with a line break",
            Bytes::header(1, 0).tensor("a\nb", &[32], 0, 0).data(128),
            is!(GgufError::ControlCharacter {
                what: "a tensor name",
                character: '\n',
                ..
            }),
        ),
        (
            "long key",
            Bytes::header(0, 1).text(&"k".repeat(65_536)).u32(4).u32(0),
            is!(GgufError::KeyTooLong {
                at: 24,
                len: 65_536,
                most: 65_535
            }),
        ),
        (
            "key past the end",
            Bytes::header(0, 1).u64(9).raw(b"key.names"),
            is!(GgufError::Truncated {
                what: "a metadata value's type",
                at: 41,
                need: 4,
                have: 0
            }),
        ),
        (
            "duplicate key",
            Bytes::header(0, 2).number("k", 1).number("k", 1),
            is!(GgufError::DuplicateKey { key, at: 41 } if key == "k"),
        ),
        (
            "key that is no UTF-8",
            Bytes::header(0, 1).u64(3).raw(b"ab\xff").u32(4).u32(0),
            is!(GgufError::NotUtf8 {
                what: "a metadata key",
                at: 32,
                valid: 2
            }),
        ),
        (
            "value type",
            entry().u32(13).u32(0),
            is!(GgufError::UnknownValueType { id: 13, at: 33, .. }),
        ),
        (
            "element type",
            entry().u32(9).u32(77).u64(0),
            is!(GgufError::UnknownValueType { id: 77, at: 37, .. }),
        ),
        (
            "nested array",
            entry().u32(9).u32(9).u64(1),
            is!(GgufError::NestedArray { at: 37, .. }),
        ),
        (
            "bool of 2",
            entry().u32(7).raw(&[2]),
            is!(GgufError::BadBool { value: 2, at: 37, .. }),
        ),
        (
            "bools with a 255",
            entry().u32(9).u32(7).u64(3).raw(&[1, 0, 255]),
            is!(GgufError::BadBool { value: 255, at: 51, .. }),
        ),
        (
            "string past the end",
            entry().u32(8).u64(6).raw(b"abcde"),
            is!(GgufError::TooMany {
                what: "bytes of a metadata string",
                at: 37,
                count: 6,
                most: 5
            }),
        ),
        (
            "string that is no UTF-8",
            entry().u32(8).u64(2).raw(b"\xc3\x28"),
            is!(GgufError::NotUtf8 {
                what: "a metadata string",
                at: 45,
                valid: 0
            }),
        ),
        (
            "array past the end",
            entry().u32(9).u32(4).u64(3).raw(&[0; 11]),
            is!(GgufError::TooMany {
                what: "array elements",
                at: 41,
                count: 3,
                most: 2
            }),
        ),
        (
            "strings past the end",
            entry().u32(9).u32(8).u64(1 << 61).raw(&[0; 16]),
            is!(GgufError::TooMany {
                what: "array elements",
                at: 41,
                most: 2,
                ..
            }),
        ),
        (
            "value cut off",
            entry().u32(10).raw(&[0; 7]),
            is!(GgufError::Truncated {
                what: "a metadata value",
                at: 37,
                need: 8,
                have: 7
            }),
        ),
        (
            "alignment of 48",
            Bytes::header(0, 1).number("general.alignment", 48),
            is!(GgufError::BadAlignment { alignment: 48, .. }),
        ),
        (
            "alignment of 0",
            Bytes::header(0, 1).number("general.alignment", 0),
            is!(GgufError::BadAlignment { alignment: 0, .. }),
        ),
        (
            "alignment of 2 MiB",
            Bytes::header(0, 1).number("general.alignment", 1 << 21),
            is!(GgufError::BadAlignment {
                alignment: 2_097_152,
                most: 1_048_576
            }),
        ),
        (
            "alignment as text",
            Bytes::header(0, 1).text("general.alignment").u32(8).text("32"),
            is!(GgufError::AlignmentType { .. }),
        ),
        (
            "name of 64 bytes",
            Bytes::header(1, 0).tensor(&"n".repeat(64), &[32], 0, 0).data(128),
            is!(GgufError::BadNameLength {
                at: 24,
                len: 64,
                most: 63
            }),
        ),
        (
            "empty name",
            Bytes::header(1, 0).tensor("", &[32], 0, 0).data(128),
            is!(GgufError::BadNameLength { at: 24, len: 0, .. }),
        ),
        (
            "no dimension",
            one(&[], 0, 0),
            is!(GgufError::BadDimCount { n_dims: 0, .. }),
        ),
        (
            "five dimensions",
            one(&[1; 5], 0, 0),
            is!(GgufError::BadDimCount { n_dims: 5, .. }),
        ),
        (
            "dimension of 0",
            one(&[32, 0], 0, 0),
            is!(GgufError::ZeroDim { axis: 1, .. }),
        ),
        (
            "overflow",
            one(&[1 << 32, 1 << 32], 0, 0),
            is!(GgufError::TensorTooLarge { .. }),
        ),
        (
            "over i64",
            one(&[1 << 63], 24, 0),
            is!(GgufError::TensorTooLarge { .. }),
        ),
        (
            "bytes over i64",
            one(&[1 << 61], 28, 0),
            is!(GgufError::TensorTooLarge { .. }),
        ),
        (
            "dead type",
            one(&[32], 4, 0),
            is!(GgufError::UnknownTensorType { id: 4, .. }),
        ),
        (
            "unknown type",
            one(&[32], 99, 0),
            is!(GgufError::UnknownTensorType { id: 99, .. }),
        ),
        (
            "partial block",
            one(&[33], 2, 0),
            is!(GgufError::RowNotBlocks {
                ne0: 33,
                ty: TensorType::Q4_0,
                block_len: 32,
                ..
            }),
        ),
        (
            "blocks over rows",
            one(&[16, 2], 2, 0),
            is!(GgufError::RowNotBlocks {
                ne0: 16,
                ty: TensorType::Q4_0,
                ..
            }),
        ),
        (
            "first offset",
            one(&[1], 0, 32),
            is!(GgufError::BadOffset {
                offset: 32,
                expected: 0,
                ..
            }),
        ),
        (
            "overlap",
            Bytes::header(2, 0)
                .tensor("a", &[32], 0, 0)
                .tensor("b", &[32], 0, 64)
                .data(256),
            is!(GgufError::BadOffset { name, offset: 64, expected: 128 } if name == "b"),
        ),
        (
            "gap",
            Bytes::header(2, 0)
                .tensor("a", &[32], 0, 0)
                .tensor("b", &[1], 0, 160)
                .data(256),
            is!(GgufError::BadOffset {
                offset: 160,
                expected: 128,
                ..
            }),
        ),
        (
            "data past the end",
            one(&[33], 0, 0),
            is!(GgufError::TensorPastEnd {
                end: 196,
                file_len: 192,
                ..
            }),
        ),
        (
            "duplicate tensor",
            Bytes::header(2, 0)
                .tensor("a", &[8], 0, 0)
                .tensor("a", &[8], 0, 32)
                .data(64),
            is!(GgufError::DuplicateTensor { name } if name == "a"),
        ),
        (
            "part without its siblings",
            Bytes::header(0, 1).number("split.count", 2),
            is!(GgufError::SplitInMemory { count: 2 }),
        ),
    ]
}

#[test]
fn malformed_files_are_refused_with_their_figures() {
    for (what, bytes, check) in cases() {
        let error = Gguf::from_bytes(bytes.0)
            .err()
            .unwrap_or_else(|| panic!("{what}: it was read"));
        assert!(check(&error), "{what}: {error:?}");
        let text = error.to_string();
        assert!(!text.is_empty() && !text.contains('\n'), "{what}: {text}");
    }
}

#[test]
fn the_same_pieces_make_valid_files() {
    // The table above would prove little if these were refused.
    for (what, bytes) in [
        ("empty", Bytes::header(0, 0)),
        ("entry", Bytes::header(0, 1).number("k", 1)),
        ("tensor", one(&[32], 0, 0)),
        ("four dimensions", one(&[2, 2, 4, 2], 0, 0)),
        (
            "name of 63 bytes",
            Bytes::header(1, 0).tensor(&"n".repeat(63), &[32], 0, 0).data(128),
        ),
        ("long key", Bytes::header(0, 1).number(&"k".repeat(65_535), 1)),
        (
            "two tensors",
            Bytes::header(2, 0)
                .tensor("a", &[31], 0, 0)
                .tensor("b", &[32], 0, 128)
                .data(256),
        ),
        ("alignment of 8", Bytes::header(0, 1).number("general.alignment", 8)),
        ("bools", entry().u32(9).u32(7).u64(2).raw(&[1, 0])),
    ] {
        if let Err(error) = Gguf::from_bytes(bytes.0) {
            panic!("{what}: {error}");
        }
    }
}

#[test]
fn version_2_is_read() {
    let mut bytes = sample().to_bytes().unwrap();
    bytes[4] = 2;
    let model = Gguf::from_bytes(bytes).unwrap();
    assert_eq!((model.version(), model.tensors().len()), (2, 3));
}

#[test]
fn every_prefix_is_refused() {
    let bytes = sample().to_bytes().unwrap();
    assert!(Gguf::from_bytes(bytes.clone()).is_ok());
    for len in 0..bytes.len() {
        let error = Gguf::from_bytes(bytes[..len].to_vec())
            .err()
            .unwrap_or_else(|| panic!("{len} bytes were read"));
        let expected = matches!(
            error,
            GgufError::Truncated { .. } | GgufError::TooMany { .. } | GgufError::TensorPastEnd { .. }
        );
        assert!(expected, "{len} bytes: {error:?}");
    }
}
