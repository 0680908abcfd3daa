//! Graph files of our own graphs.

use super::{Descriptor, Entry, GraphFile, GraphFileError, Kind, MAX_TENSORS};
use crate::{Graph, Layout, TensorDesc, TensorId};

const NONE: u32 = u32::MAX;

impl GraphFile {
    /// A file of a graph's nodes and the tensors that they use.
    ///
    /// `inputs` are the tensors that are filled before each run; other tensors that no node writes are external: weights, or caches if
    /// a node changes them in place. A tensor that the planner has placed is written as a tensor of its own, so that the file is the
    /// same before and after planning. Matrices that are stored column by column are written as they are stored, as ggml does. Each node
    /// has its op's parameters, one with several outputs has an entry for each, with the same operands and parameters, and
    /// [`Self::to_graph`] gives the graph back.
    ///
    /// # Errors
    /// A tensor has more than four dimensions or an id of 2^18 or more, a node has no output or names a tensor that is not in the graph,
    /// or the graph's order is not one in which it can run.
    pub fn from_graph(graph: &Graph, inputs: &[TensorId]) -> Result<Self, GraphFileError> {
        let mut export = Export {
            graph,
            entries: Vec::new(),
            of_tensor: vec![NONE; graph.next_id().0],
        };
        export.leafs(inputs)?;
        for (index, node) in graph.nodes.iter().enumerate() {
            export.node(index, node)?;
        }
        for id in graph.get_outputs() {
            let entry = export.of_tensor.get(id.0).copied().filter(|&entry| entry != NONE);
            if let Some(entry) = entry {
                export.entries[entry as usize].is_output = true;
            }
        }
        Self::from_entries(export.entries)
    }
}

struct Export<'a> {
    graph: &'a Graph,
    entries: Vec<Entry>,
    /// The last entry of each tensor.
    of_tensor: Vec<u32>,
}

impl Export<'_> {
    /// Memory that no node writes for the first time.
    fn leafs(&mut self, inputs: &[TensorId]) -> Result<(), GraphFileError> {
        let mutable = self.graph.mutable_roots();
        let mut written = vec![false; self.of_tensor.len()];
        for node in &self.graph.nodes {
            for id in node.outputs.iter().filter(|id| !node.inputs.contains(id)) {
                if let Some(written) = written.get_mut(id.0) {
                    *written = true;
                }
            }
        }
        let used = self
            .graph
            .nodes
            .iter()
            .flat_map(|node| node.inputs.iter().chain(&node.outputs));
        let mut roots: Vec<TensorId> = used.filter_map(|&id| self.graph.owner(id)).collect();
        roots.sort_unstable();
        roots.dedup();
        for id in roots.into_iter().filter(|id| !written[id.0]) {
            let mut entry = self.entry(id, "NONE")?;
            entry.kind = Kind::Leaf;
            (entry.view_of, entry.view_offs) = (None, None);
            entry.is_input = inputs.contains(&id);
            entry.external = !entry.is_input;
            entry.is_kv = entry.external && mutable.contains(&id);
            entry.is_weight = entry.external && !entry.is_kv;
            self.push(id, entry);
        }
        Ok(())
    }

    fn node(&mut self, index: usize, node: &crate::Node) -> Result<(), GraphFileError> {
        if node.outputs.is_empty() {
            return Err(GraphFileError::ExportNode {
                node: index,
                op: node.op.name(),
                rule: "it has no output",
            });
        }
        let mut srcs = Vec::with_capacity(node.inputs.len());
        for &id in &node.inputs {
            srcs.push(self.read(id)?);
        }
        for &id in &node.outputs {
            self.bases(id)?;
            let before = self.of_tensor.get(id.0).copied().filter(|&entry| entry != NONE);
            let mut entry = self.entry(id, node.op.name())?;
            if let Some(before) = before.filter(|_| entry.view_of.is_none()) {
                // Changed in place: the same memory under a new entry.
                let root = self.entries[before as usize].view_of.unwrap_or(before);
                (entry.view_of, entry.view_offs) = (Some(root), Some(0));
            }
            entry.srcs.clone_from(&srcs);
            entry.params = Some(node.op.parameters()).filter(|own| !own.is_empty());
            if let Some(descriptor) = &mut entry.descriptor {
                descriptor.node = Some(index as u64);
            }
            self.push(id, entry);
        }
        Ok(())
    }

    /// The entry of a tensor that is read. A view that no node makes becomes a node of its own here.
    fn read(&mut self, id: TensorId) -> Result<u32, GraphFileError> {
        match self.of_tensor.get(id.0).copied() {
            Some(entry) if entry != NONE => Ok(entry),
            _ => {
                self.bases(id)?;
                self.declare(id)
            }
        }
    }

    /// Entries of the tensors that a view is a view of, where they have none.
    fn bases(&mut self, id: TensorId) -> Result<(), GraphFileError> {
        let mut missing = Vec::new();
        let mut at = id;
        while let Some(base) = self.base(at).filter(|base| self.of_tensor.get(base.0) == Some(&NONE)) {
            // A chain longer than there are tensors is a circle, which has no owner.
            if missing.len() > self.of_tensor.len() {
                return Err(fault(id, "it is a view of itself"));
            }
            missing.push(base);
            at = base;
        }
        for base in missing.into_iter().rev() {
            self.declare(base)?;
        }
        Ok(())
    }

    /// What a tensor is a view of, if that is not a buffer that the planner made.
    fn base(&self, id: TensorId) -> Option<TensorId> {
        let owner = self.graph.owner(id)?;
        self.graph.tensor(id)?.view_of.filter(|_| owner != id)
    }

    /// An entry of a view that no node makes.
    fn declare(&mut self, id: TensorId) -> Result<u32, GraphFileError> {
        let mut entry = self.entry(id, "View")?;
        let Some(root) = entry.view_of else {
            return Err(fault(id, "a node reads it before another writes it"));
        };
        entry.srcs = vec![root];
        Ok(self.push(id, entry))
    }

    fn push(&mut self, id: TensorId, mut entry: Entry) -> u32 {
        let index = self.entries.len() as u32;
        entry.id = u64::from(index);
        self.of_tensor[id.0] = index;
        self.entries.push(entry);
        index
    }

    /// A tensor as a node that names its root.
    fn entry(&self, id: TensorId, op: &str) -> Result<Entry, GraphFileError> {
        let missing = || fault(id, "it, and what it is a view of, must be in the graph");
        let desc = self.graph.tensor(id).ok_or_else(missing)?;
        let owner = self.graph.owner(id).ok_or_else(missing)?;
        let base = self.graph.tensor(owner).ok_or_else(missing)?;
        let (shape, nb) = layout(desc)?;
        if id.0 as u64 >= MAX_TENSORS {
            return Err(fault(id, "its id is larger than a graph file may have"));
        }
        let mut entry = Entry {
            kind: Kind::Node,
            op: op.to_owned(),
            name: id.to_string(),
            dtype: desc.dtype.to_string(),
            shape,
            nb,
            nbytes: desc.byte_size() as u64,
            descriptor: Some(Descriptor {
                tensor: id.0 as u64,
                node: None,
                shape: desc.shape.clone(),
                strides: desc.strides.clone(),
                layout: format!("{:?}", desc.layout),
                base: self.base(id).map(|base| base.0 as u64),
            }),
            ..Entry::default()
        };
        if owner != id {
            // The root's last entry may be a change in place, which is a view itself.
            let root = self.of_tensor[owner.0];
            if root == NONE {
                return Err(fault(id, "it is a view of a tensor that no node has written yet"));
            }
            entry.view_of = Some(self.entries[root as usize].view_of.unwrap_or(root));
            entry.view_offs = Some(desc.byte_offset.saturating_sub(base.byte_offset) as u64);
        }
        Ok(entry)
    }
}

fn fault(id: TensorId, rule: &'static str) -> GraphFileError {
    GraphFileError::Export { tensor: id.0, rule }
}

/// Four dimensions with the fastest first, and strides in bytes.
pub(super) fn layout(desc: &TensorDesc) -> Result<([u64; 4], [u64; 4]), GraphFileError> {
    let rank = desc.shape.len();
    if rank > 4 {
        return Err(fault(desc.id, "the schema has four dimensions"));
    }
    let mut order: Vec<usize> = (0..rank).rev().collect();
    if desc.layout == Layout::ColMajor && rank >= 2 {
        order.swap(0, 1);
    }
    let (len, bytes) = (desc.dtype.block_len(), desc.dtype.block_bytes());
    let whole = desc.byte_size() as u64;
    let (mut shape, mut nb) = ([1; 4], [whole; 4]);
    for (place, dim) in order.into_iter().enumerate() {
        shape[place] = desc.shape[dim] as u64;
        let blocks = if place == 0 {
            desc.strides[dim]
        } else {
            desc.strides[dim] / len
        };
        nb[place] = blocks.saturating_mul(bytes) as u64;
    }
    if rank == 0 {
        nb[0] = bytes as u64;
    }
    Ok((shape, nb))
}
