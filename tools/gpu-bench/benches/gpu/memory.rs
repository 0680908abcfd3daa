//! Time to allocate 64 MiB, from the driver and from the pool.

use crate::card::Card;
use crate::table::{Table, Work};
use criterion::Criterion;
use rocmforge_runtime::{Elems, HipBuffer};
use std::time::{Duration, Instant};

const SHAPE: &str = "64 MiB";

pub(crate) fn run(criterion: &mut Criterion, card: &Card, table: &mut Table) {
    let bytes: usize = card.size(64 << 20, 64 << 10);
    let (api, stream) = (card.lease.api(), card.stream());
    let mut group = criterion.benchmark_group("allocation");

    card.backend().ensure_device().expect("a usable backend");
    group.bench_function("driver: allocate and free", |bencher| {
        table.time(
            bencher,
            ("driver: allocate and free", SHAPE),
            Work::Calls,
            |iterations| {
                timed(iterations, || {
                    let mut ptr = std::ptr::null_mut();
                    // SAFETY: `ptr` is a live out-pointer for the call.
                    let made = unsafe { api.hipMalloc(&mut ptr, bytes) };
                    assert!(made.is_success(), "{made}");
                    // SAFETY: made by the line above, used by nobody, freed once.
                    let freed = unsafe { api.hipFree(ptr) };
                    assert!(freed.is_success(), "{freed}");
                })
            },
        );
    });

    let take = || {
        // SAFETY: nobody reads it.
        let buffer = unsafe { HipBuffer::<u8>::uninit(stream, Elems(bytes), "bench") };
        drop(buffer.expect("room"));
    };
    take();
    group.bench_function("pool: hit and free", |bencher| {
        table.time(bencher, ("pool: hit and free", SHAPE), Work::Calls, |iterations| {
            timed(iterations, take)
        });
    });
    group.finish();
    let (driver, pool) = (
        table.seconds("driver: allocate and free", SHAPE),
        table.seconds("pool: hit and free", SHAPE),
    );
    if let (Some(driver), Some(pool)) = (driver, pool) {
        table.note(format!(
            "64 MiB from the driver and back: {:.1} us; from the pool and back: {:.3} us; {:.0} times cheaper (target: 100)",
            driver * 1e6,
            pool * 1e6,
            driver / pool
        ));
    }
    card.clear();
}

fn timed(iterations: u64, mut once: impl FnMut()) -> Duration {
    let start = Instant::now();
    (0..iterations).for_each(|_| once());
    start.elapsed()
}
