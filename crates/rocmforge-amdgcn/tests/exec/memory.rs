//! Memory, LDS, lanes and control flow.

use crate::card::{Arg, Card, Numbers, kernels, lanes};
use rocmforge_amdgcn::Status;

#[test]
fn vector_add_of_every_odd_size() {
    for n in [1usize, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000] {
        let mut numbers = Numbers(n as u64);
        let (a, b) = (numbers.f32s(n), numbers.f32s(n));
        let mut card = Card::new(kernels());
        let (da, db, dc) = (card.upload(&a), card.upload(&b), card.alloc(n * 4));
        let args = [Arg::Ptr(da), Arg::Ptr(db), Arg::Ptr(dc), Arg::U32(n as u32)];
        card.run("vector_add", (n as u32).div_ceil(256), 256, &args);
        for (t, c) in card.download::<f32>(dc, n).into_iter().enumerate() {
            assert!(
                c.to_bits() == (a[t] + b[t]).to_bits() || c.is_nan(),
                "n {n}, element {t}"
            );
        }
    }
}

#[test]
fn reduction_through_lds_in_any_wave_order() {
    let x: Vec<f32> = (0..512).map(|k| (k % 97) as f32).collect();
    for seed in 0..20 {
        let mut card = Card::new(kernels());
        card.options.wave_order_seed = seed;
        let (dx, ds) = (card.upload(&x), card.alloc(8));
        let outcome = card.run("block_sum", 2, 256, &[Arg::Ptr(dx), Arg::Ptr(ds)]);
        let expected: Vec<f32> = x.chunks(256).map(|block| block.iter().sum()).collect();
        assert_eq!(card.download::<f32>(ds, 2), expected, "seed {seed}");
        assert_eq!(
            (outcome.counters.waves, outcome.counters.barriers),
            (512 / u64::from(lanes()), 18)
        );
    }
}

#[test]
fn dynamic_lds_has_the_size_the_launch_gives() {
    let x: Vec<u32> = (0..100).collect();
    let mut card = Card::new(kernels());
    let (dx, dy) = (card.upload(&x), card.alloc(400));
    let args = || [Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(100)];
    let outcome = card.launch("dynamic_lds", [1; 3], [128, 1, 1], 400, &args());
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults);
    assert_eq!(
        card.download::<u32>(dy, 100),
        x.iter().rev().copied().collect::<Vec<_>>()
    );
    let outcome = card.launch("dynamic_lds", [1; 3], [128, 1, 1], 396, &args());
    assert_eq!(outcome.status, Status::Faulted, "one word less is out of bounds");
}

#[test]
fn atomics_on_lds_and_global_memory() {
    let n = 1000usize;
    let x = Numbers(9).u32s(n);
    let mut card = Card::new(kernels());
    let (dx, db) = (card.upload(&x), card.upload(&[5u32; 16]));
    card.run("histogram", 4, 256, &[Arg::Ptr(dx), Arg::Ptr(db), Arg::U32(n as u32)]);
    let mut expected = [5u32; 16];
    x.iter().for_each(|x| expected[*x as usize & 15] += 1);
    assert_eq!(card.download::<u32>(db, 16), expected);

    let (dw, dd, df) = (
        card.upload(&[1000u32, !0, 0, 0, 0, 0, 0, 0]),
        card.upload(&[0u64, 7]),
        card.upload(&[1.0f32]),
    );
    card.run("atomics", 2, 256, &[Arg::Ptr(dw), Arg::Ptr(dd), Arg::Ptr(df)]);
    let w: Vec<u32> = card.download(dw, 8);
    assert_eq!(w[..4], [488, 0, !0, (0..512).fold(0, |x, t| x ^ t)]);
    assert_eq!((w[4] as i32, w[5] as i32, w[6], w[7]), (411, -461, 511 * 7, 511));
    let old_sum: u64 = (0..511).sum();
    assert_eq!(card.download::<u64>(dd, 2), [(512 * 511 / 2) << 32 | 512, 7 + old_sum]);
    assert_eq!(card.download::<f32>(df, 1), [257.0]);
}

#[test]
fn lanes_exchange_values() {
    let x = Numbers(11).u32s(256);
    let mut card = Card::new(kernels());
    let (dx, dy, dz) = (card.upload(&x), card.alloc(4096), card.alloc(1024));
    card.run("shuffles", 1, 256, &[Arg::Ptr(dx), Arg::Ptr(dy)]);
    let y: Vec<u32> = card.download(dy, 1024);
    for (t, y) in y.chunks(4).enumerate() {
        let wave = &x[t & !31..(t & !31) + 32];
        assert_eq!(y[0], wave.iter().fold(0u32, |s, v| s.wrapping_add(*v)), "sum {t}");
        assert_eq!(y[1], x[t ^ 1], "swizzle {t}");
        assert_eq!(y[2], wave[0].wrapping_add(wave[5]), "read lane {t}");
        assert_eq!(y[3], if t % 16 == 0 { x[t] } else { x[t - 1] }, "row shift {t}");
    }
    let small: Vec<u32> = x.iter().map(|v| v % 2000).collect();
    let dx = card.upload(&small);
    card.run("ballots", 1, 256, &[Arg::Ptr(dx), Arg::Ptr(dz)]);
    for (t, z) in card.download::<u32>(dz, 256).into_iter().enumerate() {
        let (lane, wave) = (t & 31, &small[t & !31..(t & !31) + 32]);
        let odd = (0..32).fold(0u32, |m, l| m | (wave[l] & 1) << l);
        if small[t] > 1000 {
            assert_eq!(z, odd + (odd & ((1 << lane) - 1)).count_ones(), "{t}");
        } else if wave[lane ^ 16] <= 1000 {
            assert_eq!(z, odd ^ wave[lane ^ 16], "{t}");
        }
    }
}

#[test]
fn bytes_shorts_and_wide_words() {
    for n in [1usize, 32, 33, 100] {
        let mut numbers = Numbers(n as u64);
        let a: Vec<u8> = (0..n).map(|_| numbers.next() as u8).collect();
        let b: Vec<i8> = (0..n).map(|_| numbers.next() as i8).collect();
        let mut card = Card::new(kernels());
        let (da, db, dy, ds) = (card.upload(&a), card.upload(&b), card.alloc(n), card.alloc(2 * n));
        card.run(
            "bytes",
            1,
            128,
            &[
                Arg::Ptr(da),
                Arg::Ptr(db),
                Arg::Ptr(dy),
                Arg::Ptr(ds),
                Arg::U32(n as u32),
            ],
        );
        let (y, s): (Vec<u8>, Vec<i16>) = (card.download(dy, n), card.download(ds, n));
        for t in 0..n {
            assert_eq!(y[t], a[t].wrapping_add(b[t] as u8));
            assert_eq!(s[t], i16::from(a[t]).wrapping_mul(i16::from(b[t])));
        }
        let f: Vec<[f32; 4]> = (0..n).map(|k| [k as f32, 0.5, -1.0, k as f32 + 9.0]).collect();
        let u: Vec<u64> = (0..n).map(|_| numbers.next()).collect();
        let (df, dg, du, dz) = (card.upload(&f), card.alloc(16 * n), card.upload(&u), card.alloc(8 * n));
        card.run(
            "wide_copy",
            1,
            128,
            &[
                Arg::Ptr(df),
                Arg::Ptr(dg),
                Arg::Ptr(du),
                Arg::Ptr(dz),
                Arg::U32(n as u32),
            ],
        );
        for (t, got) in card.download::<[f32; 4]>(dg, n).into_iter().enumerate() {
            assert_eq!(got, [f[t][3], f[t][2], f[t][1], f[t][0]]);
        }
        for (t, got) in card.download::<u64>(dz, n).into_iter().enumerate() {
            assert_eq!(got, u[n - 1 - t].wrapping_add(1));
        }
    }
}

#[test]
fn calls_private_arrays_generic_pointers_and_constants() {
    let x: Vec<u32> = (1..=256).collect();
    let mut card = Card::new(kernels());
    let (dx, dy) = (card.upload(&x), card.alloc(1024));
    let collatz = |mut x: u32| {
        let mut n = 0;
        while x != 1 {
            x = if x % 2 == 1 { 3 * x + 1 } else { x / 2 };
            n += 1;
        }
        n
    };
    card.run("calls", 1, 256, &[Arg::Ptr(dx), Arg::Ptr(dy)]);
    assert_eq!(
        card.download::<u32>(dy, 256),
        x.iter().map(|&x| collatz(x) + collatz(x + 1)).collect::<Vec<u32>>()
    );
    card.run("private_array", 1, 256, &[Arg::Ptr(dx), Arg::Ptr(dy)]);
    let expected: Vec<u32> = (0..256u32)
        .map(|t| (0..16).map(|n| x[t as usize] * ((n * 5 + t) & 15) * n).sum())
        .collect();
    assert_eq!(card.download::<u32>(dy, 256), expected);
    for (which, factor) in [(0, 3), (1, 2)] {
        card.run(
            "generic_pointer",
            1,
            256,
            &[Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(which)],
        );
        assert_eq!(
            card.download::<u32>(dy, 256),
            (0..256).map(|t| t * factor).collect::<Vec<u32>>()
        );
    }
    card.run("generic_pointer", 1, 256, &[Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(2)]);
    assert_eq!(card.download::<u32>(dy, 256), x);
    card.run("constants", 1, 256, &[Arg::Ptr(dx), Arg::Ptr(dy)]);
    let table = [3, 1, 4, 1, 5, 9, 2, 6];
    assert_eq!(
        card.download::<u32>(dy, 256),
        x.iter().map(|&x| table[x as usize & 7]).collect::<Vec<u32>>()
    );
}

#[test]
fn hidden_arguments_and_ids_in_three_dimensions() {
    let (grid, block) = ([3u32, 2, 2], [5u32, 3, 2]);
    let total = 12 * 30;
    let mut card = Card::new(kernels());
    let dy = card.alloc(total * 4);
    let outcome = card.launch("geometry", grid, block, 0, &[Arg::Ptr(dy)]);
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults);
    for (k, y) in card.download::<u32>(dy, total).into_iter().enumerate() {
        let (group, t) = (k as u32 / 30, k as u32 % 30);
        assert_eq!(y, group << 24 | (t / 15) << 16 | (t / 5 % 3) << 8 | (t % 5), "{k}");
    }
}
