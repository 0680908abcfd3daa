//! Shapes of recurrent ops: a state for each sequence, tokens of several sequences.

use super::{At, Inferred, Outputs};
use crate::{DType, GgmlResult};

/// The dimensions of an f32 operand.
fn dims<const N: usize>(at: &At<'_>, input: usize, rule: &'static str) -> GgmlResult<[usize; N]> {
    at.f32(input)?;
    let shape = at.rank(input, N..=N, rule)?;
    Ok(std::array::from_fn(|dim| shape[dim]))
}

/// An f32 operand of one shape.
fn exactly(at: &At<'_>, input: usize, shape: &[usize], rule: &'static str) -> GgmlResult<()> {
    at.f32(input)?;
    let found = &at.inputs[input].shape;
    at.rule(found == shape, rule, found, shape)
}

/// The outputs: one of `shape`, whose first dimension is tokens, and a state for each sequence. The last two operands are the sequence of each
/// token and the slot of each sequence.
fn of_tokens(at: &At<'_>, shape: &[usize]) -> GgmlResult<Outputs> {
    let (sequence, ids) = (at.inputs.len() - 2, at.inputs.len() - 1);
    at.index(sequence)?;
    let found = &at.inputs[sequence].shape;
    at.rule(
        *found == shape[..1],
        "there must be a sequence for each token",
        found,
        &shape[..1],
    )?;
    at.index(ids)?;
    at.rank(ids, 1..=1, "ids must be [sequences]")?;
    let state = &at.inputs[0].shape;
    at.rule(!state[1..].contains(&0), "a state must have elements", state, &[])?;
    let states = [&[at.inputs[ids].element_count()], &state[1..]].concat();
    let outputs = [shape.to_vec(), states].map(|shape| Inferred::Exact(shape, DType::F32));
    Ok(outputs.into_iter().collect())
}

/// `state [slots, channels, taps - 1]`, `x [n, channels]`, `weight [channels, taps]`.
pub(super) fn conv(at: &At<'_>) -> GgmlResult<Outputs> {
    at.arity(5..=5, "state, x, weight, sequence, ids and 2 outputs")?;
    let [_, channels, before] = dims(at, 0, "the state must be [slots, channels, taps - 1]")?;
    let [tokens, own] = dims(at, 1, "x must be [tokens, channels]")?;
    let rule = "x and the state must have as many channels";
    at.rule(own == channels, rule, &at.inputs[0].shape, &at.inputs[1].shape)?;
    let rule = "the weight must be [channels, taps], one tap more than the state has inputs";
    exactly(at, 2, &[channels, before.saturating_add(1)], rule)?;
    of_tokens(at, &[tokens, channels])
}

/// `state [slots, heads, dim, n_state]`, `x [n, heads, dim]`, `dt [n, heads]`, `a [heads, 1 or n_state]`, `b`, `c [n, groups, n_state]`.
pub(super) fn scan(at: &At<'_>) -> GgmlResult<Outputs> {
    at.arity(8..=8, "state, x, dt, a, b, c, sequence, ids and 2 outputs")?;
    let [_, heads, dim, n_state] = dims(at, 0, "the state must be [slots, heads, dim, n_state]")?;
    let [tokens, ..] = dims::<3>(at, 1, "x must be [tokens, heads, dim]")?;
    exactly(at, 1, &[tokens, heads, dim], "x must have the state's heads")?;
    exactly(at, 2, &[tokens, heads], "dt must be [tokens, heads]")?;
    let [own, decays] = dims(at, 3, "a must be [heads, 1 or n_state]")?;
    let fits = own == heads && (decays == 1 || decays == n_state);
    let rule = "a must be [heads, 1 or n_state]";
    at.rule(fits, rule, &at.inputs[3].shape, &at.inputs[0].shape)?;
    let [_, groups, _] = dims::<3>(at, 4, "b must be [tokens, groups, n_state]")?;
    let fits = groups > 0 && heads.is_multiple_of(groups);
    let rule = "the groups of b must divide the heads";
    at.rule(fits, rule, &at.inputs[4].shape, &at.inputs[0].shape)?;
    for input in [4, 5] {
        exactly(
            at,
            input,
            &[tokens, groups, n_state],
            "b and c must be [tokens, groups, n_state]",
        )?;
    }
    of_tokens(at, &[tokens, heads, dim])
}

/// `state [slots, heads, dim_v, dim_k]`, `q`, `k [n, k_heads, dim_k]`, `v [n, heads, dim_v]`, `g [n, heads, 1 or dim_k]`, `beta [n, heads]`.
pub(super) fn delta_net(at: &At<'_>) -> GgmlResult<Outputs> {
    at.arity(8..=8, "state, q, k, v, g, beta, sequence, ids and 2 outputs")?;
    let [_, heads, dim_v, dim_k] = dims(at, 0, "the state must be [slots, heads, dim_v, dim_k]")?;
    let [tokens, k_heads, _] = dims(at, 1, "q must be [tokens, k_heads, dim_k]")?;
    for input in [1, 2] {
        exactly(
            at,
            input,
            &[tokens, k_heads, dim_k],
            "q and k must be [tokens, k_heads, dim_k]",
        )?;
    }
    let fits = k_heads > 0 && heads.is_multiple_of(k_heads);
    let rule = "the heads of q and k must divide the heads";
    at.rule(fits, rule, &at.inputs[1].shape, &at.inputs[0].shape)?;
    exactly(at, 3, &[tokens, heads, dim_v], "v must be [tokens, heads, dim_v]")?;
    let [.., gates] = dims::<3>(at, 4, "g must be [tokens, heads, 1 or dim_k]")?;
    let gates = if gates == 1 { 1 } else { dim_k };
    exactly(at, 4, &[tokens, heads, gates], "g must be [tokens, heads, 1 or dim_k]")?;
    exactly(at, 5, &[tokens, heads], "beta must be [tokens, heads]")?;
    of_tokens(at, &[tokens, heads, dim_v])
}

/// `state [slots, heads, dim_v, dim_k]`, `x [n, 2 k_heads dim_k + heads dim_v]`, `beta`, `alpha [n, heads]`, `step`, `rate [heads]`.
pub(super) fn delta_net_rows(at: &At<'_>, eps: f32) -> GgmlResult<Outputs> {
    at.not_negative("eps", eps)?;
    at.arity(8..=8, "state, x, beta, alpha, step, rate, sequence, ids and 2 outputs")?;
    let [_, heads, dim_v, dim_k] = dims(at, 0, "the state must be [slots, heads, dim_v, dim_k]")?;
    let [tokens, channels] = dims(at, 1, "x must be [tokens, 2 k_heads dim_k + heads dim_v]")?;
    let k_heads = key_heads(channels, [heads, dim_v, dim_k]);
    let rule = "x must be [tokens, 2 k_heads dim_k + heads dim_v], where k_heads divide the heads";
    let fits = k_heads.is_some_and(|k_heads| heads.is_multiple_of(k_heads));
    at.rule(fits, rule, &at.inputs[1].shape, &at.inputs[0].shape)?;
    for input in [2, 3] {
        exactly(at, input, &[tokens, heads], "beta and alpha must be [tokens, heads]")?;
    }
    for input in [4, 5] {
        exactly(at, input, &[heads], "step and rate must be [heads]")?;
    }
    of_tokens(at, &[tokens, heads, dim_v])
}

/// Heads of queries and keys in a row of so many channels; `None` where there is no channel of them, or where the channels do not divide into heads.
pub(crate) fn key_heads(channels: usize, [heads, dim_v, dim_k]: [usize; 3]) -> Option<usize> {
    let keys = channels.checked_sub(heads.checked_mul(dim_v)?)?;
    let each = dim_k
        .checked_mul(2)
        .filter(|&each| each > 0 && keys.is_multiple_of(each))?;
    Some(keys / each).filter(|&k_heads| k_heads > 0)
}
