//! Overhead of the driver: memory that it holds for a process beside its buffers (a context, code, queues). It is charged against the card,
//! not against a cap in bytes, which is for what the program asks for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::common::{Driver, GIB, MIB, World};
use proptest::prelude::*;
use rocmforge_memory::{Bytes, Card, Class, DeviceKey, Limit, OutOfBudget, Policy, Pressure, Reservation, Step};

/// What NVIDIA's driver held on an H200 for a process with a context and nothing else.
const CONTEXT: u64 = 518 * MIB;

/// A card of 24 GiB without a display, of which others hold one, whose driver holds `overhead` for us.
fn card(policy: Policy, overhead: u64) -> (Driver, Arc<Card>) {
    let driver = Driver::new(World {
        own: overhead,
        shows_own: true,
        shows_free: true,
        displays: 0,
        ..World::new(24 * GIB, GIB)
    });
    let card = Card::new(DeviceKey::new("test"), policy, driver.boxed());
    (driver, card)
}

fn reserve(card: &Arc<Card>, bytes: u64) -> Result<Reservation, OutOfBudget> {
    card.try_reserve(Bytes(bytes), Class::Required, "test")
}

#[test]
fn a_cap_in_bytes_is_for_what_the_program_asks_for() {
    for (policy, cap) in [(Policy::fixed(Bytes::mib(1)), MIB), (Policy::tests(), 2 * GIB)] {
        let (driver, card) = card(policy, CONTEXT);
        let first = reserve(&card, cap / 2).unwrap().commit();
        driver.with(|w| w.own += cap / 2);
        let refused = reserve(&card, cap / 2 + 1).unwrap_err();
        assert_eq!(
            (refused.available, refused.limit),
            (Bytes(cap / 2), Limit::Cap),
            "{refused}"
        );
        let second = reserve(&card, cap / 2).unwrap().commit();
        driver.with(|w| w.own += cap / 2);
        let now = card.budget();
        assert_eq!((now.available, now.pressure), (Bytes(0), Pressure::Yellow));
        assert_eq!((now.budget, now.cap), (Bytes(cap + CONTEXT), Bytes(cap + CONTEXT)));
        drop((first, second));
    }
}

#[test]
fn a_context_that_comes_later_takes_nothing_from_it() {
    let (driver, card) = card(Policy::fixed(Bytes::mib(64)), 0);
    let held = reserve(&card, 32 * MIB).unwrap().commit();
    assert_eq!(card.pressure(), Pressure::Green);
    driver.with(|w| {
        w.own += 32 * MIB + CONTEXT;
        w.now += Duration::from_secs(1);
    });
    assert_eq!(card.budget().available, Bytes::mib(32));
    assert_eq!(card.pressure(), Pressure::Green);
    // Nor does one that goes give more.
    driver.with(|w| {
        w.own -= CONTEXT;
        w.now += Duration::from_secs(1);
    });
    assert_eq!(card.budget().available, Bytes::mib(32));
    drop(held);
}

#[test]
fn a_share_of_the_card_contains_it() {
    let (_, card) = card(Policy::desktop(), CONTEXT);
    let now = card.budget();
    assert_eq!(now.budget, Bytes::gib(23).percent(70));
    assert_eq!(now.available.0, now.budget.0 - CONTEXT);
}

#[test]
fn where_the_card_is_the_limit_it_counts() {
    let (_, card) = card(Policy::fixed(Bytes::gib(24)), CONTEXT);
    let now = card.budget();
    assert_eq!((now.budget.0, now.limit), (23 * GIB - 256 * MIB, Limit::Desktop));
    assert_eq!(now.available.0, now.budget.0 - CONTEXT);
}

#[test]
fn caches_may_fill_their_part_of_what_it_leaves() {
    for (policy, room) in [
        (Policy::fixed(Bytes(100 * MIB)), 85 * MIB),
        (Policy::desktop(), (23 * GIB / 10 * 7 - CONTEXT) / 20 * 17),
    ] {
        let (driver, card) = card(policy, CONTEXT);
        assert_eq!(card.pressure(), Pressure::Green);
        let refused = card.try_reserve(Bytes::gib(23), Class::Cache, "test").unwrap_err();
        assert!(refused.available.0.abs_diff(room) < MIB, "{refused}");
        let held = card
            .try_reserve(refused.available, Class::Cache, "test")
            .unwrap()
            .commit();
        driver.with(|w| w.own += refused.available.0);
        assert_eq!(card.budget().pressure, Pressure::Green);
        let more = reserve(&card, MIB).unwrap();
        assert_eq!(card.pressure(), Pressure::Yellow);
        drop((held, more));
    }
}

#[test]
fn nobody_gives_way_for_a_request_that_it_leaves_no_room_for() {
    let (_, card) = card(Policy::fixed(Bytes(16 * MIB)), CONTEXT);
    let asked = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&asked);
    let registration = card.on_pressure(Step::DropCaches, move |_shortage| {
        counted.fetch_add(1, Ordering::Relaxed);
        Bytes::ZERO
    });
    let held = reserve(&card, 8 * MIB).unwrap();
    for (bytes, times) in [(17 * MIB, 0), (16 * MIB, 1)] {
        card.reserve(Bytes(bytes), Class::Required, "test").unwrap_err();
        assert_eq!(asked.load(Ordering::Relaxed), times, "{bytes}");
    }
    drop((registration, held));
}

proptest! {
    /// However large the cap and the overhead, and whenever it comes: what is granted is there.
    #[test]
    fn no_grant_is_beyond_the_card(
        total in 1_u64..64,
        others in 0_u64..64 * 1024,
        cap in 1_u64..64 * 1024,
        quarter in any::<bool>(),
        shows_used in any::<bool>(),
        steps in prop::collection::vec((0_u64..8 * 1024, 1_u64..8 * 1024, 0_u64..15_000), 1..20),
    ) {
        let total = total * GIB;
        let others = (others * MIB).min(total);
        let mut policy = Policy::fixed(Bytes(cap * MIB));
        if quarter {
            policy.cap = rocmforge_memory::Cap::Quarter(Bytes(cap * MIB));
        }
        let driver = Driver::new(World { shows_own: true, shows_free: true, shows_used, displays: 0, ..World::new(total, others) });
        let card = Card::new(DeviceKey::new("test"), policy, driver.boxed());
        let mut held = Vec::new();
        let mut live = 0;
        for (overhead, bytes, later) in steps {
            let bytes = bytes * MIB;
            // The driver's own part moves, and the program knows nothing of it.
            driver.with(|w| {
                w.own = (live + overhead * MIB).min(total - if shows_used { others } else { 0 }).max(live);
                w.now += Duration::from_millis(later);
            });
            let before = card.budget();
            let granted = reserve(&card, bytes);
            let overhead = driver.with(|w| w.own - live);
            if let Ok(reservation) = granted {
                live += bytes;
                prop_assert!(live <= cap * MIB, "{live} live, {before:?}");
                let others = if shows_used { others } else { 0 };
                prop_assert!(live + overhead + others + 256 * MIB <= total, "{live} + {overhead} + {others}, {before:?}");
                held.push(reservation.commit());
                driver.with(|w| w.own += bytes);
            } else {
                let full = live + bytes > cap * MIB || live + bytes > total / 4;
                let tight = live + bytes + overhead + others + 256 * MIB > total;
                prop_assert!(full || tight || before.limit != Limit::Cap, "{bytes} refused: {before:?}");
            }
        }
    }
}
