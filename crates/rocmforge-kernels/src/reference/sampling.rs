//! Sampling in f64: largest values, penalties and draws.

use crate::{Draw, Penalties};
use std::cmp::Ordering;
use std::ops::Range;

/// The columns of a row in falling order of their values, equal ones (0 and -0 are) in rising order, NaN last: the first `k`.
pub fn top_k(row: &[f32], k: usize) -> Vec<u32> {
    let mut columns: Vec<u32> = (0..row.len() as u32).collect();
    // A stable sort: equal ones keep their order.
    columns.sort_by(|&a, &b| {
        let (a, b) = (row[a as usize], row[b as usize]);
        match (a.is_nan(), b.is_nan()) {
            (false, false) => b.partial_cmp(&a).unwrap_or(Ordering::Equal),
            (a, b) => a.cmp(&b),
        }
    });
    columns.truncate(k);
    columns
}

/// The column of the largest value, the lowest of equal ones. NaN is below everything.
pub fn arg_max(row: &[f32]) -> u32 {
    let largest = row
        .iter()
        .copied()
        .filter(|v| !v.is_nan())
        .fold(f32::NEG_INFINITY, f32::max);
    let first = row.iter().position(|&v| v == largest);
    first.unwrap_or(0) as u32
}

/// The logit of a token that was seen `count` times. -inf and NaN become -inf; the quotient, the penalty and the result are
/// held within the range of f32.
pub fn lowered(logit: f32, count: u32, penalties: Penalties) -> f64 {
    let l = f64::from(logit);
    if count == 0 {
        return l;
    }
    if l.is_nan() || l == f64::NEG_INFINITY {
        return f64::NEG_INFINITY;
    }
    let repeat = f64::from(penalties.repeat);
    let held = |x: f64| x.clamp(f64::from(f32::MIN), f64::from(f32::MAX));
    let turned = held(if l > 0.0 { l / repeat } else { l * repeat });
    let times = f64::from(count) * f64::from(penalties.frequency);
    held(turned - held(times + f64::from(penalties.presence)))
}

/// For each of a row's sorted candidates the numbers in [0, 1) that draw it: an empty range for one that cannot be drawn.
pub fn draw_intervals(values: &[f32], draw: Draw) -> Vec<Range<f64>> {
    let mut kept: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
    if draw.temperature == 0.0 {
        kept.truncate(1);
    } else if draw.temperature_first {
        kept.iter_mut().for_each(|l| *l /= f64::from(draw.temperature));
    }
    let probabilities = softmax(&kept);
    if draw.top_p < 1.0 {
        let mut sum = 0.0;
        let enough = probabilities.iter().position(|p| {
            sum += p;
            sum >= f64::from(draw.top_p)
        });
        kept.truncate(enough.map_or(kept.len(), |last| last + 1));
    }
    if draw.min_p > 0.0 {
        let least = f64::from(draw.min_p) * probabilities[0];
        kept.truncate(probabilities.iter().take_while(|&&p| p >= least).count());
    }
    if draw.temperature > 0.0 && !draw.temperature_first {
        kept.iter_mut().for_each(|l| *l /= f64::from(draw.temperature));
    }
    let mut end = 0.0;
    let mut intervals: Vec<Range<f64>> = (softmax(&kept).iter())
        .map(|p| {
            let begin = end;
            end += p;
            begin..end
        })
        .collect();
    intervals.resize(values.len(), 1.0..1.0);
    intervals
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|l| (l - largest).exp()).sum();
    logits.iter().map(|l| (l - largest).exp() / sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_definition() {
        let row = [f32::NAN, 1.0, -0.0, 0.0, f32::NEG_INFINITY, 1.0];
        assert_eq!(top_k(&row, 6), [1, 5, 2, 3, 4, 0]);
        assert_eq!((arg_max(&row), arg_max(&[f32::NAN; 3])), (1, 0));
        assert_eq!(arg_max(&[f32::NAN, f32::NEG_INFINITY]), 1);
    }

    #[test]
    fn intervals_are_the_probabilities_of_what_is_kept() {
        // Probabilities of 1/2, 1/4, 1/8, 1/8.
        let values = [3f32, 2.0, 1.0, 1.0].map(|n| n * std::f32::consts::LN_2);
        let draw = Draw {
            temperature: 1.0,
            top_p: 0.7,
            min_p: 0.0,
            temperature_first: false,
        };
        let found = draw_intervals(&values, draw);
        assert!((found[0].end - 2.0 / 3.0).abs() < 1e-6 && (found[1].end - 1.0).abs() < 1e-6);
        assert!(found[2].is_empty() && found[3].is_empty());
        // At a temperature of 1/2 the squares count: 1/4, 1/16, 1/64, 1/64, whose sum is 22/64.
        let cold = Draw {
            temperature: 0.5,
            top_p: 1.0,
            min_p: 0.2,
            temperature_first: true,
        };
        let found = draw_intervals(&values, cold);
        assert!((found[0].end - 0.8).abs() < 1e-6 && found[2].is_empty());
    }
}
