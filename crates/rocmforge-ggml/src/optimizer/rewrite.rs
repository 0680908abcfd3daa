//! Rewrites: which nodes use each tensor, and the replacement of some nodes by others.

use std::collections::{BTreeMap, BTreeSet};

use crate::{DType, Graph, Launch, Node, Op, TensorDesc, TensorId};

/// Writers, readers and views of each tensor, by node index.
#[derive(Debug)]
pub(super) struct Uses {
    tensors: Vec<Use>,
    mutable: BTreeSet<TensorId>,
    /// Nodes with effects, with the roots that they change.
    effects: Vec<(usize, Vec<TensorId>)>,
}

#[derive(Clone, Debug, Default)]
struct Use {
    writers: Vec<usize>,
    /// A node that reads it twice is here twice.
    readers: Vec<usize>,
    views: Vec<TensorId>,
}

impl Uses {
    pub(super) fn new(graph: &Graph) -> Self {
        let mut tensors = vec![Use::default(); graph.next_id().0];
        let mut effects = Vec::new();
        for (index, node) in graph.nodes.iter().enumerate() {
            for id in &node.inputs {
                if let Some(at) = tensors.get_mut(id.0) {
                    at.readers.push(index);
                }
            }
            for id in &node.outputs {
                if let Some(at) = tensors.get_mut(id.0) {
                    at.writers.push(index);
                }
            }
            if graph.has_effect(node) {
                effects.push((index, node.outputs.iter().filter_map(|&id| graph.root(id)).collect()));
            }
        }
        for desc in graph.tensors() {
            if let Some(at) = desc.view_of.and_then(|base| tensors.get_mut(base.0)) {
                at.views.push(desc.id);
            }
        }
        Self {
            tensors,
            mutable: graph.mutable_roots(),
            effects,
        }
    }

    /// The one node that writes a tensor; `None` if there is none, or several.
    pub(super) fn writer(&self, id: TensorId) -> Option<usize> {
        match self.tensors.get(id.0)?.writers.as_slice() {
            &[writer] => Some(writer),
            _ => None,
        }
    }

    /// The nodes that read a tensor, in order; one that reads it twice is there twice.
    pub(super) fn readers(&self, id: TensorId) -> &[usize] {
        self.tensors.get(id.0).map_or(&[], |at| at.readers.as_slice())
    }

    /// The tensors that are views of it, one step away.
    pub(super) fn views(&self, id: TensorId) -> &[TensorId] {
        self.tensors.get(id.0).map_or(&[], |at| at.views.as_slice())
    }

    /// Whether some node changes the memory of a root.
    pub(super) fn is_changed(&self, root: TensorId) -> bool {
        self.mutable.contains(&root)
    }

    /// Whether a tensor has memory of its own, is written once and never changed.
    pub(super) fn is_own(&self, graph: &Graph, id: TensorId) -> bool {
        graph.tensor(id).is_some_and(|desc| !desc.is_view()) && self.writer(id).is_some() && !self.mutable.contains(&id)
    }

    /// Whether a tensor may vanish with the nodes that read it: no output, nobody's memory but its own, no view.
    pub(super) fn is_private(&self, graph: &Graph, id: TensorId) -> bool {
        self.is_own(graph, id) && !graph.is_output(id) && self.views(id).is_empty()
    }

    /// The node that alone reads a private tensor, once.
    pub(super) fn sole_reader(&self, graph: &Graph, id: TensorId) -> Option<usize> {
        match self.readers(id) {
            &[reader] if self.is_private(graph, id) => Some(reader),
            _ => None,
        }
    }

    /// The node that gives `id` as all elements of another tensor, and that tensor: nobody but node `reader` sees either.
    pub(super) fn renamed(&self, graph: &Graph, id: TensorId, reader: usize) -> Option<(usize, TensorId)> {
        let at = self.writer(id)?;
        let view = &graph.nodes[at];
        let source = *view.inputs.first()?;
        let (desc, of) = (graph.tensor(id)?, graph.tensor(source)?);
        let is_whole = desc.byte_offset == of.byte_offset
            && desc.element_count() == of.element_count()
            && desc.is_contiguous()
            && of.is_contiguous();
        let alone = is_whole
            && graph.is_alias(view)
            && matches!(view.op, Op::Reshape | Op::View)
            && self.readers(id) == [reader]
            && self.readers(source) == [at]
            && self.views(id).is_empty()
            && self.views(source) == [id]
            && self.is_own(graph, source)
            && ![id, source].iter().any(|&id| graph.is_output(id));
        alone.then_some((at, source))
    }

    /// Whether a tensor holds the same at node `a` and at node `b`: no effect between them changes its memory.
    pub(super) fn is_same(&self, graph: &Graph, id: TensorId, a: usize, b: usize) -> bool {
        let Some(root) = graph.root(id) else { return false };
        let mut between = self.effects.iter().filter(|(at, _)| *at > a.min(b) && *at < a.max(b));
        between.all(|(_, roots)| !roots.contains(&root))
    }

    /// Whether a tensor, and the memory that it is a view of, is there before node `at`.
    pub(super) fn is_ready(&self, graph: &Graph, id: TensorId, at: usize) -> bool {
        let mut id = id;
        for _ in 0..=self.tensors.len() {
            let Some(desc) = graph.tensor(id) else { return false };
            if self.tensors[id.0].writers.iter().any(|&writer| writer >= at) {
                return false;
            }
            match desc.view_of {
                Some(base) => id = base,
                None => return true,
            }
        }
        false
    }

    /// Whether all of the tensors are ready for node `to` and hold there what they hold at node `from`.
    pub(super) fn can_move(&self, graph: &Graph, ids: &[TensorId], from: usize, to: usize) -> bool {
        ids.iter()
            .all(|&id| self.is_same(graph, id, from, to) && (to >= from || self.is_ready(graph, id, to)))
    }
}

/// Replacements of nodes, collected and then made. Until then the graph's nodes and their indices stay, so that one look at the graph
/// serves a whole pass; nodes of one replacement are in no other. Replacements may add tensors and change descriptors.
///
/// A result may come earlier than it did, never later: what one replacement found to be ready is ready after all others, too.
#[derive(Debug)]
pub(super) struct Rewriter {
    pub(super) uses: Uses,
    taken: Vec<bool>,
    made: BTreeMap<usize, Vec<Node>>,
    launches: BTreeMap<usize, Launch>,
}

impl Rewriter {
    pub(super) fn new(graph: &Graph) -> Self {
        Self {
            uses: Uses::new(graph),
            taken: vec![false; graph.nodes.len()],
            made: BTreeMap::new(),
            launches: BTreeMap::new(),
        }
    }

    /// Whether none of the nodes is in a replacement.
    pub(super) fn are_free(&self, nodes: &[usize]) -> bool {
        nodes.iter().all(|&node| self.taken.get(node) == Some(&false))
    }

    /// Takes nodes out, and puts others in the place of `at`, which is one of them.
    pub(super) fn replace(&mut self, nodes: &[usize], at: usize, with: Vec<Node>) {
        self.take(nodes);
        self.made.insert(at, with);
    }

    /// Makes nodes one launch in the place of `at`, which is one of them.
    pub(super) fn fuse(&mut self, nodes: &[usize], at: usize, launch: Launch) {
        self.take(nodes);
        self.launches.insert(at, launch);
    }

    fn take(&mut self, nodes: &[usize]) {
        for &node in nodes {
            self.taken[node] = true;
        }
    }

    /// Launches of several nodes so far.
    pub(super) fn fused(&self) -> usize {
        self.launches.len()
    }

    /// The launches of the graph.
    pub(super) fn take_launches(&mut self, graph: &Graph) -> Vec<Launch> {
        let mut fused = std::mem::take(&mut self.launches);
        let launch = |(index, node): (usize, &Node)| match fused.remove(&index) {
            None if self.taken[index] || graph.is_alias(node) => None,
            None => Some(node.into()),
            fused => fused,
        };
        graph.nodes.iter().enumerate().filter_map(launch).collect()
    }

    /// Makes the replacements; how many there are.
    pub(super) fn finish(mut self, graph: &mut Graph) -> usize {
        let count = self.made.len();
        if count == 0 {
            return 0;
        }
        let mut orphans = Vec::new();
        let mut nodes = Vec::with_capacity(graph.nodes.len());
        for (index, node) in std::mem::take(&mut graph.nodes).into_iter().enumerate() {
            if let Some(made) = self.made.remove(&index) {
                nodes.extend(made);
            }
            if self.taken[index] {
                orphans.extend(node.outputs);
            } else {
                nodes.push(node);
            }
        }
        graph.nodes = nodes;
        remove_orphans(graph, orphans.into_iter().rev());
        count
    }
}

/// A node of one output.
pub(super) fn node(op: crate::Op, inputs: impl Into<Vec<TensorId>>, output: TensorId) -> Node {
    Node {
        op,
        inputs: inputs.into(),
        outputs: vec![output],
    }
}

/// The descriptor of an f32 tensor.
pub(super) fn f32(graph: &Graph, id: TensorId) -> Option<&TensorDesc> {
    graph.tensor(id).filter(|desc| desc.dtype == DType::F32)
}

/// Lets every node (and view) that used `from` use `to`.
pub(super) fn replace_uses(graph: &mut Graph, from: TensorId, to: TensorId) {
    for node in &mut graph.nodes {
        for input in &mut node.inputs {
            if *input == from {
                *input = to;
            }
        }
    }
    let views: Vec<TensorId> = graph
        .tensors()
        .filter(|d| d.view_of == Some(from))
        .map(|d| d.id)
        .collect();
    for id in views {
        if let Some(view) = graph.tensor_mut(id) {
            view.view_of = Some(to);
        }
    }
}

/// Takes out those of `candidates` that nothing names any more. A view is to come before what it is a view of.
pub(super) fn remove_orphans(graph: &mut Graph, candidates: impl IntoIterator<Item = TensorId>) {
    let mut names = vec![0usize; graph.next_id().0];
    let named = graph
        .nodes
        .iter()
        .flat_map(|n| n.inputs.iter().chain(&n.outputs))
        .copied();
    for id in named.chain(graph.tensors().filter_map(|d| d.view_of)) {
        if let Some(count) = names.get_mut(id.0) {
            *count += 1;
        }
    }
    for id in candidates {
        if graph.is_output(id) || names.get(id.0) != Some(&0) {
            continue;
        }
        if let Some(base) = graph.remove_tensor(id).and_then(|desc| desc.view_of)
            && let Some(count) = names.get_mut(base.0)
        {
            *count -= 1;
        }
    }
}
