//! Attention, through `rocmforge-attention`.

use rocmforge_attention::{AttentionConfig, Layout, MaskShape, PagedAlgorithm, Rounding};
use rocmforge_kernels::{
    ExtOperand, ExtOperands, ExtOptions, ExtShape, FLASH_MAX_HEAD_DIM, Kernels, KvType, MAX_DIM, PagedOperands,
    PagedOptions, PagedShape, Strides,
};
use rocmforge_runtime::HipBuffer;

use super::faults::faults;
use super::lower::Shared;
use super::operands::{BETWEEN, rows_and_cols};
use super::rows::four;
use super::takes::{
    BLOCKS, GRID, MATRIX_COLS, TILED_ROWS, Takes, all_floats, at_most, contiguous, float, index, rule, some, team_rows,
};
use super::types::{kv_type, mask_type};
use super::{HipGgmlBackend, failed};
use crate::{Activations, Attention, DType, FlashAttnExt, GgmlResult, Graph, Op, PagedAttention, TensorDesc, TensorId};

pub(super) fn attention(a: Attention, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    all_floats(inputs, outputs)?;
    let &[batch, queries, elements] = inputs[0].shape.as_slice() else {
        return Err(inputs[0].summary());
    };
    let keys = inputs[1].shape[1];
    let mut most = i32::MAX as usize;
    if let Some(mask) = inputs.get(3) {
        let known = mask_shape(&mask.shape, [batch, keys]).is_some();
        rule(known, || format!("a mask {}", mask.summary()))?;
        most = MATRIX_COLS;
    }
    at_most("a batch", batch, GRID)?;
    at_most("heads", a.heads, GRID)?;
    at_most("queries", queries, i32::MAX as usize)?;
    some("keys", keys, most)?;
    at_most("elements of a token", elements, MATRIX_COLS)?;
    if a.head_dim > FLASH_MAX_HEAD_DIM {
        // Scores in memory: a plane for each head.
        at_most("batches times heads", batch * a.heads, GRID)?;
        at_most("queries", queries, TILED_ROWS)?;
        some("keys", keys, MATRIX_COLS)?;
        team_rows([batch * a.heads * queries, keys])?;
    }
    Ok(())
}

pub(super) fn flash_attn_ext(inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    all_floats(inputs, outputs)?;
    let mut operands = inputs[..3].iter();
    operands.try_for_each(|operand| heads_of(operand.shape[3], FLASH_MAX_HEAD_DIM, operand))?;
    let [batch, heads, queries, _] = four(&inputs[0].shape);
    if inputs[1].shape[2] == 0 {
        return Ok(());
    }
    at_most("a batch", batch, GRID)?;
    at_most("heads", heads, GRID)?;
    at_most("queries", queries, BLOCKS)
}

pub(super) fn paged_attention(a: PagedAttention, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Takes {
    heads_of(a.head_dim, Kernels::MAX_PAGED_HEAD, inputs[0])?;
    inputs[1..3].iter().try_for_each(|cache| contiguous(cache))?;
    inputs[3..6].iter().try_for_each(|indices| index(indices))?;
    float(inputs[0])?;
    inputs[6..].iter().try_for_each(|sinks| float(sinks))?;
    contiguous(outputs[0])?;
    some("slots", inputs[1].shape[0], MAX_DIM)?;
    some("blocks of sequences", inputs[3].element_count(), MAX_DIM)?;
    at_most("tokens", inputs[0].shape[0], BLOCKS)?;
    at_most("heads", a.heads, GRID)?;
    at_most("tokens of a block", a.block_size, 256)
}

fn heads_of(dim: usize, most: usize, operand: &TensorDesc) -> Takes {
    rule(dim.is_multiple_of(4) && (1..=most).contains(&dim), || {
        format!("heads of {dim} elements, in {}", operand.summary())
    })
}

impl HipGgmlBackend {
    pub(super) fn attention(&mut self, op: &Op, a: Attention, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let q_shape = &self.slots.desc(inputs[0])?.shape;
        let (batch, seq_q) = (q_shape[0], q_shape[1]);
        let seq_k = self.slots.desc(inputs[1])?.shape[1];
        let (q, k) = (self.input(op, inputs[0], 0)?, self.input(op, inputs[1], 1)?);
        let (v, y) = (self.input(op, inputs[2], 2)?, self.result(op, output)?);
        let (mask, mask_shape) = match inputs.get(3) {
            None => (None, MaskShape::None),
            Some(&id) => {
                let shape = mask_shape(&self.slots.desc(id)?.shape, [batch, seq_k]);
                let shape = shape.ok_or_else(|| self.cannot(op, id))?;
                (Some(self.input(op, id, 3)?), shape)
            }
        };
        let attention = AttentionConfig::builder(a.heads, a.head_dim)
            .kv_heads(a.kv_heads)
            .scale(a.scale)
            .causal(a.causal)
            .mask(mask_shape)
            .layout(Layout::TokensFirst)
            .build()
            .and_then(|config| config.plan(batch, seq_q, seq_k))
            .and_then(|plan| rocmforge_attention::Attention::new(&self.kernels, plan));
        attention
            .and_then(|attention| attention.forward(self.stream(), &q, &k, &v, mask.as_ref(), &y))
            .map_err(failed(op.name()))?;
        self.store(op, output, &y)
    }

    /// ggml's attention: queries, keys and values where they lie if their heads' elements are adjacent.
    pub(super) fn flash_attn_ext(
        &mut self,
        op: &Op,
        a: FlashAttnExt,
        inputs: &[TensorId],
        output: TensorId,
    ) -> GgmlResult<()> {
        let shape_of = |id: TensorId| self.slots.desc(id).map(|desc| four(&desc.shape));
        let [batch, heads, queries, dim_k] = shape_of(inputs[0])?;
        let [kv_batch, kv_heads, keys, _] = shape_of(inputs[1])?;
        let dim_v = shape_of(inputs[2])?[3];
        if keys == 0 {
            return self.bytes(output)?.clear(self.stream()).map_err(failed(op.name()));
        }
        let (k, v) = (self.slots.desc(inputs[1])?, self.slots.desc(inputs[2])?);
        let kv = mask_type(k.dtype).filter(|_| k.dtype == v.dtype && in_heads(k).is_some() && in_heads(v).is_some());
        let q = self.heads(op, inputs[0], (mask_type(DType::F32), 0))?;
        let (k, v) = (self.heads(op, inputs[1], (kv, 1))?, self.heads(op, inputs[2], (kv, 2))?);
        let mask = a.mask.then(|| self.mask(op, inputs[3], 3)).transpose()?;
        let sinks = inputs.last().filter(|_| a.sinks);
        let sinks = sinks.map(|&id| self.input(op, id, 4)).transpose()?;
        let out = self.result(op, output)?;
        let [q, k, v] = [&q, &k, &v].map(|(buffer, strides)| ExtOperand {
            buffer,
            strides: *strides,
        });
        let operands = ExtOperands {
            q,
            k,
            v,
            mask: mask.as_ref().map(|(ty, bytes, dims)| (*ty, bytes, *dims)),
            sinks: sinks.as_ref(),
            out: &out,
        };
        let shape = ExtShape {
            batch,
            heads,
            queries,
            kv_batch,
            kv_heads,
            keys,
            dim_k,
            dim_v,
        };
        let options = ExtOptions {
            scale: a.scale,
            softcap: Some(a.softcap).filter(|&cap| cap > 0.0),
            max_bias: a.max_bias,
        };
        let kv = kv.unwrap_or(KvType::F32);
        let result = self.kernels.flash_attn_ext(self.stream(), kv, operands, shape, options);
        self.done(op, result)?;
        self.store(op, output, &out)
    }

    /// An operand of heads where it lies, if it is of type `kv`; else packed as f32.
    fn heads(
        &mut self,
        op: &Op,
        id: TensorId,
        (kv, place): (Option<KvType>, usize),
    ) -> GgmlResult<(HipBuffer<u8>, Strides)> {
        let desc = self.slots.desc(id)?;
        if let Some(strides) = in_heads(desc).filter(|_| kv.is_some() && mask_type(desc.dtype) == kv) {
            return Ok((self.bytes(id)?, strides));
        }
        let [_, heads, rows, dim] = four(&desc.shape);
        let packed = self.input(op, id, place)?.cast().map_err(failed(op.name()))?;
        Ok((packed, Strides::heads_first(heads, rows, dim)))
    }

    /// Bytes of scratch memory that attention over a paged cache takes: the parts of keys, until they are joined.
    pub(super) fn paged_scratch(&self, graph: &Graph, a: PagedAttention, inputs: &[TensorId]) -> Option<usize> {
        let desc = |index: usize| graph.tensor(*inputs.get(index)?);
        let (kv, table) = (kv_type(desc(1)?.dtype)?, rows_and_cols(&desc(3)?.shape));
        let shape = PagedShape {
            tokens: desc(4)?.element_count(),
            heads: a.heads,
            kv_heads: a.kv_heads,
            head_dim: a.head_dim,
            block_size: a.block_size,
            blocks: 0,
            sequences: table[0],
            max_blocks: table[1],
        };
        let plan = of_layer(a, kv).plan_for(&self.kernels, shape, self.rounding());
        match plan.ok()?.algorithm {
            PagedAlgorithm::Parts(split) => split.partial_len.checked_mul(size_of::<f32>()),
            PagedAlgorithm::Floats | PagedAlgorithm::MatrixUnit => None,
        }
    }

    /// What attention over a paged cache may round.
    const fn rounding(&self) -> Rounding {
        match self.activations {
            Activations::F32 => Rounding::None,
            Activations::Int8 => Rounding::F16,
        }
    }

    pub(super) fn paged_attention(
        &mut self,
        op: &Op,
        a: PagedAttention,
        inputs: &[TensorId],
        output: TensorId,
        with: Shared,
    ) -> GgmlResult<()> {
        let kv = kv_type(self.slots.desc(inputs[1])?.dtype).ok_or_else(|| self.cannot(op, inputs[1]))?;
        let [_, max_blocks] = rows_and_cols(&self.slots.desc(inputs[3])?.shape);
        let (q, out) = (self.input(op, inputs[0], 0)?, self.f32(op, output)?);
        let (k_cache, v_cache) = (self.bytes(inputs[1])?, self.bytes(inputs[2])?);
        let (block_table, seq_of) = (self.u32(op, inputs[3])?, self.u32(op, inputs[4])?);
        let positions = self.u32(op, inputs[5])?;
        let sinks = inputs.get(6).map(|&id| self.input(op, id, 1)).transpose()?;
        let site = self.fault_site(op, inputs)?;
        let operands = PagedOperands {
            q: &q,
            k_cache: &k_cache,
            v_cache: &v_cache,
            block_table: &block_table,
            seq_of: &seq_of,
            positions: &positions,
            sinks: sinks.as_ref(),
            out: &out,
        };
        let attention = of_layer(a, kv);
        let plan = attention.plan(&self.kernels, operands, max_blocks, self.rounding());
        let rows = rows_and_cols(&self.slots.desc(output)?.shape);
        let split = match plan.map_err(failed(op.name()))?.algorithm {
            PagedAlgorithm::Parts(split) => split,
            other => {
                let (kernels, stream) = (&self.kernels, self.stream());
                let launched = match other {
                    PagedAlgorithm::MatrixUnit => {
                        attention.forward16(kernels, stream, operands, max_blocks, faults(&site))
                    }
                    _ => attention.forward(kernels, stream, operands, max_blocks, faults(&site)),
                };
                launched.map_err(failed(op.name()))?;
                if with.leaves.is_some() {
                    self.rounded(op, 0, &out, rows, false)?;
                }
                return Ok(());
            }
        };
        let partial = self.scratch(BETWEEN, size_of::<f32>() * split.partial_len)?;
        let partial = partial.cast().map_err(failed(op.name()))?;
        let to = (with.leaves).map(|_| self.room_for_rounded(0, rows)).transpose()?;
        let (kernels, stream) = (&self.kernels, self.stream());
        let launched = attention.forward_split(
            kernels,
            stream,
            operands,
            max_blocks,
            split,
            &partial,
            to,
            faults(&site),
        );
        launched.map(drop).map_err(failed(op.name()))
    }
}

/// Attention over a cache of this type, as the kernels' crate has it.
const fn of_layer(a: PagedAttention, kv: KvType) -> rocmforge_attention::PagedAttention {
    rocmforge_attention::PagedAttention {
        heads: a.heads,
        kv_heads: a.kv_heads,
        head_dim: a.head_dim,
        block_size: a.block_size,
        kv,
        options: PagedOptions {
            scale: a.scale,
            window: a.window,
            softcap: a.softcap,
        },
    }
}

/// How `[batch, heads, rows, elements]` lies whose elements are adjacent.
fn in_heads(desc: &TensorDesc) -> Option<Strides> {
    let (&[batch, heads, rows, dim], &[b, h, r, e]) = (desc.shape.as_slice(), desc.strides.as_slice()) else {
        return None;
    };
    let stride = |n: usize, stride: usize| if n == 1 { 0 } else { stride as u64 };
    (e == 1 || dim == 1).then_some(Strides {
        batch: stride(batch, b),
        head: stride(heads, h),
        row: stride(rows, r),
    })
}

/// A mask of `[batch, seq_k]`, or one of four dimensions that broadcasts to the scores; `None` if its rows repeat within themselves.
fn mask_shape(shape: &[usize], [batch, seq_k]: [usize; 2]) -> Option<MaskShape> {
    match *shape {
        [b, k] if [b, k] == [batch, seq_k] => Some(MaskShape::KeyPadding),
        [b, heads, queries, k] if k == seq_k => Some(MaskShape::Along {
            batch: b > 1,
            heads: heads > 1,
            queries: queries > 1,
        }),
        _ => None,
    }
}
