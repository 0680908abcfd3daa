//! Dot products and weighted sums of f32 rows.

use super::path::Path;

/// Sums that run side by side, so that the additions of one do not wait for those of another.
const LANES: usize = 64;

/// `sum of a[i] * b[i]` over the shorter of both, in f32. The order of additions depends on the length only; with FMA products are
/// not rounded.
pub(super) fn dot(path: Path, a: &[f32], b: &[f32]) -> f32 {
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx512` exists only where the CPU has AVX-512 F.
        Path::Avx512(_) => unsafe { dot_avx512(a, b) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx2` exists only where the CPU has AVX2 and FMA.
        Path::Avx2(_) => unsafe { dot_avx2(a, b) },
        Path::Plain => body(a, b, |x, y, sum| sum + x * y),
    }
}

/// The dot product of `x` with each of the rows, which are as long.
pub(super) fn dots(path: Path, x: &[f32], rows: &[f32], out: &mut [f32]) {
    if x.is_empty() {
        return out.fill(0.0);
    }
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx512` exists only where the CPU has AVX-512 F.
        Path::Avx512(_) => unsafe { dots_avx512(x, rows, out) },
        _ => {
            for (row, out) in rows.chunks_exact(x.len()).zip(out) {
                *out = dot(path, x, row);
            }
        }
    }
}

/// `y += sum of weights[r] * rows[r]`; rows are as long as `y`.
pub(super) fn add_rows(path: Path, weights: &[f32], rows: &[f32], y: &mut [f32]) {
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx512` exists only where the CPU has AVX-512 F.
        Path::Avx512(_) => unsafe { add_rows_avx512(weights, rows, y) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx2` exists only where the CPU has AVX2 and FMA.
        Path::Avx2(_) => unsafe { add_rows_avx2(weights, rows, y) },
        Path::Plain => sum_rows::<32>(weights, rows, y, |x, y, sum| sum + x * y),
    }
}

/// f16 as f32, to as many places.
pub(super) fn widen(path: Path, halves: &[u16], out: &mut [f32]) {
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx512` exists only where the CPU has AVX-512 F.
        Path::Avx512(_) => unsafe { widen_avx512(halves, out) },
        _ => super::operand::halves_to_f32(crate::DType::F16, halves, out),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn widen_avx512(halves: &[u16], out: &mut [f32]) {
    use std::arch::x86_64::*;

    let (halves, halves_rest) = halves.as_chunks::<16>();
    let (out, out_rest) = out.as_chunks_mut::<16>();
    for (halves, out) in halves.iter().zip(out) {
        // SAFETY: reads the 32 bytes of the array; no alignment is asked for.
        let halves = unsafe { _mm256_loadu_si256(halves.as_ptr().cast()) };
        let values = _mm512_cvtph_ps(halves);
        // SAFETY: writes the sixteen values of the array; no alignment is asked for.
        unsafe { _mm512_storeu_ps(out.as_mut_ptr(), values) };
    }
    for (half, out) in halves_rest.iter().zip(out_rest) {
        *out = half::f16::from_bits(*half).to_f32();
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn dot_avx512(a: &[f32], b: &[f32]) -> f32 {
    body(a, b, f32::mul_add)
}

/// The products of `x` with rows of a matrix that is read once. A row's product does not depend on how many there are.
pub(super) fn matrix_dots(path: Path, rows: &[f32], x: &[f32], out: &mut [f32]) {
    let length = x.len().max(1);
    for (rows, out) in rows.chunks(ROWS * length).zip(out.chunks_mut(ROWS)) {
        match path {
            #[cfg(target_arch = "x86_64")]
            Path::Avx512(_) => {
                if let Ok(out) = <&mut [f32; ROWS]>::try_from(&mut *out) {
                    let (a, rest) = rows.split_at(length);
                    let (b, rest) = rest.split_at(length);
                    let (c, d) = rest.split_at(length);
                    // SAFETY: the value in `Avx512` exists only where the CPU has AVX-512 F.
                    *out = unsafe { rows_avx512([a, b, c, d], x) };
                    continue;
                }
                for (row, out) in rows.chunks(length).zip(out) {
                    // SAFETY: as above.
                    [*out] = unsafe { rows_avx512([row], x) };
                }
            }
            _ => {
                for (row, out) in rows.chunks(length).zip(out) {
                    *out = dot(path, row, x);
                }
            }
        }
    }
}

/// Rows that are multiplied together: x, which is longer than a core's first cache, is read once for all.
const ROWS: usize = 4;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn rows_avx512<const N: usize>(rows: [&[f32]; N], x: &[f32]) -> [f32; N] {
    use std::arch::x86_64::*;
    /// How many bytes ahead memory is asked for. The CPU's own prefetching ends at pages; this goes on in the next.
    const AHEAD: usize = 2048;

    let (pieces, last) = x.as_chunks::<32>();
    let mut sums = [[_mm512_setzero_ps(); 2]; N];
    for (index, x) in pieces.iter().enumerate() {
        for (sums, row) in sums.iter_mut().zip(rows) {
            let values = &row[32 * index..32 * index + 32];
            let halves = values.as_chunks::<16>().0.iter().zip(x.as_chunks::<16>().0);
            for (sum, (values, x)) in sums.iter_mut().zip(halves) {
                _mm_prefetch::<_MM_HINT_T0>(values.as_ptr().cast::<i8>().wrapping_add(AHEAD));
                // SAFETY: reads the sixteen values of the array; no alignment is asked for.
                let values = unsafe { _mm512_loadu_ps(values.as_ptr()) };
                // SAFETY: as above.
                let x = unsafe { _mm512_loadu_ps(x.as_ptr()) };
                *sum = _mm512_fmadd_ps(values, x, *sum);
            }
        }
    }
    let mut out = [0.0; N];
    for ((out, sums), row) in out.iter_mut().zip(sums).zip(rows) {
        let rest = row[32 * pieces.len()..].iter().zip(last);
        *out = rest.fold(_mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1])), |sum, (a, b)| {
            a.mul_add(*b, sum)
        });
    }
    out
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_avx2(a: &[f32], b: &[f32]) -> f32 {
    body(a, b, f32::mul_add)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn add_rows_avx512(weights: &[f32], rows: &[f32], y: &mut [f32]) {
    sum_rows::<128>(weights, rows, y, f32::mul_add);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_rows_avx2(weights: &[f32], rows: &[f32], y: &mut [f32]) {
    sum_rows::<64>(weights, rows, y, f32::mul_add);
}

/// Four rows at a time: their lanes are added together.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn dots_avx512(x: &[f32], rows: &[f32], out: &mut [f32]) {
    use std::arch::x86_64::*;

    let n = x.len();
    let (pieces, last) = x.as_chunks::<16>();
    for (rows, out) in rows.chunks(4 * n).zip(out.chunks_mut(4)) {
        if rows.len() < 4 * n || out.len() < 4 {
            for (row, out) in rows.chunks_exact(n).zip(out) {
                *out = dot_avx512(x, row);
            }
            continue;
        }
        let mut sums = [_mm512_setzero_ps(); 4];
        for (index, x) in pieces.iter().enumerate() {
            // SAFETY: reads the sixteen values of the array; no alignment is asked for.
            let x = unsafe { _mm512_loadu_ps(x.as_ptr()) };
            for (r, sum) in sums.iter_mut().enumerate() {
                let row = &rows[r * n + index * 16..][..16];
                // SAFETY: reads the sixteen values of the slice; no alignment is asked for.
                let row = unsafe { _mm512_loadu_ps(row.as_ptr()) };
                *sum = _mm512_fmadd_ps(x, row, *sum);
            }
        }
        let four = lane_sums(sums);
        // SAFETY: writes the first four values of a slice that has four.
        unsafe { _mm_storeu_ps(out.as_mut_ptr(), four) };
        for (row, out) in rows.chunks_exact(n).zip(out) {
            for (x, w) in last.iter().zip(&row[n - last.len()..]) {
                *out = x.mul_add(*w, *out);
            }
        }
    }
}

/// The sum of the lanes of each of four vectors.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn lane_sums([a, b, c, d]: [std::arch::x86_64::__m512; 4]) -> std::arch::x86_64::__m128 {
    use std::arch::x86_64::*;

    let ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    let cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    let (ab, cd) = (_mm512_castps_pd(ab), _mm512_castps_pd(cd));
    // Each quarter: a part of the sums of a, b, c and d.
    let low = _mm512_castpd_ps(_mm512_unpacklo_pd(ab, cd));
    let high = _mm512_castpd_ps(_mm512_unpackhi_pd(ab, cd));
    let quarters = _mm512_add_ps(low, high);
    let upper = _mm512_extractf64x4_pd::<1>(_mm512_castps_pd(quarters));
    let halves = _mm256_add_ps(_mm512_castps512_ps256(quarters), _mm256_castpd_ps(upper));
    _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves))
}

/// `W` columns at a time stay in registers while the rows pass.
#[inline(always)]
fn sum_rows<const W: usize>(
    weights: &[f32],
    rows: &[f32],
    y: &mut [f32],
    multiply_add: impl Fn(f32, f32, f32) -> f32 + Copy,
) {
    let n = y.len().max(1);
    let (pieces, last) = y.as_chunks_mut::<W>();
    let whole = pieces.len() * W;
    for (index, y) in pieces.iter_mut().enumerate() {
        sum_columns(weights, rows, n, index * W, y, multiply_add);
    }
    let (pieces, last) = last.as_chunks_mut::<16>();
    let middle = whole + pieces.len() * 16;
    for (index, y) in pieces.iter_mut().enumerate() {
        sum_columns(weights, rows, n, whole + index * 16, y, multiply_add);
    }
    for (weight, row) in weights.iter().zip(rows.chunks_exact(n)) {
        for (y, value) in last.iter_mut().zip(&row[middle..]) {
            *y = multiply_add(*weight, *value, *y);
        }
    }
}

#[inline(always)]
fn sum_columns<const W: usize>(
    weights: &[f32],
    rows: &[f32],
    n: usize,
    first: usize,
    y: &mut [f32; W],
    multiply_add: impl Fn(f32, f32, f32) -> f32,
) {
    let mut sums = *y;
    for (weight, row) in weights.iter().zip(rows.chunks_exact(n)) {
        for (sum, value) in sums.iter_mut().zip(&row[first..first + W]) {
            *sum = multiply_add(*weight, *value, *sum);
        }
    }
    *y = sums;
}

#[inline(always)]
fn body(a: &[f32], b: &[f32], multiply_add: impl Fn(f32, f32, f32) -> f32) -> f32 {
    let n = a.len().min(b.len());
    let (a, a_rest) = a[..n].as_chunks::<LANES>();
    let (b, b_rest) = b[..n].as_chunks::<LANES>();
    let mut sums = [0.0f32; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            sums[lane] = multiply_add(a[lane], b[lane], sums[lane]);
        }
    }
    for ((sum, &x), &y) in sums.iter_mut().zip(a_rest).zip(b_rest) {
        *sum = multiply_add(x, y, *sum);
    }
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_f16_has_its_value_on_every_path() {
        let halves: Vec<u16> = (0..=u16::MAX).collect();
        for path in Path::available() {
            // Lengths that leave a rest.
            for halves in [&halves[..], &halves[5..], &halves[..13]] {
                let mut found = vec![0.0; halves.len()];
                widen(path, halves, &mut found);
                for (half, found) in halves.iter().zip(found) {
                    let exact = half::f16::from_bits(*half).to_f32();
                    assert!(
                        found == exact || (found.is_nan() && exact.is_nan()),
                        "{path:?} {half:#x}: {found}"
                    );
                }
            }
        }
    }

    #[test]
    fn every_path_is_near_the_exact_sums() {
        for path in Path::available() {
            for n in [1usize, 15, 31, 32, 33, 64, 65, 100, 129, 577] {
                let a: Vec<f32> = (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
                for count in [1usize, 3, 4, 9] {
                    let rows: Vec<f32> = (0..count * n).map(|i| ((i * 53 % 97) as f32 - 48.0) / 48.0).collect();
                    let mut found = vec![f32::NAN; count];
                    matrix_dots(path, &rows, &a, &mut found);
                    let together = found.clone();
                    dots(path, &a, &rows, &mut found);
                    for ((row, found), together) in rows.chunks(n).zip(&found).zip(together) {
                        let exact: f64 = a.iter().zip(row).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
                        let mut one = [f32::NAN];
                        matrix_dots(path, row, &a, &mut one);
                        assert!(one[0] == together, "{path:?} {n}: a row alone and among others");
                        for found in [*found, dot(path, &a, row), one[0]] {
                            assert!(
                                (f64::from(found) - exact).abs() < 1e-5,
                                "{path:?} {n}: {found} for {exact}"
                            );
                        }
                    }
                    let mut y = a.clone();
                    add_rows(path, &found, &rows, &mut y);
                    for (i, y) in y.iter().enumerate() {
                        let products = (0..count).map(|r| f64::from(found[r]) * f64::from(rows[r * n + i]));
                        let exact = f64::from(a[i]) + products.sum::<f64>();
                        assert!(
                            (f64::from(*y) - exact).abs() < 1e-4,
                            "{path:?} {n} {count}: {y} for {exact}"
                        );
                    }
                }
            }
        }
    }
}
