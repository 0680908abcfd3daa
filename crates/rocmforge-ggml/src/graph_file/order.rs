//! Search for an order of the nodes that needs less memory.

use super::{GraphFile, Kind};
use crate::Op;
use crate::op::Output;
use crate::planner::{BufferKind, InPlace, Plan, PlanError};

/// Partial orders that are kept at each step.
const BEAM: usize = 8;
const NONE: u32 = u32::MAX;

/// An order of a file's nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundOrder {
    /// The step at which each of the file's nodes runs, for [`GraphFile::problem_in_order`].
    pub steps: Vec<u32>,
    /// The plan in that order.
    pub plan: Plan,
    /// Whether the order differs from the file's, because its plan is smaller.
    pub changed: bool,
    /// Bytes that every order takes: the most that one node needs at once, or all outputs.
    pub any_order_bytes: usize,
}

/// Looks for an order that needs less memory than the file's: a beam search over the nodes that are ready, by the peak so far and then by
/// what lives. Gives the file's own order if none is better.
///
/// An order keeps every edge from operand to node, and for memory that a node writes through a view (a KV cache) the order of its writes
/// and of writes and reads: there is no edge between them in the file.
///
/// # Errors
/// As [`Plan::new`].
pub fn search_order(file: &GraphFile, kind: BufferKind) -> Result<FoundOrder, PlanError> {
    let count = file.nodes.len() - file.leafs();
    let given: Vec<u32> = (0..count as u32).collect();
    // Planning checks that all sizes together fit in an address space: the search adds them up freely.
    let plan = Plan::new(&file.problem_in_order(&given, kind, InPlace::Full).problem)?;
    let search = Search::new(file, kind.alignment);
    let any_order_bytes = search.any_order_bytes();
    let own = FoundOrder {
        plan,
        steps: given,
        changed: false,
        any_order_bytes,
    };
    let order = search.run();
    let mut steps = vec![0; count];
    for (step, &node) in order.iter().enumerate() {
        steps[node as usize] = step as u32;
    }
    let plan = Plan::new(&file.problem_in_order(&steps, kind, InPlace::Full).problem)?;
    let better = order.len() == count && plan.peak_bytes < own.plan.peak_bytes;
    let changed = FoundOrder {
        plan,
        steps,
        changed: true,
        any_order_bytes,
    };
    Ok(if better { changed } else { own })
}

/// What does not change during a search. Nodes count from 0, roots are entries.
struct Search<'a> {
    file: &'a GraphFile,
    leafs: usize,
    alignment: usize,
    /// Nodes that wait for each node, and how many each waits for.
    successors: Vec<Vec<u32>>,
    waits: Vec<u32>,
    /// Roots that each node uses, once each.
    uses: Vec<Vec<u32>>,
    /// How many nodes use each root; one more for an output.
    users: Vec<u32>,
}

/// A partial order.
#[derive(Clone)]
struct State {
    waits: Vec<u32>,
    users: Vec<u32>,
    ready: Vec<u32>,
    order: Vec<u32>,
    live: usize,
    peak: usize,
    /// Sum of hashes of the nodes done: equal for equal sets.
    done: u64,
}

impl<'a> Search<'a> {
    fn new(file: &'a GraphFile, alignment: usize) -> Self {
        let leafs = file.leafs();
        let count = file.nodes.len() - leafs;
        let mut search = Self {
            file,
            leafs,
            alignment,
            successors: vec![Vec::new(); count],
            waits: vec![0; count],
            uses: vec![Vec::new(); count],
            users: vec![0; file.nodes.len()],
        };
        let mut writer = vec![NONE; file.nodes.len()];
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); file.nodes.len()];
        for node in 0..count as u32 {
            let entry = &file.nodes[leafs + node as usize];
            let mut before: Vec<u32> = entry
                .srcs
                .iter()
                .map(|&src| src as usize)
                .filter(|&src| src >= leafs)
                .map(|src| (src - leafs) as u32)
                .collect();
            let mut uses: Vec<u32> = entry.srcs.iter().map(|&src| file.root(src as usize) as u32).collect();
            let own = file.root(leafs + node as usize) as u32;
            uses.push(own);
            uses.sort_unstable();
            uses.dedup();
            if !names_only(&entry.op) {
                for &root in &uses {
                    let root = root as usize;
                    before.extend((writer[root] != NONE).then_some(writer[root]));
                    readers[root].push(node);
                }
                if entry.view_of.is_some() {
                    let root = own as usize;
                    before.extend(readers[root].drain(..).filter(|&reader| reader != node));
                    writer[root] = node;
                }
            }
            before.sort_unstable();
            before.dedup();
            search.waits[node as usize] = before.len() as u32;
            for earlier in before {
                search.successors[earlier as usize].push(node);
            }
            for &root in &uses {
                search.users[root as usize] += 1;
            }
            search.uses[node as usize] = uses;
        }
        for (id, entry) in file.nodes.iter().enumerate() {
            if entry.is_output {
                search.users[file.root(id)] += 1;
            }
        }
        search
    }

    /// Bytes that a root takes of the planner's memory.
    fn bytes(&self, root: u32) -> usize {
        let entry = &self.file.nodes[root as usize];
        let bytes = entry.nbytes as usize;
        let owned = !entry.external && entry.view_of.is_none();
        if owned {
            bytes.next_multiple_of(self.alignment)
        } else {
            0
        }
    }

    fn any_order_bytes(&self) -> usize {
        let outputs = self.file.nodes.iter().enumerate().filter(|(_, entry)| entry.is_output);
        let mut roots: Vec<u32> = outputs.map(|(id, _)| self.file.root(id) as u32).collect();
        roots.sort_unstable();
        roots.dedup();
        let at_end = roots.iter().map(|&root| self.bytes(root)).sum();
        let at_node = |(node, uses): (usize, &Vec<u32>)| {
            let own = (self.leafs + node) as u32;
            let overwrites = uses
                .iter()
                .any(|&root| root != own && self.bytes(root) > 0 && self.file.may_overwrite(own as usize, root));
            let used = uses.iter().filter(|&&root| !(overwrites && root == own));
            used.map(|&root| self.bytes(root)).sum::<usize>()
        };
        self.uses.iter().enumerate().map(at_node).fold(at_end, usize::max)
    }

    fn run(&self) -> Vec<u32> {
        let count = self.waits.len();
        let inputs = (0..self.leafs as u32).filter(|&id| self.users[id as usize] > 0);
        let live = inputs.fold(0usize, |sum, id| sum.saturating_add(self.bytes(id)));
        let mut first = State {
            waits: self.waits.clone(),
            users: self.users.clone(),
            ready: (0..count as u32)
                .filter(|&node| self.waits[node as usize] == 0)
                .collect(),
            order: Vec::with_capacity(count),
            live,
            peak: live,
            done: 0,
        };
        self.take_names(&mut first);
        let mut beam = vec![first];
        loop {
            // Peak, live bytes, hash of the set, parent, node: what a step would lead to.
            let mut next: Vec<(usize, usize, u64, usize, u32)> = Vec::new();
            for (parent, state) in beam.iter().enumerate() {
                for &node in &state.ready {
                    let (during, after) = self.step(state, node);
                    next.push((
                        state.peak.max(during),
                        after,
                        state.done.wrapping_add(hash(node)),
                        parent,
                        node,
                    ));
                }
            }
            if next.is_empty() {
                break;
            }
            // The file's order where nothing else decides.
            next.sort_unstable_by_key(|&(peak, live, _, parent, node)| (peak, live, parent, node));
            let mut sets: Vec<u64> = Vec::with_capacity(BEAM);
            let mut grown = Vec::with_capacity(BEAM);
            for (_, _, set, parent, node) in next {
                if !sets.contains(&set) {
                    sets.push(set);
                    let mut state = beam[parent].clone();
                    self.take(&mut state, node);
                    self.take_names(&mut state);
                    grown.push(state);
                    if grown.len() == BEAM {
                        break;
                    }
                }
            }
            beam = grown;
        }
        beam.into_iter().next().map(|state| state.order).unwrap_or_default()
    }

    /// Live bytes while a node runs, and after it.
    fn step(&self, state: &State, node: u32) -> (usize, usize) {
        let own = (self.leafs + node as usize) as u32;
        let (mut written, mut freed, mut overwritten) = (0, 0, false);
        for &root in &self.uses[node as usize] {
            let bytes = self.bytes(root);
            if root == own {
                written = bytes;
            }
            if state.users[root as usize] == 1 {
                freed += bytes;
                overwritten |= root != own && bytes > 0 && self.file.may_overwrite(own as usize, root);
            }
        }
        let during = state.live + if overwritten { 0 } else { written };
        (during, (state.live + written).saturating_sub(freed))
    }

    fn take(&self, state: &mut State, node: u32) {
        let (during, after) = self.step(state, node);
        state.peak = state.peak.max(during);
        state.live = after;
        state.done = state.done.wrapping_add(hash(node));
        state.order.push(node);
        state.ready.retain(|&other| other != node);
        for &root in &self.uses[node as usize] {
            state.users[root as usize] -= 1;
        }
        for &successor in &self.successors[node as usize] {
            let waits = &mut state.waits[successor as usize];
            *waits -= 1;
            if *waits == 0 {
                state.ready.push(successor);
            }
        }
    }

    /// Takes all ready nodes that only name memory.
    fn take_names(&self, state: &mut State) {
        let view = |&node: &u32| {
            let entry = &self.file.nodes[self.leafs + node as usize];
            debug_assert_eq!(entry.kind, Kind::Node);
            entry.view_of.is_some() && names_only(&entry.op)
        };
        while let Some(node) = state.ready.iter().copied().filter(view).min() {
            self.take(state, node);
        }
    }
}

/// Whether an op touches no memory.
fn names_only(op: &str) -> bool {
    let is_alias = Op::memory_of(op).is_some_and(|(output, _)| output == Output::Alias);
    is_alias || matches!(op, "NONE" | "View" | "Reshape" | "Transpose")
}

fn hash(node: u32) -> u64 {
    let z = u64::from(node).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (z ^ (z >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}
