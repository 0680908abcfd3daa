//! The budget of the machine's own memory.

use std::sync::{Arc, Mutex};

use rocmforge_machine::sysfs::Sysfs;
use rocmforge_memory::{Bytes, HostBudget, HostKind, HostLimit, HostReading, HostReadings};

const GIB: u64 = 1 << 30;

/// A machine of 32 GiB of which others use some.
#[derive(Clone)]
struct Machine(Arc<Mutex<HostReading>>);

impl Machine {
    fn new(available: u64) -> Self {
        Self(Arc::new(Mutex::new(HostReading {
            total: Some(Bytes::gib(32)),
            available: Some(Bytes(available)),
        })))
    }

    fn set(&self, reading: HostReading) {
        *self.0.lock().unwrap() = reading;
    }

    /// We take memory in use, or give it back.
    fn uses(&self, bytes: i64) {
        let mut reading = self.0.lock().unwrap();
        reading.available = reading.available.map(|b| Bytes(b.0.strict_sub_signed(bytes)));
    }
}

impl HostReadings for Machine {
    fn read(&self) -> HostReading {
        *self.0.lock().unwrap()
    }
}

#[test]
fn three_eighths_may_be_pinned_and_fifteen_sixteenths_used() {
    let machine = Machine::new(32 * GIB);
    let host = HostBudget::new(machine.clone());
    assert_eq!(
        (host.room(HostKind::Pinned), host.room(HostKind::Pageable)),
        (Bytes::gib(12), Bytes::gib(30))
    );
    let pinned = host.try_reserve(Bytes::gib(12), HostKind::Pinned, "pages").unwrap();
    let refused = host.try_reserve(Bytes(1), HostKind::Pinned, "more").unwrap_err();
    assert_eq!(
        (refused.room, refused.limit, refused.held),
        (Bytes::ZERO, HostLimit::Pinned, Bytes::gib(12))
    );
    // Reserved and not yet there: what is available still has it.
    assert_eq!(host.room(HostKind::Pageable), Bytes::gib(18));
    machine.uses(12 << 30);
    let pinned = pinned.commit();
    assert_eq!(pinned.bytes(), Bytes::gib(12));
    assert_eq!(host.room(HostKind::Pageable), Bytes::gib(18), "as before");
    let spilled = host.try_reserve(Bytes::gib(18), HostKind::Pageable, "spilled").unwrap();
    machine.uses(18 << 30);
    let spilled = spilled.commit();
    let refused = host.try_reserve(Bytes(1), HostKind::Pageable, "more").unwrap_err();
    assert!(matches!(refused.limit, HostLimit::Total | HostLimit::Available));
    assert_eq!(
        (host.held(HostKind::Pinned), host.held(HostKind::Pageable)),
        (Bytes::gib(12), Bytes::gib(18))
    );
    machine.uses(-(30 << 30));
    drop((pinned, spilled));
    assert_eq!(host.room(HostKind::Pinned), Bytes::gib(12));
    assert!(host.try_reserve(Bytes::ZERO, HostKind::Pinned, "nothing").is_ok());
}

#[test]
fn what_other_programs_use_counts_and_a_sixteenth_stays_free() {
    let machine = Machine::new(7 * GIB);
    let host = HostBudget::new(machine.clone());
    assert_eq!(host.room(HostKind::Pinned), Bytes::gib(5));
    let line = line!() + 1;
    let refused = host.try_reserve(Bytes::gib(6), HostKind::Pinned, "kv");
    let refused = refused.unwrap_err();
    assert_eq!(
        (refused.limit, refused.requested),
        (HostLimit::Available, Bytes::gib(6))
    );
    assert_eq!((refused.site.file, refused.site.line), (file!(), line));
    let text = refused.to_string();
    for part in [
        "`kv`",
        "Pinned",
        "6.0 GiB",
        "5.0 GiB",
        "7.0 GiB",
        "32.0 GiB",
        "host.rs",
        "limited by what other programs leave",
    ] {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
    // Two that are reserved and not there yet cannot both have the same memory.
    let first = host.try_reserve(Bytes::gib(3), HostKind::Pageable, "a").unwrap();
    assert!(host.try_reserve(Bytes::gib(3), HostKind::Pageable, "b").is_err());
    drop(first);
    assert!(host.try_reserve(Bytes::gib(3), HostKind::Pageable, "b").is_ok());
    machine.uses(6 << 30);
    assert_eq!(host.room(HostKind::Pinned), Bytes::ZERO);
}

#[test]
fn figures_that_are_missing_or_impossible() {
    let machine = Machine::new(0);
    let host = HostBudget::new(machine.clone());
    for total in [None, Some(Bytes::ZERO)] {
        machine.set(HostReading { total, available: None });
        assert_eq!(host.room(HostKind::Pageable), Bytes::gib(1));
        let held = host.try_reserve(Bytes::gib(1), HostKind::Pageable, "all").unwrap();
        let refused = host.try_reserve(Bytes(1), HostKind::Pinned, "more").unwrap_err();
        assert_eq!((refused.limit, refused.total), (HostLimit::Unreadable, Bytes::ZERO));
        drop(held);
    }
    machine.set(HostReading {
        total: Some(Bytes::gib(32)),
        available: Some(Bytes(u64::MAX)),
    });
    assert_eq!(host.room(HostKind::Pageable), Bytes::gib(30));
    machine.set(HostReading {
        total: Some(Bytes(u64::MAX)),
        available: None,
    });
    assert!(host.try_reserve(Bytes(u64::MAX), HostKind::Pageable, "x").is_err());
    assert!(host.room(HostKind::Pinned) < host.room(HostKind::Pageable));
}

#[test]
fn a_reading_stands_for_a_machine_that_does_not_change() {
    let host = HostBudget::new(HostReading {
        total: Some(Bytes::gib(32)),
        available: Some(Bytes::gib(7)),
    });
    assert_eq!(host.room(HostKind::Pageable), Bytes::gib(5));
    let _held = host.try_reserve(Bytes(17), HostKind::Pinned, "pages").unwrap().commit();
    assert!(format!("{host:?}").contains("pinned: 17"), "{host:?}");
}

#[test]
fn threads_never_have_more_than_there_is() {
    let host = HostBudget::new(Machine::new(32 * GIB));
    let held: Vec<_> = std::thread::scope(|scope| {
        let worker = |index: u64| {
            let host = &host;
            scope.spawn(move || {
                let mut held = Vec::new();
                while let Ok(reservation) = host.try_reserve(Bytes((1 + index) << 24), HostKind::Pinned, "x") {
                    held.push(reservation.commit());
                }
                held
            })
        };
        let workers: Vec<_> = (0..8).map(worker).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let granted: u64 = held.iter().map(|held| held.bytes().0).sum();
    assert_eq!(granted, 12 * GIB, "the smallest piece fills what is left");
    assert_eq!(host.held(HostKind::Pinned), Bytes(granted));
}

#[test]
fn the_machine_says_what_it_has() {
    let tree = tempfile::tempdir().unwrap();
    let read = |text: &str| {
        std::fs::create_dir_all(tree.path().join("proc")).unwrap();
        std::fs::write(tree.path().join("proc/meminfo"), text).unwrap();
        Sysfs::at(tree.path()).read()
    };
    let reading = read("MemTotal:       32768 kB\nMemFree:  1 kB\nMemAvailable:   16384 kB\n");
    assert_eq!(
        (reading.total, reading.available),
        (Some(Bytes::mib(32)), Some(Bytes::mib(16)))
    );
    for broken in [
        "",
        "MemTotal: many kB\n",
        "MemTotal: 5\n",
        "MemTotal: 99999999999999999999 kB",
        "MemTotal: 18446744073709551615 kB",
    ] {
        assert_eq!(read(broken), HostReading::default(), "{broken:?}");
    }
    assert_eq!(Sysfs::at("/nowhere/at/all").memory(), HostReading::default());
    let here = HostBudget::of_this_machine();
    assert!(here.room(HostKind::Pageable) >= here.room(HostKind::Pinned));
    assert!(Arc::ptr_eq(&here, &HostBudget::of_this_machine()));
}
