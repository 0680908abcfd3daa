//! Launches on several host threads give what one gives.

use crate::card::{Arg, Card, faults, racy};
use rocmforge_amdgcn::{ByteState, FaultKind, Outcome, Status};

/// Outcome, and what the launch left in the 8 KiB it was given.
fn run(kernel: &str, threads: usize, seed: u64, groups: u32) -> (Outcome, Vec<u32>, Vec<ByteState>) {
    let mut card = Card::new(racy());
    card.options.threads = threads;
    card.options.wave_order_seed = seed;
    let x = card.upload(&(0..2048u32).map(|n| n * 3 + 1).collect::<Vec<_>>());
    let y = card.upload(&[7u32; 2048]);
    let outcome = card.launch(kernel, [groups, 1, 1], [256, 1, 1], 0, &[Arg::Ptr(x), Arg::Ptr(y)]);
    let states = (0..8192).map(|n| card.memory.state_at(y + n)).collect();
    (outcome, card.download(y, 2048), states)
}

#[test]
fn any_number_of_threads_gives_the_same() {
    for seed in [0, 5] {
        for groups in [1, 2, 5, 8] {
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
    let one = run("reduce_fixed", 1, 0, 5);
    assert_eq!(run("reduce_fixed", 3, 0, 5), one);
    // Atomics on global memory.
    for threads in [1, 4] {
        let mut card = Card::new(racy());
        card.options.threads = threads;
        let n = card.upload(&[0u32]);
        card.run("count_fixed", 9, 64, &[Arg::Ptr(n)]);
        assert_eq!(card.download::<u32>(n, 1), [9]);
    }
}

#[test]
fn faults_are_those_of_one_thread() {
    let faults = |threads| {
        let mut card = Card::new(faults());
        card.options.threads = threads;
        let (x, y) = (card.upload(&[1.0f32; 16]), card.alloc(64));
        let args = [Arg::Ptr(x), Arg::Ptr(y), Arg::U32(16)];
        let outcome = card.launch("store_past_end", [6, 1, 1], [64, 1, 1], 0, &args);
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
        let (x, y) = (card.upload(&[5u32; 1024]), card.alloc(5000));
        let outcome = card.launch("stencil_fixed", [4, 1, 1], [256, 1, 1], 0, &[Arg::Ptr(x), Arg::Ptr(y)]);
        assert_eq!(outcome.status, Status::Completed);
        assert_eq!(card.download::<u32>(y, 1024)[1..], [10; 1023]);
        assert_eq!(card.memory.state_at(y + 4096), ByteState::Uninit);
    }
}
