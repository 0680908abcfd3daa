//! Softmax: any row length, causal, with masks.

use crate::support::device;
use rocmforge_kernels::{Operand, Strides, reference};
use rocmforge_testkit::data::rng;

fn softmax_case(x: &[f32], shape: &[usize], limit: f64) -> Vec<f32> {
    let d = device();
    let cols = shape[shape.len() - 1];
    let rows = x.len() / cols;
    let (input, y) = (d.up(x), d.out(x.len()));
    d.kernels.softmax(d.stream(), &input, &y, rows, cols, 1.0).unwrap();
    d.close(&y, &reference::softmax(x, cols, 1.0), shape, limit);
    let y = d.get(&y);
    for (row, values) in y.chunks(cols).enumerate() {
        let sum: f64 = values.iter().map(|&v| f64::from(v)).sum();
        assert!((sum - 1.0).abs() < 1e-5, "row {row} sums to {sum}");
    }
    y
}

#[test]
fn test_softmax_gpu_matches_cpu() {
    let x: Vec<f32> = (0..16).map(|i| i as f32 * 0.1).collect();
    softmax_case(&x, &[1, 4, 4], 1e-6);
}

#[test]
fn test_softmax_gpu_numerical_stability() {
    softmax_case(
        &[1000.0, 1001.0, 1002.0, 1003.0, -1000.0, -1001.0, 0.0, 3e38],
        &[2, 4],
        1e-6,
    );
}

#[test]
fn test_softmax_gpu_seq8() {
    softmax_case(&rng(8).vec_in(64, -3.0, 3.0), &[1, 8, 8], 1e-6);
}

#[test]
fn test_softmax_explicit_layout_small() {
    softmax_case(&rng(1).vec_in(32, -3.0, 3.0), &[1, 2, 4, 4], 1e-6);
}

#[test]
fn test_softmax_explicit_non_square() {
    softmax_case(&rng(2).vec_in(256, -3.0, 3.0), &[1, 2, 8, 16], 1e-6);
}

#[test]
fn test_softmax_explicit_32x32() {
    softmax_case(&rng(3).vec_in(8192, -3.0, 3.0), &[2, 4, 32, 32], 1e-6);
}

#[test]
fn test_softmax_explicit_numerical_stability() {
    let x: Vec<f32> = (0..128).map(|i| (i % 16) as f32 * 100.0 - 800.0).collect();
    softmax_case(&x, &[1, 2, 4, 16], 1e-6);
}

/// Rows held in registers, where 16 bytes at a time can be read only if the address allows it.
#[test]
fn rows_of_a_view_may_start_at_any_element() {
    let d = device();
    for cols in [64, 1280] {
        for offset in 0..5 {
            let x = rng(offset as u64).vec_in(2 * cols + 8, -8.0, 8.0);
            let (input, whole) = (d.up(&x), d.out(2 * cols + 8));
            let inside = offset..offset + 2 * cols;
            // Both shifted, and each alone.
            for (from, to) in [(offset, offset), (offset, 0), (0, offset)] {
                let (from, to) = (from..from + 2 * cols, to..to + 2 * cols);
                let (a, y) = (input.view(from.clone()).unwrap(), whole.view(to).unwrap());
                d.kernels.softmax(d.stream(), &a, &y, 2, cols, 0.7).unwrap();
                d.close(&y, &reference::softmax(&x[from], cols, 0.7), &[2, cols], 1e-6);
            }
            d.kernels
                .softmax(
                    d.stream(),
                    &input.view(inside.clone()).unwrap(),
                    &input.view(inside.clone()).unwrap(),
                    2,
                    cols,
                    0.7,
                )
                .unwrap();
            let all = d.get(&input);
            assert!(
                all[..offset] == x[..offset] && all[inside.end..] == x[inside.end..],
                "the neighbours stay as they were"
            );
        }
    }
}

#[test]
fn a_row_of_nothing_gives_zeros() {
    let d = device();
    for cols in [5, 1300] {
        let mut x = vec![f32::NEG_INFINITY; 2 * cols];
        x[cols + 3] = 4.0;
        let (input, y) = (d.up(&x), d.out(2 * cols));
        d.kernels.softmax(d.stream(), &input, &y, 2, cols, 1.0).unwrap();
        let mut expected = vec![0.0; 2 * cols];
        expected[cols + 3] = 1.0;
        d.close(&y, &expected, &[2, cols], 0.0);
    }
}

#[test]
fn causal_rows_stop_at_their_query() {
    let d = device();
    // A scale other than 1, in the kernels of both lengths.
    for (planes, seq_q, seq_k) in [(3, 33, 33), (2, 7, 3), (1, 3, 1500)] {
        let x = rng(seq_k as u64).vec_in(planes * seq_q * seq_k, -5.0, 5.0);
        let (input, y) = (d.up(&x), d.out(x.len()));
        d.kernels
            .softmax_causal(d.stream(), &input, &y, [planes, seq_q, seq_k], 0.5)
            .unwrap();
        let hide = |_, _, i, j| match reference::causal_visible(i, j, seq_q, seq_k) {
            true => 0.0,
            false => f64::NEG_INFINITY,
        };
        let expected = reference::softmax_masked(&x, [planes, 1, seq_q, seq_k], 0.5, hide);
        d.close(&y, &expected, &[planes, seq_q, seq_k], 1e-6);
    }
}

#[test]
fn masked_softmax_takes_key_padding_and_full_masks() {
    let d = device();
    for (batch, heads, seq_q, seq_k) in [(1, 1, 1, 1), (2, 3, 4, 31), (3, 2, 5, 65), (2, 2, 2, 1100)] {
        let shape = [batch, heads, seq_q, seq_k];
        let mut random = rng(seq_k as u64);
        let x = random.vec_in(shape.iter().product(), -5.0, 5.0);
        let mut mask = random.vec(x.len());
        for m in mask.iter_mut().skip(1).step_by(3) {
            *m = f32::NEG_INFINITY;
        }
        let (input, m) = (d.up(&x), d.up(&mask));
        for strides in [Strides::heads_first(heads, seq_q, seq_k), Strides::per_batch(seq_k)] {
            let y = d.out(x.len());
            let operand = Operand::new(&m, strides);
            d.kernels
                .softmax_masked(d.stream(), &input, operand, &y, shape, 0.5)
                .unwrap();
            let at = |b: usize, h: usize, i: usize, j: usize| {
                let row = b as u64 * strides.batch + h as u64 * strides.head + i as u64 * strides.row;
                f64::from(mask[row as usize + j])
            };
            d.close(&y, &reference::softmax_masked(&x, shape, 0.5, at), &shape, 1e-6);
        }
    }
}

#[test]
fn a_mask_may_start_at_any_element() {
    let d = device();
    for shape in [[2, 3, 5, 64], [1, 2, 3, 1280]] {
        let [_, _, seq_q, seq_k] = shape;
        let x = rng(seq_k as u64).vec_in(shape.iter().product(), -5.0, 5.0);
        let mask = rng(7).vec(seq_q * seq_k + 3);
        let (input, whole) = (d.up(&x), d.up(&mask));
        for from in 0..4 {
            let m = whole.view(from..from + seq_q * seq_k).unwrap();
            let y = d.out(x.len());
            let operand = Operand::new(&m, Strides::per_row(seq_k));
            d.kernels
                .softmax_masked(d.stream(), &input, operand, &y, shape, 1.0)
                .unwrap();
            let at = |_: usize, _: usize, i: usize, j: usize| f64::from(mask[from + i * seq_k + j]);
            d.close(&y, &reference::softmax_masked(&x, shape, 1.0, at), &shape, 1e-6);
        }
    }
}

#[test]
fn masked_softmax_takes_more_queries_than_a_grid_has_blocks_along_y() {
    let d = device();
    // Eight queries to a block, 65,535 blocks along y: the last nine queries are in the second layer of the grid.
    let queries = 65_535 * 8 + 9;
    let (input, mask, y) = (d.up(&vec![3.0; queries]), d.up(&[0.5]), d.out(queries));
    let operand = Operand::new(&mask, Strides::per_batch(0));
    d.kernels
        .softmax_masked(d.stream(), &input, operand, &y, [1, 1, queries, 1], 1.0)
        .unwrap();
    assert!(d.get(&y).iter().all(|&weight| weight == 1.0));
}
