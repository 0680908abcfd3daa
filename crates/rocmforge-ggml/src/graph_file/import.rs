//! Graphs of our own graph files.

use std::collections::BTreeMap;

use super::export::layout;
use super::{Descriptor, Entry, GraphFile, GraphFileError, Kind, MAX_TENSORS};
use crate::op::Fault;
use crate::{DType, Graph, Layout, Node, Op, TensorDesc, TensorId};

impl GraphFile {
    /// The graph that [`Self::from_graph`] made the file of, and its inputs: the same nodes, outputs, and descriptors under the same ids.
    /// Tensors that neither a node nor a view of a node's tensor uses are not in a file, and a graph with planned memory comes back as it
    /// was before planning.
    ///
    /// The nodes are not checked against their ops: [`crate::validate_graph`] does that, and every execution runs it.
    ///
    /// # Errors
    /// The file is not one of a [`Graph`] (an entry without a descriptor, an op that is not ours), or its descriptors or parameters
    /// contradict themselves or their entries.
    pub fn to_graph(&self) -> Result<(Graph, Vec<TensorId>), GraphFileError> {
        let mut import = Import {
            file: self,
            tensors: BTreeMap::new(),
            nodes: Vec::new(),
        };
        for index in 0..self.nodes.len() {
            import.entry(index)?;
        }
        let mut graph = Graph::new();
        for (id, desc) in import.tensors {
            graph.start_ids_at(id);
            graph.add_tensor(desc);
        }
        graph.nodes = import.nodes;
        let mut inputs = Vec::new();
        for entry in &self.nodes {
            let Some(descriptor) = &entry.descriptor else { continue };
            let id = TensorId(descriptor.tensor as usize);
            if entry.is_output {
                graph.mark_output(id);
            }
            if entry.is_input {
                inputs.push(id);
            }
        }
        Ok((graph, inputs))
    }
}

struct Import<'a> {
    file: &'a GraphFile,
    tensors: BTreeMap<TensorId, TensorDesc>,
    nodes: Vec<Node>,
}

impl<'a> Import<'a> {
    fn entry(&mut self, index: usize) -> Result<(), GraphFileError> {
        let entry = &self.file.nodes[index];
        let descriptor = self.descriptor(index)?;
        let id = TensorId(descriptor.tensor as usize);
        let mut desc = self.tensor(index, entry, descriptor)?;
        desc.id = id;
        match self.tensors.get(&id) {
            // Changed in place: the same memory under a new entry.
            Some(known) if *known == desc && entry.kind == Kind::Node => {}
            Some(_) => return Err(self.fault(index, "another entry describes its tensor in another way")),
            None => drop(self.tensors.insert(id, desc)),
        }
        let Some(node) = descriptor.node else {
            let declared = entry.kind == Kind::Leaf || descriptor.base.is_some();
            return match declared {
                true => Ok(()),
                false => Err(self.fault(index, "only a leaf or a view is there without a node")),
            };
        };
        if entry.kind == Kind::Leaf {
            return Err(self.fault(index, "a leaf has no node"));
        }
        let op = Op::read(&entry.op, entry.params.as_ref()).map_err(|fault| match fault {
            Fault::Op => self.fault(index, "no op has this name"),
            Fault::Parameter { name, rule } => GraphFileError::Parameter {
                entry: index,
                op: entry.op.clone(),
                parameter: name,
                rule,
            },
        })?;
        let srcs = entry.srcs.iter().map(|&src| {
            let descriptor = self.descriptor(src as usize)?;
            Ok(TensorId(descriptor.tensor as usize))
        });
        let inputs = srcs.collect::<Result<Vec<_>, GraphFileError>>()?;
        let count = self.nodes.len() as u64;
        if node == count {
            self.nodes.push(Node {
                op,
                inputs,
                outputs: vec![id],
            });
            return Ok(());
        }
        // Another output of the node before.
        match self.nodes.last_mut() {
            Some(last) if node + 1 == count && last.inputs == inputs && last.op.signature() == op.signature() => {
                last.outputs.push(id);
                Ok(())
            }
            _ => Err(self.fault(index, "nodes must be counted in the order they run")),
        }
    }

    fn descriptor(&self, index: usize) -> Result<&'a Descriptor, GraphFileError> {
        let descriptor = self.file.nodes[index].descriptor.as_ref();
        let descriptor = descriptor.ok_or_else(|| {
            self.fault(
                index,
                "it has no descriptor: only files that were made of a graph can be one again",
            )
        })?;
        if descriptor.tensor >= MAX_TENSORS {
            return Err(self.fault(index, "its tensor's id is larger than a graph file may have"));
        }
        Ok(descriptor)
    }

    /// The descriptor of an entry's tensor, which must be the entry in other words.
    fn tensor(&self, index: usize, entry: &Entry, own: &Descriptor) -> Result<TensorDesc, GraphFileError> {
        let fault = |rule| Err(self.fault(index, rule));
        let Some(dtype) = DType::ALL.into_iter().find(|dtype| dtype.to_string() == entry.dtype) else {
            return fault("its type is none of ours");
        };
        let order = [Layout::RowMajor, Layout::ColMajor, Layout::Strided];
        let Some(order) = order.into_iter().find(|order| format!("{order:?}") == own.layout) else {
            return fault("its layout must be RowMajor, ColMajor or Strided");
        };
        let base = own.base.map(|id| TensorId(id as usize));
        let (byte_offset, root) = match base {
            None => (0, None),
            Some(base) if self.tensors.contains_key(&base) => (entry.view_offs.unwrap_or(0), Some(self.root(base))),
            Some(_) => return fault("the tensor that it is a view of must come before it"),
        };
        if let Some(root) = root {
            let stated = entry
                .view_of
                .map(|root| self.file.nodes[root as usize].descriptor.as_ref());
            let stated = stated.flatten().map(|root| TensorId(root.tensor as usize));
            if stated != Some(root) {
                return fault("its root must be that of the tensor that it is a view of");
            }
        }
        let desc = TensorDesc {
            id: TensorId(0),
            dtype,
            shape: own.shape.clone(),
            layout: order,
            strides: own.strides.clone(),
            // Checked before: an entry fits in an address space.
            byte_offset: byte_offset as usize,
            view_of: base,
        };
        if desc.check().is_err() {
            return fault("its descriptor contradicts itself");
        }
        let same = layout(&desc).is_ok_and(|own| own == (entry.shape, entry.nb));
        if !same || desc.byte_size() as u64 != entry.nbytes {
            return fault("its descriptor has another shape, other strides or another size");
        }
        Ok(desc)
    }

    /// The end of a chain of views. Each base came before, so there is no circle.
    fn root(&self, id: TensorId) -> TensorId {
        let base = |id: &TensorId| self.tensors.get(id).and_then(|desc| desc.view_of);
        std::iter::successors(Some(id), base).last().unwrap_or(id)
    }

    fn fault(&self, entry: usize, rule: &'static str) -> GraphFileError {
        GraphFileError::Entry {
            entry,
            op: self.file.nodes[entry].op.clone(),
            rule,
        }
    }
}
