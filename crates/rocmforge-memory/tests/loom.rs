//! Every order in which up to three threads can take the locks of this crate, explored by loom.
//!
//! `cargo xtask loom` runs it; the rest of the workspace is not built with `--cfg loom`.
#![cfg(loom)]

use loom::sync::{Arc, Mutex};
use loom::thread;
use rocmforge_memory::*;
// What the tests count with is none of the model's business: each of loom's would double the orders to walk.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const MIB: u64 = 1 << 20;

/// Figures that do not move, and a clock that stands.
struct Still;

impl Readings for Still {
    fn read(&self) -> Reading {
        Reading {
            total: Some(Bytes::mib(1024)),
            used: Some(Bytes::ZERO),
            ..Reading::default()
        }
    }

    fn now(&self) -> Duration {
        Duration::ZERO
    }
}

/// A card on which `mib` MiB may be held.
fn card(mib: u64) -> std::sync::Arc<Card> {
    Card::new(DeviceKey::new("loom"), Policy::fixed(Bytes::mib(mib)), Box::new(Still))
}

/// Starts `n` threads and waits for them; the caller's own is one of three.
fn threads<T: 'static>(n: usize, work: impl Fn(usize) -> T + Clone + 'static) -> Vec<T> {
    let others: Vec<_> = (1..n)
        .map(|index| {
            let work = work.clone();
            thread::spawn(move || work(index))
        })
        .collect();
    let mut results = vec![work(0)];
    results.extend(others.into_iter().map(|other| other.join().unwrap()));
    results
}

#[test]
fn a_reservation_is_one_step() {
    loom::model(|| {
        let card = card(2);
        let ledger = card.ledger().clone();
        // Each wants 1 MiB and keeps it: two get it, whoever they are.
        let held = threads(3, move |_| {
            let reservation = card.try_reserve(Bytes::mib(1), Class::Required, "one").ok()?;
            Some(reservation.commit())
        });
        assert_eq!(held.iter().flatten().count(), 2);
        assert_eq!(ledger.live_bytes(), Bytes::mib(2));
        drop(held);
        assert_eq!(ledger.live(), []);
    });
}

#[test]
fn what_fits_is_not_refused() {
    loom::model(|| {
        let card = card(3);
        let ledger = card.ledger().clone();
        // Each holds at most a third, so each fits whatever the others are at: reserved, committed, on its way back.
        threads(3, move |index| {
            let reservation = card.try_reserve(Bytes::mib(1), Class::Required, "a third").unwrap();
            if index > 0 {
                let mut allocation = reservation.commit();
                if index > 1 {
                    allocation.begin_return();
                }
            }
        });
        assert_eq!((ledger.live(), ledger.live_bytes()), (vec![], Bytes::ZERO));
    });
}

/// A stream whose work is never done.
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

/// A stream whose work is done at some time.
#[derive(Clone)]
struct Running(Arc<loom::sync::atomic::AtomicU64>);

impl Queue for Running {
    fn id(&self) -> u64 {
        1
    }

    fn completed(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }
}

/// An operation that was enqueued, and the streams it waited for.
struct Op {
    stream: u64,
    access: Access,
    waited: Vec<u64>,
}

#[test]
fn of_two_operations_that_conflict_the_later_waits_for_the_earlier() {
    use Access::{Read, Write};
    for accesses in [
        [Write, Write, Write],
        [Read, Write, Read],
        [Write, Read, Read],
        [Read, Read, Write],
    ] {
        loom::model(move || {
            let buffer = Arc::new(Mutex::new((Uses::default(), Vec::<Op>::new())));
            let shared = Arc::clone(&buffer);
            threads(3, move |index| {
                let stream = Stream(index as u64);
                let access = accesses[index];
                // Look, wait, enqueue and note are one step, as in the runtime's `submit`.
                let mut guard = shared.lock().unwrap();
                let (uses, log) = &mut *guard;
                let waited = uses.before(access, &stream).map(|last| last.stream.id()).collect();
                log.push(Op {
                    stream: stream.id(),
                    access,
                    waited,
                });
                uses.note(access, &stream, 1);
            });
            let guard = buffer.lock().unwrap();
            let (_, log) = &*guard;
            assert_eq!(log.len(), 3);
            for (at, later) in log.iter().enumerate() {
                for earlier in &log[..at] {
                    let conflict = later.access == Write || earlier.access == Write;
                    assert!(
                        !conflict || is_behind(log, at, earlier.stream),
                        "{} {}",
                        later.stream,
                        earlier.stream
                    );
                }
            }
        });
    }
}

/// Whether the operation at `at` waits for the one of `stream`, itself or through one that it waits for.
fn is_behind(log: &[Op], at: usize, stream: u64) -> bool {
    log[at].waited.iter().any(|&waited| {
        let through = log.iter().position(|op| op.stream == waited);
        waited == stream || through.is_some_and(|through| is_behind(log, through, stream))
    })
}

#[test]
fn work_that_completes_meanwhile_is_waited_for_or_done() {
    loom::model(|| {
        let [done, written] = [0, 0].map(|zero| Arc::new(loom::sync::atomic::AtomicU64::new(zero)));
        let stream = Running(done);
        let mut uses = Uses::default();
        uses.note(Access::Write, &stream, 1);
        let device = {
            let (stream, written) = (stream.clone(), Arc::clone(&written));
            thread::spawn(move || {
                // The work, then the note that it is done, as a poll makes it.
                written.store(1, Ordering::Relaxed);
                stream.0.fetch_max(1, Ordering::AcqRel);
            })
        };
        if uses.is_done() {
            assert_eq!(written.load(Ordering::Relaxed), 1, "taken for done before it was");
        }
        device.join().unwrap();
        assert!(uses.is_done());
    });
}

/// Memory without end: each block is a new number, and who has it is checked.
#[derive(Clone)]
struct Numbers {
    next: std::sync::Arc<AtomicUsize>,
    freed: std::sync::Arc<AtomicUsize>,
}

#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Refused(#[from] OutOfBudget);

impl AllocatorError for Refused {
    fn is_out_of_memory(&self) -> bool {
        true
    }
}

impl Allocator for Numbers {
    type Memory = usize;
    type Stream = Stream;
    type Error = Refused;

    fn allocate(&self, request: &Request<'_, Stream>) -> Result<Block<usize, Stream>, Refused> {
        Ok(Block {
            memory: self.next.fetch_add(1, Ordering::Relaxed),
            bytes: request.bytes,
            capacity: request.bytes,
            entry: None,
            uses: Uses::default(),
        })
    }

    fn free(&self, _: Block<usize, Stream>) {
        self.freed.fetch_add(1, Ordering::Relaxed);
    }

    fn free_deferred(&self) -> Result<bool, Refused> {
        Ok(false)
    }
}

impl Numbers {
    fn new() -> Self {
        Self {
            next: std::sync::Arc::new(AtomicUsize::new(0)),
            freed: std::sync::Arc::new(AtomicUsize::new(0)),
        }
    }

    fn made(&self) -> usize {
        self.next.load(Ordering::Relaxed)
    }
}

fn budgeted(card: &std::sync::Arc<Card>, numbers: &Numbers) -> Pool<Budgeted<Numbers>> {
    let budgeted = Budgeted::new(std::sync::Arc::clone(card), numbers.clone());
    Pool::new(budgeted, PoolOptions::ON, Some(card.ledger()))
}

fn megabyte<'a>(stream: &'a Stream) -> Request<'a, Stream> {
    Request {
        bytes: Bytes(MIB),
        class: Class::Required,
        label: "buffer",
        site: Site::caller(),
        stream,
    }
}

/// Who has which block: a block that two have is found.
#[derive(Clone)]
struct Owners(std::sync::Arc<[AtomicUsize; 4]>);

impl Owners {
    fn new() -> Self {
        Self(std::sync::Arc::new([0; 4].map(AtomicUsize::new)))
    }

    fn take(&self, memory: usize) {
        assert_eq!(
            self.0[memory].fetch_add(1, Ordering::Relaxed),
            0,
            "block {memory} has two owners"
        );
    }

    fn give(&self, memory: usize) {
        self.0[memory].fetch_sub(1, Ordering::Relaxed);
    }
}

/// One block lies idle, in use by the first stream; each of `n` threads asks for one on a stream of its own, and all but
/// the last give theirs back.
fn gives_to_one_owner<A>(numbers: &Numbers, pool: &Arc<Pool<A>>, n: usize)
where
    A: Allocator<Memory = usize, Stream = Stream, Error = Refused> + 'static,
{
    let owners = Owners::new();
    let streams = [1, 2, 3].map(Stream);
    let mut block = pool.allocate(&megabyte(&streams[0])).unwrap();
    block.uses.note(Access::Write, &streams[0], 1);
    pool.free(block);
    let in_use = {
        let pool = Arc::clone(pool);
        threads(n, move |index| {
            let block = pool.allocate(&megabyte(&streams[index])).unwrap();
            owners.take(block.memory);
            if index + 1 == n {
                return Some(block);
            }
            owners.give(block.memory);
            pool.free(block);
            None
        })
    };
    let made = numbers.made();
    let figures = pool.statistics();
    assert!((1..=n).contains(&made), "{made}");
    assert_eq!(figures.hits + figures.steals + figures.misses, n as u64 + 1);
    assert_eq!(
        (figures.misses, figures.held()),
        (made as u64, Bytes(made as u64 * MIB))
    );
    assert_eq!((figures.in_use_blocks, figures.in_use), (1, Bytes(MIB)));
    in_use.into_iter().flatten().for_each(|block| pool.free(block));
    assert_eq!(pool.trim_to(Bytes::ZERO), Bytes(made as u64 * MIB));
    assert_eq!(numbers.freed.load(Ordering::Relaxed), made);
}

#[test]
fn the_pool_gives_a_block_to_one_of_three_threads() {
    loom::model(|| {
        let numbers = Numbers::new();
        let pool = Arc::new(Pool::new(numbers.clone(), PoolOptions::ON, None));
        gives_to_one_owner(&numbers, &pool, 3);
    });
}

fn pool_and_ledger(threads: usize) {
    let (card, numbers) = (card(8), Numbers::new());
    let pool = Arc::new(budgeted(&card, &numbers));
    gives_to_one_owner(&numbers, &pool, threads);
    assert_eq!(card.ledger().live_bytes(), Bytes::ZERO);
    drop(pool);
    assert_eq!(card.ledger().live(), []);
}

#[test]
fn pool_and_ledger_say_the_same() {
    loom::model(|| pool_and_ledger(2));
}

#[test]
fn pool_and_ledger_say_the_same_with_three_threads_and_two_preemptions() {
    // Without the bound, three threads with up to nine locks each are more orders than can be walked.
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| pool_and_ledger(3));
}

#[test]
fn a_trim_takes_what_is_idle_and_nothing_that_is_in_use() {
    loom::model(|| {
        let (card, numbers) = (card(8), Numbers::new());
        let pool = Arc::new(budgeted(&card, &numbers));
        let stream = Stream(1);
        pool.free(pool.allocate(&megabyte(&stream)).unwrap());
        let trimmer = {
            let pool = Arc::clone(&pool);
            thread::spawn(move || pool.trim_to(Bytes::ZERO))
        };
        let block = pool.allocate(&megabyte(&stream)).unwrap();
        let trimmed = trimmer.join().unwrap();
        let made = numbers.made();
        assert_eq!(
            (made, trimmed),
            if made == 1 { (1, Bytes::ZERO) } else { (2, Bytes(MIB)) }
        );
        assert_eq!(card.ledger().live_bytes(), Bytes(MIB));
        pool.free(block);
        drop(pool);
        assert_eq!(numbers.freed.load(Ordering::Relaxed), made);
        assert_eq!(
            (card.ledger().live(), card.ledger().live_bytes()),
            (vec![], Bytes::ZERO)
        );
    });
}
