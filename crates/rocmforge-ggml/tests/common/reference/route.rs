//! Routing of tokens to experts.

use rocmforge_ggml::{Route, RouteGate};

use super::{Values, attention, reductions};

/// The chosen experts of all tokens, then the factors of their results.
pub(super) fn route(x: &[Values], how: Route) -> Vec<f64> {
    let mut ids = Vec::new();
    let mut factors = Vec::new();
    for scores in x[0].data.chunks(x[0].cols()) {
        for (id, factor) in of_token(scores, x.get(1).map(|bias| bias.data.as_slice()), how) {
            ids.push(id as f64);
            factors.push(factor);
        }
    }
    ids.extend(factors);
    ids
}

fn of_token(scores: &[f64], bias: Option<&[f64]>, how: Route) -> Vec<(usize, f64)> {
    let shares = match how.gate {
        RouteGate::SoftMax => attention::weights(scores, None),
        RouteGate::SoftMaxOfChosen => scores.to_vec(),
        RouteGate::Sigmoid => scores.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
    };
    let choice: Vec<f64> = shares
        .iter()
        .enumerate()
        .map(|(e, share)| share + bias.map_or(0.0, |bias| bias[e]))
        .collect();
    let [groups, kept] = how.groups;
    let size = choice.len() / groups;
    let best = |group: &[f64]| {
        reductions::order_of(group, true)
            .into_iter()
            .take(2)
            .map(|e| group[e])
            .sum()
    };
    let sums: Vec<f64> = choice.chunks(size).map(best).collect();
    let kept = reductions::order_of(&sums, true)
        .into_iter()
        .take(kept)
        .collect::<Vec<_>>();
    let order = reductions::order_of(&choice, true).into_iter();
    let chosen: Vec<usize> = order.filter(|e| kept.contains(&(e / size))).take(how.k).collect();
    let mut factors: Vec<f64> = chosen.iter().map(|&e| shares[e]).collect();
    if how.gate == RouteGate::SoftMaxOfChosen {
        factors = attention::weights(&factors, None);
    }
    let sum = factors.iter().sum::<f64>().max(how.least_sum.into());
    let divisor = if how.normalised { sum } else { 1.0 };
    let factors = factors
        .into_iter()
        .map(|factor| factor / divisor * f64::from(how.factor));
    chosen.into_iter().zip(factors).collect()
}
