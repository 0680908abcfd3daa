//! Matrix product of rows rounded to 8 bits with weights of a block format: products of integers, for CPUs with AVX-512 VNNI.
//!
//! Sixteen columns lie side by side: four numbers of each at consecutive depths are one vector, so that sums of products stay in their
//! columns' lanes. Each group of 16 or 32 depths is summed in i32, exactly, then scaled and added in f32.

use bytemuck::{Pod, Zeroable};
use rocmforge_gguf::blocks::{self, INT8_UNIT, Int8Unit, Int8Weights};
use rocmforge_gguf::{GgufError, TensorType};

use super::columns::ColumnsMut;
use super::path::Vnni;
use super::scratch::Scratch;
use super::threads::Threads;

/// Columns of a panel: the lanes of a vector.
const LANES: usize = 16;

/// Columns that a tile has: two panels.
const WIDTH: usize = 2 * LANES;

/// Rows of a tile: 6 times 2 sums of integers and as many of floats fill 24 of the 32 registers.
const HEIGHT: usize = 6;

/// Units of depth that are packed together: the panels of a tile take 48 KiB.
const DEEP: usize = 4;

/// Columns that are packed together, so that rows are read once for all of them.
const GROUP: usize = 128;

/// 256 weights of sixteen columns.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Panel {
    /// Four numbers of each column, for each four depths.
    n: [[u8; 4 * LANES]; INT8_UNIT / 4],
    /// Of each 16 depths.
    scales: [[f32; LANES]; 16],
    minimums: [[f32; LANES]; 16],
}

/// Rows of weights, without gaps.
#[derive(Clone, Copy)]
pub(super) struct Weights<'a> {
    pub(super) ty: TensorType,
    pub(super) bytes: &'a [u8],
    pub(super) row_bytes: usize,
}

impl Weights<'_> {
    /// Packs unit `unit` of sixteen rows from `first` on; rows beyond `end` are zeros.
    fn pack(&self, first: usize, end: usize, unit: usize, panel: &mut Panel) -> Result<(), GgufError> {
        let unit_bytes = INT8_UNIT / self.ty.block_len() * self.ty.block_bytes();
        let mut weights = Int8Weights::zeroed();
        for lane in 0..LANES {
            if first + lane < end {
                let row = &self.bytes[(first + lane) * self.row_bytes..][..self.row_bytes];
                let blocks = &row[unit * unit_bytes..((unit + 1) * unit_bytes).min(row.len())];
                blocks::unpack_int8(self.ty, blocks, &mut weights)?;
            } else {
                weights = Int8Weights::zeroed();
            }
            for (line, four) in panel.n.iter_mut().zip(weights.n.as_chunks::<4>().0) {
                line.as_chunks_mut::<4>().0[lane] = *four;
            }
            for group in 0..16 {
                panel.scales[group][lane] = weights.scales[group];
                panel.minimums[group][lane] = weights.minimums[group];
            }
        }
        Ok(())
    }
}

/// `out [m, n] = x [m, k] * weights [n, k]`, where a row of x is `units` units.
///
/// # Errors
/// The first one of [`blocks::unpack_int8`].
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
    let end = first + out.width();
    for start in (0..out.width()).step_by(GROUP) {
        let width = GROUP.min(out.width() - start);
        for unit in (0..units).step_by(DEEP) {
            let deep = DEEP.min(units - unit);
            // A tile's second panel is there in any case: zeros beyond the columns.
            let count = width.div_ceil(WIDTH) * 2;
            for (index, panels) in packed.chunks_mut(deep).take(count).enumerate() {
                for (depth, panel) in panels.iter_mut().enumerate() {
                    weights.pack(first + start + index * LANES, end, unit + depth, panel)?;
                }
            }
            for top in (0..out.height()).step_by(HEIGHT) {
                let height = HEIGHT.min(out.height() - top);
                let mut rows = [&[][..]; HEIGHT];
                for (i, row) in rows.iter_mut().enumerate() {
                    *row = &x[(top + i.min(height - 1)) * units + unit..][..deep];
                }
                for (index, panels) in packed[..count * deep].chunks(2 * deep).enumerate() {
                    let sums = x86::tile(cpu, &rows, panels.split_at(deep), halves);
                    let at = start + index * WIDTH..(start + (index + 1) * WIDTH).min(start + width);
                    for (i, sums) in sums.iter().enumerate().take(height) {
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

    use super::{HEIGHT, Int8Unit, LANES, Panel, WIDTH};
    use crate::cpu::path::Vnni;

    /// The products of rows with two panels of as many units.
    ///
    /// # Panics
    /// If there are fewer units in a row than in a panel.
    pub(super) fn tile(
        _: Vnni,
        rows: &[&[Int8Unit]; HEIGHT],
        panels: (&[Panel], &[Panel]),
        halves: bool,
    ) -> [[f32; WIDTH]; HEIGHT] {
        match halves {
            // SAFETY: the `Vnni` value exists only where the CPU has AVX-512 F and VNNI.
            true => unsafe { sums::<4>(rows, panels) },
            // SAFETY: as above.
            false => unsafe { sums::<8>(rows, panels) },
        }
    }

    /// `FOURS` times four depths have one scale.
    #[target_feature(enable = "avx512f,avx512vnni")]
    fn sums<const FOURS: usize>(
        rows: &[&[Int8Unit]; HEIGHT],
        (left, right): (&[Panel], &[Panel]),
    ) -> [[f32; WIDTH]; HEIGHT] {
        let mut sums = [[_mm512_setzero_ps(); 2]; HEIGHT];
        for (unit, panels) in left.iter().zip(right).enumerate() {
            let x = [
                &rows[0][unit],
                &rows[1][unit],
                &rows[2][unit],
                &rows[3][unit],
                &rows[4][unit],
                &rows[5][unit],
            ];
            for group in 0..64 / FOURS {
                let mut products = [[_mm512_setzero_si512(); 2]; HEIGHT];
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
        let mut out = [[0.0; WIDTH]; HEIGHT];
        for (out, sums) in out.iter_mut().zip(sums) {
            for (out, sums) in out.as_chunks_mut::<LANES>().0.iter_mut().zip(sums) {
                // SAFETY: writes the sixteen values of the array; no alignment is asked for.
                unsafe { _mm512_storeu_ps(out.as_mut_ptr(), sums) };
            }
        }
        out
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
