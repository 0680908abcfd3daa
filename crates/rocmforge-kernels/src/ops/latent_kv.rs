//! Queries of latent attention put together, and what is kept of each token into the paged cache, in one launch.

use super::rope::{RopePairs, RopeShape, rotary_dim};
use crate::declared::{Again, Call, Declared};
use crate::kv_type::by_kv;
use crate::{Faults, KernelResult, Kernels, KvType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

/// Elements of a row: a block has it, with four to a thread.
const MOST_OF_ROW: usize = 1024;
const FOURS: usize = 4;

/// The operands of [`Kernels::latent_kv`].
#[derive(Debug, Clone, Copy)]
pub struct LatentKvOperands<'a> {
    /// The queries' parts that are not turned, `[tokens, heads, rank]`.
    pub plain: &'a HipBuffer<f32>,
    /// `[tokens, heads, q_row]`, of which the last `shared` of each row are turned.
    pub q: &'a HipBuffer<f32>,
    /// What is kept of each token, `[tokens, rank + shared]`: the first `rank` are normed, the others turned.
    pub kv: &'a HipBuffer<f32>,
    /// `[rank]`: the factors of the norm.
    pub norm: &'a HipBuffer<f32>,
    /// By what parts are turned; `None`: they are as they are.
    pub turn: Option<LatentTurn<'a>>,
    /// `[tokens]`: rows of the cache.
    pub slots: &'a HipBuffer<u32>,
    /// The queries, `[tokens, heads, rank + shared]`.
    pub y: &'a HipBuffer<f32>,
    /// `[slot_count, rank + shared]`.
    pub cache: &'a HipBuffer<u8>,
}

/// A rotary embedding.
#[derive(Debug, Clone, Copy)]
pub struct LatentTurn<'a> {
    /// Cosines and sines, `[positions, rotary_dim / 2]` each.
    pub tables: [&'a HipBuffer<f32>; 2],
    /// `[tokens]`: rows of the tables.
    pub positions: &'a HipBuffer<u32>,
    /// Which elements are a pair.
    pub pairs: RopePairs,
    /// Elements that are turned: even, at most `shared`.
    pub rotary_dim: usize,
}

/// The dimensions of [`Kernels::latent_kv`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatentKvShape {
    /// Tokens of all sequences.
    pub tokens: usize,
    /// Heads of queries.
    pub heads: usize,
    /// Elements of a row that are normed.
    pub rank: usize,
    /// Elements of a row that are turned.
    pub shared: usize,
    /// Elements from one head of `q` to the next, at least `shared`.
    pub q_row: usize,
    /// Rows of the cache.
    pub slot_count: usize,
}

impl LatentKvShape {
    /// Whether [`Kernels::latent_kv`] takes rows like these for a cache of this type: parts of whole fours, in q8_0 of whole blocks, and 1024 elements at most.
    #[must_use]
    pub const fn fits(&self, kv: KvType) -> bool {
        let part = Self::part(kv);
        self.rank.is_multiple_of(part)
            && self.shared.is_multiple_of(part)
            && self.rank.saturating_add(self.shared) <= MOST_OF_ROW
    }

    const fn part(kv: KvType) -> usize {
        if kv.block_len() > FOURS { kv.block_len() } else { FOURS }
    }
}

impl Kernels {
    /// The queries `y`, `[plain | turned part of q]` of each head, and rows of the cache, `[x / sqrt(mean(x^2) + eps) * norm | turned]` of a row of `kv`.
    /// Turned as by [`rope_at`](Self::rope_at), written as by [`set_rows`](Self::set_rows), bit for bit. The norm is near that of
    /// [`rms_norm`](Self::rms_norm), not bit for bit: the squares are summed in another order.
    ///
    /// A position out of range is a fault of `faults` and gives NaN where the part is turned; a slot out of range is one of `slot_tag` and writes nothing to the cache.
    ///
    /// # Errors
    ///
    /// Wrong lengths, an odd or too large `rotary_dim`, a `rank` or `shared` that is no multiple of 4, in q8_0 of 32, both together over 1024, a `q_row`
    /// below `shared`, overlap, a dimension of 0, an `eps` that is negative or not finite, a tag over 4095.
    pub fn latent_kv(
        &self,
        stream: &HipStream,
        kv: KvType,
        operands: LatentKvOperands<'_>,
        shape: LatentKvShape,
        eps: f32,
        faults: Faults<'_>,
        slot_tag: u32,
    ) -> KernelResult<()> {
        let op = self.op("latent_kv");
        let (s, o) = (shape, operands);
        let [heads, rank, shared, q_row] = op.dims([
            ("heads", s.heads),
            ("rank", s.rank),
            ("shared", s.shared),
            ("q_row", s.q_row),
        ])?;
        let slot_rows = op.dim("slot_count", s.slot_count)?;
        let rows = op.rows("tokens * (heads + 1)", &[s.tokens, s.heads.saturating_add(1)])?;
        let (kept, part) = (s.rank.saturating_add(s.shared), LatentKvShape::part(kv));
        op.dim_to("rank + shared", kept, MOST_OF_ROW)?;
        op.multiple(
            "rank must be whole fours and whole blocks of the cache's type",
            s.rank,
            part,
        )?;
        op.multiple(
            "shared must be whole fours and whole blocks of the cache's type",
            s.shared,
            part,
        )?;
        op.holds(s.q_row >= s.shared, "q_row must be at least shared", s.q_row, s.shared)?;
        op.dim_to("slot_tag + 1", slot_tag as usize + 1, 4096)?;
        op.value_of("eps", eps, eps >= 0.0 && eps.is_finite(), "finite and not negative")?;
        let turned = RopeShape {
            rotary_dim: o.turn.map_or(0, |turn| turn.rotary_dim),
            ..RopeShape::sequence(s.tokens, s.heads, s.shared)
        };
        let rotary = o.turn.map_or(Ok(0), |_| rotary_dim(op.check(), turned))?;
        let half = turned.rotary_dim / 2;
        let positions = o.turn.map_or(0, |turn| turn.tables[0].len() / half.max(1));
        let rows_in_table = o.turn.map_or(Ok(0), |_| op.dim("positions of the tables", positions))?;
        let interleaved = o.turn.is_some_and(|turn| turn.pairs == RopePairs::Interleaved);
        let cache = [s.slot_count, kept / kv.block_len(), kv.block_bytes()];
        let table = |which: usize| o.turn.map(|turn| turn.tables[which]);
        op.read("plain", o.plain, &[s.tokens, s.heads, s.rank])?
            .read("q", o.q, &[s.tokens, s.heads, s.q_row])?
            .read("kv", o.kv, &[s.tokens, kept])?
            .read_or_null("cos", table(0), &[positions, half])?
            .read_or_null("sin", table(1), &[positions, half])?
            .read_or_null("positions", o.turn.map(|turn| turn.positions), &[s.tokens])?
            .read("slots", o.slots, &[s.tokens])?
            .read("norm", o.norm, &[s.rank])?
            .write("y", o.y, &[s.tokens, s.heads, kept], &[])?
            .write_bytes("cache", o.cache, &cache, kv.alignment())?
            .value(eps)
            .values([heads, rank, shared, q_row])
            .values([rotary, u32::from(interleaved), rows_in_table])
            .values([slot_rows, slot_tag])
            .faults(faults)?
            .run(
                stream,
                "latent_kv",
                (by_kv!(kv, "latent_kv_"), geometry::config([rows, 1, 1], 256)),
            )
    }
}

/// In place of a `rotary_dim`, which is even: there is no rotary embedding.
const UNTURNED: usize = 1;

const LATENT_KV: Declared = Declared {
    name: "latent_kv",
    // Tokens, heads, rank, shared, q_row, rotary_dim or UNTURNED, slots.
    tested: &[
        &[1, 3, 32, 32, 64, 32, 5],
        &[3, 2, 512, 64, 256, 64, 7],
        &[2, 1, 64, 32, 32, 10, 3],
        &[5, 4, 96, 64, 67, 64, 9],
        &[2, 2, 960, 64, 65, 32, 4],
        &[2, 3, 128, 32, 40, UNTURNED, 6],
    ],
    counted: &[&[4, 8, 512, 64, 256, 64, 16]],
    moved: &[&[64, 9, 512, 64, 64, 64, 64]],
    again: Again::Pairs,
    ..Declared::NEW
};

/// Rows that are no whole blocks, which a cache of floats takes.
const OF_FLOATS: Declared = Declared {
    tested: &[
        &[3, 2, 36, 12, 25, 12, 5],
        &[1, 5, 4, 4, 4, 2, 2],
        &[2, 3, 1016, 8, 10, 6, 2],
    ],
    counted: &[],
    moved: &[],
    ..LATENT_KV
};

macro_rules! latent_kv {
    ($declared:ident, $kv:ident) => {
        [
            Declared {
                call: |c, dims| latent_kv(c, dims, RopePairs::Interleaved, KvType::$kv),
                ..$declared
            },
            Declared {
                call: |c, dims| latent_kv(c, dims, RopePairs::Half, KvType::$kv),
                counted: &[],
                moved: &[],
                ..$declared
            },
        ]
    };
}

pub(super) const DECLARED: &[Declared] = [
    latent_kv!(LATENT_KV, F32),
    latent_kv!(LATENT_KV, F16),
    latent_kv!(LATENT_KV, Bf16),
    latent_kv!(LATENT_KV, Q8_0),
    latent_kv!(OF_FLOATS, F32),
    latent_kv!(OF_FLOATS, F16),
    latent_kv!(OF_FLOATS, Bf16),
]
.as_flattened();

fn latent_kv(c: &mut Call<'_>, dims: &[usize], pairs: RopePairs, kv: KvType) -> KernelResult<()> {
    let &[tokens, heads, rank, shared, q_row, rotary_dim, slot_count] = dims else {
        return Ok(());
    };
    const EPS: f32 = 1e-5;
    let (kept, table) = (rank + shared, tokens * rotary_dim / 2);
    let plain = c.input("plain", tokens * heads * rank, -2.0..2.0)?;
    let q = c.input("q", tokens * heads * q_row, -2.0..2.0)?;
    let all = c.input("kv", tokens * kept, -2.0..2.0)?;
    let norm = c.input("norm", rank, 0.5..1.5)?;
    let turn = match rotary_dim {
        UNTURNED => None,
        _ => Some((
            c.input("cos", table, -1.0..1.0)?,
            c.input("sin", table, -1.0..1.0)?,
            c.words("positions", (0..tokens as u32).rev().collect())?,
        )),
    };
    let slots = c.indices("slots", tokens, slot_count)?;
    let y = c.output("y", tokens * heads * kept)?;
    let bytes = kv.byte_len(slot_count * kept).unwrap_or(0);
    let cache = c.output_bytes("cache", bytes)?;
    let word = c.fault_word()?;
    let operands = LatentKvOperands {
        plain: &plain,
        q: &q,
        kv: &all,
        norm: &norm,
        turn: turn.as_ref().map(|(cos, sin, positions)| LatentTurn {
            tables: [cos, sin],
            positions,
            pairs,
            rotary_dim,
        }),
        slots: &slots,
        y: &y,
        cache: &cache,
    };
    let shape = LatentKvShape {
        tokens,
        heads,
        rank,
        shared,
        q_row,
        slot_count,
    };
    let faults = Faults { word: &word, tag: 0 };
    c.kernels.latent_kv(c.stream, kv, operands, shape, EPS, faults, 1)?;
    // The last `shared` of rows, turned.
    let turned = |c: &Call<'_>, x: &[f32], row: usize, heads: usize| -> Vec<f64> {
        let last: Vec<f32> = x
            .chunks(row)
            .flat_map(|row| &row[row.len() - shared..])
            .copied()
            .collect();
        let shape = RopeShape {
            rotary_dim,
            ..RopeShape::sequence(tokens, heads, shared)
        };
        match rotary_dim {
            UNTURNED => last.into_iter().map(f64::from).collect(),
            _ => reference::rope_at(pairs, &last, c.f32("cos"), c.f32("sin"), c.u32("positions"), shape),
        }
    };
    c.expect("y", 1e-6, |c| {
        let turned = turned(c, c.f32("q"), q_row, heads);
        let rows = c.f32("plain").chunks(rank).zip(turned.chunks(shared));
        rows.flat_map(|(plain, turned)| plain.iter().copied().map(f64::from).chain(turned.iter().copied()))
            .collect()
    });
    // A number may be rounded to the neighbour of the one that is expected.
    let step = match kv {
        KvType::F32 => 4e-6,
        KvType::F16 => 2f64.powi(-9),
        KvType::Bf16 => 2f64.powi(-6),
        KvType::Q8_0 => 4.0 / 127.0,
    };
    // Slots without a token stay as they are.
    c.expect_typed("cache", kv, step, |c| {
        let mut cache = reference::kv_values(kv, &vec![0xA5; bytes]);
        let turned = turned(c, c.f32("kv"), kept, 1);
        let own: Vec<f32> = c.f32("kv").chunks(kept).flat_map(|row| &row[..rank]).copied().collect();
        let normed = reference::rms_norm(&own, c.f32("norm"), EPS);
        let rows = normed.chunks(rank).zip(turned.chunks(shared));
        for ((normed, turned), &slot) in rows.zip(c.u32("slots")) {
            let row: Vec<f32> = normed.iter().chain(turned).map(|&x| x as f32).collect();
            cache[slot as usize * kept..][..kept].copy_from_slice(&reference::kv_rounded(kv, &row));
        }
        cache
    });
    Ok(())
}
