//! The graph: tensors with stable ids, and nodes in the order they run.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::{DType, GgmlError, GgmlResult, Launch, Layout, Op, TensorDesc, TensorId, shape};

/// One operation and the tensors it reads and writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// Tensors read.
    pub inputs: Vec<TensorId>,
    /// Tensors written.
    pub outputs: Vec<TensorId>,
}

/// Tensors and the nodes that compute them, in an order in which they can run.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    tensors: Vec<Option<TensorDesc>>,
    /// In the order they run.
    pub(crate) nodes: Vec<Node>,
    outputs: BTreeSet<TensorId>,
    /// Buffers of the planner: tensors in one of them are views of it, and are still tensors of their own.
    arenas: Vec<TensorId>,
    /// The nodes as launches, if some of them are one.
    launches: Option<Vec<Launch>>,
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tensor; its `id` is replaced by the one returned.
    pub fn add_tensor(&mut self, mut desc: TensorDesc) -> TensorId {
        let id = TensorId(self.tensors.len());
        desc.id = id;
        self.tensors.push(Some(desc));
        id
    }

    /// Adds a node. Nothing is checked here: [`crate::validate_graph`] checks all, and every execution runs it.
    pub fn add_node(&mut self, op: Op, inputs: Vec<TensorId>, outputs: Vec<TensorId>) {
        self.launches = None;
        self.nodes.push(Node { op, inputs, outputs });
    }

    /// The nodes, in the order they run.
    #[must_use]
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes, for changes. Each is a launch again afterwards ([`Self::launches`]): those that the optimizer made of several nodes may not fit the
    /// changed ones.
    pub fn nodes_mut(&mut self) -> &mut Vec<Node> {
        self.launches = None;
        &mut self.nodes
    }

    /// Adds a node and its output tensor, with the shape and type that the inputs determine. Of several outputs the first is returned.
    ///
    /// # Errors
    /// The inputs do not fit the op, or the op (`Reshape`, `View`) does not determine its output: use
    /// [`Self::reshape`] or [`Self::add_node`].
    pub fn push(&mut self, op: Op, inputs: &[TensorId]) -> GgmlResult<TensorId> {
        Ok(self.push_all(op, inputs)?[0])
    }

    /// [`Self::push`] of an op with any number of outputs.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn push_all(&mut self, op: Op, inputs: &[TensorId]) -> GgmlResult<Vec<TensorId>> {
        let node = self.nodes.len();
        let descs = self.descs(inputs)?;
        let inferred = shape::infer_all(node, &op, &descs)?.into_iter();
        let descs = inferred.map(|inferred| inferred.into_desc(node, &op));
        let descs = descs.collect::<GgmlResult<Vec<_>>>()?;
        let outputs: Vec<TensorId> = descs.into_iter().map(|desc| self.add_tensor(desc)).collect();
        self.add_node(op, inputs.to_vec(), outputs.clone());
        Ok(outputs)
    }

    /// Adds a view of `source`'s memory under another shape with as many elements.
    ///
    /// # Errors
    /// [`GgmlError::InvalidShape`] if the element counts differ, [`GgmlError::InvalidLayout`] if `source` has gaps.
    pub fn reshape(&mut self, source: TensorId, shape: impl Into<Vec<usize>>) -> GgmlResult<TensorId> {
        let desc = self.tensor(source).ok_or(GgmlError::UnknownTensor(source))?;
        let mut view = TensorDesc::view_of(desc, 0);
        view.set_shape(shape);
        shape::check_reshape(self.nodes.len(), desc, &view)?;
        Ok(self.add_node_of(Op::Reshape, &[source], view))
    }

    /// Adds a tensor and the node that gives it.
    pub(crate) fn add_node_of(&mut self, op: Op, inputs: &[TensorId], output: TensorDesc) -> TensorId {
        let output = self.add_tensor(output);
        self.add_node(op, inputs.to_vec(), vec![output]);
        output
    }

    /// The descriptors of some tensors.
    ///
    /// # Errors
    /// [`GgmlError::UnknownTensor`].
    pub(crate) fn descs(&self, ids: &[TensorId]) -> GgmlResult<Vec<&TensorDesc>> {
        let descs = ids
            .iter()
            .map(|&id| self.tensor(id).ok_or(GgmlError::UnknownTensor(id)));
        descs.collect()
    }

    /// Adds a write of `src`'s rows into the rows `ids` of `dst`, and returns the view of `dst` that has them. A node that
    /// reads the view runs after the write: that input is the edge between them.
    ///
    /// # Errors
    /// The operands do not fit [`Op::SetRows`].
    pub fn set_rows(&mut self, src: TensorId, dst: TensorId, ids: TensorId) -> GgmlResult<TensorId> {
        let inputs = [src, dst, ids];
        let descs = self.descs(&inputs)?;
        shape::infer(self.nodes.len(), &Op::SetRows, &descs)?;
        let view = TensorDesc::view_of(descs[1], 0);
        Ok(self.add_node_of(Op::SetRows, &inputs, view))
    }

    /// Makes the next tensor's id at least `first`: two graphs whose ids differ can share one backend.
    pub fn start_ids_at(&mut self, first: TensorId) {
        while self.tensors.len() < first.0 {
            self.tensors.push(None);
        }
    }

    /// The id that the next added tensor gets.
    #[must_use]
    pub fn next_id(&self) -> TensorId {
        TensorId(self.tensors.len())
    }

    /// The tensor, if it (still) exists.
    #[must_use]
    pub fn tensor(&self, id: TensorId) -> Option<&TensorDesc> {
        self.tensors.get(id.0)?.as_ref()
    }

    /// The tensor, for changes. Do not change its `id`.
    pub fn tensor_mut(&mut self, id: TensorId) -> Option<&mut TensorDesc> {
        self.tensors.get_mut(id.0)?.as_mut()
    }

    /// The tensors that exist, in the order they were added.
    pub fn tensors(&self) -> impl Iterator<Item = &TensorDesc> {
        self.tensors.iter().flatten()
    }

    /// How many tensors exist.
    #[must_use]
    pub fn tensor_count(&self) -> usize {
        self.tensors().count()
    }

    /// Takes a tensor out; its id is never given again.
    pub fn remove_tensor(&mut self, id: TensorId) -> Option<TensorDesc> {
        self.outputs.remove(&id);
        self.tensors.get_mut(id.0)?.take()
    }

    /// Marks a tensor as a result: it is kept by every optimisation.
    pub fn mark_output(&mut self, id: TensorId) {
        self.outputs.insert(id);
    }

    /// Whether a tensor is marked.
    #[must_use]
    pub fn is_output(&self, id: TensorId) -> bool {
        self.outputs.contains(&id)
    }

    /// The marked tensors, in id order.
    #[must_use]
    pub fn get_outputs(&self) -> Vec<TensorId> {
        self.outputs.iter().copied().collect()
    }

    /// Forgets all marks.
    pub fn clear_outputs(&mut self) {
        self.outputs.clear();
    }

    /// The tensor at the end of the chain of `view_of`: the one that owns the memory. `None` if the chain is broken.
    #[must_use]
    pub fn root(&self, id: TensorId) -> Option<TensorId> {
        let mut at = id;
        for _ in 0..=self.tensors.len() {
            match self.tensor(at)?.view_of {
                None => return Some(at),
                Some(base) => at = base,
            }
        }
        None
    }

    /// Adds a buffer for tensors that the planner places.
    pub(crate) fn add_arena(&mut self, bytes: usize) -> TensorId {
        let id = self.add_tensor(TensorDesc::new([bytes], DType::I8, Layout::RowMajor));
        self.use_arena(id);
        id
    }

    /// Makes a tensor a buffer for tensors that the planner places.
    pub(crate) fn use_arena(&mut self, id: TensorId) {
        self.arenas.push(id);
    }

    /// Whether the planner has placed tensors in buffers.
    pub(crate) fn is_planned(&self) -> bool {
        !self.arenas.is_empty()
    }

    /// Like [`Self::root`], but a tensor that the planner has placed in a buffer is its own end of the chain.
    pub(crate) fn owner(&self, id: TensorId) -> Option<TensorId> {
        let mut at = id;
        for _ in 0..=self.tensors.len() {
            match self.tensor(at)?.view_of {
                Some(base) if !self.arenas.contains(&base) => at = base,
                _ => return Some(at),
            }
        }
        None
    }

    /// Whether a node's output is only another name for its input's memory, so nothing has to run.
    #[must_use]
    pub fn is_alias(&self, node: &Node) -> bool {
        node.op.may_alias()
            && node.inputs.len() == 1
            && node.outputs.len() == 1
            && self.owner(node.outputs[0]) != Some(node.outputs[0])
            && self.owner(node.outputs[0]) == self.owner(node.inputs[0])
    }

    /// The nodes that have something to run: all but aliases.
    pub fn computing_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !self.is_alias(node))
    }

    /// The nodes that have something to run as launches, in the order in which they run: several nodes are one where the optimizer has found that
    /// the backend has a kernel for them ([`crate::optimizer::Pass::is_fusion`]). They are of the nodes as they were then: [`Self::add_node`] and
    /// [`Self::nodes_mut`] make each node a launch again.
    #[must_use]
    pub fn launches(&self) -> Cow<'_, [Launch]> {
        match &self.launches {
            Some(launches) => Cow::Borrowed(launches),
            None => self.computing_nodes().map(Launch::from).collect(),
        }
    }

    /// [`Self::launches`], with the nodes that only name other memory if each node is a launch.
    pub(crate) fn planned_launches(&self) -> Cow<'_, [Launch]> {
        match &self.launches {
            Some(launches) => Cow::Borrowed(launches),
            None => self.nodes.iter().map(Launch::from).collect(),
        }
    }

    /// Whether some nodes are one launch.
    pub(crate) fn is_fused(&self) -> bool {
        self.launches.is_some()
    }

    pub(crate) fn set_launches(&mut self, launches: Option<Vec<Launch>>) {
        self.launches = launches;
    }

    /// Roots that are written within a launch only: they have no memory.
    pub(crate) fn unwritten(&self) -> BTreeSet<TensorId> {
        let Some(launches) = &self.launches else {
            return BTreeSet::new();
        };
        let mut roots: BTreeSet<TensorId> = self.computing_nodes().flat_map(|node| &node.outputs).copied().collect();
        for id in launches.iter().flat_map(|launch| &launch.outputs) {
            roots.remove(id);
        }
        roots
    }

    /// Whether a node changes memory that another tensor names too: an in-place op, or an output that is a view.
    #[must_use]
    pub fn has_effect(&self, node: &Node) -> bool {
        node.op.has_effect()
            || (!self.is_alias(node)
                && node
                    .outputs
                    .iter()
                    .any(|&id| self.owner(id).is_some_and(|owner| owner != id)))
    }

    /// Roots of the memory that some node changes in place.
    pub(crate) fn mutable_roots(&self) -> BTreeSet<TensorId> {
        let effects = self.nodes.iter().filter(|n| self.has_effect(n));
        effects
            .flat_map(|n| &n.outputs)
            .filter_map(|&id| self.owner(id))
            .collect()
    }
}
