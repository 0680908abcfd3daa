//! Graph of a step under construction: the inputs, and nodes that parts add.

use std::ops::Range;

use rocmforge_ggml::{DType, GgmlError, GgmlResult, Graph, Layout, Op, SoftMax, TensorDesc, TensorId};

use super::inputs::{InputLayout, StateLayout, StepShape};
use crate::cache::{CacheSpec, Cached, Kept, State};

fn described(graph: &Graph, id: TensorId) -> GgmlResult<&TensorDesc> {
    graph.tensor(id).ok_or(GgmlError::UnknownTensor(id))
}

/// Inputs for one pool of the cache.
struct Pool {
    /// Positions of the tokens from the first block of their sequence on, u32 `[tokens]`.
    positions: TensorId,
    /// Row of the block table of each token, u32 `[tokens]`.
    sequence: TensorId,
    /// Slots that take the tokens' keys and values, u32 `[tokens]`.
    slots: TensorId,
    /// Blocks of each sequence, or of each chunk of one, u32 `[rows, columns]`.
    block_table: TensorId,
}

/// Inputs of padded texts, each `[texts, length]`.
#[derive(Clone, Copy)]
pub(crate) struct Texts {
    /// Texts, and tokens of each.
    pub(crate) shape: [usize; 2],
    /// Types of the tokens, u32.
    pub(crate) types: TensorId,
    /// What is added to scores, f32.
    pub(crate) mask: TensorId,
    /// Weights of the tokens in the text's embedding, f32.
    pub(crate) pooling: TensorId,
    /// The places in a text, f32 `[length]`: 0, 1 and so on.
    pub(crate) places: TensorId,
}

/// What a model computes in a step.
pub(crate) trait Network: std::fmt::Debug + Send + Sync {
    /// Adds all nodes of a step; the result are the logits of the wanted rows, if any are wanted.
    ///
    /// # Errors
    /// The hyper-parameters contradict each other.
    fn build(&self, g: &mut StepGraph<'_>) -> GgmlResult<Option<TensorId>>;
}

/// What all steps of a model share.
pub(super) struct Shared<'a> {
    /// Descriptors of what lives longer than a step.
    pub(super) graph: &'a Graph,
    pub(super) cache: &'a CacheSpec,
    pub(super) kept: &'a Kept,
    /// Memory of the inputs.
    pub(super) inputs: TensorId,
}

/// Whose memory a step's inputs, intermediates and results lie in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// The parameters': steps use it one after the other.
    Shared,
    /// The step's own.
    Own,
}

/// The tensors that hold the largest logits of each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CandidateIds {
    /// Their tokens, u32 `[outputs, candidates]`: by falling logit, equal ones by rising id.
    pub ids: TensorId,
    /// Their logits, f32 of as many elements.
    pub logits: TensorId,
    /// Their probabilities in the softmax over the row, f32 of as many elements.
    pub probabilities: TensorId,
}

/// A step's graph while parts add their nodes.
pub(crate) struct StepGraph<'a> {
    graph: Graph,
    cache: &'a CacheSpec,
    tokens: usize,
    inputs: TensorId,
    /// Token ids, u32 `[tokens]`.
    pub(crate) ids: TensorId,
    /// Rows of embeddings, f32 `[tokens, row_width]`, and which row each token is, u32 `[tokens]`.
    embeddings: Option<[TensorId; 2]>,
    /// Positions within their sequences, u32 `[tokens]`.
    pub(crate) positions: TensorId,
    /// Row of the block tables and of the states of each token, u32 `[tokens]`.
    pub(crate) sequence: TensorId,
    /// Factors of queries, f32 `[tokens, 1]`.
    growth: Option<TensorId>,
    /// Numbers of heads, u32 `[tokens, heads]`.
    heads: Option<TensorId>,
    pools: Vec<Pool>,
    /// Slots of the states before the step and after it, and the last token of each sequence, u32 `[rows]`.
    states: Option<[TensorId; 3]>,
    texts: Option<Texts>,
    /// What each layer is given beside the residual stream.
    layer_inputs: Option<TensorId>,
    /// Tokens whose logits are wanted, u32 `[outputs]`.
    pub(crate) output_rows: Option<TensorId>,
    /// Caches that were written, and what they are after it.
    stored: Vec<(TensorId, TensorId)>,
    /// Results beside the logits: states, hidden states.
    results: Vec<TensorId>,
}

impl<'a> StepGraph<'a> {
    /// The inputs of a shape, and no node.
    pub(super) fn new(p: Shared<'a>, shape: StepShape, memory: Memory, first_id: TensorId) -> GgmlResult<Self> {
        let mut graph = p.graph.clone();
        graph.start_ids_at(first_id);
        let layout = InputLayout::new(shape, p.cache, p.kept);
        let own = TensorDesc::u32([layout.elements()]);
        let (base, inputs) = match memory {
            Memory::Own => {
                let own = graph.add_tensor(own);
                (own, own)
            }
            Memory::Shared => {
                let mut view = TensorDesc::view_of(described(&graph, p.inputs)?, 0);
                view.set_shape(own.shape);
                (p.inputs, graph.add_tensor(view))
            }
        };
        let mut typed = |range: &Range<usize>, dims: &[usize], dtype| -> GgmlResult<TensorId> {
            let mut view = TensorDesc::view_of(described(&graph, base)?, range.start * size_of::<u32>());
            view.dtype = dtype;
            view.set_shape(dims);
            Ok(graph.add_tensor(view))
        };
        let embeddings = match shape.row_width {
            0 => None,
            width => Some([
                typed(&layout.embeddings, &[shape.tokens, width], DType::F32)?,
                typed(&layout.chosen, &[shape.tokens], DType::U32)?,
            ]),
        };
        let (n, rows) = (shape.tokens, layout.rows);
        let texts = match &layout.texts {
            None => None,
            Some(of) => {
                let shape = [rows, n / rows.max(1)];
                Some(Texts {
                    shape,
                    types: typed(&of.types, &[n], DType::U32)?,
                    mask: typed(&of.mask, &shape, DType::F32)?,
                    pooling: typed(&of.pooling, &shape, DType::F32)?,
                    places: typed(&of.places, &shape[1..], DType::F32)?,
                })
            }
        };
        let growth = match layout.growth.is_empty() {
            true => None,
            false => Some(typed(&layout.growth, &[n, 1], DType::F32)?),
        };
        let mut part = |range: &Range<usize>, dims: &[usize]| typed(range, dims, DType::U32);
        let positions = part(&layout.positions, &[n])?;
        let sequence = part(&layout.sequence, &[n])?;
        Ok(Self {
            ids: part(&layout.ids, &[n])?,
            embeddings,
            positions,
            sequence,
            growth,
            heads: match layout.heads.is_empty() {
                true => None,
                false => Some(part(&layout.heads, &[n, p.kept.numbered_heads])?),
            },
            pools: (layout.pools.iter())
                .map(|pool| {
                    Ok(Pool {
                        positions: match pool.positions == layout.positions {
                            true => positions,
                            false => part(&pool.positions, &[n])?,
                        },
                        sequence: match pool.sequence == layout.sequence {
                            true => sequence,
                            false => part(&pool.sequence, &[n])?,
                        },
                        slots: part(&pool.slots, &[n])?,
                        block_table: part(&pool.block_table, &[pool.rows, pool.columns])?,
                    })
                })
                .collect::<GgmlResult<_>>()?,
            states: match &layout.states {
                None => None,
                Some(StateLayout { from, to, last }) => {
                    Some([part(from, &[rows])?, part(to, &[rows])?, part(last, &[rows])?])
                }
            },
            texts,
            layer_inputs: None,
            output_rows: match shape.outputs {
                0 => None,
                outputs => Some(part(&layout.output_rows, &[outputs])?),
            },
            graph,
            cache: p.cache,
            tokens: n,
            inputs,
            stored: Vec::new(),
            results: Vec::new(),
        })
    }

    pub(super) fn inputs(&self) -> TensorId {
        self.inputs
    }

    /// The `k` largest of each row of logits.
    pub(super) fn candidates(&mut self, logits: TensorId, k: usize) -> GgmlResult<CandidateIds> {
        let ids = self.push(Op::TopK { k }, &[logits])?;
        let plain = SoftMax {
            scale: 1.0,
            max_bias: 0.0,
            mask: false,
            sinks: false,
        };
        let shares = self.push(Op::SoftMax(plain), &[logits])?;
        // A table of one column for each row of logits.
        let mut rows = described(&self.graph, logits)?.shape.clone();
        rows.push(1);
        let mut chosen = |of| -> GgmlResult<TensorId> {
            let table = self.reshape(of, rows.clone())?;
            let chosen = self.push(Op::GetRows, &[table, ids])?;
            self.graph.mark_output(chosen);
            Ok(chosen)
        };
        let (logits, probabilities) = (chosen(logits)?, chosen(shares)?);
        self.graph.mark_output(ids);
        Ok(CandidateIds {
            ids,
            logits,
            probabilities,
        })
    }

    /// The graph, whose results are the logits (without logits, what it wrote into caches), and the other results.
    pub(super) fn finish(mut self, logits: Option<TensorId>) -> (Graph, Vec<TensorId>) {
        // What no result needs is left out; a graph without any result would keep all. Later steps read states.
        let stored = self.stored.last().map(|&(_, after)| after);
        for result in logits.or(stored).iter().chain(&self.results) {
            self.graph.mark_output(*result);
        }
        (self.graph, self.results)
    }

    /// The texts of an encoder's step.
    ///
    /// # Errors
    /// The step is of another model.
    pub(crate) fn texts(&self) -> GgmlResult<Texts> {
        self.texts.ok_or(GgmlError::UnknownTensor(self.inputs))
    }

    /// Gives layers an input beside the residual stream.
    pub(crate) fn give_layers(&mut self, inputs: TensorId) {
        self.layer_inputs = Some(inputs);
    }

    /// What layers are given beside the residual stream.
    ///
    /// # Errors
    /// Nothing is given.
    pub(crate) fn layer_inputs(&self) -> GgmlResult<TensorId> {
        self.layer_inputs.ok_or(GgmlError::UnknownTensor(self.inputs))
    }

    /// A result beside the logits.
    pub(crate) fn result(&mut self, x: TensorId) {
        self.results.push(x);
    }

    /// Tokens of the step.
    pub(crate) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Size of the caches.
    pub(crate) fn cache(&self) -> &CacheSpec {
        self.cache
    }

    /// Adds a node; the result is its output.
    ///
    /// # Errors
    /// The inputs do not fit the op.
    pub(crate) fn push(&mut self, op: Op, inputs: &[TensorId]) -> GgmlResult<TensorId> {
        self.graph.push(op, inputs)
    }

    /// Adds a node of an op with several outputs.
    ///
    /// # Errors
    /// The inputs do not fit the op.
    pub(crate) fn push_all(&mut self, op: Op, inputs: &[TensorId]) -> GgmlResult<Vec<TensorId>> {
        self.graph.push_all(op, inputs)
    }

    /// The same memory in another shape.
    ///
    /// # Errors
    /// The shapes have different numbers of elements.
    pub(crate) fn reshape(&mut self, x: TensorId, shape: impl Into<Vec<usize>>) -> GgmlResult<TensorId> {
        self.graph.reshape(x, shape)
    }

    /// The same memory with its dimensions in another order.
    ///
    /// # Errors
    /// These are not the dimensions of `x`.
    pub(crate) fn permute(&mut self, x: TensorId, axes: &[usize]) -> GgmlResult<TensorId> {
        self.graph.permute(x, axes)
    }

    /// `x` over and over, until this shape is full.
    ///
    /// # Errors
    /// `x` does not divide the shape.
    pub(crate) fn repeat(&mut self, x: TensorId, shape: impl Into<Vec<usize>>) -> GgmlResult<TensorId> {
        self.graph.repeat(x, shape)
    }

    /// What enters the first layer: the embeddings of the tokens' ids, `[tokens, width]`, but where rows stand in their place.
    ///
    /// # Errors
    /// The rows have another width.
    pub(crate) fn with_rows(&mut self, of_ids: TensorId) -> GgmlResult<TensorId> {
        let Some([rows, chosen]) = self.embeddings else {
            return Ok(of_ids);
        };
        let all = self.graph.push(Op::Concat { axis: 0 }, &[of_ids, rows])?;
        self.graph.push(Op::GetRows, &[all, chosen])
    }

    /// Where attention finds the keys of a cache: blocks of each sequence or chunk, `[rows, columns]`, the row of each token, and its position from the
    /// first of these blocks on; all u32.
    pub(crate) fn blocks(&self, cache: Cached) -> [TensorId; 3] {
        let pool = &self.pools[cache.pool];
        [pool.block_table, pool.sequence, pool.positions]
    }

    /// Queries, `[tokens, _]`, times what they grow by at their positions.
    ///
    /// # Errors
    /// They are no such rows.
    pub(crate) fn grown(&mut self, q: TensorId) -> GgmlResult<TensorId> {
        match self.growth {
            None => Ok(q),
            Some(factors) => self.push(Op::Mul, &[q, factors]),
        }
    }

    /// Rows `[tokens, heads, k]`, each times its head's matrix of `[heads, n, k]`: `[tokens, heads, n]`. The matrices are those that
    /// [`Tensors::matrices_of_heads`] has asked for.
    ///
    /// # Errors
    /// Rows and matrices do not fit.
    pub(crate) fn times_heads(&mut self, x: TensorId, matrices: TensorId) -> GgmlResult<TensorId> {
        let in_blocks = described(&self.graph, matrices)?.dtype.is_quantized();
        if let (true, Some(heads)) = (in_blocks, self.heads) {
            return self.push(Op::MulMatId, &[x, matrices, heads]);
        }
        let swap = Op::Permute { axes: [1, 0, 2, 3] };
        let x = self.push(swap, &[x])?;
        let x = self.push(Op::MulMat, &[x, matrices])?;
        self.push(swap, &[x])
    }

    /// Writes rows into the tokens' slots of a cache.
    ///
    /// # Errors
    /// The rows have another width.
    pub(crate) fn store(&mut self, rows: TensorId, cache: Cached) -> GgmlResult<()> {
        let stored = self.graph.set_rows(rows, cache.id, self.pools[cache.pool].slots)?;
        self.stored.push((cache.id, stored));
        Ok(())
    }

    /// A cache as the step has left it so far: also one that an earlier layer has written, which layers may share.
    pub(crate) fn stored(&self, cache: Cached) -> TensorId {
        let written = self.stored.iter().rev().find(|(id, _)| *id == cache.id);
        written.map_or(cache.id, |&(_, after)| after)
    }

    /// Some columns of the last dimension of `x`, without gaps.
    ///
    /// # Errors
    /// `x` has fewer, or gaps.
    pub(crate) fn columns(&mut self, x: TensorId, columns: Range<usize>) -> GgmlResult<TensorId> {
        let desc = described(&self.graph, x)?;
        let mut view = TensorDesc::view_of(desc, columns.start * desc.element_size());
        if let Some(last) = view.shape.last_mut() {
            *last = columns.len();
        }
        view.strides.clone_from(&desc.strides);
        view.layout = Layout::Strided;
        let view = self.graph.add_tensor(view);
        self.graph.add_node(Op::View, vec![x], vec![view]);
        self.push(Op::Cont, &[view])
    }

    /// Slots of the states before the step and after it, and the last token of each sequence, u32 `[rows]`.
    ///
    /// # Errors
    /// There is no state.
    pub(crate) fn states(&self) -> GgmlResult<[TensorId; 3]> {
        self.states.ok_or(GgmlError::UnknownTensor(self.inputs))
    }

    /// A recurrent op: its state has this shape for each sequence, `inputs` come after it. The state after the step is kept; the result is the other.
    ///
    /// # Errors
    /// The inputs do not fit the op.
    pub(crate) fn recur(&mut self, op: Op, state: State, shape: &[usize], inputs: &[TensorId]) -> GgmlResult<TensorId> {
        let [from, ..] = self.states()?;
        let desc = described(&self.graph, state.id)?;
        let (slots, width) = (desc.shape[0], desc.shape[1..].iter().product());
        let all = self.reshape(state.id, [&[slots], shape].concat())?;
        let inputs = [&[all], inputs, &[self.sequence, from]].concat();
        let outputs = self.graph.push_all(op, &inputs)?;
        let rows = described(&self.graph, from)?.element_count();
        let after = self.reshape(outputs[1], [rows, width])?;
        self.write_state(after, state)?;
        Ok(outputs[0])
    }

    /// The state of each sequence after the step.
    ///
    /// # Errors
    /// The rows are no `[rows, width]`.
    pub(crate) fn write_state(&mut self, rows: TensorId, state: State) -> GgmlResult<()> {
        let [_, to, _] = self.states()?;
        let written = self.graph.set_rows(rows, state.id, to)?;
        self.result(written);
        Ok(())
    }
}
