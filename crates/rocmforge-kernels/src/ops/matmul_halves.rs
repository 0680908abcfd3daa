//! Products of many rows of activations with weights of any type, both as f16, on the matrix unit.

use super::half_rows::{HalfExponents, HalfRows, WeightMatrix};
use super::matvec_q8::packed;
use super::sum_parts::sum_parts;
use crate::check::Check;
use crate::declared::{Call, Declared, by_weight_type};
use crate::layout::{Operand, Strides};
use crate::{
    Half, KernelError, KernelResult, Kernels, Matmul16Activation, Matmul16Operands, Matmul16Output, Matmul16Shape,
    WeightType, reference,
};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const PLAIN: &[Declared] = by_weight_type!(with_plain, product_of);
pub(super) const PACKED: &[Declared] = by_weight_type!(with_packed, product_of, packable);

/// The most bytes of weights that are f16 at a time. Enough rows of 14336 columns for a product with 2048 rows to fill an
/// H200; small beside the memory of any card.
const SLAB_BYTES: usize = 64 << 20;
/// And the fewest, unless the matrix has fewer: less stays in the cache as well, and has more launches.
const LEAST_SLAB: usize = 24 << 20;
/// The fewest columns of a part of k: a block's first and last steps are then a small share of it.
const LEAST_PART: usize = 512;
/// What parts of the scratch memory begin at multiples of.
const ALIGNMENT: usize = 256;

/// How a product is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Plan {
    /// Rows of weights that are f16 at a time.
    rows: usize,
    /// Parts of k that are summed apart.
    parts: usize,
    /// Scratch memory for rows of weights, and behind it for the sums of parts.
    bytes: [usize; 2],
}

impl Plan {
    /// For `m` rows of activations and up to `room` bytes of scratch memory; `in_place` says that the weights are f16 already. `None` if not even a
    /// row of weights has room.
    fn new(
        [m, n, k]: [usize; 3],
        in_place: bool,
        ([tile_m, tile_n], at_once): ([usize; 2], usize),
        room: usize,
    ) -> Option<Self> {
        let row = HalfRows::byte_len(1, k)?;
        let tiles = |rows: usize| m.div_ceil(tile_m) * rows.div_ceil(tile_n);
        let rows = if in_place {
            n
        } else {
            let most = (SLAB_BYTES.min(room) / row).min(n);
            if most == 0 {
                return None;
            }
            // The number of rows with the least rounds of blocks, of those the smallest, which a cache is likelier to keep: whole tiles, or all.
            let rounds = |rows: usize| n / rows * tiles(rows).div_ceil(at_once) + tiles(n % rows).div_ceil(at_once);
            let least = (LEAST_SLAB / row).div_ceil(tile_n).clamp(1, (most / tile_n).max(1));
            let whole = (least..=most / tile_n).map(|tiles| tiles * tile_n);
            let choices = whole.chain((most == n).then_some(n));
            choices.min_by_key(|&rows| rounds(rows)).unwrap_or(most)
        };
        let slab = if in_place { 0 } else { HalfRows::byte_len(rows, k)? };
        let begin = slab.checked_next_multiple_of(ALIGNMENT)?;
        let sums = |parts: usize| m.checked_mul(rows)?.checked_mul(parts * size_of::<f32>());
        let padded = k.next_multiple_of(8);
        let divides = |parts| padded.is_multiple_of(8 * parts) && padded / parts >= LEAST_PART;
        let fits = |parts| sums(parts).is_some_and(|sums| sums <= room.saturating_sub(begin));
        let mut parts = 1;
        while 2 * parts * tiles(rows) <= at_once && divides(2 * parts) && fits(2 * parts) {
            parts *= 2;
        }
        let bytes = if parts == 1 { [slab, 0] } else { [begin, sums(parts)?] };
        Some(Self { rows, parts, bytes })
    }
}

const CHECK: Check = Check("matmul_halves");

impl Kernels {
    /// Whether the device has the kernels of [`matmul_halves`](Self::matmul_halves): all but NVIDIA's cards before compute capability 8.0.
    ///
    /// # Errors
    ///
    /// The runtime's, if the device does not accept a module.
    pub fn multiplies_halves(&self) -> KernelResult<bool> {
        Ok(self.matmul16_tiles()?.is_some())
    }

    /// Bytes of scratch memory with which [`matmul_halves`](Self::matmul_halves) is fastest for `m` rows: up to 64 MiB for weights, and where `m` is
    /// small some more for sums. With less it takes fewer rows of weights at a time; it needs those of one, 2 k + 4 rounded up to 16.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn matmul_halves_scratch(&self, w: WeightMatrix<'_>, m: usize) -> KernelResult<usize> {
        let plan = self.plan(w, m, usize::MAX)?.ok_or_else(|| KernelError::TooLarge {
            op: CHECK.0,
            operand: "scratch",
            shape: vec![m, w.shape()[0], w.shape()[1]],
        })?;
        Ok(plan.bytes.iter().sum())
    }

    /// The most that [`matmul_halves_scratch`](Self::matmul_halves_scratch) says of any weights `[n, k]`; 0 where there is no kernel.
    ///
    /// # Errors
    ///
    /// The runtime's, if the device does not accept a module.
    pub fn matmul_halves_scratch_of(&self, [m, n, k]: [usize; 3]) -> KernelResult<usize> {
        let Some(tiles) = self.matmul16_tiles()? else {
            return Ok(0);
        };
        let plan = Plan::new([m, n, k], false, tiles, usize::MAX);
        Ok(plan.map_or(0, |plan| plan.bytes.iter().sum()))
    }

    fn plan(&self, w: WeightMatrix<'_>, m: usize, room: usize) -> KernelResult<Option<Plan>> {
        w.check(CHECK)?;
        let [n, k] = w.shape();
        let Some(tiles) = self.matmul16_tiles()? else {
            return Err(self.lacks("matmul16", "matmul16_f16_f32"));
        };
        Ok(Plan::new([m, n, k], w.as_halves()?.is_some(), tiles, room))
    }

    /// `y = x w^T (+ bias)` for rows of f16: `x` `[m, k]`, weights `[n, k]`, `bias` `[n]`, `y` `[m, n]`, all sums in f32. The weights become rows of
    /// f16 with a power of two each, some rows at a time in `scratch` at a multiple of 16, best of
    /// [`matmul_halves_scratch`](Self::matmul_halves_scratch) bytes; those of [`WeightType::F16`](crate::WeightType::F16) are read where they are if their rows begin at multiples of 16 bytes.
    ///
    /// Where there are fewer tiles than the card runs at once, k is split and the parts' sums are added in their order; how depends on
    /// the shape and the card alone. So a row of `y` may differ in its last digits with `m`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0 or over 2^24 - 1, activations and weights that differ in `k`, `k` that is no multiple of the type's
    /// block, addresses that are no multiples of 16 and of [`WeightType::alignment`](crate::WeightType::alignment);
    /// [`KernelError::NotForDevice`] on NVIDIA's cards before compute capability 8.0.
    pub fn matmul_halves(
        &self,
        stream: &HipStream,
        w: WeightMatrix<'_>,
        x: &HalfRows,
        bias: Option<&HipBuffer<f32>>,
        y: &HipBuffer<f32>,
        scratch: &HipBuffer<u8>,
    ) -> KernelResult<()> {
        let ([n, k], m) = (w.shape(), x.rows());
        let plan = self.plan(w, m, scratch.len())?.ok_or_else(|| KernelError::Length {
            op: CHECK.0,
            operand: "scratch",
            got: scratch.len(),
            expected: HalfRows::byte_len(1, k).unwrap_or(usize::MAX),
            shape: vec![1, k],
        })?;
        let rule = "weights and activations must have as many columns";
        CHECK.holds(x.k() == k, rule, k, x.k())?;
        // Of all launches together, before the first.
        (self.op(CHECK.0).reads("w", w.bytes()).reads("x", &x.halves))
            .reads("x", &x.exponents)
            .read_or_null("bias", bias, &[n])?
            .write("y", y, &[m, n], &[])?
            .write_bytes("scratch", scratch, &[scratch.len()], 16)?
            .apart()?;
        let [slab, sums] = plan.bytes;
        let sums = scratch.view(slab..slab + sums)?.cast()?;
        let in_place = w.as_halves()?;
        for first in (0..n).step_by(plan.rows) {
            let rows = first..n.min(first + plan.rows);
            let part = bias.map(|bias| bias.view(rows.clone())).transpose()?;
            let to = y.view(first..y.len())?;
            let (halves, exponents, stride) = match &in_place {
                Some(halves) => (halves.clone(), None, k),
                None => {
                    let bytes = HalfRows::byte_len(rows.len(), k).unwrap_or(0); // less than the plan's
                    let slab = self.half_rows_of(stream, w, rows.clone(), &scratch.view(0..bytes)?)?;
                    (slab.halves.clone(), Some(slab.exponents.clone()), slab.stride())
                }
            };
            let b = Slab {
                halves: &halves,
                exponents: exponents.as_ref(),
                stride,
                rows: rows.len(),
            };
            self.slab_product(stream, x, b, part.as_ref(), (&to, n), (plan.parts, &sums))?;
        }
        Ok(())
    }

    /// The columns of y that a slab of weights gives; `y` begins at the first and has rows of `y_row`.
    fn slab_product(
        &self,
        stream: &HipStream,
        x: &HalfRows,
        b: Slab<'_>,
        bias: Option<&HipBuffer<f32>>,
        (y, y_row): (&HipBuffer<f32>, usize),
        (parts, sums): (usize, &HipBuffer<f32>),
    ) -> KernelResult<()> {
        let (m, n, k) = (x.rows(), b.rows, x.stride() / parts);
        let strides = |row: usize, batch: usize| Strides {
            batch: batch as u64,
            head: 0,
            row: row as u64,
        };
        let exponents = HalfExponents {
            a: Some(&x.exponents),
            b: b.exponents,
        };
        let shape = Matmul16Shape { batch: parts, m, n, k };
        let operands = |bias, y| Matmul16Operands {
            ty: Half::F16,
            a: Operand::new(&x.halves, strides(x.stride(), k)),
            b: Operand::new(b.halves, strides(b.stride, k)),
            bias,
            y: Matmul16Output::F32(y),
        };
        let plain = Matmul16Activation::None;
        if parts == 1 {
            let operands = operands(bias, Operand::new(y, strides(y_row, 0)));
            return self.matmul16_scaled(stream, operands, exponents, shape, 1.0, plain);
        }
        // Each part is a matrix of a batch, whose columns of a and b begin where the last one's end.
        let sums = sums.view(0..parts * m * n)?;
        let all = operands(None, Operand::new(&sums, strides(n, m * n)));
        self.matmul16(stream, all, shape, 1.0, plain)?;
        let [parts, rows, columns] = [parts, m, n].map(|n| n as u32);
        // `matmul_halves` has checked the operands, and has cut them.
        let op = self.op(CHECK.0).reads("scratch", &sums).reads("x", &x.exponents);
        let op = match b.exponents {
            Some(exponents) => op.reads("scratch", exponents),
            None => op.null(),
        };
        sum_parts(op, stream, bias, (y, y_row), [parts, rows, columns])
    }
}

/// Rows of weights as f16.
#[derive(Clone, Copy)]
struct Slab<'a> {
    halves: &'a HipBuffer<u16>,
    exponents: Option<&'a HipBuffer<i32>>,
    /// From a row to the next, in elements.
    stride: usize,
    rows: usize,
}

/// Rows of activations, rows and columns of weights. A bias is added where the rows of weights are odd.
const fn product_of(ty: WeightType) -> Declared {
    Declared {
        name: "matmul_halves",
        tested: match ty.block_len() {
            1 => &[&[1, 3, 8], &[9, 33, 77], &[65, 6, 1024]],
            32 => &[&[1, 3, 32], &[9, 33, 96], &[65, 6, 1056]],
            _ => &[&[1, 3, 256], &[9, 33, 256], &[65, 6, 1280]],
        },
        // `counters` has its launches.
        ..Declared::NEW
    }
}

fn with_plain(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let w = c.weights("w", ty, n * k)?;
    product(c, (WeightMatrix::Plain(ty, &w, [n, k]), ty, "w"), m)
}

fn with_packed(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[m, n, k] = dims else { return Ok(()) };
    let w = packed(c, ["blocks of w", "w"], ty, [n, k])?;
    product(c, (WeightMatrix::Packed(&w), ty, "blocks of w"), m)
}

fn product(
    c: &mut Call<'_>,
    (w, ty, blocks): (WeightMatrix<'_>, WeightType, &'static str),
    m: usize,
) -> KernelResult<()> {
    let [n, k] = w.shape();
    let scratch = c.output_bytes("scratch", c.kernels.matmul_halves_scratch(w, m)?)?;
    let x = c.input("values of x", m * k, -1.0..1.0)?;
    let to = c.output_bytes("x", HalfRows::byte_len(m, k).unwrap_or(0))?;
    let rows = c.preparing().half_rows(c.stream, &x, &to, [m, k])?;
    let bias = c.input_bias(n % 2 == 1, n)?;
    let y = c.output("y", m * n)?;
    c.kernels
        .matmul_halves(c.stream, w, &rows, bias.as_ref(), &y, &scratch)?;
    c.expect_within("y", |c| {
        let (w, x, bias) = (c.u8(blocks), c.f32("values of x"), c.bias());
        // Each operand is rounded to 11 bits once. Scaling a row by a power of two keeps it in f16; what is below 2^-38 of the largest product is lost.
        let (mut largest, weights) = (0f64, reference::dequantize(ty, w));
        let top = weights.iter().fold(0f64, |top, w| top.max(w.abs()));
        for x in x.chunks(k) {
            for w in weights.chunks(k) {
                let size: f64 = x.iter().zip(w).map(|(&x, w)| (f64::from(x) * w).abs()).sum();
                largest = largest.max(size);
            }
        }
        let within = largest * 1.01 * 2f64.powi(-10) + k as f64 * top * 2f64.powi(-38) + 1e-7;
        (within, reference::matmul_weight(ty, w, x, bias, k))
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::Plan;

    const HOPPER: ([usize; 2], usize) = ([128, 256], 132);
    const RADEON: ([usize; 2], usize) = ([128, 64], 96);

    #[test]
    fn slabs_fill_the_card_and_stay_below_64_mib() {
        for (m, n, k) in [
            (2048, 14_336, 4096),
            (2048, 4096, 14_336),
            (512, 128_256, 4096),
            (9, 4096, 4096),
        ] {
            for card in [HOPPER, RADEON] {
                let plan = Plan::new([m, n, k], false, card, usize::MAX).unwrap();
                assert!(plan.rows <= n && plan.bytes[0] <= super::SLAB_BYTES, "{plan:?}");
                assert!(plan.bytes[1] <= super::SLAB_BYTES, "{plan:?}");
                assert!(plan.rows == n || plan.rows.is_multiple_of(card.0[1]), "{plan:?}");
            }
        }
        // Two rounds of 132 blocks three times and one, where two slabs of equal size would take four each.
        let rows = |m, n, k| Plan::new([m, n, k], false, HOPPER, usize::MAX).unwrap().rows;
        assert_eq!(rows(2048, 14_336, 4096), 4096);
        // One round each, and equal sizes.
        assert_eq!(rows(512, 14_336, 4096), 7168);
        assert_eq!(rows(2048, 4096, 14_336), 2048);
        assert_eq!(rows(2048, 1536, 576), 1536);
    }

    #[test]
    fn few_tiles_are_split_along_k() {
        let parts = |m, n, k| Plan::new([m, n, k], false, HOPPER, usize::MAX).unwrap().parts;
        assert_eq!(parts(2048, 1024, 4096), 2);
        assert_eq!(parts(9, 4096, 4096), 8);
        assert_eq!(parts(9, 4096, 520), 1);
        assert_eq!(parts(2048, 4096, 4096), 1);
    }

    #[test]
    fn less_room_takes_less_at_a_time() {
        let dims = [16, 4096, 4096];
        let plan = |room| Plan::new(dims, false, HOPPER, room);
        let wanted = plan(usize::MAX).unwrap();
        assert_eq!(plan(wanted.bytes.iter().sum()), Some(wanted));
        let row = 2 * 4096 + 4;
        for room in [row, 5 * row + 7, 700 * row, 4096 * row] {
            let plan = plan(room).unwrap();
            assert!(
                plan.rows >= 1 && plan.bytes.iter().sum::<usize>() <= room,
                "{room}: {plan:?}"
            );
        }
        assert_eq!(plan(row - 1), None);
    }

    #[test]
    fn rows_of_f16_need_no_slab() {
        let plan = Plan::new([2048, 128_256, 4096], true, HOPPER, usize::MAX).unwrap();
        assert_eq!((plan.rows, plan.parts, plan.bytes), (128_256, 1, [0, 0]));
    }
}
