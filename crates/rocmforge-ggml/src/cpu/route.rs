//! Routing: the chosen experts of each token, and the factors of their results.

use super::operand::Operand;
use super::{select, soft_max};
use crate::{Route, RouteGate};

/// Chosen experts and factors of `scores [n, experts]`, with a bias that only chooses.
pub(super) fn route(inputs: &[Operand<'_>], how: Route, [ids, factors]: [&mut [f32]; 2]) {
    let [scores, bias @ ..] = inputs else { return };
    let ids: &mut [u32] = bytemuck::cast_slice_mut(ids);
    let experts = scores.shape.last().copied().unwrap_or(1).max(1);
    let bias = bias.first().map(Operand::f32);
    let [groups, kept] = how.groups;
    let scratch = scores.scratch();
    let (shares, choice, sums) = (scratch.take(experts), scratch.take(experts), scratch.take(groups));
    let (order, chosen) = (scratch.take(experts), scratch.take(kept));
    let rows = ids.chunks_mut(how.k).zip(factors.chunks_mut(how.k));
    for ((ids, factors), scores) in rows.zip(scores.f32().chunks(experts)) {
        shares.copy_from_slice(scores);
        match how.gate {
            RouteGate::SoftMax => soft_max::row(shares, None),
            RouteGate::SoftMaxOfChosen => {}
            RouteGate::Sigmoid => shares.iter_mut().for_each(|x| *x = 1.0 / (1.0 + (-*x).exp())),
        }
        choice.copy_from_slice(shares);
        if let Some(bias) = &bias {
            choice
                .iter_mut()
                .zip(bias.iter())
                .for_each(|(choice, bias)| *choice += bias);
        }
        choose(choice, [&mut *order, &mut *chosen], sums, ids);
        for (factor, &id) in factors.iter_mut().zip(&*ids) {
            *factor = shares[id as usize];
        }
        if how.gate == RouteGate::SoftMaxOfChosen {
            soft_max::row(factors, None);
        }
        let divisor = match how.normalised {
            true => factors.iter().sum::<f32>().max(how.least_sum),
            false => 1.0,
        };
        factors
            .iter_mut()
            .for_each(|factor| *factor = *factor / divisor * how.factor);
    }
}

/// The columns with the highest values, of the groups that are kept. `order` has room for all columns, `sums` and `chosen` for a value of each
/// group and for those that are kept.
fn choose(choice: &[f32], [order, chosen]: [&mut [u32]; 2], sums: &mut [f32], ids: &mut [u32]) {
    let size = choice.len() / sums.len().max(1);
    let mut left = choice.len();
    select::count(order);
    if sums.len() > 1 {
        for (sum, group) in sums.iter_mut().zip(choice.chunks(size)) {
            let best = &mut [0; 2][..size.min(2)];
            select::count(&mut order[..size]);
            select::highest(group, &mut order[..size], best);
            *sum = best.iter().map(|&column| group[column as usize]).sum();
        }
        select::count(order);
        select::highest(sums, &mut order[..sums.len()], chosen);
        let size = size as u32;
        let columns = chosen.iter().flat_map(|&group| group * size..(group + 1) * size);
        left = chosen.len() * size as usize;
        order.iter_mut().zip(columns).for_each(|(id, column)| *id = column);
    }
    select::highest(choice, &mut order[..left], ids);
}
