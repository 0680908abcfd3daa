//! Costs of the pool: a request served by an idle block and its return, with and without the ledger; the ledger's and
//! the budget's part alone. Medians of the pairs; halve them for one direction.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use rocmforge_memory::*;
use std::hint::black_box;
use std::sync::Arc;

/// A stream whose work is never done: every look at a last use is made in full.
#[derive(Clone)]
struct Stream(u64);

impl Queue for Stream {
    fn id(&self) -> u64 {
        self.0
    }

    fn completed(&self) -> u64 {
        0
    }
}

/// Memory that costs nothing.
struct Nothing;

#[derive(Debug)]
struct Refused;

impl From<OutOfBudget> for Refused {
    fn from(_: OutOfBudget) -> Self {
        Self
    }
}

impl AllocatorError for Refused {
    fn is_out_of_memory(&self) -> bool {
        true
    }
}

impl Allocator for Nothing {
    type Memory = u64;
    type Stream = Stream;
    type Error = Refused;

    fn allocate(&self, request: &Request<'_, Stream>) -> Result<Block<u64, Stream>, Refused> {
        Ok(Block {
            memory: 0,
            bytes: request.bytes,
            capacity: request.bytes,
            entry: None,
            uses: Uses::default(),
        })
    }

    fn free(&self, block: Block<u64, Stream>) {
        black_box(block.memory);
    }

    fn free_deferred(&self) -> Result<bool, Refused> {
        Ok(false)
    }
}

fn card() -> Arc<Card> {
    let reading = Reading {
        total: Some(Bytes::gib(20)),
        used: Some(Bytes::gib(2)),
        displays: 1,
        ..Reading::default()
    };
    Card::new(
        DeviceKey::new("bench"),
        Policy::desktop(),
        Box::new(FixedReadings(reading)),
    )
}

fn request(stream: &Stream, bytes: u64) -> Request<'_, Stream> {
    Request {
        bytes: Bytes(bytes),
        class: Class::Required,
        label: "bench",
        site: Site::caller(),
        stream,
    }
}

/// Leaves 100 blocks of 10 sizes idle on two streams.
fn fill<A: Allocator<Memory = u64, Stream = Stream, Error = Refused>>(pool: &Pool<A>) {
    let streams = [Stream(1), Stream(2)];
    let blocks: Vec<_> = (0..100u64)
        .map(|i| {
            let stream = &streams[(i % 2) as usize];
            let mut block = pool.allocate(&request(stream, (i / 2 % 10 + 1) << 16)).unwrap();
            block.uses.note(Access::Write, stream, 1);
            block
        })
        .collect();
    blocks.into_iter().for_each(|block| pool.free(block));
}

fn hit_and_free<A: Allocator<Memory = u64, Stream = Stream, Error = Refused>>(
    c: &mut Criterion,
    name: &str,
    pool: &Pool<A>,
) {
    fill(pool);
    let stream = Stream(1);
    c.bench_function(name, |b| {
        b.iter(|| {
            let block = pool.allocate(black_box(&request(&stream, 5 << 16)));
            pool.free(block.unwrap());
        });
    });
}

fn pool(c: &mut Criterion) {
    let unbudgeted = Pool::new(Nothing, PoolOptions::ON, None);
    hit_and_free(c, "pool: hit and free, no ledger", &unbudgeted);
    let card = card();
    let budgeted = Budgeted::new(Arc::clone(&card), Nothing);
    let budgeted = Pool::new(budgeted, PoolOptions::ON, Some(card.ledger()));
    hit_and_free(c, "pool: hit and free, ledger entry included", &budgeted);

    let off = Budgeted::new(card, Nothing);
    let stream = Stream(1);
    c.bench_function("no pool: reserve, commit, free of the ledger and budget alone", |b| {
        b.iter(|| {
            let block = off.allocate(black_box(&request(&stream, 5 << 16)));
            off.free(block.unwrap());
        });
    });
    let pool = Pool::new(Nothing, PoolOptions::ON, None);
    c.bench_function("pool: trim of 100 idle blocks", |b| {
        b.iter_batched(|| fill(&pool), |()| pool.trim_to(Bytes::ZERO), BatchSize::PerIteration);
    });
}

criterion_group!(benches, pool);
criterion_main!(benches);
