//! Properties: any model survives writing and reading, and no bytes make the reader panic.

use crate::common::sample;
use proptest::collection::vec;
use proptest::prelude::*;
use rocmforge_gguf::{Array, Gguf, TensorType, Value, Writer, blocks};

/// Any value but NaN, which is not equal to itself.
fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<u8>().prop_map(Value::U8),
        any::<i8>().prop_map(Value::I8),
        any::<u16>().prop_map(Value::U16),
        any::<i16>().prop_map(Value::I16),
        any::<u32>().prop_map(Value::U32),
        any::<i32>().prop_map(Value::I32),
        any::<u64>().prop_map(Value::U64),
        any::<i64>().prop_map(Value::I64),
        prop::num::f32::ANY
            .prop_filter("equal to itself", |x| !x.is_nan())
            .prop_map(Value::F32),
        prop::num::f64::ANY
            .prop_filter("equal to itself", |x| !x.is_nan())
            .prop_map(Value::F64),
        any::<bool>().prop_map(Value::Bool),
        any::<String>().prop_map(Value::String),
        vec(any::<u8>(), 0..9).prop_map(|items| Array::U8(items).into()),
        vec(any::<i16>(), 0..9).prop_map(|items| Array::I16(items).into()),
        vec(any::<i32>(), 0..9).prop_map(|items| Array::I32(items).into()),
        vec(any::<u64>(), 0..9).prop_map(|items| Array::U64(items).into()),
        vec(any::<bool>(), 0..9).prop_map(|items| Array::Bool(items).into()),
        vec(any::<String>(), 0..9).prop_map(|items| Array::String(items).into()),
    ]
}

type Tensor = (TensorType, Vec<usize>, u8);

/// Type, dimensions (a whole number of blocks) and a byte to fill with.
fn tensor() -> impl Strategy<Value = Tensor> {
    let ty = prop::sample::select(TensorType::ALL);
    (ty, vec(1_usize..4, 1..=4), any::<u8>()).prop_map(|(ty, mut dims, fill)| {
        dims[0] *= ty.block_len();
        (ty, dims, fill)
    })
}

/// Uses everything a model has; panics are what is looked for.
fn use_all(model: &Gguf) {
    for tensor in model.tensors() {
        let data = model.data(tensor);
        assert_eq!(data.len(), tensor.byte_len());
        assert!(tensor.rows() > 0);
        let mut out = vec![0.0; tensor.elements()];
        assert_eq!(
            blocks::dequantize(tensor.ty, data, &mut out).is_ok(),
            blocks::can_dequantize(tensor.ty)
        );
    }
}

proptest! {
    #[test]
    fn models_survive_writing_and_reading(
        entries in prop::collection::btree_map("[a-z.]{1,20}", value(), 0..12),
        tensors in vec(tensor(), 0..6),
        alignment in prop::option::of(0_u32..9),
    ) {
        let mut writer = Writer::new();
        if let Some(bits) = alignment {
            writer.metadata("general.alignment", 1_u32 << bits).unwrap();
        }
        for (key, value) in &entries {
            writer.metadata(key.as_str(), value.clone()).unwrap();
        }
        for (i, (ty, dims, fill)) in tensors.iter().enumerate() {
            let bytes = ty.row_bytes(dims.iter().product()).unwrap();
            writer.tensor(format!("t{i}"), dims, *ty, vec![*fill; bytes]).unwrap();
        }
        let model = Gguf::from_bytes(writer.to_bytes().unwrap()).unwrap();
        prop_assert_eq!(model.metadata().len(), entries.len() + usize::from(alignment.is_some()));
        for (key, value) in &entries {
            prop_assert_eq!(model.metadata().get(key), Some(value));
        }
        prop_assert_eq!(model.tensors().len(), tensors.len());
        for (info, (ty, dims, fill)) in model.tensors().iter().zip(&tensors) {
            prop_assert_eq!((info.ty, &info.dims), (*ty, dims));
            prop_assert_eq!(info.file_offset() % model.alignment() as u64, 0);
            prop_assert!(model.data(info).iter().all(|byte| byte == fill));
        }
        use_all(&model);
    }

    #[test]
    fn arbitrary_bytes_never_panic(mut bytes in vec(any::<u8>(), 0..400), head in any::<bool>()) {
        if head {
            let start = [&b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0"[..], &bytes].concat();
            bytes = start;
        }
        if let Ok(model) = Gguf::from_bytes(bytes) {
            use_all(&model);
        }
    }

    #[test]
    fn several_changed_bytes_never_panic(changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = sample().to_bytes().unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(model) = Gguf::from_bytes(bytes) {
            use_all(&model);
        }
    }

    #[test]
    fn encoded_values_decode_near_themselves(values in vec(-8.0_f32..8.0, 256)) {
        // Half a step of the widest block, plus the rounding of the scales.
        let bound = |ty| match ty {
            TensorType::F32 => 0.0,
            TensorType::F16 => 8.0 / 2048.0,
            TensorType::Bf16 => 8.0 / 256.0,
            TensorType::Q8_0 | TensorType::Q8_1 | TensorType::Q8K => 0.08,
            TensorType::Q6K => 0.6,
            TensorType::Q5_0 | TensorType::Q5_1 | TensorType::Q5K => 1.1,
            TensorType::Q4_0 | TensorType::Q4_1 | TensorType::Q4K => 2.1,
            _ => 8.0,
        };
        for &ty in TensorType::ALL.iter().filter(|ty| blocks::can_quantize(**ty)) {
            let bytes = blocks::quantize(ty, &values).unwrap();
            let mut out = vec![f32::NAN; values.len()];
            blocks::dequantize(ty, &bytes, &mut out).unwrap();
            for (x, y) in values.iter().zip(&out) {
                prop_assert!((x - y).abs() <= bound(ty), "{ty}: {x} came back as {y}");
            }
        }
    }
}

#[test]
fn no_single_changed_byte_panics() {
    let bytes = sample().to_bytes().unwrap();
    let mut refused = 0;
    for at in 0..bytes.len() {
        for byte in [bytes[at] ^ 1, bytes[at] ^ 0x80, 0, 0xff] {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            match Gguf::from_bytes(bytes) {
                Ok(model) => use_all(&model),
                Err(error) => {
                    assert!(!error.to_string().is_empty());
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 1000, "{refused}");
}
