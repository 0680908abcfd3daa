//! Executes a launch: on several host threads where that is wanted and can be, else on this one.

use crate::attend::Attendant;
use crate::dispatch::{Dispatch, Outcome};
use crate::exec::waves::group::run_part;
use crate::exec::waves::part::Part;
use crate::exec::waves::threads;
use crate::fault::FaultKind;
use crate::memory::GlobalMemory;
use std::time::Instant;

/// Runs a launch to its end on the calling thread.
///
/// A faulting lane's access is suppressed (loads give [`POISON`](crate::fault::POISON)) and execution goes on, so one launch can
/// report several faults. The same dispatch on the same memory gives the same outcome, bit for bit.
pub fn execute(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory) -> Outcome {
    match dispatch.refuse() {
        Some(note) => dispatch.refused(FaultKind::BadLaunch, note),
        None => run(dispatch, memory, None),
    }
}

/// The same with somebody who serves what the kernel asks of the host while it runs. [`ExecOptions::threads`](crate::ExecOptions::threads) is not used.
pub fn execute_attended(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory, attendant: &mut dyn Attendant) -> Outcome {
    match dispatch.refuse() {
        Some(note) => dispatch.refused(FaultKind::BadLaunch, note),
        None => run(dispatch, memory, Some(attendant)),
    }
}

/// Runs a launch whose geometry has been checked.
fn run(dispatch: &Dispatch<'_>, memory: &mut GlobalMemory, attendant: Option<&mut dyn Attendant>) -> Outcome {
    let most = dispatch.options.max_faults.max(1);
    if dispatch.options.threads < 2 || attendant.is_some() {
        return run_part(dispatch, memory, attendant, 0..dispatch.groups()).into_outcome(dispatch.program, most);
    }
    let threads = threads::wanted(dispatch);
    let several = threads > 1;
    let start = Instant::now();
    let (mut done, first_left) = if several {
        threads::run(dispatch, memory, threads)
    } else {
        (Part::none(), 0)
    };
    if first_left < dispatch.groups() {
        let mut rest = dispatch.clone();
        rest.options.instruction_budget -= done.instructions();
        done.add(run_part(&rest, memory, None, first_left..dispatch.groups()));
    }
    let costs = &dispatch.program.costs;
    costs.note(dispatch.kernel.entry, dispatch.groups(), start.elapsed(), several);
    done.into_outcome(dispatch.program, most)
}
