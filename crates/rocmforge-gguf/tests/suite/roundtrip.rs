//! Round trips: the reader reads the writer's entries, tensors, data, alignment, files and parts.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::common::{Bytes, sample, sample_values};
use rocmforge_gguf::{Gguf, GgufError, TensorType, Value, Writer};

#[test]
fn all_value_types_and_tensors_come_back() {
    let model = Gguf::from_bytes(sample().to_bytes().unwrap()).unwrap();
    assert_eq!((model.version(), model.alignment(), model.parts()), (3, 32, 1));
    let entries: Vec<(&str, Value)> = model
        .metadata()
        .iter()
        .map(|(key, value)| (key, value.clone()))
        .collect();
    assert_eq!(entries, sample_values());
    let [a, q, last] = model.tensors() else {
        panic!("three tensors")
    };
    assert_eq!(
        (a.name.as_str(), &a.dims[..], a.ty),
        ("a", &[3, 2][..], TensorType::F32)
    );
    assert_eq!((a.elements(), a.byte_len(), a.rows()), (6, 24, 2));
    assert_eq!((q.elements(), q.byte_len(), q.rows()), (192, 204, 6));
    assert_eq!(model.tensor("last"), Some(last));
    assert_eq!(model.tensor("las"), None);
    for tensor in model.tensors() {
        let expected: Vec<u8> = (0..tensor.byte_len()).map(|i| i as u8).collect();
        assert_eq!(model.data(tensor), expected, "{}", tensor.name);
        assert_eq!(tensor.file_offset() % 32, 0);
    }
    // Nothing stands after the last tensor.
    assert_eq!(last.file_offset() + 64, model.file_len());
}

#[test]
fn smallest_file_has_256_bytes() {
    let mut writer = Writer::new();
    writer.metadata("general.architecture", "llama").unwrap();
    writer
        .tensor("output.weight", &[32, 1], TensorType::F32, vec![0; 128])
        .unwrap();
    // 24 + (8 + 20) + 4 + (8 + 5) + (8 + 13) + 4 + 16 + 4 + 8 = 122, padded to 128.
    let bytes = writer.to_bytes().unwrap();
    assert_eq!(bytes.len(), 256);
    assert_eq!(Gguf::from_bytes(bytes).unwrap().tensors()[0].file_offset(), 128);
}

#[test]
fn alignment_is_honoured() {
    for alignment in [1_u32, 2, 8, 64, 4096, 1 << 20] {
        let mut writer = Writer::new();
        writer.metadata("general.alignment", alignment).unwrap();
        writer.tensor("a", &[3], TensorType::I8, vec![1, 2, 3]).unwrap();
        writer.tensor("b", &[5], TensorType::I8, vec![4, 5, 6, 7, 8]).unwrap();
        let model = Gguf::from_bytes(writer.to_bytes().unwrap()).unwrap();
        assert_eq!(model.alignment(), alignment as usize);
        let [a, b] = model.tensors() else { panic!("two tensors") };
        assert_eq!(
            (
                a.file_offset() % u64::from(alignment),
                b.file_offset() % u64::from(alignment)
            ),
            (0, 0)
        );
        assert_eq!((model.data(a), model.data(b)), (&[1, 2, 3][..], &[4, 5, 6, 7, 8][..]));
    }
}

#[test]
fn the_writer_refuses_what_the_reader_would() {
    let mut writer = Writer::new();
    writer.metadata("k", 1_u32).unwrap();
    let at = 24 + 8 + 1 + 4 + 4;
    let error = |result: Result<&mut Writer<'static>, GgufError>| result.expect_err("refused");
    assert!(matches!(error(writer.metadata("", 1_u32)), GgufError::EmptyKey { at: a } if a == at));
    assert!(matches!(error(writer.metadata("k", 2_u32)), GgufError::DuplicateKey { at: a, .. } if a == at));
    let long = "k".repeat(65_536);
    assert!(matches!(
        error(writer.metadata(long, 1_u32)),
        GgufError::KeyTooLong { len: 65_536, .. }
    ));
    let alignment = |writer: &mut Writer<'static>, value: Value| writer.metadata("general.alignment", value).err();
    assert!(matches!(
        alignment(&mut writer, 24_u32.into()),
        Some(GgufError::BadAlignment { alignment: 24, .. })
    ));
    assert!(matches!(
        alignment(&mut writer, 32_u64.into()),
        Some(GgufError::AlignmentType { .. })
    ));

    writer.tensor("t", &[32], TensorType::Q4_0, vec![0; 18]).unwrap();
    let mut add = |name: &str, dims: &[usize], bytes: usize| {
        writer
            .tensor(name, dims, TensorType::Q4_0, vec![0; bytes])
            .expect_err("refused")
    };
    assert!(matches!(add("t", &[32], 18), GgufError::DuplicateTensor { .. }));
    assert!(matches!(add("", &[32], 18), GgufError::BadNameLength { len: 0, .. }));
    assert!(matches!(
        add(&"n".repeat(64), &[32], 18),
        GgufError::BadNameLength { len: 64, .. }
    ));
    assert!(matches!(
        add("u", &[32], 17),
        GgufError::WrongByteLength {
            found: 17,
            expected: 18,
            ..
        }
    ));
    assert!(matches!(
        add("u", &[16, 2], 18),
        GgufError::RowNotBlocks { ne0: 16, .. }
    ));
    assert!(matches!(add("u", &[], 18), GgufError::BadDimCount { n_dims: 0, .. }));
    assert!(matches!(
        add("u", &[32, 1, 1, 1, 1], 18),
        GgufError::BadDimCount { n_dims: 5, .. }
    ));
    assert!(matches!(add("u", &[32, 0], 18), GgufError::ZeroDim { axis: 1, .. }));
    assert!(matches!(
        add("u", &[32, usize::MAX], 18),
        GgufError::TensorTooLarge { .. }
    ));

    // What was refused has left nothing behind.
    let model = Gguf::from_bytes(writer.to_bytes().unwrap()).unwrap();
    assert_eq!(
        (model.metadata().len(), model.tensors().len(), model.alignment()),
        (1, 1, 32)
    );
}

#[test]
fn a_file_is_mapped_read_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, b"old").unwrap();
    sample().write_file(&path).unwrap();
    // The file beside it is gone.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    for open in [|path: &Path| Gguf::open(path), |path: &Path| Gguf::open_read(path)] {
        let model = open(&path).unwrap();
        assert_eq!(model.file_len(), std::fs::metadata(&path).unwrap().len());
        assert_eq!(model.data(&model.tensors()[0]), (0..24).collect::<Vec<u8>>());
    }
    // Mapped tensors are aligned.
    let model = Gguf::open(&path).unwrap();
    assert!(
        model
            .tensors()
            .iter()
            .all(|tensor| model.data(tensor).as_ptr().addr().is_multiple_of(32))
    );
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.gguf");
    // A folder of that name that is not empty cannot be replaced.
    std::fs::create_dir_all(path.join("inside")).unwrap();
    let error = sample().write_file(&path).unwrap_err();
    assert!(
        matches!(&error, GgufError::Io { action: "rename", path: p, .. } if *p == path),
        "{error:?}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let missing = folder.path().join("missing").join("model.gguf");
    assert!(matches!(
        sample().write_file(&missing),
        Err(GgufError::Io { action: "open", .. })
    ));

    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert!(matches!(sample().write_to(Full), Err(GgufError::Write(_))));
}

/// A named pipe that nobody writes to.
fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe.gguf");
    let status = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(status.success());
    path
}

#[test]
fn what_is_no_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.gguf");
    let error = Gguf::open(&missing).unwrap_err();
    assert!(matches!(error.root(), GgufError::Io { action: "open", .. }));
    assert!(error.to_string().contains("missing.gguf"), "{error}");
    for special in [folder.path().to_owned(), pipe(folder.path()), "/dev/zero".into()] {
        let error = Gguf::open(&special).unwrap_err();
        assert!(
            matches!(error.root(), GgufError::Io { action: "open", source, .. } if source.kind() == ErrorKind::InvalidInput),
            "{error}"
        );
        assert!(error.to_string().contains(special.to_str().unwrap()), "{error}");
    }
    let empty = folder.path().join("empty.gguf");
    std::fs::write(&empty, b"").unwrap();
    let error = Gguf::open(&empty).unwrap_err();
    assert!(
        matches!(error.root(), GgufError::Truncated { at: 0, have: 0, .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains("empty.gguf"), "{error}");
}

/// A part with one tensor of one i8.
fn part(number: u16, count: u16, tensors: i32, name: &str) -> Writer<'static> {
    let mut writer = Writer::new();
    writer
        .metadata("split.no", number)
        .unwrap()
        .metadata("split.count", count)
        .unwrap();
    writer.metadata("split.tensors.count", tensors).unwrap();
    writer
        .tensor(name.to_string(), &[1], TensorType::I8, vec![number as u8 + 10])
        .unwrap();
    writer
}

#[test]
fn parts_of_a_split_model_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = |number: u16| folder.path().join(format!("tiny-q8-{number:05}-of-00003.gguf"));
    for number in 0..3 {
        part(number, 3, 3, &format!("t{number}"))
            .write_file(path(number + 1))
            .unwrap();
    }
    let model = Gguf::open(path(1)).unwrap();
    assert_eq!((model.parts(), model.tensors().len()), (3, 3));
    for (number, tensor) in model.tensors().iter().enumerate() {
        assert_eq!((tensor.part(), model.data(tensor)), (number, &[number as u8 + 10][..]));
        assert_eq!(model.tensor(&format!("t{number}")), Some(tensor));
    }
    let sizes: u64 = (1..=3)
        .map(|number| std::fs::metadata(path(number)).unwrap().len())
        .sum();
    assert_eq!(model.file_len(), sizes);

    let root = |path: &Path| format!("{:?}", Gguf::open(path).unwrap_err().root());
    assert_eq!(root(&path(2)), "NotFirstPart { number: 1, count: 3 }");
    let renamed = folder.path().join("tiny.gguf");
    std::fs::copy(path(1), &renamed).unwrap();
    assert_eq!(root(&renamed), "BadPartName { count: 3 }");

    part(0, 3, 3, "t1").write_file(path(2)).unwrap();
    assert_eq!(root(&path(1)), "WrongPart { key: \"split.no\", found: 0, expected: 1 }");
    part(1, 4, 3, "t1").write_file(path(2)).unwrap();
    assert_eq!(
        root(&path(1)),
        "WrongPart { key: \"split.count\", found: 4, expected: 3 }"
    );
    part(1, 3, 3, "t0").write_file(path(2)).unwrap();
    let error = Gguf::open(path(1)).unwrap_err();
    assert!(
        error.to_string().contains("00002-of") && error.to_string().contains("`t0`"),
        "{error}"
    );
    part(1, 3, 3, "t1").write_file(path(2)).unwrap();
    part(0, 3, 4, "t0").write_file(path(1)).unwrap();
    assert_eq!(
        root(&path(1)),
        "WrongPart { key: \"split.tensors.count\", found: 4, expected: 3 }"
    );
    part(0, 3, 3, "t0").write_file(path(1)).unwrap();
    std::fs::remove_file(path(3)).unwrap();
    let error = Gguf::open(path(1)).unwrap_err();
    assert!(
        matches!(&error, GgufError::Io { action: "open", path: p, .. } if *p == path(3)),
        "{error:?}"
    );
}

#[test]
fn a_count_of_one_is_no_split() {
    let bytes = Bytes::header(0, 2).number("split.count", 1).number("split.no", 0);
    assert_eq!(Gguf::from_bytes(bytes.0).unwrap().parts(), 1);
}

#[test]
fn the_tensor_of_another_model_gives_no_panic() {
    let large = Gguf::from_bytes(sample().to_bytes().unwrap()).unwrap();
    let small = Gguf::from_bytes(Writer::new().to_bytes().unwrap()).unwrap();
    for tensor in large.tensors() {
        assert!(small.data(tensor).is_empty());
    }
}

#[test]
fn a_model_can_be_shared_by_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    shared(&Gguf::from_bytes(sample().to_bytes().unwrap()).unwrap());
}
