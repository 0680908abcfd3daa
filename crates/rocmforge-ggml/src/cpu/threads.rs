//! Splits an op over threads that end with it.

use std::sync::{Mutex, PoisonError};

/// Below this many element visits a thread costs more than it saves (starting one takes some 20 us).
pub(super) const WORTH_A_THREAD: usize = 64 * 1024;

/// Runs `work` on every task, on at most `threads` threads. Each takes the next task when it is done with one; nobody
/// spins, so a busy machine costs waiting time and nothing else.
pub(super) fn parallel<T: Send>(threads: usize, tasks: Vec<T>, work: impl Fn(T) + Sync) {
    let threads = threads.min(tasks.len());
    if threads <= 1 {
        return tasks.into_iter().for_each(work);
    }
    let queue = Mutex::new(tasks.into_iter());
    let (queue, work) = (&queue, &work);
    let drain = move || {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            match next {
                Some(task) => work(task),
                None => return,
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(drain);
        }
        drain();
    });
}

/// Splits `out` into pieces of whole rows, with the index of each piece's first row, and runs `work` on them.
pub(super) fn by_rows(
    threads: usize,
    out: &mut [f32],
    row: usize,
    cost_per_row: usize,
    work: impl Fn(usize, &mut [f32]) + Sync,
) {
    if row == 0 || out.is_empty() {
        return;
    }
    let rows = out.len() / row;
    let pieces = threads.min(rows.saturating_mul(cost_per_row) / WORTH_A_THREAD).max(1);
    let rows_each = rows.div_ceil(pieces).max(1);
    let tasks: Vec<(usize, &mut [f32])> = out
        .chunks_mut(rows_each * row)
        .enumerate()
        .map(|(i, piece)| (i * rows_each, piece))
        .collect();
    parallel(threads, tasks, |(first, piece)| work(first, piece));
}
