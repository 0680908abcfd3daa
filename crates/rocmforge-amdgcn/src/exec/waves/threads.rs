//! One launch on several host threads, with the result of one.
//!
//! Workgroups are independent but for what they read and write in common. Each thread runs a fixed share of them, one after
//! the other in their usual order, on a copy-on-write view of the card's memory; what they wrote is then put together. The
//! result is taken only if nothing can tell it from that of one thread: no two shares changed the same byte, nothing was
//! wrong, and the kernel has no atomics on global memory and calls nothing. Else the launch runs again on one thread.
//!
//! What is left is a workgroup that reads what an earlier one of another share has written without atomics. That is a race,
//! which racecheck reports; racecheck itself always runs on one thread.

use crate::counters::Counters;
use crate::dispatch::{Dispatch, Outcome, Status};
use crate::exec::checks::count::Touched;
use crate::exec::waves::group::run_part;
use crate::footprint::Footprint;
use crate::memory::{GlobalMemory, Snapshot};
use std::ops::Range;

/// Runs a launch on several threads; `None` when one thread has to do it, with the memory untouched.
pub(crate) fn run(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory) -> Option<Outcome> {
    let groups = dispatch.groups();
    let threads = (dispatch.options.threads as u64).min(groups);
    let shared = dispatch.program.code.shares(dispatch.kernel.entry);
    if threads < 2 || dispatch.options.tools.racecheck || shared {
        return None;
    }
    let snapshot = Snapshot::take(memory)?;
    let shares: Vec<Range<u64>> = (0..threads)
        .map(|n| groups * n / threads..groups * (n + 1) / threads)
        .collect();
    let parts: Vec<Option<((Outcome, Touched), GlobalMemory)>> = std::thread::scope(|scope| {
        let handles: Vec<_> = shares
            .into_iter()
            .map(|share| {
                let snapshot = &snapshot;
                scope.spawn(move || {
                    let mut view = snapshot.view()?;
                    let part = run_part(dispatch, &mut view, None, share);
                    (part.0.status == Status::Completed).then_some((part, view))
                })
            })
            .collect();
        handles.into_iter().map(|handle| handle.join().ok().flatten()).collect()
    });
    let (parts, views): (Vec<(Outcome, Touched)>, Vec<GlobalMemory>) =
        parts.into_iter().collect::<Option<Vec<_>>>()?.into_iter().unzip();
    let instructions: u64 = parts.iter().map(|(outcome, _)| outcome.instructions).sum();
    if instructions > dispatch.options.instruction_budget || !memory.merge(&views) {
        return None;
    }
    let (mut counters, mut touched) = (Counters::default(), Touched::default());
    for (outcome, share) in &parts {
        counters.add(&outcome.counters);
        touched.add(share);
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
