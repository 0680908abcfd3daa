//! Queries and keys turned, keys and values written to the cache: four nodes that come one after the other in every layer, as one launch.

use rocmforge_kernels::{RopeKvOperands, RopeShape, overlap};

use super::faults::faults;
use super::types::kv_type;
use super::{HipGgmlBackend, failed};
use crate::{DType, GgmlResult, Node, Op};

/// The most elements of a head that the kernel takes for a cache in blocks.
const MOST_OF_HEAD: usize = 256;

/// ROPE of queries, ROPE of keys, SET_ROWS of keys, SET_ROWS of values.
pub(super) const ROPE_KV_NODES: usize = 4;

impl HipGgmlBackend {
    /// Launches the first four nodes at once, if they are these and the kernel takes their operands. False if it does not; nothing has been launched then.
    ///
    /// Every result is written that the four launches would write. A position out of range is the fault of the first node, a slot that of the third.
    pub(super) fn rope_kv(&mut self, nodes: &[Node]) -> GgmlResult<bool> {
        let [rope_q, rope_k, set_k, set_v, ..] = nodes else {
            return Ok(false);
        };
        let (Op::Rope(rope), Op::Rope(same), Op::SetRows, Op::SetRows) = (rope_q.op, rope_k.op, set_k.op, set_v.op)
        else {
            return Ok(false);
        };
        let ([q, positions, factors @ ..], [k, positions_k, factors_k @ ..]) =
            (rope_q.inputs.as_slice(), rope_k.inputs.as_slice())
        else {
            return Ok(false);
        };
        let ([key_rows, _, slots], [value_rows, _, slots_v]) = (set_k.inputs.as_slice(), set_v.inputs.as_slice())
        else {
            return Ok(false);
        };
        if rope.style.sections().is_some() {
            return Ok(false);
        }
        let one = rope == same && positions == positions_k && factors == factors_k && slots == slots_v;
        let (turned_q, turned_k, keys, values) =
            (rope_q.outputs[0], rope_k.outputs[0], set_k.outputs[0], set_v.outputs[0]);
        let floats = [*q, *k, turned_q, turned_k, *key_rows, *value_rows];
        if !one || rope.n_dims == 0 || !floats.iter().all(|&id| self.is_plain_f32(id)) {
            return Ok(false);
        }
        let desc = |id| self.slots.desc(id);
        let (&[batch, seq, heads, head_dim], &[_, _, kv_heads, _]) =
            (desc(*q)?.shape.as_slice(), desc(*k)?.shape.as_slice())
        else {
            return Ok(false);
        };
        let (tokens, width) = (batch * seq, kv_heads * head_dim);
        let (cache_k, cache_v) = (desc(keys)?, desc(values)?);
        let Some(kv) = kv_type(cache_k.dtype).filter(|_| cache_k.dtype == cache_v.dtype) else {
            return Ok(false);
        };
        if kv.block_len() > 1 && (!head_dim.is_multiple_of(kv.block_len()) || head_dim > MOST_OF_HEAD) {
            return Ok(false);
        }
        let [slot_count, cols] = match (cache_k.shape.as_slice(), cache_v.shape.as_slice()) {
            (&[rows, cols], other) if other == [rows, cols] => [rows, cols],
            _ => return Ok(false),
        };
        let index = |id| {
            desc(id).is_ok_and(|d| {
                matches!(d.dtype, DType::U32 | DType::I32) && d.is_contiguous() && d.element_count() == tokens
            })
        };
        let fits = tokens > 0
            && cols == width
            && cache_k.is_contiguous()
            && cache_v.is_contiguous()
            && desc(*value_rows)?.shape == [tokens, width]
            && desc(*key_rows)?.shape == [tokens, width]
            && desc(*k)?.element_count() == tokens * width
            && index(*positions)
            && index(*slots);
        // The cache gets the turned keys, where they lie.
        let same_memory = self.slots.root(*key_rows)? == self.slots.root(turned_k)?
            && desc(*key_rows)?.byte_offset == desc(turned_k)?.byte_offset;
        if !fits || !same_memory {
            return Ok(false);
        }
        let op = &rope_q.op;
        let (q, k, v) = (self.f32(op, *q)?, self.f32(op, *k)?, self.f32(op, *value_rows)?);
        let (yq, yk) = (self.f32(op, turned_q)?, self.f32(op, turned_k)?);
        // A result may lie where another operand has been used for the last time: in one launch that is still to be read.
        let own =
            |y: &_, x: &rocmforge_runtime::HipBuffer<f32>| !overlap(y, x) || y.as_device_ptr() == x.as_device_ptr();
        let apart = own(&yq, &q)
            && own(&yk, &k)
            && [&k, &v, &yk].into_iter().all(|x| !overlap(&yq, x))
            && [&q, &v].into_iter().all(|x| !overlap(&yk, x));
        if !apart {
            return Ok(false);
        }
        self.forget_rounded(Some(op));
        let (positions, slots) = (self.u32(op, *positions)?, self.u32(op, *slots)?);
        let [cos, sin] = self.rope_tables(op, rope, factors.first().copied())?.turns;
        let (k_cache, v_cache) = (self.bytes(keys)?, self.bytes(values)?);
        let site = self.fault_site(op, &rope_q.inputs)?;
        let (_, slot_tag) = self.fault_site(&set_k.op, &set_k.inputs)?;
        let operands = RopeKvOperands {
            q: &q,
            k: &k,
            v: &v,
            tables: [&cos, &sin],
            positions: &positions,
            slots: &slots,
            turned_q: &yq,
            turned_k: &yk,
            k_cache: &k_cache,
            v_cache: &v_cache,
        };
        let shape = RopeShape {
            rotary_dim: rope.n_dims,
            ..RopeShape::sequence(tokens, heads, head_dim)
        };
        let (kernels, stream) = (&self.kernels, self.stream());
        kernels
            .rope_kv(
                stream,
                rope.style.pairs(),
                kv,
                operands,
                shape,
                [kv_heads, slot_count],
                faults(&site),
                slot_tag,
            )
            .map_err(failed("ROPE and SET_ROWS"))?;
        Ok(true)
    }
}
