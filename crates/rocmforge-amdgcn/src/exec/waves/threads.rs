//! One launch on several host threads, with the result of one.
//!
//! Workgroups are independent but for what they read and write in common. Each thread runs a fixed part of them, one after
//! the other in their usual order, on a share of the card's memory ([`crate::shares`]). The result is taken only if nothing can
//! tell it from that of one thread: no two shares changed the same byte, nothing was wrong, and the kernel has no atomics on
//! global memory and calls nothing. Else memory is put back and the launch runs again on one thread.
//!
//! Whether that is faster than one thread depends on where the parts write: [`crate::costs`] compares.
//!
//! What is left is a workgroup that reads what an earlier one of another share has written without atomics. That is a race,
//! which racecheck reports; racecheck itself always runs on one thread.

use crate::claims::MOST_SHARES;
use crate::counters::Counters;
use crate::dispatch::{Dispatch, Outcome, Status};
use crate::exec::checks::count::Touched;
use crate::exec::waves::group::run_part;
use crate::footprint::Footprint;
use crate::memory::{GlobalMemory, Shares};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Seconds that a launch has to take for each thread. Below, waking a thread and putting its writes together takes longer than the
/// launch: measured with the kernels of `benches/interpreter.rs`.
const WORTH: f64 = 50e-6;
/// Waves that take so long, of a kernel that is new.
const WAVES: u64 = 1 << 6;

/// Threads that a launch of so many waves is worth. `expected`: the seconds that it is going to take, if that is known.
fn worth(expected: Option<f64>, waves: u64) -> u64 {
    match expected {
        Some(seconds) => (seconds / WORTH) as u64,
        None => waves / WAVES,
    }
}

/// Runs a launch on several threads; `None` when one thread has to do it, with the memory untouched.
pub(crate) fn run(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory) -> Option<Outcome> {
    let groups = dispatch.groups();
    let lanes = dispatch.block.iter().map(|&size| u64::from(size)).product::<u64>();
    let waves = lanes.div_ceil(32).saturating_mul(groups);
    let expected = dispatch.program.costs.expected(dispatch.kernel.entry, groups);
    let threads = (dispatch.options.threads.min(MOST_SHARES) as u64)
        .min(groups)
        .min(worth(expected, waves));
    let shared = dispatch.program.code.shares(dispatch.kernel.entry);
    if threads < 2 || dispatch.options.tools.racecheck || shared {
        return None;
    }
    // SAFETY: until `end` only the shares access the memory, to which this function has the only reference.
    let mut shares = unsafe { Shares::take(memory, threads as usize) }?;
    let parts = run_parts(dispatch, &mut shares, threads as usize);
    let instructions = parts.iter().flatten().map(|(outcome, _)| outcome.instructions).sum();
    let parts = parts
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .filter(|_| instructions <= dispatch.options.instruction_budget);
    if !shares.end(memory, parts.is_some()) {
        return None;
    }
    let parts = parts?;
    let (mut counters, mut touched) = (Counters::default(), Touched::default());
    for (outcome, part) in &parts {
        counters.add(&outcome.counters);
        touched.add(part);
    }
    touched.count(&mut counters);
    Some(Outcome {
        faults: Vec::new(),
        instructions,
        status: Status::Completed,
        counters,
        footprint: Footprint::default(),
        clock_ns: parts.iter().map(|(outcome, _)| outcome.clock_ns).max().unwrap_or(0),
    })
}

/// Runs a part of the workgroups in each of some shares of memory, the first on this thread; `None` for one that did not complete.
fn run_parts(dispatch: &Dispatch<'_>, shares: &mut Shares, count: usize) -> Vec<Option<(Outcome, Touched)>> {
    let mut parts = Vec::new();
    parts.resize_with(count, || None);
    let Some((workers, shares)) = shares.with_workers(count) else {
        return parts;
    };
    let (groups, threads) = (dispatch.groups(), count as u64);
    let run = |share: &mut GlobalMemory, number: u64| {
        let groups = groups * number / threads..groups * (number + 1) / threads;
        let part = catch_unwind(AssertUnwindSafe(|| run_part(dispatch, share, None, groups)));
        part.ok().filter(|(outcome, _)| outcome.status == Status::Completed)
    };
    workers.in_place_scope(|scope| {
        let mut numbered = parts.iter_mut().zip(shares).zip(0..);
        let first = numbered.next();
        for ((part, share), number) in numbered {
            scope.spawn(move |_| *part = run(share, number));
        }
        if let Some(((part, share), number)) = first {
            *part = run(share, number);
        }
    });
    parts
}

#[cfg(test)]
mod tests {
    use super::worth;

    #[test]
    fn a_launch_that_is_known_to_be_short_is_worth_one_thread() {
        assert_eq!(worth(Some(99e-6), 1 << 20), 1);
        assert_eq!(worth(Some(101e-6), 1), 2);
        assert_eq!(worth(Some(1e300), 1), u64::MAX);
    }

    #[test]
    fn a_new_kernel_is_judged_by_its_waves() {
        assert_eq!(worth(None, 8), 0);
        assert_eq!(worth(None, 128), 2);
    }
}
