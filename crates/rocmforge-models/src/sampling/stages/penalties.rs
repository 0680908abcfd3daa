//! Penalties for tokens that have occurred: repetition, presence, frequency.

use std::collections::HashMap;

use super::super::Candidates;

/// Adds each bias to its token's logit; -inf bans the token. Ids that are no candidates are passed over.
pub fn logit_bias(candidates: &mut Candidates, biases: &[(u32, f32)]) {
    if biases.is_empty() {
        return;
    }
    let mut sums: HashMap<u32, f64> = HashMap::new();
    for &(id, bias) in biases {
        *sums.entry(id).or_default() += f64::from(bias);
    }
    candidates.change(&sums, |logit, bias| logit + bias);
}

/// Lowers the logits of tokens that were seen `counts` times.
///
/// Repetition (Keskar et al., CTRL, 2019): a logit l > 0 becomes l / `repeat`, another l * `repeat`. Then `count * frequency + presence`
/// is subtracted.
pub fn penalties(candidates: &mut Candidates, counts: &HashMap<u32, u32>, repeat: f32, frequency: f32, presence: f32) {
    if (repeat, frequency, presence) == (1.0, 0.0, 0.0) || counts.is_empty() {
        return;
    }
    let (repeat, frequency, presence) = (f64::from(repeat), f64::from(frequency), f64::from(presence));
    candidates.change(counts, |logit, count| {
        let logit = if logit > 0.0 { logit / repeat } else { logit * repeat };
        logit - (f64::from(count) * frequency + presence)
    });
}

/// Divides the logits by `t`, after the largest has been subtracted from all. If `t` is 0 or less, only the candidate of the highest
/// rank stays.
pub fn temperature(candidates: &mut Candidates, t: f32) {
    if t <= 0.0 {
        candidates.keep_first(1);
    } else if t != 1.0 {
        // Without the subtraction, logits could grow beyond what f32 can tell apart.
        let max = f64::from(candidates.max());
        candidates.scale(|logit| (logit - max) / f64::from(t));
    }
}
