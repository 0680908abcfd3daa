//! Planning of a graph's intermediates, which become views of buffers that they share.

use std::collections::BTreeSet;

use super::{BufferKind, InPlace, InPlacePair, Item, Plan, Problem};
use crate::{DType, GgmlError, GgmlResult, Graph, Launch, TensorDesc, TensorId};

/// What a plan achieves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanStats {
    /// Intermediates that were given a place in a shared buffer.
    pub tensors: usize,
    /// Shared buffers.
    pub buffers: usize,
    /// Bytes of the shared buffers.
    pub bytes: usize,
    /// [`Plan::bound_bytes`].
    pub bound_bytes: usize,
    /// Bytes that the intermediates would take with a buffer each.
    pub unshared_bytes: usize,
}

/// Each tensor starts at a multiple of so many bytes in the buffer, as HIP's allocations do.
const ALIGNMENT: usize = 256;
const NONE: u32 = u32::MAX;

/// A planning problem of a graph, and the tensor of each of its items.
#[derive(Clone, Debug)]
pub struct GraphProblem {
    /// The problem. It has one node for each launch of the graph, or for each group of joined launches.
    pub problem: Problem,
    /// The tensor of each item.
    pub tensors: Vec<TensorId>,
}

/// Gives intermediates places in a buffer that they share: each becomes a view of a buffer tensor that is added to the graph.
///
/// [`graph_problem`] chooses the intermediates. Run this after the optimizer, and only once.
///
/// # Errors
/// The plan does not pass verification, which would be a fault of the planner.
pub fn share_memory(graph: &mut Graph) -> GgmlResult<PlanStats> {
    let made = problem_of(graph, BufferKind::unlimited(ALIGNMENT), InPlace::Full, Outputs::Apart);
    let plan = Plan::new(&made.problem)?;
    let buffers = plan.buffers.iter().map(|b| graph.add_arena(b.bytes)).collect();
    Ok(put(graph, &made, &plan, buffers))
}

/// [`share_memory`] in the memory of a tensor that exists. The graph's outputs have their places there too. Graphs that run one after the
/// other can have the same tensor, if each one's outputs are read before the next runs.
///
/// # Errors
/// [`GgmlError::BufferSize`]: the tensor has too few bytes; the graph stays as it is. And as [`share_memory`].
pub fn share_memory_in(graph: &mut Graph, buffer: TensorId) -> GgmlResult<PlanStats> {
    let found = graph
        .tensor(buffer)
        .ok_or(GgmlError::UnknownTensor(buffer))?
        .byte_size();
    let made = problem_of(graph, BufferKind::unlimited(ALIGNMENT), InPlace::Full, Outputs::Placed);
    let plan = Plan::new(&made.problem)?;
    if plan.peak_bytes > found {
        return Err(GgmlError::BufferSize {
            tensor: buffer,
            expected: plan.peak_bytes,
            found,
        });
    }
    graph.use_arena(buffer);
    // Buffers of unlimited size: there is one.
    let buffers = vec![buffer; plan.buffers.len()];
    Ok(put(graph, &made, &plan, buffers))
}

/// Makes each tensor of a plan a view of its buffer.
fn put(graph: &mut Graph, made: &GraphProblem, plan: &Plan, arenas: Vec<TensorId>) -> PlanStats {
    let GraphProblem { problem, tensors } = made;
    // The place of each tensor that got one, by id.
    let mut places = vec![None; graph.next_id().0];
    for (&id, place) in tensors.iter().zip(&plan.places) {
        places[id.0] = Some(*place);
    }
    let moved: Vec<(TensorId, usize)> = graph
        .tensors()
        .filter_map(|desc| Some((desc.id, places[graph.root(desc.id)?.0]?.offset)))
        .collect();
    for (id, offset) in moved {
        if let Some(desc) = graph.tensor_mut(id) {
            desc.byte_offset += offset;
            if let Some(place) = places[id.0] {
                desc.view_of = Some(arenas[place.buffer as usize]);
            }
        }
    }
    let rounded = |item: &Item| item.bytes.next_multiple_of(ALIGNMENT);
    PlanStats {
        tensors: tensors.len(),
        buffers: plan.buffers.len(),
        bytes: plan.peak_bytes,
        bound_bytes: plan.bound_bytes,
        unshared_bytes: problem.items.iter().map(rounded).sum(),
    }
}

/// What is done with a graph's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outputs {
    /// They keep memory of their own.
    Apart,
    /// They have places that live to the end.
    Placed,
}

/// What of a graph there is to place: tensors with memory of their own that exactly one node writes, that are no output and that no node
/// changes in place. Each lives from that node to the last node that reads it or a view of it. A graph with a broken chain of views has
/// nothing to place: validation names it.
#[must_use]
pub fn graph_problem(graph: &Graph, kind: BufferKind, in_place: InPlace) -> GraphProblem {
    problem_of(graph, kind, in_place, Outputs::Apart)
}

fn problem_of(graph: &Graph, kind: BufferKind, in_place: InPlace, outputs: Outputs) -> GraphProblem {
    let launches = graph.planned_launches();
    // What runs with the launch before is at the same node.
    let groups: Vec<&[Launch]> = launches.chunk_by(|_, next| next.joined).collect();
    let at_nodes = || {
        (0u32..)
            .zip(&groups)
            .flat_map(|(index, group)| group.iter().map(move |launch| (index, launch)))
    };
    let mut made = GraphProblem {
        problem: Problem::new((groups.len() as u32).max(1), kind),
        tensors: Vec::new(),
    };
    let results: BTreeSet<TensorId> = graph
        .get_outputs()
        .into_iter()
        .filter_map(|id| graph.root(id))
        .collect();
    let mut excluded = graph.mutable_roots();
    if outputs == Outputs::Apart {
        excluded.extend(&results);
    }
    let mut writers = vec![0u32; graph.next_id().0];
    for id in launches.iter().flat_map(|launch| &launch.outputs) {
        if let Some(count) = writers.get_mut(id.0) {
            *count += 1;
        }
    }
    let mut items = vec![NONE; graph.next_id().0];
    for (index, launch) in at_nodes() {
        for &id in &launch.outputs {
            let own = graph.tensor(id).filter(|desc| !desc.is_view());
            let Some(bytes) = own.map(TensorDesc::byte_size).filter(|&bytes| bytes > 0) else {
                continue;
            };
            if writers[id.0] == 1 && !excluded.contains(&id) {
                items[id.0] = made.tensors.len() as u32;
                made.tensors.push(id);
                made.problem.add(bytes, index, index);
            }
        }
        for &id in launch.inputs.iter().chain(&launch.outputs) {
            let Some(root) = graph.root(id) else {
                made.problem.items.clear();
                made.tensors.clear();
                return made;
            };
            if items[root.0] != NONE {
                made.problem.items[items[root.0] as usize].last = index;
            }
        }
    }
    for root in results {
        if let Some(item) = made.problem.items.get_mut(items[root.0] as usize) {
            item.last = (groups.len() as u32).saturating_sub(1);
        }
    }
    if in_place == InPlace::Full {
        for (index, launch) in at_nodes() {
            pairs(graph, launch, index, &items, &mut made.problem);
        }
        // A tensor that two launches of one node read or write must not share memory with another tensor.
        let GraphProblem { problem, tensors } = &mut made;
        let Problem { pairs, items, .. } = problem;
        pairs.retain(|pair| {
            let group = groups[items[pair.item as usize].first as usize];
            let names = |launch: &&Launch, root| {
                let mut ids = launch.inputs.iter().chain(&launch.outputs);
                ids.any(|&id| graph.root(id) == Some(root))
            };
            let mut both = [pair.item, pair.over].into_iter().map(|item| tensors[item as usize]);
            group.len() == 1 || both.all(|root| group.iter().filter(|launch| names(launch, root)).count() == 1)
        });
    }
    made
}

/// The in-place pairs of one launch.
fn pairs(graph: &Graph, launch: &Launch, index: u32, items: &[u32], problem: &mut Problem) {
    let operands = launch.kernel.overwrites().operands();
    for (output, item) in launch.outputs.iter().map(|&id| (id, items[id.0])) {
        if item == NONE {
            continue;
        }
        let same_layout = |id: TensorId| {
            let (a, b) = (graph.tensor(id), graph.tensor(output));
            a.zip(b).is_some_and(|(a, b)| {
                (a.dtype, b.dtype) == (DType::F32, DType::F32)
                    && a.shape == b.shape
                    && a.strides == b.strides
                    && a.byte_offset == 0
            })
        };
        for (operand, &id) in launch.inputs.iter().enumerate().take(operands) {
            let Some(root) = graph.root(id) else { break };
            let over = items[root.0];
            let ends = over != NONE && over != item && problem.items[over as usize].last == index;
            // An operand that the node reads in another way too is not overwritten.
            let read_alike = launch.inputs.iter().enumerate().all(|(other, &id)| {
                graph.root(id) != Some(root) || other == operand || (other < operands && same_layout(id))
            });
            if ends && same_layout(id) && read_alike {
                problem.pairs.push(InPlacePair { item, over });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optimizer::{GraphOptimizer, Pass};
    use crate::{CpuBackend, HostAccess, Layout, Op, executor};

    /// A chain of scales with a branch that lives long.
    fn graph() -> (Graph, TensorId, TensorId) {
        let mut graph = Graph::new();
        let x = graph.add_tensor(TensorDesc::f32([100]));
        let mut y = graph.push(Op::Scale { factor: 2.0 }, &[x]).unwrap();
        let branch = y;
        for _ in 0..6 {
            let shaped = graph.reshape(y, [10, 10]).unwrap();
            let flat = graph.reshape(shaped, [100]).unwrap();
            y = graph.push(Op::Scale { factor: 1.5 }, &[flat]).unwrap();
        }
        let sum = graph.push(Op::Add, &[y, branch]).unwrap();
        let out = graph.push(Op::Scale { factor: 1.0 }, &[sum]).unwrap();
        graph.mark_output(out);
        (graph, x, out)
    }

    fn run(graph: &Graph, x: TensorId, len: usize, out: TensorId) -> Vec<f32> {
        let mut cpu = CpuBackend::with_threads(1);
        executor::prepare(&mut cpu, graph).unwrap();
        let values: Vec<f32> = (0..len).map(|i| i as f32).collect();
        cpu.write_f32(x, &values).unwrap();
        executor::execute_graph(&mut cpu, graph).unwrap();
        cpu.read_f32(out).unwrap()
    }

    #[test]
    fn a_chain_overwrites_itself_and_computes_the_same() {
        let results = [false, true].map(|shared| {
            let (mut graph, x, out) = graph();
            if shared {
                let stats = share_memory(&mut graph).unwrap();
                // The branch, and one place that six scales and the sum overwrite in turn.
                assert_eq!((stats.tensors, stats.buffers, stats.bytes), (8, 1, 2 * 512));
                assert_eq!((stats.bound_bytes, stats.unshared_bytes), (2 * 512, 8 * 512));
            }
            run(&graph, x, 100, out)
        });
        assert_eq!(results[0], results[1]);
    }

    #[test]
    fn graphs_that_share_one_tensor_compute_the_same() {
        let (mut apart, x, out) = graph();
        share_memory(&mut apart).unwrap();
        let expected = run(&apart, x, 100, out);
        let (mut graph, x, out) = graph();
        let buffer = graph.add_tensor(TensorDesc::new([1024], DType::I8, Layout::RowMajor));
        // The output has a place too: it overwrites the sum.
        let stats = share_memory_in(&mut graph, buffer).unwrap();
        assert_eq!((stats.tensors, stats.bytes, stats.bound_bytes), (9, 2 * 512, 2 * 512));
        assert_eq!(graph.root(out), Some(buffer));
        assert_eq!(run(&graph, x, 100, out), expected);
    }

    #[test]
    fn a_tensor_that_is_too_small_is_refused_with_figures() {
        let (mut graph, _, out) = graph();
        let buffer = graph.add_tensor(TensorDesc::new([1023], DType::I8, Layout::RowMajor));
        let error = share_memory_in(&mut graph, buffer).unwrap_err();
        assert!(
            matches!(error, GgmlError::BufferSize { tensor, expected: 1024, found: 1023 } if tensor == buffer),
            "{error}"
        );
        assert_eq!(graph.root(out), Some(out));
    }

    /// The last node of what an output lives through is the graph's, whoever else has read it.
    #[test]
    fn an_output_that_is_read_early_keeps_its_place() {
        let build = || {
            let mut graph = Graph::new();
            let x = graph.add_tensor(TensorDesc::f32([100]));
            let first = graph.push(Op::Scale { factor: 2.0 }, &[x]).unwrap();
            let mut y = graph.push(Op::Scale { factor: 0.5 }, &[first]).unwrap();
            for _ in 0..3 {
                y = graph.push(Op::Add, &[y, x]).unwrap();
            }
            graph.mark_output(first);
            graph.mark_output(y);
            (graph, x, first)
        };
        let (plain, x, out) = build();
        let expected = run(&plain, x, 100, out);
        let (mut graph, x, out) = build();
        let buffer = graph.add_tensor(TensorDesc::new([4096], DType::I8, Layout::RowMajor));
        share_memory_in(&mut graph, buffer).unwrap();
        assert_eq!(run(&graph, x, 100, out), expected);
    }

    #[test]
    fn an_op_that_could_be_a_view_still_runs_when_its_result_has_a_place_of_its_own() {
        let results = [false, true].map(|shared| {
            let mut graph = Graph::new();
            let x = graph.add_tensor(TensorDesc::f32([6, 10]));
            let doubled = graph.push(Op::Scale { factor: 2.0 }, &[x]).unwrap();
            let turned = graph.push(Op::Transpose, &[doubled]).unwrap();
            let out = graph.push(Op::Scale { factor: 0.5 }, &[turned]).unwrap();
            graph.mark_output(out);
            if shared {
                assert_eq!(share_memory(&mut graph).unwrap().tensors, 2);
                assert!(!graph.is_alias(&graph.nodes[1]));
                assert!(!graph.has_effect(&graph.nodes[1]));
            }
            run(&graph, x, 60, out)
        });
        assert_eq!(results[0], results[1]);
        assert_eq!(results[0][..3], [0.0, 10.0, 20.0]);
    }

    #[test]
    fn a_sum_and_its_norm_overwrite_both_operands() {
        let mut graph = Graph::new();
        let x = graph.add_tensor(TensorDesc::f32([4, 16]));
        let [a, b] = [2.0, 3.0].map(|factor| graph.push(Op::Scale { factor }, &[x]).unwrap());
        let sum = graph.push(Op::Add, &[a, b]).unwrap();
        let norm = graph.push(Op::RmsNorm { eps: 0.0 }, &[sum]).unwrap();
        let out = graph.push(Op::Add, &[sum, norm]).unwrap();
        graph.mark_output(out);
        let stats = GraphOptimizer::fusions().optimize(&mut graph);
        assert_eq!(stats.counts.of(Pass::AddNorm), 1);
        let plain = run(&graph, x, 64, out);
        let stats = share_memory(&mut graph).unwrap();
        assert_eq!((stats.tensors, stats.bytes), (4, 2 * 256));
        assert_eq!(run(&graph, x, 64, out), plain);
        assert_eq!(plain[0], 0.0);
    }

    #[test]
    fn an_operand_that_is_read_in_two_ways_is_not_overwritten() {
        let mut graph = Graph::new();
        let x = graph.add_tensor(TensorDesc::f32([4, 4]));
        let y = graph.push(Op::Scale { factor: 3.0 }, &[x]).unwrap();
        // The first row of y is added to every row of y.
        let mut row = TensorDesc::view_of(graph.tensor(y).unwrap(), 0);
        row.set_shape([4]);
        let row = graph.add_tensor(row);
        graph.add_node(Op::View, vec![y], vec![row]);
        let sum = graph.push(Op::Add, &[y, row]).unwrap();
        let out = graph.push(Op::Scale { factor: 1.0 }, &[sum]).unwrap();
        graph.mark_output(out);
        let problem = graph_problem(&graph, BufferKind::unlimited(4), InPlace::Full).problem;
        assert!(problem.pairs.is_empty(), "{:?}", problem.pairs);
        let plain = run(&graph, x, 16, out);
        share_memory(&mut graph).unwrap();
        assert_eq!(run(&graph, x, 16, out), plain);
    }
}
