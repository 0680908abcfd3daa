//! Threads of the CPU backend: a pool whose threads spin for a moment between ops, then sleep, and that is left alone for a while when
//! other programs keep its threads from running.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Below this many element visits another thread costs more than it saves (starting one takes some 5 us).
pub(super) const WORTH_A_THREAD: usize = 32 * 1024;

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

thread_local! {
    /// Whether this helper already looks for more work.
    static SPINS: Cell<bool> = const { Cell::new(false) };
}

/// The threads that share out one op: the caller and a pool of helpers.
#[derive(Clone)]
pub(super) struct Threads {
    /// `None` for one thread, or where the system gives no more.
    helpers: Option<Arc<rayon::ThreadPool>>,
    alone: Arc<Alone>,
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
    /// `count` threads with the caller's; 0 counts as 1.
    pub(super) fn new(count: usize) -> Self {
        let builder = rayon::ThreadPoolBuilder::new()
            .num_threads(count.saturating_sub(1))
            .thread_name(|index| format!("rocmforge-cpu-{index}"));
        let helpers = (count > 1).then(|| builder.build().ok().map(Arc::new)).flatten();
        let alone = Alone {
            start: Instant::now(),
            until: AtomicU64::new(0),
            stalls: Mutex::default(),
        };
        Self {
            helpers,
            alone: Arc::new(alone),
        }
    }

    pub(super) fn count(&self) -> usize {
        1 + self.helpers.as_ref().map_or(0, |pool| pool.current_num_threads())
    }

    /// How many threads `rows` rows are worth, each of so many element visits; at least 1.
    pub(super) fn worth(&self, rows: usize, cost_per_row: usize) -> usize {
        (rows.saturating_mul(cost_per_row) / WORTH_A_THREAD).clamp(1, self.count())
    }

    /// Runs `work` on every task. Each thread takes the next task when it is done with one.
    pub(super) fn each<T: Send>(&self, tasks: Vec<T>, work: impl Fn(T) + Sync) {
        let helpers = match &self.helpers {
            Some(pool) if tasks.len() > 1 && !self.alone.is_on() => pool,
            _ => return tasks.into_iter().for_each(work),
        };
        let wanted = helpers.current_num_threads().min(tasks.len() - 1);
        let queue = Mutex::new(tasks.into_iter());
        let drain = || {
            let mut done = 0;
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                match next {
                    Some(task) => work(task),
                    None => return done,
                }
                done += 1;
            }
        };
        let drain = &drain;
        let begin = Instant::now();
        let running = &AtomicUsize::new(wanted);
        let (mut own, mut worked) = (0, Duration::ZERO);
        helpers.in_place_scope(|scope| {
            for _ in 0..wanted {
                scope.spawn(move |_| {
                    drain();
                    if !SPINS.get() {
                        rayon::spawn(look_for_work);
                    }
                    running.fetch_sub(1, Ordering::Release);
                });
            }
            own = drain();
            worked = begin.elapsed();
            // The scope would sleep until the last helper is done, which is usually soon.
            let since = Instant::now();
            while running.load(Ordering::Acquire) > 0 && since.elapsed() < SPIN {
                std::hint::spin_loop();
            }
        });
        if is_stalled(worked, own, begin.elapsed().saturating_sub(worked)) {
            self.alone.note_stall();
        }
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
        if row == 0 || out.is_empty() {
            return;
        }
        let rows_each = self.rows_each(out.len() / row, cost_per_row);
        let tasks: Vec<(usize, &mut [f32])> = out
            .chunks_mut(rows_each * row)
            .enumerate()
            .map(|(i, piece)| (i * rows_each, piece))
            .collect();
        self.each(tasks, |(first, piece)| work(first, piece));
    }
}

/// Runs a helper's further tasks until there has been none for [`SPIN`].
fn look_for_work() {
    SPINS.set(true);
    let mut since = Instant::now();
    while since.elapsed() < SPIN {
        match rayon::yield_now() {
            Some(rayon::Yield::Executed) => since = Instant::now(),
            _ => std::thread::yield_now(),
        }
    }
    SPINS.set(false);
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
                threads.alone.note_stall();
                threads.alone.note_stall();
            }
            let sum = AtomicUsize::new(0);
            threads.each((1..=100).collect(), |n: usize| {
                sum.fetch_add(n, Ordering::Relaxed);
            });
            assert_eq!(sum.into_inner(), 5050);
        }
    }
}
