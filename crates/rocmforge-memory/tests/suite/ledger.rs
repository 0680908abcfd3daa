//! The ledger is exact: one byte and one handle are found, with who made them.

use std::sync::Arc;

use rocmforge_memory::{Bytes, Card, Class, DeviceKey, EntryKind, FixedReadings, HandleKind, Policy, Reading, Site};

fn card() -> Arc<Card> {
    let reading = Reading {
        total: Some(Bytes::gib(20)),
        used: Some(Bytes::gib(2)),
        ..Reading::default()
    };
    Card::new(
        DeviceKey::new("test"),
        Policy::desktop(),
        Box::new(FixedReadings(reading)),
    )
}

#[test]
fn a_leak_of_one_byte_is_found_with_its_label_and_site() {
    let card = card();
    let epoch = card.ledger().epoch();
    let line = line!() + 1;
    let reservation = card.try_reserve(Bytes(1), Class::Required, "one byte");
    let leaked = reservation.unwrap().commit();
    let report = epoch.leaks();
    assert!(!report.is_clean());
    assert_eq!((report.bytes, report.handles, report.entries.len()), (Bytes(1), 0, 1));
    let text = report.to_string();
    assert!(text.starts_with("leaked 1 B in 1 buffers, and 0 handles\n"), "{text}");
    assert!(
        text.contains("`one byte`") && text.contains(&format!("{}:{line}:", file!())),
        "{text}"
    );
    drop(leaked);
    assert!(epoch.leaks().is_clean());
    assert_eq!(epoch.leaks().to_string(), "no leak");
}

#[test]
fn an_empty_buffer_and_a_forgotten_reservation_are_leaks_too() {
    let card = card();
    let epoch = card.ledger().epoch();
    let empty = card
        .try_reserve(Bytes::ZERO, Class::Required, "empty")
        .unwrap()
        .commit();
    let reservation = card.try_reserve(Bytes(7), Class::Required, "unused").unwrap();
    let report = epoch.leaks();
    assert_eq!((report.bytes, report.entries.len()), (Bytes(7), 2));
    assert_eq!(report.entries[1].kind, EntryKind::Reserved(Bytes(7)));
    assert!(report.to_string().contains("reservation of 7 B `unused`"), "{report}");
    drop((empty, reservation));
    assert!(epoch.leaks().is_clean());
}

#[test]
fn every_kind_of_handle_is_counted() {
    let card = card();
    let epoch = card.ledger().epoch();
    let kinds = [
        HandleKind::PinnedHost(Bytes(4096)),
        HandleKind::Stream,
        HandleKind::Event,
        HandleKind::Module,
        HandleKind::Graph,
    ];
    let tokens: Vec<_> = kinds
        .iter()
        .map(|&kind| card.ledger().track(kind, "handle", Site::caller()))
        .collect();
    let report = epoch.leaks();
    assert_eq!(
        (report.handles, report.pinned, report.bytes),
        (5, Bytes(4096), Bytes::ZERO)
    );
    let found: Vec<_> = report.entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(found, kinds.map(EntryKind::Handle));
    let ids: Vec<_> = report.entries.iter().map(|entry| entry.id).collect();
    assert_eq!(tokens.iter().map(|token| token.id()).collect::<Vec<_>>(), ids);
    let text = report.to_string();
    for part in [
        "leaked 0 B in 0 buffers, and 5 handles with 4.0 KiB (4096 B) of pinned host memory",
        "pinned host memory of 4.0 KiB (4096 B) `handle`",
        "stream `handle`",
        "event `handle`",
        "module `handle`",
        "graph `handle`",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    drop(tokens);
    assert!(epoch.leaks().is_clean());
}

#[test]
fn an_epoch_sees_only_what_was_made_in_it() {
    let card = card();
    let old = card.try_reserve(Bytes(10), Class::Required, "old").unwrap().commit();
    let outer = card.ledger().epoch();
    let middle = card.try_reserve(Bytes(20), Class::Required, "middle").unwrap().commit();
    let inner = card.ledger().epoch();
    let new = card.try_reserve(Bytes(30), Class::Required, "new").unwrap().commit();
    assert_eq!((outer.leaks().bytes, inner.leaks().bytes), (Bytes(50), Bytes(30)));
    // Freeing something older than the epoch must not hide a leak of it, as a difference of two levels would.
    drop(old);
    assert_eq!(inner.leaks().bytes, Bytes(30));
    drop((middle, new));
    assert!(outer.leaks().is_clean() && inner.leaks().is_clean());
}

#[test]
fn what_lives_on_by_design_is_no_leak_but_still_counts() {
    let card = card();
    let epoch = card.ledger().epoch();
    let cache = card
        .try_reserve(Bytes::mib(1), Class::Cache, "staging")
        .unwrap()
        .commit();
    cache.retain();
    let stream = card.ledger().track(HandleKind::Stream, "default", Site::caller());
    stream.retain();
    assert!(epoch.leaks().is_clean());
    assert_eq!(card.ledger().live_bytes(), Bytes::mib(1));
    assert_eq!(card.ledger().live().len(), 2);
    drop((cache, stream));
    assert!(card.ledger().live().is_empty());
}

#[test]
fn what_was_meant_to_live_on_is_a_leak_of_the_epoch_in_which_it_is_abandoned() {
    let card = card();
    let made_before = card.ledger().track(HandleKind::Stream, "default", Site::caller());
    made_before.retain();
    let epoch = card.ledger().epoch();
    let cache = card
        .try_reserve(Bytes::mib(1), Class::Cache, "staging")
        .unwrap()
        .commit();
    cache.retain();
    assert!(epoch.leaks().is_clean());
    cache.abandon(None);
    made_before.abandon(None);
    let after = card.ledger().epoch();
    let report = epoch.leaks();
    assert_eq!((report.bytes, report.handles), (Bytes::mib(1), 1), "{report}");
    assert!(report.entries.iter().all(|entry| entry.abandoned), "{report}");
    assert!(
        after.leaks().is_clean(),
        "no leak of what came later: {}",
        after.leaks()
    );
}

#[test]
fn what_is_abandoned_stays_in_the_ledger() {
    let card = card();
    let epoch = card.ledger().epoch();
    card.try_reserve(Bytes(64), Class::Required, "lost")
        .unwrap()
        .commit()
        .abandon(None);
    card.ledger()
        .track(HandleKind::Event, "lost too", Site::caller())
        .abandon(None);
    let report = epoch.leaks();
    assert_eq!((report.bytes, report.handles), (Bytes(64), 1));
    assert!(report.entries.iter().all(|entry| entry.abandoned));
    assert!(report.to_string().contains("(abandoned to the driver)"));
    assert!(report.to_string().contains("buffer of 64 B `lost`"), "{report}");
    // With the reason that their owners gave.
    let buffer = card.try_reserve(Bytes(1), Class::Required, "buffer").unwrap().commit();
    let event = card.ledger().track(HandleKind::Event, "event", Site::caller());
    let since = card.ledger().epoch();
    buffer.abandon(Some("no answer"));
    event.abandon(Some("device lost"));
    let text = since.leaks().to_string();
    for reason in [
        "(abandoned to the driver: no answer)",
        "(abandoned to the driver: device lost)",
    ] {
        assert!(text.contains(reason), "{reason:?} is not in: {text}");
    }
    assert_eq!(card.budget().own, Bytes(65));
}

#[test]
fn the_peak_stays_when_the_memory_is_gone() {
    let card = card();
    let one = card.try_reserve(Bytes(100), Class::Required, "one").unwrap().commit();
    let two = card.try_reserve(Bytes(50), Class::Required, "two").unwrap().commit();
    drop((one, two));
    drop(card.try_reserve(Bytes(1000), Class::Required, "only reserved"));
    assert_eq!(
        (card.budget().peak, card.ledger().live_bytes()),
        (Bytes(150), Bytes::ZERO)
    );
    assert_eq!(card.ledger().peak(), Bytes(150));
}

#[test]
fn a_panic_between_reserve_and_commit_gives_everything_back() {
    let card = card();
    let epoch = card.ledger().epoch();
    let held = card.clone();
    let outcome = std::thread::spawn(move || {
        let _reservation = held.try_reserve(Bytes::mib(5), Class::Required, "doomed");
        panic!("on purpose");
    })
    .join();
    assert!(outcome.is_err());
    assert!(epoch.leaks().is_clean());
    assert_eq!(card.budget().reserved, Bytes::ZERO);
    assert!(card.try_reserve(Bytes(1), Class::Required, "next").is_ok());
}

#[test]
fn what_is_printed_for_debugging_names_the_thing() {
    let card = card();
    let reservation = card.try_reserve(Bytes(7), Class::Required, "reserved").unwrap();
    let buffer = card.try_reserve(Bytes(9), Class::Required, "buffer").unwrap().commit();
    let event = card.ledger().track(HandleKind::Event, "event", Site::caller());
    let (epoch, subscription) = (card.ledger().epoch(), card.subscribe(|_| ()));
    for (text, parts) in [
        (format!("{subscription:?}"), ["Subscription", "id"]),
        (format!("{reservation:?}"), ["Reservation", "7"]),
        (format!("{buffer:?}"), ["Allocation", "9"]),
        (format!("{event:?}"), ["HandleToken", "Event"]),
        (format!("{epoch:?}"), ["Epoch", "first"]),
        (format!("{:?}", card.ledger()), ["\"reserved\"", "\"event\""]),
    ] {
        assert!(
            parts.iter().all(|part| text.contains(part)),
            "{parts:?} are not in: {text}"
        );
    }
}
