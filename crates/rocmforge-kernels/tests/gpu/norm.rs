//! RMSNorm, LayerNorm, L2 normalisation.

use crate::support::{device, refused};
use rocmforge_kernels::{HalfRows, Q8Activations, Rounded, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

const EPS: f32 = 1e-6;

fn rms_case(rows: usize, cols: usize, limit: f64) {
    let d = device();
    let mut random = rng((rows + cols) as u64);
    let (x, weight) = (random.vec_in(rows * cols, -3.0, 3.0), random.vec_in(cols, 0.5, 1.5));
    let (input, w, y) = (d.up(&x), d.up(&weight), d.out(x.len()));
    d.kernels.rms_norm(d.stream(), &input, &w, &y, rows, cols, EPS).unwrap();
    d.close(&y, &reference::rms_norm(&x, &weight, EPS), &[rows, cols], limit);
}

#[test]
fn test_rms_norm_matches_cpu_small() {
    rms_case(4, 8, 1e-5);
}

/// More rows than one launch of ceil(hidden / 256) blocks would reach.
#[test]
fn test_rms_norm_matches_cpu_32x128() {
    rms_case(32, 128, 1e-5);
}

#[test]
fn test_rms_norm_properties() {
    let d = device();
    let (rows, cols) = (5, 96);
    let x = rng(4).vec_in(rows * cols, -10.0, 10.0);
    let (input, ones, y) = (d.up(&x), d.up(&vec![1.0; cols]), d.out(x.len()));
    d.kernels
        .rms_norm(d.stream(), &input, &ones, &y, rows, cols, EPS)
        .unwrap();
    for (row, values) in d.get(&y).chunks(cols).enumerate() {
        let mean = values.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / cols as f64;
        assert!((mean - 1.0).abs() < 1e-5, "row {row} has mean square {mean}");
    }
    let doubled: Vec<f32> = x.iter().map(|v| v * 2.0).collect();
    let (input, again) = (d.up(&doubled), d.out(x.len()));
    d.kernels
        .rms_norm(d.stream(), &input, &ones, &again, rows, cols, EPS)
        .unwrap();
    for (a, b) in d.get(&y).iter().zip(d.get(&again)) {
        assert!((a - b).abs() < 1e-5, "scaling the input changes nothing: {a} {b}");
    }
}

/// Rows held in registers, where 16 bytes at a time can be read only if every address allows it.
#[test]
fn rows_and_weights_of_views_may_start_at_any_element() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    for cols in [64, 1280] {
        for (at, of_weight, of_bias) in [(0, 0, 0), (1, 0, 0), (4, 3, 0), (0, 2, 2), (0, 0, 1), (2, 1, 3)] {
            let mut random = rng(cols as u64);
            let (x, weight, bias) = (
                random.vec_in(2 * cols + 4, -2.0, 3.0),
                random.vec(cols + 4),
                random.vec(cols + 4),
            );
            let (input, w, b) = (d.up(&x), d.up(&weight), d.up(&bias));
            let (rows, w_range, b_range) = (at..at + 2 * cols, of_weight..of_weight + cols, of_bias..of_bias + cols);
            let (input, w, b) = (
                input.view(rows.clone()).unwrap(),
                w.view(w_range.clone()).unwrap(),
                b.view(b_range.clone()).unwrap(),
            );
            let (x, weight, bias) = (&x[rows], &weight[w_range], &bias[b_range]);
            let y = d.out(2 * cols);
            k.rms_norm(s, &input, &w, &y, 2, cols, EPS).unwrap();
            d.close(&y, &reference::rms_norm(x, weight, EPS), &[2, cols], 2e-6);
            let y = d.out(2 * cols);
            k.layer_norm(s, &input, &w, &b, &y, 2, cols, 1e-12).unwrap();
            d.close(&y, &reference::layer_norm(x, weight, bias, 1e-12), &[2, cols], 5e-6);
        }
    }
}

#[test]
fn layer_norm_keeps_its_digits_at_a_large_mean() {
    let d = device();
    let (rows, cols) = (3, 384);
    let x: Vec<f32> = rng(9).vec(rows * cols).iter().map(|v| v + 1000.0).collect();
    let (weight, bias) = (vec![1.0; cols], vec![0.0; cols]);
    let (input, w, b, y) = (d.up(&x), d.up(&weight), d.up(&bias), d.out(x.len()));
    d.kernels
        .layer_norm(d.stream(), &input, &w, &b, &y, rows, cols, 1e-12)
        .unwrap();
    // The mean itself is known to 1000 * 2^-24 only.
    d.close(
        &y,
        &reference::layer_norm(&x, &weight, &bias, 1e-12),
        &[rows, cols],
        5e-4,
    );
}

#[test]
fn a_zero_row_stays_zero() {
    let d = device();
    let (x, ones, y) = (d.up(&[0.0; 40]), d.up(&[1.0; 40]), d.out(40));
    d.kernels.rms_norm(d.stream(), &x, &ones, &y, 1, 40, EPS).unwrap();
    d.same(&y, &[0.0; 40], &[40]);
    let y = d.out(40);
    d.kernels.l2_normalize(d.stream(), &x, &y, 1, 40, 1e-12).unwrap();
    d.same(&y, &[0.0; 40], &[40]);
}

/// The sum, its norm and the norm in 8 or 16 bits are those of three launches, bit for bit; also in place, and without a second operand.
#[test]
fn a_sum_its_norm_and_the_norm_rounded_in_one_launch() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    for cols in [1, 31, 32, 96, 130, 1024, 1056, 4096, 4128] {
        let rows = if cols > 1000 { 2 } else { 9 };
        let (n, dims) = (rows * cols, [rows, cols]);
        let mut random = rng(cols as u64);
        let [a, b] = [0, 1].map(|_| random.vec_in(n, -2.0, 3.0));
        let (reference_sum, weight) = (
            a.iter().zip(&b).map(|(a, b)| a + b).collect::<Vec<f32>>(),
            random.vec(cols),
        );
        let (a, b, weight) = (d.up(&a), d.up(&b), d.up(&weight));
        let bytes = Q8Activations::byte_len(rows, cols);
        let halves_len = HalfRows::byte_len(rows, cols).filter(|_| bytes.is_some());
        let of_len = |bytes| HipBuffer::from_slice(s, &vec![0xA5u8; bytes], "rounded").expect("room");
        let room = || bytes.map(of_len);
        let integers = |x: &HipBuffer<f32>| {
            let to = room()?;
            k.quantize_q8(s, x, to.clone(), dims).expect("quantises");
            Some(to.to_vec(s).expect("download"))
        };
        let in_16_bits = |x: &HipBuffer<f32>| {
            let to = halves_len.map(of_len)?;
            k.half_rows(s, x, &to, dims).expect("rounds");
            Some(to.to_vec(s).expect("download"))
        };
        for (with, halves) in [(true, false), (true, true), (false, false), (false, true)] {
            let (sum, y) = (d.out(n), d.out(n));
            let to = if halves { halves_len.map(of_len) } else { room() };
            let others = with.then_some([&b, &sum]);
            let rounded = to.as_ref().map(|to| match halves {
                true => Rounded::Halves(to),
                false => Rounded::Q8(to),
            });
            k.add_rms_norm(s, &a, others, &weight, &y, rounded, dims, EPS).unwrap();
            assert_eq!(to.is_some(), cols % 32 == 0, "{cols}");
            if with {
                d.same(&sum, &reference_sum, &dims);
            }
            let (normed, expected) = (if with { &sum } else { &a }, d.out(n));
            k.rms_norm(s, normed, &weight, &expected, rows, cols, EPS).unwrap();
            d.same(&y, &d.get(&expected), &dims);
            assert_eq!(
                to.map(|to| to.to_vec(s).expect("download")),
                if halves {
                    in_16_bits(&expected)
                } else {
                    integers(&expected)
                },
                "{cols}"
            );
            if with && halves {
                // The sum over one operand, the norm over the other.
                k.add_rms_norm(s, &a, Some([&b, &a]), &weight, &b, None, dims, EPS)
                    .unwrap();
                d.same(&a, &reference_sum, &dims);
                d.same(&b, &d.get(&expected), &dims);
            }
        }
    }
    let (x, w) = (d.up(&[1.0; 64]), d.up(&[1.0; 64]));
    refused(
        k.add_rms_norm(s, &x, Some([&x, &x]), &w, &x, None, [1, 64], EPS),
        "y and sum overlap",
    );
}
