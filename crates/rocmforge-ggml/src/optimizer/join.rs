//! Launches that a device runs with the one before: the rotary embedding with norms before it and the cache after it, a product with the sum after it, a norm with the product
//! after it, a recurrent op with the write of its states after it, a copy of parts of rows with the product after it, and what latent attention does between
//! its products and its attention (`latent`).
//!
//! The launches come one after the other, and each result that is not a cache or a table of states has memory of its own. The planner lets all of them live at once
//! ([`Launch::is_joined`]), so no place in memory has to be looked at when they run.

use super::latent::row_step;
use super::rewrite::Uses;
use crate::{DType, Graph, Kernel, Launch, Op, TensorId};

/// ROPE of queries, ROPE of keys, SET_ROWS of keys, SET_ROWS of values.
const ROPE_KV: usize = 4;
/// The same with RMS_NORM before each ROPE.
const NORM_ROPE_KV: usize = 6;
/// Sequences whose states are written into their slots, as many as a kernel looks through.
const MOST_IN_PLACE: usize = rocmforge_kernels::Kernels::MAX_IN_PLACE;

/// Marks launches that are to run with the one before; how many.
pub(super) fn run(graph: &Graph, uses: &Uses, launches: &mut [Launch]) -> usize {
    let rules = Rules { graph, uses };
    let mut joined = 0;
    for at in 0..launches.len() {
        let count = rules.after(&launches[at..]);
        for launch in &mut launches[at + 1..=at + count] {
            launch.joined = true;
        }
        joined += count;
    }
    joined
}

/// A graph whose launches are looked at.
pub(super) struct Rules<'a> {
    pub(super) graph: &'a Graph,
    pub(super) uses: &'a Uses,
}

impl Rules<'_> {
    /// How many launches are to run with the first of these.
    fn after(&self, rest: &[Launch]) -> usize {
        if let Some(count) = self.latent(rest) {
            return count - 1;
        }
        match rest {
            [norm_q, rope_q, norm_k, rope_k, set_k, set_v, ..]
                if self
                    .norms([norm_q, rope_q, norm_k, rope_k])
                    .and_then(|read| self.rope_kv([rope_q, rope_k, set_k, set_v], &read))
                    .is_some() =>
            {
                NORM_ROPE_KV - 1
            }
            [rope_q, rope_k, set_k, set_v, ..] if self.rope_kv([rope_q, rope_k, set_k, set_v], &[]).is_some() => {
                ROPE_KV - 1
            }
            [first, second, ..]
                if (self.sum(first, second))
                    .or_else(|| self.norm(first, second))
                    .or_else(|| self.states(first, second))
                    .or_else(|| self.rows(first, second))
                    .is_some() =>
            {
                1
            }
            _ => 0,
        }
    }

    /// Norms of heads that only the ROPE after each reads, of one eps: what they read.
    fn norms(&self, [norm_q, rope_q, norm_k, rope_k]: [&Launch; 4]) -> Option<Vec<TensorId>> {
        let (Kernel::Op(Op::RmsNorm { .. }), true) = (norm_q.kernel, norm_q.kernel == norm_k.kernel) else {
            return None;
        };
        let pairs = [(norm_q, rope_q), (norm_k, rope_k)];
        let fits = pairs.into_iter().all(|(norm, rope)| {
            let (&[x, weight], &[y]) = (norm.inputs.as_slice(), norm.outputs.as_slice()) else {
                return false;
            };
            let shape = |id| self.graph.tensor(id).map(|desc| desc.shape.as_slice());
            rope.inputs.first() == Some(&y)
                && self.uses.sole_reader(self.graph, y).is_some()
                && [x, weight].into_iter().all(|id| self.is_plain(id))
                && shape(x) == shape(y)
                && shape(weight).is_some_and(|weight| weight.len() == 1)
        });
        fits.then(|| [&norm_q.inputs[..], &norm_k.inputs[..]].concat())
    }

    /// `more` is read, too.
    fn rope_kv(&self, [rope_q, rope_k, set_k, set_v]: [&Launch; ROPE_KV], more: &[TensorId]) -> Option<()> {
        let write = Kernel::Op(Op::SetRows);
        let (Kernel::Op(Op::Rope(rope)), true) = (rope_q.kernel, [set_k.kernel, set_v.kernel] == [write; 2]) else {
            return None;
        };
        let ([q, of_q @ ..], [k, of_k @ ..]) = (rope_q.inputs.as_slice(), rope_k.inputs.as_slice()) else {
            return None;
        };
        let (&[rows, _, slots], &[v, _, slots_v]) = (set_k.inputs.as_slice(), set_v.inputs.as_slice()) else {
            return None;
        };
        let (turned, caches) = (
            [rope_q.outputs[0], rope_k.outputs[0]],
            [self.graph.root(set_k.outputs[0])?, self.graph.root(set_v.outputs[0])?],
        );
        let shape = |id| self.graph.tensor(id).map(|desc| desc.shape.as_slice());
        let (&[batch, seq, heads, dim], &[_, _, kv_heads, _]) = (shape(*q)?, shape(*k)?) else {
            return None;
        };
        let (tokens, width) = (batch * seq, kv_heads * dim);
        let [cache, other] = [
            self.graph.tensor(set_k.outputs[0])?,
            self.graph.tensor(set_v.outputs[0])?,
        ];
        let fits = rope_k.kernel == rope_q.kernel
            && rope.n_dims > 0
            && rope.style.sections().is_none()
            && tokens * heads * width > 0
            && of_q == of_k
            && slots == slots_v
            && [of_q.first()?, &slots].into_iter().all(|&id| self.is_list(id, tokens))
            && shape(*k)? == [batch, seq, kv_heads, dim]
            && [shape(rows)?, shape(v)?] == [[tokens, width]; 2]
            // The cache gets the turned keys, where they lie.
            && self.graph.root(rows) == Some(turned[1])
            && self.graph.tensor(rows)?.byte_offset == 0
            && (cache.dtype, &cache.shape) == (other.dtype, &other.shape)
            && matches!(cache.shape[..], [_, cols] if cols == width)
            && [cache, other].iter().all(|cache| cache.is_contiguous())
            && caches[0] != caches[1]
            && [*q, *k, v, rows].into_iter().chain(turned).all(|id| self.is_plain(id));
        let read = [&[*q, *k, v, slots][..], of_q, more].concat();
        (fits && self.are_own(&turned) && self.are_apart(&read, &[turned, caches].concat())).then_some(())
    }

    /// A product of one row with a quantised matrix, and the sum of its result with its norm.
    fn sum(&self, product: &Launch, sum: &Launch) -> Option<()> {
        let (Kernel::Op(Op::MulMat), Kernel::AddRmsNorm { .. }) = (product.kernel, sum.kernel) else {
            return None;
        };
        let (&[a, b, ..], &[y]) = (sum.inputs.as_slice(), product.outputs.as_slice()) else {
            return None;
        };
        let results: Vec<TensorId> = product.outputs.iter().chain(&sum.outputs).copied().collect();
        let residual = if a == y { b } else { a };
        let plain = [product.inputs[0], residual]
            .into_iter()
            .chain(product.inputs[2..].iter().copied());
        let mut plain = plain
            .chain(sum.inputs[2..].iter().copied())
            .chain(results.iter().copied());
        let fits = [a, b].contains(&y)
            && self.is_row_of_quantised(product)
            && plain.all(|id| self.is_plain(id))
            && self.are_own(&results)
            && self.are_apart(&[residual], &results);
        fits.then_some(())
    }

    /// The norm of one row, alone or with the sum that it is of, and a product of it with quantised matrices.
    fn norm(&self, norm: &Launch, product: &Launch) -> Option<()> {
        let waits = match norm.kernel {
            Kernel::Op(Op::RmsNorm { .. }) => true,
            // The product before it adds.
            Kernel::AddRmsNorm { .. } => norm.joined,
            _ => false,
        };
        let mut plain = norm.inputs.iter().chain(&norm.outputs);
        let fits = waits
            && self.is_row_of_quantised(product)
            && product.inputs[0] == *norm.outputs.last()?
            && plain.all(|&id| self.is_plain(id))
            && self.are_own(&norm.outputs)
            && self.are_own(&product.outputs)
            && self.are_apart(&product.inputs[1..], &norm.outputs);
        fits.then_some(())
    }

    /// A recurrent op, and the write of the states that it gives into the table that it has them from.
    fn states(&self, rule: &Launch, set: &Launch) -> Option<()> {
        let (Kernel::Op(Op::SsmConv | Op::DeltaNetRows { .. }), Kernel::Op(Op::SetRows)) = (rule.kernel, set.kernel)
        else {
            return None;
        };
        let (&[out, after], &[rows, table, ids], &[written]) =
            (rule.outputs.as_slice(), set.inputs.as_slice(), set.outputs.as_slice())
        else {
            return None;
        };
        let (state, rest) = rule.inputs.split_first()?;
        let (_, source) = self.uses.renamed(self.graph, rows, self.uses.writer(written)?)?;
        let (desc, root) = (self.graph.tensor(*state)?, self.graph.root(*state)?);
        let (all, of_rows) = (self.graph.tensor(table)?, self.graph.tensor(rows)?);
        let sequences = self.graph.tensor(*rest.last()?)?.element_count();
        let fits = source == after
            && self.graph.root(table) == Some(root)
            && self.graph.root(written) == Some(root)
            && all.byte_offset == desc.byte_offset
            && matches!(all.shape[..], [slots, _] if slots == desc.shape[0])
            && matches!(of_rows.shape[..], [count, _] if count == sequences)
            && (1..=MOST_IN_PLACE).contains(&sequences)
            && self.is_list(ids, sequences)
            && [*state, table, rows, after, out]
                .into_iter()
                .all(|id| self.is_plain(id))
            && self.are_own(&[out, after]);
        let read = [rest, &[ids]].concat();
        (fits && self.are_apart(&read, &[root, out, after])).then_some(())
    }

    /// A copy of rows that are parts of longer ones, and the product of the copy with quantised matrices of chosen experts.
    fn rows(&self, copy: &Launch, product: &Launch) -> Option<()> {
        let (&[from], &[x, weights, ids], &[y]) = (
            copy.inputs.as_slice(),
            product.inputs.as_slice(),
            product.outputs.as_slice(),
        ) else {
            return None;
        };
        let (rows, of_copy) = (self.graph.tensor(from)?, self.graph.tensor(x)?);
        let fits = [copy.kernel, product.kernel] == [Op::Cont, Op::MulMatId].map(Kernel::Op)
            && self.graph.tensor(weights)?.dtype.is_quantized()
            && row_step(rows).is_some()
            && rows.shape.last() == of_copy.shape.last()
            && self.leads(copy, product, x)
            && self.is_plain(y);
        (fits && self.are_own(&[y]) && self.are_apart(&[from, ids], &[y])).then_some(())
    }

    /// Whether a launch multiplies one row by quantised matrices.
    fn is_row_of_quantised(&self, product: &Launch) -> bool {
        let weights = product.weights();
        let fits = |&id: &TensorId| {
            let (x, weight) = (self.graph.tensor(product.inputs[0]), self.graph.tensor(id));
            x.zip(weight).is_some_and(|(x, weight)| {
                weight.dtype.is_quantized() && weight.shape.len() == 2 && weight.shape[0] == x.element_count()
            })
        };
        !weights.is_empty() && weights.iter().all(fits)
    }

    pub(super) fn is_plain(&self, id: TensorId) -> bool {
        let desc = self.graph.tensor(id);
        desc.is_some_and(|desc| desc.dtype == DType::F32 && desc.is_contiguous())
    }

    /// Whether it is so many indices without gaps.
    pub(super) fn is_list(&self, id: TensorId, count: usize) -> bool {
        self.graph.tensor(id).is_some_and(|desc| {
            let words = matches!(desc.dtype, DType::U32 | DType::I32);
            words && desc.is_contiguous() && desc.element_count() == count
        })
    }

    /// Whether each has memory of its own that one launch writes.
    pub(super) fn are_own(&self, results: &[TensorId]) -> bool {
        results.iter().all(|&id| self.uses.is_own(self.graph, id))
    }

    /// Whether none of the tensors lies in the memory of one of `roots`.
    pub(super) fn are_apart(&self, ids: &[TensorId], roots: &[TensorId]) -> bool {
        let mut found = ids.iter().map(|&id| self.graph.root(id));
        found.all(|root| root.is_some_and(|root| !roots.contains(&root)))
    }
}
