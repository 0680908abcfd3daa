//! The budget falls at once and grows slowly, whatever the figures do.

use std::time::Duration;

use crate::common::{Driver, GIB, MIB, World};
use proptest::prelude::*;
use rocmforge_memory::{Bytes, Card, Class, DeviceKey, Limit, Policy};

const WAIT: Duration = Policy::desktop().grow_after;

/// What may come on top in a time: 5 % of the card a second.
fn growth(total: u64, time: Duration) -> u64 {
    (u128::from(total) * 5 * time.as_millis() / 100_000) as u64
}

#[test]
fn a_browser_that_is_closed_gives_its_room_after_ten_seconds_and_bit_by_bit() {
    let driver = Driver::new(World::new(20 * GIB, 16 * GIB));
    let card = Card::new(DeviceKey::new("test"), Policy::desktop(), driver.boxed());
    assert_eq!(card.budget().budget, Bytes::gib(2));
    driver.with(|w| w.others = 2 * GIB);
    let refusal = card.try_reserve(Bytes::gib(3), Class::Required, "model").unwrap_err();
    assert_eq!((refusal.limit, refusal.budget), (Limit::Growth, Bytes::gib(2)));
    assert!(refusal.to_string().contains("Try again in some seconds"), "{refusal}");
    driver.with(|w| w.now += WAIT - Duration::from_millis(1));
    assert_eq!(card.budget().budget, Bytes::gib(2));
    driver.with(|w| w.now += Duration::from_millis(1));
    assert_eq!(card.budget().budget, Bytes::gib(2), "from now on");
    // No more than that: what the browser had at its peak stays free for ten minutes.
    for (budget, limit) in [(Bytes::gib(3), Limit::Growth), (Bytes::gib(4), Limit::Desktop)] {
        driver.with(|w| w.now += Duration::from_secs(1));
        let snapshot = card.budget();
        assert_eq!(
            (snapshot.budget, snapshot.limit, snapshot.target),
            (budget, limit, Bytes::gib(4))
        );
    }
}

#[test]
fn what_is_allowed_again_after_a_moment_has_to_wait_again() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = Card::new(DeviceKey::new("test"), Policy::headless(), driver.boxed());
    let full = card.budget().budget;
    for _ in 0..3 {
        driver.with(|w| (w.now, w.others) = (w.now + WAIT / 2, 8 * GIB));
        let low = card.budget().budget;
        assert_eq!(low.0, full.0 - 6 * GIB, "down at once");
        driver.with(|w| (w.now, w.others) = (w.now + WAIT / 2, 2 * GIB));
        assert_eq!(card.budget().budget, low);
    }
    driver.with(|w| w.now += WAIT);
    let _ = card.budget();
    driver.with(|w| w.now += Duration::from_secs(60));
    assert_eq!(card.budget().budget, full);
}

proptest! {
    /// The definition, literally: every figure there ever was is a ceiling until ten seconds after it was last true, and
    /// rises from then on by 5 % of the card a second; the lowest is in force.
    #[test]
    fn growth_keeps_its_rate_and_its_wait(
        steps in prop::collection::vec((0_u64..20_000, 0_u64..20 * 1024), 1..60),
        passing in any::<bool>(),
    ) {
        let total = 20 * GIB;
        let driver = Driver::new(World::new(total, 2 * GIB));
        let card = Card::new(DeviceKey::new("test"), Policy::desktop(), driver.boxed());
        let mut history = vec![(Duration::ZERO, card.budget().target.0)];
        for (milliseconds, others) in steps {
            driver.with(|w| (w.now, w.others) = (w.now + Duration::from_millis(milliseconds), others * MIB));
            let now = driver.with(|w| w.now);
            if passing {
                // What is reserved and given back in between changes nothing.
                drop(card.try_reserve(Bytes(MIB), Class::Required, "passing"));
            }
            let snapshot = card.budget();
            history.push((now, snapshot.target.0));
            let ends = history.iter().skip(1).map(|(at, _)| *at).chain([now]);
            let ceilings = history.iter().zip(ends);
            let ceilings = ceilings.map(|((_, target), end)| target + growth(total, now.saturating_sub(end + WAIT)));
            prop_assert_eq!(Some(snapshot.budget.0), ceilings.min());
        }
    }
}
