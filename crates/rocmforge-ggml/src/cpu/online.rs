//! Online softmax of one row of scores, with an exponential that compilers turn into vectors.

use bytemuck::{Pod, Zeroable};

use super::path::Path;

/// What is known of a row of scores after some of its keys.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Online {
    /// The largest score; minus infinity before the first visible key.
    pub(super) max: f32,
    /// Sum of `exp(score - max)`.
    pub(super) sum: f32,
}

impl Online {
    pub(super) const EMPTY: Self = Self {
        max: f32::NEG_INFINITY,
        sum: 0.0,
    };

    /// Takes further scores and leaves `exp(score - max)` in their places. What was summed with weights before has to be multiplied by the
    /// factor returned: the maximum may have grown.
    pub(super) fn add(&mut self, path: Path, scores: &mut [f32]) -> f32 {
        let max = largest(path, scores).max(self.max);
        if max == f32::NEG_INFINITY && !scores.iter().any(|score| score.is_nan()) {
            scores.fill(0.0);
            return 1.0;
        }
        let factor = if self.max == max {
            1.0
        } else {
            exp(self.max - max, |a, b, c| a * b + c)
        };
        self.sum = self.sum * factor + exponentials(path, scores, max);
        self.max = max;
        factor
    }

    /// The state of two parts of a row together, and the factors of what each part summed.
    pub(super) fn merged(self, other: Self) -> (Self, [f32; 2]) {
        let max = self.max.max(other.max);
        let factors = [self, other].map(|part| if part.max == max { 1.0 } else { (part.max - max).exp() });
        let sum = self.sum * factors[0] + other.sum * factors[1];
        (Self { max, sum }, factors)
    }
}

fn largest(path: Path, scores: &[f32]) -> f32 {
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx512` exists only where the CPU has AVX-512 F.
        Path::Avx512(_) => unsafe { largest_avx512(scores) },
        _ => largest_of(scores),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn largest_avx512(scores: &[f32]) -> f32 {
    largest_of(scores)
}

/// The largest number; one that is not a number counts as minus infinity.
#[inline(always)]
fn largest_of(scores: &[f32]) -> f32 {
    let (lanes, rest) = scores.as_chunks::<16>();
    let mut max = [f32::NEG_INFINITY; 16];
    for lane in lanes {
        for (max, &score) in max.iter_mut().zip(lane) {
            *max = if score > *max { score } else { *max };
        }
    }
    max.iter().chain(rest).copied().fold(f32::NEG_INFINITY, f32::max)
}

/// Makes each score `exp(score - max)` and returns their sum.
fn exponentials(path: Path, scores: &mut [f32], max: f32) -> f32 {
    match path {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx512` exists only where the CPU has AVX-512 F.
        Path::Avx512(_) => unsafe { exponentials_avx512(scores, max) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the value in `Avx2` exists only where the CPU has AVX2 and FMA.
        Path::Avx2(_) => unsafe { exponentials_avx2(scores, max) },
        Path::Plain => exponentials_of(scores, max, |a, b, c| a * b + c),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,fma")]
fn exponentials_avx512(scores: &mut [f32], max: f32) -> f32 {
    exponentials_of(scores, max, f32::mul_add)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn exponentials_avx2(scores: &mut [f32], max: f32) -> f32 {
    exponentials_of(scores, max, f32::mul_add)
}

#[inline(always)]
fn exponentials_of(scores: &mut [f32], max: f32, multiply_add: impl Fn(f32, f32, f32) -> f32 + Copy) -> f32 {
    let (lanes, rest) = scores.as_chunks_mut::<16>();
    let mut sums = [0.0f32; 16];
    for lane in lanes {
        for (sum, score) in sums.iter_mut().zip(lane) {
            *score = exp(*score - max, multiply_add);
            *sum += *score;
        }
    }
    for (sum, score) in sums.iter_mut().zip(rest) {
        *score = exp(*score - max, multiply_add);
        *sum += *score;
    }
    let mut width = 8;
    while width > 0 {
        for lane in 0..width {
            sums[lane] += sums[lane + width];
        }
        width /= 2;
    }
    sums[0]
}

/// `e^x` for `x <= 0` within 2e-7 of itself; below -87 zero, where f32 has no normal number. A NaN stays one.
///
/// `2^n * e^r` with `r` within half of ln 2, and the Taylor polynomial of degree 7: its first missing term is 5e-9.
#[inline(always)]
fn exp(x: f32, multiply_add: impl Fn(f32, f32, f32) -> f32) -> f32 {
    /// 1.5 * 2^23: adding it leaves the nearest integer in the last bits.
    const ROUND: f32 = 12_582_912.0;
    /// ln 2 in two parts; the first has zeros at its end, so that products with small integers are exact.
    const LN2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
    const TAYLOR: [f32; 7] = [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0];
    let rounded = multiply_add(x, std::f32::consts::LOG2_E, ROUND);
    let n = rounded - ROUND;
    let r = multiply_add(n, -LN2[1], multiply_add(n, -LN2[0], x));
    let mut sum = TAYLOR[0];
    for term in &TAYLOR[1..] {
        sum = multiply_add(sum, r, *term);
    }
    let value = multiply_add(sum, r, 1.0);
    // The integer's last bits, at the exponent's place.
    let power = f32::from_bits((rounded.to_bits() << 23).wrapping_add(0x3f80_0000));
    if x < -87.0 { 0.0 } else { value * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential_is_near_the_exact_one() {
        for path in Path::available() {
            let xs: Vec<f32> = (0..8701).map(|i| -(i as f32) / 100.0).collect();
            let mut found = xs.clone();
            let sum = exponentials(path, &mut found, 0.0);
            let exact: f64 = xs.iter().map(|&x| f64::from(x).exp()).sum();
            assert!(
                (f64::from(sum) / exact - 1.0).abs() < 1e-6,
                "{path:?}: {sum} for {exact}"
            );
            for (x, found) in xs.iter().zip(found) {
                let exact = f64::from(*x).exp();
                assert!(
                    (f64::from(found) / exact - 1.0).abs() < 2e-7,
                    "{path:?} {x}: {found} for {exact}"
                );
            }
            let mut odd = [f32::NEG_INFINITY, -90.0, f32::NAN, 0.0];
            exponentials(path, &mut odd, 0.0);
            assert!(
                odd[0] == 0.0 && odd[1] == 0.0 && odd[2].is_nan() && odd[3] == 1.0,
                "{odd:?}"
            );
        }
    }

    #[test]
    fn parts_of_a_row_give_the_softmax_of_the_whole() {
        let scores: Vec<f32> = (0..100).map(|i| ((i * 37 % 101) as f32 - 50.0) / 7.0).collect();
        let max = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let exact: f64 = scores.iter().map(|&s| f64::from(s - max).exp()).sum();
        for path in Path::available() {
            let (mut parts, mut hidden) = ([Online::EMPTY; 2], [f32::NEG_INFINITY; 5]);
            assert_eq!(parts[0].add(path, &mut hidden), 1.0);
            assert_eq!(hidden, [0.0; 5]);
            for (part, scores) in parts.iter_mut().zip(scores.chunks(60)) {
                for piece in scores.to_vec().chunks_mut(17) {
                    part.add(path, piece);
                }
            }
            let (whole, _) = parts[0].merged(parts[1]);
            assert_eq!(whole.max, max);
            assert!((f64::from(whole.sum) / exact - 1.0).abs() < 1e-6);
            let (same, factors) = Online::EMPTY.merged(whole);
            assert_eq!((same.max, same.sum, factors[1]), (whole.max, whole.sum, 1.0));
        }
    }
}
