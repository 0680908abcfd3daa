//! Fits of one group of values by a scale, or by a scale and a minimum, as ggml's reference quantisers do it.

/// A group whose largest magnitude is below this is taken as zeros.
pub(super) const LEAST_EXTREME: f32 = 1e-15;

/// Nearest integer, ties to even, for magnitudes below 2^22: adding 1.5 * 2^23 leaves the integer in the fraction's
/// bits. Larger values and NaN give some integer of 23 bits.
#[inline(always)]
pub(super) fn round(value: f32) -> i32 {
    ((value + 12_582_912.0).to_bits() & 0x007f_ffff) as i32 - 0x0040_0000
}

/// Fits `value = scale * q - min` with `q` from 0 to `most` and `min` not negative; gives `(scale, min)`.
///
/// Starts with the scale that spans the values, then tries `steps + 1` further roundings, from `first_step` in steps of
/// 0.1 added to `most`, each from the best minimum so far and with the weighted least-squares scale and minimum for its
/// numbers. The best by the weighted sum of `cost(error)` is kept.
pub(super) fn fit_scale_and_min<const N: usize>(
    values: &[f32; N],
    weights: &[f32; N],
    q: &mut [u8; N],
    most: u8,
    first_step: f32,
    steps: u8,
    cost: impl Fn(f32) -> f32,
) -> (f32, f32) {
    let (mut min, mut max) = (values[0], values[0]);
    let (mut sum_w, mut sum_x) = (weights[0], weights[0] * values[0]);
    for i in 1..N {
        min = if values[i] < min { values[i] } else { min };
        max = if values[i] > max { values[i] } else { max };
        sum_w += weights[i];
        sum_x += weights[i] * values[i];
    }
    if min > 0.0 {
        min = 0.0;
    }
    if max == min {
        q.fill(0);
        return (0.0, -min);
    }
    let most = f32::from(most);
    let quantised =
        |inverse: f32, min: f32| values.map(|value| round(inverse * (value - min)).clamp(0, most as i32) as f32);
    let error_of = |numbers: &[f32; N], scale: f32, min: f32| {
        (0..N).fold(0.0, |sum: f32, i| {
            sum + weights[i] * cost(scale * numbers[i] + min - values[i])
        })
    };

    let inverse = most / (max - min);
    let mut scale = 1.0 / inverse;
    let mut best = quantised(inverse, min);
    let mut best_error = error_of(&best, scale, min);
    for step in 0..=steps {
        let inverse = (first_step + 0.1 * f32::from(step) + most) / (max - min);
        let numbers = quantised(inverse, min);
        let (mut sum_l, mut sum_l2, mut sum_xl) = (0.0_f32, 0.0_f32, 0.0_f32);
        for i in 0..N {
            sum_l += weights[i] * numbers[i];
            sum_l2 += weights[i] * numbers[i] * numbers[i];
            sum_xl += weights[i] * numbers[i] * values[i];
        }
        let determinant = sum_w * sum_l2 - sum_l * sum_l;
        if determinant > 0.0 {
            let mut this_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant;
            let mut this_min = (sum_l2 * sum_x - sum_l * sum_xl) / determinant;
            if this_min > 0.0 {
                this_min = 0.0;
                this_scale = sum_xl / sum_l2;
            }
            let error = error_of(&numbers, this_scale, this_min);
            if error < best_error {
                (best, best_error, scale, min) = (numbers, error, this_scale, this_min);
            }
        }
    }
    *q = best.map(|number| number as u8);
    (scale, -min)
}

/// Fits `value = scale * (q - least)` with `q` from 0 to `2 * least - 1`; gives the scale, which may be negative.
///
/// Tries 19 roundings around the one that sends the extreme value to `-least`, each with the least-squares scale
/// weighted by the squared values.
pub(super) fn fit_scale<const N: usize>(values: &[f32; N], q: &mut [u8; N], least: u8) -> f32 {
    let extreme = super::encode::signed_extreme(values);
    if extreme.abs() < LEAST_EXTREME {
        q.fill(0);
        return 0.0;
    }
    let least = f32::from(least);
    let bound = least as i32;
    let number = |inverse: f32, value: f32| round(inverse * value).clamp(-bound, bound - 1);
    let sums = |inverse: f32| {
        values.iter().fold((0.0_f32, 0.0_f32), |(sum_xl, sum_l2), &value| {
            let l = number(inverse, value) as f32;
            let weight = value * value;
            (sum_xl + weight * value * l, sum_l2 + weight * l * l)
        })
    };
    let mut best_inverse = -least / extreme;
    let (sum_xl, sum_l2) = sums(best_inverse);
    let mut scale = if sum_l2 != 0.0 { sum_xl / sum_l2 } else { 0.0 };
    let mut best = scale * sum_xl;
    for step in -9_i8..=9 {
        if step == 0 {
            continue;
        }
        let inverse = -(least + 0.1 * f32::from(step)) / extreme;
        let (sum_xl, sum_l2) = sums(inverse);
        if sum_l2 > 0.0 && sum_xl * sum_xl > best * sum_l2 {
            best_inverse = inverse;
            scale = sum_xl / sum_l2;
            best = scale * sum_xl;
        }
    }
    for (q, &value) in q.iter_mut().zip(values) {
        *q = (number(best_inverse, value) + bound) as u8;
    }
    scale
}

/// The same fit for few bits: starts with the rounding that sends the extreme value to `-least`, then changes one
/// number at a time, in at most five rounds, where that lowers the squared error weighted by the squared values.
pub(super) fn fit_scale_by_steps<const N: usize>(values: &[f32; N], q: &mut [u8; N], least: u8) -> f32 {
    let extreme = super::encode::signed_extreme(values);
    if extreme.abs() < LEAST_EXTREME {
        q.fill(0);
        return 0.0;
    }
    let bound = i32::from(least);
    let inverse = -f32::from(least) / extreme;
    let mut numbers = values.map(|value| round(inverse * value).clamp(-bound, bound - 1) as f32);
    let (mut sum_xl, mut sum_l2) = (0.0_f32, 0.0_f32);
    for (&value, &l) in values.iter().zip(&numbers) {
        let weight = value * value;
        sum_xl += weight * value * l;
        sum_l2 += weight * l * l;
    }
    for _ in 0..5 {
        let mut changed = false;
        for (&value, l) in values.iter().zip(&mut numbers) {
            let weight = value * value;
            // The sums without this number, and the number that suits them best.
            let mut rest_xl = sum_xl - weight * value * *l;
            if rest_xl <= 0.0 {
                continue;
            }
            let mut rest_l2 = sum_l2 - weight * *l * *l;
            let new = round(value * rest_l2 / rest_xl).clamp(-bound, bound - 1) as f32;
            if new == *l {
                continue;
            }
            rest_xl += weight * value * new;
            rest_l2 += weight * new * new;
            if rest_l2 > 0.0 && rest_xl * rest_xl * sum_l2 > sum_xl * sum_xl * rest_l2 {
                (*l, sum_xl, sum_l2, changed) = (new, rest_xl, rest_l2, true);
            }
        }
        if !changed {
            break;
        }
    }
    *q = numbers.map(|number| (number as i32 + bound) as u8);
    if sum_l2 > 0.0 { sum_xl / sum_l2 } else { 0.0 }
}
