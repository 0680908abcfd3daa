//! Products with weights of every type, and rows of them.

use crate::support::{Device, device, refused};
use rocmforge_kernels::{WeightType, declared, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::{Rng, rng};

/// Any bytes, but scales of moderate size: of either sign, some of them denormal.
pub(crate) fn blocks(ty: WeightType, random: &mut Rng, n: usize) -> Vec<u8> {
    declared::blocks(ty, n, || random.next_u64())
}

pub(crate) fn up(d: &Device, bytes: &[u8]) -> HipBuffer<u8> {
    HipBuffer::from_slice(d.stream(), bytes, "weights").expect("upload")
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
                .get_rows_of_tables(d.stream(), ty, &t, &i, &y, [1, 5, cols], faults)
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
    let product = |weights: &HipBuffer<u8>, [m, n, k]: [usize; 3], text| {
        let ty = WeightType::Q4_0;
        let result = (d.kernels).matmul_weight(d.stream(), ty, weights, &x, None, &y, m, n, k);
        refused(result, text);
    };
    product(&bytes, [1, 2, 33], "a row of weights must be whole blocks (33 and 32)");
    product(&bytes, [1, 2, 32], "w has 37 elements; its shape [2, 1, 18] needs 36");
    let view = |from: usize| bytes.view(from..from + 36).expect("inside");
    product(&view(1), [1, 2, 32], "it must be a multiple of 2");
    product(&view(0), [2, 2, 32], "x has 32 elements; its shape [2, 32] needs 64");
    let word = d.no_fault();
    let same = word.cast::<f32>().expect("two floats");
    let rows = |y: &HipBuffer<f32>, tag, text| {
        let (table, ids, faults) = (up(&d, &[0; 8]), d.ids(&[0]), d.faults(&word, tag));
        let result = (d.kernels).get_rows_of_tables(d.stream(), WeightType::F32, &table, &ids, y, [1, 1, 2], faults);
        refused(result, text);
    };
    rows(&same, 0, "y and the fault word overlap");
    rows(&y, 4096, "tag is 4096; it must be 1 to 4095");
}

/// Codebooks: the type, rows of its codebook, weights of a row, and which row a block names for its weights at `i` times as many.
type Codebook = (WeightType, usize, usize, fn(&[u8], usize) -> usize);

fn bits_above(b: &[u8], at: usize, i: usize, bits: usize) -> usize {
    (usize::from(b[at + i * bits / 8]) >> (i * bits % 8) & ((1 << bits) - 1)) << 8
}

const CODEBOOKS: [Codebook; 7] = [
    (WeightType::Iq2Xxs, 256, 8, |b, i| b[2 + 8 * (i / 4) + i % 4].into()),
    (WeightType::Iq2Xs, 512, 8, |b, i| {
        usize::from(u16::from_le_bytes([b[2 + 2 * i], b[3 + 2 * i]])) & 511
    }),
    (WeightType::Iq2S, 1024, 8, |b, i| {
        usize::from(b[2 + i]) | bits_above(b, 66, i, 2)
    }),
    (WeightType::Iq3Xxs, 256, 4, |b, i| b[2 + i].into()),
    (WeightType::Iq3S, 512, 4, |b, i| {
        usize::from(b[2 + i]) | bits_above(b, 66, i, 1)
    }),
    (WeightType::Iq1S, 2048, 8, |b, i| {
        let high = usize::from(u16::from_le_bytes([b[34 + i / 4 * 2], b[35 + i / 4 * 2]]));
        usize::from(b[2 + i]) | (high >> (3 * (i % 4)) & 7) << 8
    }),
    (WeightType::Iq1M, 2048, 8, |b, i| {
        usize::from(b[i]) | (usize::from(b[32 + i / 2]) >> (4 * (i % 2)) & 7) << 8
    }),
];

/// The rows of a table of whole blocks are what the decoder on the CPU makes of them, bit by bit; only the sign of a zero may differ.
fn decoded(d: &Device, ty: WeightType, table: &[u8]) {
    let (cols, rows) = (ty.block_len(), table.len() / ty.block_bytes());
    let ids: Vec<u32> = (0..rows as u32).collect();
    let (t, i, y) = (up(d, table), d.ids(&ids), d.out(rows * cols));
    let word = d.no_fault();
    (d.kernels)
        .get_rows_of_tables(d.stream(), ty, &t, &i, &y, [1, rows, cols], d.faults(&word, 1))
        .unwrap();
    let found = d.get(&y);
    for (at, (&found, want)) in found.iter().zip(reference::dequantize(ty, table)).enumerate() {
        assert!(
            f64::from(found) == want,
            "{ty}, weight {at}: {found} where {want} was expected"
        );
    }
}

#[test]
fn every_row_of_every_codebook() {
    let d = device();
    for (ty, rows, len, row) in CODEBOOKS {
        let mut random = rng(rows as u64);
        let (mut table, mut named) = (Vec::new(), vec![false; rows]);
        while !named.iter().all(|&named| named) {
            let block = blocks(ty, &mut random, 1);
            (0..256 / len).for_each(|i| named[row(&block, i)] = true);
            table.extend(block);
        }
        decoded(&d, ty, &table);
    }
}

#[test]
fn every_scale_of_nvfp4_and_every_byte_of_ternary_weights() {
    let d = device();
    let nvfp4: Vec<u8> = (0..64u8)
        .flat_map(|n| {
            let scales = [0, 1, 2, 3].map(|part| 4 * n + part);
            scales
                .into_iter()
                .chain((0..32u8).map(move |i| n.wrapping_mul(7).wrapping_add(i.wrapping_mul(0x1D))))
        })
        .collect();
    decoded(&d, WeightType::Nvfp4, &nvfp4);
    // 52 of the bytes are digits, the last two a scale of 1.
    let ternary: Vec<u8> = (0..=255u8)
        .flat_map(|n| (0..52u8).map(move |i| n.wrapping_add(i * 4)).chain([0, 0x3C]))
        .collect();
    decoded(&d, WeightType::Tq1_0, &ternary);
}
