//! Largest values and orders of rows.

use crate::support::{Device, SIZES, device};
use rocmforge_kernels::{KernelError, Kernels, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::{Rng, rng};

const POISON: u32 = 0xDEAD_BEEF;

fn ids_out(d: &Device, n: usize) -> HipBuffer<u32> {
    d.ids(&vec![POISON; n])
}

fn get_ids(d: &Device, buffer: &HipBuffer<u32>) -> Vec<u32> {
    buffer.to_vec(d.stream()).expect("download")
}

/// Rows of few values: many are equal. One in eight is NaN, infinite or a zero.
fn ties(random: &mut Rng, n: usize) -> Vec<f32> {
    let odd = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.0,
        -0.0,
        -f32::NAN,
        1e-40,
        -1e-40,
    ];
    let mut value = || match random.below(8) {
        0 => odd[random.below(odd.len())],
        _ => random.below(7) as f32 - 3.0,
    };
    (0..n).map(|_| value()).collect()
}

fn check_argmax(d: &Device, x: &[f32], cols: usize) {
    let (input, y) = (d.up(x), ids_out(d, x.len() / cols));
    d.kernels.argmax(d.stream(), &input, &y, x.len() / cols, cols).unwrap();
    let expected: Vec<u32> = x.chunks(cols).map(reference::arg_max).collect();
    assert_eq!(get_ids(d, &y), expected, "{cols} columns");
}

fn check_top_k(d: &Device, x: &[f32], cols: usize, k: usize) {
    let rows = x.len() / cols;
    let (input, values, ids) = (d.up(x), d.out(rows * k), ids_out(d, rows * k));
    let bytes = Kernels::top_k_scratch_of([rows, cols], k);
    let scratch = (bytes > 0).then(|| d.ids(&vec![POISON; bytes / 4]).cast::<u64>().expect("whole words"));
    let scratch = scratch.as_ref();
    d.kernels
        .top_k(d.stream(), &input, Some(&values), &ids, rows, cols, k, scratch)
        .unwrap();
    let expected: Vec<u32> = x.chunks(cols).flat_map(|row| reference::top_k(row, k)).collect();
    assert_eq!(get_ids(d, &ids), expected, "{k} of {cols} columns");
    let at = |(n, &id): (usize, &u32)| x[n / k * cols + id as usize].to_bits();
    let expected: Vec<u32> = expected.iter().enumerate().map(at).collect();
    let found: Vec<u32> = d.get(&values).iter().map(|v| v.to_bits()).collect();
    assert_eq!(found, expected, "values of {k} of {cols} columns");
    let again = ids_out(d, rows * k);
    // In one launch, and without values.
    d.kernels
        .top_k(d.stream(), &input, None, &again, rows, cols, k, None)
        .unwrap();
    assert_eq!(get_ids(d, &again), get_ids(d, &ids));
}

#[test]
fn argmax_at_odd_shapes_and_with_ties() {
    let d = device();
    for cols in SIZES.into_iter().chain([255, 256, 257, 1000]) {
        let mut random = rng(cols as u64);
        check_argmax(&d, &random.vec(3 * cols), cols);
        check_argmax(&d, &ties(&mut random, 5 * cols), cols);
    }
    check_argmax(&d, &[f32::NAN; 300], 100);
    check_argmax(&d, &[f32::NEG_INFINITY; 300], 100);
    check_argmax(&d, &[f32::NAN, f32::NEG_INFINITY, f32::NAN], 3);
}

#[test]
fn top_k_at_odd_shapes_and_with_ties() {
    let d = device();
    for cols in SIZES.into_iter().chain([255, 256, 257, 1000]) {
        let mut random = rng(cols as u64);
        for k in [1, 2, 3, 33, cols / 2, cols] {
            if k == 0 || k > cols {
                continue;
            }
            check_top_k(&d, &random.vec(2 * cols), cols, k);
            check_top_k(&d, &ties(&mut random, 3 * cols), cols, k);
        }
    }
    check_top_k(&d, &[0.25; 2 * 700], 700, 65);
    check_top_k(&d, &[f32::NAN; 300], 300, 257);
}

#[test]
fn top_k_of_vocabularies() {
    let d = device();
    let x = rng(1).vec(2 * 5003);
    for k in [1023, 1024, 1025, Kernels::MAX_TOP_K] {
        check_top_k(&d, &x, 5003, k);
    }
    let x = rng(2).vec(300_000);
    check_top_k(&d, &x, 300_000, 1024);
    // In parts: whole ones, a last one of fewer columns than candidates, equal numbers in several.
    for (cols, k) in [(8192 + 5, 40), (3 * 4096, 512), (40_000, 1), (70_001, 128)] {
        assert!(Kernels::top_k_scratch_of([2, cols], k) > 0);
        let mut random = rng(cols as u64);
        check_top_k(&d, &random.vec(2 * cols), cols, k);
        check_top_k(&d, &ties(&mut random, 2 * cols), cols, k);
    }
    check_top_k(&d, &[f32::NAN; 9000], 9000, 300);
    assert_eq!(Kernels::top_k_scratch_of([2, 8192], 40), 0);
    check_argmax(&d, &x, 300_000);
}

#[test]
fn more_than_all_are_refused() {
    let d = device();
    let (k, s) = (&d.kernels, d.stream());
    let (x, ids) = (d.up(&[1.0; 12]), d.ids(&[0; 12]));
    let over = k.top_k(s, &x, None, &ids, 3, 4, 5, None);
    assert!(
        matches!(
            over,
            Err(KernelError::Dimension {
                dim: "k",
                value: 5,
                limit: 4,
                ..
            })
        ),
        "{over:?}"
    );
}
