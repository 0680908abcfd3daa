//! Queries and keys normed and turned, keys and values written to the cache: four or six launches that are joined in every layer, as one.

use rocmforge_kernels::{HeadNorms, KvType, RopeKvOperands, RopeShape};

use super::faults::faults;
use super::types::kv_type;
use super::{HipGgmlBackend, failed, unimplemented};
use crate::{GgmlError, GgmlResult, Kernel, Launch, Op};

/// The most elements of a head that the kernel takes for a cache in blocks.
const MOST_OF_HEAD: usize = 256;

/// The step was made of other launches than it is run with.
fn not_joined() -> GgmlError {
    unimplemented(
        &Op::SetRows,
        "launches that are not joined with the rotary embedding before them",
    )
}

/// The launches of a group.
struct Parts<'a> {
    /// Norms of queries and of keys, and what both add to the mean square.
    norms: Option<([&'a Launch; 2], f32)>,
    rope_q: &'a Launch,
    rope_k: &'a Launch,
    set_k: &'a Launch,
    set_v: &'a Launch,
}

impl<'a> Parts<'a> {
    /// Those of a group that the optimizer has joined.
    fn of(group: &'a [Launch]) -> Option<Self> {
        let (norms, [rope_q, rope_k, set_k, set_v]) = match group {
            [norm_q, rope_q, norm_k, rope_k, set_k, set_v] if norm_k.kernel == norm_q.kernel => {
                let Kernel::Op(Op::RmsNorm { eps }) = norm_q.kernel else {
                    return None;
                };
                (Some(([norm_q, norm_k], eps)), [rope_q, rope_k, set_k, set_v])
            }
            [rope_q, rope_k, set_k, set_v] => (None, [rope_q, rope_k, set_k, set_v]),
            _ => return None,
        };
        let write = Kernel::Op(Op::SetRows);
        let fits = matches!(rope_q.kernel, Kernel::Op(Op::Rope(_)))
            && rope_k.kernel == rope_q.kernel
            && [set_k.kernel, set_v.kernel] == [write; 2];
        fits.then_some(Self {
            norms,
            rope_q,
            rope_k,
            set_k,
            set_v,
        })
    }
}

impl HipGgmlBackend {
    /// The type of the cache that joined launches write, if a kernel computes all of them.
    pub(super) fn rope_kv_of(&self, group: &[Launch]) -> GgmlResult<Option<KvType>> {
        let Some(Parts { rope_q, set_k, .. }) = Parts::of(group) else {
            return Ok(None);
        };
        let (q, cache) = (self.slots.desc(rope_q.inputs[0])?, self.slots.desc(set_k.outputs[0])?);
        let head_dim = q.shape.last().copied().unwrap_or(0);
        let takes = |kv: &KvType| match kv.block_len() {
            1 => true,
            block => head_dim.is_multiple_of(block) && head_dim <= MOST_OF_HEAD,
        };
        Ok(kv_type(cache.dtype).filter(takes))
    }

    /// Every result is written that the launches would write, but those of norms, which no other launch reads. A position out of range is the fault of the
    /// rotary embedding, a slot that of the cache.
    pub(super) fn rope_kv(&mut self, kv: KvType, group: &[Launch]) -> GgmlResult<()> {
        let Some(parts) = Parts::of(group) else {
            return Err(not_joined());
        };
        let Parts {
            rope_q,
            rope_k,
            set_k,
            set_v,
            ..
        } = parts;
        let Kernel::Op(op @ Op::Rope(rope)) = rope_q.kernel else {
            return Err(not_joined());
        };
        let norms = parts
            .norms
            .map(|(norms, eps)| (norms.map(|norm| (norm.inputs[0], norm.inputs[1])), eps));
        let [q, k] = match norms {
            Some((norms, _)) => norms.map(|(x, _)| x),
            None => [rope_q, rope_k].map(|launch| launch.inputs[0]),
        };
        let (op, v) = (&op, set_v.inputs[0]);
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
        let weights = match norms {
            Some(([(_, q), (_, k)], eps)) => Some((self.f32(op, q)?, self.f32(op, k)?, eps)),
            None => None,
        };
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
            norms: weights.as_ref().map(|(q, k, eps)| HeadNorms { q, k, eps: *eps }),
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
