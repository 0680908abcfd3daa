//! A graph of latent attention without its products and its attention: rows cut, normed, turned, put together and written to a cache.

use rocmforge_ggml::{DType, GgmlResult, Graph, Layout, Op, Rope, RopeScaling, RopeStyle, TensorDesc, TensorId};

/// The sizes of a graph, and how it differs from a model's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latent {
    pub(crate) tokens: usize,
    pub(crate) heads: usize,
    pub(crate) rank: usize,
    pub(crate) nope: usize,
    pub(crate) shared: usize,
    pub(crate) slots: usize,
    pub(crate) cache: DType,
    /// `None`: nothing is turned.
    pub(crate) rope: Option<Rope>,
    pub(crate) factors: bool,
    pub(crate) miss: &'static str,
}

/// Positions of the tables.
pub(crate) const POSITIONS: usize = 40;

/// A rotary embedding as models with a long context have it.
pub(crate) fn yarn(n_dims: usize, style: RopeStyle) -> Rope {
    Rope {
        scaling: RopeScaling::Yarn {
            factor: 4.0,
            original_context: 16,
            beta_fast: 32.0,
            beta_slow: 1.0,
            ext_factor: 0.75,
        },
        magnitude: 1.25,
        ..Rope::new(n_dims, 10_000.0, style, POSITIONS)
    }
}

/// A graph's inputs: queries, what they become, what is kept, gains, positions, slots, the cache, and divisors of frequencies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ids {
    pub(crate) q: TensorId,
    pub(crate) plain: TensorId,
    pub(crate) all: TensorId,
    pub(crate) gains: TensorId,
    pub(crate) positions: TensorId,
    pub(crate) slots: TensorId,
    pub(crate) cache: TensorId,
    pub(crate) divisors: TensorId,
    /// The result beside the cache.
    pub(crate) queries: TensorId,
}

/// Columns of `x` as a tensor without gaps.
pub(crate) fn columns(graph: &mut Graph, x: TensorId, first: usize, count: usize) -> GgmlResult<TensorId> {
    let desc = graph.tensor(x).expect("there");
    let mut view = TensorDesc::view_of(desc, first * size_of::<f32>());
    view.strides.clone_from(&desc.strides);
    *view.shape.last_mut().expect("dimensions") = count;
    view.layout = Layout::Strided;
    let view = graph.add_tensor(view);
    graph.add_node(Op::View, vec![x], vec![view]);
    graph.push(Op::Cont, &[view])
}

impl Latent {
    /// The graph: its outputs are the queries and the cache.
    pub(crate) fn graph(&self) -> GgmlResult<(Graph, Ids)> {
        let Self {
            tokens,
            heads,
            rank,
            nope,
            shared,
            ..
        } = *self;
        let (kept, mut graph) = (rank + shared, Graph::new());
        let g = &mut graph;
        let q = g.add_tensor(TensorDesc::f32([tokens, heads, nope + shared]));
        let plain = g.add_tensor(TensorDesc::f32([tokens, heads, rank]));
        let all = g.add_tensor(TensorDesc::f32([tokens, kept]));
        let gains = g.add_tensor(TensorDesc::f32([rank]));
        let [positions, slots] = [0; 2].map(|_| g.add_tensor(TensorDesc::u32([tokens])));
        let cache = g.add_tensor(TensorDesc::new([self.slots, kept], self.cache, Layout::RowMajor));
        let divisors = g.add_tensor(TensorDesc::f32([self.rope.map_or(1, |rope| rope.pairs())]));
        let rotate = |g: &mut Graph, x, heads, rope: Option<Rope>| {
            let Some(rope) = rope else { return Ok(x) };
            let x = g.reshape(x, [1, tokens, heads, shared])?;
            let more = self.factors.then_some(divisors);
            let inputs: Vec<TensorId> = [x, positions].into_iter().chain(more).collect();
            g.push(Op::Rope(rope), &inputs)
        };

        let turned = columns(g, q, nope, shared)?;
        let turned_q = rotate(g, turned, heads, self.rope)?;
        let turned = g.reshape(turned_q, [tokens, heads, shared])?;
        let queries = g.push(Op::Concat { axis: 2 }, &[plain, turned])?;
        let own = columns(g, all, 0, rank)?;
        let normed = g.push(Op::RmsNorm { eps: 1e-5 }, &[own, gains])?;
        let first = if self.miss == "another part is turned" {
            rank - 1
        } else {
            rank
        };
        let turned = columns(g, all, first, shared)?;
        let other = self
            .rope
            .filter(|_| self.miss == "another embedding")
            .map(|rope| Rope { theta: 500.0, ..rope });
        let turned = rotate(g, turned, 1, other.or(self.rope))?;
        // Of these a row is made of two.
        let halves = if self.miss == "halves of rows" { 2 } else { 1 };
        let turned = g.reshape(turned, [tokens * halves, shared / halves])?;
        let first = if halves == 2 {
            g.reshape(normed, [tokens * halves, rank / halves])?
        } else {
            normed
        };
        let parts = if self.miss == "the other order" {
            [turned, first]
        } else {
            [first, turned]
        };
        let mut rows = g.push(Op::Concat { axis: 1 }, &parts)?;
        if halves == 2 {
            rows = g.reshape(rows, [tokens, kept])?;
        }
        let written = g.set_rows(rows, cache, slots)?;
        match self.miss {
            "the norm is marked" => g.mark_output(normed),
            "turned queries are marked" => g.mark_output(turned_q),
            "the rows are read twice" => {
                let twice = g.push(Op::Scale { factor: 2.0 }, &[rows])?;
                g.mark_output(twice);
            }
            _ => {}
        }
        for output in [queries, written] {
            g.mark_output(output);
        }
        let ids = Ids {
            q,
            plain,
            all,
            gains,
            positions,
            slots,
            cache,
            divisors,
            queries,
        };
        Ok((graph, ids))
    }
}

/// What is nearly a group that is one launch.
pub(crate) const MISSES: [&str; 7] = [
    "halves of rows",
    "another part is turned",
    "another embedding",
    "the other order",
    "the norm is marked",
    "turned queries are marked",
    "the rows are read twice",
];
