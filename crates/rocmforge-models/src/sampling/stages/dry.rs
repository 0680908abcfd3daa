//! DRY: penalises tokens that would continue a repetition.

use std::collections::{HashMap, HashSet};

use super::super::{Candidates, Dry};

/// Lowers the logits of tokens that would extend a repeat: by `multiplier * base^(n - allowed_length)` for the longest earlier repeat
/// of n >= `allowed_length` tokens that such a token has followed. A repeat has no breaker in it, and no breaker is lowered.
pub fn dry(candidates: &mut Candidates, tokens: &[u32], dry: &Dry) {
    dry_with(candidates, tokens, dry, &breakers(dry));
}

/// The breakers as a set, which may be most of the vocabulary; empty where the penalty is off.
pub(in super::super) fn breakers(dry: &Dry) -> HashSet<u32> {
    let is_on = dry.multiplier > 0.0;
    dry.breakers.iter().copied().filter(|_| is_on).collect()
}

/// [`dry`] with the set of its breakers, which a sampler makes once.
pub(in super::super) fn dry_with(candidates: &mut Candidates, tokens: &[u32], dry: &Dry, breakers: &HashSet<u32>) {
    if dry.multiplier <= 0.0 {
        return;
    }
    let window = &tokens[tokens.len().saturating_sub(dry.last_n)..];
    let penalties: HashMap<u32, f64> = dry_matches(window, breakers)
        .into_iter()
        .filter(|(_, length)| *length >= dry.allowed_length)
        .map(|(token, length)| {
            let growth = f64::from(dry.base).powf((length - dry.allowed_length) as f64);
            // Beyond this, two penalised tokens could no longer be distinguished from banned ones.
            (token, (f64::from(dry.multiplier) * growth).min(f64::from(f32::MAX)))
        })
        .collect();
    candidates.change(&penalties, |logit, penalty| logit - penalty);
}

/// For each token that stands somewhere in `tokens`, not at its start: the largest n such that the n tokens before it are also the last n of
/// `tokens`, none of them a breaker. Tokens with n = 0, and breakers, are left out.
///
/// Takes time proportional to the number of tokens (the Z algorithm on the reversed tokens).
fn dry_matches(tokens: &[u32], breakers: &HashSet<u32>) -> HashMap<u32, usize> {
    let reversed: Vec<u32> = tokens.iter().rev().copied().collect();
    let limit = reversed
        .iter()
        .position(|token| breakers.contains(token))
        .unwrap_or(reversed.len());
    let mut longest: HashMap<u32, usize> = HashMap::new();
    if limit == 0 {
        return longest;
    }
    for (at, matched) in common_prefixes(&reversed).into_iter().enumerate().skip(1) {
        let (next, length) = (reversed[at - 1], matched.min(limit));
        if length > 0 && !breakers.contains(&next) {
            let entry = longest.entry(next).or_default();
            *entry = length.max(*entry);
        }
    }
    longest
}

/// For each position, how many elements from there on equal those at the start.
fn common_prefixes(items: &[u32]) -> Vec<usize> {
    let mut lengths = vec![items.len(); items.len()];
    // The range found so far that ends last and equals the start.
    let (mut begin, mut end) = (0, 0);
    for at in 1..items.len() {
        let mut length = if at < end { lengths[at - begin].min(end - at) } else { 0 };
        while at + length < items.len() && items[at + length] == items[length] {
            length += 1;
        }
        if at + length > end {
            (begin, end) = (at, at + length);
        }
        lengths[at] = length;
    }
    lengths
}
