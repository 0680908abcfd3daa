//! Racy kernels, each under many orders of waves: right kind, both lines; their corrected twins are clean and right.

use crate::card::{Arg, Card, racy};
use rocmforge_amdgcn::{Access, Fault, FaultKind, Outcome, Status, Tools};

const SOURCE: &str = include_str!("../fixtures/races.hip");
const SEEDS: u64 = 12;

/// Line of the statement marked `// name`.
fn line(name: &str) -> u32 {
    let marker = format!("// {name}");
    1 + SOURCE.lines().position(|line| line.ends_with(&marker)).expect("marked") as u32
}

fn card(seed: u64) -> Card {
    let mut card = Card::new(racy());
    card.options.tools = Tools::all();
    card.options.wave_order_seed = seed;
    card
}

/// Lines of both sides, lower first.
fn lines(fault: &Fault) -> [u32; 2] {
    let other = fault.other.as_ref().unwrap_or_else(|| panic!("one side only: {fault}"));
    let line = |frames: &[rocmforge_amdgcn::Frame]| {
        let frame = frames.first().unwrap_or_else(|| panic!("no position: {fault}"));
        assert!(frame.file.ends_with("races.hip"), "{fault}");
        frame.line
    };
    let mut both = [line(&fault.frames), line(&other.frames)];
    both.sort_unstable();
    both
}

/// Runs a launch under many orders: each time there must be a race of this kind between these two lines, and no race
/// between others.
#[track_caller]
fn races(kind: FaultKind, a: &str, b: &str, launch: impl Fn(&mut Card) -> Outcome) {
    for seed in 0..SEEDS {
        let mut card = card(seed);
        // What is not ordered may also not be written yet; that is another tool's business.
        card.options.tools.initcheck = false;
        let outcome = launch(&mut card);
        assert!(!outcome.faults.is_empty(), "{a}: nothing found with seed {seed}");
        for fault in &outcome.faults {
            assert_eq!(fault.kind, kind, "seed {seed}: {fault}");
            let mut wanted = [line(a), line(b)];
            wanted.sort_unstable();
            let found = lines(fault);
            assert!(
                found == wanted || found == [wanted[0]; 2] || found == [wanted[1]; 2],
                "seed {seed}: {fault}"
            );
            let other = fault.other.as_ref().expect("checked");
            // In a wave of 64 they are two passes of one instruction.
            assert!(
                (fault.workgroup, fault.wave, fault.lane / 32) != (other.workgroup, other.wave, other.lane / 32),
                "32 lanes do not race among themselves: {fault}"
            );
        }
        let between = |fault: &Fault| {
            lines(fault) == {
                let mut w = [line(a), line(b)];
                w.sort_unstable();
                w
            }
        };
        assert!(
            outcome.faults.iter().any(between),
            "{a} and {b}, seed {seed}: {}",
            outcome.faults[0]
        );
    }
}

#[track_caller]
fn clean(outcome: &Outcome) {
    if let Some(fault) = outcome.faults.first() {
        panic!("{fault}");
    }
    assert_eq!(outcome.status, Status::Completed);
}

fn x() -> Vec<u32> {
    (0..2048u32).map(|n| n * 7 + 1).collect()
}

#[test]
fn barriers_order_lds() {
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let (dx, dy) = (card.upload(&x()), card.alloc(1024));
        let args = || [Arg::Ptr(dx), Arg::Ptr(dy)];
        clean(&card.launch("reduce_fixed", [1; 3], [256, 1, 1], 0, &args()));
        let sum: u32 = x()[..256].iter().sum();
        assert_eq!(
            card.download::<u32>(dy, 256),
            (0..256).map(|t| sum + t).collect::<Vec<_>>()
        );
        clean(&card.launch("lds_raw_fixed", [1; 3], [256, 1, 1], 0, &args()));
        assert_eq!(card.download::<u32>(dy, 1), [x()[255]]);
    }
    races(FaultKind::LdsRace, "lds_raw_racy:a", "lds_raw_racy:b", |card| {
        let (dx, dy) = (card.upload(&x()), card.alloc(1024));
        card.launch("lds_raw_racy", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dx), Arg::Ptr(dy)])
    });
    races(FaultKind::LdsRace, "reduce_racy:c", "reduce_racy:d", |card| {
        let (dx, dy) = (card.upload(&x()), card.alloc(1024));
        card.launch("reduce_racy", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dx), Arg::Ptr(dy)])
    });
}

#[test]
fn two_writes_race_unless_they_write_the_same() {
    races(FaultKind::LdsRace, "lds_waw_racy:a", "lds_waw_racy:a", |card| {
        let dy = card.alloc(1024);
        card.launch("lds_waw_racy", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dy)])
    });
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let dy = card.alloc(1024);
        clean(&card.launch(
            "lds_waw_fixed",
            [1; 3],
            [256, 1, 1],
            0,
            &[Arg::Ptr(dy), Arg::U32(seed as u32)],
        ));
        assert_eq!(card.download::<u32>(dy, 256), vec![seed as u32; 256]);
    }
}

#[test]
fn atomics_race_with_plain_accesses_only() {
    races(FaultKind::LdsRace, "lds_counter_racy:a", "lds_counter_racy:b", |card| {
        let dy = card.alloc(4);
        card.launch("lds_counter_racy", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dy)])
    });
    races(FaultKind::GlobalRace, "count_racy:a", "count_racy:a", |card| {
        let n = card.upload(&[0u32]);
        card.launch("count_racy", [5, 1, 1], [64, 1, 1], 0, &[Arg::Ptr(n)])
    });
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let dy = card.alloc(4);
        clean(&card.launch("lds_counter_fixed", [3, 1, 1], [256, 1, 1], 0, &[Arg::Ptr(dy)]));
        assert_eq!(card.download::<u32>(dy, 1), [256]);
        let n = card.upload(&[0u32]);
        clean(&card.launch("count_fixed", [5, 1, 1], [64, 1, 1], 0, &[Arg::Ptr(n)]));
        assert_eq!(card.download::<u32>(n, 1), [5]);
    }
}

#[test]
fn neighbours_in_one_dword_do_not_race() {
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let dy = card.alloc(8);
        clean(&card.launch("bytes_fixed", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dy)]));
        assert_eq!(card.download::<u8>(dy, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
    races(FaultKind::GlobalRace, "bytes_racy:a", "bytes_racy:a", |card| {
        let dy = card.alloc(8);
        card.launch("bytes_racy", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dy)])
    });
}

#[test]
fn global_memory_in_and_between_workgroups() {
    races(FaultKind::GlobalRace, "exchange_racy:a", "exchange_racy:b", |card| {
        let (dy, dz) = (card.alloc(1024), card.alloc(1024));
        card.launch("exchange_racy", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dy), Arg::Ptr(dz)])
    });
    races(FaultKind::GlobalRace, "stencil_racy:a", "stencil_racy:b", |card| {
        let dy = card.upload(&x());
        card.launch("stencil_racy", [8, 1, 1], [256, 1, 1], 0, &[Arg::Ptr(dy)])
    });
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let (dx, dy, dz) = (card.upload(&x()), card.alloc(8192), card.alloc(1024));
        clean(&card.launch("exchange_fixed", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dy), Arg::Ptr(dz)]));
        assert_eq!(card.download::<u32>(dz, 2), [255, 254]);
        clean(&card.launch(
            "stencil_fixed",
            [8, 1, 1],
            [256, 1, 1],
            0,
            &[Arg::Ptr(dx), Arg::Ptr(dy)],
        ));
    }
}

#[test]
fn the_last_workgroup_needs_a_release_and_an_acquire() {
    let launch = |card: &mut Card, kernel: &str| {
        let (dx, part) = (card.upload(&x()), card.alloc(4 * 100));
        let (count, sum) = (card.upload(&[0u32]), card.alloc(4));
        let args = [
            Arg::Ptr(dx),
            Arg::Ptr(part),
            Arg::Ptr(count),
            Arg::Ptr(sum),
            Arg::U32(100),
        ];
        let outcome = card.launch(kernel, [100, 1, 1], [64, 1, 1], 0, &args);
        assert_eq!(card.download::<u32>(sum, 1), [x()[..100].iter().sum::<u32>()]);
        outcome
    };
    for seed in 0..SEEDS {
        clean(&launch(&mut card(seed), "last_block_fixed"));
    }
    for kernel in ["last_block_unreleased", "last_block_unacquired"] {
        races(FaultKind::GlobalRace, "last_block:a", "last_block:b", |card| {
            launch(card, kernel)
        });
    }
}

#[test]
fn the_last_wave_is_ordered_by_an_atomic_in_lds() {
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let (dx, dy) = (card.upload(&x()), card.alloc(4));
        clean(&card.launch("last_wave_fixed", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dx), Arg::Ptr(dy)]));
        assert_eq!(
            card.download::<u32>(dy, 1),
            [x()[..256].iter().step_by(32).sum::<u32>()]
        );
    }
    races(FaultKind::LdsRace, "last_wave_racy:a", "last_wave_racy:b", |card| {
        let (dx, dy) = (card.upload(&x()), card.alloc(4));
        card.launch("last_wave_racy", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dx), Arg::Ptr(dy)])
    });
}

#[test]
fn a_lock_orders_what_it_guards() {
    let launch = |card: &mut Card, kernel: &str| {
        let (lock, n) = (card.upload(&[0u32]), card.upload(&[0u32]));
        let outcome = card.launch(kernel, [7, 1, 1], [128, 1, 1], 0, &[Arg::Ptr(lock), Arg::Ptr(n)]);
        (outcome, card.download::<u32>(n, 1)[0])
    };
    for seed in 0..SEEDS {
        let (outcome, n) = launch(&mut card(seed), "lock_fixed");
        clean(&outcome);
        assert_eq!(n, 28);
    }
    races(FaultKind::GlobalRace, "lock_racy:a", "lock_racy:b", |card| {
        launch(card, "lock_racy").0
    });
    races(FaultKind::GlobalRace, "lock_narrow:a", "lock_narrow:a", |card| {
        launch(card, "lock_narrow").0
    });
}

#[test]
fn a_flag_hands_data_over() {
    let launch = |card: &mut Card, kernel: &str| {
        let (flag, data, dy) = (card.upload(&[0u32]), card.upload(&[0u32]), card.alloc(1024));
        let args = [Arg::Ptr(flag), Arg::Ptr(data), Arg::Ptr(dy)];
        (card.launch(kernel, [1; 3], [256, 1, 1], 0, &args), dy)
    };
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let (outcome, dy) = launch(&mut card, "flag_fixed");
        clean(&outcome);
        assert_eq!(card.download::<u32>(dy, 256), [42; 256]);
    }
    races(FaultKind::GlobalRace, "flag_racy:a", "flag_racy:b", |card| {
        launch(card, "flag_racy").0
    });
}

#[test]
fn a_second_load_by_a_wave_does_not_hide_another_waves() {
    races(
        FaultKind::GlobalRace,
        "load_twice_racy:a",
        "load_twice_racy:b",
        |card| {
            let (dx, flag, dy) = (card.upload(&x()), card.upload(&[0u32]), card.alloc(1024));
            let args = [Arg::Ptr(dx), Arg::Ptr(flag), Arg::Ptr(dy)];
            card.launch("load_twice_racy", [1; 3], [64, 1, 1], 0, &args)
        },
    );
}

#[test]
fn a_long_chain_of_flags_hands_data_over() {
    const GROUPS: usize = 200;
    let mut card = card(0);
    let (data, flags) = (card.upload(&[0u32]), card.upload(&[0u32; GROUPS]));
    let dy = card.alloc(4 * GROUPS);
    let args = [Arg::Ptr(data), Arg::Ptr(flags), Arg::Ptr(dy)];
    clean(&card.launch("chain_fixed", [GROUPS as u32, 1, 1], [32, 1, 1], 0, &args));
    assert_eq!(card.download::<u32>(dy, GROUPS), [42; GROUPS]);
}

#[test]
fn the_footprint_is_exact_to_the_byte() {
    let mut card = card(0);
    let (dx, dy) = (card.upload(&x()), card.alloc(8192));
    let outcome = card.launch(
        "stencil_fixed",
        [3, 1, 1],
        [256, 1, 1],
        0,
        &[Arg::Ptr(dx), Arg::Ptr(dy)],
    );
    clean(&outcome);
    let of = |base: u64, access| -> Vec<(u64, u64)> {
        let inside = |t: &&rocmforge_amdgcn::Touch| (base..base + 8192).contains(&t.start) && t.access == access;
        outcome
            .footprint
            .touches
            .iter()
            .filter(inside)
            .map(|t| (t.start - base, t.end - base))
            .collect()
    };
    let joined = |ranges: Vec<(u64, u64)>| {
        for pair in ranges.windows(2) {
            assert_eq!(pair[0].1, pair[1].0, "no gap and no overlap");
        }
        (ranges.first().expect("some").0, ranges.last().expect("some").1)
    };
    assert_eq!(joined(of(dx, Access::Load)), (0, 3 * 1024));
    assert_eq!(joined(of(dy, Access::Store)), (0, 3 * 1024));
    assert!(of(dy, Access::Load).is_empty() && of(dx, Access::Store).is_empty());
    let starts: Vec<u64> = outcome.footprint.touches.iter().map(|t| t.start).collect();
    assert!(starts.is_sorted());
    let n = card.upload(&[0u32]);
    let outcome = card.launch("count_fixed", [5, 1, 1], [64, 1, 1], 0, &[Arg::Ptr(n)]);
    let atomic: Vec<_> = outcome
        .footprint
        .touches
        .iter()
        .filter(|t| t.access == Access::Atomic)
        .collect();
    assert_eq!((atomic.len(), atomic[0].start, atomic[0].end), (1, n, n + 4));
    card.options.tools.racecheck = false;
    let outcome = card.launch("count_fixed", [5, 1, 1], [64, 1, 1], 0, &[Arg::Ptr(n)]);
    assert!(outcome.footprint.is_empty());
}

/// A barrier for LDS alone, as `s_waitcnt lgkmcnt(0); s_barrier` on gfx1100 and with its halves on gfx1201.
#[test]
fn a_barrier_for_lds_orders_lds() {
    const ROUNDS: u32 = 6;
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let (dx, dy) = (card.upload(&x()), card.alloc(ROUNDS as usize * 1024));
        let args = [Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(ROUNDS)];
        clean(&card.launch("lds_barrier_fixed", [1; 3], [256, 1, 1], 0, &args));
        let mut expected = Vec::new();
        for k in 0..ROUNDS as usize {
            let sum = |t: usize| (0..=k).map(|k| x()[256 * k + 255 - t]).sum::<u32>();
            expected.extend((0..256).map(sum));
        }
        assert_eq!(card.download::<u32>(dy, expected.len()), expected);
    }
    races(FaultKind::LdsRace, "one_buffer_racy:a", "one_buffer_racy:b", |card| {
        let (dx, dy) = (card.upload(&x()), card.alloc(1024));
        let args = [Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(ROUNDS)];
        card.launch("lds_barrier_one_buffer_racy", [1; 3], [256, 1, 1], 0, &args)
    });
    // Lanes that have left need not reach it.
    let mut card = card(1);
    let dy = card.alloc(1024);
    let outcome = card.launch("lds_barrier_diverged", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(dy)]);
    clean(&outcome);
}

#[test]
fn a_barrier_for_lds_does_not_order_stores_to_global_memory() {
    for (kernel, a, b) in [
        ("handed_over_racy", "handed_over_racy:a", "handed_over_racy:b"),
        ("waited_late_racy", "waited_late_racy:a", "waited_late_racy:b"),
    ] {
        races(FaultKind::GlobalRace, a, b, |card| {
            let (dx, dy, dz) = (card.upload(&x()), card.alloc(1024), card.alloc(1024));
            let args = [Arg::Ptr(dx), Arg::Ptr(dy), Arg::Ptr(dz)];
            card.launch(kernel, [1; 3], [256, 1, 1], 0, &args)
        });
    }
    races(
        FaultKind::GlobalRace,
        "stored_twice_racy:a",
        "stored_twice_racy:b",
        |card| {
            let (dx, dy) = (card.upload(&x()), card.alloc(1024));
            card.launch(
                "stored_twice_racy",
                [1; 3],
                [256, 1, 1],
                0,
                &[Arg::Ptr(dx), Arg::Ptr(dy)],
            )
        },
    );
    for seed in 0..SEEDS {
        for kernel in ["handed_over_fixed", "waited_late_fixed"] {
            let mut card = card(seed);
            let (dx, dy, dz) = (card.upload(&x()), card.alloc(8192), card.alloc(1024));
            let args = [Arg::Ptr(dx), Arg::Ptr(dy), Arg::Ptr(dz)];
            clean(&card.launch(kernel, [1; 3], [256, 1, 1], 0, &args));
            let reversed: Vec<u32> = x()[..256].iter().rev().copied().collect();
            assert_eq!(card.download::<u32>(dz, 256), reversed, "{kernel}");
        }
        let mut card = card(seed);
        let (dy, dz) = (card.upload(&x()[..256]), card.alloc(1024));
        clean(&card.launch(
            "read_before_fixed",
            [1; 3],
            [256, 1, 1],
            0,
            &[Arg::Ptr(dy), Arg::Ptr(dz)],
        ));
        let expected: Vec<u32> = x()[..256].iter().rev().map(|x| x + 1).collect();
        assert_eq!(card.download::<u32>(dy, 256), expected);
    }
}

/// What the workgroup's barrier has not completed, the release of one of its waves does not hand on.
#[test]
fn a_release_covers_stores_of_other_waves_that_they_have_waited_for() {
    let launch = |card: &mut Card, kernel: &str| {
        let (dx, dy, flag, dz) = (
            card.upload(&x()),
            card.alloc(1024),
            card.upload(&[0u32]),
            card.alloc(1024),
        );
        let args = [Arg::Ptr(dx), Arg::Ptr(dy), Arg::Ptr(flag), Arg::Ptr(dz)];
        card.options.tools.initcheck = false;
        card.launch(kernel, [2, 1, 1], [64, 1, 1], 0, &args)
    };
    races(FaultKind::GlobalRace, "released_racy:a", "released_racy:b", |card| {
        launch(card, "released_racy")
    });
    for seed in 0..SEEDS {
        clean(&launch(&mut card(seed), "released_fixed"));
    }
}

#[test]
fn a_lock_through_a_descriptor() {
    let launch = |card: &mut Card, kernel: &str| {
        let (lock, n) = (card.upload(&[0u32]), card.upload(&[0u32]));
        let outcome = card.launch(kernel, [1; 3], [256, 1, 1], 0, &[Arg::Ptr(lock), Arg::Ptr(n)]);
        (outcome, card.download::<u32>(n, 1)[0])
    };
    for seed in 0..SEEDS {
        let (outcome, n) = launch(&mut card(seed), "buffer_lock_fixed");
        clean(&outcome);
        assert_eq!(n, 4);
    }
    races(FaultKind::LdsRace, "buffer_lock:a", "buffer_lock:a", |card| {
        launch(card, "buffer_lock_racy").0
    });
}

#[test]
fn a_guess_for_a_compare_and_swap_through_a_descriptor() {
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let sums = card.upload(&[0u32; 64]);
        clean(&card.launch("buffer_add_fixed", [3, 1, 1], [128, 1, 1], 0, &[Arg::Ptr(sums)]));
        assert_eq!(card.download::<u32>(sums, 2), [192; 2]);
    }
    races(FaultKind::GlobalRace, "buffer_add:a", "buffer_add:b", |card| {
        let sums = card.upload(&[0u32; 64]);
        card.launch("buffer_add_racy", [3, 1, 1], [128, 1, 1], 0, &[Arg::Ptr(sums)])
    });
}

#[test]
fn an_update_through_a_descriptor_that_lanes_lose() {
    let launch = |card: &mut Card, kernel: &str| {
        let n = card.upload(&[0u32; 64]);
        card.launch(kernel, [1; 3], [32, 1, 1], 0, &[Arg::Ptr(n)])
    };
    clean(&launch(&mut card(0), "buffer_count_fixed"));
    let outcome = launch(&mut card(0), "buffer_count_racy");
    let fault = outcome.faults.first().expect("a lost update");
    assert_eq!(fault.kind, FaultKind::GlobalRace);
    assert_eq!(lines(fault), [line("buffer_count_racy:a"); 2]);
    assert!(fault.note.contains("all of their updates but one are lost"), "{fault}");
}

#[test]
fn an_exchange_whose_old_value_nobody_uses_orders_nothing_behind_it() {
    for seed in 0..SEEDS {
        let mut card = card(seed);
        let y = card.alloc(32);
        clean(&card.launch("lds_exchange_fixed", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(y)]));
        assert_eq!(card.download::<u32>(y, 8), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
    races(FaultKind::LdsRace, "lds_exchange:a", "lds_exchange:b", |card| {
        let y = card.alloc(32);
        card.launch("lds_exchange_racy", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(y)])
    });
}
