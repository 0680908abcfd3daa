//! Matrix product of rows rounded to 8 bits with weights of a block format: products of integers, for CPUs with AVX-512 VNNI.
//!
//! Sixteen columns lie side by side: four numbers of each at consecutive depths are one vector, so that sums of products stay in their
//! columns' lanes. Each group of 16 or 32 depths is summed in i32, exactly, then scaled and added in f32.

use rocmforge_gguf::blocks::{self, INT8_LANES as LANES, INT8_UNIT, Int8Panel as Panel, Int8Unit};
use rocmforge_gguf::{GgufError, TensorType};

use super::columns::ColumnsMut;
use super::path::Vnni;
use super::scratch::Scratch;
use super::threads::Threads;

/// Columns that a tile has: two panels.
const WIDTH: usize = 2 * LANES;

/// Rows of a tile: 6 times 2 sums of integers and as many of floats fill 24 of the 32 registers.
const HEIGHT: usize = 6;

/// Units of depth that are packed together: the panels of a tile take 48 KiB.
const DEEP: usize = 4;

/// Columns that are packed together, so that rows are read once for all of them.
const GROUP: usize = 128;

/// Rows of weights, without gaps.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    pub(super) ty: TensorType,
    pub(super) bytes: &'a [u8],
    pub(super) row_bytes: usize,
}

/// `out [m, n] = x [m, k] * weights [n, k]`, where a row of x is `units` units.
///
/// # Errors
/// The first one of [`blocks::pack_int8`].
pub(super) fn product(
    cpu: Vnni,
    x: &[Int8Unit],
    units: usize,
    weights: Weights<'_>,
    out: &mut [f32],
    n: usize,
    threads: &Threads,
    scratch: &Scratch,
) -> Result<(), GgufError> {
    let rows = x.len() / units.max(1);
    let worth = threads.worth(n, units.saturating_mul(INT8_UNIT * rows) / 8);
    // Four tasks for each thread, as in a product of floats.
    let each = n
        .div_ceil(if worth == 1 { 1 } else { 4 * worth })
        .next_multiple_of(WIDTH);
    let threads = if worth == 1 { &Threads::ONE } else { threads };
    let panels = GROUP / LANES * DEEP;
    let packed = scratch.take::<Panel>(threads.count() * panels);
    let (tasks, packed) = (ColumnsMut::split(out, n, each), packed.chunks_mut(panels));
    threads.try_each(tasks, n.div_ceil(each), packed, |packed, (first, mut out)| {
        columns(cpu, x, units, weights, first, packed, &mut out)
    })
}

/// The columns of one task, the first of which is the weight's row `first`.
fn columns(
    cpu: Vnni,
    x: &[Int8Unit],
    units: usize,
    weights: Weights<'_>,
    first: usize,
    packed: &mut [Panel],
    out: &mut ColumnsMut<'_>,
) -> Result<(), GgufError> {
    // Only q6_K has a scale for each 16 weights.
    let halves = weights.ty == TensorType::Q6K;
    let k = weights.row_bytes / weights.ty.block_bytes() * weights.ty.block_len();
    for start in (0..out.width()).step_by(GROUP) {
        let width = GROUP.min(out.width() - start);
        for unit in (0..units).step_by(DEEP) {
            let deep = DEEP.min(units - unit);
            // A tile's second panel is there in any case.
            let count = width.div_ceil(WIDTH) * 2;
            for (index, panels) in packed.chunks_mut(deep).take(count).enumerate() {
                for (depth, panel) in panels.iter_mut().enumerate() {
                    // The second panel of the last tile may have no columns: it is the last row's then.
                    let at = (start + index * LANES).min(out.width() - 1);
                    let rows = first + at..first + (at + LANES).min(out.width());
                    let bytes = &weights.bytes[rows.start * weights.row_bytes..rows.end * weights.row_bytes];
                    blocks::pack_int8(weights.ty, bytes, weights.row_bytes, unit + depth, panel)?;
                }
            }
            // Tiles of like heights: 8 rows are 4 and 4, and not 6 and 2.
            let tiles = out.height().div_ceil(HEIGHT);
            for tile in 0..tiles {
                let [top, bottom] = [tile, tile + 1].map(|tile| tile * out.height() / tiles);
                let mut rows = [&[][..]; HEIGHT];
                for (row, at) in rows.iter_mut().zip(top..bottom) {
                    *row = &x[at * units + unit..][..deep];
                }
                let (rows, depths) = (&rows[..bottom - top], (k - unit * INT8_UNIT).min(deep * INT8_UNIT));
                for (index, panels) in packed[..count * deep].chunks(2 * deep).enumerate() {
                    let sums = x86::tile(cpu, rows, panels.split_at(deep), depths, halves);
                    let at = start + index * WIDTH..(start + (index + 1) * WIDTH).min(start + width);
                    for (i, sums) in sums.iter().enumerate().take(rows.len()) {
                        let out = &mut out.row(top + i)[at.clone()];
                        if unit == 0 {
                            out.copy_from_slice(&sums[..out.len()]);
                        } else {
                            out.iter_mut().zip(sums).for_each(|(out, sum)| *out += sum);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

mod x86 {
    use std::arch::x86_64::*;

    use super::{HEIGHT, INT8_UNIT, Int8Unit, LANES, Panel, WIDTH};
    use crate::cpu::path::Vnni;

    /// The products of at most [`HEIGHT`] rows with `depths` depths of two panels of as many units. What belongs to no row is zeros.
    ///
    /// # Panics
    /// If there are fewer units in a row than in a panel.
    pub(super) fn tile(
        _: Vnni,
        rows: &[&[Int8Unit]],
        panels: (&[Panel], &[Panel]),
        depths: usize,
        halves: bool,
    ) -> [[f32; WIDTH]; HEIGHT] {
        let mut out = [[0.0; WIDTH]; HEIGHT];
        macro_rules! heights {
            ($($height:literal)*) => {
                match rows.len() {
                    $($height => if let (Ok(rows), Some(out)) = (rows.try_into(), out.first_chunk_mut::<$height>()) {
                        match halves {
                            // SAFETY: the `Vnni` value exists only where the CPU has AVX-512 F and VNNI.
                            true => unsafe { sums::<4, $height>(rows, panels, depths, out) },
                            // SAFETY: as above.
                            false => unsafe { sums::<8, $height>(rows, panels, depths, out) },
                        }
                    },)*
                    _ => {}
                }
            };
        }
        heights!(1 2 3 4 5 6);
        out
    }

    /// `FOURS` times four depths have one scale.
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn sums<const FOURS: usize, const ROWS: usize>(
        rows: &[&[Int8Unit]; ROWS],
        (left, right): (&[Panel], &[Panel]),
        depths: usize,
        out: &mut [[f32; WIDTH]; ROWS],
    ) {
        let mut sums = [[_mm512_setzero_ps(); 2]; ROWS];
        for (unit, panels) in left.iter().zip(right).enumerate() {
            let mut x = [&rows[0][unit]; ROWS];
            for (x, row) in x.iter_mut().zip(rows) {
                *x = &row[unit];
            }
            let groups = (depths - unit * INT8_UNIT).min(INT8_UNIT) / (4 * FOURS);
            for group in 0..groups {
                let mut products = [[_mm512_setzero_si512(); 2]; ROWS];
                for four in group * FOURS..(group + 1) * FOURS {
                    let n = [numbers(&panels.0.n[four]), numbers(&panels.1.n[four])];
                    for (products, x) in products.iter_mut().zip(x) {
                        let q = &x.q.as_chunks::<4>().0[four];
                        let q = _mm512_set1_epi32(i32::from_le_bytes(q.map(i8::cast_unsigned)));
                        for (products, n) in products.iter_mut().zip(n) {
                            *products = _mm512_dpbusd_epi32(*products, n, q);
                        }
                    }
                }
                // In sixteens: a group of 32 has the same scale twice.
                let at = group * FOURS / 4;
                let scales = [floats(&panels.0.scales[at]), floats(&panels.1.scales[at])];
                let minimums = [floats(&panels.0.minimums[at]), floats(&panels.1.minimums[at])];
                for ((sums, products), x) in sums.iter_mut().zip(products).zip(x) {
                    let scale = _mm512_set1_ps(x.scales[at]);
                    let sum = if FOURS == 8 {
                        x.sums[at] + x.sums[at + 1]
                    } else {
                        x.sums[at]
                    };
                    let sum = _mm512_set1_ps(sum);
                    for v in 0..2 {
                        let products = _mm512_cvtepi32_ps(products[v]);
                        sums[v] = _mm512_fmadd_ps(_mm512_mul_ps(scales[v], scale), products, sums[v]);
                        sums[v] = _mm512_fmadd_ps(minimums[v], sum, sums[v]);
                    }
                }
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            for (out, sums) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                // SAFETY: writes the sixteen values of the array; no alignment is asked for.
                unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sums) };
            }
        }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn numbers(line: &[u8; 64]) -> __m512i {
        // SAFETY: reads the 64 bytes of the array; no alignment is asked for.
        unsafe { _mm512_loadu_si512(line.as_ptr().cast()) }
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn floats(values: &[f32; LANES]) -> __m512 {
        // SAFETY: reads the sixteen values of the array; no alignment is asked for.
        unsafe { _mm512_loadu_ps(values.as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytemuck::Zeroable;
    use rocmforge_testkit::data::rng;

    /// In f64, from what the rounded activations stand for and the decoded weights.
    #[test]
    fn products_of_odd_shapes_are_near_the_exact_ones() {
        // Without AVX-512 VNNI there is nothing to test: these products are f32 there.
        let Some(cpu) = Vnni::detect() else { return };
        let types = [
            TensorType::Q4_0,
            TensorType::Q4_1,
            TensorType::Q8_0,
            TensorType::Q4K,
            TensorType::Q6K,
        ];
        for ty in types {
            for (m, blocks, n) in [
                (1, 1, 1),
                (5, 3, 31),
                (6, 8, 32),
                (7, 9, 33),
                (13, 41, 129),
                (70, 4, 300),
            ] {
                let k = blocks * ty.block_len();
                let (x, w) = (rng(m as u64).vec(m * k), rng(n as u64).vec(n * k));
                let bytes = blocks::quantize(ty, &w).expect("whole blocks");
                let mut decoded = vec![0.0; n * k];
                blocks::dequantize(ty, &bytes, &mut decoded).expect("whole blocks");
                let units = k.div_ceil(INT8_UNIT);
                let mut rounded = vec![Int8Unit::zeroed(); m * units];
                for (x, rounded) in x.chunks(k).zip(rounded.chunks_mut(units)) {
                    blocks::round_to_int8(x, rounded);
                }
                let weights = Weights {
                    ty,
                    bytes: &bytes,
                    row_bytes: bytes.len() / n,
                };
                let results = [1, 3].map(|threads| {
                    let mut out = vec![f32::NAN; m * n];
                    let (threads, scratch) = (Threads::new(threads), Scratch::new());
                    product(cpu, &rounded, units, weights, &mut out, n, &threads, &scratch).expect("a known type");
                    out
                });
                assert!(results[0] == results[1], "{ty:?} {m} {k} {n}: one thread and three");
                for (at, found) in results[0].iter().enumerate() {
                    let (row, column) = (&rounded[at / n * units..][..units], &decoded[at % n * k..][..k]);
                    let value = |i: usize| {
                        let unit = &row[i / INT8_UNIT];
                        f64::from(unit.scales[i % INT8_UNIT / 16]) * f64::from(unit.q[i % INT8_UNIT])
                    };
                    let products = || column.iter().enumerate().map(|(i, &w)| f64::from(w) * value(i));
                    let (exact, size) = (products().sum::<f64>(), products().map(f64::abs).sum::<f64>());
                    // A minimum takes back up to 128 times the scale: cancellation beside the sum of magnitudes.
                    assert!(
                        (f64::from(*found) - exact).abs() <= 2e-5 * size,
                        "{ty:?} {m} {k} {n} at {at}: {found} for {exact}"
                    );
                }
            }
        }
    }
}
