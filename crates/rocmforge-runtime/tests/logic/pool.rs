//! Calls of the driver that the pool makes, and when.

use super::rig::Rig;
use rocmforge_hip_sys::*;
use rocmforge_runtime::*;
use rocmforge_sim::{FaultPlan, When};
use std::sync::Arc;

const MIB: usize = 1 << 20;

fn pooled() -> (Rig, Arc<HipBackend>) {
    let rig = Rig::with(|_| ());
    let backend = rig
        .open_with(rig.provider(), PoolOptions::ON)
        .expect("the simulated card opens");
    (rig, backend)
}

fn buffer(stream: &HipStream, bytes: usize) -> HipResult<HipBuffer<u8>> {
    // SAFETY: nothing reads it.
    unsafe { HipBuffer::uninit(stream, Elems(bytes), "buffer") }
}

#[test]
fn a_hit_makes_no_hip_call() {
    let (rig, backend) = pooled();
    let stream = backend.stream();
    drop(buffer(stream, 5000).unwrap());
    let calls = rig.calls();
    for bytes in [5000, 8000, 7500] {
        drop(buffer(stream, bytes).unwrap());
    }
    assert_eq!(rig.calls(), calls);
    let figures = backend.memory_statistics();
    assert_eq!((figures.pool.hits, figures.pool.steals, figures.pool.misses), (3, 0, 1));
    assert_eq!((figures.driver.allocations, figures.driver.live), (1, Bytes(8192)));
    drop(backend);
    assert_eq!((rig.live_memory(), rig.violations()), (0, vec![]));
}

#[test]
fn memory_in_use_is_reused_at_once_and_waited_for_on_other_streams_only() {
    let (rig, backend) = pooled();
    let [one, two] = [0, 1].map(|_| backend.create_stream("stream").unwrap());
    // Dropped with its work queued, and reused on the same stream: no event.
    for _ in 0..3 {
        drop(HipBuffer::<u32>::zeroed(&one, Elems(1000), "short").unwrap());
    }
    assert_eq!((rig.count("hipMalloc"), rig.count("hipFree")), (1, 0));
    assert_eq!(rig.count("hipEventRecord"), 0);
    // On another stream: one event, no wait of the host.
    let queries = rig.count("hipStreamQuery");
    let stolen = HipBuffer::<u32>::zeroed(&two, Elems(1000), "stolen").unwrap();
    assert_eq!((rig.count("hipEventRecord"), rig.count("hipStreamWaitEvent")), (1, 1));
    assert_eq!(rig.count("hipStreamQuery"), queries);
    assert_eq!(backend.memory_statistics().pool.steals, 1);
    // Done, it is anybody's.
    drop(stolen);
    two.synchronize().unwrap();
    drop(HipBuffer::<u32>::zeroed(&one, Elems(1000), "anybody's").unwrap());
    assert_eq!(rig.count("hipEventRecord"), 1);
    assert_eq!(rig.count("hipMalloc"), 1);
    drop((one, two, backend));
    assert_eq!((rig.live_memory(), rig.violations()), (0, vec![]));
}

#[test]
fn idle_memory_is_given_back_before_anything_is_refused() {
    let (rig, backend) = pooled();
    let stream = backend.stream();
    let all = backend.safe_alloc_size().unwrap();
    // Idle and done, idle and in use, in sizes that do not serve the request.
    let done = [all / 4, all / 5, all / 7].map(|bytes| {
        let held = buffer(stream, bytes).unwrap();
        held.clear(stream).unwrap();
        held
    });
    drop(done);
    backend.synchronize().unwrap();
    let held = buffer(stream, all / 9).unwrap();
    held.clear(stream).unwrap();
    drop(held);
    let figures = backend.memory_statistics().pool;
    assert_eq!((figures.idle_blocks, figures.in_use_blocks), (4, 0));
    let everything = buffer(stream, all).unwrap();
    assert_eq!(rig.live_memory(), 1);
    assert_eq!(backend.memory_statistics().pool.idle, Bytes::ZERO);
    let error = buffer(stream, 1).unwrap_err();
    assert!(matches!(error, HipError::OutOfBudget(_)), "{error}");
    drop((everything, backend));
    assert_eq!((rig.live_memory(), rig.violations()), (0, vec![]));
}

#[test]
fn the_drivers_refusal_gives_idle_memory_back_and_is_returned_if_that_is_not_enough() {
    let (rig, backend) = pooled();
    let stream = backend.stream();
    drop(buffer(stream, MIB).unwrap());
    let calls = rig.count("hipMalloc");
    rig.set_faults(FaultPlan::new().call("hipMalloc", When::From(1), hipErrorOutOfMemory));
    let error = buffer(stream, 2 * MIB).unwrap_err();
    assert!(matches!(error, HipError::DriverOutOfMemory { .. }), "{error}");
    assert_eq!((rig.count("hipMalloc"), rig.count("hipFree")), (calls + 2, 1));
    rig.set_faults(FaultPlan::new().call("hipMalloc", When::From(1), hipErrorInvalidValue));
    let calls = rig.count("hipMalloc");
    assert!(buffer(stream, 2 * MIB).is_err());
    assert_eq!(rig.count("hipMalloc"), calls + 1, "more memory would not help");
    rig.set_faults(FaultPlan::new());
    drop(buffer(stream, 2 * MIB).unwrap());
    let live = backend.memory_statistics();
    assert_eq!(backend.card().ledger().live_bytes(), live.driver.live);
}

#[test]
fn a_block_the_driver_does_not_take_back_stays_in_the_ledger() {
    let (rig, backend) = pooled();
    let card = Arc::clone(backend.card());
    let epoch = card.ledger().epoch();
    drop(buffer(backend.stream(), MIB).unwrap());
    rig.set_faults(FaultPlan::new().call("hipFree", When::From(1), hipErrorInvalidDevicePointer));
    let error = backend.trim_memory(Bytes::ZERO).unwrap_err();
    assert_eq!(error.status(), Some(hipErrorInvalidDevicePointer), "{error}");
    rig.set_faults(FaultPlan::new());
    let leaks = epoch.leaks();
    assert!(leaks.entries.len() == 1 && leaks.entries[0].abandoned, "{leaks}");
    assert_eq!(leaks.bytes, Bytes(MIB as u64));
    drop(backend);
    assert_eq!(card.ledger().live_bytes(), Bytes(MIB as u64));
}

#[test]
fn a_poisoned_backend_leaves_its_pool_to_the_driver() {
    let (rig, backend) = pooled();
    let card = Arc::clone(backend.card());
    let held = HipBuffer::<u8>::zeroed(backend.stream(), Elems(MIB), "held").unwrap();
    drop(HipBuffer::<u8>::zeroed(backend.stream(), Elems(5 * MIB), "idle").unwrap());
    rig.hold(rig.last_stream(), true);
    assert!(backend.synchronize().is_err());
    let calls = rig.calls();
    assert!(matches!(
        backend.trim_memory(Bytes::ZERO),
        Err(HipError::Poisoned { .. })
    ));
    drop((held, backend));
    assert_eq!(rig.calls(), calls, "no HIP call after the end");
    assert_eq!(
        (rig.live_memory(), card.ledger().live_bytes()),
        (2, Bytes(6 * MIB as u64))
    );
    let left = card.ledger().live();
    assert!(left.iter().all(|entry| entry.abandoned), "{left:?}");
}

#[test]
fn every_drop_order_gives_back_once() {
    let (rig, backend) = pooled();
    let given_back = || {
        let figures = backend.memory_statistics().pool;
        figures.hits + figures.steals + figures.misses - figures.in_use_blocks
    };
    crate::common::drop_orders::each_frees_once(&backend, given_back);
    assert_eq!((rig.count("hipMalloc"), rig.count("hipFree")), (1, 0));
    drop(backend);
    assert_eq!((rig.live_memory(), rig.violations()), (0, vec![]));
}

#[test]
fn threads_share_the_pool() {
    let (rig, backend) = pooled();
    let streams = [0, 1, 2].map(|_| backend.create_stream("stream").unwrap());
    std::thread::scope(|scope| {
        for thread in 0..4usize {
            let streams = &streams;
            scope.spawn(move || {
                for round in 0..300usize {
                    let stream = &streams[(thread + round) % 3];
                    let data = vec![(thread * 1000 + round) as u32; 500 + round % 7 * 100];
                    let buffer = HipBuffer::from_slice(stream, &data, "mine").unwrap();
                    if round % 8 == 0 {
                        assert_eq!(buffer.to_vec(&streams[round % 3]).unwrap(), data);
                    }
                }
            });
        }
    });
    backend.synchronize().unwrap();
    let figures = backend.memory_statistics().pool;
    assert_eq!(figures.hits + figures.steals + figures.misses, 1200);
    assert!(figures.hit_rate() > 0.9, "{figures:?}");
    drop((streams, backend));
    assert_eq!((rig.live_memory(), rig.violations()), (0, vec![]));
}
