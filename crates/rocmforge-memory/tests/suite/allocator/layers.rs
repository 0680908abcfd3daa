//! Layers of allocators: the effect of each.

use super::fail::FailNth;
use super::suite;
use super::{Bench, Stack, backend_stack};
use crate::common::MIB;
use crate::common::device::{Error, Stream, request};
use rocmforge_memory::*;
use std::sync::Arc;

/// Allocates three sizes, frees them, and again: six allocations, of which a pool asks the driver for three.
fn program(stack: &impl Stack) -> Result<(), Error> {
    let stream = Stream::new(1);
    for _ in 0..2 {
        let mut held = Vec::new();
        let result: Result<(), Error> = [MIB, 3000, 7 * MIB].into_iter().try_for_each(|bytes| {
            held.push(stack.allocate(&request(bytes, &stream, "part"))?);
            Ok(())
        });
        held.into_iter().for_each(|block| stack.free(block));
        result?;
    }
    Ok(())
}

#[test]
fn counted_counts() {
    let bench = Bench::new();
    let failing = Arc::new(FailNth::new(bench.memory.clone()));
    let counted = Counted::new(Arc::clone(&failing));
    program(&counted).unwrap();
    let live = Bytes(8 * MIB + 3000);
    let figures = AllocatorStatistics {
        allocations: 6,
        failures: 0,
        frees: 6,
        live: Bytes::ZERO,
        peak: live,
    };
    assert_eq!(counted.statistics(), figures);
    failing.arm(1, Error::Gone);
    assert!(program(&counted).is_err());
    let figures = AllocatorStatistics {
        allocations: 7,
        failures: 1,
        frees: 7,
        ..figures
    };
    assert_eq!(counted.statistics(), figures);
    let held = counted.allocate(&request(5, &Stream::new(1), "held")).unwrap();
    assert_eq!(counted.statistics().live, Bytes(5));
    counted.free(held);
}

#[test]
fn the_kth_allocation_fails_and_nothing_is_lost() {
    // Below the pool, where the driver fails; above it, where a program sees it fail.
    for nth in 0..4 {
        for error in [|| Error::Driver, || Error::Gone] {
            let bench = Bench::new();
            let failing = Arc::new(FailNth::new(bench.memory.clone()));
            let budgeted = Budgeted::new(Arc::clone(&bench.card), Arc::clone(&failing));
            let stack = Pool::new(budgeted, PoolOptions::ON, Some(bench.card.ledger()));
            let epoch = bench.card.ledger().epoch();
            failing.arm(nth, error());
            let result = program(&stack);
            assert_eq!(failing.is_armed(), nth == 3, "the driver is asked three times");
            match (nth, error()) {
                // Nothing was idle, and a request is made again only if it was rounded.
                (0 | 2, Error::Driver) => assert!(matches!(result, Err(Error::Driver)), "{nth}: {result:?}"),
                (1, Error::Driver) | (3, _) => assert!(result.is_ok(), "{nth}: {result:?}"),
                _ => assert!(matches!(result, Err(Error::Gone)), "{nth}: {result:?}"),
            }
            assert!(epoch.leaks().is_clean(), "{}", epoch.leaks());
            program(&stack)
                .map_err(|error| assert!(failing.is_armed() || nth == 3, "{error}"))
                .ok();
            drop(stack);
            suite::all_back(&bench);
        }
    }
    for nth in 0..6 {
        let bench = Bench::new();
        let stack = FailNth::new(backend_stack(&bench, PoolOptions::ON).0);
        stack.arm(nth, Error::Gone);
        assert!(matches!(program(&stack), Err(Error::Gone)));
        assert!(!stack.is_armed());
        program(&stack).unwrap();
        drop(stack);
        suite::all_back(&bench);
    }
}

#[test]
fn the_budget_refuses_before_the_driver_is_asked() {
    let bench = Bench::new();
    let (stack, counted) = backend_stack(&bench, PoolOptions::ON);
    let most = bench.card.budget().available.0;
    let error = stack
        .allocate(&request(most + 1, &Stream::new(1), "too much"))
        .unwrap_err();
    let Error::Budget(refused) = error else {
        panic!("{error}")
    };
    assert_eq!((refused.requested, &*refused.label), (Bytes(most + 1), "too much"));
    assert_eq!(counted.statistics(), AllocatorStatistics::default());
}

#[test]
fn a_request_waits_for_what_was_freed_in_use_before_it_is_refused() {
    let bench = Bench::new();
    for options in [PoolOptions::OFF, PoolOptions::ON] {
        let (stack, _) = backend_stack(&bench, options);
        let (stream, other) = (Stream::new(1), Stream::new(2));
        let most = bench.card.budget().available.0;
        for _ in 0..3 {
            let mut block = stack.allocate(&request(most / 2 + 1, &stream, "half")).unwrap();
            block.uses.note(Access::Write, &stream, stream.enqueue());
            stack.free(block);
            // Two of these do not fit, and the pool's is not of this size.
            let next = stack.allocate(&request(most / 3 * 2, &other, "more")).unwrap();
            stack.free(next);
        }
    }
    suite::all_back(&bench);
}
