//! Waves of 64 lanes: what crosses their halves, masks of 64 bits, partial waves, and faults above lane 31.

use crate::card::{Arg, Card, Numbers, arch};
use rocmforge_amdgcn::{DEVICE_BASE, FaultKind, Outcome, Program, Status, Tools};
use rocmforge_isa::Arch;

const SOURCE: &str = include_str!("../fixtures/wave64.hip");
/// Sizes of workgroups, whole waves and partial ones.
const SIZES: [u32; 10] = [1, 31, 32, 33, 63, 64, 65, 100, 128, 256];

fn object() -> &'static [u8] {
    match arch() {
        Arch::Gfx1100 => include_bytes!("../fixtures/wave64-gfx1100.co"),
        Arch::Gfx1201 => include_bytes!("../fixtures/wave64-gfx1201.co"),
    }
}

/// Runs one workgroup, with all checks, and gives what it wrote to the last `words` allocated.
fn run(kernel: &str, size: u32, inputs: &[&[u32]], words: usize, rest: &[u32]) -> Vec<u32> {
    let mut card = Card::new(object());
    card.options.tools = Tools {
        init_registers: true,
        ..Tools::all()
    };
    let mut args: Vec<Arg> = inputs.iter().map(|x| Arg::Ptr(card.upload(x))).collect();
    let out = card.upload(&vec![0xeeee_eeeeu32; words]);
    args.push(Arg::Ptr(out));
    args.extend(rest.iter().map(|n| Arg::U32(*n)));
    card.run(kernel, 1, size, &args);
    card.download(out, words)
}

#[test]
fn lanes_know_their_number_and_partial_waves_have_fewer() {
    for n in SIZES {
        let out = run("lanes", n, &[], 3 * n as usize, &[n]);
        for t in 0..n {
            let active = (n - t / 64 * 64).min(64);
            let at = |k: u32| out[(k * n + t) as usize];
            assert_eq!((at(0), at(1), at(2)), (t % 64, active, t % 64 + 7), "{t} of {n}");
        }
    }
}

#[test]
fn ballots_have_64_bits() {
    for n in SIZES {
        let x: Vec<u32> = Numbers(n.into()).u32s(n as usize).iter().map(|x| x % 2000).collect();
        let out = run("ballots", n, &[&x], 8 * n as usize, &[]);
        for (t, out) in out.chunks(8).enumerate() {
            let wave = &x[t / 64 * 64..(t / 64 * 64 + 64).min(n as usize)];
            let mask = |f: &dyn Fn(u32) -> bool| {
                let bits = wave.iter().enumerate().map(|(l, x)| u64::from(f(*x)) << l);
                bits.fold(0u64, |all, bit| all | bit)
            };
            let word = |k: usize| u64::from(out[2 * k]) | u64::from(out[2 * k + 1]) << 32;
            let inner = if x[t] & 2 != 0 { mask(&|x| x & 6 == 6) } else { 0 };
            assert_eq!(word(0), mask(&|x| x & 1 != 0), "{t} of {n}");
            assert_eq!(word(1), mask(&|x| x > 1000 && x & 1 == 0), "{t} of {n}");
            assert_eq!(word(2), inner, "{t} of {n}");
            assert_eq!(word(3), mask(&|_| true), "{t} of {n}");
        }
    }
}

#[test]
fn lanes_leave_a_loop_one_by_one() {
    for n in [1u32, 33, 63, 65, 200, 256] {
        let x = Numbers(77).u32s(n as usize);
        let out = run("collatz", 256, &[&x], n as usize, &[n]);
        for (t, &rounds) in out.iter().enumerate() {
            let (mut v, mut expected) = (x[t] % 1000 + 1, 0);
            while v != 1 && expected <= 200 {
                v = if v & 1 != 0 { 3 * v + 1 } else { v / 2 };
                expected += 1;
            }
            assert_eq!(rounds, expected, "{t} of {n}");
        }
    }
}

#[test]
fn single_lanes_are_read_and_written_in_both_halves() {
    let x = Numbers(5).u32s(256);
    for pick in [0u32, 31, 32, 63, 64 + 40] {
        let out = run("readlanes", 256, &[&x], 1024, &[pick]);
        for t in 0..256 {
            let wave = &x[t / 64 * 64..t / 64 * 64 + 64];
            let first = if t % 64 >= 37 { wave[37] } else { 0 };
            let written = if matches!(t % 64, 3 | 51) { 0xabcd } else { x[t] };
            assert_eq!(out[t], first, "{t}");
            assert_eq!(out[256 + t], wave[45], "{t}");
            assert_eq!(out[512 + t], wave[pick as usize % 64], "{t}");
            assert_eq!(out[768 + t], written, "{t}");
        }
    }
}

#[test]
fn values_move_within_and_across_the_halves() {
    let sel = Numbers(6).u32s(256);
    let mut card = Card::new(object());
    let (ds, dy) = (card.upload(&sel), card.alloc(2304 * 4));
    card.run("exchanges", 1, 256, &[Arg::Ptr(dy), Arg::Ptr(ds)]);
    let out: Vec<u32> = card.download(dy, 2304);
    let whole = arch() == Arch::Gfx1201;
    for t in 0..256usize {
        let l = t % 64;
        // Only gfx1201 permutes over the whole wave.
        let from = sel[t] as usize % if whole { 64 } else { 32 } + if whole { 0 } else { l & 32 };
        let rows = [0x7654_3210u32, 0xfedc_ba89];
        let cross = [0x7654_3210u32, 0xfedc_ba98];
        let nibble = |select: [u32; 2]| (select[l / 8 % 2] >> (4 * (l % 8)) & 15) as usize;
        let value = |lane: usize| lane as u32 + 100;
        let at = |k: usize| out[256 * k + t];
        assert_eq!(at(0), value(from), "bpermute {t}");
        assert_eq!(at(1), value(l ^ 5), "permute {t}");
        assert_eq!(at(2), value(l ^ 16), "swizzle {t}");
        assert_eq!(at(3), if l % 16 == 0 { 1 } else { value(l - 1) }, "row_shr {t}");
        let mirrored = matches!(l / 16, 0 | 3);
        assert_eq!(at(4), if mirrored { value(l ^ 7) } else { 2 }, "row mask {t}");
        assert_eq!(at(5), value(l & 48 | nibble(rows)), "permlane16 {t}");
        assert_eq!(at(6), value((l & 48 ^ 16) | nibble(cross)), "permlanex16 {t}");
        assert_eq!(at(7), value(l ^ 32), "permlane64 {t}");
        let written = !(20..=40).contains(&l);
        assert_eq!(at(8), if written { value(l ^ 32) } else { 5 }, "permlane64 of some {t}");
    }
}

#[test]
fn lanes_of_both_halves_are_counted_in_lds() {
    let out = run("bytes_of_lds", 256, &[], 258, &[]);
    assert_eq!(out[256..], [5 + 64, 7 + 96]);
    for (t, &old) in out[..256].iter().enumerate() {
        // All lanes of a wave get the old value. The second counter is one of upper lanes alone.
        let wave = t as u32 / 64;
        let expected = match t % 64 {
            40.. => 7 + 24 * wave,
            _ if t % 4 == 1 => 5 + 16 * wave,
            _ => !0,
        };
        assert_eq!(old, expected, "{t}");
    }
}

#[test]
fn carries_products_and_divisions() {
    let mut numbers = Numbers(8);
    let (a, b): (Vec<u64>, Vec<u64>) = (0..256).map(|_| (numbers.next(), numbers.next() | 1 << 50)).unzip();
    let mut card = Card::new(object());
    let inputs = [card.upload(&a), card.upload(&b)];
    let [sum, product, quotient] = [0; 3].map(|_| card.alloc(2048));
    let single = card.alloc(1024);
    let args = [inputs[0], inputs[1], sum, product, quotient, single].map(Arg::Ptr);
    card.run("wide_numbers", 1, 256, &args);
    let (sums, products): (Vec<u64>, Vec<u64>) = (card.download(sum, 256), card.download(product, 256));
    let (quotients, singles): (Vec<f64>, Vec<f32>) = (card.download(quotient, 256), card.download(single, 256));
    for t in 0..256 {
        assert_eq!(sums[t], a[t].wrapping_add(b[t]), "{t}");
        assert_eq!(products[t], a[t].wrapping_mul(b[t]), "{t}");
        assert_eq!(quotients[t], a[t] as i64 as f64 / b[t] as i64 as f64, "{t}");
        let single = (a[t] >> 40) as f32 / (b[t] >> 40) as f32;
        assert!(
            (singles[t] - single).abs() <= 3e-7 * single.abs(),
            "{t}: {} {single}",
            singles[t]
        );
    }
}

#[test]
fn private_memory_and_calls() {
    let x = Numbers(9).u32s(256);
    for n in SIZES {
        let x = &x[..n as usize];
        let out = run("private_array", n, &[x], n as usize, &[20]);
        for t in 0..n {
            let mine = |k: u32| x[t as usize].wrapping_add(k * t);
            let expected = (0..20).fold(0u32, |sum, k| sum.wrapping_add(mine((t + k * 3) & 31)));
            assert_eq!(out[t as usize], expected, "{t} of {n}");
        }
        let mut card = Card::new(object());
        let (dx, dy) = (card.upload(x), card.alloc(n as usize * 4));
        card.run("calls", 1, n, &[Arg::Ptr(dx), Arg::Ptr(dy)]);
        for (t, out) in card.download::<u32>(dy, n as usize).into_iter().enumerate() {
            let expected = match x[t] {
                v if v % 3 == 0 => v,
                v if v & 8 != 0 => v.wrapping_mul(t as u32),
                v => v.wrapping_add(t as u32).wrapping_add(t as u32 % 64),
            };
            assert_eq!(out, expected, "{t} of {n}");
        }
    }
}

#[test]
fn atomics_of_all_lanes() {
    for n in SIZES {
        let x: Vec<f32> = (0..n).map(|k| k as f32 * 0.5).collect();
        let mut card = Card::new(object());
        let (dx, ds, dy) = (card.upload(&x), card.upload(&[0u32; 2]), card.alloc(n as usize * 4));
        card.run("floats_add", 1, n, &[dx, ds, dy].map(Arg::Ptr));
        assert_eq!(card.download::<f32>(ds, 1), [x.iter().sum::<f32>()], "{n}");
        let mut order: Vec<u32> = card.download(dy, n as usize);
        order.sort_unstable();
        assert_eq!(order, (0..n).collect::<Vec<_>>(), "{n}");
    }
}

/// The one fault of an outcome, which is of this kind and at the line that is marked so.
#[track_caller]
fn fault(outcome: &Outcome, kind: FaultKind, name: &str) -> rocmforge_amdgcn::Fault {
    let [fault] = &outcome.faults[..] else {
        panic!("{name}: {:?}", outcome.faults);
    };
    let marker = format!("// {name}");
    let line = 1 + SOURCE.lines().position(|line| line.ends_with(&marker)).expect("marked");
    assert_eq!((fault.kind, fault.frames[0].line as usize), (kind, line), "{fault}");
    fault.clone()
}

#[test]
fn faults_name_lanes_above_31() {
    let mut card = Card::new(object());
    let (dx, dy) = (card.upload(&[1u32; 106]), card.alloc(1024));
    let args = || [Arg::Ptr(dx), Arg::Ptr(dy)];
    let outcome = card.launch("past_end", [1; 3], [107, 1, 1], 0, &args());
    let found = fault(&outcome, FaultKind::GlobalOutOfBounds, "past_end");
    assert_eq!(
        (found.address, found.wave, found.lane, found.count),
        (dx + 424, 1, 42, 1)
    );

    let outcome = card.launch("lds_past_end", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(dy)]);
    let found = fault(&outcome, FaultKind::LdsOutOfBounds, "lds_past_end");
    assert_eq!((found.address, found.lane, found.count), (200, 50, 14));

    let outcome = card.launch("some_at_barrier", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(dy)]);
    let found = fault(&outcome, FaultKind::BarrierDivergence, "some_at_barrier");
    assert_eq!(found.lane, 45);
    assert!(found.note.contains("0x200000000000"), "{}", found.note);

    let unwritten = card.alloc(256);
    let part: Vec<u8> = [1u32; 55].iter().flat_map(|x| x.to_le_bytes()).collect();
    card.memory.write(unwritten, &part).expect("inside");
    let args = [Arg::Ptr(unwritten), Arg::Ptr(dy)];
    let outcome = card.launch("unknown", [1; 3], [64, 1, 1], 0, &args);
    let found = fault(&outcome, FaultKind::UninitialisedGlobal, "unknown");
    assert_eq!((found.address, found.lane), (unwritten + 220, 55), "{found}");
    let outcome = card.launch("unknown", [1; 3], [55, 1, 1], 0, &args);
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults);
}

#[test]
fn halves_of_a_wave_race_as_waves_do() {
    let mut card = Card::new(object());
    card.options.tools = Tools::all();
    let dy = card.alloc(64);
    let sides = |outcome: &Outcome| -> Vec<[u32; 4]> {
        let one = |fault: &rocmforge_amdgcn::Fault| {
            assert_eq!(fault.kind, FaultKind::GlobalRace, "{fault}");
            let other = fault.other.as_ref().expect("two sides");
            [fault.wave, fault.lane, other.wave, other.lane]
        };
        outcome.faults.iter().map(one).collect()
    };
    let outcome = card.launch("race", [1; 3], [128, 1, 1], 0, &[Arg::Ptr(dy)]);
    assert_eq!(sides(&outcome), [[0, 63, 0, 3], [1, 40, 0, 40]], "{:?}", outcome.faults);
    let outcome = card.launch("race", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(dy)]);
    assert_eq!(sides(&outcome), [[0, 63, 0, 3]], "{:?}", outcome.faults);
    let touches: Vec<_> = (outcome.footprint.touches.iter())
        .filter(|touch| touch.start == dy)
        .map(|touch| (touch.wave, touch.lane))
        .collect();
    assert_eq!(touches, [(0, 40)]);
}

#[test]
fn counters_count_waves_of_64_lanes() {
    let mut card = Card::new(object());
    card.options.counters = true;
    let x = card.upload(&[3u32; 256]);
    let y = card.alloc(1024);
    let outcome = card.run("past_end", 1, 256, &[Arg::Ptr(x), Arg::Ptr(y)]);
    let counters = &outcome.counters;
    assert_eq!(counters.waves, 4);
    // Each half of a wave asks by itself, as the hardware's two passes do.
    assert_eq!((counters.loads.requests, counters.loads.bytes), (8, 1024));
    assert_eq!((counters.stores.requests, counters.stores.bytes), (8, 1024));
}

/// A register of a wave of 64 lanes takes the place of two, and waves come in half the number: LLVM counts 768 registers, twelve at a time.
#[test]
fn occupancy_counts_waves_of_64_lanes() {
    let program = Program::load(object(), DEVICE_BASE).expect("loads");
    let kernel = program.kernel("lanes").expect("the kernel");
    let o = kernel.occupancy(program.arch().compute_unit(), 256, 0);
    assert_eq!((o.workgroups, o.waves_per_simd, o.vgprs % 12), (16, 16, 0));
    assert!(o.vgprs <= 24, "{o:?}");
}

/// Each half moves by itself: all lanes of both are reported.
#[test]
fn registers_that_a_wave_does_not_have() {
    if arch() == Arch::Gfx1100 {
        let mut card = Card::new(include_bytes!("../fixtures/registers-gfx1100-wave64.co"));
        card.options.tools = Tools {
            init_registers: true,
            ..Tools::none()
        };
        let y = card.alloc(256);
        let mut launch = |kernel, args: &[Arg]| card.launch(kernel, [1; 3], [64, 1, 1], 0, args);
        assert_eq!(launch("relative_written", &[Arg::Ptr(y)]).status, Status::Completed);
        let kinds = |outcome: &Outcome| -> Vec<(FaultKind, u64)> {
            outcome.faults.iter().map(|fault| (fault.kind, fault.count)).collect()
        };
        let unwritten = launch("relative_never_written", &[Arg::Ptr(y)]);
        assert_eq!(kinds(&unwritten)[0].0, FaultKind::UninitialisedRegister);
        let outside = launch("relative_outside", &[Arg::Ptr(y), Arg::U32(1000)]);
        assert_eq!(kinds(&outside), [(FaultKind::RegisterOutOfRange, 2); 2]);
    }
}
