//! Products of packed weights with many rows of activations of 8 bits, on the matrix unit.

use super::matvec_q8::{BLOCK, BLOCK_BYTES, PackedWeights, Q8Activations, activations, packed, rounding};
use crate::declared::{Again, Call, Declared, by_weight_type};
use crate::{KernelResult, Kernels, Parameter, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = by_weight_type!(product, product_of, packable);
pub(super) const FORMS: &[Declared] = by_weight_type!(form, form_of, packable);

/// Rows of weights that a wave takes.
const WAVE_ROWS: u32 = 32;
/// Threads of a block.
const THREADS: u32 = 256;

/// How [`Kernels::matmul_q8_in`] shares a product out: it changes the time, and the order of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Q8Tiles {
    /// Rows of activations of a block: 16 or 32.
    pub rows: usize,
    /// Waves of a block that have rows of weights of their own, 32 each: 1, 2 or 4. Other waves take other columns.
    pub waves: usize,
}

impl Q8Tiles {
    /// Every one.
    pub const ALL: [Self; 6] = [
        Self { rows: 16, waves: 1 },
        Self { rows: 16, waves: 2 },
        Self { rows: 16, waves: 4 },
        Self { rows: 32, waves: 1 },
        Self { rows: 32, waves: 2 },
        Self { rows: 32, waves: 4 },
    ];

    /// Bytes of two steps of activations in LDS where the launch gives it, as `HeldStep` in kernels/include/matmul_q8.h: of each block 32 bytes and 16 for all
    /// rows, the scales and the sums with two words more.
    const fn lds(self) -> u32 {
        const HELD: u32 = 1024;
        let rows = self.rows as u32;
        2 * (HELD / rows) * ((2 * rows + 1) * 16 + 2 * (rows + 2) * 4)
    }

    /// Blocks of the grid for a product `[m, n]`.
    fn blocks(self, [m, n]: [usize; 2]) -> usize {
        m.div_ceil(self.rows) * n.div_ceil(self.waves * WAVE_ROWS as usize)
    }
}

impl Kernels {
    /// Whether [`matmul_q8`](Self::matmul_q8) runs here, with weights of every type that can be packed: the device has a matrix unit for integers (AMD's but gfx1030,
    /// NVIDIA's from compute capability 8.0 on). Nothing is loaded.
    pub fn multiplies_q8(&self) -> bool {
        let mut packed = WeightType::ALL.iter().filter_map(|ty| ty.packed());
        packed.all(|kernels| self.has_family(kernels.tiles))
    }

    /// How [`matmul_q8`](Self::matmul_q8) shares out a product `[m, n]`: as many waves share the activations as leave enough blocks to the multiprocessors:
    /// [`Parameter::TileBlocks`]. On an H200 more blocks took longer, because each copies the activations, and so did fewer.
    pub fn q8_tiles(&self, [m, n]: [usize; 2]) -> Q8Tiles {
        let units = self.backend().device().multiprocessors.max(1) as usize;
        let rows = if m <= 16 { 16 } else { 32 };
        let tenths = self.tuning().value(Parameter::TileBlocks) as usize * units;
        let fits = |tiles: &&Q8Tiles| tiles.rows == rows && tiles.blocks([m, n]).saturating_mul(10) >= tenths;
        let tiles = Q8Tiles::ALL.iter().rev().find(fits);
        tiles.copied().unwrap_or(Q8Tiles { rows, waves: 1 })
    }

    /// `y = x w^T (+ bias)` for any number of rows of activations: `x` `[m, k]`, weights `[n, k]`, `bias` `[n]`, `y` `[m, n]`. Products of integers
    /// are exact; they are scaled and summed in f32. The weights are read once for 32 rows.
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
    ) -> KernelResult<()> {
        self.matmul_q8_in(stream, w, x, bias, y, self.q8_tiles([x.m(), w.n()]))
    }

    /// The same in these tiles.
    ///
    /// # Errors
    ///
    /// As [`matmul_q8`](Self::matmul_q8), or [`Q8Tiles::ALL`] does not have these tiles.
    pub fn matmul_q8_in(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: &Q8Activations,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        tiles: Q8Tiles,
    ) -> KernelResult<()> {
        let op = self.op("matmul_q8");
        let rows = op.dim("m", x.m())?;
        let rule = "weights and activations must have as many columns";
        op.holds(x.k() == w.k(), rule, w.k(), x.k())?;
        op.dim("blocks of x", x.bytes().len() / BLOCK_BYTES)?;
        let rule = "tiles must be some of Q8Tiles::ALL";
        op.holds(Q8Tiles::ALL.contains(&tiles), rule, tiles.rows, tiles.waves)?;
        let kernels = w.kernels(op.check())?;
        let name = kernels.tiles_of[usize::from(tiles.rows > 16)];
        let blocks = op.dim("tiles", tiles.blocks([x.m(), w.n()]))?;
        // A kernel without LDS of its own takes it from the launch: it has more than a kernel may have by itself.
        let own = self.kernel(kernels.tiles, name)?.meta().lds_size;
        let lds = if own == 0 { tiles.lds() } else { 0 };
        let config = geometry::config([blocks, 1, 1], THREADS).with_dynamic_lds(lds);
        (op.reads("w", w.bytes()).reads("x", x.bytes()))
            .read_or_null("bias", bias, &[w.n()])?
            .write("y", y, &[x.m(), w.n()], &[])?
            .values([rows, w.n() as u32, (w.k() / BLOCK) as u32, tiles.waves as u32])
            .run(stream, kernels.tiles, (name, config))
    }
}

/// Rows of activations, rows and columns of weights. A bias is added where the rows of weights are odd.
fn product(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let tiles = c.kernels.q8_tiles([m, n]);
    in_tiles(c, [m, n, k], ty, tiles)
}

/// The same in the tiles of this number, from 1 on.
fn form(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k, tiles] = dims else { return Ok(()) };
    let none = Q8Tiles { rows: 0, waves: 0 };
    let tiles = tiles.checked_sub(1).and_then(|index| Q8Tiles::ALL.get(index));
    in_tiles(c, [m, n, k], ty, *tiles.unwrap_or(&none))
}

fn in_tiles(c: &mut Call<'_>, [m, n, k]: [usize; 3], ty: WeightType, tiles: Q8Tiles) -> KernelResult<()> {
    let w = packed(c, ["blocks of w", "w"], ty, [n, k])?;
    let x = c.floats("values of x", activations(m * k))?;
    let to = c.output_bytes("x", m * (k / BLOCK) * BLOCK_BYTES)?;
    let x = c.preparing().quantize_q8(c.stream, &x, to, [m, k])?;
    let bias = if n % 2 == 1 {
        Some(c.input("bias", n, -1.0..1.0)?)
    } else {
        None
    };
    let y = c.output("y", m * n)?;
    c.kernels.matmul_q8_in(c.stream, &w, &x, bias.as_ref(), &y, tiles)?;
    c.expect_within("y", |c| {
        let (w, bias, x) = (
            c.u8("blocks of w"),
            c.f32("bias"),
            reference::wide(c.f32("values of x")),
        );
        let bias = (!bias.is_empty()).then_some(bias);
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
            ],
            _ => &[
                &[1, 1, 256],
                &[9, 31, 768],
                &[17, 33, 512],
                &[65, 40, 256],
                &[17, 33, 2304],
                &[5, 33, 2304],
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
                &[17, 131, 1056, 1],
                &[17, 131, 1056, 2],
                &[17, 131, 1056, 3],
                &[33, 131, 1056, 4],
                &[33, 131, 1056, 5],
                &[33, 131, 1056, 6],
            ],
            _ => match ty.block_len() {
                32 => &[&[15, 33, 288, 2], &[66, 33, 288, 6]],
                _ => &[&[15, 33, 256, 2], &[66, 33, 512, 6]],
            },
        },
        counted: &[],
        ..product_of(ty)
    }
}
