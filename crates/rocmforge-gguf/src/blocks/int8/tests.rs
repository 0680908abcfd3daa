//! Tests of products with 8-bit activations: every path against the definition, rounding errors, large numbers and NaN.

use super::*;
use crate::blocks;

const TYPES: [TensorType; 5] = [
    TensorType::Q4_0,
    TensorType::Q4_1,
    TensorType::Q8_0,
    TensorType::Q4K,
    TensorType::Q6K,
];

fn rounded_units(x: &[f32]) -> Vec<Int8Unit> {
    let mut units = vec![Int8Unit::zeroed(); x.len().div_ceil(UNIT)];
    round_to_int8(x, &mut units);
    units
}

fn noise(count: usize, seed: u32) -> Vec<f32> {
    (0..count as u32)
        .map(|i| ((i + seed).wrapping_mul(2_654_435_761) >> 8) as f32 / 8_388_608.0 - 1.0)
        .collect()
}

/// What the rounded activations stand for.
fn rounded(x: &[Int8Unit], len: usize) -> Vec<f64> {
    let values = x.iter().flat_map(|unit| {
        let scaled = |i: usize| f64::from(unit.scales[i / 16]) * f64::from(unit.q[i]);
        (0..UNIT).map(scaled).collect::<Vec<_>>()
    });
    values.take(len).collect()
}

#[test]
fn every_path_multiplies_the_rounded_activations() {
    for ty in TYPES {
        // Whole units, and what is left after them: nothing, up to half a unit, more, and all there is.
        for blocks in [1usize, 2, 7, 8, 9, 12, 15, 33] {
            let n = blocks * ty.block_len();
            let rows: Vec<Vec<u8>> = (0..6)
                .map(|row| blocks::quantize(ty, &noise(n, 7 + 1000 * row)).expect("whole blocks"))
                .collect();
            let values = noise(n, 1000);
            let x = rounded_units(&values);
            for path in Path::available() {
                let dots = dots_of(ty, path).expect("in the table");
                let mut together = [f32::NAN; 6];
                dots(&rows.concat(), &x, &mut together);
                for (row, found) in rows.iter().zip(together) {
                    let mut alone = [f32::NAN];
                    dots(row, &x, &mut alone);
                    assert_eq!(alone[0].to_bits(), found.to_bits(), "{ty:?} {blocks} {path:?}: alone");
                    let mut decoded = vec![0.0; n];
                    blocks::dequantize(ty, row, &mut decoded).expect("whole blocks");
                    let products = || decoded.iter().zip(rounded(&x, n)).map(|(&w, x)| f64::from(w) * x);
                    let (exact, size) = (products().sum::<f64>(), products().map(f64::abs).sum::<f64>());
                    let difference = (f64::from(found) - exact).abs();
                    // A minimum takes back up to 128 times the scale: cancellation beside the sum of magnitudes.
                    assert!(
                        difference <= 2e-5 * size,
                        "{ty:?} {blocks} {path:?}: {found} for {exact}"
                    );
                }
            }
        }
    }
}

/// From the weights as the definition unpacks them.
#[test]
fn every_path_packs_the_same_weights() {
    for ty in TYPES {
        let in_unit = UNIT / ty.block_len();
        // Whole units, and what is left after them.
        for blocks in [1, in_unit, in_unit + 1, 3 * in_unit - 1] {
            for rows in [1, 5, 16] {
                let n = blocks * ty.block_len();
                let bytes = blocks::quantize(ty, &noise(n * rows, 11)).expect("whole blocks");
                let mut decoded = vec![0.0; n * rows];
                blocks::dequantize(ty, &bytes, &mut decoded).expect("whole blocks");
                for unit in 0..n.div_ceil(UNIT) {
                    for path in Path::available() {
                        let mut panel = Int8Panel::zeroed();
                        panel.n.as_flattened_mut().fill(77);
                        panel::pack_by(path, ty, &bytes, bytes.len() / rows, unit, &mut panel).expect("such a unit");
                        for (at, lane) in (0..UNIT * INT8_LANES).map(|i| (i / INT8_LANES, i % INT8_LANES)) {
                            let number = panel.n[at / 4][4 * lane + at % 4];
                            let [row, depth] = [lane.min(rows - 1), unit * UNIT + at];
                            if depth >= n {
                                assert_eq!(number, 77, "{ty:?} {path:?}: nothing is written beyond the row");
                                continue;
                            }
                            let found = panel.scales[at / 16][lane] * f32::from(number) + panel.minimums[at / 16][lane];
                            let exact = decoded[row * n + depth];
                            let size = panel.minimums[at / 16][lane].abs() + exact.abs();
                            assert!(
                                (found - exact).abs() <= 1e-6 * size,
                                "{ty:?} {blocks} {path:?} unit {unit}, row {lane} at {at}: {found} for {exact}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn rows_that_have_no_such_unit_are_refused() {
    let rows = [0; 3 * 36];
    let mut panel = Int8Panel::zeroed();
    for (bytes, row_bytes, unit) in [
        (108, 36, 1),
        (108, 36, usize::MAX),
        (108, 0, 0),
        (0, 36, 0),
        (107, 36, 0),
        (108, 27, 0),
        (108, 18, 0),
    ] {
        let packed = pack_int8(TensorType::Q4_0, &rows[..bytes], row_bytes, unit, &mut panel);
        let fits = (bytes, row_bytes, unit) == (108, 18, 0);
        assert_eq!(packed.is_ok(), fits, "{bytes} bytes, {row_bytes} a row, unit {unit}");
    }
    let packed = pack_int8(TensorType::Q4_0, &[0; 17 * 18], 18, 0, &mut panel);
    assert!(
        matches!(packed, Err(GgufError::WrongRows { rows: 17, .. })),
        "{packed:?}"
    );
    let packed = pack_int8(TensorType::Q5K, &[0; 176], 176, 0, &mut panel);
    assert!(matches!(packed, Err(GgufError::NoDecoder { .. })), "{packed:?}");
}

#[test]
fn rounding_costs_less_than_ggml_allows() {
    for ty in TYPES {
        let (k, count) = (2048, 64);
        let rows = blocks::quantize(ty, &noise(k * count, 3)).expect("whole blocks");
        let mut decoded = vec![0.0; k * count];
        blocks::dequantize(ty, &rows, &mut decoded).expect("whole blocks");
        let x = noise(k, 99);
        let mut found = vec![f32::NAN; count];
        int8_dots(ty, &rows, &rounded_units(&x), k, &mut found).expect("whole rows");
        let (mut error, mut size) = (0.0, 0.0);
        for (row, found) in decoded.chunks(k).zip(found) {
            let exact: f64 = row.iter().zip(&x).map(|(&w, &x)| f64::from(w) * f64::from(x)).sum();
            error += (f64::from(found) - exact).powi(2);
            size += exact * exact;
        }
        assert!(error <= 5e-4 * size, "{ty:?}: {}", error / size);
    }
}

#[test]
fn the_largest_numbers_do_not_overflow() {
    // Every number of q6_K is 63 - 32 or 0 - 32, times a scale of 127 or -128 and 1; activations at the end of their range.
    for (byte, number) in [(0xffu8, 31.0), (0, -32.0)] {
        for scale in [127i8, -128] {
            let mut row = vec![byte; 210];
            row[192..208].fill(scale.cast_unsigned());
            row[208..].copy_from_slice(&0x3c00u16.to_le_bytes());
            for sign in [-1.0f32, 1.0] {
                let x = rounded_units(&[127.0 * sign; UNIT]);
                let exact = number * f64::from(scale) * 127.0 * f64::from(sign) * UNIT as f64;
                for path in Path::available() {
                    let mut found = [f32::NAN];
                    dots_of(TensorType::Q6K, path).expect("in the table")(&row, &x, &mut found);
                    let found = found[0];
                    assert!(
                        (f64::from(found) - exact).abs() <= 1e-5 * exact.abs(),
                        "{path:?}: {found} for {exact}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_not_finite_is_a_nan() {
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut x = vec![1.0; UNIT];
        x[40] = odd;
        let row = blocks::quantize(TensorType::Q4K, &noise(UNIT, 1)).expect("whole blocks");
        let mut out = [0.0];
        int8_dots(TensorType::Q4K, &row, &rounded_units(&x), UNIT, &mut out).expect("one row");
        assert!(out[0].is_nan(), "{odd}: {}", out[0]);
    }
}
