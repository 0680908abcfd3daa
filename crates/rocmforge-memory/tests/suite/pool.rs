//! Random programs against a model of the pool: who has which bytes, what the driver has handed out, what is a hit.

use crate::common::device::{Error, Memory, Stream, TestBlock, request};
use crate::common::{Driver, GIB, MIB, World};
use proptest::prelude::*;
use rocmforge_memory::*;
use std::sync::Arc;

const STREAMS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Step {
    /// Asks for bytes on a stream, and uses them there.
    Allocate { bytes: u64, stream: usize, used: bool },
    /// Uses one of the held blocks on a stream.
    Use {
        which: usize,
        stream: usize,
        access: Access,
    },
    /// Gives one of the held blocks back.
    Free { which: usize },
    /// A stream's work is done.
    Complete { stream: usize },
    /// Idle memory goes.
    Trim { keep: u64 },
    /// The desktop takes or gives.
    Desktop { others: u64 },
}

fn step() -> impl Strategy<Value = Step> {
    let bytes = prop_oneof![
        4 => prop::sample::select(vec![1u64, 4096, 5000, MIB, MIB + 1, MIB + 200_000, 3 * MIB]),
        2 => 1..20 * MIB,
        1 => 100 * MIB..800 * MIB,
    ];
    let access = prop_oneof![Just(Access::Read), Just(Access::Write)];
    prop_oneof![
        6 => (bytes, 0..STREAMS, any::<bool>()).prop_map(|(bytes, stream, used)| Step::Allocate { bytes, stream, used }),
        3 => (any::<usize>(), 0..STREAMS, access).prop_map(|(which, stream, access)| Step::Use { which, stream, access }),
        5 => any::<usize>().prop_map(|which| Step::Free { which }),
        2 => (0..STREAMS).prop_map(|stream| Step::Complete { stream }),
        1 => (0..30 * MIB).prop_map(|keep| Step::Trim { keep }),
        1 => (0..500 * MIB).prop_map(|others| Step::Desktop { others }),
    ]
}

/// An idle block as the model knows it: address, capacity, and who has to be waited for.
struct Idle {
    memory: u64,
    capacity: u64,
    pending: Vec<(u64, u64)>,
}

/// What the pool should say.
#[derive(Default)]
struct Model {
    idle: Vec<Idle>,
    hits: u64,
    steals: u64,
    misses: u64,
    /// The most that was in use at once.
    most: u64,
}

impl Model {
    /// The capacities that serve a request, from the documentation: at most an eighth is wasted, or a page, or what
    /// rounding to eighths of the power of two below wastes.
    fn fits(bytes: u64, capacity: u64) -> bool {
        let power = 1u64 << bytes.ilog2();
        let rounded = bytes.next_multiple_of((power / 8).clamp(4096, 2 * MIB));
        capacity >= bytes && capacity <= (bytes + bytes / 8).max(rounded)
    }

    fn candidates(&self, bytes: u64) -> impl Iterator<Item = &Idle> {
        self.idle.iter().filter(move |idle| Self::fits(bytes, idle.capacity))
    }
}

fn pending(uses: &Uses<Stream>) -> Vec<(u64, u64)> {
    let mut pending: Vec<_> = uses.pending().map(|last| (last.stream.id(), last.cursor)).collect();
    pending.sort_unstable();
    pending
}

struct Run {
    streams: Vec<Stream>,
    driver: Driver,
    memory: Memory,
    card: Arc<Card>,
    pool: Arc<Pool<Budgeted<Memory>>>,
    stack: Named<Arc<Pool<Budgeted<Memory>>>, Memory>,
    held: Vec<TestBlock>,
    model: Model,
}

impl Run {
    fn new() -> Self {
        let driver = Driver::new(World {
            displays: 0,
            ..World::new(GIB, 5_000_001)
        });
        let memory = Memory::new(GIB, Some(driver.clone()));
        let card = Card::new(DeviceKey::new("test"), Policy::headless(), driver.boxed());
        let budgeted = Budgeted::new(Arc::clone(&card), memory.clone());
        let pool = Arc::new(Pool::new(budgeted, PoolOptions::ON, Some(card.ledger())));
        let stack = Named::new(Arc::clone(&pool), Arc::new(memory.clone()));
        Self {
            streams: (0..STREAMS as u64).map(Stream::new).collect(),
            driver,
            memory,
            card,
            pool,
            stack,
            held: Vec::new(),
            model: Model::default(),
        }
    }

    fn allocate(&mut self, bytes: u64, stream: usize, used: bool) {
        let stream = &self.streams[stream];
        let before = self.memory.allocations();
        let result = self.stack.allocate(&request(bytes, stream, "block"));
        // The driver may have waited for work.
        for idle in &mut self.model.idle {
            idle.pending
                .retain(|&(id, cursor)| self.streams[id as usize].completed() < cursor);
        }
        let any_fits = self.model.candidates(bytes).next().is_some();
        let mut block = match result {
            Ok(block) => block,
            Err(Error::Budget(refused)) => {
                // Not while an idle byte could have made room.
                assert!(!any_fits, "refused although an idle block fits");
                assert_eq!(self.pool.statistics().idle, Bytes::ZERO);
                assert!(refused.available.0 < bytes);
                self.model.idle.clear();
                return;
            }
            Err(other) => panic!("{other}"),
        };
        assert!(block.bytes == Bytes(bytes) && block.capacity.0 >= bytes);
        if self.memory.allocations() == before {
            let at = self.model.idle.iter().position(|idle| idle.memory == block.memory);
            let idle = self.model.idle.swap_remove(at.expect("it was idle"));
            assert_eq!(
                (idle.capacity, &idle.pending),
                (block.capacity.0, &pending(&block.uses))
            );
            assert!(Model::fits(bytes, idle.capacity));
            let waits = |pending: &[(u64, u64)]| pending.iter().any(|(id, _)| *id != stream.id());
            if waits(&idle.pending) {
                self.model.steals += 1;
            } else {
                self.model.hits += 1;
            }
        } else {
            assert!(!any_fits, "asked the driver though an idle block fits");
            assert!(block.uses.is_done());
            self.model.misses += 1;
        }
        if used {
            block.uses.note(Access::Write, stream, stream.enqueue());
        }
        for other in &self.held {
            let (a, b) = (block.memory..block.memory + block.capacity.0, other.memory);
            assert!(
                !a.contains(&b) && !(b..b + other.capacity.0).contains(&a.start),
                "two owners"
            );
        }
        self.held.push(block);
        let in_use = self.held.iter().map(|block| block.capacity.0).sum();
        self.model.most = self.model.most.max(in_use);
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Allocate { bytes, stream, used } => self.allocate(bytes, stream, used),
            Step::Use { which, stream, access } if !self.held.is_empty() => {
                let at = which % self.held.len();
                let stream = &self.streams[stream];
                self.held[at].uses.note(access, stream, stream.enqueue());
            }
            Step::Free { which } if !self.held.is_empty() => {
                let block = self.held.swap_remove(which % self.held.len());
                self.model.idle.push(Idle {
                    memory: block.memory,
                    capacity: block.capacity.0,
                    pending: pending(&block.uses),
                });
                self.stack.free(block);
            }
            Step::Complete { stream } => {
                self.streams[stream].complete();
            }
            Step::Trim { keep } => {
                let before = self.pool.statistics();
                let gone = self.pool.trim_to(Bytes(keep));
                let after = self.pool.statistics();
                assert_eq!(before.idle.saturating_sub(after.idle), gone);
                assert_eq!(after.trimmed.saturating_sub(before.trimmed), gone);
                assert!(after.idle.0 <= keep && (gone == Bytes::ZERO || before.idle.0 > keep));
            }
            Step::Desktop { others } => {
                self.driver.with(|w| w.others = others);
                self.card.budget();
            }
            Step::Use { .. } | Step::Free { .. } => {}
        }
        self.check();
    }

    /// What the pool let go of, the model forgets; what it keeps must add up.
    fn check(&mut self) {
        let figures = self.pool.statistics();
        let memory = &self.memory;
        self.model.idle.retain(|idle| memory.is_idle(idle.memory));
        let sum = |bytes: &mut dyn Iterator<Item = u64>| Bytes(bytes.sum());
        let idle = sum(&mut self.model.idle.iter().map(|idle| idle.capacity));
        let in_use = sum(&mut self.held.iter().map(|block| block.bytes.0));
        let rounding = sum(&mut self.held.iter().map(|block| block.capacity.0 - block.bytes.0));
        let counted = PoolStatistics {
            hits: self.model.hits,
            steals: self.model.steals,
            misses: self.model.misses,
            in_use_blocks: self.held.len() as u64,
            in_use,
            rounding,
            idle_blocks: self.model.idle.len() as u64,
            idle,
            largest_idle: Bytes(self.model.idle.iter().map(|idle| idle.capacity).max().unwrap_or(0)),
            peak: figures.peak,
            peak_in_use: figures.peak_in_use,
            trimmed: figures.trimmed,
        };
        assert_eq!(figures, counted);
        assert!(figures.peak >= figures.held());
        assert_eq!(figures.peak_in_use, Bytes(self.model.most));
        let most = self.model.most + self.model.most / 4 + 64 * MIB;
        assert!(figures.held().0 <= most, "{figures:?}");
        let served = self.model.hits + self.model.steals;
        let all = served + self.model.misses;
        let rate = if all == 0 { 1.0 } else { served as f64 / all as f64 };
        assert!((figures.hit_rate() - rate).abs() < 1e-12);
        // To the byte: what the driver has handed out is in use, idle, or waits for its last uses.
        let waiting = Bytes(self.memory.waiting_bytes());
        let live = Bytes(self.memory.live_bytes());
        assert_eq!(live, figures.held().saturating_add(waiting));
        let ledger = self.card.ledger();
        assert_eq!(ledger.live_bytes(), live);
        let entries: Bytes = ledger.live().iter().map(|entry| entry.kind.device_bytes()).sum();
        assert_eq!(entries, live);
        assert_eq!(self.memory.violations(), [""; 0]);
    }

    fn end(mut self) {
        for block in self.held.drain(..) {
            self.stack.free(block);
        }
        self.streams.iter().for_each(Stream::complete);
        self.memory.free_deferred().unwrap();
        drop((self.stack, self.pool));
        assert_eq!((self.memory.live_bytes(), self.memory.violations()), (0, vec![]));
        assert_eq!(self.card.ledger().live(), []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::with_cases(cases()) })]

    #[test]
    fn random_programs_agree_with_the_model(steps in prop::collection::vec(step(), 1..80)) {
        let mut run = Run::new();
        for step in steps {
            run.step(step);
        }
        run.end();
    }
}

/// The bound on what is held is of what the block has, not of what rounding would have given it.
#[test]
fn a_request_that_is_not_rounded_keeps_the_bound() {
    let mut run = Run::new();
    let allocate = |bytes| Step::Allocate {
        bytes,
        stream: 0,
        used: false,
    };
    for bytes in [MIB / 4, 192 * MIB] {
        run.step(allocate(bytes));
    }
    for which in [0, 0] {
        run.step(Step::Free { which });
    }
    // Room for the request, and not for the 514 MiB that rounding makes of it.
    let room = run.card.budget().available;
    run.step(Step::Desktop {
        others: 5_000_001 + (room.0 - 513 * MIB),
    });
    run.step(allocate(512 * MIB + 1));
    assert_eq!(run.held[0].capacity, Bytes(512 * MIB + 1));
    run.end();
}

/// `PROPTEST_CASES` makes it more.
fn cases() -> u32 {
    let given = std::env::var("PROPTEST_CASES").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(400)
}

#[test]
fn nothing_asked_is_no_miss_and_nothing_held_is_no_fragment() {
    let none = PoolStatistics::default();
    assert_eq!(
        (none.hit_rate(), none.fragmentation(), none.held()),
        (1.0, 0.0, Bytes::ZERO)
    );
    let some = PoolStatistics {
        hits: 2,
        steals: 1,
        misses: 1,
        in_use: Bytes(50),
        rounding: Bytes(10),
        idle: Bytes(40),
        ..none
    };
    assert_eq!(
        (some.hit_rate(), some.fragmentation(), some.held()),
        (0.75, 0.5, Bytes(100))
    );
}

#[test]
fn what_nobody_uses_goes_first_and_what_has_lain_longest() {
    let run = Run::new();
    let stream = &run.streams[0];
    let mut blocks: Vec<_> = (0..4)
        .map(|_| run.stack.allocate(&request(MIB, stream, "block")).unwrap())
        .collect();
    let at: Vec<u64> = blocks.iter().map(|block| block.memory).collect();
    blocks[0].uses.note(Access::Read, stream, stream.enqueue());
    blocks.into_iter().for_each(|block| run.stack.free(block));
    let idle = || -> Vec<bool> { at.iter().map(|&memory| run.memory.is_idle(memory)).collect() };
    assert_eq!(run.pool.trim_to(Bytes::mib(4)), Bytes::ZERO);
    assert_eq!(run.pool.trim_to(Bytes::mib(3)), Bytes::mib(1));
    assert_eq!(idle(), [true, false, true, true]);
    assert_eq!(run.pool.trim_to(Bytes(2 * MIB - 1)), Bytes::mib(2));
    assert_eq!(idle(), [true, false, false, false]);
    assert_eq!(run.pool.trim_to(Bytes::ZERO), Bytes::mib(1));
    assert_eq!((run.memory.waiting(), run.memory.live_blocks()), (1, 1));
    run.end();
}

#[test]
fn a_block_that_needs_no_wait_comes_first_and_the_smallest_of_those() {
    let run = Run::new();
    let [one, two, three] = &run.streams[..] else { panic!() };
    let idle = |bytes: u64, stream: &Stream| {
        let mut block = run.stack.allocate(&request(bytes, stream, "block")).unwrap();
        block.uses.note(Access::Write, stream, stream.enqueue());
        block
    };
    let blocks = [
        idle(MIB + 1, one),
        idle(MIB, one),
        idle(MIB, one),
        idle(MIB, two),
        idle(MIB, three),
        idle(2 * MIB, one),
    ];
    let [larger, older, newer, others, done, _] = blocks.each_ref().map(|block| block.memory);
    blocks.into_iter().for_each(|block| run.stack.free(block));
    three.complete();
    let allocate = |stream| run.stack.allocate(&request(MIB, stream, "block")).unwrap();
    // Of the stream's own the smallest that fits, last put first; then one that nobody uses, then the others'.
    let in_use = [one; 5].map(allocate);
    assert_eq!(
        in_use.each_ref().map(|block| block.memory),
        [newer, older, larger, done, others]
    );
    let figures = run.pool.statistics();
    assert_eq!((figures.hits, figures.steals, figures.misses), (4, 1, 6));
    let fresh = allocate(one);
    assert_eq!(run.pool.statistics().misses, 7, "2 MiB are too much for 1");
    in_use
        .into_iter()
        .chain([fresh])
        .for_each(|block| run.stack.free(block));
    let next = [three; 4].map(allocate);
    assert_eq!(next[0].memory, done, "what nobody uses comes before what is in use");
    assert_eq!(next[2].memory, newer, "what is stolen has lain longest of its size");
    next.into_iter().for_each(|block| run.stack.free(block));
    run.streams.iter().for_each(Stream::complete);
    run.end();
}

#[test]
fn changing_sizes_do_not_fill_the_card() {
    let mut run = Run::new();
    for length in 1..200 {
        for _ in 0..3 {
            run.allocate(length * MIB / 2, 0, true);
        }
        while !run.held.is_empty() {
            run.step(Step::Free { which: 0 });
        }
    }
    let figures = run.pool.statistics();
    let in_use = 300 * MIB;
    assert!(
        figures.peak_in_use.0 <= in_use && figures.peak.0 <= in_use + in_use / 4 + 64 * MIB,
        "{figures:?}"
    );
    run.end();
}

#[test]
fn a_quarter_more_than_was_in_use_at_once_and_64_mib_are_held() {
    let mut run = Run::new();
    for _ in 0..100 {
        run.allocate(4 * MIB, 0, false);
    }
    while !run.held.is_empty() {
        run.step(Step::Free { which: 0 });
    }
    assert_eq!(run.pool.statistics().idle, Bytes::mib(400));
    // 400 + 100 + 64 MiB, in blocks of 4 that do not serve requests for 3.
    for in_use in 1..=54 {
        run.allocate(3 * MIB, 0, false);
        assert_eq!(run.pool.statistics().held(), Bytes::mib(400 + 3 * in_use));
    }
    run.allocate(3 * MIB, 0, false);
    let figures = run.pool.statistics();
    assert_eq!((figures.idle, figures.held()), (Bytes::mib(396), Bytes::mib(561)));
    assert_eq!((figures.trimmed, figures.peak), (Bytes::mib(4), Bytes::mib(562)));
    run.step(Step::Free { which: 0 });
    assert_eq!(
        run.pool.shed(Bytes::mib(9)),
        Bytes::mib(12),
        "whole blocks, the longest idle first"
    );
    run.end();
}

#[test]
fn what_is_done_keeps_no_stream() {
    let run = Run::new();
    let stream = Stream::new(99);
    let mut block = run.stack.allocate(&request(MIB, &stream, "block")).unwrap();
    block.uses.note(Access::Read, &stream, stream.enqueue());
    block.uses.note(Access::Write, &stream, stream.enqueue());
    block.uses.note(Access::Read, &stream, stream.enqueue());
    stream.complete();
    run.stack.free(block);
    assert_eq!(stream.handles(), 0);
    let mut block = run.stack.allocate(&request(MIB, &stream, "block")).unwrap();
    block.uses.note(Access::Write, &stream, stream.enqueue());
    run.stack.free(block);
    assert_eq!(stream.handles(), 1, "it is in use");
    stream.complete();
    run.end();
}

#[test]
fn a_budget_that_shrank_is_met_by_what_is_freed() {
    let mut run = Run::new();
    for _ in 0..5 {
        run.allocate(100 * MIB, 0, false);
    }
    // 300 MiB may be held now; each free meets as much of the rest as it can.
    run.step(Step::Desktop {
        others: GIB - 300 * MIB - 256 * MIB,
    });
    for in_use in [400, 300, 200, 100, 0] {
        run.step(Step::Free { which: 0 });
        let figures = run.pool.statistics();
        assert_eq!(figures.in_use, Bytes::mib(in_use));
        assert_eq!(figures.held(), Bytes::mib(in_use.max(300)), "{figures:?}");
    }
    run.end();
}

#[test]
fn no_more_is_kept_than_was_asked_for() {
    let run = Run::new();
    let pool = Pool::new(run.memory.clone(), PoolOptions { keep: Bytes::mib(2) }, None);
    let stream = &run.streams[0];
    let blocks: Vec<_> = (0..4)
        .map(|_| pool.allocate(&request(MIB, stream, "block")).unwrap())
        .collect();
    blocks.into_iter().for_each(|block| pool.free(block));
    assert_eq!(pool.statistics().idle, Bytes::mib(2));
    assert_eq!(run.memory.live_bytes(), 2 * MIB);
}

#[test]
fn a_size_that_cannot_be_rounded_up_is_given_to_the_byte() {
    let mut run = Run::new();
    let all = run.card.budget().available.0;
    assert_ne!(all % (2 * MIB), 0);
    run.allocate(all, 0, false);
    assert_eq!(run.held[0].capacity, Bytes(all));
    run.step(Step::Free { which: 0 });
    // And serves the next request of that size.
    run.allocate(all, 1, false);
    assert_eq!(run.pool.statistics().hits, 1);
    run.end();
}

#[test]
fn beyond_what_caches_may_fill_nothing_is_rounded_up() {
    let mut run = Run::new();
    let budget = run.card.budget().budget;
    run.allocate(budget.percent(85).0, 0, false);
    run.allocate(16 * MIB + 1, 0, false);
    assert_eq!(run.held[1].capacity, Bytes(16 * MIB + 1), "18 MiB would fit the budget");
    run.end();
}
