//! References of `kernels/memory.hip`.

use crate::{Inputs, N, Reference, slots, words};

pub(crate) const KERNELS: &[(&str, Reference)] = &[
    ("scratch", scratch),
    ("calls", calls),
    ("jumps", jumps),
    ("generic", generic),
    ("atomics", atomics),
    ("float_atomics", float_atomics),
    ("lds", lds),
    ("by_hand", by_hand),
    ("relative", relative),
    ("geometry", |inputs| slots(inputs, |_, _, _| vec![64 | 1 << 12, 128])),
    ("clock", |inputs| slots(inputs, |_, _, _| vec![1])),
];

fn scratch(inputs: &Inputs) -> Vec<u32> {
    let Inputs { a, b, .. } = inputs;
    slots(inputs, |i, x, y| {
        let (mut numbers, mut wides, mut bytes) = ([0; 32], [0; 8], [0; 16]);
        for k in 0..32 {
            numbers[(k as u32 * 7).wrapping_add(x) as usize & 31] = b[(i + k) % N];
        }
        for k in 0..8 {
            wides[(k as u32 * 3).wrapping_add(y) as usize & 7] = u64::from(a[(i + k) % N]) << 20;
        }
        for k in 0..16 {
            bytes[(k as u32 * 5).wrapping_add(x) as usize & 15] = b[(i + k) % N] & 0xff;
        }
        let wide = words(wides[x as usize & 7]);
        vec![
            numbers[y as usize & 31].wrapping_add(numbers[x as usize >> 5 & 31]),
            wide[0],
            wide[1],
            bytes[y as usize & 15] | bytes[x as usize >> 4 & 15] << 8,
        ]
    })
}

fn mix(x: u32, y: u32) -> u32 {
    x.wrapping_mul(5) ^ y
}

fn fibonacci(n: u32, m: u32) -> u32 {
    if n < 2 {
        n + m
    } else {
        fibonacci(n - 1, m) + fibonacci(n - 2, m)
    }
}

fn deep(x: u32, y: u32) -> u32 {
    let kept: [u32; 8] = std::array::from_fn(|k| mix(x.wrapping_add(k as u32), y));
    kept[y as usize & 7].wrapping_add(kept[x as usize & 7]).wrapping_add(1)
}

fn calls(inputs: &Inputs) -> Vec<u32> {
    let table = [u32::wrapping_add, mix, fibonacci, deep];
    slots(inputs, |_, a, b| {
        vec![table[a as usize & 3](b & 7, a >> 8 & 7), deep(b, a)]
    })
}

fn jumps(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |i, a, b| {
        let r = match a & 15 {
            0 => b.wrapping_add(3),
            1 => b.wrapping_mul(5),
            2 => (b ^ 0x55).wrapping_sub(9),
            3 => b.wrapping_sub(9),
            4 => b.rotate_left(3),
            5 => !b,
            7 => b / 3,
            8 => b % 10,
            9 => (0..a >> 8 & 7).fold(b, |r, k| r.wrapping_mul(3).wrapping_add(k)),
            11 => inputs.a[b as usize % N],
            _ => 1 + u32::from(b <= a),
        };
        let uniform = inputs.a[i / 32 * 32];
        let all = match uniform & 3 {
            0 => r.wrapping_add(uniform),
            1 => r ^ uniform,
            _ => r.wrapping_sub(uniform),
        };
        vec![r, all]
    })
}

fn generic(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, b| {
        let (mut mine, mut group, mut global) = (a.wrapping_add(1), b.wrapping_add(2), 77);
        let cell = [&mut mine, &mut group, &mut global]
            .into_iter()
            .nth(a as usize % 3)
            .expect("three");
        *cell = cell.wrapping_add(5);
        let sum = *cell;
        vec![global, sum.wrapping_add(mine).wrapping_add(group)]
    })
}

macro_rules! integers {
    ($name:ident, $word:ty) => {
        /// The sums of old values and the last value, as 64 bits.
        fn $name(x: $word) -> [u64; 2] {
            let (mut cell, mut old) = (0 as $word, 0 as $word);
            let steps: [&dyn Fn($word) -> $word; 9] = [
                &|c| c.wrapping_add(x),
                &|c| c.wrapping_sub(x >> 1),
                &|c| c ^ x << 2,
                &|c| c | 0x10101,
                &|c| c & !0x30003,
                &|c| c.min(x | 0x7000),
                &|c| c.max(x & 0xffff),
                &|_| x.wrapping_add(9),
                // The comparison passes for even numbers.
                &|c| if x & 1 == 0 { x.wrapping_mul(3) } else { c },
            ];
            for (n, step) in steps.iter().enumerate() {
                old = if n == 0 {
                    cell
                } else {
                    old.wrapping_mul(3).wrapping_add(cell)
                };
                cell = step(cell);
            }
            [old as i64 as u64, cell as i64 as u64]
        }
    };
}
integers!(u32s, u32);
integers!(u64s, u64);
integers!(i32s, i32);
integers!(i64s, i64);

fn atomics(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |i, a, b| {
        let sums = [
            u32s(a).map(|x| x & 0xffff_ffff),
            u64s(u64::from(a) << 32 | u64::from(b)),
            i32s(b as i32),
            i64s((u64::from(b) << 32 | u64::from(a)) as i64),
        ];
        let mut row: Vec<u32> = sums.into_iter().flatten().flat_map(words).collect();
        row.extend([2, 7]);
        let group = &inputs.a[i / 64 * 64..][..64];
        row.push(group.iter().map(|x| x & 15).sum());
        row
    })
}

fn float_atomics(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, _| {
        let x = (a & 0xfff) as f32;
        let (cell, group) = (1.5 + x, 0.25 + x);
        let least = group.min(17.0);
        vec![
            1.75f32.to_bits(),
            cell.to_bits(),
            group.to_bits(),
            (group + least).to_bits(),
            least.max(3.0).to_bits(),
        ]
    })
}

fn lds(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |i, a, b| {
        let (group, t) = (i / 64 * 64, i % 64);
        let (ga, gb) = (&inputs.a[group..][..64], &inputs.b[group..][..64]);
        let o = 63 - t;
        let bytes: Vec<u8> = ga.iter().flat_map(|x| x.to_le_bytes()).collect();
        let short = |n: usize| u16::from_le_bytes([bytes[2 * n], bytes[2 * n + 1]]);
        let narrow = i32::from(bytes[o] as i8) + i32::from(short(o)) * 3 + i32::from(short(o + 64) as i16) * 5;
        let odd = |g: &[u32]| g[t / 32 * 32..][..32].iter().filter(|x| **x & 1 != 0).count() as u32;
        vec![
            ga[o].wrapping_add(gb[o].wrapping_mul(3)),
            (ga[o] ^ gb[o]).wrapping_add(ga[o].wrapping_add(gb[o]).wrapping_mul(3)),
            (ga[o] & 255) + (gb[o] & 255) * 2 + 12 + 8 * o as u32,
            narrow as u32,
            ga[o & !1],
            ga[o | 1],
            (a & 1) + (b & 1),
            100 + odd(ga) - odd(gb),
        ]
    })
}

fn by_hand(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, b| {
        let old = 0x1234_5670_89ab_cdefu64;
        let exchanged = |data: u32, old: u32| if data >> 31 != 0 { data & 0x7fff_ffff } else { old };
        let [low, high] = words(old);
        vec![
            a,
            a,
            b,
            b,
            a,
            low,
            high,
            exchanged(a, low),
            exchanged(b, high),
            a,
            inputs.a[63],
            1 << 8,
        ]
    })
}

fn relative(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |i, a, _| {
        let mut v: [u32; 16] = std::array::from_fn(|k| inputs.a[(i + k) % N]);
        let uniform = inputs.b[i / 32 * 32] as usize & 15;
        let first = v[uniform];
        v[(uniform + 3) & 15] = 99;
        vec![first, v[(uniform + 2) & 15].wrapping_add(99), v[a as usize & 15]]
    })
}
