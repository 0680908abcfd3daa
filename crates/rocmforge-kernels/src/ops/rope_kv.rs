//! Rotary embedding of queries and keys, and keys and values into the paged cache, in one launch.

use super::paged::{MAX_HEAD_DIM, WHOLE_HEADS};
use super::rope::{RopePairs, RopeShape, rotary_dim};
use crate::check::Check;
use crate::{Faults, KernelResult, Kernels, KvType, geometry};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchArgs};

/// The operands of [`Kernels::rope_kv`].
#[derive(Debug, Clone, Copy)]
pub struct RopeKvOperands<'a> {
    /// `[tokens, heads, head_dim]`.
    pub q: &'a HipBuffer<f32>,
    /// `[tokens, kv_heads, head_dim]`.
    pub k: &'a HipBuffer<f32>,
    /// The same.
    pub v: &'a HipBuffer<f32>,
    /// Cosines and sines, `[positions, rotary_dim / 2]` each.
    pub tables: [&'a HipBuffer<f32>; 2],
    /// `[tokens]`: rows of the tables.
    pub positions: &'a HipBuffer<u32>,
    /// `[tokens]`: rows of the caches.
    pub slots: &'a HipBuffer<u32>,
    /// The turned queries; may be `q`.
    pub turned_q: &'a HipBuffer<f32>,
    /// The turned keys; may be `k`.
    pub turned_k: &'a HipBuffer<f32>,
    /// `[slot_count, kv_heads, head_dim]`.
    pub k_cache: &'a HipBuffer<u8>,
    /// The same.
    pub v_cache: &'a HipBuffer<u8>,
}

impl Kernels {
    /// [`rope_at`](Self::rope_at) of queries and of keys, and [`set_rows`](Self::set_rows) of the turned keys and of the values, bit for bit. `shape` is
    /// that of the queries.
    ///
    /// A position out of range is a fault of `faults` and gives NaN; a slot out of range is one of `slot_tag` and writes nothing to the caches.
    ///
    /// # Errors
    ///
    /// Wrong lengths, an odd or too large `rotary_dim`, in q8_0 a `head_dim` that is no multiple of 32 or over 256, overlap other than the one allowed, a dimension of 0, a tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of four ops
    pub fn rope_kv(
        &self,
        stream: &HipStream,
        pairs: RopePairs,
        kv: KvType,
        operands: RopeKvOperands<'_>,
        shape: RopeShape,
        [kv_heads, slot_count]: [usize; 2],
        faults: Faults<'_>,
        slot_tag: u32,
    ) -> KernelResult<()> {
        let check = Check("rope_kv");
        let o = operands;
        let tokens = check.dim("tokens", shape.tokens)?;
        let (heads, head_dim) = (check.dim("heads", shape.heads)?, check.dim("head_dim", shape.head_dim)?);
        let (keys, slot_rows) = (check.dim("kv_heads", kv_heads)?, check.dim("slot_count", slot_count)?);
        let rotary = rotary_dim(check, shape)?;
        let half = shape.rotary_dim / 2;
        let table_rows = o.tables[0].len() / half;
        let rows_in_table = check.dim("positions of the tables", table_rows)?;
        let rows = check.rows(
            "tokens * (heads + 2 kv_heads)",
            &[shape.tokens, shape.heads.saturating_add(kv_heads.saturating_mul(2))],
        )?;
        let query = [shape.tokens, shape.heads, shape.head_dim];
        let key = [shape.tokens, kv_heads, shape.head_dim];
        check.one_shape(o.q, o.turned_q, &query)?;
        check.one_shape(o.k, o.turned_k, &key)?;
        check.len("v", o.v, &key)?;
        let floats = [
            ("q", o.q),
            ("k", o.k),
            ("v", o.v),
            ("cos", o.tables[0]),
            ("sin", o.tables[1]),
            ("the turned q", o.turned_q),
            ("the turned k", o.turned_k),
        ];
        for (name, table) in &floats[3..5] {
            check.len(name, table, &[table_rows, half])?;
        }
        // Blocks run in any order: what one writes, no other may read.
        for (out, own) in [(5, 0), (6, 1)] {
            for (index, &other) in floats.iter().enumerate() {
                if index != own && index != out {
                    check.disjoint(floats[out], other)?;
                }
            }
        }
        let caches = [("k_cache", o.k_cache), ("v_cache", o.v_cache)];
        let [blocks, block_bytes] = check.kv_row(kv, WHOLE_HEADS, shape.head_dim)?;
        if kv.block_len() > 1 {
            // A turned key goes through LDS.
            check.dim_to("head_dim", shape.head_dim, MAX_HEAD_DIM)?;
        }
        for cache in caches {
            check.len(cache.0, cache.1, &[slot_count, kv_heads, blocks, block_bytes])?;
            check.aligned(cache.0, cache.1, kv.alignment())?;
            for float in floats {
                check.disjoint(cache, float)?;
            }
            check.disjoint(cache, ("the fault word", faults.word))?;
        }
        check.disjoint(caches[0], caches[1])?;
        for (name, index) in [("positions", o.positions), ("slots", o.slots)] {
            check.len(name, index, &[shape.tokens])?;
            for out in [floats[5], floats[6]] {
                check.disjoint(out, (name, index))?;
            }
            for cache in caches {
                check.disjoint(cache, (name, index))?;
            }
        }
        for out in [floats[5], floats[6]] {
            check.disjoint(out, ("the fault word", faults.word))?;
        }
        check.dim_to("slot_tag + 1", slot_tag as usize + 1, 4096)?;
        let name = match (pairs, kv) {
            (RopePairs::Half, KvType::F32) => "rope_kv_half_f32",
            (RopePairs::Half, KvType::F16) => "rope_kv_half_f16",
            (RopePairs::Half, KvType::Bf16) => "rope_kv_half_bf16",
            (RopePairs::Half, KvType::Q8_0) => "rope_kv_half_q8_0",
            (RopePairs::Interleaved, KvType::F32) => "rope_kv_interleaved_f32",
            (RopePairs::Interleaved, KvType::F16) => "rope_kv_interleaved_f16",
            (RopePairs::Interleaved, KvType::Bf16) => "rope_kv_interleaved_bf16",
            (RopePairs::Interleaved, KvType::Q8_0) => "rope_kv_interleaved_q8_0",
        };
        let args = LaunchArgs::new()
            .buffer(o.q)
            .buffer(o.k)
            .buffer(o.v)
            .buffer(o.tables[0])
            .buffer(o.tables[1])
            .buffer(o.positions)
            .buffer(o.slots)
            .out(o.turned_q)
            .out(o.turned_k)
            .out(o.k_cache)
            .out(o.v_cache)
            .values([tokens, heads, keys, head_dim, rotary])
            .values([rows_in_table, slot_rows, slot_tag]);
        let args = faults.args(check, args)?;
        // SAFETY: lengths are those of the shapes, heads in blocks are whole and no longer than the kernel's LDS, what one block writes no other reads,
        // checked above; the kernel compares each position and slot with its limit.
        unsafe { self.launch(stream, "rope_kv", name, geometry::rows(rows), args) }
    }
}
