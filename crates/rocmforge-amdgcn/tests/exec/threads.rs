//! Launches on several host threads give what one gives.

use crate::card::{Arg, Card, faults, racy};
use rocmforge_amdgcn::{ByteState, FaultKind, Outcome, Status};

/// Workgroups that are worth several threads.
const MANY: u32 = 150;

/// A number that the memory shows of itself.
fn shown(card: &Card, name: &str) -> String {
    let text = format!("{:?}", card.memory);
    let shown = text.split(&format!("{name}: ")).nth(1).expect("shown");
    shown.chars().take_while(char::is_ascii_digit).collect()
}

/// Shares of memory that launches on several threads have left.
fn shares(card: &Card) -> String {
    shown(card, "shares")
}

/// Outcome, and what the launch left in the memory it was given.
fn run(kernel: &str, threads: usize, seed: u64, groups: u32) -> (Outcome, Vec<u32>, Vec<ByteState>) {
    let n = MANY * 256;
    let mut card = Card::new(racy());
    card.options.threads = threads;
    card.options.wave_order_seed = seed;
    let x = card.upload(&(0..n).map(|n| n * 3 + 1).collect::<Vec<_>>());
    let y = card.upload(&vec![7u32; n as usize]);
    let outcome = card.launch(kernel, [groups, 1, 1], [256, 1, 1], 0, &[Arg::Ptr(x), Arg::Ptr(y)]);
    // A workgroup has eight waves; of a kernel that is new, a thread wants 64.
    let worth = (threads as u32).min(groups * 8 / 64);
    assert_eq!(
        shares(&card),
        if worth < 2 { "0".to_owned() } else { worth.to_string() }
    );
    let states = (0..u64::from(n) * 4).map(|n| card.memory.state_at(y + n)).collect();
    (outcome, card.download(y, n as usize), states)
}

#[test]
fn any_number_of_threads_gives_the_same() {
    for seed in [0, 5] {
        for groups in [1, 2, 31, 32, 33, MANY] {
            let one = run("stencil_fixed", 1, seed, groups);
            assert_eq!(one.0.status, Status::Completed);
            for threads in [2, 3, 7, 100] {
                assert_eq!(
                    run("stencil_fixed", threads, seed, groups),
                    one,
                    "{threads} threads, {groups} groups"
                );
            }
        }
    }
}

#[test]
fn workgroups_that_depend_on_each_other_run_on_one_thread() {
    // All write the same places: only one thread gives the last workgroup the last word.
    let one = run("reduce_fixed", 1, 0, MANY);
    assert_eq!(run("reduce_fixed", 3, 0, MANY), one);
    // Atomics on global memory.
    for threads in [1, 4] {
        let mut card = Card::new(racy());
        card.options.threads = threads;
        let n = card.upload(&[0u32]);
        card.run("count_fixed", MANY, 256, &[Arg::Ptr(n)]);
        assert_eq!(card.download::<u32>(n, 1), [MANY]);
        assert_eq!(shares(&card), "0");
    }
}

/// Shares stay between launches, and take over what has happened to the memory.
#[test]
fn later_launches_see_what_has_changed_since() {
    let n = MANY as usize * 256;
    let launches = |threads: usize| {
        let mut card = Card::new(racy());
        card.options.threads = threads;
        let (x, y) = (card.upload(&vec![1u32; n]), card.alloc(4 * n));
        let mut seen = Vec::new();
        for round in 0..6u32 {
            let kernel = if round == 3 { "reduce_fixed" } else { "stencil_fixed" };
            match round {
                1 => card.memory.write(x + 4 * 300, &7u32.to_le_bytes()).expect("allocated"),
                2 => assert!(card.memory.poke(x + 4 * 20_000, &9u32.to_le_bytes())),
                4 => card.memory.copy_within(x, x + 4 * 290, 4 * 20).expect("allocated"),
                5 => {
                    // Freed and allocated again: nothing in it is written.
                    card.memory.set_state(y, 4 * n as u64, ByteState::Freed);
                    card.memory.set_state(y, 4 * n as u64 - 4, ByteState::Uninit);
                }
                _ => {}
            }
            let args = [Arg::Ptr(x), Arg::Ptr(y)];
            let outcome = card.launch(kernel, [MANY, 1, 1], [256, 1, 1], 0, &args);
            let mut bytes = vec![0; 4 * n];
            assert!(card.memory.peek(y, &mut bytes));
            let states: Vec<_> = (0..4 * n as u64 + 8).map(|k| card.memory.state_at(y + k)).collect();
            seen.push((outcome, bytes, states));
        }
        (seen, shares(&card))
    };
    let (one, none) = launches(1);
    assert_eq!(none, "0");
    let fault = &one[5].0.faults[0];
    assert_eq!(fault.kind, FaultKind::UseAfterFree);
    for threads in [2, 4] {
        let (several, shares) = launches(threads);
        assert_eq!(shares, threads.to_string());
        for (round, (several, one)) in several.iter().zip(&one).enumerate() {
            assert_eq!(several.0, one.0, "{threads} threads, launch {round}");
            assert!(several.1 == one.1, "{threads} threads, launch {round}: other bytes");
            assert!(several.2 == one.2, "{threads} threads, launch {round}: other states");
        }
    }
}

#[test]
fn faults_are_those_of_one_thread() {
    let faults = |threads| {
        let mut card = Card::new(faults());
        card.options.threads = threads;
        let (x, y) = (card.upload(&[1.0f32; 16]), card.alloc(64));
        let args = [Arg::Ptr(x), Arg::Ptr(y), Arg::U32(16)];
        let outcome = card.launch("store_past_end", [MANY * 4, 1, 1], [64, 1, 1], 0, &args);
        assert_eq!(outcome.faults[0].kind, FaultKind::GlobalOutOfBounds);
        assert_eq!(card.download::<f32>(y, 16), [1.0; 16]);
        outcome
    };
    assert_eq!(faults(4), faults(1));
}

#[test]
fn writes_to_unwritten_memory_count_as_written() {
    for threads in [1, 2, 4] {
        let mut card = Card::new(racy());
        card.options.threads = threads;
        let n = MANY as usize * 256;
        let (x, y) = (card.upload(&vec![5u32; n]), card.alloc(4 * n + 1000));
        let outcome = card.launch(
            "stencil_fixed",
            [MANY, 1, 1],
            [256, 1, 1],
            0,
            &[Arg::Ptr(x), Arg::Ptr(y)],
        );
        assert_eq!(outcome.status, Status::Completed);
        assert!(card.download::<u32>(y, n)[1..].iter().all(|&y| y == 10));
        assert_eq!(card.memory.state_at(y + 4 * n as u64), ByteState::Uninit);
    }
}

/// More workgroups than a launch's first round has, and an end that no round gets past.
#[test]
fn what_rounds_leave_is_that_of_one_thread() {
    const GROUPS: u32 = 900;
    let n = GROUPS as usize * 256;
    let end = |threads: usize, freed: bool, budget: Option<u64>| {
        let mut card = Card::new(racy());
        card.options.threads = threads;
        card.options.instruction_budget = budget.unwrap_or(card.options.instruction_budget);
        card.options.counters = true;
        let (x, y) = (card.upload(&(0..n as u32).collect::<Vec<_>>()), card.alloc(4 * n));
        if freed {
            // What the last 50 workgroups write.
            card.memory
                .set_state(y + 4 * (n as u64 - 50 * 256), 4 * 50 * 256, ByteState::Freed);
        }
        let args = [Arg::Ptr(x), Arg::Ptr(y)];
        let outcome = card.launch("stencil_fixed", [GROUPS, 1, 1], [256, 1, 1], 0, &args);
        let mut bytes = vec![0; 4 * n];
        assert!(card.memory.peek(y, &mut bytes));
        let states: Vec<_> = (0..4 * n as u64).map(|k| card.memory.state_at(y + k)).collect();
        assert_eq!(
            shares(&card),
            if threads > 1 {
                threads.to_string()
            } else {
                "0".to_owned()
            }
        );
        let rounds: u32 = shown(&card, "commits").parse().expect("a number");
        // A thread has 128 workgroups in the first round, and at most four times as many in the next.
        let least = match (threads, outcome.status) {
            (1, _) => 0,
            (_, Status::Completed) => 2,
            _ => 1,
        };
        assert!(rounds >= least && (threads > 1 || rounds == 0), "{rounds} rounds");
        (outcome, bytes, states)
    };
    let whole = end(1, false, None).0;
    assert_eq!(whole.status, Status::Completed);
    let most = whole.instructions * 4 / 5;
    for (freed, budget, status) in [
        (false, None, Status::Completed),
        (true, None, Status::Faulted),
        (false, Some(most), Status::BudgetExhausted),
    ] {
        let one = end(1, freed, budget);
        assert_eq!(one.0.status, status);
        for threads in [2, 3] {
            let several = end(threads, freed, budget);
            assert_eq!(several.0, one.0, "{threads} threads, {status:?}");
            assert!(several.1 == one.1, "{threads} threads, {status:?}: other bytes");
            assert!(several.2 == one.2, "{threads} threads, {status:?}: other states");
        }
    }
}
