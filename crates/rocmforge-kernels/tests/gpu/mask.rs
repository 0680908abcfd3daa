//! Additive masks.

use crate::support::device;
use rocmforge_kernels::{Operand, Strides, reference};
use rocmforge_testkit::data::rng;

const HIDDEN: f32 = f32::NEG_INFINITY;

#[test]
fn test_mask_gpu_matches_cpu() {
    let d = device();
    let x: Vec<f32> = (0..16).map(|i| i as f32 * 0.5).collect();
    let hidden = |n: usize| if n % 4 > n / 4 { HIDDEN } else { 0.0 };
    let mask: Vec<f32> = (0..16).map(hidden).collect();
    let (input, m, y) = (d.up(&x), d.up(&mask), d.out(16));
    let operand = Operand::new(&m, Strides::heads_first(1, 4, 4));
    d.kernels.mask(d.stream(), &input, operand, &y, [1, 1, 4, 4]).unwrap();
    let expected = reference::mask(&x, [1, 1, 4, 4], |_, _, i, j| f64::from(mask[i * 4 + j]));
    d.close(&y, &expected, &[1, 4, 4], 1e-5);
}

#[test]
fn a_mask_broadcasts_over_what_its_strides_leave_out() {
    let d = device();
    for (batch, heads, seq_q, seq_k) in [(1, 1, 1, 1), (2, 3, 5, 7), (3, 2, 4, 33), (2, 2, 3, 1030)] {
        let shape = [batch, heads, seq_q, seq_k];
        let mut random = rng(seq_k as u64);
        let x = random.vec(shape.iter().product());
        let mut mask = random.vec(batch * heads * seq_q * seq_k);
        for m in mask.iter_mut().step_by(5) {
            *m = HIDDEN;
        }
        let (input, m) = (d.up(&x), d.up(&mask));
        for strides in [
            Strides::heads_first(heads, seq_q, seq_k),
            Strides::per_batch(seq_k),
            Strides::per_row(seq_k),
        ] {
            let y = d.out(x.len());
            d.kernels
                .mask(d.stream(), &input, Operand::new(&m, strides), &y, shape)
                .unwrap();
            let at = |b: usize, h: usize, i: usize, j: usize| {
                let row = b as u64 * strides.batch + h as u64 * strides.head + i as u64 * strides.row;
                f64::from(mask[row as usize + j])
            };
            d.close(&y, &reference::mask(&x, shape, at), &shape, 1e-6);
        }
    }
}
