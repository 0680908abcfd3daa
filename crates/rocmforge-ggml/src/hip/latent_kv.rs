//! Queries of latent attention put together and what is kept of each token written to the cache: up to nine launches that are joined in every layer, as one.

use rocmforge_kernels::{KvType, LatentKvOperands, LatentKvShape, LatentTurn};
use rocmforge_runtime::HipBuffer;

use super::faults::faults;
use super::types::kv_type;
use super::{HipGgmlBackend, failed};
use crate::optimizer::{LatentRows, row_step};
use crate::{GgmlResult, Kernel, Launch, Op, TensorId};

impl HipGgmlBackend {
    /// The type of the cache that joined launches write, if a kernel computes all of them.
    pub(super) fn latent_kv_of(&self, group: &[Launch]) -> GgmlResult<Option<KvType>> {
        let Some((parts, _)) = LatentRows::of(group).filter(|(_, count)| *count == group.len()) else {
            return Ok(None);
        };
        let cache = self.slots.desc(parts.set.outputs[0])?;
        let fits = kv_type(cache.dtype).zip(self.latent_shape(&parts)?);
        Ok(fits.and_then(|(kv, shape)| shape.fits(kv).then_some(kv)))
    }

    fn latent_shape(&self, parts: &LatentRows<'_>) -> GgmlResult<Option<LatentKvShape>> {
        let shape = |id: TensorId| self.slots.desc(id).map(|desc| desc.shape.as_slice());
        let q = self.slots.desc(parts.part_q.inputs[0])?;
        let (&[tokens, heads, shared], &[.., rank], &[slot_count, _]) = (
            q.shape.as_slice(),
            shape(parts.row_q.inputs[0])?,
            shape(parts.set.outputs[0])?,
        ) else {
            return Ok(None);
        };
        Ok(row_step(q).map(|q_row| LatentKvShape {
            tokens,
            heads,
            rank,
            shared,
            q_row,
            slot_count,
        }))
    }

    /// The queries and the rows of the cache are written; nothing else reads what the other launches would write. A position out of range is the fault of the
    /// rotary embedding, a slot that of the cache.
    pub(super) fn latent_kv(&mut self, kv: KvType, group: &[Launch]) -> GgmlResult<()> {
        let Some((parts, _)) = LatentRows::of(group) else {
            return Err(self.cannot(&Op::SetRows, group[0].inputs[0]));
        };
        let (Kernel::Op(norm @ Op::RmsNorm { eps }), Some(shape)) = (parts.norm.kernel, self.latent_shape(&parts)?)
        else {
            return Err(self.cannot(&Op::SetRows, parts.set.inputs[0]));
        };
        let (set, before) = (&Op::SetRows, shape.q_row - shape.shared);
        let q = self.floats_from(parts.part_q.inputs[0], before, shape.tokens * shape.heads * shape.q_row)?;
        let own = parts.own.unwrap_or(parts.norm).inputs[0];
        let all = self.floats_from(own, 0, shape.tokens * (shape.rank + shape.shared))?;
        let concat = &Op::Concat { axis: 2 };
        let [plain, y] = [parts.row_q.inputs[0], parts.row_q.outputs[0]].map(|id| self.f32(concat, id));
        let weight = self.f32(&norm, parts.norm.inputs[1])?;
        let (slots, cache) = (self.u32(set, parts.set.inputs[2])?, self.bytes(parts.set.outputs[0])?);
        let rope = match parts.rope_q.map(|launch| (launch.kernel, &launch.inputs[..])) {
            Some((Kernel::Op(op @ Op::Rope(rope)), inputs)) => {
                let tables = self.rope_tables(&op, rope, inputs.get(2).copied())?.turns;
                Some((rope, tables, self.u32(&op, inputs[1])?, self.fault_site(&op, inputs)?))
            }
            _ => None,
        };
        let slot_site = self.fault_site(set, &parts.set.inputs)?;
        let site = rope.as_ref().map_or(&slot_site, |(.., site)| site);
        let operands = LatentKvOperands {
            plain: &plain?,
            q: &q,
            kv: &all,
            norm: &weight,
            turn: rope.as_ref().map(|(rope, [cos, sin], positions, _)| LatentTurn {
                tables: [cos, sin],
                positions,
                pairs: rope.style.pairs(),
                rotary_dim: rope.n_dims,
            }),
            slots: &slots,
            y: &y?,
            cache: &cache,
        };
        let (kernels, stream) = (&self.kernels, self.stream());
        let launched = kernels.latent_kv(stream, kv, operands, shape, eps, faults(site), slot_site.1);
        launched.map_err(failed("CONCAT, RMS_NORM and SET_ROWS"))
    }

    /// So many floats of the memory that a view is of, from some before its first one on.
    fn floats_from(&self, view: TensorId, before: usize, count: usize) -> GgmlResult<HipBuffer<f32>> {
        let size = size_of::<f32>();
        let first = self.slots.desc(view)?.byte_offset.saturating_sub(before * size);
        let memory = self.part(
            self.slots.root(view)?,
            first..first.saturating_add(count.saturating_mul(size)),
        )?;
        memory.cast().map_err(failed(format!("tensor {view}")))
    }
}
