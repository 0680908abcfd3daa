//! Launches of attention, through `rocmforge-attention`.

use rocmforge_attention::{AttentionConfig, Layout, MaskShape};
use rocmforge_kernels::{PagedOperands, PagedOptions};

use super::decoder::kv_type;
use super::faults::faults;
use super::ops::rows_and_cols;
use super::{HipGgmlBackend, failed};
use crate::{Attention, GgmlResult, Op, PagedAttention, TensorId};

impl HipGgmlBackend {
    pub(super) fn attention(&self, op: &Op, a: Attention, inputs: &[TensorId], output: TensorId) -> GgmlResult<()> {
        let q_shape = &self.slots.desc(inputs[0])?.shape;
        let (batch, seq_q) = (q_shape[0], q_shape[1]);
        let seq_k = self.slots.desc(inputs[1])?.shape[1];
        let (q, k) = (self.f32(op, inputs[0])?, self.f32(op, inputs[1])?);
        let (v, y) = (self.f32(op, inputs[2])?, self.f32(op, output)?);
        let (mask, mask_shape) = match inputs.get(3) {
            None => (None, MaskShape::None),
            Some(&id) => {
                let shape = mask_shape(&self.slots.desc(id)?.shape, [batch, seq_k]);
                (Some(self.f32(op, id)?), shape.ok_or_else(|| self.cannot(op, id))?)
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
            .map_err(failed(op.name()))
    }

    pub(super) fn paged_attention(
        &mut self,
        op: &Op,
        a: PagedAttention,
        inputs: &[TensorId],
        output: TensorId,
    ) -> GgmlResult<()> {
        let kv = kv_type(self.slots.desc(inputs[1])?.dtype).ok_or_else(|| self.cannot(op, inputs[1]))?;
        let [_, max_blocks] = rows_and_cols(&self.slots.desc(inputs[3])?.shape);
        let (q, out) = (self.f32(op, inputs[0])?, self.f32(op, output)?);
        let (k_cache, v_cache) = (self.bytes(inputs[1])?, self.bytes(inputs[2])?);
        let (block_table, seq_of) = (self.u32(op, inputs[3])?, self.u32(op, inputs[4])?);
        let positions = self.u32(op, inputs[5])?;
        let site = self.fault_site(op, inputs)?;
        let operands = PagedOperands {
            q: &q,
            k_cache: &k_cache,
            v_cache: &v_cache,
            block_table: &block_table,
            seq_of: &seq_of,
            positions: &positions,
            out: &out,
        };
        let attention = rocmforge_attention::PagedAttention {
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
        };
        attention
            .forward(&self.kernels, self.stream(), operands, max_blocks, faults(&site))
            .map_err(failed(op.name()))
    }
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
