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
