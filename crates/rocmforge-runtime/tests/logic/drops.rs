//! Every order of dropping roots, clones and views frees exactly once, and never while queued work uses the memory.

use super::fake::backend;
use crate::common::drop_orders;
use rocmforge_runtime::*;

#[test]
fn every_drop_order_frees_once() {
    let (fake, backend) = backend();
    drop_orders::each_frees_once(&backend, || fake.count("hipFree"));
    assert_eq!(fake.violations(), [""; 0]);
}

#[test]
fn a_buffer_outlives_its_backend() {
    let (fake, backend) = backend();
    let buffer = HipBuffer::from_slice(backend.stream(), &[1u32, 2, 3], "survivor").unwrap();
    let stream = backend.create_stream("other").unwrap();
    drop(backend);
    assert_eq!(buffer.to_vec(&stream).unwrap(), [1, 2, 3]);
    drop(stream);
    assert_eq!(fake.live_memory(), 1);
    drop(buffer);
    assert_eq!((fake.live_memory(), fake.live_pinned(), fake.live_handles()), (0, 0, 0));
    assert_eq!(fake.violations(), [""; 0]);
}

#[test]
fn memory_dropped_in_use_waits_for_its_uses() {
    let (fake, backend) = backend();
    let epoch = backend.card().ledger().epoch();
    let buffer = HipBuffer::<u32>::zeroed(backend.stream(), Elems(64), "short-lived").unwrap();
    drop(buffer);
    assert_eq!(fake.count("hipFree"), 0, "the memset is still queued");
    // The runtime holds it, the program does not: no leak, but its bytes still count.
    assert!(epoch.leaks().is_clean());
    assert_eq!(backend.card().ledger().live_bytes(), Bytes(256));
    backend.synchronize().unwrap();
    assert_eq!(fake.count("hipFree"), 1);
    assert_eq!(backend.card().ledger().live_bytes(), Bytes(0));
    assert_eq!(fake.violations(), [""; 0]);
}

#[test]
fn what_was_dropped_makes_room_for_what_comes() {
    let (fake, backend) = backend();
    let half = backend.safe_alloc_size().unwrap() / 2 + 1;
    for _ in 0..4 {
        // Two of them do not fit; the first is dropped with its memset still queued.
        drop(backend.allocate_buffer_safe(half).unwrap());
    }
    drop(backend);
    assert_eq!(fake.count("hipFree"), 4);
    assert_eq!(fake.violations(), [""; 0]);
}

#[test]
fn the_ledger_names_a_leak() {
    let (_fake, backend) = backend();
    let epoch = backend.card().ledger().epoch();
    let kept = HipBuffer::<u8>::zeroed(backend.stream(), Elems(1), "one byte").unwrap();
    let line = line!() - 1;
    let report = epoch.leaks();
    assert_eq!(report.bytes, Bytes(1));
    assert_eq!(
        (report.entries[0].site.file, report.entries[0].site.line),
        (file!(), line)
    );
    assert!(report.to_string().contains("one byte"), "{report}");
    drop(kept);
    backend.synchronize().unwrap();
    assert!(epoch.leaks().is_clean());
}
