//! Threads of the CPU backend: a pool whose threads spin for a moment between ops, then sleep.

use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Below this many element visits another thread costs more than it saves (starting one takes some 5 us).
pub(super) const WORTH_A_THREAD: usize = 32 * 1024;

/// How long a thread without work looks for more before it sleeps. Waking it takes tens of microseconds, the op between two
/// products of a model usually less; and a program that computes nothing must not keep a core busy.
const SPIN: Duration = Duration::from_micros(100);

thread_local! {
    /// Whether this helper already looks for more work.
    static SPINS: Cell<bool> = const { Cell::new(false) };
}

/// The threads that share out one op: the caller and a pool of helpers.
#[derive(Clone)]
pub(super) struct Threads {
    /// `None` for one thread, or where the system gives no more.
    helpers: Option<Arc<rayon::ThreadPool>>,
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
        Self { helpers }
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
            Some(pool) if tasks.len() > 1 => pool,
            _ => return tasks.into_iter().for_each(work),
        };
        let wanted = helpers.current_num_threads().min(tasks.len() - 1);
        let queue = Mutex::new(tasks.into_iter());
        let drain = || {
            loop {
                let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                match next {
                    Some(task) => work(task),
                    None => return,
                }
            }
        };
        let drain = &drain;
        let running = &AtomicUsize::new(wanted);
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
            drain();
            // The scope would sleep until the last helper is done, which is usually soon.
            let since = Instant::now();
            while running.load(Ordering::Acquire) > 0 && since.elapsed() < SPIN {
                std::hint::spin_loop();
            }
        });
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
        let rows = out.len() / row;
        let worth = (rows.saturating_mul(cost_per_row) / WORTH_A_THREAD).max(1);
        // Twice as many pieces as threads: one that starts late takes fewer.
        let pieces = match self.count() {
            1 => 1,
            count => (2 * count).min(worth),
        };
        let rows_each = rows.div_ceil(pieces).max(1);
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
