//! Two cards with one ledger stand for two processes.

use std::time::Duration;

use rocmforge_memory::{Bytes, Card, Class, DeviceKey, Limit, PeerFigures, Policy};

use super::{CARD, UNUSED, apart, assert_fits, join, open, scratch};
use crate::common::{Driver, GIB, MIB, World};

#[test]
fn a_second_process_sees_what_the_first_one_has_reserved() {
    let root = scratch();
    let (one, two) = (apart(root.path(), 20), apart(root.path(), 20));
    let reserved = one.try_reserve(Bytes::gib(12), Class::Required, "weights").unwrap();
    let seen = two.budget();
    assert!(
        seen.peers >= Bytes::gib(12) && seen.peers.0 <= 12 * GIB + UNUSED,
        "{}",
        seen.peers
    );
    let refusal = two.try_reserve(Bytes::gib(8), Class::Required, "too much").unwrap_err();
    assert_eq!((refusal.limit, refusal.peers), (Limit::Peers, seen.peers));
    let text = refusal.to_string();
    assert!(
        text.contains("other programs of this user") && text.contains("claimed 12."),
        "{text}"
    );
    assert!(text.contains("Wait for your other programs on this card"), "{text}");
    assert_fits(&two, Bytes::gib(7));
    // What would not fit without the others either is not their doing.
    let refusal = two
        .try_reserve(Bytes::gib(20), Class::Required, "far too much")
        .unwrap_err();
    assert_ne!(refusal.limit, Limit::Peers);
    drop(reserved);
    assert_fits(&two, Bytes::gib(19));
}

#[test]
fn what_both_want_only_one_gets() {
    let root = scratch();
    let (one, two) = (apart(root.path(), 20), apart(root.path(), 20));
    let first = one.try_reserve(Bytes::gib(11), Class::Growth, "one");
    let second = two.try_reserve(Bytes::gib(11), Class::Growth, "two");
    assert!(first.is_ok() && second.is_err());
    // A refusal takes nothing: what fits beside the first one is still there.
    assert_fits(&two, Bytes::gib(8));
}

#[test]
fn what_the_driver_shows_is_not_counted_twice() {
    let root = scratch();
    let driver = Driver::new(World::new(20 * GIB, 0));
    let one = open(root.path(), &driver, PeerFigures::InUsed);
    let two = open(root.path(), &driver, PeerFigures::InUsed);
    let reserved = one.try_reserve(Bytes::gib(12), Class::Required, "weights").unwrap();
    let before = two.budget();
    // The driver hands the memory out, and `used` shows it, to the other process as somebody else's.
    driver.with(|world| world.others += 12 * GIB);
    let allocation = reserved.commit();
    let after = two.budget();
    assert_eq!(before.others, Some(Bytes::ZERO));
    assert_eq!(after.others, Some(Bytes::gib(12)));
    assert!(after.peers.0 <= UNUSED, "{}", after.peers);
    let moved = after.budget.0.abs_diff(before.budget.0);
    assert!(moved <= UNUSED, "a commit elsewhere moved the budget by {moved}");
    let mut allocation = allocation;
    allocation.begin_return();
    driver.with(|world| world.others -= 12 * GIB);
    drop(allocation);
    assert!(two.budget().target.0 >= 19 * GIB);
    // What others give back is ours slowly, whoever they are.
    driver.with(|world| world.now += Duration::from_secs(60));
    assert!(two.budget().available.0 >= 19 * GIB);
}

#[test]
fn small_requests_do_not_touch_the_file() {
    let root = scratch();
    let card = apart(root.path(), 20);
    let path = root.path().join(format!("{CARD}.ledger"));
    drop(card.try_reserve(Bytes::mib(1), Class::Required, "first").unwrap());
    let before = std::fs::read(&path).unwrap();
    // Were it needed, a request would fail now.
    std::fs::write(&path, "not a ledger").unwrap();
    for _ in 0..1000 {
        let held = card
            .try_reserve(Bytes::mib(1), Class::Required, "small")
            .unwrap()
            .commit();
        drop(held);
    }
    assert!(card.try_reserve(Bytes::gib(1), Class::Required, "large").is_err());
    std::fs::write(&path, before).unwrap();
    assert_fits(&card, Bytes::gib(1));
}

#[test]
fn what_is_given_back_is_there_for_others_soon() {
    let root = scratch();
    let (one, two) = (apart(root.path(), 20), apart(root.path(), 20));
    let mut held: Vec<_> = (0..400)
        .map(|_| {
            one.try_reserve(Bytes::mib(32), Class::Growth, "block")
                .unwrap()
                .commit()
        })
        .collect();
    while held.pop().is_some() {
        let claimed = two.budget().peers.0;
        let held = held.len() as u64 * 32 * MIB;
        assert!(
            (held..=held + UNUSED).contains(&claimed),
            "{held} held, {claimed} claimed"
        );
    }
}

#[test]
fn the_ledger_lists_the_others() {
    let root = scratch();
    let one = apart(root.path(), 20);
    let observer = join(root.path(), PeerFigures::Missing).unwrap();
    assert_eq!(observer.peers().unwrap(), []);
    let held = one
        .try_reserve(Bytes::gib(2), Class::Required, "weights")
        .unwrap()
        .commit();
    let [peer] = observer.peers().unwrap()[..] else {
        panic!("one other process")
    };
    assert_eq!(
        (peer.pid, peer.committed, peer.local),
        (std::process::id(), Bytes::gib(2), true)
    );
    assert!(peer.claimed >= peer.committed && peer.age.as_secs() < 60);
    drop(held);
    drop(one);
    assert_eq!(observer.peers().unwrap(), [], "a card that is closed leaves nothing");
}

#[test]
fn an_allocation_that_is_abandoned_on_its_way_back_still_counts() {
    let root = scratch();
    let (one, two) = (apart(root.path(), 20), apart(root.path(), 20));
    let mut held = one
        .try_reserve(Bytes::gib(6), Class::Required, "weights")
        .unwrap()
        .commit();
    held.begin_return();
    held.abandon(None);
    let more = one.try_reserve(Bytes::gib(1), Class::Required, "more").unwrap();
    assert!(two.budget().peers >= Bytes::gib(7));
    drop(more);
    assert!(two.budget().peers >= Bytes::gib(6));
}

#[test]
fn caches_leave_the_rest_of_the_budget_to_others_too() {
    let root = scratch();
    let (one, two) = (apart(root.path(), 20), apart(root.path(), 20));
    let _held = one.try_reserve(Bytes::gib(10), Class::Required, "weights").unwrap();
    let budget = two.budget().budget;
    let cache = two.try_reserve(budget.percent(85), Class::Cache, "cache").unwrap();
    drop(cache);
    let refusal = two
        .try_reserve(Bytes(budget.percent(85).0 + MIB), Class::Cache, "cache")
        .unwrap_err();
    assert_eq!(refusal.limit, Limit::Peers, "without the others it would fit");
}

#[test]
fn a_cap_in_bytes_that_is_full_is_nobody_elses_doing() {
    let root = scratch();
    let capped = || {
        let peers = join(root.path(), PeerFigures::Missing).unwrap();
        let driver = Driver::new(World::new(20 * GIB, 0));
        Card::open_shared(
            DeviceKey::new(CARD),
            Policy::fixed(Bytes::mib(8)),
            driver.boxed(),
            peers,
        )
        .unwrap()
    };
    let (one, two) = (capped(), capped());
    let _theirs = one.try_reserve(Bytes::mib(4), Class::Required, "theirs").unwrap();
    let _ours = two.try_reserve(Bytes::mib(6), Class::Required, "ours").unwrap();
    let refusal = two.try_reserve(Bytes::mib(3), Class::Required, "more").unwrap_err();
    assert!(refusal.peers >= Bytes::mib(4), "{refusal}");
    assert_eq!(
        (refusal.available, refusal.limit),
        (Bytes::mib(2), Limit::Cap),
        "{refusal}"
    );
    let refusal = two.try_reserve(Bytes::mib(2), Class::Cache, "cache").unwrap_err();
    assert_eq!(refusal.limit, Limit::CacheShare, "{refusal}");
}

#[test]
fn an_unreadable_used_figure_counts_all_that_others_have_claimed() {
    let root = scratch();
    let driver = Driver::new(World {
        shows_used: false,
        shows_free: true,
        ..World::new(20 * GIB, 0)
    });
    let one = open(root.path(), &driver, PeerFigures::InUsed);
    let two = open(root.path(), &driver, PeerFigures::InUsed);
    let quarter = two.budget().budget.0;
    let held = one
        .try_reserve(Bytes::gib(2), Class::Required, "weights")
        .unwrap()
        .commit();
    let left = two.budget();
    assert!(left.peers >= Bytes::gib(2));
    assert_eq!(left.budget.0, quarter - left.peers.0);
    drop(held);
}

#[test]
fn our_late_frees_do_not_excuse_what_another_process_takes() {
    let root = scratch();
    let driver = Driver::new(World::new(20 * GIB, 0));
    let one = open(root.path(), &driver, PeerFigures::InUsed);
    // The same driver as another process sees it: its own memory is in `others` of the first.
    let two = open(root.path(), &driver, PeerFigures::InUsed);
    let held = one.try_reserve(Bytes::gib(6), Class::Required, "ours").unwrap();
    driver.with(|world| world.own += 6 * GIB);
    let held = held.commit();
    one.budget();
    // We free 6 GiB, at the same time they take 6: `used` stays, and none of the rise of `used - own` is our late free.
    let theirs = two.try_reserve(Bytes::gib(6), Class::Required, "theirs").unwrap();
    driver.with(|world| (world.own, world.others) = (0, 6 * GIB));
    let theirs = theirs.commit();
    drop(held);
    let seen = one.budget();
    assert!(seen.available.0 <= 14 * GIB, "{seen:?}");
    assert_eq!(seen.others, Some(Bytes::gib(6)));
    drop(theirs);
}

#[test]
fn nothing_is_asked_of_the_file_for_nothing() {
    let root = scratch();
    let card = apart(root.path(), 20);
    drop(
        card.try_reserve(Bytes::ZERO, Class::Required, "empty")
            .unwrap()
            .commit(),
    );
    assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn memory_that_a_cooperating_process_gave_back_is_not_kept_free_for_the_desktop() {
    let root = scratch();
    let driver = Driver::new(World::new(20 * GIB, GIB));
    let key = || DeviceKey::new(CARD);
    let open = || {
        let peers = join(root.path(), PeerFigures::InUsed).unwrap();
        Card::open_shared(key(), Policy::desktop(), driver.boxed(), peers).unwrap()
    };
    let (one, two) = (open(), open());
    let before = two.budget().headroom;
    let reserved = one.try_reserve(Bytes::gib(8), Class::Required, "weights").unwrap();
    driver.with(|world| world.others += 8 * GIB);
    let mut held = reserved.commit();
    assert_eq!(two.budget().headroom, before);
    held.begin_return();
    driver.with(|world| world.others -= 8 * GIB);
    drop(held);
    assert!(
        two.budget().headroom.0 <= before.0 + UNUSED,
        "{}",
        two.budget().headroom
    );
}

#[test]
fn alone_on_the_card_a_refusal_costs_one_reading() {
    let root = scratch();
    let driver = Driver::new(World::new(20 * GIB, 0));
    let card = open(root.path(), &driver, PeerFigures::InUsed);
    driver.with(|world| world.now += Duration::from_secs(1));
    let before = driver.with(|world| world.reads);
    assert!(card.try_reserve(Bytes::gib(30), Class::Required, "too much").is_err());
    assert_eq!(driver.with(|world| world.reads) - before, 1);
}
