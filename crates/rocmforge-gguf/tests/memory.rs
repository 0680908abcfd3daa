//! Memory that reading takes: by what is in the file, not by what its counts claim, and never for tensor data.

mod common;

use common::Bytes;
use rocmforge_gguf::{Gguf, GgufError, TensorType, Writer};
use rocmforge_test_support::allocator::{Counting, asked};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;

#[test]
fn a_claimed_count_takes_no_memory() {
    // 64 MiB of zeros, claimed to be as many entries, tensors or strings as they could hold.
    let rest = 64 * MIB as u64;
    let array = Bytes::header(0, 1).text("k").u32(9);
    for (what, head) in [
        ("entries", Bytes::header(0, rest / 14)),
        ("tensors", Bytes::header(rest / 25, 0)),
        ("strings", array.u32(8).u64(rest / 8).u64(1 << 40)),
    ] {
        let mut bytes = head.0;
        bytes.resize(bytes.len() + rest as usize, 0);
        let (size, result) = asked(|| Gguf::from_bytes(bytes));
        assert!(result.is_err(), "{what}");
        assert!(size < 16 * MIB, "{what}: {size} bytes");
    }
}

/// All of it is in the file, and each thing takes many times its bytes there.
#[test]
fn more_than_any_model_has_is_refused() {
    let most = |what: &str, head: Bytes, bytes: usize| {
        let mut file = head.0;
        file.resize(file.len() + bytes, 0);
        let (size, result) = asked(|| Gguf::from_bytes(file));
        assert!(size < 16 * MIB, "{what}: {size} bytes");
        match result.expect_err(what) {
            GgufError::TooMany { most, .. } => most,
            error => panic!("{what}: {error}"),
        }
    };
    assert_eq!(most("entries", Bytes::header(0, 65_537), 14 * 65_537), 65_536);
    assert_eq!(most("tensors", Bytes::header(262_145, 0), 25 * 262_145), 262_144);
    // Empty ones of two lists, the first of which is as long as it may be.
    let list = |head: Bytes, key: &str, count: u64| head.text(key).u32(9).u32(8).u64(count);
    let head = list(Bytes::header(0, 1), "k", 4_194_305);
    assert_eq!(most("strings", head, 8 * 4_194_305), 4_194_304);
    let first = list(Bytes::header(0, 2), "k", 4).raw(&[0; 32]);
    assert_eq!(
        most("more strings", list(first, "l", 4_194_301), 8 * 4_194_301),
        4_194_300
    );
}

#[test]
fn tensor_data_are_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    let mut writer = Writer::new();
    writer
        .tensor("t", &[MIB, 16], TensorType::F32, vec![1; 64 * MIB])
        .unwrap();
    writer.write_file(&path).unwrap();
    let (size, model) = asked(|| {
        let model = Gguf::open(&path).unwrap();
        assert_eq!(model.data(&model.tensors()[0]).len(), 64 * MIB);
        model
    });
    assert!(size < MIB, "{size} bytes");
    assert!(model.data(&model.tensors()[0]).iter().all(|byte| *byte == 1));
}
