//! Promises that every allocator keeps.

use super::{Bench, Stack};
use crate::common::device::{Error, Stream, TestBlock, request};
use crate::common::{GIB, MIB};
use rocmforge_memory::*;

const SIZES: [u64; 9] = [1, 255, 256, 4096, 4097, 100_000, MIB, MIB + 1, 20 * MIB + 3];

/// The stack is gone: nothing is left, and the driver saw nothing that a correct program does not do.
pub(crate) fn all_back(bench: &Bench) {
    bench.memory.free_deferred().unwrap();
    assert_eq!(bench.memory.violations(), [""; 0]);
    assert_eq!(bench.memory.live_blocks(), 0);
    assert_eq!(bench.card.ledger().live(), []);
    let budget = bench.card.budget();
    assert_eq!((budget.committed, budget.reserved), (Bytes::ZERO, Bytes::ZERO));
}

fn range(block: &TestBlock) -> std::ops::Range<u64> {
    block.memory..block.memory + block.capacity.0
}

pub(crate) fn blocks_belong_to_one_owner(_: &Bench, stack: impl Stack, _: bool) {
    let stream = Stream::new(1);
    let mut held: Vec<TestBlock> = Vec::new();
    for round in 0..40usize {
        let bytes = SIZES[round % SIZES.len()];
        let block = stack.allocate(&request(bytes, &stream, "block")).unwrap();
        assert_eq!(block.bytes, Bytes(bytes));
        assert!(block.capacity >= block.bytes);
        let mine = range(&block);
        for other in &held {
            let other = range(other);
            assert!(mine.end <= other.start || other.end <= mine.start, "{mine:?} {other:?}");
        }
        held.push(block);
        if round % 3 == 2 {
            stack.free(held.swap_remove(round % held.len()));
        }
    }
    held.into_iter().for_each(|block| stack.free(block));
}

pub(crate) fn what_was_freed_can_be_had_again(bench: &Bench, stack: impl Stack, ledger: bool) {
    let stream = Stream::new(1);
    let most = if ledger { bench.card.budget().available.0 } else { GIB };
    for bytes in [most, most / 2, most - 1, most / 7, most] {
        // Whatever size lies idle, all of the memory can be had in one piece.
        let block = stack.allocate(&request(bytes, &stream, "most of it")).unwrap();
        stack.free(block);
        let all = stack.allocate(&request(most, &stream, "all of it")).unwrap();
        stack.free(all);
    }
}

pub(crate) fn blocks_wait_for_their_last_uses(bench: &Bench, stack: impl Stack, _: bool) {
    let (first, second) = (Stream::new(1), Stream::new(2));
    let mut block = stack.allocate(&request(5000, &first, "used")).unwrap();
    let memory = block.memory;
    block.uses.note(Access::Write, &first, first.enqueue());
    stack.free(block);
    assert_eq!(
        bench.memory.live_blocks(),
        1,
        "the driver has it back while work uses it"
    );
    // Whoever gets this memory meanwhile has to wait for the work.
    for stream in [&first, &second] {
        let next = stack.allocate(&request(5000, stream, "next")).unwrap();
        if next.memory == memory {
            assert_eq!(next.uses.pending().count(), 1, "{:?}", next.uses);
            assert_eq!(next.uses.is_free_for(stream), stream.id() == first.id());
        } else {
            assert!(next.uses.is_done(), "{:?}", next.uses);
        }
        stack.free(next);
    }
    first.complete();
    stack.free_deferred().unwrap();
}

pub(crate) fn a_refusal_takes_nothing(bench: &Bench, stack: impl Stack, _: bool) {
    let stream = Stream::new(1);
    let kept = stack.allocate(&request(MIB, &stream, "kept")).unwrap();
    let before = (bench.memory.live_bytes(), bench.card.ledger().live());
    for bytes in [GIB, 2 * GIB, u64::MAX] {
        let error = stack.allocate(&request(bytes, &stream, "too much")).unwrap_err();
        assert!(matches!(error, Error::Driver | Error::Budget(_)), "{error}");
    }
    assert_eq!((bench.memory.live_bytes(), bench.card.ledger().live()), before);
    stack.free(kept);
    let next = stack.allocate(&request(MIB, &stream, "next")).unwrap();
    stack.free(next);
}

pub(crate) fn the_ledger_is_what_the_driver_gave(bench: &Bench, stack: impl Stack, ledger: bool) {
    if !ledger {
        assert!(
            stack
                .allocate(&request(1, &Stream::new(1), "one"))
                .map(|b| stack.free(b))
                .is_ok()
        );
        return assert_eq!(bench.card.ledger().live(), []);
    }
    let stream = Stream::new(1);
    let epoch = bench.card.ledger().epoch();
    let mut held = Vec::new();
    for round in 0..2 {
        for bytes in SIZES {
            let asked = request(bytes, &stream, "buffer");
            let block = stack.allocate(&asked).unwrap();
            let entry = block.entry.as_ref().unwrap();
            assert_eq!(entry.bytes(), Bytes(bytes));
            let found = epoch.leaks().entries.into_iter().find(|found| found.id == entry.id());
            let found = found.unwrap();
            assert_eq!((found.site, &*found.label), (asked.site, "buffer"));
            held.push(block);
            assert_eq!(bench.card.ledger().live_bytes(), Bytes(bench.memory.live_bytes()));
        }
        let asked: u64 = held.iter().map(|block| block.bytes.0).sum();
        assert_eq!(
            epoch.leaks().bytes,
            Bytes(asked),
            "a leak is as large as what was asked for"
        );
        assert_eq!(epoch.leaks().entries.len(), held.len());
        for block in held.drain(..) {
            stack.free(block);
            assert_eq!(bench.card.ledger().live_bytes(), Bytes(bench.memory.live_bytes()));
        }
        assert!(epoch.leaks().is_clean(), "round {round}: {}", epoch.leaks());
    }
    let budget = bench.card.budget();
    assert!(budget.own <= budget.budget);
}

pub(crate) fn threads_share_it(bench: &Bench, stack: impl Stack, _: bool) {
    let streams = [1, 2, 3].map(Stream::new);
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let (streams, stack) = (&streams, &stack);
            scope.spawn(move || {
                let mut held: Vec<TestBlock> = Vec::new();
                for round in 0..200usize {
                    let stream = &streams[(thread + round) % 3];
                    let bytes = SIZES[(thread * 5 + round) % 7];
                    let mut block = stack.allocate(&request(bytes, stream, "shared")).unwrap();
                    block.uses.note(Access::Write, stream, stream.enqueue());
                    held.push(block);
                    if held.len() > 5 {
                        stack.free(held.swap_remove(round % 5));
                    }
                    if round % 16 == 0 {
                        stream.complete();
                    }
                }
                held.into_iter().for_each(|block| stack.free(block));
            });
        }
    });
    streams.iter().for_each(Stream::complete);
    assert_eq!(bench.memory.violations(), [""; 0]);
}

pub(crate) fn settling_waits_for_what_was_freed_in_use(bench: &Bench, stack: impl Stack, _: bool) {
    let stream = Stream::new(1);
    assert!(!stack.free_deferred().unwrap(), "nothing was freed");
    for bytes in SIZES {
        let mut block = stack.allocate(&request(bytes, &stream, "short")).unwrap();
        block.uses.note(Access::Write, &stream, stream.enqueue());
        stack.free(block);
    }
    // A pool keeps some or all of it.
    let waiting = bench.memory.waiting() > 0;
    assert_eq!(stack.free_deferred().unwrap(), waiting);
    assert_eq!(bench.memory.waiting(), 0);
    assert!(!stack.free_deferred().unwrap());
}

pub(crate) fn whatever_is_left_goes_back_at_the_end(bench: &Bench, stack: impl Stack, _: bool) {
    let stream = Stream::new(1);
    for bytes in SIZES {
        let mut block = stack.allocate(&request(bytes, &stream, "short")).unwrap();
        block.uses.note(Access::Read, &stream, stream.enqueue());
        stack.free(block);
    }
    drop(stack);
    // What is still in use is the driver's to give back, as its last owner would have.
    assert_eq!(bench.memory.live_blocks(), bench.memory.waiting());
}
