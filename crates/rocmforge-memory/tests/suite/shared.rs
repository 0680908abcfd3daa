//! The budget of GPUs that share the system's memory, by its definition in docs/memory.md.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{Driver, GIB, MIB, World, apu};
use proptest::prelude::*;
use rocmforge_memory::{
    Allocation, Bytes, Card, Class, DeviceKey, HOST_HEADROOM, Limit, Policy, Pressure, SharedMemory, UnifiedMemory,
    Warning,
};

fn card(driver: &Driver, policy: Policy) -> Arc<Card> {
    Card::new(DeviceKey::new("apu"), policy, driver.boxed())
}

/// An APU of which others hold `others` of the system's memory, a display connected.
fn machine(memory: u64, others: u64) -> Driver {
    Driver::new(World { others, ..apu(memory) })
}

/// What is available to the system, in truth.
fn available(driver: &Driver) -> u64 {
    driver.with(|w| {
        let system = w.shared.unwrap().system.available.unwrap();
        system.0.saturating_sub(w.others + w.own)
    })
}

fn headroom(driver: &Driver) -> u64 {
    let memory = driver.with(|w| w.shared.unwrap().system.total.unwrap().0);
    HOST_HEADROOM.0.max(memory / 16)
}

fn allocate(card: &Arc<Card>, driver: &Driver, bytes: u64) -> Option<Allocation> {
    let reservation = card.try_reserve(Bytes(bytes), Class::Required, "test").ok()?;
    driver.with(|w| w.own += bytes);
    Some(reservation.commit())
}

#[test]
fn a_strix_halo_of_128_gib_gets_most_of_what_may_be_mapped() {
    // Half of 127.5 GiB may be mapped; 110 GiB are available.
    let driver = machine(128 * GIB, 127 * GIB / 2 - 46 * GIB);
    let limit = 255 * GIB / 4;
    let policy = Policy::headless();
    let all = card(&driver, policy).budget();
    assert_eq!(all.headroom.0, 255 * GIB / 32);
    assert_eq!((all.budget.0, all.limit), (limit - 255 * GIB / 32, Limit::System));
    assert!(all.warnings.contains(&Warning::UnifiedMemory) && all.unified_memory);
    // By default 70 % of it: a model of 40 GiB fits.
    let default = card(&driver, Policy::default());
    assert_eq!(default.budget().budget, Bytes(limit).percent(70));
    assert!(default.try_reserve(Bytes::gib(40), Class::Required, "weights").is_ok());
}

#[test]
fn an_apu_of_16_gib_gets_something_useful_and_leaves_the_desktop_2_gib() {
    // The desktop and a browser hold 5 GiB.
    let driver = machine(16 * GIB, 5 * GIB);
    let default = card(&driver, Policy::default());
    let budget = default.budget();
    assert_eq!(budget.headroom, Bytes::gib(2));
    // 7.75 GiB may be mapped, and 70 % of it is less than what the headroom leaves.
    assert_eq!(
        (budget.budget, budget.limit),
        (Bytes(31 * GIB / 4).percent(70), Limit::Cap)
    );
    assert!(
        budget.budget > Bytes::gib(5),
        "a model of 7 billion parameters in q4: {budget:?}"
    );
    // With 11 GiB of others the system's memory is what is scarce: 4.5 GiB are available.
    driver.with(|w| w.others = 11 * GIB);
    let budget = default.budget();
    assert_eq!((budget.budget.0, budget.limit), (5 * GIB / 2, Limit::System));
    let refusal = default.try_reserve(Bytes::gib(3), Class::Required, "x").unwrap_err();
    assert!(refusal.to_string().contains("Close programs"), "{refusal}");
    // And with 14 GiB nothing is left.
    driver.with(|w| w.others = 14 * GIB);
    assert_eq!(default.budget().budget, Bytes::ZERO);
}

#[test]
fn a_large_carve_out_is_the_gpus_own_and_counts_with_the_rest() {
    // 96 of 128 GiB carved out by the firmware; the driver takes from there.
    let mut world = apu(32 * GIB);
    let shared = world.shared.unwrap();
    world.shared = Some(SharedMemory {
        carve_out: Some(Bytes::gib(96)),
        carve_out_used: Some(Bytes::gib(1)),
        ..shared
    });
    world.others = 8 * GIB;
    let budget = card(&Driver::new(world), Policy::headless()).budget();
    let total = 96 * GIB + 63 * GIB / 4;
    assert_eq!(budget.total, Some(Bytes(total)));
    assert_eq!(budget.budget.0, total - GIB - 2 * GIB);
}

#[test]
fn the_budget_falls_as_the_systems_memory_fills_and_what_is_held_is_given_back() {
    let driver = machine(16 * GIB, 5 * GIB);
    let card = card(&driver, Policy::default());
    let held = allocate(&card, &driver, 5 * GIB).unwrap();
    assert_eq!(card.look(), Pressure::Yellow);
    let mut before = card.budget().budget;
    for gib in 6..=9 {
        driver.with(|w| (w.now, w.others) = (w.now + Duration::from_secs(1), gib * GIB));
        let budget = card.budget().budget;
        assert!(budget <= before && before.0 - budget.0 <= GIB, "{before} -> {budget}");
        before = budget;
    }
    // 1.5 GiB are available, less than the headroom: half a gibibyte is to be given back.
    assert_eq!(card.look(), Pressure::Red);
    assert_eq!(before.0, 9 * GIB / 2);
    // With less than half of the headroom left nothing is launched.
    driver.with(|w| (w.now, w.others) = (w.now + Duration::from_secs(1), 10 * GIB));
    assert_eq!(card.look(), Pressure::Black);
    assert!(card.check_launch().is_err());
    drop(held);
    driver.with(|w| w.own = 0);
    assert_eq!(card.look(), Pressure::Green);
}

#[test]
fn what_the_system_keeps_is_no_policys_to_take() {
    for policy in [
        Policy::headless(),
        Policy::unlimited(),
        Policy::fixed(Bytes::gib(64)),
        Policy::tests(),
    ] {
        let driver = machine(16 * GIB, 9 * GIB);
        driver.with(|w| w.displays = 0);
        let card = card(&driver, policy);
        let budget = card.budget();
        assert!(budget.budget.0 <= 13 * GIB / 2 - 2 * GIB, "{policy:?}: {budget:?}");
        assert_eq!(budget.headroom, Bytes::gib(2), "{policy:?}");
    }
    let driver = machine(16 * GIB, 5 * GIB);
    let refuse = Policy {
        unified_memory: UnifiedMemory::Refuse,
        ..Policy::default()
    };
    assert_eq!(card(&driver, refuse).budget().limit, Limit::UnifiedMemory);
    // Without a figure nothing is guessed, whatever the user's number.
    type Forget = fn(&mut SharedMemory);
    let forgets: [Forget; 4] = [
        |s| s.system.available = None,
        |s| s.system.total = None,
        |s| s.gtt = None,
        |s| s.gtt_used = None,
    ];
    for forget in forgets {
        let driver = machine(16 * GIB, 5 * GIB);
        driver.with(|w| forget(w.shared.as_mut().unwrap()));
        let budget = card(&driver, Policy::fixed(Bytes::gib(1))).budget();
        assert_eq!((budget.budget, budget.limit), (Bytes::ZERO, Limit::Unreadable));
    }
}

fn granules() -> impl Strategy<Value = u64> {
    (1_u64..1024).prop_map(|n| n * 2 * MIB)
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::desktop()),
        Just(Policy::headless()),
        Just(Policy::unlimited()),
        granules().prop_map(|bytes| Policy::fixed(Bytes(bytes * 8)))
    ]
}

fn machines() -> impl Strategy<Value = World> {
    let memory = prop_oneof![Just(16_u64), Just(128), 4_u64..192];
    (memory, 0_u64..100, any::<bool>()).prop_map(|(gib, share, shows_free)| World {
        others: gib * GIB / 100 * share,
        shows_free,
        displays: 0,
        ..apu(gib * GIB)
    })
}

proptest! {
    #[test]
    fn no_grant_takes_from_the_systems_headroom(
        world in machines(), policy in policies(), sizes in prop::collection::vec(granules(), 1..40),
    ) {
        let driver = Driver::new(world);
        let card = card(&driver, policy);
        let before = card.budget().budget;
        let limit = driver.with(|w| w.shared.unwrap().gtt.unwrap().0);
        let mut held = Vec::new();
        for bytes in sizes {
            let Some(allocation) = allocate(&card, &driver, bytes) else { continue };
            held.push(allocation);
            prop_assert!(available(&driver) >= headroom(&driver), "{} < {}", available(&driver), headroom(&driver));
            prop_assert!(driver.with(|w| w.own) <= limit.min(before.0));
            prop_assert_eq!(card.budget().budget, before);
        }
    }

    #[test]
    fn a_rise_of_others_costs_at_most_itself_and_is_never_passed_over(
        world in machines(), policy in policies(), rises in prop::collection::vec(granules(), 1..12),
    ) {
        let driver = Driver::new(world);
        let card = card(&driver, policy);
        let mut before = card.budget().budget;
        for rise in rises {
            driver.with(|w| w.others += rise);
            let budget = card.budget().budget;
            prop_assert!(budget <= before && before.0 - budget.0 <= rise);
            prop_assert!(budget.0 <= available(&driver).saturating_sub(headroom(&driver)), "nothing is held");
            before = budget;
        }
    }
}
