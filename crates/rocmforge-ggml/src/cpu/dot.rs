//! Dot product of f32 slices, with FMA where the CPU has it.

/// Sums that run side by side, so that the additions of one do not wait for those of another.
const LANES: usize = 32;

/// `sum of a[i] * b[i]` over the shorter of both, in f32. The order of additions depends on the length only; with FMA products are
/// not rounded.
pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: `has_fma` has just found AVX2 and FMA on this CPU.
        return unsafe { dot_fma(a, b) };
    }
    body(a, b, |x, y, sum| sum + x * y)
}

/// `y[i] += a * x[i]` over the shorter of both.
pub(super) fn add_scaled(y: &mut [f32], a: f32, x: &[f32]) {
    #[cfg(target_arch = "x86_64")]
    if has_fma() {
        // SAFETY: `has_fma` has just found AVX2 and FMA on this CPU.
        return unsafe { add_scaled_fma(y, a, x) };
    }
    y.iter_mut().zip(x).for_each(|(y, &x)| *y += a * x);
}

/// Whether the CPU has AVX2 and FMA.
#[cfg(target_arch = "x86_64")]
pub(super) fn has_fma() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn dot_fma(a: &[f32], b: &[f32]) -> f32 {
    body(a, b, f32::mul_add)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn add_scaled_fma(y: &mut [f32], a: f32, x: &[f32]) {
    y.iter_mut().zip(x).for_each(|(y, &x)| *y = a.mul_add(x, *y));
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
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    a_rest
        .iter()
        .zip(b_rest)
        .fold(sums[0], |sum, (&x, &y)| multiply_add(x, y, sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_near_the_exact_sum() {
        for n in [0usize, 1, 31, 32, 33, 64, 100, 577] {
            let a: Vec<f32> = (0..n).map(|i| ((i * 37 % 101) as f32 - 50.0) / 50.0).collect();
            let b: Vec<f32> = (0..n).map(|i| ((i * 53 % 97) as f32 - 48.0) / 48.0).collect();
            let exact: f64 = a.iter().zip(&b).map(|(&x, &y)| f64::from(x) * f64::from(y)).sum();
            for found in [dot(&a, &b), body(&a, &b, |x, y, sum| sum + x * y)] {
                assert!((f64::from(found) - exact).abs() < 1e-5, "{n}: {found} for {exact}");
            }
            let mut y = b.clone();
            add_scaled(&mut y, 0.5, &a);
            for ((y, &a), &b) in y.iter().zip(&a).zip(&b) {
                assert!((y - (0.5 * a + b)).abs() < 1e-6);
            }
        }
    }
}
