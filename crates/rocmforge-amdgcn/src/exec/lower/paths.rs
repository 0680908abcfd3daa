//! Data-flow solver: runs a [`Pass`] over all paths of a function until its states stop changing.

use crate::exec::lower::decoded::{Decoded, index_at};
use crate::exec::lower::values::{REGISTERS, SCALAR};
use rocmforge_isa::Flow;
use std::collections::HashMap;

/// Passes over a function at most.
const PASSES: usize = 16;
/// Targets of branches at most: a state is kept for each.
const TARGETS: usize = 4096;

/// What is known of 32 bits.
pub(super) trait Value: Copy + PartialEq {
    /// What is known of what is one of two.
    fn or(self, other: Self) -> Self;
}

/// What registers hold at one place of the code.
#[derive(Clone)]
pub(super) struct State<V> {
    pub(super) on: Vec<V>,
    /// In lanes that are off; scalar registers have none.
    pub(super) off: Vec<V>,
}

impl<V: Value> State<V> {
    /// All registers alike.
    pub(super) fn new(on: V, off: V) -> Self {
        Self {
            on: vec![on; REGISTERS],
            off: vec![off; SCALAR],
        }
    }

    /// Adds what is known at the end of another path. Gives whether that changed anything.
    fn join(&mut self, other: &Self) -> bool {
        let mut changed = false;
        let own = self.on.iter_mut().chain(&mut self.off);
        for (value, other) in own.zip(other.on.iter().chain(&other.off)) {
            let both = value.or(*other);
            changed |= both != *value;
            *value = both;
        }
        changed
    }

    /// Other lanes may be on from here.
    pub(super) fn change_lanes(&mut self) {
        for (on, off) in self.on.iter_mut().zip(&mut self.off) {
            *on = on.or(*off);
            *off = *on;
        }
    }
}

/// One analysis: its state, and the effect of each instruction on it.
pub(super) trait Pass {
    type Value: Value;

    /// Begins the next pass over the function. What the one before has found does not count.
    fn begin(&mut self);

    /// Applies instruction number `n` to the state. `None`: its effect is unknown, and the analysis gives up.
    fn step(&mut self, n: usize, state: &mut State<Self::Value>) -> Option<()>;

    /// Whether this pass has changed anything beside states.
    fn changed(&self) -> bool;
}

/// Goes through a function, which starts with this state, until nothing changes.
///
/// `None` if a branch leads out of the function, [`Pass::step`] gives that, or it takes too many passes.
pub(super) fn follow<P: Pass>(function: &[Decoded], start: &State<P::Value>, pass: &mut P) -> Option<()> {
    let mut entered: HashMap<usize, Option<State<P::Value>>> = HashMap::new();
    for pc in function.iter().filter_map(|at| at.inst.branch_target(at.pc)) {
        entered.insert(index_at(function, pc)?, None);
    }
    if entered.len() > TARGETS {
        return None;
    }
    for _ in 0..PASSES {
        pass.begin();
        let mut grew = false;
        let mut before = Some(start.clone());
        for (n, Decoded { inst, pc, .. }) in function.iter().enumerate() {
            if let Some(kept) = entered.get_mut(&n) {
                if let Some(state) = &before {
                    join(kept, state);
                }
                before.clone_from(kept);
            }
            // No path leads here.
            let Some(mut state) = before.take() else { continue };
            pass.step(n, &mut state)?;
            if let Some(target) = inst.branch_target(*pc).and_then(|pc| index_at(function, pc)) {
                let changed = join(entered.get_mut(&target)?, &state);
                grew |= changed && target <= n;
            }
            let goes_on = matches!(inst.op.facts().flow, Flow::Next | Flow::ConditionalBranch | Flow::Call);
            before = goes_on.then_some(state);
        }
        if !grew && !pass.changed() {
            return Some(());
        }
    }
    None
}

/// Adds a path to those that lead to an instruction; whether that changed anything.
fn join<V: Value>(kept: &mut Option<State<V>>, state: &State<V>) -> bool {
    if let Some(kept) = kept {
        return kept.join(state);
    }
    *kept = Some(state.clone());
    true
}
