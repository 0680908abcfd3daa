//! Copies and fills of the driver: the bandwidth that memory-bound kernels are compared with.

use crate::card::Card;
use crate::inputs::{Kind, blank, tiled};
use crate::table::{REFERENCE, Table, Work};
use crate::timing::Watch;
use criterion::{Criterion, Throughput};
use rocmforge_runtime::{Elems, PinnedBuffer};
use std::time::{Duration, Instant};

pub(crate) fn run(criterion: &mut Criterion, card: &Card, table: &mut Table) {
    let (stream, watch) = (card.stream(), Watch::new(card));
    let mut group = criterion.benchmark_group("copy");

    let n = card.size(1 << 28, 1 << 12);
    let (x, y) = (tiled(stream, Kind::Numbers, 1, n), blank(stream, n));
    let bytes = 8 * n as u64;
    group.throughput(Throughput::Bytes(bytes));
    group.bench_function(REFERENCE, |bencher| {
        table.time(bencher, (REFERENCE, "1 GiB"), Work::Bytes(bytes), |iterations| {
            watch.time(|| (0..iterations).for_each(|_| y.copy_from_buffer(stream, &x).expect("a copy")))
        });
    });
    drop((x, y));

    let n = card.size(1 << 29, 1 << 12);
    let y = blank(stream, n);
    group.throughput(Throughput::Bytes(4 * n as u64));
    group.bench_function("driver fill", |bencher| {
        table.time(
            bencher,
            ("driver fill", "2 GiB"),
            Work::Bytes(4 * n as u64),
            |iterations| watch.time(|| (0..iterations).for_each(|_| y.fill_bytes(stream, 0x3f).expect("a fill"))),
        );
    });
    drop(y);

    // Through pinned memory that the caller has: the time until the data are there.
    let n = card.size(1 << 26, 1 << 10);
    let device = tiled(stream, Kind::Numbers, 2, n);
    let mut pinned = PinnedBuffer::<f32>::zeroed(card.backend(), Elems(n), "bench").ok();
    group.throughput(Throughput::Bytes(4 * n as u64));
    group.bench_function("to the card, pinned", |bencher| {
        table.time(
            bencher,
            ("copy to the card, pinned", "256 MiB"),
            Work::Bytes(4 * n as u64),
            |iterations| {
                let start = Instant::now();
                for _ in 0..iterations {
                    let data = pinned.take().expect("the last copy gave it back");
                    pinned = Some(
                        device
                            .upload_async(stream, data)
                            .expect("a copy")
                            .wait()
                            .expect("it ends"),
                    );
                }
                start.elapsed()
            },
        );
    });
    drop(pinned);
    group.bench_function("to the host, newly pinned", |bencher| {
        table.time(
            bencher,
            ("copy to the host, newly pinned", "256 MiB"),
            Work::Bytes(4 * n as u64),
            |iterations| {
                let mut time = Duration::ZERO;
                for _ in 0..iterations {
                    let pending = device.download_async(stream).expect("a copy");
                    // Pinning the memory, and giving it back, is not part of the copy.
                    let start = Instant::now();
                    drop(pending.wait().expect("it ends"));
                    time += start.elapsed();
                }
                time
            },
        );
    });
    group.finish();
    drop(device);
    card.clear();
}
