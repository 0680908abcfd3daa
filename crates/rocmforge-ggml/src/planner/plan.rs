//! Plan: the buffers, and each item's place in them.

use super::bodies::{Bodies, NONE};
use super::place::place;
use super::{PlanError, Problem, verify};

/// Where an item lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Index in [`Plan::buffers`].
    pub buffer: u32,
    /// First byte in the buffer.
    pub offset: usize,
    /// The item that it overwrites, if any.
    pub over: Option<u32>,
    /// Index in [`Problem::pairs`] of the pair that allows it.
    pub pair: Option<u32>,
}

/// A buffer that items share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Index in [`Problem::kinds`].
    pub kind: u32,
    /// Its size.
    pub bytes: usize,
}

/// A verified placement of all items of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The buffers.
    pub buffers: Vec<Buffer>,
    /// Place of each item.
    pub places: Vec<Place>,
    /// Bytes of all buffers.
    pub peak_bytes: usize,
    /// Lower bound of the bytes that any placement takes in this order of nodes: for each kind of buffer the largest sum, over the
    /// nodes, of the sizes (rounded up to the kind's alignment) of the items that live at the node, where an item and the one it
    /// overwrites count once, with the larger size; and the sum over the kinds. Each item overwrites another if a pair allows it (the first
    /// whose item no other overwrites), which saves its size at its first node and changes nothing elsewhere. The plan may do without
    /// pairs where they save nothing.
    pub bound_bytes: usize,
}

impl Plan {
    /// Plans and verifies.
    ///
    /// # Errors
    /// The problem contradicts itself, or the placement does not pass verification, which would be a fault of the planner.
    pub fn new(problem: &Problem) -> Result<Self, PlanError> {
        problem.check()?;
        let mut bodies = Bodies::new(problem);
        let mut placement = place(problem, &bodies);
        if placement.peak > bodies.bound {
            let cut = bodies.cut(problem);
            let other = place(problem, &cut);
            if other.peak < placement.peak {
                (bodies, placement) = (cut, other);
            }
        }
        let places = (0..problem.items.len())
            .map(|item| {
                let (buffer, offset) = placement.places[bodies.of_item[item] as usize];
                let pair = bodies.pair[item];
                Place {
                    buffer,
                    offset,
                    over: (bodies.over[item] != NONE).then_some(bodies.over[item]),
                    pair: (pair != NONE).then_some(pair),
                }
            })
            .collect();
        let plan = Self {
            buffers: placement
                .buffers
                .iter()
                .map(|&(kind, bytes)| Buffer { kind, bytes })
                .collect(),
            places,
            peak_bytes: placement.peak,
            bound_bytes: bodies.bound,
        };
        verify(problem, &plan)?;
        Ok(plan)
    }

    /// Bytes of the buffers of one kind.
    #[must_use]
    pub fn kind_bytes(&self, kind: u32) -> usize {
        let own = self.buffers.iter().filter(|buffer| buffer.kind == kind);
        own.map(|buffer| buffer.bytes).sum()
    }
}

/// Keeps the last plan, and uses it again while it fits.
#[derive(Clone, Debug, Default)]
pub struct Planner {
    last: Option<(Problem, Plan)>,
    planned: usize,
}

impl Planner {
    /// No plan yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The plan of a problem: the last one if the problem has the same lives, kinds and pairs and no item is larger, else a new one.
    ///
    /// # Errors
    /// As [`Plan::new`]; the last plan is kept.
    pub fn plan(&mut self, problem: &Problem) -> Result<&Plan, PlanError> {
        problem.check()?;
        let last = match self.last.take_if(|(planned, _)| fits(planned, problem)) {
            Some(last) => last,
            None => {
                let plan = Plan::new(problem)?;
                self.planned += 1;
                (problem.clone(), plan)
            }
        };
        Ok(&self.last.insert(last).1)
    }

    /// How often a plan was made.
    #[must_use]
    pub const fn planned(&self) -> usize {
        self.planned
    }
}

/// Whether the places of one problem hold for another.
fn fits(planned: &Problem, problem: &Problem) -> bool {
    planned.nodes == problem.nodes
        && planned.kinds == problem.kinds
        && planned.pairs == problem.pairs
        && planned.pairs_across_kinds == problem.pairs_across_kinds
        && planned.items.len() == problem.items.len()
        && planned.items.iter().zip(&problem.items).all(|(a, b)| {
            b.bytes <= a.bytes && (a.alignment, a.first, a.last, a.kind) == (b.alignment, b.first, b.last, b.kind)
        })
}
