//! Executes a launch: on several host threads where that is wanted and can be, else on this one.

use crate::attend::Attendant;
use crate::dispatch::{Dispatch, Outcome};
use crate::exec::waves::group::run_part;
use crate::exec::waves::threads;
use crate::memory::GlobalMemory;

/// Runs a launch to its end on the calling thread.
///
/// A faulting lane's access is suppressed (loads give [`POISON`](crate::fault::POISON)) and execution goes on, so one launch can
/// report several faults. The same dispatch on the same memory gives the same outcome, bit for bit.
pub fn execute(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory) -> Outcome {
    match dispatch.refuse() {
        Some(note) => dispatch.refused(note),
        None => run(dispatch, memory, None),
    }
}

/// The same with somebody who serves what the kernel asks of the host while it runs. [`ExecOptions::threads`](crate::ExecOptions::threads) is not used.
pub fn execute_attended(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory, attendant: &mut dyn Attendant) -> Outcome {
    match dispatch.refuse() {
        Some(note) => dispatch.refused(note),
        None => run(dispatch, memory, Some(attendant)),
    }
}
/// Runs a launch whose geometry has been checked.
fn run(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory, attendant: Option<&mut dyn Attendant>) -> Outcome {
    if dispatch.options.threads > 1
        && attendant.is_none()
        && let Some(outcome) = threads::run(dispatch, memory)
    {
        note(dispatch, &outcome);
        return outcome;
    }
    let groups = dispatch.groups();
    let (mut outcome, touched) = run_part(dispatch, memory, attendant, 0..groups);
    touched.count(&mut outcome.counters);
    note(dispatch, &outcome);
    outcome
}

/// Notes what the launch took, for the choice of threads in the next one.
fn note(dispatch: &Dispatch<'_>, outcome: &Outcome) {
    let costs = &dispatch.program.costs;
    costs.note(dispatch.kernel.entry, outcome.instructions, dispatch.groups());
}
