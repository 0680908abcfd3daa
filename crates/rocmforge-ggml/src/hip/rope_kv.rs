//! Queries and keys turned, keys and values written to the cache: four nodes that come one after the other in every layer, as one launch.

use rocmforge_kernels::{KvType, RopeKvOperands, RopeShape};

use super::faults::faults;
use super::types::kv_type;
use super::{HipGgmlBackend, failed};
use crate::{DType, GgmlResult, Kernel, Launch, Op, Rope, TensorId};

/// The most elements of a head that the kernel takes for a cache in blocks.
const MOST_OF_HEAD: usize = 256;

/// ROPE of queries, ROPE of keys, SET_ROWS of keys, SET_ROWS of values.
pub(super) const ROPE_KV_NODES: usize = 4;

/// The operands of such a launch.
#[derive(Debug)]
pub(super) struct RopeKv {
    rope: Rope,
    /// Queries, keys and values.
    rows: [TensorId; 3],
    turned: [TensorId; 2],
    caches: [TensorId; 2],
    kv: KvType,
    positions: TensorId,
    slots: TensorId,
    factors: Option<TensorId>,
    shape: RopeShape,
    /// Heads of keys, and rows of a cache.
    kv_dims: [usize; 2],
}

impl HipGgmlBackend {
    /// The first four nodes as one launch, if they are these and the kernel takes their operands.
    pub(super) fn rope_kv_of(&self, nodes: &[Launch]) -> GgmlResult<Option<RopeKv>> {
        let [rope_q, rope_k, set_k, set_v, ..] = nodes else {
            return Ok(None);
        };
        let write = Kernel::Op(Op::SetRows);
        let (Kernel::Op(Op::Rope(rope)), true) = (rope_q.kernel, [set_k.kernel, set_v.kernel] == [write; 2]) else {
            return Ok(None);
        };
        let (&[q, positions, ref factors @ ..], &[k, positions_k, ref factors_k @ ..]) =
            (rope_q.inputs.as_slice(), rope_k.inputs.as_slice())
        else {
            return Ok(None);
        };
        let (&[key_rows, _, slots], &[v, _, slots_v]) = (set_k.inputs.as_slice(), set_v.inputs.as_slice()) else {
            return Ok(None);
        };
        let (turned, caches) = (
            [rope_q.outputs[0], rope_k.outputs[0]],
            [set_k.outputs[0], set_v.outputs[0]],
        );
        let one =
            rope_k.kernel == rope_q.kernel && positions == positions_k && factors == factors_k && slots == slots_v;
        let mut plain = [q, k, v, key_rows].into_iter().chain(turned);
        if !one || rope.n_dims == 0 || rope.style.sections().is_some() || !plain.all(|id| self.is_plain_f32(id)) {
            return Ok(None);
        }
        let desc = |id| self.slots.desc(id);
        let (&[batch, seq, heads, head_dim], &[_, _, kv_heads, _]) =
            (desc(q)?.shape.as_slice(), desc(k)?.shape.as_slice())
        else {
            return Ok(None);
        };
        let (tokens, width) = (batch * seq, kv_heads * head_dim);
        let (cache_k, cache_v) = (desc(caches[0])?, desc(caches[1])?);
        let (Some(kv), &[slot_count, cols]) = (kv_type(cache_k.dtype), cache_k.shape.as_slice()) else {
            return Ok(None);
        };
        let index = |id| {
            desc(id).is_ok_and(|d| {
                matches!(d.dtype, DType::U32 | DType::I32) && d.is_contiguous() && d.element_count() == tokens
            })
        };
        let fits = tokens > 0
            && (kv.block_len() == 1 || (head_dim.is_multiple_of(kv.block_len()) && head_dim <= MOST_OF_HEAD))
            && (cache_v.dtype, &cache_v.shape) == (cache_k.dtype, &cache_k.shape)
            && cols == width
            && cache_k.is_contiguous()
            && cache_v.is_contiguous()
            && desc(v)?.shape == [tokens, width]
            && desc(key_rows)?.shape == [tokens, width]
            && desc(k)?.element_count() == tokens * width
            && index(positions)
            && index(slots);
        // A result may lie where another operand has been used for the last time: in one launch that is still to be read.
        let own = |y, x| self.are_apart(y, x) || self.is_same_place(y, x);
        let [yq, yk] = turned;
        let apart = own(yq, q)
            && own(yk, k)
            && [k, v, yk].into_iter().all(|x| self.are_apart(yq, x))
            && [q, v].into_iter().all(|x| self.are_apart(yk, x));
        // The cache gets the turned keys, where they lie.
        if !fits || !apart || !self.is_same_place(key_rows, yk) {
            return Ok(None);
        }
        Ok(Some(RopeKv {
            rope,
            rows: [q, k, v],
            turned,
            caches,
            kv,
            positions,
            slots,
            factors: factors.first().copied(),
            shape: RopeShape {
                rotary_dim: rope.n_dims,
                ..RopeShape::sequence(tokens, heads, head_dim)
            },
            kv_dims: [kv_heads, slot_count],
        }))
    }

    /// Every result is written that the four launches would write. A position out of range is the fault of the first node, a slot that of the third.
    pub(super) fn rope_kv(&mut self, launch: &RopeKv, nodes: &[Launch]) -> GgmlResult<()> {
        let op = &Op::Rope(launch.rope);
        let [q, k, v] = launch.rows.map(|id| self.f32(op, id));
        let [yq, yk] = launch.turned.map(|id| self.f32(op, id));
        let [k_cache, v_cache] = launch.caches.map(|id| self.bytes(id));
        let [cos, sin] = self.rope_tables(op, launch.rope, launch.factors)?.turns;
        let site = self.fault_site(op, &nodes[0].inputs)?;
        let (_, slot_tag) = self.fault_site(&Op::SetRows, &nodes[2].inputs)?;
        let operands = RopeKvOperands {
            q: &q?,
            k: &k?,
            v: &v?,
            tables: [&cos, &sin],
            positions: &self.u32(op, launch.positions)?,
            slots: &self.u32(op, launch.slots)?,
            turned_q: &yq?,
            turned_k: &yk?,
            k_cache: &k_cache?,
            v_cache: &v_cache?,
        };
        let (pairs, faults) = (launch.rope.style.pairs(), faults(&site));
        let (shape, dims, stream) = (launch.shape, launch.kv_dims, self.stream());
        let launched = self
            .kernels
            .rope_kv(stream, pairs, launch.kv, operands, shape, dims, faults, slot_tag);
        launched.map_err(failed("ROPE and SET_ROWS"))
    }
}
