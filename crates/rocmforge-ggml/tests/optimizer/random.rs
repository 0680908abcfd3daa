//! Random graphs of what the passes look for, and of what is nearly that: a result that is read twice or marked, another shape, an
//! operand that comes too late.

use std::sync::Arc;

use rocmforge_ggml::optimizer::Constants;
use rocmforge_ggml::{
    CpuBackend, DType, GluKind, Graph, HostAccess, Layout, Op, Rope, RopeStyle, SharedBytes, SoftMax, TensorDesc,
    TensorId, Unary,
};
use rocmforge_gguf::{TensorType, blocks};
use rocmforge_testkit::data::{Rng, rng};

/// Elements of a row: a block of q8_0, and two heads of 16.
const ROW: usize = 32;
const HEADS: usize = 2;
const EXPERTS: usize = 3;
/// Rows of a cache.
const SLOTS: usize = 9;

/// A graph with the content of its inputs and weights.
pub(crate) struct Random {
    pub(crate) graph: Graph,
    pub(crate) leafs: Vec<Leaf>,
    /// Leafs that nodes change.
    pub(crate) changed: Vec<TensorId>,
    /// Whether something is rounded to f16 on its way.
    pub(crate) has_halves: bool,
    rng: Rng,
    rows: usize,
    /// f32 `[rows, ROW]`, in the order they were made.
    known: Vec<TensorId>,
    ids: Option<TensorId>,
}

/// A tensor that is filled before a run.
pub(crate) struct Leaf {
    pub(crate) id: TensorId,
    values: Values,
    constant: bool,
}

enum Values {
    /// In row-major order of the tensor's shape.
    Floats(Vec<f32>),
    Words(Vec<u32>),
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = rng(seed);
        let rows = [1, 2, 3, 6][rng.below(4)];
        let mut random = Self {
            graph: Graph::new(),
            leafs: Vec::new(),
            changed: Vec::new(),
            has_halves: false,
            rng,
            rows,
            known: Vec::new(),
            ids: None,
        };
        let x = random.floats(&[rows, ROW], false);
        random.known.push(x);
        for _ in 0..2 + random.rng.below(6) {
            random.pattern();
        }
        random.last_rows();
        random.mark_ends();
        random
    }

    /// Marks most of what nobody reads: a fault in dead code would not be seen.
    fn mark_ends(&mut self) {
        let made: Vec<TensorId> = self
            .graph
            .nodes()
            .iter()
            .flat_map(|node| node.outputs.clone())
            .collect();
        for id in made {
            let is_read = self.graph.nodes().iter().any(|node| node.inputs.contains(&id));
            if !is_read && !self.chance(8) {
                self.graph.mark_output(id);
            }
        }
    }

    /// One in `n`.
    fn chance(&mut self, n: usize) -> bool {
        self.rng.below(n) == 0
    }

    fn pattern(&mut self) {
        let x = self.any();
        let made = match self.rng.below(16) {
            0 => self.norm_weight(x),
            1 | 13 => self.bias_activation(x),
            2 | 3 => self.add_norm(x),
            4 => self.gate_up(x),
            5 => self.qkv(x),
            6 => self.attention(x),
            7 => self.rope_rows(x),
            8 => self.noop(x),
            9 => self.twice(x),
            10 => self.folded(x),
            11 => self.effect(x),
            14 => self.experts(x),
            12 => {
                let y = self.any();
                let product = self.push(Op::Mul, &[x, y]);
                self.push(Op::Add, &[product, x])
            }
            _ => self.unary(x),
        };
        self.near_miss(made);
        self.known.push(made);
    }

    /// Mostly what was made last: graphs of models are deep.
    fn any(&mut self) -> TensorId {
        let back = self.rng.below(self.known.len()).min(self.rng.below(self.known.len()));
        self.known[self.known.len() - 1 - back]
    }

    /// Now and then: marks a result, or reads it once more.
    fn near_miss(&mut self, id: TensorId) {
        match self.rng.below(12) {
            0 => self.graph.mark_output(id),
            1 => {
                let read = self.push(Op::Scale { factor: 0.5 }, &[id]);
                self.graph.mark_output(read);
            }
            2 => {
                self.push(Op::Scale { factor: 0.5 }, &[id]);
            }
            _ => {}
        }
    }

    fn push(&mut self, op: Op, inputs: &[TensorId]) -> TensorId {
        self.graph.push(op, inputs).expect("the operands fit")
    }

    fn leaf(&mut self, desc: TensorDesc, values: Values, constant: bool) -> TensorId {
        let id = self.graph.add_tensor(desc);
        self.leafs.push(Leaf { id, values, constant });
        id
    }

    fn floats(&mut self, shape: &[usize], constant: bool) -> TensorId {
        let values = self.rng.vec(shape.iter().product());
        self.leaf(TensorDesc::f32(shape), Values::Floats(values), constant)
    }

    fn words(&mut self, words: Vec<u32>) -> TensorId {
        self.leaf(TensorDesc::u32([words.len()]), Values::Words(words), false)
    }

    /// A weight of a norm, near 1.
    fn vector(&mut self) -> TensorId {
        let values = self.rng.vec_in(ROW, 0.5, 1.5);
        self.leaf(TensorDesc::f32([ROW]), Values::Floats(values), true)
    }

    /// A weight `[ROW, n]`, so small that products stay as large as what is multiplied.
    fn weight(&mut self, n: usize) -> TensorId {
        let (dtype, layout) = match self.rng.below(5) {
            0 => (DType::F32, Layout::RowMajor),
            1 => (DType::F16, Layout::ColMajor),
            2 => (DType::Q8_0, Layout::ColMajor),
            _ => (DType::F32, Layout::ColMajor),
        };
        let values = self.rng.vec_in(ROW * n, -0.3, 0.3);
        // The layout of a constant is what it is.
        let constant = layout == Layout::ColMajor;
        let desc = TensorDesc::new([ROW, n], dtype, layout);
        self.leaf(desc, Values::Floats(values), constant)
    }

    fn function(&mut self) -> Op {
        let all = [
            Unary::Silu,
            Unary::Gelu,
            Unary::GeluErf,
            Unary::Tanh,
            Unary::Relu,
            Unary::Sigmoid,
        ];
        Op::Unary(all[self.rng.below(all.len())])
    }

    fn unary(&mut self, x: TensorId) -> TensorId {
        let op = match self.rng.below(5) {
            0 => Op::Scale { factor: 0.75 },
            1 => Op::L2Norm { eps: 1e-5 },
            2 => Op::Softmax,
            3 => Op::Clamp { min: -1.0, max: 2.0 },
            _ => self.function(),
        };
        self.push(op, &[x])
    }

    fn norm_weight(&mut self, x: TensorId) -> TensorId {
        let is_rms = self.chance(2);
        let eps = 1e-5;
        let normed = self.push(
            if is_rms {
                Op::RmsNorm { eps }
            } else {
                Op::LayerNorm { eps }
            },
            &[x],
        );
        self.near_miss(normed);
        let weight = match self.rng.below(6) {
            0 => self.any(),
            1 => self.floats(&[1, ROW], true),
            _ => self.vector(),
        };
        let mut y = self.push(Op::Mul, &[normed, weight]);
        if !is_rms || self.chance(4) {
            self.near_miss(y);
            let bias = self.vector();
            y = self.push(Op::Add, &[y, bias]);
        }
        y
    }

    fn product(&mut self, x: TensorId, n: usize, bias: bool) -> TensorId {
        let weight = self.weight(n);
        let mut inputs = vec![x, weight];
        if bias {
            inputs.push(self.floats(&[n], true));
        }
        self.push(Op::MulMat, &inputs)
    }

    fn bias_activation(&mut self, x: TensorId) -> TensorId {
        let has_bias = self.chance(3);
        let mut y = self.product(x, ROW, has_bias);
        self.near_miss(y);
        if self.chance(2) {
            let bias = match self.rng.below(5) {
                0 => self.any(),
                1 => self.floats(&[1, ROW], true),
                _ => self.floats(&[ROW], true),
            };
            y = self.push(Op::Add, &[y, bias]);
            self.near_miss(y);
        }
        if self.chance(2) {
            let function = self.function();
            y = self.push(function, &[y]);
        }
        y
    }

    fn add_norm(&mut self, x: TensorId) -> TensorId {
        let y = match self.rng.below(6) {
            0 => self.floats(&[ROW], true),
            1 => x,
            _ => self.any(),
        };
        let sum = self.push(Op::Add, &[x, y]);
        self.near_miss(sum);
        self.known.push(sum);
        if self.chance(3) {
            // The norm is not what comes next.
            self.pattern();
        }
        let mut inputs = vec![sum];
        if !self.chance(3) {
            let mut weight = self.vector();
            if self.chance(4) {
                // A weight that is computed after the sum.
                let activation = self.floats(&[ROW], false);
                let scaled = self.push(Op::Scale { factor: 0.5 }, &[activation]);
                weight = self.push(Op::Add, &[weight, scaled]);
            }
            inputs.push(weight);
        }
        self.push(Op::RmsNorm { eps: 1e-5 }, &inputs)
    }

    fn gate_up(&mut self, x: TensorId) -> TensorId {
        let other = if self.chance(6) { self.any() } else { x };
        let has_bias = self.chance(8);
        let gate = self.product(x, ROW, has_bias);
        self.near_miss(gate);
        let up = self.product(other, ROW, false);
        self.near_miss(up);
        if self.chance(3) {
            let function = self.function();
            let active = self.push(function, &[gate]);
            self.near_miss(active);
            let pair = if self.chance(2) { [active, up] } else { [up, active] };
            return self.push(Op::Mul, &pair);
        }
        let kind = GluKind::ALL[self.rng.below(GluKind::ALL.len())];
        let up = if self.chance(12) { gate } else { up };
        self.push(Op::Glu { kind, swapped: false }, &[gate, up])
    }

    /// Gate and up of the experts of each row, one more product, and the sum of what it gives times factors.
    fn experts(&mut self, x: TensorId) -> TensorId {
        let (rows, used) = (self.rows, 1 + self.rng.below(3));
        let [ids, others] = [(); 2].map(|()| {
            let words = (0..rows * used).map(|_| self.rng.below(EXPERTS) as u32).collect();
            self.leaf(TensorDesc::u32([rows, used]), Values::Words(words), false)
        });
        let seen = self.graph.reshape(x, [rows, 1, ROW]).expect("as many elements");
        let gate = self.of_experts(seen, ids);
        let chosen = if self.chance(8) { others } else { ids };
        let up = self.of_experts(seen, chosen);
        let mut kind = GluKind::ALL[self.rng.below(GluKind::ALL.len())];
        let (mut gate, mut up) = (gate, up);
        if self.chance(3) {
            // As gpt-oss has it, mostly.
            kind = if self.chance(8) { kind } else { GluKind::GegluQuick };
            let (min, max) = (f32::NEG_INFINITY, 1.5);
            gate = self.push(Op::Clamp { min, max }, &[gate]);
            self.near_miss(gate);
            up = self.push(Op::Clamp { min: -max, max }, &[up]);
            let bias = if self.chance(8) { 0.5 } else { 1.0 };
            up = self.push(Op::ScaleBias { factor: 1.0, bias }, &[up]);
        }
        let inner = self.push(Op::Glu { kind, swapped: false }, &[gate, up]);
        self.near_miss(inner);
        let results = self.of_experts(inner, ids);
        let factors = self.floats(&[rows, 1, used], false);
        let sum = self.push(Op::MulMat, &[factors, results]);
        self.graph.reshape(sum, [rows, ROW]).expect("as many elements")
    }

    fn of_experts(&mut self, x: TensorId, ids: TensorId) -> TensorId {
        let (dtype, layout) = match self.rng.below(4) {
            0 => (DType::F32, Layout::RowMajor),
            1 => (DType::F16, Layout::ColMajor),
            _ => (DType::F32, Layout::ColMajor),
        };
        let values = self.rng.vec_in(EXPERTS * ROW * ROW, -0.3, 0.3);
        let desc = TensorDesc::new([EXPERTS, ROW, ROW], dtype, layout);
        let weights = self.leaf(desc, Values::Floats(values), false);
        let products = self.push(Op::MulMatId, &[x, weights, ids]);
        self.near_miss(products);
        if !self.chance(3) {
            return products;
        }
        let bias = self.floats(&[EXPERTS, ROW], false);
        let sums = self.push(Op::AddId, &[products, bias, ids]);
        self.near_miss(sums);
        sums
    }

    fn qkv(&mut self, x: TensorId) -> TensorId {
        let biases = self.chance(3);
        let mut made = Vec::new();
        for index in 0..2 + self.rng.below(3) {
            let n = if index == 0 {
                ROW
            } else {
                [ROW, 16, 7][self.rng.below(3)]
            };
            let has_bias = biases && !self.chance(8);
            let y = self.product(x, n, has_bias);
            self.near_miss(y);
            if n == ROW {
                made.push(y);
            } else {
                self.graph.mark_output(y);
            }
            if self.chance(6) {
                self.pattern();
            }
        }
        made.into_iter()
            .reduce(|a, b| self.push(Op::Add, &[a, b]))
            .expect("the first has as long rows")
    }

    /// Attention of two heads over the rows of `x`.
    fn attention(&mut self, x: TensorId) -> TensorId {
        let (n, dim) = (self.rows, ROW / HEADS);
        let kv = [n, 5][self.rng.below(2)];
        let kv_heads = 1 + self.rng.below(HEADS);
        let q = self.graph.reshape(x, [1, n, HEADS, dim]).expect("contiguous");
        let q = self.graph.permute(q, &[0, 2, 1, 3]).expect("four dimensions");
        let [k, v] = [0, 1].map(|_| {
            let cache = self.floats(&[1, kv, kv_heads, dim], false);
            self.graph.permute(cache, &[0, 2, 1, 3]).expect("four dimensions")
        });
        let k = self.graph.transpose(k).expect("four dimensions");
        let scores = self.push(Op::MulMat, &[q, k]);
        self.near_miss_of_scores(scores);
        let (mask, sinks) = (self.chance(2), self.chance(4));
        let mut inputs = vec![scores];
        if mask {
            let shape = [vec![n, kv], vec![n + 1, kv], vec![1, HEADS, n, kv]];
            let shape = &shape[self.rng.below(3)];
            let values =
                (0..shape.iter().product()).map(|_| if self.rng.below(4) == 0 { f32::NEG_INFINITY } else { 0.0 });
            let values = values.collect();
            inputs.push(self.leaf(TensorDesc::f32(shape.clone()), Values::Floats(values), false));
        }
        if sinks {
            inputs.push(self.floats(&[HEADS], true));
        }
        let s = SoftMax {
            scale: 0.25,
            max_bias: if mask && self.chance(3) { 8.0 } else { 0.0 },
            mask,
            sinks,
        };
        let weights = self.push(Op::SoftMax(s), &inputs);
        self.near_miss_of_scores(weights);
        let attended = self.push(Op::MulMat, &[weights, v]);
        if self.chance(12) {
            self.graph.mark_output(attended);
        }
        // Wrong axes: the elements of each head in another order.
        if self.chance(8) && dim == HEADS * 8 {
            let turned = self.graph.permute(attended, &[0, 1, 3, 2]).expect("four dimensions");
            let rows = self.push(Op::Cont, &[turned]);
            return self.graph.reshape(rows, [n, ROW]).expect("contiguous");
        }
        let swapped = self.graph.permute(attended, &[0, 2, 1, 3]).expect("four dimensions");
        let rows = self.push(Op::Cont, &[swapped]);
        self.graph.reshape(rows, [n, ROW]).expect("contiguous")
    }

    fn near_miss_of_scores(&mut self, id: TensorId) {
        if self.chance(10) {
            self.graph.mark_output(id);
        } else if self.chance(10) {
            let sums = self.push(Op::SumRows, &[id]);
            self.graph.mark_output(sums);
        }
    }

    fn cache(&mut self) -> TensorId {
        let half = self.chance(4);
        self.has_halves |= half;
        let dtype = if half { DType::F16 } else { DType::F32 };
        let values = self.rng.vec(SLOTS * ROW);
        let desc = TensorDesc::new([SLOTS, ROW], dtype, Layout::RowMajor);
        let cache = self.leaf(desc, Values::Floats(values), false);
        self.changed.push(cache);
        cache
    }

    /// Distinct rows of a cache.
    fn slots(&mut self) -> TensorId {
        let first = self.rng.below(SLOTS);
        self.words((0..self.rows).map(|row| ((first + 2 * row) % SLOTS) as u32).collect())
    }

    fn rope_rows(&mut self, x: TensorId) -> TensorId {
        let (n, dim) = (self.rows, ROW / HEADS);
        let positions = self.rng.below(50) as u32;
        let positions = self.words((0..n as u32).map(|row| positions + row).collect());
        let heads = self.graph.reshape(x, [1, n, HEADS, dim]).expect("contiguous");
        let style = [RopeStyle::HalfSplit, RopeStyle::Interleaved][self.rng.below(2)];
        let mut inputs = vec![heads, positions];
        if self.chance(4) {
            let values = self.rng.vec_in(dim / 2, 1.0, 2.0);
            inputs.push(self.leaf(TensorDesc::f32([dim / 2]), Values::Floats(values), true));
        }
        let rotated = self.push(Op::Rope(Rope::new(dim, 10_000.0, style, 64)), &inputs);
        let rows = self.graph.reshape(rotated, [n, ROW]).expect("contiguous");
        if self.chance(6) {
            self.near_miss(rotated);
            self.near_miss(rows);
        }
        let (cache, ids) = (self.cache(), self.slots());
        if self.chance(4) {
            self.pattern();
        }
        let written = self.graph.set_rows(rows, cache, ids).expect("fits");
        if self.chance(4) {
            // Nobody reads what was written: an effect all the same.
            return self.graph.reshape(x, [n, ROW]).expect("contiguous");
        }
        let ids = self.slots();
        self.push(Op::GetRows, &[written, ids])
    }

    fn noop(&mut self, x: TensorId) -> TensorId {
        let n = self.rows;
        match self.rng.below(5) {
            0 => self.graph.reshape(x, [n, ROW]).expect("contiguous"),
            1 => self.push(Op::Cont, &[x]),
            2 => self.push(Op::Cpy { to: None }, &[x]),
            3 => {
                let flat = self.graph.reshape(x, [n * ROW]).expect("contiguous");
                let copy = self.push(Op::Dup, &[flat]);
                self.graph.reshape(copy, [n, ROW]).expect("contiguous")
            }
            _ => {
                let turned = self.graph.transpose(x).expect("two dimensions");
                let copy = self.push(Op::Cont, &[turned]);
                let back = self.graph.transpose(copy).expect("two dimensions");
                self.push(Op::Cont, &[back])
            }
        }
    }

    /// Something that has been computed before.
    fn twice(&mut self, x: TensorId) -> TensorId {
        let again = self.graph.nodes().iter().rev().find(|node| {
            let made = node.outputs.first().and_then(|&id| self.graph.tensor(id));
            made.is_some_and(|desc| desc.shape == [self.rows, ROW] && !desc.is_view() && desc.dtype == DType::F32)
        });
        match again.map(|node| (node.op, node.inputs.clone())) {
            Some((op, inputs)) => {
                let again = self.push(op, &inputs);
                self.push(Op::Add, &[again, x])
            }
            None => x,
        }
    }

    /// Weights that follow from weights.
    fn folded(&mut self, x: TensorId) -> TensorId {
        if self.chance(3) {
            // As large as what it is made of: beyond the limit, unless other constants are larger.
            let values = self.rng.vec_in(ROW * ROW, -0.3, 0.3);
            let matrix = self.leaf(TensorDesc::f32([ROW, ROW]), Values::Floats(values), true);
            let scaled = self.push(Op::Scale { factor: 0.9 }, &[matrix]);
            return self.push(Op::MulMat, &[x, scaled]);
        }
        let mut weight = self.vector();
        for _ in 0..1 + self.rng.below(3) {
            let other = if self.chance(5) {
                self.floats(&[ROW], false)
            } else {
                self.vector()
            };
            weight = self.push(Op::Mul, &[weight, other]);
            if self.chance(6) {
                self.graph.mark_output(weight);
            }
        }
        self.push(Op::RmsNorm { eps: 1e-5 }, &[x, weight])
    }

    /// Memory that is changed between two reads.
    fn effect(&mut self, x: TensorId) -> TensorId {
        let n = self.rows;
        // It is said to be constant, but it is not.
        let constant = self.chance(4);
        let buffer = self.floats(&[n, ROW], constant);
        self.changed.push(buffer);
        // Reads before the change: these must stay there.
        let before = match self.rng.below(4) {
            0 => self.push(Op::Add, &[x, buffer]),
            // A copy of what was there before, which is read after the change.
            3 => self.push(Op::Cont, &[buffer]),
            1 => self.product(buffer, ROW, false),
            _ => self.push(Op::RmsNorm { eps: 1e-5 }, &[buffer]),
        };
        let changed = match self.rng.below(3) {
            0 => {
                self.graph
                    .add_node(Op::Accumulate { offset: 0 }, vec![x, buffer], vec![buffer]);
                buffer
            }
            1 => self.graph.cpy(x, buffer).expect("as many elements"),
            _ => {
                let id = self.words(vec![(n - 1) as u32]);
                let row = self.floats(&[1, ROW], false);
                self.graph.set_rows(row, buffer, id).expect("fits")
            }
        };
        let weight = self.vector();
        let before = self.push(Op::Mul, &[before, weight]);
        let normed = self.push(Op::RmsNorm { eps: 1e-5 }, &[changed]);
        self.push(Op::Add, &[before, normed])
    }

    /// Some rows of a result.
    fn last_rows(&mut self) {
        let n = self.rows;
        let mut y = *self.known.last().expect("at least the input");
        let is_view = self.chance(4);
        if !is_view && self.ids.is_none() {
            let count = 1 + self.rng.below(n);
            let rows = (0..count).map(|_| self.rng.below(n) as u32).collect();
            self.ids = Some(self.words(rows));
        }
        if self.chance(3) {
            y = self.product(y, 7, false);
        }
        self.near_miss(y);
        let out = match self.ids {
            Some(ids) => {
                let chosen = self.push(Op::GetRows, &[y, ids]);
                if self.chance(3) {
                    // The same rows again, or others.
                    let count = self.rng.below(n) as u32;
                    let ids = if self.chance(2) { ids } else { self.words(vec![count]) };
                    let again = self.push(Op::GetRows, &[y, ids]);
                    let again = self.push(Op::Scale { factor: 0.5 }, &[again]);
                    self.graph.mark_output(again);
                }
                chosen
            }
            None => {
                let desc = self.graph.tensor(y).expect("there");
                if desc.is_view() || !desc.is_contiguous() {
                    self.graph.mark_output(y);
                    return;
                }
                let first = self.rng.below(n);
                let width = desc.shape[1];
                let mut view = TensorDesc::view_of(desc, first * width * 4);
                view.set_shape([n - first, width]);
                self.graph.view(y, view).expect("inside")
            }
        };
        let out = if self.chance(2) {
            out
        } else {
            self.push(Op::Unary(Unary::Tanh), &[out])
        };
        self.graph.mark_output(out);
    }

    /// What the optimizer may know: the weights.
    pub(crate) fn constants(&self) -> Constants {
        let mut constants = Constants::new();
        for leaf in self.leafs.iter().filter(|leaf| leaf.constant) {
            let desc = self.graph.tensor(leaf.id).expect("in the graph");
            constants.insert(leaf.id, Arc::new(leaf.bytes(desc)));
        }
        constants
    }

    /// Fills the leafs of `graph`, which is this one or made from it.
    pub(crate) fn fill(&self, graph: &Graph, constants: &Constants, cpu: &mut CpuBackend) {
        for leaf in &self.leafs {
            if let Some(desc) = graph.tensor(leaf.id) {
                cpu.load(desc, Arc::new(leaf.bytes(desc))).expect("memory");
            }
        }
        for (id, bytes) in constants.folded() {
            let bytes: Arc<dyn SharedBytes> = Arc::clone(bytes);
            cpu.load(graph.tensor(id).expect("in the graph"), bytes)
                .expect("memory");
        }
    }
}

impl Leaf {
    /// The bytes in the layout that `desc` says.
    fn bytes(&self, desc: &TensorDesc) -> Vec<u8> {
        let values = match &self.values {
            Values::Words(words) => return bytemuck::cast_slice(words).to_vec(),
            Values::Floats(values) => values,
        };
        let mut stored = values.clone();
        if let (&[k, n], Layout::ColMajor) = (desc.shape.as_slice(), desc.layout) {
            for column in 0..n {
                for row in 0..k {
                    stored[column * k + row] = values[row * n + column];
                }
            }
        }
        match desc.dtype {
            DType::F32 => bytemuck::cast_slice(&stored).to_vec(),
            DType::F16 => stored
                .iter()
                .flat_map(|&x| half::f16::from_f32(x).to_le_bytes())
                .collect(),
            _ => blocks::quantize(TensorType::Q8_0, &stored).expect("whole blocks"),
        }
    }
}
