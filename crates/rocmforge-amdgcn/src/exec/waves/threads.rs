//! One launch on several host threads, with the result of one.
//!
//! Workgroups are independent except for what they read and write in common. A launch runs in rounds: in each, every thread runs a fixed part
//! of the next workgroups, one after the other in their usual order, on a share of the card's memory ([`crate::shares`]). Memory takes over
//! what a round has written only if nothing can tell it from the result of one thread: no two shares changed the same byte, nothing was
//! wrong, and the kernel has no atomics on global memory and calls nothing. Else memory is put back to what it was before the round, and
//! one thread runs all workgroups that are left.
//!
//! What a round writes is copied before. A round is so short that the copies stay in the caches of the cores.
//!
//! Whether that is faster than one thread depends on where the parts write: [`crate::costs`] compares.
//!
//! What is left is a workgroup that reads what an earlier one of another share has written without atomics. That is a race,
//! which racecheck reports; racecheck itself always runs on one thread.

use crate::claims::MOST_SHARES;
use crate::dispatch::Dispatch;
use crate::exec::waves::group::run_part;
use crate::exec::waves::part::Part;
use crate::memory::{GlobalMemory, Shares};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Workgroups of a launch's first round, for each thread.
const FIRST_ROUND: u64 = 128;
/// Chunks of 4 KiB that a thread should write in a round, at most: so many copies stay in the caches of a core.
const WRITTEN: u64 = 128;
/// How often a waiting thread looks before it gives its core to others in between: some tens of microseconds.
const SPINS: u32 = 1 << 10;
/// How often it looks before it sleeps in between. To be woken takes as long as a short launch.
const YIELDS: u32 = 1 << 11;
/// Number of the round after the last.
const ENDED: u64 = u64::MAX;

/// Threads that a launch may run on and is worth.
pub(crate) fn wanted(dispatch: &Dispatch<'_>) -> usize {
    let shared = dispatch.program.code.shares(dispatch.kernel.entry);
    if dispatch.options.tools.racecheck || shared {
        return 1;
    }
    let groups = dispatch.groups();
    let lanes = dispatch.block.iter().map(|&size| u64::from(size)).product::<u64>();
    let waves = lanes.div_ceil(32).saturating_mul(groups);
    let worth = dispatch.program.costs.threads(dispatch.kernel.entry, groups, waves);
    let most = dispatch.options.threads.min(MOST_SHARES) as u64;
    most.min(groups).min(worth) as usize
}

/// Runs workgroups of a launch on `threads` threads, two or more. Those from the place on that is returned are left: one thread has to run
/// them, with the memory as the others have left it.
pub(crate) fn run(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory, threads: usize) -> (Part, u64) {
    // SAFETY: this function has the only reference to the memory, and accesses it only by `commit` until `give_back`.
    let Some(shares) = (unsafe { Shares::take(memory, threads) }) else {
        return (Part::none(), 0);
    };
    let rounds = Rounds {
        dispatch,
        shares: &shares,
        threads: threads as u64,
        round: AtomicU64::new(0),
        groups: Mutex::new(0..0),
        running: AtomicUsize::new(0),
        serving: AtomicUsize::new(threads - 1),
        parts: Mutex::new(Vec::new()),
    };
    let done = shares.workers().in_place_scope(|scope| {
        let rounds = &rounds;
        (1..threads as u64).for_each(|number| scope.spawn(move |_| rounds.serve(number)));
        rounds.lead(memory)
    });
    shares.give_back(memory);
    done
}

/// The rounds of a launch: the state that its threads share.
struct Rounds<'a> {
    dispatch: &'a Dispatch<'a>,
    shares: &'a Shares,
    threads: u64,
    /// Number of the round that runs, from 1 on; [`ENDED`] after the last.
    round: AtomicU64,
    /// Its workgroups.
    groups: Mutex<Range<u64>>,
    /// Threads beside the calling one that have not ended their part of it.
    running: AtomicUsize,
    /// Threads beside the calling one that have not ended.
    serving: AtomicUsize,
    /// What they have run in it.
    parts: Mutex<Vec<Option<Part>>>,
}

impl Rounds<'_> {
    /// Begins and ends all rounds, on the calling thread. Returns what [`run`] returns.
    fn lead(&self, memory: &mut GlobalMemory) -> (Part, u64) {
        // Also after a panic, so that the other threads end.
        let _end = End(self);
        let (mut done, mut place, all) = (Part::none(), 0u64, self.dispatch.groups());
        let mut size = FIRST_ROUND * self.threads;
        for round in 1.. {
            let groups = place..all.min(place.saturating_add(size));
            if groups.is_empty() {
                break;
            }
            locked(&self.groups).clone_from(&groups);
            self.running.store(self.threads as usize - 1, Ordering::Relaxed);
            self.round.store(round, Ordering::Release);
            let first = self.part(0);
            wait(|| self.running.load(Ordering::Acquire) == 0);
            let others = std::mem::take(&mut *locked(&self.parts));
            let parts: Option<Vec<Part>> = others.into_iter().chain([first]).collect();
            let budget = self.dispatch.options.instruction_budget - done.instructions();
            let parts = parts.filter(|parts| parts.iter().map(Part::instructions).sum::<u64>() <= budget);
            let written = self.shares.commit(memory, parts.is_some());
            let (Some(parts), Some(written)) = (parts, written) else {
                break;
            };
            parts.into_iter().for_each(|part| done.add(part));
            place = groups.end;
            size = next_size(groups.end - groups.start, written).max(self.threads);
        }
        (done, place)
    }

    /// Runs a thread's part of each round, until there are no more.
    fn serve(&self, number: u64) {
        let mut round = 0;
        loop {
            wait(|| self.round.load(Ordering::Acquire) != round);
            round = self.round.load(Ordering::Acquire);
            if round == ENDED {
                break;
            }
            let part = self.part(number);
            locked(&self.parts).push(part);
            self.running.fetch_sub(1, Ordering::Release);
        }
        self.serving.fetch_sub(1, Ordering::Release);
    }

    /// Runs a thread's part of the round; `None` if it did not complete.
    fn part(&self, number: u64) -> Option<Part> {
        let Range { start, end } = locked(&self.groups).clone();
        let at = |number: u64| start + (end - start) * number / self.threads;
        let mut share = self.shares.share(number as usize);
        let groups = at(number)..at(number + 1);
        let part = catch_unwind(AssertUnwindSafe(|| run_part(self.dispatch, &mut share, None, groups)));
        part.ok().filter(Part::completed)
    }
}

/// Ends the rounds when it is dropped, also by a panic, and waits for their threads.
struct End<'a>(&'a Rounds<'a>);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.round.store(ENDED, Ordering::Release);
        // The scope waits for them as well, but asleep: waking takes longer than they do.
        wait(|| self.0.serving.load(Ordering::Acquire) == 0);
    }
}

/// Workgroups of the next round after one of `size`, in which the thread that wrote most has written to so many chunks.
fn next_size(size: u64, written: u64) -> u64 {
    size.saturating_mul(WRITTEN) / written.max(WRITTEN / 4)
}

/// Waits for what another thread of the launch does. It has no deadline of its own: a part ends with its instruction budget.
fn wait(until: impl Fn() -> bool) {
    let mut looks = 0u32;
    while !until() {
        match looks {
            0..SPINS => std::hint::spin_loop(),
            SPINS..YIELDS => std::thread::yield_now(),
            _ => std::thread::sleep(Duration::from_micros(50)),
        }
        looks = looks.saturating_add(1);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::{WRITTEN, next_size};

    #[test]
    fn a_round_is_as_long_as_its_copies_may_be() {
        assert_eq!(next_size(256, WRITTEN), 256);
        assert_eq!(next_size(256, 4 * WRITTEN), 64);
        assert_eq!(next_size(256, WRITTEN / 2), 512);
        assert_eq!(next_size(256, 0), 1024, "what writes little may write more later");
        assert_eq!(next_size(u64::MAX, 0), u64::MAX / (WRITTEN / 4));
        assert_eq!(next_size(2, 1 << 20), 0, "each thread has a workgroup all the same");
    }
}
