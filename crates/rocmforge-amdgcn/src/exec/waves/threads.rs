//! One launch on several host threads, with the result of one.
//!
//! Workgroups are independent but for what they read and write in common. Each thread runs a fixed share of them, one after
//! the other in their usual order, on a copy-on-write view of the card's memory; what they wrote is then put together. The
//! result is taken only if nothing can tell it from that of one thread: no two shares changed the same byte, nothing was
//! wrong, and the kernel has no atomics on global memory and calls nothing. Else the launch runs again on one thread.
//!
//! Whether that is faster than one thread depends on how much the kernel writes: [`crate::costs`] compares.
//!
//! What is left is a workgroup that reads what an earlier one of another share has written without atomics. That is a race,
//! which racecheck reports; racecheck itself always runs on one thread.

use crate::counters::Counters;
use crate::dispatch::{Dispatch, Outcome, Status};
use crate::exec::checks::count::Touched;
use crate::exec::waves::group::run_part;
use crate::footprint::Footprint;
use crate::memory::{GlobalMemory, Views};
use std::ops::Range;

/// Instructions that a launch has to have for each thread. Below, starting a thread and putting its writes together takes longer than
/// the instructions: measured with the kernels of `benches/interpreter.rs`.
const WORTH: u64 = 1 << 15;

/// Instructions that a launch is going to take. A kernel that is new counts as if each wave took 256.
fn cost(dispatch: &Dispatch<'_>) -> u64 {
    let known = dispatch.program.costs.of_group(dispatch.kernel.entry);
    let waves = dispatch
        .block
        .iter()
        .map(|&size| u64::from(size))
        .product::<u64>()
        .div_ceil(32);
    known.unwrap_or(waves * 256).saturating_mul(dispatch.groups())
}

/// Runs a launch on several threads; `None` when one thread has to do it, with the memory untouched.
pub(crate) fn run(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory) -> Option<Outcome> {
    let groups = dispatch.groups();
    let worth = cost(dispatch) / WORTH;
    let threads = (dispatch.options.threads as u64).min(groups).min(worth);
    let shared = dispatch.program.code.shares(dispatch.kernel.entry);
    if threads < 2 || dispatch.options.tools.racecheck || shared {
        return None;
    }
    let mut views = Views::take(memory, threads as usize)?;
    let views_of_shares = &mut views.all()[..threads as usize];
    let parts = run_shares(dispatch, views_of_shares);
    let instructions = parts.iter().flatten().map(|(outcome, _)| outcome.instructions).sum();
    let parts = parts
        .into_iter()
        .collect::<Option<Vec<_>>>()
        .filter(|_| instructions <= dispatch.options.instruction_budget)
        .filter(|_| memory.merge(views_of_shares));
    views.put_back(memory);
    let parts = parts?;
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

/// Runs a share of the workgroups in each view, the first on this thread; `None` for one that did not complete.
fn run_shares(dispatch: &Dispatch<'_>, views: &mut [GlobalMemory]) -> Vec<Option<(Outcome, Touched)>> {
    let (groups, threads) = (dispatch.groups(), views.len() as u64);
    let run = |view: &mut GlobalMemory, share: Range<u64>| {
        let part = run_part(dispatch, view, None, share);
        (part.0.status == Status::Completed).then_some(part)
    };
    std::thread::scope(|scope| {
        let mut shares = views
            .iter_mut()
            .zip((0..threads).map(|n| groups * n / threads..groups * (n + 1) / threads));
        let first = shares.next();
        let others: Vec<_> = shares
            .map(|(view, share)| scope.spawn(move || run(view, share)))
            .collect();
        let first = first.map(|(view, share)| run(view, share));
        let others = others.into_iter().map(|share| share.join().ok().flatten());
        first.into_iter().chain(others).collect()
    })
}
