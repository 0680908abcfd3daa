//! Quantised matrix times vector.

use crate::support::device;
use rocmforge_kernels::reference;
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::{Rng, rng};

/// Blocks with a scale below 2^-6 of either sign, some of them denormal, and any nibbles.
fn blocks(random: &mut Rng, n: usize) -> Vec<u8> {
    (0..n)
        .flat_map(|_| {
            let bits = random.next_u64();
            let scale = (bits as u16 % 0x2400) | ((bits >> 16) as u16 & 0x8000);
            let nibbles = [random.next_u64().to_le_bytes(), random.next_u64().to_le_bytes()].concat();
            [scale.to_le_bytes().to_vec(), nibbles].concat()
        })
        .collect()
}

#[test]
fn q4_0_weights_times_a_vector_at_odd_shapes() {
    let d = device();
    for (rows, cols) in [(1, 32), (3, 64), (7, 224), (8, 256), (9, 288), (33, 1056), (65, 4096)] {
        let mut random = rng((rows * cols) as u64);
        let w = blocks(&mut random, rows * cols / 32);
        let x = random.vec_in(cols, -2.0, 2.0);
        let weights = HipBuffer::from_slice(d.stream(), &w, "weights").expect("upload");
        let (input, y) = (d.up(&x), d.out(rows));
        d.kernels
            .matvec_q4_0(d.stream(), &weights, &input, &y, rows, cols)
            .unwrap();
        d.close(&y, &reference::matvec_q4_0(&w, &x, rows), &[rows], 4e-5);
    }
}

#[test]
fn every_nibble_of_either_half_has_its_value() {
    let d = device();
    // Row n holds nibble n everywhere, with a scale of 1; x picks out one weight.
    let w: Vec<u8> = (0..16u8)
        .flat_map(|n| [&[0, 0x3C][..], &[n << 4 | n; 16]].concat())
        .collect();
    let weights = HipBuffer::from_slice(d.stream(), &w, "weights").expect("upload");
    let expected: Vec<f32> = (0..16).map(|n| n as f32 - 8.0).collect();
    for j in 0..32 {
        let mut x = [0.0; 32];
        x[j] = 1.0;
        let (input, y) = (d.up(&x), d.out(16));
        d.kernels.matvec_q4_0(d.stream(), &weights, &input, &y, 16, 32).unwrap();
        d.same(&y, &expected, &[16]);
    }
}

#[test]
fn shapes_and_addresses_that_do_not_fit_are_refused() {
    let d = device();
    let bytes = HipBuffer::from_slice(d.stream(), &[0u8; 37], "weights").expect("upload");
    let (x, y) = (d.up(&[0.0; 32]), d.out(2));
    let refused = |weights: &HipBuffer<u8>, cols, text: &str| {
        let error = d
            .kernels
            .matvec_q4_0(d.stream(), weights, &x, &y, 2, cols)
            .unwrap_err()
            .to_string();
        assert!(error.contains(text), "{error:?} does not say {text:?}");
    };
    refused(&bytes, 33, "cols must be a multiple of the block (33 and 32)");
    refused(&bytes, 32, "w has 37 elements; its shape [2, 1, 18] needs 36");
    refused(
        &bytes.view(1..37).expect("inside"),
        32,
        "the weights' address must be a multiple of",
    );
}
