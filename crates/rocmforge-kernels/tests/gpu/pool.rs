//! Mean pooling.

use crate::support::device;
use rocmforge_kernels::reference;
use rocmforge_testkit::data::{POISON, rng};

#[test]
fn the_mean_counts_only_the_tokens_of_the_mask() {
    let d = device();
    for (batch, seq, cols) in [(1, 1, 1), (3, 7, 33), (2, 33, 257), (4, 5, 384)] {
        let mut x = rng(seq as u64).vec(batch * seq * cols);
        let mut weight = vec![1.0f32; batch * seq];
        for b in 0..batch {
            for s in seq - (b % seq)..seq {
                weight[b * seq + s] = 0.0;
                x[(b * seq + s) * cols..][..cols].fill(POISON);
            }
        }
        let (input, w, y) = (d.up(&x), d.up(&weight), d.out(batch * cols));
        d.kernels
            .mean_pool(d.stream(), &input, &w, &y, [batch, seq, cols])
            .unwrap();
        d.close(
            &y,
            &reference::mean_pool(&x, &weight, [batch, seq, cols]),
            &[batch, cols],
            1e-6,
        );
    }
}

#[test]
fn a_sequence_without_tokens_gives_zeros() {
    let d = device();
    let (x, w, y) = (d.up(&[1.0; 12]), d.up(&[0.0; 3]), d.out(4));
    d.kernels.mean_pool(d.stream(), &x, &w, &y, [1, 3, 4]).unwrap();
    d.same(&y, &[0.0; 4], &[4]);
}

/// AMD's reciprocal of a number above 2^126 is 0: it would be below the normal numbers.
#[test]
fn weights_whose_reciprocal_is_not_normal_still_give_the_mean() {
    let d = device();
    let shape = [1, 2, 33];
    let x = rng(7).vec(2 * 33);
    for weight in [[f32::MAX, 0.0], [f32::MAX / 4.0, f32::MAX / 2.0]] {
        let (input, w, y) = (d.up(&x), d.up(&weight), d.out(33));
        d.kernels.mean_pool(d.stream(), &input, &w, &y, shape).unwrap();
        d.close(&y, &reference::mean_pool(&x, &weight, shape), &[1, 33], 1e-6);
    }
}
