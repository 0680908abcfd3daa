//! A small valid file with every value type, and its bytes piece by piece.
#![allow(dead_code, reason = "each test binary uses its part")]

use rocmforge_gguf::{TensorType, Value, Writer};

/// One value of each type and one array of each element type.
pub(crate) fn sample_values() -> Vec<(&'static str, Value)> {
    vec![
        ("general.architecture", "llama".into()),
        ("u8", 200_u8.into()),
        ("i8", (-100_i8).into()),
        ("u16", 60_000_u16.into()),
        ("i16", (-30_000_i16).into()),
        ("u32", 4_000_000_000_u32.into()),
        ("i32", (-2_000_000_000_i32).into()),
        ("f32", 0.1_f32.into()),
        ("bool", true.into()),
        ("empty", "".into()),
        ("text", "größer 🙂\0".into()),
        ("u64", u64::MAX.into()),
        ("i64", i64::MIN.into()),
        ("f64", 0.1_f64.into()),
        ("u8s", vec![1_u8, 2, 3].into()),
        ("i8s", vec![-1_i8, 2].into()),
        ("u16s", vec![1_u16].into()),
        ("i16s", vec![-1_i16].into()),
        ("u32s", vec![1_u32, u32::MAX].into()),
        ("i32s", vec![i32::MIN, 1].into()),
        ("f32s", vec![1.5_f32, -0.0].into()),
        ("bools", vec![true, false, true].into()),
        ("strings", vec!["a".to_string(), String::new(), "ü".to_string()].into()),
        ("u64s", vec![u64::MAX].into()),
        ("i64s", vec![i64::MIN].into()),
        ("f64s", vec![1e300_f64].into()),
        ("none", Vec::<u32>::new().into()),
    ]
}

/// A file with [`sample_values`], and three tensors: f32 `[3, 2]`, q8_0 `[32, 3, 1, 2]`, and one of 64 bytes at the
/// end, so that the last tensor needs no padding.
pub(crate) fn sample() -> Writer<'static> {
    let mut writer = Writer::new();
    for (key, value) in sample_values() {
        writer.metadata(key, value).unwrap();
    }
    let bytes = |count: usize| (0..count).map(|i| i as u8).collect::<Vec<u8>>();
    writer.tensor("a", &[3, 2], TensorType::F32, bytes(24)).unwrap();
    writer
        .tensor("blk.0.attn_q.weight", &[32, 3, 1, 2], TensorType::Q8_0, bytes(6 * 34))
        .unwrap();
    writer.tensor("last", &[64], TensorType::I8, bytes(64)).unwrap();
    writer
}

/// Bytes of a file, put together by hand.
#[derive(Clone, Default)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl Bytes {
    /// Header of version 3 with these counts.
    pub(crate) fn header(tensors: u64, entries: u64) -> Bytes {
        Bytes(b"GGUF".to_vec()).u32(3).u64(tensors).u64(entries)
    }

    pub(crate) fn u32(self, value: u32) -> Bytes {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn u64(self, value: u64) -> Bytes {
        self.raw(&value.to_le_bytes())
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Bytes {
        self.0.extend(bytes);
        self
    }

    pub(crate) fn text(self, text: &str) -> Bytes {
        self.u64(text.len() as u64).raw(text.as_bytes())
    }

    /// A `u32` entry.
    pub(crate) fn number(self, key: &str, value: u32) -> Bytes {
        self.text(key).u32(4).u32(value)
    }

    /// A tensor's entry.
    pub(crate) fn tensor(self, name: &str, dims: &[u64], ty: u32, offset: u64) -> Bytes {
        let head = self.text(name).u32(dims.len() as u32);
        dims.iter().fold(head, |bytes, &dim| bytes.u64(dim)).u32(ty).u64(offset)
    }

    /// Zeros to the next multiple of 32, then `count` more.
    pub(crate) fn data(mut self, count: usize) -> Bytes {
        let len = self.0.len().next_multiple_of(32) + count;
        self.0.resize(len, 0);
        self
    }
}
