//! Matrix product of f32 rows with panels: 48 columns side by side, their elements of one depth adjacent.
//!
//! Up to eight rows of the left matrix meet one panel in registers. The right matrix may be of any type and layout: whoever calls says how
//! a panel of it is written as f32 ([`Columns`]). A sum over the depth is taken in order, in pieces of [`depth_step`] elements.

use std::ops::Range;

use super::columns::ColumnsMut;
use super::path::Path;
use super::scratch::Scratch;
use super::threads::Threads;
use crate::GgmlResult;

/// Columns of a panel: three vectors of AVX-512, six of AVX2.
pub(super) const WIDTH: usize = 48;

/// Rows of the left matrix that are multiplied together: 8 times 3 sums fill 24 of the 32 registers of AVX-512.
pub(super) const HEIGHT: usize = 8;

/// Elements of one depth in a panel.
pub(super) type Line = [f32; WIDTH];

/// The sums of [`HEIGHT`] rows with a panel of `W` columns.
pub(super) type Tile<const W: usize> = [[f32; W]; HEIGHT];

/// Longest depth of a panel in general, so that a few panels lie in a core's L2 cache.
const DEPTH: usize = 512;

/// A depth that is not split: up to here one panel is quicker than two of half the depth.
const WHOLE: usize = 768;

/// Bytes of the panels that a thread fills before it multiplies: half of a small L2 cache.
const PANELS: usize = 512 * 1024;

/// The right matrix of a product.
pub(super) trait Columns: Sync {
    /// Elements that a depth must be a multiple of, except where it ends.
    fn block(&self) -> usize;

    /// Writes columns `columns` (at most [`WIDTH`], counted within the matrix) at depths `depth` to `panel`, a line for each depth.
    /// Places of a line beyond the columns may hold any number. `scratch` has as many places as [`Self::scratch`] says.
    fn pack(
        &self,
        columns: Range<usize>,
        depth: Range<usize>,
        panel: &mut [Line],
        scratch: &mut [f32],
    ) -> GgmlResult<()>;

    /// Places that [`Self::pack`] needs for panels of up to so much depth.
    fn scratch(&self, depth: usize) -> usize;
}

/// Rows of the left matrix: row `i` is `data[i * stride ..][.. depth]`.
#[derive(Clone, Copy)]
pub(super) struct Left<'a> {
    pub(super) data: &'a [f32],
    pub(super) stride: usize,
}

impl<'a> Left<'a> {
    fn row(&self, row: usize, depth: Range<usize>) -> &'a [f32] {
        &self.data[row * self.stride..][depth]
    }
}

/// `out [m, n] = left [m, k] * right [k, n]`; `out` has `n` columns.
///
/// # Errors
/// The first one of [`Columns::pack`].
pub(super) fn product(
    path: Path,
    left: Left<'_>,
    k: usize,
    right: &impl Columns,
    n: usize,
    out: &mut [f32],
    threads: &Threads,
    scratch: &Scratch,
) -> GgmlResult<()> {
    if n == 0 || out.is_empty() {
        return Ok(());
    }
    if k == 0 {
        out.fill(0.0);
        return Ok(());
    }
    let rows = out.len() / n;
    let panels = n.div_ceil(WIDTH);
    // Four tasks for each thread: one that starts late, or shares its core with another program, takes fewer.
    let worth = threads.worth(n, k.saturating_mul(rows) / 8);
    let each = if worth == 1 { panels } else { panels.div_ceil(4 * worth) };
    let tasks = ColumnsMut::split(out, n, each * WIDTH);
    let step = depth_step(k, right.block());
    let group = (PANELS / (step * size_of::<Line>())).max(1) * WIDTH;
    let lines = step * group.min((each * WIDTH).min(n).next_multiple_of(WIDTH)) / WIDTH;
    let workers = if worth == 1 { 1 } else { threads.count() };
    let (packed, unpacked) = (scratch.take::<Line>(workers * lines), right.scratch(step));
    let own = scratch.take::<f32>(workers * unpacked);
    let states = packed.chunks_mut(lines).zip(
        own.chunks_mut(unpacked.max(1))
            .chain(std::iter::repeat_with(Default::default)),
    );
    threads.try_each(
        tasks,
        panels.div_ceil(each),
        states,
        |(packed, own), (first, mut out)| {
            let work = Work {
                path,
                left,
                k,
                right,
                step,
                group,
            };
            work.columns(first, &mut out, packed, own)
        },
    )
}

/// Depth of the panels of a product over `k` elements whose blocks are `block` long.
fn depth_step(k: usize, block: usize) -> usize {
    if k <= WHOLE {
        return k;
    }
    k.div_ceil(k.div_ceil(DEPTH)).next_multiple_of(block.max(1))
}

/// What the tasks of a product have in common.
struct Work<'a, R> {
    path: Path,
    left: Left<'a>,
    k: usize,
    right: &'a R,
    /// Depth of a panel.
    step: usize,
    /// Columns whose panels are packed together.
    group: usize,
}

impl<R: Columns> Work<'_, R> {
    /// The columns from `first` on for all rows, into as many columns. `packed` has room for the panels of a group, `own` is
    /// [`Columns::pack`]'s.
    fn columns(&self, first: usize, out: &mut ColumnsMut<'_>, packed: &mut [Line], own: &mut [f32]) -> GgmlResult<()> {
        let (count, k, step) = (out.width(), self.k, self.step);
        let mut tile = [[0.0; WIDTH]; HEIGHT];
        for depth in (0..k).step_by(step).map(|start| start..(start + step).min(k)) {
            for start in (0..count).step_by(self.group) {
                let end = (start + self.group).min(count);
                let panels = || (start..end).step_by(WIDTH).map(|at| at..(at + WIDTH).min(end));
                for (panel, at) in packed.chunks_mut(depth.len()).zip(panels()) {
                    self.right
                        .pack(first + at.start..first + at.end, depth.clone(), panel, own)?;
                }
                for top in (0..out.height()).step_by(HEIGHT) {
                    let height = HEIGHT.min(out.height() - top);
                    let mut rows = [&[][..]; HEIGHT];
                    for (i, row) in rows.iter_mut().enumerate().take(height) {
                        *row = self.left.row(top + i, depth.clone());
                    }
                    for (panel, at) in packed.chunks(depth.len()).zip(panels()) {
                        multiply(self.path, &rows[..height], panel, &mut tile);
                        for (i, sums) in tile.iter().enumerate().take(height) {
                            let out = &mut out.row(top + i)[at.clone()];
                            if depth.start == 0 {
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
}

/// `tile[i] = sum over d of rows[i][d] * panel[d]` for at most [`HEIGHT`] rows; further lines of the tile stay as they are. Panels are
/// 32 or 48 columns wide: other widths have no kernel of their own.
///
/// # Panics
/// If a row is shorter than the panel.
pub(super) fn multiply<const W: usize>(path: Path, rows: &[&[f32]], panel: &[[f32; W]], tile: &mut Tile<W>) {
    match path {
        #[cfg(target_arch = "x86_64")]
        Path::Avx512(cpu) if W == 32 => x86::multiply_avx512::<2, W>(cpu, rows, panel, tile),
        #[cfg(target_arch = "x86_64")]
        Path::Avx512(cpu) if W == 48 => x86::multiply_avx512::<3, W>(cpu, rows, panel, tile),
        #[cfg(target_arch = "x86_64")]
        Path::Avx2(cpu) if W.is_multiple_of(16) => x86::multiply_avx2(cpu, rows, panel, tile),
        _ => {
            for (row, sums) in rows.iter().zip(tile) {
                *sums = [0.0; W];
                for (x, line) in row[..panel.len()].iter().zip(panel) {
                    sums.iter_mut().zip(line).for_each(|(sum, w)| *sum += x * w);
                }
            }
        }
    }
}

/// Writes rows of values as columns of a panel: `panel[d][first + r] = rows[r * stride + d]`.
///
/// # Panics
/// If a row lies outside the slice.
pub(super) fn transpose(path: Path, rows: &[f32], stride: usize, count: usize, panel: &mut [Line], first: usize) {
    #[allow(unused_mut)] // other targets have no kernel for sixteen rows
    let mut done = 0;
    #[cfg(target_arch = "x86_64")]
    if let Path::Avx512(cpu) = path {
        while count - done >= 16 {
            x86::transpose_16(cpu, &rows[done * stride..], stride, panel, first + done);
            done += 16;
        }
    }
    let _ = path;
    for row in done..count {
        for (line, value) in panel.iter_mut().zip(&rows[row * stride..]) {
            line[first + row] = *value;
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::{HEIGHT, Line, Tile};
    use crate::cpu::path::{Avx2, Avx512};

    /// Rows that the AVX2 kernel multiplies together: 6 times 2 sums of its 16 registers.
    const HEIGHT_AVX2: usize = 6;

    /// `V` vectors of 16 make `W` columns.
    pub(super) fn multiply_avx512<const V: usize, const W: usize>(
        _: Avx512,
        rows: &[&[f32]],
        panel: &[[f32; W]],
        tile: &mut Tile<W>,
    ) {
        let sums = match rows.len() {
            0 => return,
            1 => sums_512::<1, V, W>,
            2 => sums_512::<2, V, W>,
            3 => sums_512::<3, V, W>,
            4 => sums_512::<4, V, W>,
            5 => sums_512::<5, V, W>,
            6 => sums_512::<6, V, W>,
            7 => sums_512::<7, V, W>,
            _ => sums_512::<HEIGHT, V, W>,
        };
        // SAFETY: the `Avx512` value exists only where the CPU has AVX-512 F.
        unsafe { sums(rows, panel, tile) }
    }

    #[target_feature(enable = "avx512f")]
    fn sums_512<const N: usize, const V: usize, const W: usize>(
        rows: &[&[f32]],
        panel: &[[f32; W]],
        tile: &mut Tile<W>,
    ) {
        let rows = cut::<N>(rows, panel.len());
        let mut sums = [[_mm512_setzero_ps(); V]; N];
        for (d, line) in panel.iter().enumerate() {
            let mut w = [_mm512_setzero_ps(); V];
            for (w, values) in w.iter_mut().zip(line.as_chunks::<16>().0) {
                // SAFETY: reads the sixteen values of the array; no alignment is asked for.
                *w = unsafe { _mm512_loadu_ps(values.as_ptr()) };
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                // SAFETY: `d` is below the panel's length, to which `cut` has cut every row.
                let x = _mm512_set1_ps(unsafe { *row.get_unchecked(d) });
                for (sum, w) in sums.iter_mut().zip(w) {
                    *sum = _mm512_fmadd_ps(x, w, *sum);
                }
            }
        }
        for (sums, out) in sums.iter().zip(tile) {
            for (sum, out) in sums.iter().zip(out.as_chunks_mut::<16>().0) {
                // SAFETY: writes the sixteen values of the array; no alignment is asked for.
                unsafe { _mm512_storeu_ps(out.as_mut_ptr(), *sum) };
            }
        }
    }

    /// The first `N` rows up to `depth`.
    ///
    /// # Panics
    /// If there are fewer, or one is shorter.
    #[inline]
    fn cut<'a, const N: usize>(rows: &[&'a [f32]], depth: usize) -> [&'a [f32]; N] {
        std::array::from_fn(|i| &rows[i][..depth])
    }

    pub(super) fn multiply_avx2<const W: usize>(_: Avx2, rows: &[&[f32]], panel: &[[f32; W]], tile: &mut Tile<W>) {
        for (rows, tile) in rows.chunks(HEIGHT_AVX2).zip(tile.chunks_mut(HEIGHT_AVX2)) {
            let sums = match rows.len() {
                1 => sums_256::<1, W>,
                2 => sums_256::<2, W>,
                3 => sums_256::<3, W>,
                4 => sums_256::<4, W>,
                5 => sums_256::<5, W>,
                _ => sums_256::<HEIGHT_AVX2, W>,
            };
            for column in (0..W).step_by(16) {
                // SAFETY: the `Avx2` value exists only where the CPU has AVX2 and FMA.
                unsafe { sums(rows, panel, tile, column) };
            }
        }
    }

    #[target_feature(enable = "avx2,fma")]
    fn sums_256<const N: usize, const W: usize>(
        rows: &[&[f32]],
        panel: &[[f32; W]],
        tile: &mut [[f32; W]],
        column: usize,
    ) {
        let rows = cut::<N>(rows, panel.len());
        let mut sums = [[_mm256_setzero_ps(); 2]; N];
        for (d, line) in panel.iter().enumerate() {
            let mut w = [_mm256_setzero_ps(); 2];
            for (w, values) in w.iter_mut().zip(line[column..column + 16].as_chunks::<8>().0) {
                // SAFETY: reads the eight values of the array; no alignment is asked for.
                *w = unsafe { _mm256_loadu_ps(values.as_ptr()) };
            }
            for (sums, row) in sums.iter_mut().zip(rows) {
                // SAFETY: `d` is below the panel's length, to which `cut` has cut every row.
                let x = _mm256_set1_ps(unsafe { *row.get_unchecked(d) });
                for (sum, w) in sums.iter_mut().zip(w) {
                    *sum = _mm256_fmadd_ps(x, w, *sum);
                }
            }
        }
        for (sums, out) in sums.iter().zip(tile) {
            for (sum, out) in sums.iter().zip(out[column..].as_chunks_mut::<8>().0) {
                // SAFETY: writes the eight values of the array; no alignment is asked for.
                unsafe { _mm256_storeu_ps(out.as_mut_ptr(), *sum) };
            }
        }
    }

    /// Sixteen rows from `rows` on become columns `first ..` of the panel.
    pub(super) fn transpose_16(_: Avx512, rows: &[f32], stride: usize, panel: &mut [Line], first: usize) {
        // SAFETY: the `Avx512` value exists only where the CPU has AVX-512 F.
        unsafe { transpose_16_512(rows, stride, panel, first) }
    }

    #[target_feature(enable = "avx512f")]
    fn transpose_16_512(rows: &[f32], stride: usize, panel: &mut [Line], first: usize) {
        let depth = panel.len();
        let (blocks, rest) = panel.as_chunks_mut::<16>();
        for (index, lines) in blocks.iter_mut().enumerate() {
            let mut v = [_mm512_setzero_ps(); 16];
            for (i, v) in v.iter_mut().enumerate() {
                let values = &rows[i * stride + index * 16..][..16];
                // SAFETY: reads the sixteen values of the slice; no alignment is asked for.
                *v = unsafe { _mm512_loadu_ps(values.as_ptr()) };
            }
            for (line, v) in lines.iter_mut().zip(transposed(v)) {
                let values = &mut line[first..first + 16];
                // SAFETY: writes the sixteen values of the slice; no alignment is asked for.
                unsafe { _mm512_storeu_ps(values.as_mut_ptr(), v) };
            }
        }
        let done = depth - rest.len();
        for (d, line) in rest.iter_mut().enumerate() {
            for i in 0..16 {
                line[first + i] = rows[i * stride + done + d];
            }
        }
    }

    /// Columns of sixteen rows.
    #[target_feature(enable = "avx512f")]
    #[inline]
    fn transposed(r: [__m512; 16]) -> [__m512; 16] {
        let zero = _mm512_setzero_ps();
        // Within groups of four rows and 128 bits: pairs, then fours.
        let mut fours = [zero; 16];
        for i in 0..4 {
            let r = &r[4 * i..4 * i + 4];
            let (a, b) = (_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1]));
            let (c, d) = (_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3]));
            let pairs = [a, b, c, d].map(|pair| _mm512_castps_pd(pair));
            fours[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(pairs[0], pairs[2]));
            fours[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(pairs[0], pairs[2]));
            fours[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(pairs[1], pairs[3]));
            fours[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(pairs[1], pairs[3]));
        }
        // fours[4 * i + j]: element 4 * quarter + j of rows 4 * i .. 4 * i + 4, for each quarter.
        let mut columns = [zero; 16];
        for j in 0..4 {
            let (a, b, c, d) = (fours[j], fours[4 + j], fours[8 + j], fours[12 + j]);
            let (low_ab, high_ab) = (_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
            let (low_cd, high_cd) = (_mm512_shuffle_f32x4::<0x44>(c, d), _mm512_shuffle_f32x4::<0xee>(c, d));
            columns[j] = _mm512_shuffle_f32x4::<0x88>(low_ab, low_cd);
            columns[4 + j] = _mm512_shuffle_f32x4::<0xdd>(low_ab, low_cd);
            columns[8 + j] = _mm512_shuffle_f32x4::<0x88>(high_ab, high_cd);
            columns[12 + j] = _mm512_shuffle_f32x4::<0xdd>(high_ab, high_cd);
        }
        columns
    }
}

#[cfg(test)]
mod tests;
