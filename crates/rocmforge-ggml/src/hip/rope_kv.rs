//! Queries and keys turned, keys and values written to the cache: four launches that are joined in every layer, as one.

use rocmforge_kernels::{KvType, RopeKvOperands, RopeShape};

use super::faults::faults;
use super::types::kv_type;
use super::{HipGgmlBackend, failed};
use crate::{GgmlResult, Kernel, Launch, Op};

/// The most elements of a head that the kernel takes for a cache in blocks.
const MOST_OF_HEAD: usize = 256;

impl HipGgmlBackend {
    /// The type of the cache that four joined launches write, if a kernel computes all four.
    pub(super) fn rope_kv_of(&self, group: &[Launch]) -> GgmlResult<Option<KvType>> {
        let [rope, _, set, _] = group else { return Ok(None) };
        let (q, cache) = (self.slots.desc(rope.inputs[0])?, self.slots.desc(set.outputs[0])?);
        let head_dim = q.shape.last().copied().unwrap_or(0);
        let takes = |kv: &KvType| match kv.block_len() {
            1 => true,
            block => head_dim.is_multiple_of(block) && head_dim <= MOST_OF_HEAD,
        };
        let is_rope = matches!(rope.kernel, Kernel::Op(Op::Rope(_)));
        Ok(kv_type(cache.dtype).filter(|kv| is_rope && takes(kv)))
    }

    /// Every result is written that the four launches would write. A position out of range is the fault of the first, a slot that of the third.
    pub(super) fn rope_kv(&mut self, kv: KvType, group: &[Launch]) -> GgmlResult<()> {
        let [rope_q, rope_k, set_k, set_v, ..] = group else {
            return Ok(());
        };
        let Kernel::Op(op @ Op::Rope(rope)) = rope_q.kernel else {
            return Ok(());
        };
        let (op, [q, k, v]) = (&op, [rope_q, rope_k, set_v].map(|launch| launch.inputs[0]));
        let shape = |id| self.slots.desc(id).map(|desc| desc.shape.as_slice());
        let (&[batch, seq, heads, head_dim], &[.., kv_heads, _], &[slot_count, _]) =
            (shape(q)?, shape(k)?, shape(set_k.outputs[0])?)
        else {
            return Err(self.cannot(op, q));
        };
        let shape = RopeShape {
            rotary_dim: rope.n_dims,
            ..RopeShape::sequence(batch * seq, heads, head_dim)
        };
        let [q, k, v] = [q, k, v].map(|id| self.f32(op, id));
        let [yq, yk] = [rope_q, rope_k].map(|launch| self.f32(op, launch.outputs[0]));
        let [k_cache, v_cache] = [set_k, set_v].map(|launch| self.bytes(launch.outputs[0]));
        let [cos, sin] = self.rope_tables(op, rope, rope_q.inputs.get(2).copied())?.turns;
        let site = self.fault_site(op, &rope_q.inputs)?;
        let (_, slot_tag) = self.fault_site(&Op::SetRows, &set_k.inputs)?;
        let operands = RopeKvOperands {
            q: &q?,
            k: &k?,
            v: &v?,
            tables: [&cos, &sin],
            positions: &self.u32(op, rope_q.inputs[1])?,
            slots: &self.u32(op, set_k.inputs[2])?,
            turned_q: &yq?,
            turned_k: &yk?,
            k_cache: &k_cache?,
            v_cache: &v_cache?,
        };
        let (pairs, faults, dims) = (rope.style.pairs(), faults(&site), [kv_heads, slot_count]);
        let launched = self
            .kernels
            .rope_kv(self.stream(), pairs, kv, operands, shape, dims, faults, slot_tag);
        launched.map_err(failed("ROPE and SET_ROWS"))
    }
}
