//! Cost of a reservation: reserve, commit, free, with 0 and 10 000 other entries in the ledger.

use criterion::{Criterion, criterion_group, criterion_main};
use rocmforge_memory::{Bytes, Card, Class, DeviceKey, FixedReadings, PeerFigures, PeerLedger, Policy, Reading};

fn reserve(c: &mut Criterion) {
    for others in [0, 10_000] {
        let reading = Reading {
            total: Some(Bytes::gib(20)),
            used: Some(Bytes::gib(2)),
            displays: 1,
            ..Reading::default()
        };
        let card = Card::new(
            DeviceKey::new("bench"),
            Policy::desktop(),
            Box::new(FixedReadings(reading)),
        );
        let held: Vec<_> = (0..others)
            .map(|_| {
                card.try_reserve(Bytes::kib(4), Class::Required, "held")
                    .map(|r| r.commit())
            })
            .collect();
        c.bench_function(&format!("reserve, commit, free with {others} live"), |b| {
            b.iter(|| {
                card.try_reserve(Bytes::mib(1), Class::Required, "bench")
                    .map(|r| r.commit().bytes())
            });
        });
        c.bench_function(&format!("refuse with {others} live"), |b| {
            b.iter(|| card.try_reserve(Bytes::gib(64), Class::Required, "bench").is_err());
        });
        drop(held);
    }
}

/// The same with the ledger that processes share: 1 MiB at a time, once around the same level and once on the way up to
/// 1 GiB and down again, where every 32 MiB are claimed in the file.
fn shared(c: &mut Criterion) {
    let directory = tempfile::tempdir().expect("a directory");
    let key = DeviceKey::new("bench");
    let peers = PeerLedger::join(&directory.path().join("ledger"), &key, PeerFigures::InUsed).expect("a ledger");
    let reading = Reading {
        total: Some(Bytes::gib(20)),
        used: Some(Bytes::gib(2)),
        displays: 1,
        ..Reading::default()
    };
    let card = Card::open_shared(key, Policy::desktop(), Box::new(FixedReadings(reading)), peers)
        .expect("a policy for displays");
    let mebibyte = || {
        card.try_reserve(Bytes::mib(1), Class::Required, "bench")
            .map(|r| r.commit())
    };
    c.bench_function("reserve, commit, free with a shared ledger", |b| b.iter(mebibyte));
    c.bench_function("reserve, commit 1024 times, free all with a shared ledger", |b| {
        b.iter(|| (0..1024).map(|_| mebibyte()).collect::<Vec<_>>());
    });
}

criterion_group!(benches, reserve, shared);
criterion_main!(benches);
