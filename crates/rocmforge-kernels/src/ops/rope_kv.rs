//! Rotary embedding of queries and keys, and keys and values into the paged cache, in one launch.

use super::paged::{MAX_HEAD_DIM, WHOLE_HEADS};
use super::rope::{RopePairs, RopeShape, rotary_dim};
use crate::declared::{Again, Call, Declared};
use crate::kv_type::by_kv;
use crate::{Faults, KernelResult, Kernels, KvType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

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
    /// What is done with each head of queries and keys before.
    pub norms: Option<HeadNorms<'a>>,
    /// The turned queries; may be `q`.
    pub turned_q: &'a HipBuffer<f32>,
    /// The turned keys; may be `k`.
    pub turned_k: &'a HipBuffer<f32>,
    /// `[slot_count, kv_heads, head_dim]`.
    pub k_cache: &'a HipBuffer<u8>,
    /// The same.
    pub v_cache: &'a HipBuffer<u8>,
}

/// `x / sqrt(mean(x^2) + eps) * weight` of each head.
#[derive(Debug, Clone, Copy)]
pub struct HeadNorms<'a> {
    /// Of queries, `[head_dim]`.
    pub q: &'a HipBuffer<f32>,
    /// Of keys, the same.
    pub k: &'a HipBuffer<f32>,
    /// Finite and not negative.
    pub eps: f32,
}

impl Kernels {
    /// [`rope_at`](Self::rope_at) of queries and of keys, and [`set_rows`](Self::set_rows) of the turned keys and of the values, bit for bit. `shape` is
    /// that of the queries. With [`norms`](RopeKvOperands::norms) heads of queries and keys are normed before they are turned, and what they
    /// become is near that of the launches apart, not bit for bit: the squares are summed in another order.
    ///
    /// A position out of range is a fault of `faults` and gives NaN; a slot out of range is one of `slot_tag` and writes nothing to the caches.
    ///
    /// # Errors
    ///
    /// Wrong lengths, an odd or too large `rotary_dim`, in q8_0 a `head_dim` that is no multiple of 32 or over 256, overlap other than the one allowed, a dimension of 0, an `eps` that is negative or not finite, a tag over 4095.
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
        let op = self.op("rope_kv");
        let (s, o) = (shape, operands);
        let [tokens, heads, head_dim] =
            op.dims([("tokens", s.tokens), ("heads", s.heads), ("head_dim", s.head_dim)])?;
        let [keys, slot_rows] = op.dims([("kv_heads", kv_heads), ("slot_count", slot_count)])?;
        let rotary = rotary_dim(op.check(), s)?;
        let half = s.rotary_dim / 2;
        let table = [o.tables[0].len() / half, half];
        let rows_in_table = op.dim("positions of the tables", table[0])?;
        let rows = op.rows(
            "tokens * (heads + 2 kv_heads)",
            &[s.tokens, s.heads.saturating_add(kv_heads.saturating_mul(2))],
        )?;
        let [blocks, block_bytes] = op.kv_row(kv, WHOLE_HEADS, s.head_dim)?;
        if kv.block_len() > 1 {
            // A turned key goes through LDS.
            op.dim_to("head_dim", s.head_dim, MAX_HEAD_DIM)?;
        }
        op.dim_to("slot_tag + 1", slot_tag as usize + 1, 4096)?;
        let eps = o.norms.map_or(0.0, |norms| norms.eps);
        op.value_of("eps", eps, eps >= 0.0 && eps.is_finite(), "finite and not negative")?;
        let (query, key) = ([s.tokens, s.heads, s.head_dim], [s.tokens, kv_heads, s.head_dim]);
        let cache = [slot_count, kv_heads, blocks, block_bytes];
        let name = match pairs {
            RopePairs::Half => by_kv!(kv, "rope_kv_half_"),
            RopePairs::Interleaved => by_kv!(kv, "rope_kv_interleaved_"),
        };
        // Blocks run in any order: what one writes, no other may read.
        (op.read("q", o.q, &query)?.read("k", o.k, &key)?.read("v", o.v, &key)?)
            .read("cos", o.tables[0], &table)?
            .read("sin", o.tables[1], &table)?
            .read("positions", o.positions, &[s.tokens])?
            .read("slots", o.slots, &[s.tokens])?
            .read_or_null("the norm of q", o.norms.map(|norms| norms.q), &[s.head_dim])?
            .read_or_null("the norm of k", o.norms.map(|norms| norms.k), &[s.head_dim])?
            .write("the turned q", o.turned_q, &query, &["q"])?
            .write("the turned k", o.turned_k, &key, &["k"])?
            .write_bytes("k_cache", o.k_cache, &cache, kv.alignment())?
            .write_bytes("v_cache", o.v_cache, &cache, kv.alignment())?
            .value(eps)
            .values([tokens, heads, keys, head_dim, rotary])
            .values([rows_in_table, slot_rows, slot_tag])
            .faults(faults)?
            .run(stream, "rope_kv", (name, geometry::rows(rows)))
    }
}

/// All tokens once, in other slots than their own.
const ROPE_KV: Declared = Declared {
    name: "rope_kv",
    tested: &[
        &[1, 4, 2, 64, 64, 11],
        &[3, 2, 1, 160, 96, 11],
        &[2, 3, 3, 256, 256, 11],
        &[9, 3, 2, 32, 20, 11],
    ],
    counted: &[&[4, 8, 2, 64, 64, 16]],
    moved: &[&[64, 9, 3, 64, 64, 64]],
    again: Again::Pairs,
    ..Declared::NEW
};

/// The same kernels, whose launches above are those of `counters` and `bytes`.
const WITH_NORMS: Declared = Declared {
    counted: &[],
    moved: &[],
    ..ROPE_KV
};

macro_rules! rope_kv {
    ($pairs:ident, $kv:ident) => {
        [
            Declared {
                call: |c, dims| rope_kv(c, dims, RopePairs::$pairs, KvType::$kv, false),
                ..ROPE_KV
            },
            Declared {
                call: |c, dims| rope_kv(c, dims, RopePairs::$pairs, KvType::$kv, true),
                ..WITH_NORMS
            },
        ]
    };
}

pub(super) const DECLARED: &[Declared] = [
    rope_kv!(Half, F32),
    rope_kv!(Half, F16),
    rope_kv!(Half, Bf16),
    rope_kv!(Half, Q8_0),
    rope_kv!(Interleaved, F32),
    rope_kv!(Interleaved, F16),
    rope_kv!(Interleaved, Bf16),
    rope_kv!(Interleaved, Q8_0),
]
.as_flattened();

fn rope_kv(c: &mut Call<'_>, dims: &[usize], pairs: RopePairs, kv: KvType, normed: bool) -> KernelResult<()> {
    let &[tokens, heads, kv_heads, head_dim, rotary_dim, slot_count] = dims else {
        return Ok(());
    };
    const EPS: f32 = 1e-5;
    let shape = |heads| RopeShape {
        rotary_dim,
        ..RopeShape::sequence(tokens, heads, head_dim)
    };
    let (width, table) = (kv_heads * head_dim, tokens * rotary_dim / 2);
    let (queries, keys) = (tokens * heads * head_dim, tokens * width);
    let (q, k) = (c.input("q", queries, -2.0..2.0)?, c.input("k", keys, -2.0..2.0)?);
    let v = c.input("v", keys, -2.0..2.0)?;
    let tables = [c.input("cos", table, -1.0..1.0)?, c.input("sin", table, -1.0..1.0)?];
    let positions = c.words("positions", (0..tokens as u32).rev().collect())?;
    let slots = c.indices("slots", tokens, slot_count)?;
    let norms = match normed {
        false => None,
        true => Some((
            c.input("the norm of q", head_dim, 0.5..1.5)?,
            c.input("the norm of k", head_dim, 0.5..1.5)?,
        )),
    };
    let (turned_q, turned_k) = (c.output("the turned q", queries)?, c.output("the turned k", keys)?);
    let bytes = kv.byte_len(slot_count * width).unwrap_or(0);
    let (k_cache, v_cache) = (c.output_bytes("k_cache", bytes)?, c.output_bytes("v_cache", bytes)?);
    let word = c.fault_word()?;
    let operands = RopeKvOperands {
        q: &q,
        k: &k,
        v: &v,
        tables: [&tables[0], &tables[1]],
        positions: &positions,
        slots: &slots,
        norms: norms.as_ref().map(|(q, k)| HeadNorms { q, k, eps: EPS }),
        turned_q: &turned_q,
        turned_k: &turned_k,
        k_cache: &k_cache,
        v_cache: &v_cache,
    };
    let (counts, faults) = ([kv_heads, slot_count], Faults { word: &word, tag: 0 });
    c.kernels
        .rope_kv(c.stream, pairs, kv, operands, shape(heads), counts, faults, 1)?;
    let turned = |c: &Call<'_>, [name, norm]: [&'static str; 2], heads| {
        let (cos, sin) = (c.f32("cos"), c.f32("sin"));
        let normed: Vec<f32> = match c.f32(norm) {
            [] => c.f32(name).to_vec(),
            weight => {
                let normed = reference::rms_norm(c.f32(name), weight, EPS);
                normed.iter().map(|&x| x as f32).collect()
            }
        };
        reference::rope_at(pairs, &normed, cos, sin, c.u32("positions"), shape(heads))
    };
    let (q_names, k_names) = (["q", "the norm of q"], ["k", "the norm of k"]);
    // The square root and the quotient of a norm are rounded, too.
    let limit = if normed { 4e-6 } else { 1e-6 };
    // Slots without a token stay as they are.
    let cached = |c: &Call<'_>, rows: &[f32]| {
        let mut cache = reference::kv_values(kv, &vec![0xA5; bytes]);
        for (row, &slot) in rows.chunks(width).zip(c.u32("slots")) {
            cache[slot as usize * width..][..width].copy_from_slice(&reference::kv_rounded(kv, row));
        }
        cache
    };
    c.expect("the turned q", limit, |c| turned(c, q_names, heads));
    c.expect("the turned k", limit, |c| turned(c, k_names, kv_heads));
    // A turned key may be rounded to the neighbour of the number that is expected.
    let step = match kv {
        KvType::F32 => limit,
        KvType::F16 => 2f64.powi(-9),
        KvType::Bf16 => 2f64.powi(-6),
        KvType::Q8_0 => 4.0 / 127.0,
    };
    c.expect_typed("k_cache", kv, step, |c| {
        let keys: Vec<f32> = turned(c, k_names, kv_heads).iter().map(|&k| k as f32).collect();
        cached(c, &keys)
    });
    c.expect_typed("v_cache", kv, 0.0, |c| cached(c, c.f32("v")));
    Ok(())
}
