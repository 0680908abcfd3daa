//! References of `kernels/lanes.hip`.

use crate::{Inputs, N, Reference, slots};

pub(crate) const KERNELS: &[(&str, Reference)] = &[("dpp", dpp), ("permlanes", permlanes), ("lanes", lanes)];

/// One DPP16 move: `from` gives the lane of the row that is read, if there is one.
fn permuted(
    inputs: &Inputs,
    i: usize,
    from: impl Fn(usize) -> Option<usize>,
    rows: u32,
    banks: u32,
    zero: bool,
) -> u32 {
    let (row, lane) = (i / 16 * 16, i % 16);
    let on = rows >> (i % 32 / 16) & 1 != 0 && banks >> (lane / 4) & 1 != 0;
    match from(lane) {
        _ if !on => inputs.b[i],
        Some(lane) => inputs.a[row + lane],
        None if zero => 0,
        None => inputs.b[i],
    }
}

fn dpp(inputs: &Inputs) -> Vec<u32> {
    let up = |n: usize| move |l: usize| Some(l + n).filter(|&l| l < 16);
    let down = |n: usize| move |l: usize| l.checked_sub(n);
    let eight: [usize; 8] = std::array::from_fn(|n| 0x008d_1ac1 >> (3 * n) & 7);
    let quads = |i: usize| (inputs.a[i / 4 * 4..][..4]).iter().map(|v| v & 0xff).sum::<u32>();
    slots(inputs, |i, _, old| {
        vec![
            permuted(inputs, i, up(1), 15, 15, true),
            permuted(inputs, i, down(3), 15, 15, false),
            permuted(inputs, i, |l| Some((l + 16 - 5) % 16), 15, 15, false),
            permuted(inputs, i, |l| Some(l ^ 1), 15, 15, true),
            permuted(inputs, i, |l| Some(15 - l), 15, 15, false),
            permuted(inputs, i, |l| Some(l / 8 * 8 + 7 - l % 8), 15, 15, false),
            permuted(inputs, i, |_| Some(7), 15, 15, false),
            permuted(inputs, i, |l| Some(l ^ 6), 15, 15, false),
            permuted(inputs, i, |l| Some(l / 4 * 4 + 3 - l % 4), 1, 5, false),
            permuted(inputs, i, up(15), 3, 12, false),
            inputs.a[i / 8 * 8 + eight[i % 8]],
            permuted(inputs, i, down(2), 15, 15, true).wrapping_add(old),
            quads(i),
        ]
    })
}

fn permlanes(inputs: &Inputs) -> Vec<u32> {
    let pick = |low: u64, high: u64, l: usize| ((low | high << 32) >> (4 * (l % 16)) & 15) as usize;
    slots(inputs, |i, v, old| {
        let (wave, l) = (i / 32 * 32, i % 32);
        let same = |lane: usize| wave + l / 16 * 16 + lane;
        let other = |lane: usize| wave + ((l / 16 * 16) ^ 16) + lane;
        let divergent = match (l % 2, l % 16 < 8) {
            // Lane 2 is off and the old value stays; lane 5 is on.
            (1, true) => old,
            (1, false) => inputs.a[same(5)],
            // Lane 3 of the other row is off and gives 0; lane 4 is on.
            (_, true) => 0,
            (_, false) => inputs.a[other(4)],
        };
        vec![
            inputs.a[same(pick(0x0123_4567, 0x89ab_cdef, l))],
            inputs.a[other(pick(0x7654_3210, 0xfedc_ba98, l))],
            v,
            divergent,
        ]
    })
}

/// Where lane `l` reads from in `ds_swizzle_b32`.
fn swizzle(offset: usize, l: usize) -> usize {
    match offset >> 13 {
        7 => {
            let mask = offset & 31;
            let reversed = (0..5).fold(0, |r, n| r | (l >> n & 1) << (4 - n));
            reversed >> mask.count_ones() | l & mask
        }
        6 => {
            let (mask, by) = (offset & 31, offset >> 5 & 31);
            let to = if offset >> 10 & 1 == 0 { l + by } else { l + 32 - by };
            (l & mask) | ((to % 32) & !mask)
        }
        4 | 5 => l / 4 * 4 + (offset >> (2 * (l % 4)) & 3),
        _ => (l & offset & 31 | offset >> 5 & 31) ^ offset >> 10 & 31,
    }
}

fn lanes(inputs: &Inputs) -> Vec<u32> {
    let Inputs { a, b, .. } = inputs;
    slots(inputs, |i, v, w| {
        let (wave, l) = (i / 32 * 32, i % 32);
        let mask = |of: &dyn Fn(usize) -> bool| (0..32).fold(0, |m, l| m | u32::from(of(wave + l)) << l);
        let below = (1u32 << l) - 1;
        let first = (wave..wave + 32).find(|&k| a[k] & 2 != 0);
        let inside = match first {
            Some(first) if v & 2 != 0 => mask(&|k| a[k] & 2 != 0 && b[k] & 1 != 0) ^ a[first],
            _ => 0,
        };
        vec![
            a[wave + 5],
            b[wave],
            mask(&|k| a[k] & 1 != 0),
            (w & below).count_ones() + 7,
            // Lanes above 31 do not exist.
            9,
            if l == 3 { 42 } else { v },
            inside,
            a[wave + swizzle(0x041f, l)],
            a[wave + swizzle(0x80b1, l)],
            a[wave + swizzle(0xc060, l)],
            a[wave + swizzle(0xe01c, l)],
            a[wave + (w as usize & 0xff) / 4 % 32],
            a[wave + (l ^ 9)],
        ]
    })
}

#[test]
fn swizzles_are_permutations() {
    for offset in [0x041f, 0x80b1, 0xc060, 0xe01c] {
        let mut seen = [false; 32];
        (0..32).for_each(|l| seen[swizzle(offset, l)] = true);
        assert!(seen.iter().all(|&s| s), "{offset:#x}");
    }
    assert_eq!(N % 32, 0);
}
