//! Any bytes: a GGUF file whose metadata and tensors can all be used, or a typed error.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rocmforge_gguf::{Gguf, Writer, blocks};

/// Tensors beyond this are not decoded: time, not safety.
const MAX_ELEMENTS: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let model = match Gguf::from_bytes(bytes.to_vec()) {
        Ok(model) => model,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let metadata = model.metadata();
    let mut writer = Writer::new();
    for (key, value) in metadata.iter() {
        assert!(!value.to_string().is_empty() || metadata.string(key).is_ok_and(str::is_empty));
        let typed = [
            metadata.string(key).is_ok(),
            metadata.u32(key).is_ok(),
            metadata.i32(key).is_ok(),
            metadata.u64(key).is_ok(),
            metadata.usize(key).is_ok(),
            metadata.f32(key).is_ok(),
            metadata.bool(key).is_ok(),
            metadata.strings(key).is_ok(),
            metadata.bools(key).is_ok(),
            metadata.f32s(key).is_ok(),
            metadata.i32s(key).is_ok(),
            metadata.u32s(key).is_ok(),
        ];
        assert!(typed.iter().filter(|ok| **ok).count() <= 4);
        writer
            .metadata(key, value.clone())
            .expect("what was read can be written");
    }
    for tensor in model.tensors() {
        assert_eq!(model.tensor(&tensor.name), Some(tensor));
        let data = model.data(tensor);
        assert_eq!(data.len(), tensor.byte_len());
        assert_eq!(tensor.rows() * tensor.dims[0], tensor.elements());
        if tensor.elements() <= MAX_ELEMENTS {
            let mut out = vec![0.0; tensor.elements()];
            assert_eq!(
                blocks::dequantize(tensor.ty, data, &mut out).is_ok(),
                blocks::can_dequantize(tensor.ty)
            );
            let ones = vec![1.0; tensor.dims[0]];
            let mut products = vec![0.0; tensor.rows()];
            assert_eq!(
                blocks::dots(tensor.ty, data, &ones, &mut products).is_ok(),
                blocks::can_dequantize(tensor.ty)
            );
        }
        writer
            .tensor(tensor.name.as_str(), &tensor.dims, tensor.ty, data)
            .expect("what was read can be written");
    }
    let again = Gguf::from_bytes(writer.to_bytes().expect("memory")).expect("what was written can be read");
    assert_eq!(again.tensors().len(), model.tensors().len());
    assert_eq!(again.metadata().len(), metadata.len());
});
