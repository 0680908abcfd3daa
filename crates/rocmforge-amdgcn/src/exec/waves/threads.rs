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

/// Runs a launch on `threads` threads, two or more; `None` when one thread has to do it, with the memory untouched.
pub(crate) fn run(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory, threads: usize) -> Option<Outcome> {
    // SAFETY: until `end` only the shares access the memory, to which this function has the only reference.
    let mut shares = unsafe { Shares::take(memory, threads) }?;
    let parts = run_parts(dispatch, &mut shares, threads);
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
