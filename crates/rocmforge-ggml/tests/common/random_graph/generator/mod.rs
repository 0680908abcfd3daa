//! Generator of random valid graphs over all ops, rank 1 to 4, mostly deep.
//!
//! A maker adds the nodes of one construction and gives its result, which later makers read: mostly what was made last. Any tensor
//! serves any maker, by slices and repetitions ([`Generator::fit`]). Results are scaled where they are large, and those that are not
//! finite are not read again.

mod attention;
mod elements;
mod moves;
mod planes;
mod products;
mod recurrent;
mod rows;

use std::collections::{BTreeMap, BTreeSet};

use rocmforge_ggml::{DType, Graph, Layout, Node, Op, TensorDesc, TensorId};
use rocmforge_testkit::data::{Rng, rng};

use super::super::weights::WEIGHTS;
use super::data::Data;
use super::machine::Machine;
use super::{Case, Leaf};

/// Asked for each node before it stays: whether the backend in question runs it. Leafs of the case have been filled by then.
pub(crate) type Accepts<'a> = dyn FnMut(&Case, &Node) -> bool + 'a;

/// Results beyond this are scaled down to it.
const LARGEST: f64 = 6.0;
/// Most elements of a tensor that is read again.
const MOST: usize = 4096;

/// A case of `nodes` nodes or a few more.
pub(crate) fn generate(seed: u64, nodes: usize, accepts: &mut Accepts<'_>) -> Case {
    let mut generator = Generator {
        case: Case {
            graph: Graph::new(),
            leafs: BTreeMap::new(),
            seed,
        },
        random: rng(seed ^ 0x6772_6170).quiet(),
        pool: Vec::new(),
        indices: Vec::new(),
        machine: Machine::new(0, seed),
        accepts,
    };
    generator.fill(nodes);
    generator.case
}

/// One construction; `None` if a node was not accepted.
type Maker = fn(&mut Generator<'_>) -> Option<TensorId>;

struct Generator<'a> {
    case: Case,
    random: Rng,
    /// Tensors in f32 that may be read.
    pool: Vec<TensorId>,
    /// Tensors of indices that nodes made: outputs.
    indices: Vec<TensorId>,
    machine: Machine,
    accepts: &'a mut Accepts<'a>,
}

impl Generator<'_> {
    fn fill(&mut self, nodes: usize) {
        let makers: Vec<Maker> = [
            elements::MAKERS.as_slice(),
            rows::MAKERS.as_slice(),
            products::MAKERS.as_slice(),
            attention::MAKERS.as_slice(),
            recurrent::MAKERS.as_slice(),
            planes::MAKERS.as_slice(),
            moves::MAKERS.as_slice(),
        ]
        .concat();
        let shape = self.shape();
        let input = self.leaf(DType::F32, &shape, Data::Uniform { low: -2.0, high: 2.0 });
        self.pool.push(input);
        // A backend that accepts little ends a graph early.
        for _ in 0..20 * nodes {
            if self.case.graph.nodes().len() >= nodes {
                break;
            }
            let maker = makers[self.random.below(makers.len())];
            if let Some(made) = maker(self) {
                self.keep(made);
            }
        }
        let mut outputs: Vec<TensorId> = self.indices.iter().copied().take(2).collect();
        outputs.extend(self.pool.last());
        outputs.push(self.pool[self.random.below(self.pool.len())]);
        for id in outputs.into_iter().filter(|id| !self.case.leafs.contains_key(id)) {
            self.case.graph.mark_output(id);
        }
        self.drop_unused_leafs();
    }

    /// Leafs of nodes that were not accepted.
    fn drop_unused_leafs(&mut self) {
        let graph = &self.case.graph;
        let used = graph
            .nodes()
            .iter()
            .flat_map(|node| node.inputs.iter().chain(&node.outputs));
        let used: BTreeSet<TensorId> = used.filter_map(|&id| graph.root(id)).collect();
        let unused = self.case.leafs.extract_if(.., |id, _| !used.contains(id));
        let unused: Vec<TensorId> = unused.map(|leaf| leaf.0).collect();
        for id in unused {
            self.case.graph.remove_tensor(id);
        }
    }

    /// Makes a result readable, if it is finite.
    fn keep(&mut self, made: TensorId) {
        let mut made = made;
        match self.desc(made).dtype {
            DType::F32 => {}
            dtype if dtype.is_plain_float() => match self.cast(made, DType::F32) {
                Some(cast) => made = cast,
                None => return,
            },
            _ => return self.indices.push(made),
        }
        let values = self.machine.exact(&self.case.graph, made);
        let largest = values.iter().fold(0.0f64, |most, v| most.max(v.abs()));
        if values.is_empty() || values.len() > MOST || !values.iter().all(|v| v.is_finite()) {
            return;
        }
        if largest > LARGEST {
            let factor = (LARGEST / 2.0 / largest) as f32;
            match self.push(Op::Scale { factor }, &[made]) {
                Some(scaled) => made = scaled,
                None => return,
            }
        }
        self.pool.push(made);
    }

    fn desc(&self, id: TensorId) -> &TensorDesc {
        self.case.desc(id)
    }

    fn dims(&self, id: TensorId) -> Vec<usize> {
        self.desc(id).shape.clone()
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.random.below(n) == 0
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.random.below(all.len())]
    }

    /// A shape of 1 to 4 dimensions.
    fn shape(&mut self) -> Vec<usize> {
        let rank = 1 + self.random.below(4);
        let mut shape: Vec<usize> = (1..rank).map(|_| self.one_of(&[1, 2, 3, 4, 6])).collect();
        let cols = self.one_of(&[1, 3, 8, 16, 32, 33, 64]);
        shape.push(cols);
        shape
    }

    /// A tensor to read: mostly what was made last.
    fn pick(&mut self) -> TensorId {
        let n = self.pool.len();
        let back = self.random.below(n).min(self.random.below(n));
        self.pool[n - 1 - back]
    }

    /// A leaf with data of its own in each run.
    fn leaf(&mut self, dtype: DType, shape: &[usize], data: Data) -> TensorId {
        self.add_leaf(TensorDesc::new(shape, dtype, Layout::RowMajor), data, false)
    }

    /// A leaf that stays the same.
    fn weight(&mut self, dtype: DType, shape: &[usize], layout: Layout, data: Data) -> TensorId {
        self.add_leaf(TensorDesc::new(shape, dtype, layout), data, true)
    }

    fn add_leaf(&mut self, desc: TensorDesc, data: Data, is_weight: bool) -> TensorId {
        let id = self.case.graph.add_tensor(desc);
        let salt = id.0 as u64;
        self.case.leafs.insert(id, Leaf { data, salt, is_weight });
        let bytes = self.case.bytes(id, 0);
        self.machine
            .fill(self.case.graph.tensor(id).expect("just added"), &bytes);
        id
    }

    /// Indices below a bound.
    fn index_leaf(&mut self, shape: &[usize], below: usize) -> TensorId {
        let dtype = self.one_of(&[DType::U32, DType::I32]);
        self.leaf(dtype, shape, Data::Whole { below })
    }

    /// A type of weights for rows of `cols` elements.
    fn weight_type(&mut self, cols: usize) -> DType {
        loop {
            let dtype = self.one_of(&WEIGHTS);
            if cols.is_multiple_of(dtype.block_len()) {
                return dtype;
            }
        }
    }

    fn push(&mut self, op: Op, inputs: &[TensorId]) -> Option<TensorId> {
        let made = self.case.graph.push(op, inputs);
        let made = made.unwrap_or_else(|error| panic!("seed {}: {error}", self.case.seed));
        self.added(made)
    }

    /// The results of an op that has several.
    fn push_all(&mut self, op: Op, inputs: &[TensorId]) -> Option<Vec<TensorId>> {
        let made = self.case.graph.push_all(op, inputs);
        let made = made.unwrap_or_else(|error| panic!("seed {}: {error}", self.case.seed));
        self.added(made[0])?;
        Some(made)
    }

    /// The last node's first result, if the node is accepted; else the node goes.
    fn added(&mut self, made: TensorId) -> Option<TensorId> {
        let node = self.case.graph.nodes().last().expect("a node was added").clone();
        if !(self.accepts)(&self.case, &node) {
            self.case.graph.nodes_mut().pop();
            for id in node.outputs {
                self.case.graph.remove_tensor(id);
            }
            return None;
        }
        self.machine.step(&self.case.graph, &node);
        Some(made)
    }

    fn cast(&mut self, x: TensorId, to: DType) -> Option<TensorId> {
        self.push(Op::Cpy { to: Some(to) }, &[x])
    }

    fn reshape(&mut self, x: TensorId, shape: &[usize]) -> Option<TensorId> {
        let mut x = x;
        if self.desc(x).shape == shape {
            return Some(x);
        }
        if !self.desc(x).is_contiguous() || self.desc(x).layout != Layout::RowMajor {
            x = self.push(Op::Cont, &[x])?;
        }
        let made = self.case.graph.reshape(x, shape).expect("contiguous, as many elements");
        self.added(made)
    }

    /// A tensor of this shape made of one that is there: reshaped, cut or repeated.
    fn fit(&mut self, shape: &[usize]) -> Option<TensorId> {
        let want = shape.iter().product::<usize>();
        let mut x = self.pick();
        for _ in 0..8 {
            if self.desc(x).element_count() == want {
                break;
            }
            x = self.pick();
        }
        self.fit_of(x, shape)
    }

    fn fit_of(&mut self, x: TensorId, shape: &[usize]) -> Option<TensorId> {
        let (have, want) = (self.desc(x).element_count(), shape.iter().product::<usize>());
        if have == want {
            return self.reshape(x, shape);
        }
        if have < want {
            let row = self.reshape(x, &[1, have])?;
            let rows = self
                .case
                .graph
                .repeat(row, [want.div_ceil(have), have])
                .expect("a multiple");
            let rows = self.added(rows)?;
            return self.fit_of(rows, shape);
        }
        let flat = self.reshape(x, &[have])?;
        let start = self.random.below(have - want + 1);
        let mut part = TensorDesc::view_of(self.desc(flat), start * 4);
        part.set_shape([want]);
        let part = self.case.graph.view(flat, part).expect("a part");
        let part = self.added(part)?;
        self.reshape(part, shape)
    }

    /// The tensor, or a copy of it in 16 bits.
    fn any_float(&mut self, x: TensorId) -> Option<TensorId> {
        match self.random.below(8) {
            0 => self.cast(x, DType::F16),
            1 => self.cast(x, DType::Bf16),
            _ => Some(x),
        }
    }

    /// The tensor in the type of another.
    fn cast_like(&mut self, x: TensorId, other: TensorId) -> Option<TensorId> {
        let dtype = self.desc(other).dtype;
        if self.desc(x).dtype == dtype {
            Some(x)
        } else {
            self.cast(x, dtype)
        }
    }
}
