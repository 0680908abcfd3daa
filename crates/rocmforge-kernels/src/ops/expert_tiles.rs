//! Products of packed experts with many rows of activations in f16, on the matrix unit: pairs of token and expert in tiles of one expert each; and the sums of
//! their results.

use super::experts::{ExpertStack, stack};
use super::half_rows::HalfRows;
use super::matvec_q8::BLOCK;
use super::packed16::{Numbers, declared_rows, none, rounding, rows_of};
use crate::declared::{Again, Call, Declared, by_weight_type};
use crate::{Faults, KernelResult, Kernels, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[TABLE, SUM];
pub(super) const PRODUCTS: &[Declared] = by_weight_type!(product, product_of, packable);

/// Words of an entry of the table.
const ENTRY: usize = 3;

/// The pairs of token and expert in tiles of at most 16 or 32 pairs of one expert: what [`Kernels::expert_tiles`] makes.
#[derive(Debug, Clone)]
pub struct ExpertTiles {
    room: HipBuffer<u32>,
    table: HipBuffer<u32>,
    order: HipBuffer<u32>,
    experts: usize,
    rows: usize,
}

impl ExpertTiles {
    /// The most pairs of a tile that [`Kernels::expert_tiles`] makes.
    pub const ROWS: [usize; 2] = [16, 32];

    /// Entries of the table, some of which have no pair.
    fn entries([pairs, experts, rows]: [usize; 3]) -> usize {
        pairs.checked_div(rows).unwrap_or(0) + experts + 1
    }

    /// Words of room for so many pairs of so many experts in tiles of `rows`.
    pub fn words(pairs: usize, experts: usize, rows: usize) -> usize {
        ENTRY * Self::entries([pairs, experts, rows]) + pairs
    }
}

impl Kernels {
    /// Rows of the tiles with which [`experts_in_tiles`](Self::experts_in_tiles) is faster than [`experts_pairs`](Self::experts_pairs); `None`: with none, or the device
    /// has no matrix unit.
    pub fn expert_tile_rows(&self, pairs: usize, experts: usize) -> Option<usize> {
        let each = pairs / experts.max(1);
        match each {
            _ if !self.multiplies_packed16() => None,
            ..8 => None,
            8..24 => Some(16),
            _ => Some(32),
        }
    }

    /// Sorts pairs by their experts into tiles of at most `rows` pairs of one expert: `ids` has the expert of each pair. `room` are [`ExpertTiles::words`] words, in which
    /// nothing else may write while the tiles are in use. Each id that is not below the experts is a fault at its pair, and its row in the products is NaN.
    ///
    /// # Errors
    ///
    /// `rows` that are not in [`ExpertTiles::ROWS`], wrong lengths, overlap, over 65,535 experts, a tag over 4095.
    pub fn expert_tiles(
        &self,
        stream: &HipStream,
        ids: &HipBuffer<u32>,
        [experts, rows]: [usize; 2],
        room: &HipBuffer<u32>,
        faults: Faults<'_>,
    ) -> KernelResult<ExpertTiles> {
        const MAX_EXPERTS: usize = 65_535;
        let op = self.op("expert_tiles");
        let count = op.dim("pairs", ids.len())?;
        let stack = op.dim_to("experts", experts, MAX_EXPERTS)?;
        let rule = "tiles must have some of ExpertTiles::ROWS";
        op.holds(ExpertTiles::ROWS.contains(&rows), rule, rows, ExpertTiles::ROWS[0])?;
        let words = ENTRY * ExpertTiles::entries([ids.len(), experts, rows]);
        let tiles = ExpertTiles {
            room: room.clone(),
            table: room.view(0..words)?,
            order: room.view(words..room.len())?,
            experts,
            rows,
        };
        (op.read("ids", ids, &[ids.len()])?)
            .write_later("room", room, &[words + ids.len()])?
            .part(&tiles.table)
            .part(&tiles.order)
            .values([count, stack, rows as u32])
            .faults(faults)?
            .run(
                stream,
                "expert_tiles",
                ("expert_tiles", geometry::config([stack + 1, 1, 1], 256)),
            )?;
        Ok(tiles)
    }

    /// `y[p, :] = w[ids[p]] x[p / share, :]` for the pairs of `tiles`: `x` has `pairs / share` rows of `k`, `y` `[pairs, n]`. An expert's weights are read once for each
    /// of its tiles, and rounded as [`packed16`](Self::packed16) says.
    ///
    /// # Errors
    ///
    /// Activations and weights that differ in `k`, tiles of another number of experts, wrong lengths, overlap, `share` that does not divide the pairs, 2^32 pieces of eight
    /// activations; a device without such a matrix unit ([`multiplies_packed16`](Self::multiplies_packed16)).
    pub fn experts_in_tiles(
        &self,
        stream: &HipStream,
        x: &HalfRows,
        tiles: &ExpertTiles,
        w: ExpertStack<'_>,
        y: &HipBuffer<f32>,
        share: usize,
    ) -> KernelResult<()> {
        let op = self.op("experts_in_tiles");
        let [experts, n, k] = w.dims(op.check())?;
        let pairs = tiles.order.len();
        op.dim("share", share)?;
        op.multiple("as many pairs must share each row of x", pairs, share)?;
        let rows = pairs / share;
        rows_of(&op, x, k)?;
        op.holds(x.rows() == rows, "each row of x must belong to a pair", rows, x.rows())?;
        op.holds(
            tiles.experts == experts,
            "tiles must be of as many experts",
            experts,
            tiles.experts,
        )?;
        let kernels = w.w.kernels(op.check())?;
        let entries = tiles.table.len() / ENTRY;
        let form = self.tiles_of(&[tiles.rows], [pairs, n, k], 1);
        let blocks = op.dim("tiles", entries.saturating_mul(form.columns(n)))?;
        let launch = self.tile_launch(kernels, form, [blocks, 1])?;
        let row_blocks = k / BLOCK;
        let op = (op.reads("w", w.w.bytes()).reads("x", &x.halves)).reads("x", &x.exponents);
        let op = none(op.null().write("y", y, &[pairs, n], &[])?, 2 * 3);
        let op = (op.reads_later("tiles", &tiles.room).part_read(&tiles.table)).part_read(&tiles.order);
        let numbers = Numbers {
            experts: [entries, experts, share],
            ..Numbers::one([w.w.n(), rows], n, [row_blocks, row_blocks, form.waves])
        };
        numbers.pass(op).run(stream, kernels.tiles, launch)
    }

    /// `y[t, :]` = the sum over u of `factors[t, u] * (x[t, u, :] (+ bias[ids[t, u], :]))`: `x` `[tokens, used, n]`, `ids` and `factors` `[tokens, used]`, `bias`
    /// `[experts, n]`, `y` `[tokens, n]`. Of an id that is no expert another's bias is added: its row of `x` is NaN.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0.
    #[allow(clippy::too_many_arguments)] // operands of a sum
    pub fn expert_rows_sum(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        factors: &HipBuffer<f32>,
        bias: Option<(&HipBuffer<f32>, usize)>,
        y: &HipBuffer<f32>,
        [tokens, used, n]: [usize; 3],
    ) -> KernelResult<()> {
        let op = self.op("expert_rows_sum");
        let [t, u, columns] = op.dims([("tokens", tokens), ("used", used), ("n", n)])?;
        let (bias, experts) = bias.map_or((None, 1), |(bias, experts)| (Some(bias), experts));
        let e = op.dim("experts", experts)?;
        (op.read("x", x, &[tokens, used, n])?)
            .read("ids", ids, &[tokens, used])?
            .read("factors", factors, &[tokens, used])?
            .read_or_null("bias", bias, &[experts, n])?
            .write("y", y, &[tokens, n], &[])?
            .values([t, columns, e, u])
            .run(
                stream,
                "expert_tiles",
                ("expert_rows_sum", geometry::row_tile(t, columns)),
            )
    }
}

/// Pairs, experts, and the most pairs of a tile.
const TABLE: Declared = Declared {
    name: "expert_tiles",
    call: |c, dims| {
        let &[pairs, experts, rows] = dims else { return Ok(()) };
        let ids = c.indices("ids", pairs, experts)?;
        let room = c.output_words("room", ExpertTiles::words(pairs, experts, rows))?;
        let word = c.fault_word()?;
        let faults = Faults { word: &word, tag: 1 };
        c.kernels.expert_tiles(c.stream, &ids, [experts, rows], &room, faults)?;
        c.expect("room", 0.0, |c| tiles_of(c.u32("ids"), experts, rows));
        Ok(())
    },
    tested: &[
        &[1, 1, 16],
        &[64, 7, 16],
        &[600, 3, 32],
        &[257, 300, 32],
        &[4096, 128, 16],
    ],
    counted: &[&[512, 128, 32]],
    ..Declared::NEW
};

/// Tokens, experts of each, columns, experts; with biases where the columns are odd.
const SUM: Declared = Declared {
    name: "expert_rows_sum",
    call: |c, dims| {
        let &[tokens, used, n, experts] = dims else {
            return Ok(());
        };
        let x = c.input("x", tokens * used * n, -1.0..1.0)?;
        let ids = c.indices("ids", tokens * used, experts)?;
        let factors = c.input("factors", tokens * used, -1.0..1.0)?;
        let bias = c.input_bias(n % 2 == 1, experts * n)?;
        let y = c.output("y", tokens * n)?;
        let bias = bias.as_ref().map(|bias| (bias, experts));
        c.kernels
            .expert_rows_sum(c.stream, &x, &ids, &factors, bias, &y, [tokens, used, n])?;
        c.expect("y", 1e-5, |c| {
            let (x, factors, ids) = (c.f32("x"), c.f32("factors"), c.u32("ids"));
            let value = |pair: usize, column| {
                let bias = c.bias().map_or(0.0, |bias| bias[ids[pair] as usize * n + column]);
                f64::from(factors[pair]) * (f64::from(x[pair * n + column]) + f64::from(bias))
            };
            let sum = |at: usize| (0..used).map(|u| value(at / n * used + u, at % n)).sum();
            (0..tokens * n).map(sum).collect()
        });
        Ok(())
    },
    tested: &[&[1, 1, 1, 1], &[9, 3, 67, 5], &[3, 8, 1100, 2], &[5, 6, 1027, 4]],
    counted: &[&[16, 4, 512, 4]],
    moved: &[&[16, 4, 512, 4]],
    again: Again::Vector,
    ..Declared::NEW
};

/// What the room must hold: the table, then the order.
fn tiles_of(ids: &[u32], experts: usize, rows: usize) -> Vec<f64> {
    let mut table = vec![[0; ENTRY]; ExpertTiles::entries([ids.len(), experts, rows])];
    let mut order = Vec::new();
    for expert in 0..=experts {
        let (first, mut entry) = (order.len(), order.len() / rows + expert);
        let is_own = |&pair: &usize| (ids[pair] as usize).min(experts) == expert;
        order.extend((0..ids.len()).filter(is_own));
        let end = order.len() / rows + expert + 1;
        for begin in (first..).step_by(rows) {
            if entry == end {
                break;
            }
            table[entry] = [expert, begin, order.len().saturating_sub(begin).min(rows)];
            entry += 1;
        }
    }
    let words = table.as_flattened().iter().chain(&order);
    words.map(|&word| word as f64).collect()
}

/// Experts, rows and columns of their weights, pairs, pairs that share a row of activations, and the most pairs of a tile.
fn product(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[experts, n, k, pairs, share, rows] = dims else {
        return Ok(());
    };
    let m = pairs / share.max(1);
    let x = declared_rows(c, [m, k])?;
    let ids = c.indices("ids", pairs, experts)?;
    let w = stack(c, ["blocks of w", "w"], ty, [experts, n, k])?;
    let (y, word) = (c.output("y", pairs * n)?, c.fault_word()?);
    let room = c.output_words("tiles", ExpertTiles::words(pairs, experts, rows))?;
    let faults = Faults { word: &word, tag: 1 };
    let tiles = (c.preparing()).expert_tiles(c.stream, &ids, [experts, rows], &room, faults)?;
    let stack = ExpertStack { w: &w, experts };
    c.kernels.experts_in_tiles(c.stream, &x, &tiles, stack, &y, share)?;
    c.expect_within("y", |c| {
        let (w, x, ids) = (c.u8("blocks of w"), c.f32("values of x"), c.u32("ids"));
        let values = reference::matmul_id(ty, w, x, ids, [experts, n, k], share);
        (rounding(ty, w, x, k), values)
    });
    Ok(())
}

/// Odd rows, experts without pairs and with several tiles, and rows of activations that are shared.
const fn product_of(ty: WeightType) -> Declared {
    Declared {
        name: "experts_in_tiles",
        tested: match ty.block_len() {
            32 => &[
                &[1, 1, 32, 1, 1, 16],
                &[5, 67, 64, 6, 3, 16],
                &[3, 33, 2144, 80, 2, 16],
                &[3, 131, 96, 150, 2, 32],
                &[37, 40, 288, 74, 2, 32],
                // Enough tiles for blocks of several rows of waves.
                &[2, 300, 32, 600, 2, 16],
                &[2, 300, 32, 600, 2, 32],
            ],
            _ => &[
                &[1, 1, 256, 1, 1, 16],
                &[3, 33, 512, 80, 2, 16],
                &[3, 131, 256, 150, 2, 32],
                &[37, 40, 768, 74, 2, 32],
            ],
        },
        counted: &[],
        again: Again::Blocks,
        ..Declared::NEW
    }
}
