//! Memory and handles are given back once, when their owner and all work that uses them are done.

use super::rig::backend;
use rocmforge_runtime::*;

#[test]
fn a_buffer_outlives_its_backend() {
    let (rig, backend) = backend();
    let buffer = HipBuffer::from_slice(backend.stream(), &[1u32, 2, 3], "survivor").unwrap();
    let stream = backend.create_stream("other").unwrap();
    drop(backend);
    assert_eq!(buffer.to_vec(&stream).unwrap(), [1, 2, 3]);
    drop(stream);
    assert_eq!(rig.live_memory(), 1);
    drop(buffer);
    assert_eq!(rig.sim.leaks(), []);
    assert_eq!(rig.violations(), [""; 0]);
}

#[test]
fn memory_dropped_in_use_waits_for_its_uses() {
    let (rig, backend) = backend();
    let epoch = backend.card().ledger().epoch();
    let buffer = HipBuffer::<u32>::zeroed(backend.stream(), Elems(64), "short-lived").unwrap();
    drop(buffer);
    assert_eq!(rig.count("hipFree"), 0, "the memset is still queued");
    // The runtime holds it, the program does not: no leak, but its bytes still count.
    assert!(epoch.leaks().is_clean());
    assert_eq!(backend.card().ledger().live_bytes(), Bytes(256));
    backend.synchronize().unwrap();
    assert_eq!(rig.count("hipFree"), 1);
    assert_eq!(backend.card().ledger().live_bytes(), Bytes(0));
    assert_eq!(rig.violations(), [""; 0]);
}

#[test]
fn what_was_dropped_makes_room_for_what_comes() {
    let (rig, backend) = backend();
    let half = backend.safe_alloc_size().unwrap() / 2 + 1;
    for _ in 0..4 {
        // Two of them do not fit; the first is dropped with its memset still queued.
        drop(backend.allocate_buffer_safe(half).unwrap());
    }
    drop(backend);
    assert_eq!(rig.count("hipFree"), 4);
    assert_eq!(rig.violations(), [""; 0]);
}

#[test]
fn the_ledger_names_a_leak() {
    let (_rig, backend) = backend();
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
