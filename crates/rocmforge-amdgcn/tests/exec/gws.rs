//! Global wave sync: workgroups of a cooperative launch that meet at counters beside memory.

use crate::card::{Arg, Card};
use rocmforge_amdgcn::{FaultKind, Outcome, Status, Tools};

const OBJECTS: [&[u8]; 2] = [
    include_bytes!("../fixtures/gws.co"),
    include_bytes!("../fixtures/gws-wave64.co"),
];
const SOURCE: &str = include_str!("../fixtures/gws.hip");

fn line(mark: &str) -> u32 {
    let marker = format!("// {mark}");
    1 + SOURCE.lines().position(|line| line.ends_with(&marker)).expect("marked") as u32
}

/// Runs a kernel on `2 * groups` zeros, which it leaves as it likes.
fn run(elf: &[u8], kernel: &str, groups: u32, seed: u64, more: &[u32]) -> (Outcome, Vec<u32>) {
    let mut card = Card::new(elf);
    card.options.cooperative = true;
    card.options.group_order_seed = seed;
    card.options.wave_order_seed = seed;
    card.options.tools = Tools::all();
    launch(&mut card, kernel, groups, more)
}

fn launch(card: &mut Card, kernel: &str, groups: u32, more: &[u32]) -> (Outcome, Vec<u32>) {
    let values = card.upload(&vec![0u32; 2 * groups as usize]);
    let mut args = vec![Arg::Ptr(values), Arg::U32(groups)];
    args.extend(more.iter().map(|&n| Arg::U32(n)));
    let outcome = card.launch(kernel, [groups, 1, 1], [128, 1, 1], 0, &args);
    (outcome, card.download(values, 2 * groups as usize))
}

#[track_caller]
fn clean(outcome: &Outcome) {
    for fault in &outcome.faults {
        assert_eq!(fault.to_string(), "");
    }
    assert_eq!(outcome.status, Status::Completed);
}

#[test]
fn every_workgroup_waits_for_all() {
    const GROUPS: u32 = 9;
    for elf in OBJECTS {
        for seed in 0..4 {
            for count in [1, 2, 5] {
                let (outcome, values) = run(elf, "rounds", GROUPS, seed, &[count]);
                clean(&outcome);
                let mut expected = vec![0u32; GROUPS as usize];
                for _ in 0..count {
                    let sum: u32 = expected.iter().sum();
                    expected = (0..GROUPS).map(|group| group + sum).collect();
                }
                let half = count as usize % 2 * GROUPS as usize;
                assert_eq!(
                    values[half..half + GROUPS as usize],
                    expected,
                    "{count} rounds, seed {seed}"
                );
            }
        }
    }
}

/// Several host threads give one launch to one of them.
#[test]
fn one_thread_runs_all_workgroups() {
    let mut card = Card::new(OBJECTS[0]);
    card.options.cooperative = true;
    card.options.threads = 4;
    let (outcome, values) = launch(&mut card, "rounds", 8, &[1]);
    clean(&outcome);
    assert_eq!(values[8..], (0..8).collect::<Vec<u32>>());
}

/// The barrier orders what waves have waited for, and no more.
#[test]
fn a_store_that_is_under_way_races_across_the_barrier() {
    let (outcome, _) = run(OBJECTS[0], "no_fence", 4, 0, &[]);
    let fault = outcome.faults.first().expect("a race");
    assert_eq!(fault.kind, FaultKind::GlobalRace, "{fault}");
    let other = fault.other.as_ref().expect("two sides");
    let lines = [fault.frames[0].line, other.frames[0].line];
    assert!(
        lines.contains(&line("no_fence:a")) && lines.contains(&line("no_fence:b")),
        "{fault}"
    );
}

#[test]
fn a_workgroup_that_does_not_come_is_waited_for_in_vain() {
    for elf in OBJECTS {
        let (outcome, _) = run(elf, "absent", 5, 0, &[]);
        assert_eq!(outcome.status, Status::BudgetExhausted);
        let fault = outcome.faults.first().expect("a fault");
        assert_eq!(fault.kind, FaultKind::Spinning, "{fault}");
        assert!(fault.note.contains("4 waves have arrived and 1 never come"), "{fault}");
        assert!(fault.frames.iter().any(|frame| frame.line == line("absent")), "{fault}");
    }
}

#[test]
fn a_launch_that_is_not_cooperative_has_no_grid_to_wait_for() {
    for elf in OBJECTS {
        let mut card = Card::new(elf);
        let (outcome, _) = launch(&mut card, "rounds", 3, &[1]);
        assert_eq!(outcome.status, Status::Faulted);
        assert_eq!(outcome.faults.len(), 1);
        let fault = &outcome.faults[0];
        assert_eq!(fault.kind, FaultKind::BadLaunch, "{fault}");
        assert!(fault.note.contains("only a cooperative launch"), "{fault}");
        assert!(!fault.frames.is_empty(), "{fault}");
    }
}

#[test]
fn semaphores_let_as_many_go_on_as_their_counters_say() {
    for elf in OBJECTS {
        for (groups, number, how) in [(6, 1, 0), (6, 63, 1), (2, 5, 2)] {
            let (outcome, values) = run(elf, "semaphore", groups, 0, &[number, how]);
            clean(&outcome);
            let expected: Vec<u32> = (1..groups).map(|group| 77 + group).collect();
            assert_eq!(values[1..groups as usize], expected, "{how}");
        }
        // Of those that come later, nobody lets any go on.
        let (outcome, _) = run(elf, "semaphore", 4, 0, &[5, 2]);
        let fault = outcome.faults.first().expect("a fault");
        assert_eq!(fault.kind, FaultKind::Spinning, "{fault}");
        assert!(fault.note.contains("semaphore 5"), "{fault}");
    }
}

/// Waves that compare their clocks through memory find none that has gone backwards.
#[test]
fn no_wave_finds_its_clock_behind_a_time_it_was_given() {
    for elf in OBJECTS {
        let (outcome, values) = run(elf, "times", 8, 0, &[]);
        clean(&outcome);
        assert_ne!(values[..2], [0, 0], "a time");
        assert_eq!(values[8..10], [0, 0], "clocks that went backwards");
    }
}
