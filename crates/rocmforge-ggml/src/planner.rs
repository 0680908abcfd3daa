//! Memory plan: intermediates that are never needed at the same time share one buffer.

use std::collections::{BTreeMap, BTreeSet};

use crate::{DType, Graph, Layout, TensorDesc, TensorId};

/// What a plan achieves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanStats {
    /// Intermediates that were given a place in a shared buffer.
    pub tensors: usize,
    /// Shared buffers.
    pub buffers: usize,
    /// Bytes of the shared buffers.
    pub bytes: usize,
    /// Bytes that the intermediates would take with a buffer each.
    pub unshared_bytes: usize,
}

/// Bytes that every shared buffer is a multiple of, and so every view of one is aligned to.
const ALIGNMENT: usize = 256;

/// First and last node that use a tensor's memory, and its size.
#[derive(Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
    bytes: usize,
}

/// Gives intermediates places in buffers that they share: each becomes a view of a buffer tensor that is added to the graph.
///
/// An intermediate is a tensor with memory of its own that one node writes and that is no output. Its life goes from that node to
/// the last node that reads it or a view of it. Two intermediates share a buffer only if no node uses both, so no node's output overlaps
/// its inputs. Run it after the optimizer and once.
pub fn share_memory(graph: &mut Graph) -> PlanStats {
    let lives = lives(graph);
    let mut stats = PlanStats::default();
    let mut order: Vec<(TensorId, Life)> = lives.into_iter().collect();
    order.sort_by_key(|(id, life)| (life.first, *id));

    // Size of each buffer, and the last node that uses it so far.
    let mut buffers: Vec<(usize, usize)> = Vec::new();
    let mut places: Vec<(TensorId, usize)> = Vec::new();
    for (id, life) in order {
        let free = (0..buffers.len()).filter(|&b| buffers[b].1 < life.first);
        // The smallest that is large enough, else the largest, which grows least.
        let best = free.min_by_key(|&b| {
            let size = buffers[b].0;
            if size >= life.bytes {
                (0, size)
            } else {
                (1, life.bytes - size)
            }
        });
        let buffer = best.unwrap_or_else(|| {
            buffers.push((0, 0));
            buffers.len() - 1
        });
        buffers[buffer].0 = buffers[buffer].0.max(life.bytes);
        buffers[buffer].1 = life.last;
        places.push((id, buffer));
        stats.tensors += 1;
        stats.unshared_bytes = stats.unshared_bytes.saturating_add(life.bytes);
    }
    let roots: Vec<TensorId> = buffers
        .iter()
        .map(|&(bytes, _)| graph.add_tensor(TensorDesc::new([bytes], DType::I8, Layout::RowMajor)))
        .collect();
    for (id, buffer) in places {
        if let Some(desc) = graph.tensor_mut(id) {
            desc.view_of = Some(roots[buffer]);
        }
    }
    stats.buffers = buffers.len();
    stats.bytes = buffers.iter().fold(0, |sum, &(bytes, _)| sum.saturating_add(bytes));
    stats
}

/// The intermediates of a graph.
fn lives(graph: &Graph) -> BTreeMap<TensorId, Life> {
    let mut lives: BTreeMap<TensorId, Life> = BTreeMap::new();
    let mut excluded: BTreeSet<TensorId> = graph
        .get_outputs()
        .into_iter()
        .filter_map(|id| graph.root(id))
        .collect();
    excluded.extend(graph.mutable_roots());
    for (index, node) in graph.nodes.iter().enumerate() {
        for &id in &node.outputs {
            let Some(desc) = graph.tensor(id).filter(|desc| !desc.is_view()) else {
                continue;
            };
            let bytes = desc.byte_size().div_ceil(ALIGNMENT).saturating_mul(ALIGNMENT);
            let (first, last) = (index, index);
            if bytes == 0 || lives.insert(id, Life { first, last, bytes }).is_some() {
                excluded.insert(id);
            }
        }
        for id in node.inputs.iter().chain(&node.outputs) {
            match graph.root(*id) {
                Some(root) => {
                    if let Some(life) = lives.get_mut(&root) {
                        life.last = index;
                    }
                }
                // A broken chain: validation names it.
                None => return BTreeMap::new(),
            }
        }
    }
    lives.retain(|id, _| !excluded.contains(id));
    lives
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CpuBackend, HostAccess, Op, executor};

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

    #[test]
    fn a_chain_needs_three_buffers_and_computes_the_same() {
        let results = [false, true].map(|shared| {
            let (mut graph, x, out) = graph();
            if shared {
                let stats = share_memory(&mut graph);
                // The branch, and two that take turns.
                assert_eq!((stats.tensors, stats.buffers, stats.bytes), (8, 3, 3 * 512));
                assert_eq!(stats.unshared_bytes, 8 * 512);
            }
            let mut cpu = CpuBackend::with_threads(1);
            executor::prepare(&mut cpu, &graph).unwrap();
            let values: Vec<f32> = (0..100).map(|i| i as f32).collect();
            cpu.write_f32(x, &values).unwrap();
            executor::execute_graph(&mut cpu, &graph).unwrap();
            cpu.read_f32(out).unwrap()
        });
        assert_eq!(results[0], results[1]);
    }

    #[test]
    fn no_two_live_tensors_overlap() {
        let (mut graph, ..) = graph();
        let before = lives(&graph);
        share_memory(&mut graph);
        for (a, la) in &before {
            for (b, lb) in &before {
                let apart = la.last < lb.first || lb.last < la.first;
                assert!(a == b || apart || graph.root(*a) != graph.root(*b), "{a} and {b}");
            }
        }
    }
}
