//! What a reservation costs: reserve, commit, free, with 0 and 10 000 other entries in the ledger.

use criterion::{Criterion, criterion_group, criterion_main};
use rocmforge_memory::{Bytes, Card, Class, DeviceKey, FixedReadings, Policy, Reading};

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

criterion_group!(benches, reserve);
criterion_main!(benches);
