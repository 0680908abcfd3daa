//! Products of packed weights with many rows of activations of 8 bits, on the matrix unit.

use super::matvec_q8::{BLOCK, BLOCK_BYTES, PackedWeights, Q8Activations, activations, packed, rounding};
use super::sum_parts::sum_parts;
use crate::declared::{Again, Call, Declared, by_weight_type};
use crate::{KernelResult, Kernels, Parameter, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchConfig};

pub(super) const DECLARED: &[Declared] = by_weight_type!(product, product_of, packable);
pub(super) const FORMS: &[Declared] = by_weight_type!(form, form_of, packable);

/// Rows of weights that a wave takes.
const WAVE_ROWS: u32 = 32;
/// Threads of a block.
pub(super) const THREADS: u32 = 256;

/// Neighbouring blocks of 32 of a row of weights that share what a part of k begins with.
const SHARED_BLOCKS: usize = 8;
/// The fewest blocks of a part of k: with less the sum of the parts takes longer than the copies of activations that it saves. On an H200, q4_0 with 32 rows and
/// 4096 rows of weights: 14336 columns take 62 us in one part and 35 in four, 4096 columns 18 and 15, and the sum some 4.
const PART_BLOCKS: usize = 96;
/// Tenths of a block for each multiprocessor that parts of k make up at least, if products in one part need more.
const PARTS_FILL: usize = 8;
/// The most parts of k.
const MAX_PARTS: usize = 8;

/// How [`Kernels::matmul_q8_in`] shares a product out: it changes the time, and the order of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Q8Tiles {
    /// Rows of activations of a block: 16 or 32.
    pub rows: usize,
    /// Waves of a block that have rows of weights of their own, 32 each: 1, 2 or 4. Other waves take other columns.
    pub waves: usize,
    /// Parts of k, whose sums another launch adds: 1 to 8.
    pub parts: usize,
}

impl Q8Tiles {
    /// Every one with one part of k.
    pub const ALL: [Self; 6] = {
        const fn of(rows: usize, waves: usize) -> Q8Tiles {
            Q8Tiles { rows, waves, parts: 1 }
        }
        [of(16, 1), of(16, 2), of(16, 4), of(32, 1), of(32, 2), of(32, 4)]
    };

    /// Bytes of two steps of activations in LDS where the launch gives it, as `HeldStep` in kernels/include/matmul_q8.h: of each block 32 bytes and 16 for all
    /// rows, the scales and the sums with two words more.
    const fn lds(self) -> u32 {
        const HELD: u32 = 1024;
        let rows = self.rows as u32;
        2 * (HELD / rows) * ((2 * rows + 1) * 16 + 2 * (rows + 2) * 4)
    }

    /// Blocks of the grid for a product `[m, n]`, of each part of k.
    fn blocks(self, [m, n]: [usize; 2]) -> usize {
        m.div_ceil(self.rows) * self.columns(n)
    }

    /// Blocks for `n` rows of weights, of each tile of activations.
    pub(super) const fn columns(self, n: usize) -> usize {
        n.div_ceil(self.waves * WAVE_ROWS as usize)
    }

    /// Floats of the sums of all parts of a product `[m, n]`; 0 of one part.
    fn sums(self, [m, n]: [usize; 2]) -> usize {
        match self.parts {
            ..=1 => 0,
            parts => parts.saturating_mul(m).saturating_mul(n),
        }
    }
}

impl Kernels {
    /// Whether [`matmul_q8`](Self::matmul_q8) runs here, with weights of every type that can be packed: the device has a matrix unit for integers (AMD's but gfx1030,
    /// NVIDIA's from compute capability 8.0 on). Nothing is loaded.
    pub fn multiplies_q8(&self) -> bool {
        let mut packed = WeightType::ALL.iter().filter_map(|ty| ty.packed());
        packed.all(|kernels| self.has_family(kernels.tiles))
    }

    /// How [`matmul_q8`](Self::matmul_q8) shares out a product `[m, n]` over `k` with room for the sums of parts: as many waves share the activations as leave
    /// enough blocks to the multiprocessors ([`Parameter::TileBlocks`]), with k in parts where it is long. On an H200 more blocks took longer, because each copies the activations, and
    /// so did fewer.
    pub fn q8_tiles(&self, dims: [usize; 3]) -> Q8Tiles {
        self.tiles(dims, MAX_PARTS)
    }

    /// The same with so many parts of k at most.
    fn tiles(&self, dims: [usize; 3], most: usize) -> Q8Tiles {
        self.tiles_of(if dims[0] <= 16 { 16 } else { 32 }, dims, most)
    }

    /// The same with tiles of so many rows.
    pub(super) fn tiles_of(&self, rows: usize, [m, n, k]: [usize; 3], most: usize) -> Q8Tiles {
        let units = self.backend().device().multiprocessors.max(1) as usize;
        // Tenths of a block for each multiprocessor. Parts are never more blocks than there are multiprocessors.
        let whole = self.tuning().value(Parameter::TileBlocks) as usize;
        let divided = whole.min(PARTS_FILL);
        let fits = |tiles: &Q8Tiles| {
            let blocks = tiles.blocks([m, n]).saturating_mul(tiles.parts);
            let tenths = if tiles.parts > 1 { divided } else { whole };
            blocks.saturating_mul(10) >= tenths * units
        };
        let of_rows = || Q8Tiles::ALL.iter().rev().filter(|tiles| tiles.rows == rows);
        let parts = |tiles: &Q8Tiles| {
            let room = units / tiles.blocks([m, n]).max(1);
            let parts = room.min(k / BLOCK / PART_BLOCKS).min(most).max(1);
            [1, parts].map(|parts| Q8Tiles { parts, ..*tiles })
        };
        let mut all = of_rows().flat_map(parts);
        // Where no grid is large enough, the largest.
        let tiles = all.find(fits).or_else(|| of_rows().flat_map(parts).last());
        tiles.unwrap_or(Q8Tiles {
            rows,
            waves: 1,
            parts: 1,
        })
    }

    /// Floats of room with which [`matmul_q8`](Self::matmul_q8) of these dimensions is fastest; 0 where it needs none.
    pub fn q8_sums(&self, dims: [usize; 3]) -> usize {
        self.q8_tiles(dims).sums([dims[0], dims[1]])
    }

    /// `y = x w^T (+ bias)` for any number of rows of activations: `x` `[m, k]`, weights `[n, k]`, `bias` `[n]`, `y` `[m, n]`. Products of integers
    /// are exact; they are scaled and summed in f32. The weights are read once for 32 rows. `sums` are [`q8_sums`](Self::q8_sums) floats; without them k is not divided.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, activations and weights that differ in `k`, 2^32 blocks of 32 activations; a device without such a matrix unit
    /// ([`multiplies_q8`](Self::multiplies_q8)).
    pub fn matmul_q8(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: &Q8Activations,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        sums: Option<&HipBuffer<f32>>,
    ) -> KernelResult<()> {
        let most = if sums.is_some() { MAX_PARTS } else { 1 };
        let tiles = self.tiles([x.m(), w.n(), w.k()], most);
        self.matmul_q8_in(stream, w, x, bias, y, (tiles, sums))
    }

    /// The same in these tiles, with room for the sums of their parts.
    ///
    /// # Errors
    ///
    /// As [`matmul_q8`](Self::matmul_q8), or [`Q8Tiles::ALL`] does not have these tiles, or there are more parts than 8 or without room.
    pub fn matmul_q8_in(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: &Q8Activations,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        (tiles, sums): (Q8Tiles, Option<&HipBuffer<f32>>),
    ) -> KernelResult<()> {
        let op = self.op("matmul_q8");
        let rows = op.dim("m", x.m())?;
        let rule = "weights and activations must have as many columns";
        op.holds(x.k() == w.k(), rule, w.k(), x.k())?;
        op.dim("blocks of x", x.bytes().len() / BLOCK_BYTES)?;
        let rule = "tiles must be some of Q8Tiles::ALL";
        let known = Q8Tiles::ALL.contains(&Q8Tiles { parts: 1, ..tiles });
        op.holds(known, rule, tiles.rows, tiles.waves)?;
        op.dim_to("parts", tiles.parts, MAX_PARTS)?;
        let kernels = w.kernels(op.check())?;
        let name = kernels.tiles_of[usize::from(tiles.rows > 16)];
        let blocks = op.dim("tiles", tiles.blocks([x.m(), w.n()]))?;
        let row_blocks = w.k() / BLOCK;
        let part_blocks = row_blocks.div_ceil(tiles.parts).next_multiple_of(SHARED_BLOCKS);
        // Rounding may leave none for the last ones.
        let parts = row_blocks.div_ceil(part_blocks) as u32;
        let config = self.tile_config([blocks, parts], (kernels.tiles, name), tiles)?;
        let numbers = [w.n(), x.m(), w.n(), row_blocks, part_blocks, tiles.waves].map(|value| value as u32);
        // There are no experts.
        let none = [0u32; 3];
        let shape = [x.m(), w.n()];
        let op = op.reads("w", w.bytes()).reads("x", x.bytes());
        if parts == 1 {
            let op = op.read_or_null("bias", bias, &[w.n()])?.write("y", y, &shape, &[])?;
            let op = op.null().null().values(numbers).values(none);
            return op.run(stream, kernels.tiles, (name, config));
        }
        let rule = "parts of k must have room for their sums";
        op.holds(sums.is_some(), rule, tiles.parts, 1)?;
        let sums = sums.unwrap_or(y); // there, as checked
        let op = match bias {
            Some(bias) => op.read_later("bias", bias, &[w.n()])?,
            None => op,
        };
        (op.null().write_later("y", y, &shape)?)
            .write("sums", sums, &[tiles.parts, x.m(), w.n()], &[])?
            .null()
            .null()
            .values(numbers)
            .values(none)
            .run(stream, kernels.tiles, (name, config))?;
        let op = self.op("matmul_q8").reads("sums", sums).null().null();
        sum_parts(op, stream, bias, (y, w.n()), [parts, rows, w.n() as u32])
    }
}

impl Kernels {
    /// The launch of so many blocks of a kernel of this family.
    pub(super) fn tile_config(
        &self,
        [blocks, parts]: [u32; 2],
        (family, name): (&'static str, &'static str),
        tiles: Q8Tiles,
    ) -> KernelResult<LaunchConfig> {
        // A kernel without LDS of its own takes it from the launch: it has more than a kernel may have by itself.
        let own = self.kernel(family, name)?.meta().lds_size;
        let lds = if own == 0 { tiles.lds() } else { 0 };
        Ok(geometry::config([blocks, parts, 1], THREADS).with_dynamic_lds(lds))
    }
}

/// Rows of activations, rows and columns of weights. A bias is added where the rows of weights are odd.
fn product(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let floats = c.kernels.q8_sums([m, n, k]);
    in_tiles(c, [m, n, k], ty, floats, &|c, w, x, bias, y, sums| {
        c.kernels.matmul_q8(c.stream, w, x, bias, y, sums)
    })
}

/// The same in the tiles of this number, from 1 on, and so many parts of k.
fn form(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k, tiles, parts] = dims else { return Ok(()) };
    let none = Q8Tiles {
        rows: 0,
        waves: 0,
        parts: 0,
    };
    let tiles = tiles.checked_sub(1).and_then(|index| Q8Tiles::ALL.get(index));
    let tiles = *tiles.unwrap_or(&none);
    let tiles = Q8Tiles { parts, ..tiles };
    in_tiles(c, [m, n, k], ty, tiles.sums([m, n]), &|c, w, x, bias, y, sums| {
        c.kernels.matmul_q8_in(c.stream, w, x, bias, y, (tiles, sums))
    })
}

/// What a declaration calls, with the operands of the product and room for the sums of its parts.
type Launches<'a> = dyn Fn(
        &Call<'_>,
        &PackedWeights,
        &Q8Activations,
        Option<&HipBuffer<f32>>,
        &HipBuffer<f32>,
        Option<&HipBuffer<f32>>,
    ) -> KernelResult<()>
    + 'a;

fn in_tiles(
    c: &mut Call<'_>,
    [m, n, k]: [usize; 3],
    ty: WeightType,
    floats: usize,
    launches: &Launches<'_>,
) -> KernelResult<()> {
    let w = packed(c, ["blocks of w", "w"], ty, [n, k])?;
    let x = c.floats("values of x", activations(m * k))?;
    let to = c.output_bytes("x", m * (k / BLOCK) * BLOCK_BYTES)?;
    let x = c.preparing().quantize_q8(c.stream, &x, to, [m, k])?;
    let bias = c.input_bias(n % 2 == 1, n)?;
    let y = c.output("y", m * n)?;
    let sums = match floats {
        0 => None,
        floats => Some(c.output("sums", floats)?),
    };
    launches(c, &w, &x, bias.as_ref(), &y, sums.as_ref())?;
    c.expect_within("y", |c| {
        let (w, bias, x) = (c.u8("blocks of w"), c.bias(), reference::wide(c.f32("values of x")));
        (rounding(ty, w, k), reference::matvec_q8(ty, w, &x, bias, None, k))
    });
    Ok(())
}

const fn product_of(ty: WeightType) -> Declared {
    Declared {
        name: "matmul_q8",
        tested: match ty.block_len() {
            32 => &[
                &[1, 1, 32],
                &[9, 31, 96],
                &[16, 64, 288],
                &[17, 33, 544],
                &[33, 65, 64],
                &[65, 40, 1056],
                &[5, 33, 2304],
                &[9, 33, 6176],
            ],
            _ => &[
                &[1, 1, 256],
                &[9, 31, 768],
                &[17, 33, 512],
                &[65, 40, 256],
                &[17, 33, 2304],
                &[5, 33, 2304],
                &[9, 33, 6400],
            ],
        },
        counted: &[&[16, 64, 1024], &[32, 64, 1024]],
        again: Again::Blocks,
        ..Declared::NEW
    }
}

const fn form_of(ty: WeightType) -> Declared {
    Declared {
        name: "matmul_q8_in",
        tested: match ty {
            WeightType::Q4_0 => &[
                &[17, 131, 1056, 1, 1],
                &[17, 131, 1056, 2, 1],
                &[17, 131, 1056, 3, 4],
                &[33, 131, 1056, 4, 1],
                &[33, 131, 1056, 5, 2],
                &[33, 131, 1056, 6, 3],
            ],
            _ => match ty.block_len() {
                32 => &[&[15, 33, 288, 2, 1], &[66, 33, 288, 6, 2]],
                _ => &[&[15, 33, 256, 2, 1], &[66, 33, 512, 6, 2]],
            },
        },
        counted: &[],
        ..product_of(ty)
    }
}
