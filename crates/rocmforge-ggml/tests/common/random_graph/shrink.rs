//! Shrinking: the smallest part of a failing case that still fails.

use std::collections::{BTreeMap, BTreeSet};

use rocmforge_ggml::{Graph, Layout, Op, Strictness, TensorDesc, TensorId, validate_graph};

use super::check::{data_like, machine};
use super::data::Data;
use super::{Case, Leaf};

/// Drops outputs and nodes, puts leafs and operands in the place of nodes, and halves dimensions, as long as `fails` says that the
/// result still fails.
pub(crate) fn shrink(case: Case, fails: &mut dyn FnMut(&Case) -> bool) -> Case {
    let mut case = case;
    // Each round that goes on makes the case smaller.
    while let Some(smaller) = step(&case, fails) {
        case = smaller;
    }
    case
}

/// The first change that makes a smaller case that fails.
fn step(case: &Case, fails: &mut dyn FnMut(&Case) -> bool) -> Option<Case> {
    let mut edits: Vec<Edit> = Vec::new();
    for node in case.graph.nodes() {
        edits.extend(node.outputs.iter().map(|&id| Edit::Output(id)));
    }
    let values = values(case);
    for (index, node) in case.graph.nodes().iter().enumerate().rev() {
        // One of several results is no node's to replace.
        let &[output] = node.outputs.as_slice() else { continue };
        if let Some(values) = values.get(&output) {
            edits.push(Edit::ByLeaf(index, data_like(values)));
        }
        let inputs = node.inputs.iter().filter(|&&id| {
            let (a, b) = (case.desc(id), case.desc(output));
            (a.dtype, &a.shape) == (b.dtype, &b.shape)
        });
        edits.extend(inputs.map(|&id| Edit::ByInput(index, id)));
    }
    let sizes: BTreeSet<usize> = case.graph.tensors().flat_map(|desc| desc.shape.clone()).collect();
    edits.extend(sizes.into_iter().rev().filter(|&size| size > 1).map(Edit::Halve));
    for &id in case.leafs.keys() {
        edits.extend((0..case.desc(id).shape.len()).map(|dim| Edit::HalveLeaf(id, dim)));
    }
    let before = size(case);
    let smaller = edits.into_iter().filter_map(|edit| rebuild(case, edit));
    smaller
        .filter(|smaller| size(smaller) < before)
        .find(|smaller| fails(smaller))
}

/// Nodes first, then outputs, then elements.
fn size(case: &Case) -> (usize, usize, usize) {
    let elements = case.graph.tensors().map(TensorDesc::element_count).sum();
    (case.graph.nodes().len(), case.graph.get_outputs().len(), elements)
}

/// The exact values of what nodes that are no views make.
fn values(case: &Case) -> BTreeMap<TensorId, Vec<f64>> {
    let mut machine = machine(case, 0, 0);
    let mut values = BTreeMap::new();
    for node in case.graph.nodes() {
        machine.step(&case.graph, node);
        values.extend(node.outputs.iter().map(|&id| (id, machine.exact(&case.graph, id))));
    }
    values
}

/// One change.
#[derive(Clone, Copy, Debug)]
enum Edit {
    /// Only this output, and what it needs.
    Output(TensorId),
    /// A leaf in the place of a node's result.
    ByLeaf(usize, Data),
    /// An operand of the node in the place of its result.
    ByInput(usize, TensorId),
    /// Half of every dimension, count and bound of this size.
    Halve(usize),
    /// Half of one dimension of a leaf.
    HalveLeaf(TensorId, usize),
}

/// The case with a change; `None` if that is no valid graph.
fn rebuild(case: &Case, edit: Edit) -> Option<Case> {
    let mut rebuild = Rebuild {
        old: case,
        new: Case {
            graph: Graph::new(),
            leafs: BTreeMap::new(),
            seed: case.seed,
        },
        ids: BTreeMap::new(),
        edit,
    };
    let outputs = match edit {
        Edit::Output(id) => vec![id],
        _ => case.graph.get_outputs(),
    };
    let needed = rebuild.needed(&outputs);
    for (index, node) in case.graph.nodes().iter().enumerate() {
        if node.outputs.iter().any(|id| needed.contains(id)) {
            rebuild.node(index)?;
        }
    }
    for id in outputs {
        let id = rebuild.tensor(id)?;
        rebuild.new.graph.mark_output(id);
    }
    validate_graph(&rebuild.new.graph, Strictness::Strict).ok()?;
    Some(rebuild.new)
}

struct Rebuild<'a> {
    old: &'a Case,
    new: Case,
    ids: BTreeMap<TensorId, TensorId>,
    edit: Edit,
}

impl Rebuild<'_> {
    /// All tensors that the outputs are made of.
    fn needed(&self, outputs: &[TensorId]) -> BTreeSet<TensorId> {
        let mut needed = BTreeSet::new();
        let add = |needed: &mut BTreeSet<TensorId>, id: TensorId| {
            let bases = std::iter::successors(Some(id), |&id| self.old.desc(id).view_of);
            needed.extend(bases);
        };
        outputs.iter().for_each(|&id| add(&mut needed, id));
        for (index, node) in self.old.graph.nodes().iter().enumerate().rev() {
            if !node.outputs.iter().any(|id| needed.contains(id)) {
                continue;
            }
            match self.edit {
                Edit::ByLeaf(at, _) if at == index => {}
                Edit::ByInput(at, id) if at == index => add(&mut needed, id),
                _ => node.inputs.iter().for_each(|&id| add(&mut needed, id)),
            }
        }
        needed
    }

    fn sized(&self, size: usize) -> usize {
        match self.edit {
            Edit::Halve(old) if old == size => size / 2,
            _ => size,
        }
    }

    fn shape(&self, desc: &TensorDesc) -> Vec<usize> {
        desc.shape.iter().map(|&d| self.sized(d)).collect()
    }

    /// The new id of a tensor that a node has made, or that is a leaf or a view of one.
    fn tensor(&mut self, id: TensorId) -> Option<TensorId> {
        if let Some(&id) = self.ids.get(&id) {
            return Some(id);
        }
        let desc = self.old.desc(id).clone();
        let new = match desc.view_of {
            Some(base) => {
                let base = self.tensor(base)?;
                let view = self.view(&desc, base);
                self.new.graph.add_tensor(view)
            }
            None => {
                let leaf = *self.old.leafs.get(&id)?;
                let mut shape = self.shape(&desc);
                if let Edit::HalveLeaf(own, dim) = self.edit
                    && own == id
                {
                    shape[dim] /= 2;
                }
                let data = match leaf.data {
                    Data::Whole { below } => Data::Whole {
                        below: self.sized(below),
                    },
                    Data::Distinct { below } => Data::Distinct {
                        below: self.sized(below),
                    },
                    data => data,
                };
                let new = self
                    .new
                    .graph
                    .add_tensor(TensorDesc::new(shape, desc.dtype, desc.layout));
                self.new.leafs.insert(new, Leaf { data, ..leaf });
                new
            }
        };
        self.ids.insert(id, new);
        Some(new)
    }

    /// A view like the old one, of a new base.
    fn view(&self, desc: &TensorDesc, base: TensorId) -> TensorDesc {
        let old_base = desc.view_of.map_or(0, |base| self.old.desc(base).byte_offset);
        let mut view = TensorDesc::view_of(self.new.desc(base), desc.byte_offset - old_base);
        view.dtype = desc.dtype;
        view.layout = desc.layout;
        if desc.layout == Layout::Strided {
            view.shape = self.shape(desc);
            view.strides.clone_from(&desc.strides);
        } else {
            view.set_shape(self.shape(desc));
        }
        view
    }

    fn node(&mut self, index: usize) -> Option<()> {
        let node = &self.old.graph.nodes()[index];
        let output = node.outputs[0];
        let desc = self.old.desc(output).clone();
        let new = match self.edit {
            Edit::ByInput(at, id) if at == index => self.tensor(id)?,
            Edit::ByLeaf(at, data) if at == index => {
                let leaf = TensorDesc::new(desc.shape, desc.dtype, Layout::RowMajor);
                if leaf.check().is_err() {
                    return None;
                }
                let new = self.new.graph.add_tensor(leaf);
                let salt = 1000 + index as u64;
                let is_weight = false;
                self.new.leafs.insert(new, Leaf { data, salt, is_weight });
                new
            }
            _ => {
                let inputs: Option<Vec<TensorId>> = node.inputs.iter().map(|&id| self.tensor(id)).collect();
                let op = self.op(node.op);
                if node.outputs.len() > 1 {
                    let made = self.new.graph.push_all(op, &inputs?).ok()?;
                    self.ids.extend(node.outputs.iter().copied().zip(made));
                    return Some(());
                }
                self.add(op, &inputs?, &desc)?
            }
        };
        self.ids.insert(output, new);
        Some(())
    }

    /// Adds a node like the old one.
    fn add(&mut self, op: Op, inputs: &[TensorId], old: &TensorDesc) -> Option<TensorId> {
        let shape = self.shape(old);
        let view = old.is_view();
        let (graph, x) = (&mut self.new.graph, *inputs.first()?);
        match op {
            Op::Reshape => graph.reshape(x, shape).ok(),
            Op::Repeat => graph.repeat(x, shape).ok(),
            Op::SetRows => graph.set_rows(x, inputs[1], inputs[2]).ok(),
            Op::Cpy { .. } if inputs.len() == 2 => graph.cpy(x, inputs[1]).ok(),
            Op::Transpose if view => graph.transpose(x).ok(),
            Op::Permute { axes } if view => graph.permute(x, axes.get(..shape.len())?).ok(),
            Op::View => {
                let view = self.view(old, x);
                self.new.graph.view(x, view).ok()
            }
            Op::Accumulate { .. } => {
                let view = TensorDesc::view_of(graph.tensor(inputs[1])?, 0);
                let output = graph.add_tensor(view);
                graph.add_node(op, inputs.to_vec(), vec![output]);
                Some(output)
            }
            op => graph.push(op, inputs).ok(),
        }
    }

    /// The op with its counts halved where they are of the size.
    fn op(&self, op: Op) -> Op {
        let sized = |n: usize| self.sized(n);
        match op {
            Op::Rope(mut r) => {
                r.n_dims = sized(r.n_dims);
                Op::Rope(r)
            }
            Op::Attention(mut a) => {
                (a.heads, a.kv_heads, a.head_dim) = (sized(a.heads), sized(a.kv_heads), sized(a.head_dim));
                Op::Attention(a)
            }
            Op::PagedAttention(mut a) => {
                (a.heads, a.kv_heads, a.head_dim) = (sized(a.heads), sized(a.kv_heads), sized(a.head_dim));
                Op::PagedAttention(a)
            }
            Op::TopK { k } => Op::TopK { k: sized(k) },
            op => op,
        }
    }
}
