//! Every order of dropping roots, clones and views frees exactly once, and never while queued work uses the memory.

use crate::fake::backend;
use rocmforge_runtime::*;

/// All orders of `n` things.
fn permutations(n: usize) -> Vec<Vec<usize>> {
    if n == 0 {
        return vec![vec![]];
    }
    let mut all = Vec::new();
    for shorter in permutations(n - 1) {
        for at in 0..n {
            let mut longer = shorter.clone();
            longer.insert(at, n - 1);
            all.push(longer);
        }
    }
    all
}

/// Each further object is a clone or a view of some earlier one: every family of up to `n` objects.
fn families(n: usize) -> Vec<Vec<(usize, bool)>> {
    let mut all = vec![vec![]];
    for index in 1..n {
        all = all
            .into_iter()
            .flat_map(|family| {
                (0..index).flat_map(move |parent| {
                    let family = family.clone();
                    [false, true].map(|view| {
                        let mut longer = family.clone();
                        longer.push((parent, view));
                        longer
                    })
                })
            })
            .collect();
    }
    all
}

#[test]
fn every_drop_order_frees_once() {
    let (fake, backend) = backend();
    let stream = backend.stream();
    let epoch = backend.card().ledger().epoch();
    let mut orders = 0u64;
    for n in 1..=5 {
        for family in families(n) {
            for order in permutations(n) {
                // Half of the time the work is still queued when the first object goes.
                let queued = orders.is_multiple_of(2);
                let before = fake.count("hipFree");
                let root = HipBuffer::<u8>::zeroed(stream, Elems(64), "root").unwrap();
                let mut objects = vec![Some(root)];
                for &(parent, view) in &family {
                    let parent = objects[parent].as_ref().unwrap();
                    let child = if view {
                        parent.view(0..parent.len() - 1).unwrap()
                    } else {
                        parent.clone()
                    };
                    objects.push(Some(child));
                }
                if !queued {
                    stream.synchronize().unwrap();
                }
                let (last, others) = order.split_last().unwrap();
                for &index in others {
                    objects[index] = None;
                    assert_eq!(
                        fake.count("hipFree"),
                        before,
                        "freed while an object of it lives: {family:?} {order:?}"
                    );
                }
                objects[*last] = None;
                stream.synchronize().unwrap();
                assert_eq!(fake.count("hipFree"), before + 1, "{family:?} {order:?}");
                orders += 1;
            }
        }
    }
    // 1 + 2*1*2! + 4*2*3! + 8*6*4! + 16*24*5! of them.
    assert_eq!(orders, 1 + 4 + 48 + 1152 + 46080);
    assert!(epoch.leaks().is_clean(), "{}", epoch.leaks());
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
