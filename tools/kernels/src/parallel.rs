//! Jobs on all processors.

use crate::KernelsError;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Does every job, on all processors, until one fails; the results are in the order of the jobs.
pub(crate) fn in_parallel<J: Sync, T: Send>(
    jobs: &[J],
    work: impl Fn(&J) -> Result<T, KernelsError> + Sync,
) -> Result<Vec<T>, KernelsError> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, T)>> = Mutex::default();
    let failure: Mutex<Option<KernelsError>> = Mutex::default();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    if failure.lock().expect("no worker panics").is_some() {
                        return;
                    }
                    match work(job) {
                        Ok(result) => done.lock().expect("no worker panics").push((index, result)),
                        Err(error) => *failure.lock().expect("no worker panics") = Some(error),
                    }
                }
            });
        }
    });
    if let Some(error) = failure.into_inner().expect("no worker panics") {
        return Err(error);
    }
    let mut done = done.into_inner().expect("no worker panics");
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}
