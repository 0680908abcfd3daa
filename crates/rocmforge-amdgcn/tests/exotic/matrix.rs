//! References of `kernels/matrix.hip`: lanes 0 to 15 hold rows of A and columns of B; register `r` of the result holds row
//! `2 r` in lanes 0 to 15 and row `2 r + 1` in the others.

use crate::{Inputs, N, Reference, slots};
use half::{bf16, f16};

pub(crate) const KERNELS: &[(&str, Reference)] = &[("floats", floats), ("integers", integers)];

/// Dot products of a row and a column for each result register of work-item `i`.
fn products(i: usize, a: &dyn Fn(usize, usize) -> i64, b: &dyn Fn(usize, usize) -> i64) -> [i64; 8] {
    let (high, column) = (i % 32 / 16, i % 16);
    std::array::from_fn(|r| (0..16).map(|k| a(2 * r + high, k) * b(column, k)).sum())
}

fn floats(inputs: &Inputs) -> Vec<u32> {
    let small = |x: u32| i64::from(x % 9) - 4;
    slots(inputs, |i, _, _| {
        let base = i / 32 * 32;
        let dots = products(i, &|row, k| small(inputs.a[(base + row * 16 + k) % N]), &|column, k| {
            small(inputs.b[(base + column * 5 + k) % N])
        });
        let single = |r: usize| (dots[r] as f32 + (r * 3 + i % 64) as f32).to_bits();
        let half = |r: usize, n: usize| f16::from_f32((dots[r] + n as i64) as f32).to_bits();
        let mut row: Vec<u32> = (0..8).map(single).collect();
        row.extend((0..8).map(single));
        row.extend((0..8).map(|r| u32::from(half(r, 2 * r)) | u32::from(half(r, 2 * r + 1)) << 16));
        row.extend((0..8).map(|r| u32::from(bf16::from_f32((dots[r] + 2 * r as i64) as f32).to_bits())));
        row
    })
}

fn integers(inputs: &Inputs) -> Vec<u32> {
    let (signed8, unsigned8) = (|x: u32| i64::from(x as u8 as i8), |x: u32| i64::from(x as u8));
    let (signed4, unsigned4) = (|x: u32| i64::from((x << 28) as i32 >> 28), |x: u32| i64::from(x & 15));
    let limit = |x: i64| x.clamp(i32::MIN.into(), i32::MAX.into());
    slots(inputs, |i, _, _| {
        let base = i / 32 * 32;
        let of =
            |v: &[u32], row: usize, k: usize, bits: usize| v[(base + row * 4 + k * bits / 32) % N] >> (k * bits % 32);
        let dot = |bits: usize, fa: fn(u32) -> i64, fb: fn(u32) -> i64| {
            let sums = products(i, &|row, k| fa(of(&inputs.a, row, k, bits)), &|column, k| {
                fb(of(&inputs.b, column, k, bits))
            });
            let c = |r: usize| i64::from(inputs.a[(base + r) % N] as i32);
            (0..8).map(move |r| sums[r] + c(r)).collect::<Vec<i64>>()
        };
        let mut row: Vec<u32> = dot(8, signed8, unsigned8).iter().map(|x| *x as u32).collect();
        row.extend(dot(8, unsigned8, signed8).iter().map(|x| limit(*x) as u32));
        row.extend(dot(4, signed4, signed4).iter().map(|x| *x as u32));
        row.extend(dot(4, unsigned4, signed4).iter().map(|x| limit(*x) as u32));
        row
    })
}
