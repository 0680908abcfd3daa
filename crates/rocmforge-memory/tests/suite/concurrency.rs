//! Many threads on one card: never a grant over the budget, never a refusal of what fitted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::common::{Driver, GIB, MIB, World};
use rocmforge_memory::{Bytes, Card, Class, DeviceKey, Policy};

const THREADS: u64 = 16;
const ROUNDS: u64 = 500;

/// Each thread stays within its sixteenth of the budget, so every request fits at whatever moment it is decided.
fn every_request_fits(shows_own: bool, shows_free: bool) {
    let driver = Driver::new(World {
        shows_own,
        shows_free,
        ..World::new(20 * GIB, 2 * GIB)
    });
    let card = Card::new(DeviceKey::new("test"), Policy::desktop(), driver.boxed());
    let budget = card.budget().budget.0;
    let share = budget / THREADS / (2 * MIB) * (2 * MIB);
    let (refused, over) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (card, driver, refused, over) = (&card, &driver, &refused, &over);
            scope.spawn(move || {
                let mut seed = thread + 1;
                for round in 0..ROUNDS {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let bytes = (seed >> 33) % (share / (2 * MIB)) * (2 * MIB);
                    let Ok(reservation) = card.try_reserve(Bytes(bytes), Class::Required, "share") else {
                        refused.fetch_add(1, Ordering::Relaxed);
                        continue;
                    };
                    // Some requests are given back unused, some reach the driver.
                    if round % 4 == 0 {
                        continue;
                    }
                    driver.with(|w| {
                        w.own += bytes;
                        over.fetch_add(u64::from(w.own > budget), Ordering::Relaxed);
                    });
                    let allocation = reservation.commit();
                    thread::yield_now();
                    driver.with(|w| w.own -= bytes);
                    drop(allocation);
                }
            });
        }
    });
    assert_eq!(
        (refused.into_inner(), over.into_inner()),
        (0, 0),
        "(refused though it fitted, granted over budget)"
    );
    assert_eq!(card.ledger().live_bytes(), Bytes::ZERO);
    assert!(card.ledger().peak() <= Bytes(budget));
    assert!(card.ledger().live().is_empty());
}

#[test]
fn no_refusal_of_what_fits_with_the_ledger_alone() {
    every_request_fits(false, false);
}

#[test]
fn no_refusal_of_what_fits_with_every_driver_figure() {
    every_request_fits(true, true);
}

#[test]
fn threads_that_want_too_much_get_the_budget_and_no_more() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = Card::new(DeviceKey::new("test"), Policy::desktop(), driver.boxed());
    let budget = card.budget().budget.0;
    let held = thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (card, driver) = (&card, &driver);
                scope.spawn(move || {
                    let mut held = Vec::new();
                    while let Ok(reservation) = card.try_reserve(Bytes::mib(34), Class::Growth, "greedy") {
                        driver.with(|w| {
                            w.own += reservation.bytes().0;
                            assert!(w.own <= budget);
                        });
                        held.push(reservation.commit());
                    }
                    held
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect::<Vec<_>>()
    });
    // The last refusal came when nothing was in flight any more, so what is left is less than one request.
    assert_eq!(held.len() as u64, budget / (34 * MIB));
}
