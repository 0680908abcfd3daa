//! Part: the outcome of some workgroups of a launch.

use crate::counters::Counters;
use crate::dispatch::{Outcome, Status};
use crate::exec::checks::count::Touched;
use crate::exec::state::variables::VariableAccesses;
use crate::fault::Fault;
use crate::footprint::Footprint;
use crate::program::Program;

/// See the module.
pub(crate) struct Part {
    /// Without the numbers of distinct segments, which only all parts together have.
    outcome: Outcome,
    touched: Touched,
    variable_accesses: VariableAccesses,
}

impl Part {
    /// One with these segments of memory and variables.
    pub(crate) fn new(outcome: Outcome, touched: Touched, variable_accesses: VariableAccesses) -> Self {
        Self {
            outcome,
            touched,
            variable_accesses,
        }
    }

    /// No workgroups.
    pub(crate) fn none() -> Self {
        let outcome = Outcome {
            faults: Vec::new(),
            warnings: Vec::new(),
            instructions: 0,
            status: Status::Completed,
            counters: Counters::default(),
            footprint: Footprint::default(),
            clock_ns: 0,
        };
        Self::new(outcome, Touched::default(), VariableAccesses::default())
    }

    /// Whether all its waves ended and nothing was wrong.
    pub(crate) fn completed(&self) -> bool {
        self.outcome.status == Status::Completed
    }

    /// Wave instructions executed.
    pub(crate) fn instructions(&self) -> u64 {
        self.outcome.instructions
    }

    /// Adds workgroups that ran after these, all of which completed, or beside them.
    pub(crate) fn add(&mut self, other: Self) {
        let Outcome {
            faults,
            warnings,
            instructions,
            status,
            counters,
            footprint,
            clock_ns,
        } = other.outcome;
        let sum = &mut self.outcome;
        sum.faults.extend(faults);
        sum.warnings.extend(warnings);
        sum.instructions += instructions;
        sum.status = status;
        sum.counters.add(&counters);
        sum.footprint = footprint;
        sum.clock_ns = sum.clock_ns.max(clock_ns);
        self.touched.add(&other.touched);
        self.variable_accesses.add(other.variable_accesses);
    }

    /// The outcome of the whole launch, with at most `most` faults.
    pub(crate) fn into_outcome(self, program: &Program, most: usize) -> Outcome {
        let mut outcome = self.outcome;
        self.touched.count(&mut outcome.counters);
        let same = |a: &Fault, b: &Fault| (a.kind, a.pc) == (b.kind, b.pc);
        for fault in program.code.variables.faults(&self.variable_accesses) {
            if let Some(before) = outcome.faults.iter_mut().find(|before| same(before, &fault)) {
                before.count += fault.count;
                if before.note.is_empty() {
                    before.note = fault.note;
                }
            } else if outcome.faults.len() < most {
                let frames = program.frames(fault.pc);
                outcome.faults.push(Fault { frames, ..fault });
            }
        }
        for mut warning in std::mem::take(&mut outcome.warnings) {
            if let Some(before) = outcome.warnings.iter_mut().find(|before| same(before, &warning)) {
                before.count += warning.count;
            } else if !outcome.faults.iter().any(|fault| same(fault, &warning)) {
                warning.frames = program.stack(warning.pc, &warning.calls);
                if let Some(other) = &mut warning.other {
                    other.frames = program.stack(other.pc, &other.calls);
                }
                outcome.warnings.push(warning);
            }
        }
        if outcome.status == Status::Completed && !outcome.faults.is_empty() {
            outcome.status = Status::Faulted;
        }
        outcome
    }
}
