//! Threads of the CPU backend: a pool whose threads spin for a moment between ops, then sleep, and that is left alone for a while when
//! other programs keep its threads from running.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Below this many element visits another thread costs more than it saves (starting one takes some 5 us).
pub(super) const WORTH_A_THREAD: usize = 32 * 1024;

/// Stack of each thread in bytes, whatever the environment (`RUST_MIN_STACK`) says: what a program of any graph needs, of which no op recurses.
const STACK: usize = 2 << 20;

/// How long a thread without work looks for more before it sleeps. Waking it takes tens of microseconds, the op between two
/// products of a model usually less; and a program that computes nothing must not keep a core busy.
const SPIN: Duration = Duration::from_micros(100);

/// How much longer than for a task of its own the caller waits for helpers on a machine that has cores for all of them. On one that has not,
/// a helper with a task is off its core for milliseconds, in which the caller could have done everything.
const STALL: Duration = Duration::from_micros(300);

/// Two stalls in so short a time are no accident.
const SOON: Duration = Duration::from_millis(100);

/// How long the caller works alone after it was kept waiting: at first, and at most when it is kept waiting again and again.
const ALONE: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(800)];

/// Whether helpers were kept from running: the caller did `tasks` of its own in `own` time, and waited `waited` for theirs.
fn is_stalled(own: Duration, tasks: u32, waited: Duration) -> bool {
    waited > STALL + 2 * own / tasks.max(1)
}

/// The threads that share out one op, a pool of rayon's. Other threads enter the pool with a program, or with an op that is worth it.
#[derive(Clone)]
pub(super) struct Threads {
    /// `None` for one thread, or where the system gives no more.
    pool: Option<Arc<Pool>>,
}

struct Pool {
    threads: rayon::ThreadPool,
    alone: Alone,
}

/// Whether the caller works alone.
struct Alone {
    start: Instant,
    /// Until when, in nanoseconds after `start`, to be looked at without the mutex.
    until: AtomicU64,
    stalls: Mutex<Stalls>,
}

/// The stalls so far; times are after `start`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stalls {
    last: Option<Duration>,
    /// End of the last time that the caller worked alone, and its length.
    alone: Option<(Duration, Duration)>,
}

impl Stalls {
    /// Notes a stall; until when the caller works alone from now on, if it does.
    fn note(&mut self, now: Duration) -> Option<Duration> {
        let soon = |time: Duration| now.saturating_sub(time) < SOON;
        if !self.last.replace(now).is_some_and(soon) {
            return None;
        }
        let length = match self.alone {
            Some((end, length)) if soon(end) => ALONE[1].min(2 * length),
            _ => ALONE[0],
        };
        self.last = None;
        self.alone = Some((now + length, length));
        Some(now + length)
    }
}

impl Alone {
    fn is_on(&self) -> bool {
        let until = self.until.load(Ordering::Relaxed);
        until > 0 && nanoseconds(self.start.elapsed()) < until
    }

    fn note_stall(&self) {
        let now = self.start.elapsed();
        let until = self.stalls.lock().unwrap_or_else(PoisonError::into_inner).note(now);
        if let Some(until) = until {
            self.until.store(nanoseconds(until), Ordering::Relaxed);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}

impl Threads {
    /// `count` threads; 0 counts as 1.
    pub(super) fn new(count: usize) -> Self {
        let builder = rayon::ThreadPoolBuilder::new()
            .num_threads(count)
            .stack_size(STACK)
            .thread_name(|index| format!("rocmforge-cpu-{index}"));
        let threads = (count > 1).then(|| builder.build().ok()).flatten();
        let alone = || Alone {
            start: Instant::now(),
            until: AtomicU64::new(0),
            stalls: Mutex::default(),
        };
        Self {
            pool: threads.map(|threads| {
                Arc::new(Pool {
                    threads,
                    alone: alone(),
                })
            }),
        }
    }

    /// The caller's thread.
    pub(super) const ONE: Self = Self { pool: None };

    pub(super) fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.threads.current_num_threads())
    }

    /// How many threads `rows` rows are worth, each of so many element visits; at least 1.
    pub(super) fn worth(&self, rows: usize, cost_per_row: usize) -> usize {
        (rows.saturating_mul(cost_per_row) / WORTH_A_THREAD).clamp(1, self.count())
    }

    /// Runs `f` on a thread of the pool, or on the caller's where there is none or it is one of them. For as long, the other threads look
    /// for work, until there has been none for [`SPIN`]: what `f` shares out need not wake them.
    pub(super) fn enter<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        match &self.pool {
            Some(pool) if pool.threads.current_thread_index().is_none() => pool.threads.install(|| {
                let done = AtomicBool::new(false);
                let count = pool.threads.current_num_threads();
                with_lookers(count - 1, &done, pool.threads.current_thread_index(), || {
                    let result = f();
                    done.store(true, Ordering::Release);
                    result
                })
            }),
            _ => f(),
        }
    }

    /// As [`each`](Self::each) for work that can fail: one of the errors, if there are any.
    pub(super) fn try_each<T: Send, S: Send, E: Send>(
        &self,
        tasks: impl Iterator<Item = T> + Send,
        count: usize,
        states: impl Iterator<Item = S> + Send,
        work: impl Fn(&mut S, T) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let failure = Mutex::new(None);
        self.each(tasks, count, states, |state, task| {
            if let Err(error) = work(state, task) {
                let mut failure = failure.lock().unwrap_or_else(PoisonError::into_inner);
                failure.get_or_insert(error);
            }
        });
        failure
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
            .map_or(Ok(()), Err)
    }

    /// Runs `work` on each of about `count` tasks. Each thread takes the next task when it is done with one. A thread takes one of `states`,
    /// of which there are as many as threads at least, for all its tasks.
    pub(super) fn each<T: Send, S: Send>(
        &self,
        mut tasks: impl Iterator<Item = T> + Send,
        count: usize,
        mut states: impl Iterator<Item = S> + Send,
        work: impl Fn(&mut S, T) + Sync,
    ) {
        let pool = match &self.pool {
            Some(pool) if count > 1 && !pool.alone.is_on() => pool,
            _ => {
                if let Some(mut state) = states.next() {
                    tasks.for_each(|task| work(&mut state, task));
                }
                return;
            }
        };
        let wanted = pool.threads.current_num_threads().min(count);
        let queue = Mutex::new((&mut tasks, &mut states));
        let drain = || {
            let locked = || queue.lock().unwrap_or_else(PoisonError::into_inner);
            let mut done = 0;
            let Some(mut state) = locked().1.next() else {
                return done;
            };
            loop {
                let next = locked().0.next();
                match next {
                    Some(task) => work(&mut state, task),
                    None => return done,
                }
                done += 1;
            }
        };
        let running = AtomicUsize::new(0);
        let help = || {
            running.fetch_add(1, Ordering::Acquire);
            drain();
            running.fetch_sub(1, Ordering::Release);
        };
        self.enter(|| {
            let begin = Instant::now();
            let mut worked = Duration::ZERO;
            let own = with_helpers(wanted - 1, &help, || {
                let own = drain();
                worked = begin.elapsed();
                // The pool would let this thread sleep until the last helper is done, which is usually soon.
                let since = Instant::now();
                while running.load(Ordering::Acquire) > 0 && since.elapsed() < SPIN {
                    std::hint::spin_loop();
                }
                own
            });
            if is_stalled(worked, own, begin.elapsed().saturating_sub(worked)) {
                pool.alone.note_stall();
            }
        });
    }

    /// Rows of a piece of `rows` rows, each of so many element visits.
    pub(super) fn rows_each(&self, rows: usize, cost_per_row: usize) -> usize {
        let worth = (rows.saturating_mul(cost_per_row) / WORTH_A_THREAD).max(1);
        // Twice as many pieces as threads: one that starts late takes fewer.
        let pieces = match self.count() {
            1 => 1,
            count => (2 * count).min(worth),
        };
        rows.div_ceil(pieces).max(1)
    }

    /// Splits `out` into pieces of whole rows, with the index of each piece's first row, and runs `work` on them.
    pub(super) fn by_rows(
        &self,
        out: &mut [f32],
        row: usize,
        cost_per_row: usize,
        work: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        self.by_rows_with(out, row, cost_per_row, std::iter::repeat(()), |(), first, piece| {
            work(first, piece);
        });
    }

    /// [`Self::by_rows`] with a state for each thread, as [`Self::each`] has them.
    pub(super) fn by_rows_with<E: Send, S: Send>(
        &self,
        out: &mut [E],
        row: usize,
        cost_per_row: usize,
        states: impl Iterator<Item = S> + Send,
        work: impl Fn(&mut S, usize, &mut [E]) + Sync,
    ) {
        if row == 0 || out.is_empty() {
            return;
        }
        let rows = out.len() / row;
        let rows_each = self.rows_each(rows, cost_per_row);
        let tasks = out
            .chunks_mut(rows_each * row)
            .enumerate()
            .map(|(i, piece)| (i * rows_each, piece));
        self.each(tasks, rows.div_ceil(rows_each), states, |state, (first, piece)| {
            work(state, first, piece);
        });
    }
}

/// Runs `f` while `count` other threads of the pool may run `help`. Those that have not begun when `f` is done find nothing to do.
fn with_helpers<R: Send>(count: usize, help: &(impl Fn() + Sync), f: impl FnOnce() -> R + Send) -> R {
    // Not recursive in `f`: each level would be a type of its own.
    let mut f = Some(f);
    let mut result = None;
    helped(count, help, &mut || result = f.take().map(|f| f()));
    match result {
        Some(result) => result,
        None => unreachable!("`helped` calls it once"),
    }
}

fn helped(count: usize, help: &(impl Fn() + Sync), f: &mut (dyn FnMut() + Send)) {
    match count {
        0 => f(),
        _ => drop(rayon::join(|| helped(count - 1, help, f), help)),
    }
}

/// Runs `f`, the caller's, while `count` other threads look for work.
fn with_lookers<R: Send>(count: usize, done: &AtomicBool, caller: Option<usize>, f: impl FnOnce() -> R + Send) -> R {
    let look = || {
        // The caller meets those that nobody has taken.
        if rayon::current_thread_index() != caller {
            look_for_work(done);
        }
    };
    with_helpers(count, &look, f)
}

/// Runs others' tasks until all is done, or there has been none for [`SPIN`].
fn look_for_work(done: &AtomicBool) {
    let mut since = Instant::now();
    while !done.load(Ordering::Acquire) && since.elapsed() < SPIN {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => since = Instant::now(),
            _ => std::thread::yield_now(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_a_stall_if_it_is_longer_than_a_task_can_take() {
        let us = Duration::from_micros;
        assert!(!is_stalled(us(100), 2, us(300)), "two tasks of 50 us");
        assert!(is_stalled(us(100), 2, us(3000)));
        assert!(
            !is_stalled(us(20_000), 2, us(15_000)),
            "the helper began its last task when the caller ended"
        );
        assert!(is_stalled(Duration::ZERO, 0, us(301)));
    }

    #[test]
    fn the_caller_works_alone_after_two_stalls_and_longer_if_it_was_right() {
        let ms = Duration::from_millis;
        let mut stalls = Stalls::default();
        assert_eq!(stalls.note(ms(0)), None);
        assert_eq!(stalls.note(ms(500)), None, "long after the other");
        assert_eq!(stalls.note(ms(510)), Some(ms(560)));
        assert_eq!(stalls.note(ms(565)), None);
        assert_eq!(stalls.note(ms(570)), Some(ms(670)), "twice as long");
        let mut now = ms(670);
        for _ in 0..10 {
            stalls.note(now);
            now = stalls.note(now + ms(5)).unwrap();
        }
        stalls.note(now);
        assert_eq!(stalls.note(now + ms(5)), Some(now + ms(805)));
        stalls.note(now + ms(5000));
        assert_eq!(
            stalls.note(now + ms(5001)),
            Some(now + ms(5051)),
            "the load was gone for a while"
        );
    }

    #[test]
    fn every_task_is_done_with_helpers_and_alone() {
        let threads = Threads::new(3);
        for alone in [false, true] {
            if alone {
                let pool = threads.pool.as_ref().expect("three threads");
                pool.alone.note_stall();
                pool.alone.note_stall();
            }
            let sum = AtomicUsize::new(0);
            let mut of_threads = [0; 3];
            threads.each(1..=100, 100, of_threads.iter_mut(), |own, n: usize| {
                **own += n;
                sum.fetch_add(n, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 5050);
            assert_eq!(of_threads.iter().sum::<usize>(), 5050);
        }
    }

    #[test]
    fn ops_within_the_pool_share_out_their_work_too() {
        let threads = Threads::new(2);
        for _ in 0..100 {
            let mut out = vec![0.0; 4 * WORTH_A_THREAD];
            let rows = threads.enter(|| {
                threads.by_rows(&mut out, 4, 4, |first, piece| {
                    for (row, values) in piece.chunks_mut(4).enumerate() {
                        values.fill((first + row) as f32);
                    }
                });
                out.len() / 4
            });
            assert!((0..rows).all(|row| out[4 * row..4 * row + 4] == [row as f32; 4]));
        }
    }
}
