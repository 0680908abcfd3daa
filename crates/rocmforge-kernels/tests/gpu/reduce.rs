//! Sums of rows, rows added by index, orders of rows, diagonal masks, softmax with masks, slopes and sinks.

use crate::support::{SIZES, device, half_bits, refused};
use rocmforge_kernels::{Half, Kernels, KvType, SoftmaxBias, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

#[test]
fn the_last_of_the_summed_rows_may_be_shorter() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    for cols in SIZES.into_iter().chain([256, 257, 512, 1025, 3000]) {
        let x = rng(cols as u64).vec(8 * cols + 1);
        let (input, y) = (d.up(&x), d.out(9));
        k.sum_rows(s, &input, &y, cols, 1.0).unwrap();
        d.close(&y, &reference::sum_rows(&x, cols, 1.0), &[9], 1e-5);
    }
    let (x, y) = (d.up(&[0.0; 12]), d.out(2));
    refused(
        k.sum_rows(s, &x, &y, 5, 1.0),
        "sum_rows: y has 2 elements; its shape [3] needs 3",
    );
}

#[test]
fn rows_in_order() {
    let d = device();
    for cols in SIZES.into_iter().chain([2, 1000, 4096]) {
        let mut random = rng(cols as u64);
        // Few values, so that many are equal.
        let mut x: Vec<f32> = (0..2 * cols)
            .map(|_| random.below(cols.min(50)) as f32 - 20.0)
            .collect();
        for special in [f32::NAN, 0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN] {
            x[random.below(2 * cols)] = special;
        }
        for descending in [false, true] {
            let (input, ids) = (d.up(&x), d.ids(&vec![u32::MAX; 2 * cols]));
            d.kernels
                .argsort(d.stream(), &input, &ids, 2, cols, descending)
                .unwrap();
            let found = ids.to_vec(d.stream()).expect("download");
            assert_eq!(
                found,
                reference::argsort(&x, cols, descending),
                "{cols} columns, {descending}"
            );
        }
    }
    let (x, ids) = (d.up(&[0.0; 4097]), d.ids(&[0; 4097]));
    refused(
        d.kernels.argsort(d.stream(), &x, &ids, 1, 4097, true),
        "argsort: cols is 4097; it must be 1 to 4096",
    );
    assert_eq!(Kernels::MAX_ARGSORT, 4096);
}

#[test]
fn a_row_to_add_that_is_not_there_is_a_fault() {
    let d = device();
    for cols in [1, 33, 64, 1030] {
        let mut random = rng(cols as u64);
        let (a, b) = (random.vec(9 * cols), random.vec(4 * cols));
        let mut ids: Vec<u32> = (0..9).map(|_| random.below(4) as u32).collect();
        ids[7] = 4;
        let (da, db, di) = (d.up(&a), d.up(&b), d.ids(&ids));
        let want = reference::add_id(&a, &b, &ids, cols);
        let out = d.out(9 * cols);
        for y in [&out, &da] {
            let word = d.no_fault();
            d.kernels
                .add_id(d.stream(), &da, &db, &di, y, [4, cols], d.faults(&word, 2))
                .unwrap();
            let same = |(y, w): (f32, &f64)| (f64::from(y) - w).abs() < 1e-6 || (y.is_nan() && w.is_nan());
            assert!(d.get(y).into_iter().zip(&want).all(same), "{cols} columns");
            assert_eq!(d.fault(&word), Some((2, 7, 4)));
        }
    }
}

#[test]
fn columns_above_the_diagonal_are_replaced() {
    let d = device();
    for (rows, cols) in [(1, 1), (5, 33), (33, 5), (3, 1030)] {
        for n_past in [0, 2, 40, usize::MAX] {
            for by in [0.0, f32::NEG_INFINITY] {
                let x = rng(7).vec(2 * rows * cols);
                let (input, y) = (d.up(&x), d.out(x.len()));
                d.kernels
                    .diag_mask(d.stream(), &input, &y, [2, rows, cols], n_past, by)
                    .unwrap();
                let want = reference::diag_mask(&x, [rows, cols], n_past.min(1 << 20), by);
                d.close(&y, &want, &[2, rows, cols], 0.0);
            }
        }
    }
}

#[test]
fn softmax_with_masks_slopes_and_sinks() {
    let d = device();
    for (seed, (shape, mask)) in [
        ([2, 3, 5, 33], [1, 1, 5, 33]),
        ([2, 4, 3, 128], [2, 2, 7, 128]),
        ([1, 6, 2, 64], [1, 3, 2, 64]),
        ([2, 1, 2, 1028], [1, 1, 64, 1028]),
        ([1, 1, 1, 1], [1, 1, 1, 1]),
        ([4, 5, 2, 2051], [2, 5, 2, 2051]),
    ]
    .into_iter()
    .enumerate()
    {
        let mut random = rng(seed as u64);
        let x = random.vec_in(shape.iter().product(), -4.0, 4.0);
        // Numbers that f16 has, some of them -inf.
        let number = |random: &mut rocmforge_testkit::data::Rng| match random.below(4) {
            0 => f32::NEG_INFINITY,
            _ => random.below(64) as f32 / 16.0 - 2.0,
        };
        let mut values: Vec<f32> = (0..mask.iter().product()).map(|_| number(&mut random)).collect();
        values[..mask[3]].fill(f32::NEG_INFINITY); // a row that sees nothing
        let sinks = random.vec_in(shape[1], -3.0, 3.0);
        let single: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let half: Vec<u8> = values
            .iter()
            .flat_map(|&v| half_bits(Half::F16, v).to_le_bytes())
            .collect();
        let at = |b: usize, h: usize, i: usize, j: usize| {
            f64::from(values[((b % mask[0] * mask[1] + h % mask[1]) * mask[2] + i) * mask[3] + j])
        };
        for (ty, bytes) in [(KvType::F32, &single), (KvType::F16, &half)] {
            for (masked, max_bias, sunk) in [(true, 0.0, false), (true, 8.0, true), (false, 0.0, true)] {
                let (input, y, s) = (d.up(&x), d.out(x.len()), d.up(&sinks));
                let bytes = HipBuffer::from_slice(d.stream(), bytes, "mask").expect("upload");
                let bias = SoftmaxBias {
                    scale: 0.7,
                    mask: masked.then_some((ty, &bytes, mask)),
                    max_bias,
                    sinks: sunk.then_some(&s),
                };
                let zero = |_, _, _, _| 0.0;
                let sinks = sunk.then_some(sinks.as_slice());
                let want = match masked {
                    true => reference::softmax_biased(&x, shape, [0.7, max_bias], at, sinks),
                    false => reference::softmax_biased(&x, shape, [0.7, max_bias], zero, sinks),
                };
                d.kernels.softmax_biased(d.stream(), &input, bias, &y, shape).unwrap();
                d.close(&y, &want, &shape, 1e-6);
                d.kernels
                    .softmax_biased(d.stream(), &input, bias, &input, shape)
                    .unwrap();
                d.close(&input, &want, &shape, 1e-6);
            }
        }
    }
}
