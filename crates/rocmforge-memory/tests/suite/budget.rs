//! The budget's promises P1 to P5, as properties over random cards, and the rules they came from.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Driver, GIB, MIB, World};
use proptest::prelude::*;
use rocmforge_memory::{
    Allocation, Bytes, Cap, Card, Class, DISPLAY_HEADROOM, DeviceKey, FixedReadings, HEADLESS_HEADROOM, HostReading,
    Limit, Policy, Pressure, Reading, Readings, SharedMemory, UnifiedMemory, Warning,
};

fn card(driver: &Driver, policy: Policy) -> Arc<Card> {
    Card::new(DeviceKey::new("test"), policy, driver.boxed())
}

/// Reserves, lets the driver hand the memory out, commits. Sizes are whole granules so that the ledger stands in
/// exactly for a driver that does not tell our share.
fn allocate(card: &Arc<Card>, driver: &Driver, bytes: u64) -> Option<Allocation> {
    let reservation = card.try_reserve(Bytes(bytes), Class::Required, "test").ok()?;
    driver.with(|w| w.own += bytes);
    Some(reservation.commit())
}

fn budget(card: &Card) -> u64 {
    card.budget().budget.0
}

fn granules() -> impl Strategy<Value = u64> {
    (1_u64..512).prop_map(|n| n * 2 * MIB)
}

fn worlds() -> impl Strategy<Value = World> {
    (1_u64..64, 0_u64..100, any::<bool>(), any::<bool>(), 0_u32..3).prop_map(|(gib, share, own, free, displays)| {
        let total = gib * GIB;
        World {
            shows_own: own,
            shows_free: free,
            displays,
            ..World::new(total, total / 200 * share)
        }
    })
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::desktop()),
        Just(Policy::headless()),
        Just(Policy::tests()),
        granules().prop_map(|b| Policy::fixed(Bytes(b * 4)))
    ]
}

proptest! {
    #[test]
    fn p1_allocating_leaves_the_budget_unchanged(world in worlds(), policy in policies(), sizes in prop::collection::vec(granules(), 1..20)) {
        let driver = Driver::new(world);
        let card = card(&driver, policy);
        let before = budget(&card);
        let mut held = Vec::new();
        for bytes in sizes {
            held.extend(allocate(&card, &driver, bytes));
            prop_assert_eq!(budget(&card), before);
            let now = card.budget();
            prop_assert_eq!(now.available.0, before - now.own.0);
        }
        prop_assert!(card.budget().own.0 <= before);
    }

    #[test]
    fn p2_parts_get_no_more_than_the_whole(world in worlds(), policy in policies(), part in granules()) {
        let driver = Driver::new(world);
        let card = card(&driver, policy);
        let whole = card.budget().available.0;
        let mut parts = Vec::new();
        while let Some(allocation) = allocate(&card, &driver, part) {
            parts.push(allocation);
            prop_assert!(parts.len() as u64 <= whole / part, "{} parts of {part} out of {whole}", parts.len());
        }
        // And no less than fits either.
        prop_assert_eq!(parts.len() as u64, whole / part);
    }

    #[test]
    fn p3_a_rise_of_others_costs_at_most_itself(world in worlds(), policy in policies(), rises in prop::collection::vec(granules(), 1..8)) {
        let driver = Driver::new(world);
        let card = card(&driver, policy);
        let mut before = budget(&card);
        for rise in rises {
            driver.with(|w| w.others += rise);
            let after = budget(&card);
            prop_assert!(after <= before && before - after <= rise, "{before} -> {after} by a rise of {rise}");
            before = after;
        }
    }

    #[test]
    fn a_fall_of_others_never_lowers_the_budget(world in worlds(), policy in policies(), fall in granules()) {
        let driver = Driver::new(world);
        let card = card(&driver, policy);
        let before = budget(&card);
        driver.with(|w| w.others = w.others.saturating_sub(fall));
        prop_assert!(budget(&card) >= before);
    }

    #[test]
    fn p4_without_the_desktops_figure_the_budget_is_a_quarter(gib in 1_u64..64, free_gib in prop::option::of(0_u64..64)) {
        let reading = Reading {
            total: Some(Bytes::gib(gib)),
            hip_free: free_gib.map(Bytes::gib),
            displays: 1,
            ..Reading::default()
        };
        let card = Card::new(DeviceKey::new("test"), Policy::desktop(), Box::new(FixedReadings(reading)));
        let snapshot = card.budget();
        prop_assert!(snapshot.warnings.contains(&Warning::Unreadable));
        prop_assert!(snapshot.budget <= Bytes(gib * GIB / 4));
        prop_assert!(snapshot.budget <= Bytes(free_gib.unwrap_or(u64::MAX >> 30) * GIB / 2));
        prop_assert_eq!(snapshot.others, None);
    }

    #[test]
    fn p5_no_reading_breaks_the_bounds(
        total in prop::option::of(any::<u64>()), used in prop::option::of(any::<u64>()),
        own in prop::option::of(any::<u64>()), free in prop::option::of(any::<u64>()),
        evicted in prop::option::of(any::<u64>()), stopped in prop::option::of(any::<u64>()),
        displays in any::<u32>(), unified_memory in any::<bool>(), kinds in prop::option::of(any::<[Option<u64>; 6]>()), policy in policies(), request in any::<u64>(),
    ) {
        let [total, used, own, hip_free] = [total, used, own, free].map(|f| f.map(Bytes));
        let (evicted, stopped) = (evicted.map(Bytes), stopped.map(Duration::from_nanos));
        let shared = kinds.map(|kinds| {
            let [carve_out, carve_out_used, gtt, gtt_used, total, available] = kinds.map(|f| f.map(Bytes));
            SharedMemory { carve_out, carve_out_used, gtt, gtt_used, system: HostReading { total, available } }
        });
        let reading = Reading { total, used, own, hip_free, evicted, stopped, displays, unified_memory, shared };
        let card = Card::new(DeviceKey::new("test"), policy, Box::new(FixedReadings(reading)));
        let s = card.budget();
        if let Some(total) = s.total {
            prop_assert!(s.budget <= total.saturating_sub(s.headroom));
            prop_assert!(s.others.unwrap_or_default() <= total && s.own <= total);
        }
        prop_assert!(s.budget <= s.cap);
        let spare = shared.and_then(|shared| shared.system.available.zip(shared.gtt));
        prop_assert!(!unified_memory || spare.is_some() || s.budget == Bytes::ZERO);
        let granted = card.try_reserve(Bytes(request), Class::Required, "test");
        prop_assert_eq!(granted.is_ok(), request <= s.available.0);
        if let Err(refusal) = granted {
            prop_assert_eq!(refusal.available, s.available);
        }
    }

    #[test]
    fn freeing_never_lowers_the_budget(world in worlds(), policy in policies(), steps in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), granules()), 1..60)) {
        let driver = Driver::new(world);
        let card = card(&driver, policy);
        let floor = budget(&card);
        let mut held: Vec<Allocation> = Vec::new();
        let mut arrives = Duration::ZERO;
        for (free, which, bytes) in steps {
            driver.with(|w| {
                w.now += Duration::from_millis(30);
                if w.now >= arrives {
                    w.late = 0;
                }
            });
            let _ = budget(&card);
            // With something late at every moment for longer than the grace, it would be believed.
            if free && !held.is_empty() && driver.with(|w| w.late) == 0 {
                let allocation = held.swap_remove(which.index(held.len()));
                let bytes = allocation.bytes().0;
                driver.with(|w| {
                    w.own -= bytes;
                    w.late = bytes;
                    // As late as is excused.
                    arrives = w.now + policy.late_free_grace - Duration::from_millis(40);
                });
                drop(allocation);
            } else {
                held.extend(allocate(&card, &driver, bytes));
            }
            prop_assert_eq!(budget(&card), floor);
        }
    }
}

#[test]
fn the_default_budget_of_a_desktop_card() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let snapshot = card(&driver, Policy::desktop()).budget();
    assert_eq!(snapshot.others, Some(Bytes::gib(2)));
    assert_eq!(
        snapshot.headroom,
        Bytes::gib(2),
        "a tenth of 20 GiB is more than {DISPLAY_HEADROOM}"
    );
    assert_eq!(snapshot.cap, Bytes::gib(18).percent(70));
    assert_eq!((snapshot.budget, snapshot.limit), (snapshot.cap, Limit::Cap));

    let headless = Driver::new(World {
        displays: 0,
        ..World::new(20 * GIB, 0)
    });
    let snapshot = card(&headless, Policy::headless()).budget();
    assert_eq!(snapshot.budget, Bytes(20 * GIB - HEADLESS_HEADROOM.0));
}

#[test]
fn ten_requests_of_70_percent_stay_within_one_budget() {
    // The rule "70 % of what is free now" grants 99.999 % of the card in ten requests.
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::desktop());
    let promise = budget(&card);
    let mut held = Vec::new();
    for _ in 0..10 {
        let free = driver.with(|w| w.total - w.others - w.own);
        held.extend(allocate(&card, &driver, free / 10 * 7 / (2 * MIB) * (2 * MIB)));
        assert!(driver.with(|w| w.own) <= promise);
    }
    assert_eq!(held.len(), 1, "the first takes 70 %, so nine are refused");
    let old_rule = (0..10).fold(18.0_f64, |free, _| free * 0.3);
    assert!(old_rule < 0.001, "the old rule leaves the desktop {old_rule} GiB of 18");
    assert!(driver.with(|w| w.total - w.others - w.own) > 5 * GIB);
}

#[test]
fn a_rise_of_others_while_a_free_is_late_is_seen_after_the_grace() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::desktop());
    let before = budget(&card);
    let allocation = allocate(&card, &driver, 4 * GIB).unwrap();
    driver.with(|w| (w.own, w.others) = (0, w.others + 4 * GIB));
    drop(allocation);
    assert_eq!(budget(&card), before, "it looks like our own free that is late");
    driver.with(|w| w.now += Policy::desktop().late_free_grace);
    assert_eq!(budget(&card), Bytes(14 * GIB).percent(70).0, "but not for ever");
}

#[test]
fn a_desktop_that_grows_while_we_give_way_is_seen_within_the_grace() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::desktop());
    let mut held: Vec<_> = (0..48).filter_map(|_| allocate(&card, &driver, 256 * MIB)).collect();
    // 128 MiB every 50 ms, and we free as much; the figure of what is used falls two looks late.
    let mut late = [0, 0];
    for look in 0..40u64 {
        driver.with(|w| {
            w.now += Duration::from_millis(50);
            w.others += 128 * MIB;
        });
        let freed = if look % 2 == 0 { held.pop() } else { None };
        let bytes = if freed.is_some() { 256 * MIB } else { 0 };
        late = [late[1], bytes];
        driver.with(|w| (w.own, w.late) = (w.own - bytes, late[0] + late[1]));
        drop(freed);
        let (seen, truth) = (card.budget().others.unwrap().0, driver.with(|w| w.others));
        // What was freed within the grace and one look is all that can be hidden.
        assert!(
            truth - seen.min(truth) <= 6 * 128 * MIB,
            "look {look}: {seen} of {truth}"
        );
    }
}

#[test]
fn a_rise_that_stands_for_the_grace_is_seen_however_much_is_freed() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::desktop());
    let mut buffer = allocate(&card, &driver, GIB);
    for look in 0..40_u64 {
        driver.with(|w| {
            w.now += Duration::from_millis(20);
            // The desktop takes as much as is always on its way back.
            w.others += if look == 10 { GIB } else { 0 };
            (w.own, w.late) = (0, if look < 10 { GIB } else { 0 });
        });
        drop(buffer.take());
        let seen = card.budget().others.unwrap();
        buffer = allocate(&card, &driver, GIB);
        assert!(seen <= Bytes::gib(3), "look {look}: {seen}");
        if look >= 10 {
            assert_eq!(seen, Bytes::gib(3), "look {look}: it stood for 200 ms before");
        }
    }
}

#[test]
fn a_rise_of_others_beyond_a_late_free_is_seen_at_once() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::desktop());
    let allocation = allocate(&card, &driver, GIB).unwrap();
    driver.with(|w| (w.own, w.late, w.others) = (0, GIB, 5 * GIB));
    drop(allocation);
    assert_eq!(card.budget().others, Some(Bytes::gib(5)));
}

#[test]
fn a_peak_of_the_desktop_is_remembered() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::headless());
    let _ = card.budget();
    let auto = Policy {
        headroom: rocmforge_memory::Headroom::Auto,
        ..Policy::headless()
    };
    let card = Card::new(DeviceKey::new("test"), auto, driver.boxed());
    driver.with(|w| w.others = 9 * GIB);
    let at_peak = budget(&card);
    driver.with(|w| w.others = 2 * GIB);
    assert_eq!(card.budget().headroom, Bytes::gib(7));
    assert!(budget(&card) >= at_peak);
    driver.with(|w| w.now += auto.peak_window + Duration::from_secs(1));
    assert_eq!(card.budget().headroom, Bytes::gib(2));
}

#[test]
fn what_the_driver_holds_beyond_the_ledger_counts_as_ours() {
    let driver = Driver::new(World {
        shows_own: true,
        own: GIB,
        ..World::new(20 * GIB, 2 * GIB)
    });
    let card = card(&driver, Policy::desktop());
    let snapshot = card.budget();
    assert_eq!((snapshot.own, snapshot.committed), (Bytes::gib(1), Bytes::ZERO));
    assert_eq!(snapshot.others, Some(Bytes::gib(2)));
    assert_eq!(snapshot.available, Bytes(snapshot.budget.0 - GIB));
}

#[test]
fn hip_free_is_a_limit_but_never_the_only_one() {
    // Another ROCm program holds 15 GiB that sysfs, here, does not show.
    let reading = Reading {
        total: Some(Bytes::gib(20)),
        used: Some(Bytes::gib(1)),
        hip_free: Some(Bytes::gib(5)),
        ..Reading::default()
    };
    let card = Card::new(
        DeviceKey::new("test"),
        Policy::desktop(),
        Box::new(FixedReadings(reading)),
    );
    let snapshot = card.budget();
    assert_eq!(
        (snapshot.budget, snapshot.limit),
        (Bytes(5 * GIB - 64 * MIB), Limit::Driver)
    );
}

#[test]
fn memory_shared_with_the_system_is_refused_unless_allowed() {
    let driver = Driver::new(World {
        unified: true,
        ..World::new(16 * GIB, GIB)
    });
    let refuse = Policy {
        unified_memory: UnifiedMemory::Refuse,
        ..Policy::desktop()
    };
    let refused = card(&driver, refuse);
    assert!(refused.budget().unified_memory);
    for class in [Class::Required, Class::Cache] {
        let refusal = refused.try_reserve(Bytes(1), class, "x").unwrap_err();
        assert_eq!(refusal.limit, Limit::UnifiedMemory);
        assert!(refusal.to_string().contains("Policy::unified_memory"), "{refusal}");
    }
    let allowed = Policy {
        unified_memory: UnifiedMemory::Quarter,
        ..Policy::desktop()
    };
    let card = card(&driver, allowed);
    assert_eq!(card.budget().budget, Bytes::gib(4));
    // Within what it may hold, it is nobody's to stop, however full the machine is.
    let held = allocate(&card, &driver, 2 * GIB);
    driver.with(|w| w.others = 14 * GIB);
    assert_eq!(card.budget().pressure, Pressure::Green);
    drop(held);
}

#[test]
fn nothing_known_means_nothing_unless_the_user_gave_a_number() {
    let unknown = || Box::new(FixedReadings(Reading::default()));
    let card = Card::new(DeviceKey::new("test"), Policy::desktop(), unknown());
    let snapshot = card.budget();
    assert_eq!((snapshot.budget, snapshot.limit), (Bytes::ZERO, Limit::Unreadable));
    let card = Card::new(DeviceKey::new("test"), Policy::fixed(Bytes::mib(64)), unknown());
    let snapshot = card.budget();
    assert_eq!((snapshot.budget, snapshot.limit), (Bytes::mib(64), Limit::Cap));
    assert!(snapshot.warnings.contains(&Warning::Unreadable));
}

#[test]
fn without_the_desktops_figure_the_smallest_of_cap_quarter_and_half_of_what_is_free() {
    let budget = |policy, total: Option<u64>, free: Option<u64>| {
        let reading = Reading {
            total: total.map(Bytes::gib),
            hip_free: free.map(Bytes::gib),
            displays: 1,
            ..Reading::default()
        };
        let card = Card::new(DeviceKey::new("test"), policy, Box::new(FixedReadings(reading)));
        (card.budget().budget.0, card.budget().limit)
    };
    let fixed = |gib| Policy::fixed(Bytes::gib(gib));
    assert_eq!(budget(fixed(1), Some(8), None), (GIB, Limit::Cap));
    assert_eq!(budget(fixed(2), Some(8), Some(8)), (2 * GIB, Limit::Unreadable));
    assert_eq!(budget(fixed(3), Some(8), Some(8)), (2 * GIB, Limit::Unreadable));
    assert_eq!(budget(Policy::desktop(), Some(8), None), (2 * GIB, Limit::Unreadable));
    let half = (3 * GIB - 64 * MIB) / 2;
    assert_eq!(budget(Policy::desktop(), Some(8), Some(3)), (half, Limit::Unreadable));
    assert!(budget(Policy::desktop(), None, Some(3)).0 <= half);
    let share = Policy {
        cap: Cap::Share(10),
        ..Policy::desktop()
    };
    assert_eq!(budget(share, Some(10), Some(10)), (GIB, Limit::Cap));
    // On a card that the headroom takes up nothing is left.
    assert_eq!(budget(Policy::desktop(), Some(1), Some(1)), (0, Limit::Unreadable));
}

#[test]
fn the_policies_by_their_table() {
    let snapshot = |policy, gib, displays| {
        let driver = Driver::new(World {
            displays,
            ..World::new(gib * GIB, 2 * GIB)
        });
        card(&driver, policy).budget()
    };
    for gib in [4, 20] {
        let (total, free, h) = (gib * GIB, (gib - 2) * GIB, GIB.max(gib * GIB / 10));
        for (policy, cap, headroom) in [
            (Policy::desktop(), Bytes(free).percent(70).0, h),
            (Policy::tests(), (2 * GIB).min(total / 4), h),
            (Policy::fixed(Bytes(3 * GIB)), 3 * GIB, h),
            (Policy::headless(), free, 256 * MIB),
        ] {
            let seen = snapshot(policy, gib, 1);
            assert_eq!((seen.cap.0, seen.headroom.0), (cap, headroom), "{policy:?}");
            assert_eq!(seen.budget.0, cap.min(free - headroom), "{policy:?}");
        }
        let seen = snapshot(Policy::unlimited(), gib, 0);
        assert_eq!((seen.cap.0, seen.headroom.0, seen.budget.0), (free, 0, free));
        let headless = snapshot(Policy::desktop(), gib, 0);
        assert_eq!(headless.headroom, HEADLESS_HEADROOM);
    }
}

#[test]
fn a_cache_leaves_room_for_what_is_required() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::fixed(Bytes::gib(10)));
    let refusal = card.try_reserve(Bytes::gib(9), Class::Cache, "pool").unwrap_err();
    assert_eq!(
        (refusal.available, refusal.limit),
        (Bytes::gib(10).percent(85), Limit::CacheShare)
    );
    let cache = card.try_reserve(refusal.available, Class::Cache, "pool").unwrap();
    assert!(card.try_reserve(Bytes::gib(1), Class::Required, "weights").is_ok());
    drop(cache);
}

#[test]
fn a_refusal_is_decided_on_fresh_figures_and_names_all_of_them() {
    let driver = Driver::new(World::new(20 * GIB, 16 * GIB));
    let card = card(&driver, Policy::desktop());
    // The browser was closed ten seconds ago; that the budget grows since, the frozen figures do not know yet.
    driver.with(|w| w.others = 2 * GIB);
    assert_eq!(card.budget().budget, Bytes::gib(2));
    driver.with(|w| w.now += Policy::desktop().grow_after);
    assert_eq!(card.budget().budget, Bytes::gib(2));
    driver.with(|w| w.now += Duration::from_millis(60));
    let weights = card
        .try_reserve(Bytes::mib(2048 + 60), Class::Required, "weights")
        .expect("fits by the figures of now");
    let line = line!() + 1;
    let refusal = card.try_reserve(Bytes::gib(30), Class::Growth, "kv cache").unwrap_err();
    assert_eq!(
        (refusal.requested, refusal.reserved),
        (Bytes::gib(30), Bytes::mib(2108))
    );
    assert_eq!((refusal.site.file, refusal.site.line), (file!(), line));
    let text = refusal.to_string();
    for part in [
        "`kv cache`",
        "Growth",
        "budget.rs",
        "30.0 GiB",
        "others hold 2.0 GiB",
        "smaller than the request",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    drop(weights);
}

#[test]
fn zero_bytes_always_fit() {
    let card = Card::new(
        DeviceKey::new("test"),
        Policy::desktop(),
        Box::new(FixedReadings(Reading::default())),
    );
    assert_eq!(
        card.try_reserve(Bytes::ZERO, Class::Required, "empty")
            .unwrap()
            .commit()
            .bytes(),
        Bytes::ZERO
    );
}

#[test]
fn figures_are_frozen_between_readings() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::desktop());
    let reads = driver.with(|w| w.reads);
    for _ in 0..30 {
        drop(card.try_reserve(Bytes::mib(1), Class::Required, "x"));
    }
    assert_eq!(driver.with(|w| w.reads), reads, "30 requests on one reading");
    drop(card.try_reserve(Bytes::mib(1), Class::Required, "x"));
    assert_eq!(driver.with(|w| w.reads), reads + 1);
    driver.with(|w| w.now += Policy::desktop().reread_every);
    drop(card.try_reserve(Bytes::mib(1), Class::Required, "x"));
    assert_eq!(driver.with(|w| w.reads), reads + 2);
}

#[test]
fn figures_read_while_the_driver_takes_memory_back_do_not_hide_others() {
    for (shows_own, shows_free) in [(false, false), (true, false), (false, true), (true, true)] {
        let driver = Driver::new(World {
            shows_own,
            shows_free,
            ..World::new(20 * GIB, 4 * GIB)
        });
        let card = card(&driver, Policy::desktop());
        let mut held = allocate(&card, &driver, 6 * GIB).unwrap();
        let before = card.budget();
        assert_eq!(before.others, Some(Bytes(4 * GIB)));
        held.begin_return();
        held.begin_return(); // counts once
        let asked = card.budget();
        driver.with(|w| w.own -= 6 * GIB);
        let taken = card.budget();
        for during in [&asked, &taken] {
            assert_eq!((during.others, during.budget), (before.others, before.budget));
            assert_eq!(during.committed.0 + during.reserved.0, 6 * GIB);
            assert_eq!(during.warnings, []);
        }
        drop(held);
        let after = card.budget();
        assert_eq!((after.others, after.budget), (before.others, before.budget));
        assert_eq!((after.committed, after.reserved), (Bytes::ZERO, Bytes::ZERO));
        assert!(card.ledger().live().is_empty());
    }
}

#[test]
fn memory_the_driver_did_not_take_back_stays_live() {
    let driver = Driver::new(World::new(20 * GIB, 4 * GIB));
    let card = card(&driver, Policy::desktop());
    let mut held = allocate(&card, &driver, GIB).unwrap();
    held.begin_return();
    held.abandon(None);
    let snapshot = card.budget();
    assert_eq!((snapshot.committed, snapshot.reserved), (Bytes(GIB), Bytes::ZERO));
    assert!(card.ledger().live()[0].abandoned);
}

#[test]
fn a_free_figure_that_fails_later_does_not_raise_the_budget() {
    struct Flaky(std::sync::atomic::AtomicBool);
    impl Readings for Flaky {
        fn read(&self) -> Reading {
            let first = !self.0.swap(true, std::sync::atomic::Ordering::Relaxed);
            Reading {
                total: Some(Bytes(20 * GIB)),
                used: Some(Bytes(2 * GIB)),
                hip_free: first.then_some(Bytes(3 * GIB)),
                ..Reading::default()
            }
        }
    }
    let card = Card::new(DeviceKey::new("test"), Policy::desktop(), Box::new(Flaky(false.into())));
    let budget = card.budget();
    assert_eq!(
        (budget.budget, budget.limit),
        (Bytes(3 * GIB - 64 * MIB), Limit::Driver)
    );
}

#[test]
fn a_figure_that_cannot_be_true_is_named_and_one_that_just_can_is_not() {
    let t = 8 * GIB;
    let reading = |used: u64, own: u64, free: u64| Reading {
        total: Some(Bytes(t)),
        used: Some(Bytes(used)),
        own: Some(Bytes(own)),
        hip_free: Some(Bytes(free)),
        ..Reading::default()
    };
    for (reading, warnings) in [
        (reading(t, t, t), vec![]),
        (reading(t + 1, 0, 0), vec![Warning::UsedAboveTotal]),
        (reading(t, t + 1, 0), vec![Warning::OwnAboveTotal]),
        (reading(0, 0, t + 1), vec![Warning::FreeAboveTotal]),
    ] {
        let card = Card::new(
            DeviceKey::new("test"),
            Policy::desktop(),
            Box::new(FixedReadings(reading)),
        );
        assert_eq!(card.budget().warnings, warnings, "{reading:?}");
    }
    // Less used than we hold.
    let driver = Driver::new(World::new(t, 0));
    let card = card(&driver, Policy::desktop());
    let _held = allocate(&card, &driver, GIB).unwrap();
    assert_eq!(card.budget().warnings, []);
    driver.with(|w| w.own -= 1);
    assert_eq!(card.budget().warnings, [Warning::UsedBelowOwn]);
}

#[test]
fn a_card_without_memory_is_one_that_cannot_be_read() {
    let reading = Reading {
        total: Some(Bytes::ZERO),
        used: Some(Bytes::ZERO),
        hip_free: Some(Bytes::gib(8)),
        ..Reading::default()
    };
    let card = Card::new(
        DeviceKey::new("test"),
        Policy::fixed(Bytes::gib(1)),
        Box::new(FixedReadings(reading)),
    );
    let snapshot = card.budget();
    assert_eq!((snapshot.total, snapshot.budget), (None, Bytes::gib(1)));
    assert_eq!(snapshot.warnings, [Warning::Unreadable]);
}

#[test]
fn every_limit_has_a_name_and_an_advice_of_its_own() {
    let limits = [
        Limit::Cap,
        Limit::Desktop,
        Limit::System,
        Limit::Driver,
        Limit::Total,
        Limit::Unreadable,
        Limit::UnifiedMemory,
        Limit::CacheShare,
        Limit::Growth,
        Limit::Peers,
        Limit::DriverRefused,
    ];
    let names: std::collections::BTreeSet<String> = limits.iter().map(Limit::to_string).collect();
    assert_eq!(names.len(), limits.len());
    assert!(!names.contains(""));
}

#[test]
fn a_card_is_called_too_small_only_if_it_is() {
    let refused = |total: Option<Bytes>, policy, bytes| {
        let reading = Reading {
            total,
            used: total.map(|_| Bytes::ZERO),
            ..Reading::default()
        };
        let card = Card::new(DeviceKey::new("test"), policy, Box::new(FixedReadings(reading)));
        let refusal = card.try_reserve(bytes, Class::Required, "x").unwrap_err();
        (refusal.limit, refusal.to_string())
    };
    let (limit, text) = refused(Some(Bytes::gib(8)), Policy::desktop(), Bytes(8 * GIB + 1));
    assert!(
        limit == Limit::Cap && text.contains("smaller than the request"),
        "{text}"
    );
    assert!(text.contains("limited by the policy's cap"), "{text}");
    // As large as the card, and a card of unknown size.
    for total in [Some(Bytes::gib(8)), None] {
        let (limit, text) = refused(total, Policy::fixed(Bytes::gib(1)), Bytes::gib(8));
        assert!(limit == Limit::Cap && text.contains("raise `Policy::cap`"), "{text}");
    }
}

#[test]
fn what_a_card_says_of_itself() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    let card = card(&driver, Policy::fixed(Bytes::gib(3)));
    assert_eq!(card.policy(), Policy::fixed(Bytes::gib(3)));
    assert!(format!("{card:?}").contains("\"test\""), "{card:?}");
    let reads = driver.with(|w| w.reads);
    assert_eq!(card.last_budget(), Bytes::gib(3));
    assert_eq!(driver.with(|w| w.reads), reads, "observers read nothing");
    let statistics = card.statistics();
    assert_eq!(statistics.readings, driver.with(|w| w.reads));
    assert!(!statistics.budget.unified_memory);
    // What happened is counted, and what did not is not printed.
    let refuse = |class| card.try_reserve(Bytes::gib(4), class, "x").map(drop).unwrap_err().limit;
    assert_eq!(
        [Class::Required, Class::Growth, Class::Cache].map(refuse),
        [Limit::Cap, Limit::Cap, Limit::CacheShare]
    );
    let statistics = card.statistics();
    assert_eq!(statistics.refused, [(Limit::Cap, 2), (Limit::CacheShare, 1)]);
    let text = statistics.to_string();
    assert!(text.contains("refused 2 times by the policy's cap"), "{text}");
    assert!(!text.contains("entered") && !text.contains(" 0 times:"), "{text}");
}

#[test]
fn figures_and_time_are_the_sources_whatever_it_is_wrapped_in() {
    let driver = Driver::new(World::new(20 * GIB, 2 * GIB));
    driver.with(|w| w.now = Duration::from_secs(7));
    let sources: [Box<dyn Readings>; 2] = [driver.boxed(), Box::new(Arc::new(driver.clone()))];
    for source in sources {
        assert_eq!((source.read(), source.now()), (driver.read(), Duration::from_secs(7)));
    }
    // The machine's clock goes on.
    let start = FixedReadings::default().now();
    std::thread::sleep(Duration::from_millis(2));
    assert!(FixedReadings::default().now() > start);
}
