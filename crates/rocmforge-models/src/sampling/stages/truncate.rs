//! Truncation stages: drop the less likely candidates (top-k, top-p, min-p and their like).

use super::super::candidates::by_rank;
use super::super::{Candidate, Candidates};

/// Keeps the `k` candidates of highest rank; 0 = off.
pub fn top_k(candidates: &mut Candidates, k: usize) {
    if k > 0 && k < candidates.len() {
        candidates.keep_first(k);
    }
}

/// Keeps the shortest list of highest rank whose probabilities sum up to `p` at least (Holtzman et al., 2019); 1 = off.
pub fn top_p(candidates: &mut Candidates, p: f32) {
    if p < 1.0 {
        let wanted = f64::from(p) * candidates.weight_sum();
        let length = candidates.shortest(|sum| sum >= wanted);
        candidates.keep_first(length);
    }
}

/// Keeps candidates of at least `p` times the largest probability: logits of at least `max + ln p` (Nguyen et al., 2024); 0 = off.
pub fn min_p(candidates: &mut Candidates, p: f32) {
    if p > 0.0 {
        let bound = min_p_bound(candidates, p);
        candidates.retain(|candidate| f64::from(candidate.logit) >= bound);
    }
}

/// The least logit that [`min_p`] keeps.
pub(in super::super) fn min_p_bound(candidates: &Candidates, p: f32) -> f64 {
    f64::from(candidates.max()) + f64::from(p).ln()
}

/// Locally typical sampling (Meister et al., 2022); 1 = off.
///
/// Candidates by rising distance of their surprise `-ln p` from the entropy, equal ones by rank: keeps the shortest list whose
/// probabilities sum up to more than `p`.
pub fn typical(candidates: &mut Candidates, p: f32) {
    if p >= 1.0 || candidates.is_empty() {
        return;
    }
    let (weights, total) = candidates.weights();
    if total <= 0.0 {
        return;
    }
    let probabilities = weights.iter().map(|weight| weight / total);
    let surprise = |p: f64| -p.ln();
    let entropy: f64 = probabilities
        .clone()
        .filter(|&p| p > 0.0)
        .map(|p| p * surprise(p))
        .sum();
    let mut by_distance: Vec<(f64, f64, Candidate)> = probabilities
        .zip(candidates.as_slice())
        .map(|(p, &candidate)| ((surprise(p) - entropy).abs(), p, candidate))
        .collect();
    by_distance.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then_with(|| by_rank(&a.2, &b.2)));
    let mut sum = 0.0;
    let mut kept = Vec::new();
    for (_, probability, candidate) in by_distance {
        kept.push(candidate);
        sum += probability;
        if sum > f64::from(p) {
            break;
        }
    }
    candidates.replace(kept);
}

/// Keeps logits of at least the largest less `n` standard deviations, -inf left out (Tang et al., 2024); 0 or less = off.
pub fn top_n_sigma(candidates: &mut Candidates, n: f32) {
    if n <= 0.0 {
        return;
    }
    let finite = || {
        let logits = candidates.as_slice().iter().map(|candidate| candidate.logit);
        logits.filter(|logit| logit.is_finite()).map(f64::from)
    };
    let count = finite().count() as f64;
    let mean = finite().sum::<f64>() / count;
    let variance = finite().map(|logit| (logit - mean).powi(2)).sum::<f64>() / count;
    let bound = f64::from(candidates.max()) - f64::from(n) * variance.sqrt();
    if bound.is_finite() {
        candidates.retain(|candidate| f64::from(candidate.logit) >= bound);
    }
}

/// "Exclude top choices": if `uniform`, a random number in [0, 1), is below `probability`, then of the candidates of probability
/// `threshold` or more only the one of lowest rank stays, with all those below.
pub fn xtc(candidates: &mut Candidates, probability: f32, threshold: f32, uniform: f64) {
    if uniform >= f64::from(probability) {
        return;
    }
    // exp(l - max) / sum of weights >= threshold
    let bound = f64::from(candidates.max()) + (f64::from(threshold) * candidates.weight_sum()).ln();
    let is_choice = |candidate: &&Candidate| f64::from(candidate.logit) >= bound;
    let choices = candidates.as_slice().iter().filter(is_choice).count();
    candidates.drop_first(choices.saturating_sub(1));
}

/// Mirostat 2: drops candidates whose surprise `-log2 p` is over `mu`; the one of highest rank stays.
pub fn mirostat(candidates: &mut Candidates, mu: f64) {
    let max = f64::from(candidates.max());
    // -log2(exp(l - max) / sum of weights) <= mu
    let bound = max + candidates.weight_sum().ln() - mu * std::f64::consts::LN_2;
    if bound > max {
        candidates.keep_first(1);
    } else if bound.is_finite() {
        candidates.retain(|candidate| f64::from(candidate.logit) >= bound);
    }
}
