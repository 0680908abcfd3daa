//! Products of packed weights with many rows of activations in f16, on the matrix unit.

use super::half_rows::HalfRows;
use super::matvec_q8::{BLOCK, PackedWeights, activations, packed};
use super::matvec_q8_joint::{JointProduct, MATRICES, OUTPUTS, are_alike};
use super::sum_parts::sum_parts;
use crate::declared::{Again, Call, Declared, by_weight_type};
use crate::launch::Launch;
use crate::weight_type::Packed;
use crate::{KernelResult, Kernels, Parameter, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchConfig};

pub(super) const DECLARED: &[Declared] = by_weight_type!(product, product_of, packable);
pub(super) const FORMS: &[Declared] = by_weight_type!(form, form_of, packable);
pub(super) const JOINT: &[Declared] = by_weight_type!(joint, joint_of, packable);
pub(super) const JOINT_FORMS: &[Declared] = by_weight_type!(joint_form, joint_form_of, packable);

/// Rows of weights that a wave takes.
const WAVE_ROWS: usize = 32;
/// Threads of a block, or more: on NVIDIA's cards twice as many.
const THREADS: u32 = 256;

/// Neighbouring blocks of 32 of a row of weights that share what a part of k begins with.
const SHARED_BLOCKS: usize = 8;
/// From this many columns on each of several matrices is a launch of its own, which may divide k.
const LONG: usize = 8192;
/// Bytes of activations, for each multiprocessor, that the blocks of a product in one part of k may copy to LDS together: each block copies its rows. The sum of the parts is
/// a launch, of 4 us on an H200, with 132 multiprocessors. Without that launch q4_0 with 4096 rows of weights takes there, in one part and in eight: of 4096 columns with 16
/// rows of activations (127 KiB each) 12.0 and 8.5 us, with 32 (254 KiB) 17.5 and 9.8; of 14,336 columns with 16 (445 KiB) 28 and 16. Other cards were not timed.
const COPIED: usize = 192 << 10;
/// Steps and blocks of a step that LDS holds: of code for compute capability 9.0, and of code for earlier ones, which later ones run, too.
const HELD: [[u32; 2]; 2] = [[3, 512], [4, 256]];
/// The fewest blocks of 32 of a part.
const PART_BLOCKS: usize = 16;
/// The most parts of k.
const MAX_PARTS: usize = 8;

const TILES_RULE: &str = "tiles must be some of Packed16Tiles::ALL that the device has";

/// Absent operands.
pub(super) fn none<'k, 'a>(op: Launch<'k, 'a>, count: usize) -> Launch<'k, 'a> {
    (0..count).fold(op, |op, _| op.null())
}

/// Checks activations for weights of `k` columns, and gives their rows.
pub(super) fn rows_of(op: &Launch<'_, '_>, x: &HalfRows, k: usize) -> KernelResult<u32> {
    let rule = "weights and activations must have as many columns";
    op.holds(x.k() == k, rule, k, x.k())?;
    op.dim("pieces of x", x.halves.len() / 8)?;
    op.dim("m", x.rows())
}

/// The numbers that the kernels take, in their order.
pub(super) struct Numbers {
    /// Rows of the first matrix with all of its experts, and of the activations.
    pub(super) rows: [usize; 2],
    /// Rows of each of up to three matrices.
    pub(super) n: [usize; 3],
    /// Tiles of n with which the second and the third begin.
    pub(super) begin: [usize; 2],
    /// Blocks of 32 of a row, of a part of k, and waves that have rows of weights of their own.
    pub(super) shared: [usize; 3],
    /// Tiles of experts, experts, and pairs that share a row of activations; zeros without experts.
    pub(super) experts: [usize; 3],
}

impl Numbers {
    /// Of one matrix, of which no tile is another's.
    pub(super) const fn one(rows: [usize; 2], n: usize, shared: [usize; 3]) -> Self {
        Self {
            rows,
            n: [n, 0, 0],
            begin: [u32::MAX as usize; 2],
            shared,
            experts: [0; 3],
        }
    }

    pub(super) fn pass<'k, 'a>(&self, op: Launch<'k, 'a>) -> Launch<'k, 'a> {
        let op = op.values(self.rows.map(|value| value as u32));
        let op = op.values(self.n.map(|value| value as u32));
        let op = op.values(self.begin.map(|value| value as u32));
        let op = op.values(self.shared.map(|value| value as u32));
        op.values(self.experts.map(|value| value as u32))
    }
}

/// How [`Kernels::packed16_in`] shares a product out: it changes the time, and the order of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packed16Tiles {
    /// Rows of activations of a block: 16 or 32.
    pub rows: usize,
    /// Waves of a block that have rows of weights of their own, 32 each: 1, 2, 4 or, with waves of 32 lanes, 8. Other waves take other columns.
    pub waves: usize,
    /// Parts of k, whose sums another launch adds: 1 to 8.
    pub parts: usize,
}

impl Packed16Tiles {
    /// Every one with one part of k, the smallest first.
    pub const ALL: [Self; 8] = {
        const fn of(rows: usize, waves: usize) -> Packed16Tiles {
            Packed16Tiles { rows, waves, parts: 1 }
        }
        [
            of(16, 1),
            of(32, 1),
            of(16, 2),
            of(32, 2),
            of(16, 4),
            of(32, 4),
            of(16, 8),
            of(32, 8),
        ]
    };

    /// Bytes of LDS where the launch gives it, `Packed16Held` in kernels/include/packed16.h: so many steps of so many blocks of 80 bytes, and 64 for each row of a step, and
    /// two words for each row.
    const fn lds(self, [steps, held]: [u32; 2]) -> u32 {
        let rows = self.rows as u32;
        steps * rows * (held / rows * 80 + 64) + 8 * rows
    }

    /// Blocks of the grid for a product `[m, n]`, of each part of k.
    fn blocks(self, [m, n]: [usize; 2]) -> usize {
        m.div_ceil(self.rows) * self.columns(n)
    }

    /// Blocks for `n` rows of weights, of each tile of activations.
    pub(super) const fn columns(self, n: usize) -> usize {
        n.div_ceil(self.waves * WAVE_ROWS)
    }

    /// Floats of the sums of all parts of a product `[m, n]`; 0 of one part.
    fn sums(self, [m, n]: [usize; 2]) -> usize {
        match self.parts {
            ..=1 => 0,
            parts => parts.saturating_mul(m).saturating_mul(n),
        }
    }
}

/// What the choice of tiles depends on.
#[derive(Debug, Clone, Copy)]
struct Card {
    /// Multiprocessors.
    units: usize,
    /// The fewest blocks, in tenths of one for each multiprocessor.
    tenths: usize,
    /// Waves of a block.
    waves: usize,
}

impl Card {
    fn tiles(self, rows: &[usize], [m, n, k]: [usize; 3], most: usize) -> Packed16Tiles {
        let enough = |tiles: &Packed16Tiles| {
            let blocks = tiles.blocks([m, n]).saturating_mul(tiles.parts);
            blocks.saturating_mul(10) >= self.tenths * self.units
        };
        let largest_first = || {
            let all = Packed16Tiles::ALL.into_iter().rev();
            all.filter(|tiles| rows.contains(&tiles.rows) && tiles.waves <= self.waves)
        };
        // Parts are never more blocks than there are multiprocessors.
        let divided = |tiles: Packed16Tiles| {
            let room = self.units / tiles.blocks([m, n]).max(1);
            let parts = room.min(k / BLOCK / PART_BLOCKS).min(most).max(1);
            Packed16Tiles { parts, ..tiles }
        };
        let copies_little = |tiles: &Packed16Tiles| {
            let rows = tiles.blocks([m, n]).saturating_mul(tiles.rows);
            rows.saturating_mul(k).saturating_mul(size_of::<u16>()) <= COPIED * self.units
        };
        let one_part = largest_first().find(enough);
        let in_parts = || largest_first().map(divided).find(enough);
        let smallest = || largest_first().next_back().map(divided);
        let tiles = one_part.filter(copies_little).or_else(in_parts).or_else(smallest);
        tiles.unwrap_or(Packed16Tiles::ALL[0])
    }
}

impl Kernels {
    /// Whether [`packed16`](Self::packed16) runs here, with weights of every type that can be packed: the device has a matrix unit (AMD's but gfx1030, NVIDIA's from
    /// compute capability 8.0 on). Nothing is loaded.
    pub fn multiplies_packed16(&self) -> bool {
        let mut packed = WeightType::ALL.iter().filter_map(|ty| ty.packed());
        packed.all(|kernels| self.has_family(kernels.tiles))
    }

    /// How [`packed16`](Self::packed16) shares out a product `[m, n]` over `k` with room for the sums of parts: in the largest tiles of which there are enough for the
    /// multiprocessors ([`Parameter::TileBlocks`]), and in parts of k where those are too few or would copy more than 192 KiB of activations for each. On an H200 more blocks took longer, because each copies its activations, and so did fewer.
    pub fn packed16_tiles(&self, dims: [usize; 3]) -> Packed16Tiles {
        self.tiles(dims, MAX_PARTS)
    }

    /// The same with so many parts of k at most.
    fn tiles(&self, dims: [usize; 3], most: usize) -> Packed16Tiles {
        let rows: &[usize] = if dims[0] <= 16 { &[16] } else { &[16, 32] };
        self.tiles_of(rows, dims, most)
    }

    /// The same with tiles of some numbers of rows.
    pub(super) fn tiles_of(&self, rows: &[usize], dims: [usize; 3], most: usize) -> Packed16Tiles {
        let card = Card {
            units: self.backend().device().multiprocessors.max(1) as usize,
            tenths: self.tuning().value(Parameter::TileBlocks) as usize,
            waves: self.waves(),
        };
        card.tiles(rows, dims, most)
    }

    fn has_tiles(&self, tiles: Packed16Tiles) -> bool {
        Packed16Tiles::ALL.contains(&tiles) && tiles.waves <= self.waves()
    }

    /// Waves of a block.
    fn waves(&self) -> usize {
        (THREADS / self.backend().device().wave_size) as usize
    }

    /// Floats of room with which [`packed16`](Self::packed16) of these dimensions is fastest; 0 where it needs none.
    pub fn packed16_sums(&self, dims: [usize; 3]) -> usize {
        self.packed16_tiles(dims).sums([dims[0], dims[1]])
    }

    /// `y = x w^T (+ bias)` for any number of rows of activations: `x` `[m, k]`, weights `[n, k]`, `bias` `[n]`, `y` `[m, n]`. Weights become f16 on their way to the matrix
    /// unit, as do their scales, and those of `mxfp4` relative to the largest scale of four neighbouring blocks; sums are f32. Of the other types a weight beyond f16, 65504, is infinite, on gfx90a one beyond 255. The weights are read once for 16 or 32 rows.
    /// `sums` are [`packed16_sums`](Self::packed16_sums) floats; without them k is not divided.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, activations and weights that differ in `k`, 2^32 pieces of eight activations; a device without such a matrix unit
    /// ([`multiplies_packed16`](Self::multiplies_packed16)).
    pub fn packed16(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: &HalfRows,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        sums: Option<&HipBuffer<f32>>,
    ) -> KernelResult<()> {
        let most = if sums.is_some() { MAX_PARTS } else { 1 };
        let tiles = self.tiles([x.rows(), w.n(), w.k()], most);
        self.packed16_in(stream, w, x, bias, y, (tiles, sums))
    }

    /// The same in these tiles, with room for the sums of their parts.
    ///
    /// # Errors
    ///
    /// As [`packed16`](Self::packed16), or [`Packed16Tiles::ALL`] does not have these tiles, or a block has fewer waves, or there are more parts than 8 or without room.
    pub fn packed16_in(
        &self,
        stream: &HipStream,
        w: &PackedWeights,
        x: &HalfRows,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        (tiles, sums): (Packed16Tiles, Option<&HipBuffer<f32>>),
    ) -> KernelResult<()> {
        let op = self.op("packed16");
        let (m, n) = (x.rows(), w.n());
        let rows = rows_of(&op, x, w.k())?;
        let of_one = Packed16Tiles { parts: 1, ..tiles };
        op.holds(self.has_tiles(of_one), TILES_RULE, tiles.rows, tiles.waves)?;
        op.dim_to("parts", tiles.parts, MAX_PARTS)?;
        let row_blocks = w.k() / BLOCK;
        let part_blocks = row_blocks.div_ceil(tiles.parts).next_multiple_of(SHARED_BLOCKS);
        // Rounding may leave none for the last ones.
        let parts = row_blocks.div_ceil(part_blocks) as u32;
        if parts == 1 {
            return self.launch_tiles(op, stream, x, &[JointProduct { w, bias, y }], of_one);
        }
        let kernels = w.kernels(op.check())?;
        let blocks = op.dim("tiles", tiles.blocks([m, n]))?;
        let launch = self.tile_launch(kernels, tiles, [blocks, parts])?;
        let rule = "parts of k must have room for their sums";
        op.holds(sums.is_some(), rule, tiles.parts, 1)?;
        let sums = sums.unwrap_or(y); // there, as checked
        let op = (op.reads("w", w.bytes()).reads("x", &x.halves)).reads("x", &x.exponents);
        let op = match bias {
            Some(bias) => op.read_later("bias", bias, &[n])?,
            None => op,
        };
        let op = (op.null().write_later("y", y, &[m, n])?).write("sums", sums, &[tiles.parts, m, n], &[])?;
        // Two more matrices with bias and result, and the experts' table and order.
        let op = none(op, 2 * 3 + 2);
        let numbers = Numbers::one([n, m], n, [row_blocks, part_blocks, tiles.waves]);
        numbers.pass(op).run(stream, kernels.tiles, launch)?;
        let op = self.op("packed16").reads("sums", sums).null().null();
        sum_parts(op, stream, bias, (y, n), [parts, rows, n as u32])
    }

    /// Whether [`packed16_joint`](Self::packed16_joint) takes these matrices together: two or three of one type and width, below 8192 columns, from which each is a launch that may divide k.
    pub fn are_joint16(matrices: &[&PackedWeights]) -> bool {
        are_alike(matrices, LONG - 1)
    }

    /// `y = x w^T (+ bias)` for two or three matrices of one type: what [`packed16`](Self::packed16) gives of each, in one launch, with sums in another order.
    ///
    /// # Errors
    ///
    /// Matrices that are not [joint](Self::are_joint16), and those of [`packed16`](Self::packed16).
    pub fn packed16_joint(&self, stream: &HipStream, x: &HalfRows, products: &[JointProduct<'_>]) -> KernelResult<()> {
        let n = (products.iter()).fold(0, |sum: usize, product| sum.saturating_add(product.w.n()));
        let tiles = self.tiles([x.rows(), n, x.k()], 1);
        self.packed16_joint_in(stream, x, products, tiles)
    }

    /// The same in these tiles, of one part.
    ///
    /// # Errors
    ///
    /// As [`packed16_joint`](Self::packed16_joint), or [`Packed16Tiles::ALL`] does not have these tiles, or a block has fewer waves.
    pub fn packed16_joint_in(
        &self,
        stream: &HipStream,
        x: &HalfRows,
        products: &[JointProduct<'_>],
        tiles: Packed16Tiles,
    ) -> KernelResult<()> {
        let op = self.op("packed16_joint");
        op.dim_to("matrices", products.len(), 3)?;
        let matrices: Vec<&PackedWeights> = products.iter().map(|product| product.w).collect();
        let (first, last) = (matrices[0], matrices[products.len() - 1]);
        let rule = "two or three matrices must have one type and as many columns, below 8192";
        op.holds(Self::are_joint16(&matrices), rule, first.k(), last.k())?;
        rows_of(&op, x, first.k())?;
        op.holds(self.has_tiles(tiles), TILES_RULE, tiles.rows, tiles.waves)?;
        self.launch_tiles(op, stream, x, products, tiles)
    }

    /// The launch of up to three products in one part of k, whose columns, rows and tiles are checked.
    fn launch_tiles<'a>(
        &self,
        op: Launch<'_, 'a>,
        stream: &HipStream,
        x: &'a HalfRows,
        products: &[JointProduct<'a>],
        tiles: Packed16Tiles,
    ) -> KernelResult<()> {
        let first = products[0].w;
        let kernels = first.kernels(op.check())?;
        let at = |index: usize| products.get(index);
        let n = [0, 1, 2].map(|index| at(index).map_or(0, |product| product.w.n()));
        let (m, row_blocks) = (x.rows(), first.k() / BLOCK);
        let columns = n.map(|n| tiles.columns(n));
        let blocks = columns.iter().fold(0, |sum: usize, &n| sum.saturating_add(n));
        let blocks = op.dim("tiles", blocks.saturating_mul(m.div_ceil(tiles.rows)))?;
        let launch = self.tile_launch(kernels, tiles, [blocks, 1])?;
        let mut op = (op.reads("w", first.bytes()).reads("x", &x.halves)).reads("x", &x.exponents);
        for (index, &n) in n.iter().enumerate() {
            if index > 0 {
                op = match at(index) {
                    Some(product) => op.reads(MATRICES[index][1], product.w.bytes()),
                    None => op.null(),
                };
            }
            op = op.read_or_null("bias", at(index).and_then(|product| product.bias), &[n])?;
            op = op.write_or_null(OUTPUTS[index], at(index).map(|product| product.y), &[m, n], &[])?;
        }
        let numbers = Numbers {
            n,
            begin: [columns[0], columns[0] + columns[1]],
            ..Numbers::one([n[0], m], n[0], [row_blocks, row_blocks, tiles.waves])
        };
        // No table and order of experts.
        (numbers.pass(none(op, 2))).run(stream, kernels.tiles, launch)
    }

    /// LDS for any code that runs on a device which gives a block so much: more than it needs changes nothing.
    fn lds_of(tiles: Packed16Tiles, room: u32) -> u32 {
        let [larger, smaller] = HELD.map(|held| tiles.lds(held));
        if larger <= room { larger } else { smaller }
    }

    /// The kernel for these tiles and its launch of so many blocks, which have the threads that the device's code is made for.
    pub(super) fn tile_launch(
        &self,
        kernels: &Packed,
        tiles: Packed16Tiles,
        [blocks, parts]: [u32; 2],
    ) -> KernelResult<(&'static str, LaunchConfig)> {
        let name = kernels.tiles_of[usize::from(tiles.rows > 16)];
        let kernel = self.kernel(kernels.tiles, name)?;
        // A kernel without LDS of its own takes it from the launch: it has more than a kernel may have by itself.
        let room = self.backend().device().limits.lds_per_block;
        let lds = match kernel.meta().lds_size {
            0 => Self::lds_of(tiles, room),
            _ => 0,
        };
        let config = geometry::config([blocks, parts, 1], kernel.meta().max_workgroup_size);
        Ok((name, config.with_dynamic_lds(lds)))
    }
}

/// Rows of activations, rows and columns of weights. A bias is added where the rows of weights are odd.
fn product(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let floats = c.kernels.packed16_sums([m, n, k]);
    in_tiles(c, [m, n, k], ty, floats, &|c, w, x, bias, y, sums| {
        c.kernels.packed16(c.stream, w, x, bias, y, sums)
    })
}

/// The tiles of this number, from 1 on, with as many waves as the device has.
fn tiles_of_number(c: &Call<'_>, number: usize) -> Packed16Tiles {
    let none = Packed16Tiles {
        rows: 0,
        waves: 0,
        parts: 0,
    };
    let of_waves = |&tiles: &Packed16Tiles| {
        let waves = (0..4)
            .map(|power| tiles.waves >> power)
            .find(|&waves| waves <= c.kernels.waves());
        Packed16Tiles {
            waves: waves.unwrap_or(1),
            ..tiles
        }
    };
    let tiles = number.checked_sub(1).and_then(|index| Packed16Tiles::ALL.get(index));
    tiles.map_or(none, of_waves)
}

/// The same in the tiles of this number and so many parts of k.
fn form(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k, tiles, parts] = dims else { return Ok(()) };
    let tiles = Packed16Tiles {
        parts,
        ..tiles_of_number(c, tiles)
    };
    in_tiles(c, [m, n, k], ty, tiles.sums([m, n]), &|c, w, x, bias, y, sums| {
        c.kernels.packed16_in(c.stream, w, x, bias, y, (tiles, sums))
    })
}

/// Rows of f16 for a declaration, and the values that they are made of.
pub(super) fn declared_rows(c: &mut Call<'_>, dims: [usize; 2]) -> KernelResult<HalfRows> {
    let [m, k] = dims;
    let x = c.floats("values of x", activations(m * k))?;
    let to = c.output_bytes("x", HalfRows::byte_len(m, k).unwrap_or(0))?;
    c.preparing().half_rows(c.stream, &x, &to, dims)
}

/// What a declaration calls, with the operands of the product and room for the sums of its parts.
type Launches<'a> = dyn Fn(
        &Call<'_>,
        &PackedWeights,
        &HalfRows,
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
    let x = declared_rows(c, [m, k])?;
    let bias = c.input_bias(n % 2 == 1, n)?;
    let y = c.output("y", m * n)?;
    let sums = match floats {
        0 => None,
        floats => Some(c.output("sums", floats)?),
    };
    launches(c, &w, &x, bias.as_ref(), &y, sums.as_ref())?;
    c.expect_within("y", |c| {
        let (w, x) = (c.u8("blocks of w"), c.f32("values of x"));
        let values = reference::matmul_weight(ty, w, x, c.bias(), k);
        (rounding(ty, w, x, k), values)
    });
    Ok(())
}

/// Rows of activations, rows of two or three matrices, and their columns. A bias is added to the first where its rows are odd.
fn joint(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    joint_by(c, dims, ty, |c, x, products| {
        c.kernels.packed16_joint(c.stream, x, products)
    })
}

/// The same behind the number of tiles.
fn joint_form(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let Some((&number, dims)) = dims.split_first() else {
        return Ok(());
    };
    let tiles = tiles_of_number(c, number);
    joint_by(c, dims, ty, |c, x, products| {
        c.kernels.packed16_joint_in(c.stream, x, products, tiles)
    })
}

fn joint_by(
    c: &mut Call<'_>,
    dims: &[usize],
    ty: WeightType,
    launches: impl Fn(&Call<'_>, &HalfRows, &[JointProduct<'_>]) -> KernelResult<()>,
) -> KernelResult<()> {
    let (&[m, ref rows @ ..], &[.., k]) = (dims, dims) else {
        return Ok(());
    };
    let rows = &rows[..rows.len() - 1];
    // In the order of the kernels' arguments.
    let mut matrices = vec![packed(c, MATRICES[0], ty, [rows[0], k])?];
    let x = declared_rows(c, [m, k])?;
    let bias = c.input_bias(rows[0] % 2 == 1, rows[0])?;
    let mut outs = vec![c.output(OUTPUTS[0], m * rows[0])?];
    for (index, &n) in rows.iter().enumerate().skip(1) {
        matrices.push(packed(c, MATRICES[index], ty, [n, k])?);
        outs.push(c.output(OUTPUTS[index], m * n)?);
    }
    let of = |(index, (w, y))| JointProduct {
        w,
        bias: bias.as_ref().filter(|_| index == 0),
        y,
    };
    let products: Vec<JointProduct<'_>> = matrices.iter().zip(&outs).enumerate().map(of).collect();
    launches(c, &x, &products)?;
    for (index, [blocks, _]) in MATRICES.into_iter().enumerate().take(rows.len()) {
        c.expect_within(OUTPUTS[index], |c| {
            let (w, x) = (c.u8(blocks), c.f32("values of x"));
            let values = reference::matmul_weight(ty, w, x, c.bias().filter(|_| index == 0), k);
            (rounding(ty, w, x, k), values)
        });
    }
    Ok(())
}

/// What rounding to f16 changes in products of any of these rows: of each activation, of each weight, and of the scale and the minimum that it is made of, each by up to
/// 2^-11 of the largest weight of 32. The errors of different blocks have nothing in common, so their squares add up; twice that is allowed.
pub(super) fn rounding(ty: WeightType, w: &[u8], x: &[f32], k: usize) -> f64 {
    let weights = reference::dequantize(ty, w);
    let largest = |block: &[f64]| block.iter().fold(0f64, |most, w| most.max(w.abs()));
    let sum = |block: &[f32]| block.iter().map(|&x| f64::from(x).abs()).sum::<f64>();
    let of_weights: Vec<f64> = weights.chunks(BLOCK).map(largest).collect();
    let of_rows: Vec<f64> = x.chunks(BLOCK).map(sum).collect();
    let mut most = 0f64;
    for x in of_rows.chunks(k / BLOCK) {
        for w in of_weights.chunks(k / BLOCK) {
            most = most.max(x.iter().zip(w).map(|(x, w)| (x * w).powi(2)).sum());
        }
    }
    1e-6 + 8.0 * 2f64.powi(-11) * most.sqrt()
}

const fn product_of(ty: WeightType) -> Declared {
    Declared {
        name: "packed16",
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
        again: Again::Blocks,
        ..Declared::NEW
    }
}

const fn form_of(ty: WeightType) -> Declared {
    Declared {
        name: "packed16_in",
        tested: match ty {
            WeightType::Q4_0 => &[
                // More steps than LDS holds, on cards of every kind.
                &[17, 131, 4192, 1, 1],
                &[33, 131, 2144, 2, 1],
                &[17, 131, 1056, 3, 4],
                &[33, 131, 1056, 4, 1],
                &[17, 131, 1056, 5, 1],
                &[33, 131, 1056, 6, 2],
                &[17, 531, 1056, 7, 3],
                &[33, 531, 1056, 8, 1],
            ],
            _ => match ty.block_len() {
                32 => &[&[15, 33, 288, 3, 1], &[66, 33, 288, 6, 2]],
                _ => &[&[15, 33, 256, 3, 1], &[66, 33, 512, 6, 2]],
            },
        },
        counted: &[&[16, 64, 1024, 1, 1], &[32, 64, 1024, 2, 1]],
        ..product_of(ty)
    }
}

const fn joint_of(ty: WeightType) -> Declared {
    Declared {
        name: "packed16_joint",
        tested: match ty.block_len() {
            32 => &[&[9, 31, 40, 96], &[33, 64, 1, 33, 288]],
            _ => &[&[9, 31, 40, 256], &[33, 64, 1, 33, 512]],
        },
        counted: &[],
        ..product_of(ty)
    }
}

const fn joint_form_of(ty: WeightType) -> Declared {
    Declared {
        name: "packed16_joint_in",
        tested: match ty.block_len() {
            32 => &[&[5, 9, 131, 300, 7, 96], &[8, 40, 257, 31, 96]],
            _ => &[&[8, 40, 257, 31, 256]],
        },
        counted: &[],
        ..product_of(ty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn k_is_divided_where_blocks_are_few_or_copy_much() {
        let (h200, small) = (
            Card {
                units: 132,
                tenths: 7,
                waves: 8,
            },
            Card {
                units: 42,
                tenths: 7,
                waves: 8,
            },
        );
        for (card, dims, rows, waves, divided) in [
            (h200, [16, 28_672, 4096], 16, 8, false),
            (h200, [16, 4096, 4096], 16, 1, false),
            (h200, [32, 28_672, 4096], 32, 8, false),
            (h200, [16, 4096, 14_336], 16, 8, true),
            (h200, [32, 4096, 4096], 16, 2, false),
            (h200, [32, 5120, 7168], 32, 8, true),
            (small, [16, 4096, 4096], 16, 4, false),
            (small, [9, 4096, 8192], 16, 8, true),
            (small, [16, 28_672, 8192], 16, 8, false),
        ] {
            let tiles = card.tiles(&[16, 32][..if dims[0] <= 16 { 1 } else { 2 }], dims, MAX_PARTS);
            let found = (tiles.rows, tiles.waves, tiles.parts > 1);
            assert_eq!(found, (rows, waves, divided), "{card:?} {dims:?}: {tiles:?}");
        }
    }

    #[test]
    fn every_card_gives_a_block_its_lds() {
        for tiles in Packed16Tiles::ALL {
            // Compute capability 8.6, 8.9 and 12.0; 9.0.
            assert_eq!(Kernels::lds_of(tiles, 99 << 10), tiles.lds([4, 256]));
            assert!(tiles.lds([4, 256]) <= 99 << 10, "{tiles:?}");
            assert_eq!(Kernels::lds_of(tiles, 227 << 10), tiles.lds([3, 512]));
        }
    }
}
