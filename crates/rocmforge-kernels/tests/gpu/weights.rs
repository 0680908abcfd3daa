//! Products with weights of every type, and rows of them.

use crate::support::{Device, SIZES, device};
use rocmforge_kernels::{WeightType, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{Rng, rng};

/// Where a type keeps its f16 numbers.
fn halves(ty: WeightType) -> &'static [usize] {
    match ty {
        WeightType::Q4_0 | WeightType::Q5_0 | WeightType::Q8_0 | WeightType::Iq4Nl | WeightType::Iq4Xs => &[0],
        WeightType::Q4_1 | WeightType::Q5_1 | WeightType::Q4K | WeightType::Q5K => &[0, 2],
        WeightType::Q2K => &[80, 82],
        WeightType::Q3K => &[108],
        WeightType::Q6K => &[208],
        _ => &[],
    }
}

/// Any bytes, but scales of moderate size: of either sign, some of them denormal.
pub(crate) fn blocks(ty: WeightType, random: &mut Rng, n: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..n * ty.block_bytes()).map(|_| random.next_u64() as u8).collect();
    for block in bytes.chunks_mut(ty.block_bytes()) {
        // The largest weights of a block are about 2^9 (K-quants: 2^12) times its scale.
        let below = if ty.block_len() == 256 { 0x0800 } else { 0x1800 };
        let mut scale = || (random.next_u64() as u16 % below) | (random.next_u64() as u16 & 0x8000);
        for &at in halves(ty) {
            block[at..at + 2].copy_from_slice(&scale().to_le_bytes());
        }
        match ty {
            WeightType::F32 => block.copy_from_slice(&random.vec(1)[0].to_le_bytes()),
            WeightType::F16 => block.copy_from_slice(&(scale() + 0x1800).to_le_bytes()),
            WeightType::Bf16 => block.copy_from_slice(&random.vec(1)[0].to_le_bytes()[2..]),
            WeightType::Mxfp4 => block[0] = block[0] % 8 + 118,
            _ => {}
        }
    }
    bytes
}

/// Depths to test: whole blocks, and for floats any.
fn depths(ty: WeightType) -> Vec<usize> {
    match ty.block_len() {
        1 => SIZES.into_iter().chain([7, 8, 9, 300]).collect(),
        32 => vec![32, 64, 224, 288, 576],
        _ => vec![256, 768],
    }
}

pub(crate) fn up(d: &Device, bytes: &[u8]) -> HipBuffer<u8> {
    HipBuffer::from_slice(d.stream(), bytes, "weights").expect("upload")
}

/// One product against the reference.
fn product(d: &Device, ty: WeightType, [m, n, k]: [usize; 3], with_bias: bool) {
    let mut random = rng((m * 1_000_000 + n * 1000 + k) as u64);
    let w = blocks(ty, &mut random, n * k / ty.block_len());
    let (x, bias) = (random.vec_in(m * k, -1.0, 1.0), random.vec(n));
    let bias = with_bias.then_some(bias.as_slice());
    let (weights, input, y) = (up(d, &w), d.up(&x), d.out(m * n));
    let added = bias.map(|bias| d.up(bias));
    d.kernels
        .matmul_weight(d.stream(), ty, &weights, &input, added.as_ref(), &y, m, n, k)
        .unwrap();
    let expected = reference::matmul_weight(ty, &w, &x, bias, k);
    // Rounding errors grow with the sum of the products' sizes.
    let widest = reference::dequantize(ty, &w).iter().fold(0f64, |a, b| a.max(b.abs()));
    let limit = 1e-6 * widest.max(0.1) * (k as f64).sqrt().max(4.0);
    assert_close(&d.get(&y), &expected, &[m, n], Tolerance::Absolute(limit));
}

#[test]
fn a_vector_at_odd_shapes_of_every_type() {
    let d = device();
    for ty in WeightType::ALL {
        for (k, n) in depths(ty).into_iter().zip([1, 7, 8, 9, 33].into_iter().cycle()) {
            product(&d, ty, [1, n, k], k % 3 == 0);
        }
    }
}

#[test]
fn every_number_of_columns_up_to_nine() {
    let d = device();
    for ty in WeightType::ALL {
        for m in 2..=9 {
            let k = if ty.block_len() == 1 { 43 } else { ty.block_len() };
            product(&d, ty, [m, 9, k], m % 2 == 0);
        }
    }
}

#[test]
fn tiles_of_every_type() {
    let d = device();
    for ty in WeightType::ALL {
        for (k, [m, n]) in depths(ty)
            .into_iter()
            .zip([[33, 65], [65, 3], [9, 64]].into_iter().cycle())
        {
            product(&d, ty, [m, n, k], n == 65);
        }
    }
}

#[test]
fn rows_are_those_of_the_table_to_the_last_bit() {
    let d = device();
    for ty in WeightType::ALL {
        for cols in depths(ty).into_iter().chain([ty.block_len() * 41]) {
            let mut random = rng(cols as u64);
            let table = blocks(ty, &mut random, 5 * cols / ty.block_len());
            let ids = [4, 0, 0, 3, 1, 4, 2, 2, 1];
            let (t, i, y) = (up(&d, &table), d.ids(&ids), d.out(ids.len() * cols));
            let word = d.no_fault();
            d.kernels
                .get_rows_weight(d.stream(), ty, &t, &i, &y, 5, cols, d.faults(&word, 1))
                .unwrap();
            // Adding 0 makes zeros of both signs one: the kernel's are not those of the definition.
            let expected: Vec<f64> = (reference::get_rows_weight(ty, &table, &ids, cols).iter())
                .map(|&v| f64::from(v as f32 + 0.0))
                .collect();
            let actual: Vec<f32> = d.get(&y).iter().map(|v| v + 0.0).collect();
            assert_close(&actual, &expected, &[ids.len(), cols], Tolerance::Exact);
            assert_eq!(d.fault(&word), None, "{ty}");
        }
    }
}

#[test]
fn the_first_id_beyond_the_table_is_the_fault() {
    let d = device();
    for ty in [WeightType::F16, WeightType::Q4_1, WeightType::Q6K] {
        let cols = ty.block_len() * 5;
        let table = blocks(ty, &mut rng(3), 25);
        let mut ids = [1; 100];
        (ids[17], ids[90], ids[16]) = (5, 6, u32::MAX);
        let (t, i, y) = (up(&d, &table), d.ids(&ids), d.out(100 * cols));
        let word = d.no_fault();
        for tag in [9, 4095, 8, 4094] {
            let faults = d.faults(&word, tag);
            d.kernels
                .get_rows_weight(d.stream(), ty, &t, &i, &y, 5, cols, faults)
                .unwrap();
        }
        assert_eq!(d.fault(&word), Some((8, 16, u32::MAX)));
        for (n, row) in d.get(&y).chunks(cols).enumerate() {
            let poison = rocmforge_testkit::data::POISON.to_bits();
            assert!(row.iter().all(|v| v.to_bits() != poison), "row {n} is written");
            assert_eq!(row.iter().all(|v| v.is_nan()), [16, 17, 90].contains(&n), "row {n}");
            assert_eq!(row.iter().any(|v| v.is_nan()), [16, 17, 90].contains(&n), "row {n}");
        }
    }
}

#[test]
fn every_nibble_of_either_half_has_its_value() {
    let d = device();
    // Row n holds nibble n everywhere, with a scale of 1; x picks out one weight.
    let w: Vec<u8> = (0..16u8)
        .flat_map(|n| [&[0, 0x3C][..], &[n << 4 | n; 16]].concat())
        .collect();
    let weights = up(&d, &w);
    let expected: Vec<f32> = (0..16).map(|n| n as f32 - 8.0).collect();
    for j in 0..32 {
        let mut x = [0.0; 32];
        x[j] = 1.0;
        let (input, y) = (d.up(&x), d.out(16));
        d.kernels
            .matmul_weight(d.stream(), WeightType::Q4_0, &weights, &input, None, &y, 1, 16, 32)
            .unwrap();
        d.same(&y, &expected, &[16]);
    }
}

#[test]
fn views_at_the_least_alignment() {
    let d = device();
    for ty in WeightType::ALL {
        let k = if ty.block_len() == 1 { 43 } else { ty.block_len() };
        let (n, m) = (9, 2);
        let mut random = rng(7);
        let w = blocks(ty, &mut random, n * k / ty.block_len());
        let x = random.vec(m * k + 1);
        let shifted = [vec![0xFF; ty.alignment()], w.clone()].concat();
        let weights = up(&d, &shifted).view(ty.alignment()..shifted.len()).expect("inside");
        let input = d.up(&x).view(1..x.len()).expect("inside");
        let y = d.out(m * n + 1);
        let out = y.view(1..y.len()).expect("inside");
        d.kernels
            .matmul_weight(d.stream(), ty, &weights, &input, None, &out, m, n, k)
            .unwrap();
        d.close(&out, &reference::matmul_weight(ty, &w, &x[1..], None, k), &[m, n], 1e-3);
        assert_eq!(d.get(&y)[0].to_bits(), rocmforge_testkit::data::POISON.to_bits());
    }
}

#[test]
fn shapes_and_addresses_that_do_not_fit_are_refused() {
    let d = device();
    let bytes = up(&d, &[0u8; 37]);
    let (x, y) = (d.up(&[0.0; 32]), d.out(2));
    let refused = |weights: &HipBuffer<u8>, [m, n, k]: [usize; 3], text: &str| {
        let error = d
            .kernels
            .matmul_weight(d.stream(), WeightType::Q4_0, weights, &x, None, &y, m, n, k)
            .unwrap_err()
            .to_string();
        assert!(error.contains(text), "{error:?} does not say {text:?}");
    };
    refused(&bytes, [1, 2, 33], "a row of weights must be whole blocks (33 and 32)");
    refused(&bytes, [1, 2, 32], "w has 37 elements; its shape [2, 1, 18] needs 36");
    refused(&bytes, [0, 2, 32], "m is 0");
    let view = |from: usize| bytes.view(from..from + 36).expect("inside");
    refused(&view(1), [1, 2, 32], "it must be a multiple of 2");
    refused(&view(0), [2, 2, 32], "x has 32 elements; its shape [2, 32] needs 64");
    let word = d.no_fault();
    let same = word.cast::<f32>().expect("two floats");
    let error = d
        .kernels
        .get_rows_weight(
            d.stream(),
            WeightType::F32,
            &up(&d, &[0; 8]),
            &d.ids(&[0]),
            &same,
            1,
            2,
            d.faults(&word, 0),
        )
        .unwrap_err()
        .to_string();
    assert!(error.contains("y and the fault word overlap"), "{error}");
    let error = d
        .kernels
        .get_rows_weight(
            d.stream(),
            WeightType::F32,
            &up(&d, &[0; 8]),
            &d.ids(&[0]),
            &y,
            1,
            2,
            d.faults(&word, 4096),
        )
        .unwrap_err()
        .to_string();
    assert!(error.contains("tag is 4096; it must be 1 to 4095"), "{error}");
}
