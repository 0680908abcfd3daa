//! Block functions beyond the vectors: plain types, the formats of activations, refusals, extreme values.

use half::{bf16, f16};
use rocmforge_gguf::blocks::{can_dequantize, can_quantize, dequantize, quantize};
use rocmforge_gguf::{GgufError, TensorType};

#[test]
fn f32_f16_and_bf16_copy_every_kind_of_value() {
    let values = [
        0.0,
        -0.0,
        1.0,
        f32::MIN_POSITIVE,
        1e-45,
        -1e-45,
        f32::MAX,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let mut out = [7.0; 10];
    dequantize(TensorType::F32, &quantize(TensorType::F32, &values).unwrap(), &mut out).unwrap();
    assert_eq!(out.map(f32::to_bits), values.map(f32::to_bits));

    // Halfway cases go to the even neighbour; beyond the largest f16 is infinity.
    for (value, f16_value, bf16_value) in [
        (1.0 + 2f32.powi(-11), 1.0, 1.0),
        (1.0 + 3.0 * 2f32.powi(-11), 1.0 + 2f32.powi(-9), 1.0),
        (1.0 + 2f32.powi(-8), 1.0 + 2f32.powi(-8), 1.0),
        (
            1.0 + 3.0 * 2f32.powi(-8),
            1.0 + 3.0 * 2f32.powi(-8),
            1.0 + 2f32.powi(-6),
        ),
        (65_519.0, 65_504.0, 65_536.0),
        (65_520.0, f32::INFINITY, 65_536.0),
        (2f32.powi(-25), 0.0, 2f32.powi(-25)),
        (3.0 * 2f32.powi(-25), 2f32.powi(-23), 3.0 * 2f32.powi(-25)),
    ] {
        for (ty, expected) in [(TensorType::F16, f16_value), (TensorType::Bf16, bf16_value)] {
            let mut out = [f32::NAN];
            dequantize(ty, &quantize(ty, &[value]).unwrap(), &mut out).unwrap();
            assert_eq!(out[0].to_bits(), expected.to_bits(), "{ty} of {value}");
        }
    }
    for ty in [TensorType::F16, TensorType::Bf16] {
        let mut out = [0.0];
        dequantize(ty, &quantize(ty, &[f32::NAN]).unwrap(), &mut out).unwrap();
        assert!(out[0].is_nan(), "{ty}");
    }
}

#[test]
fn every_f16_and_bf16_decodes_as_the_half_crate_says() {
    let bytes: Vec<u8> = (0..=u16::MAX).flat_map(u16::to_le_bytes).collect();
    let mut out = vec![7.0; 65_536];
    dequantize(TensorType::F16, &bytes, &mut out).unwrap();
    let equal = |ours: f32, theirs: f32| ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan());
    for (bits, value) in (0..=u16::MAX).zip(&out) {
        assert!(equal(*value, f16::from_bits(bits).to_f32()), "{bits:#06x}");
    }
    dequantize(TensorType::Bf16, &bytes, &mut out).unwrap();
    for (bits, value) in (0..=u16::MAX).zip(&out) {
        assert!(equal(*value, bf16::from_bits(bits).to_f32()), "{bits:#06x}");
    }
}

#[test]
fn one_and_two_bits_decode_by_their_definition() {
    // A scale, then all bytes from 0x5a on: 16 of each block.
    let block = |first: u8| {
        let scale = f16::from_f32(-0.75).to_le_bytes();
        scale.into_iter().chain((0..16).map(move |i| first.wrapping_mul(i + 1)))
    };
    let bytes: Vec<u8> = block(0x5a).chain(block(0x37)).collect();
    let bit = |at: usize| i32::from(bytes[at / 8] >> (at % 8) & 1);
    let mut out = [f32::NAN; 256];
    dequantize(TensorType::Q1_0, &bytes, &mut out).unwrap();
    for (i, value) in out.iter().enumerate() {
        let set = bit(8 * (18 * (i / 128) + 2) + i % 128) == 1;
        assert_eq!(*value, if set { -0.75 } else { 0.75 }, "q1_0 {i}");
    }
    let mut out = [f32::NAN; 128];
    dequantize(TensorType::Q2_0, &bytes, &mut out).unwrap();
    for (i, value) in out.iter().enumerate() {
        let at = 8 * (18 * (i / 64) + 2) + 2 * (i % 64);
        let number = bit(at) + 2 * bit(at + 1) - 1;
        assert_eq!(f64::from(*value), f64::from(number) * -0.75, "q2_0 {i}");
    }
}

#[test]
fn activations_decode_by_their_definition() {
    // q8_1: f16 scale, f16 sum (not used), 32 numbers. Two blocks, so that the second is found.
    let mut bytes = Vec::new();
    for block in 0..2 {
        bytes.extend(f16::from_f32(0.375 - block as f32).to_le_bytes());
        bytes.extend(f16::from_f32(1000.0).to_le_bytes());
        bytes.extend((0..32).map(|i| (8 * i) as u8));
    }
    let mut out = [f32::NAN; 64];
    dequantize(TensorType::Q8_1, &bytes, &mut out).unwrap();
    for (i, value) in out.iter().enumerate() {
        let number = f64::from((8 * (i % 32)) as u8 as i8);
        assert_eq!(f64::from(*value), number * (0.375 - (i / 32) as f64), "q8_1 {i}");
    }
    // q8_K: f32 scale, 256 numbers, 16 sums (not used).
    let mut bytes = (-0.625_f32).to_le_bytes().to_vec();
    bytes.extend(0..=255_u8);
    bytes.extend([0xaa; 32]);
    let mut out = [f32::NAN; 256];
    dequantize(TensorType::Q8K, &bytes, &mut out).unwrap();
    for (i, value) in out.iter().enumerate() {
        assert_eq!(f64::from(*value), f64::from(i as u8 as i8) * -0.625, "q8_K {i}");
    }
}

#[test]
fn lengths_and_types_are_checked() {
    let mut out = [7.0; 32];
    let partial = dequantize(TensorType::Q4_0, &[0; 17], &mut out);
    assert!(matches!(
        partial,
        Err(GgufError::PartialBlock {
            ty: TensorType::Q4_0,
            len: 17,
            block_bytes: 18
        })
    ));
    for len in [0, 31, 33, 64] {
        let mut out = vec![7.0; len];
        let error = dequantize(TensorType::Q4_0, &[0; 18], &mut out).unwrap_err();
        assert!(matches!(error, GgufError::WrongOutputLength { expected: 32, found, .. } if found == len));
        assert!(out.iter().all(|value| *value == 7.0));
    }
    let partial = quantize(TensorType::Q4K, &[0.0; 255]).unwrap_err();
    assert!(matches!(
        partial,
        GgufError::PartialBlockValues {
            ty: TensorType::Q4K,
            len: 255,
            block_len: 256
        }
    ));
    assert!(quantize(TensorType::Q4K, &[]).unwrap().is_empty());
    dequantize(TensorType::Q4K, &[], &mut []).unwrap();

    let without: Vec<&str> = TensorType::ALL
        .iter()
        .filter(|ty| !can_dequantize(**ty))
        .map(|ty| ty.name())
        .collect();
    let expected = "i8 i16 i32 i64 f64";
    assert_eq!(without.join(" "), expected);
    for &ty in TensorType::ALL {
        let mut out = vec![7.0; ty.block_len()];
        let result = dequantize(ty, &vec![0; ty.block_bytes()], &mut out);
        match can_dequantize(ty) {
            true => assert!(result.is_ok() && out.iter().all(|value| *value == 0.0), "{ty}"),
            false => assert!(matches!(result, Err(GgufError::NoDecoder { ty: t }) if t == ty), "{ty}"),
        }
        let result = quantize(ty, &vec![0.0; ty.block_len()]);
        match can_quantize(ty) {
            true => assert_eq!(result.unwrap().len(), ty.block_bytes(), "{ty}"),
            false => assert!(matches!(result, Err(GgufError::NoEncoder { ty: t }) if t == ty), "{ty}"),
        }
    }
}

#[test]
fn no_values_make_an_encoder_panic() {
    let extremes = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN,
        f32::MIN_POSITIVE,
        1e-45,
        0.0,
        -0.0,
        1.0,
    ];
    for &ty in TensorType::ALL.iter().filter(|ty| can_quantize(**ty)) {
        for a in 0..10 {
            for b in 0..10 {
                let values: Vec<f32> = (0..256).map(|i| extremes[if i % 3 == 0 { a } else { b }]).collect();
                let bytes = quantize(ty, &values).unwrap();
                let mut out = vec![0.0; 256];
                dequantize(ty, &bytes, &mut out).unwrap();
            }
        }
    }
}
