//! Recurrent ops: SSM_CONV, SSM_SCAN, GATED_DELTA_NET. Token after token; the heads (channels) of a token are shared out to threads.

use super::operand::Operand;
use super::threads::Threads;
use super::unary::function;
use crate::Unary;

/// SSM_CONV: the results, and the state of each sequence after its tokens.
pub(super) fn conv(inputs: &[Operand<'_>], [out, states]: [&mut [f32]; 2], threads: &Threads) {
    let [_, x, weights, ..] = inputs else { return };
    let (x, taps) = (x.f32(), weights.shape[1]);
    let (weights, tokens) = (weights.f32(), Tokens::new(inputs, states, threads));
    tokens.each_head(out, states, |token, channel, state, out| {
        let x = x[token * tokens.heads + channel];
        let weight = &weights[channel * taps..][..taps];
        out[0] = dot(state, weight) + x * weight[taps - 1];
        state.copy_within(1.., 0);
        state[taps - 2] = x;
    });
}

/// SSM_SCAN: as [`conv`].
pub(super) fn scan(inputs: &[Operand<'_>], [out, states]: [&mut [f32]; 2], threads: &Threads) {
    let [_, x, dt, a, b, c, ..] = inputs else { return };
    let (decays, groups, n) = (a.shape[1], b.shape[1], b.shape[2]);
    let [x, dt, a, b, c] = [x, dt, a, b, c].map(Operand::f32);
    let softplus = function(Unary::Softplus);
    let tokens = Tokens::new(inputs, states, threads);
    let heads = tokens.heads;
    tokens.each_head(out, states, |token, head, state, out| {
        let row = token * heads + head;
        let group = (token * groups + head / (heads / groups)) * n;
        let (b, c) = (&b[group..][..n], &c[group..][..n]);
        let (dt, a) = (softplus(dt[row]), &a[head * decays..][..decays]);
        // One for all elements of Mamba 2's states.
        let decay = (dt * a[0]).exp();
        let x = &x[row * out.len()..];
        for ((out, &x), state) in out.iter_mut().zip(x).zip(state.chunks_mut(n)) {
            let mut sum = 0.0;
            for (i, s) in state.iter_mut().enumerate() {
                let decay = if decays == 1 { decay } else { (dt * a[i]).exp() };
                *s = *s * decay + x * dt * b[i];
                sum += *s * c[i];
            }
            *out = sum;
        }
    });
}

/// GATED_DELTA_NET: as [`conv`].
pub(super) fn delta_net(inputs: &[Operand<'_>], [out, states]: [&mut [f32]; 2], threads: &Threads) {
    let [_, q, k, v, g, beta, ..] = inputs else { return };
    let (k_heads, n, gates) = (q.shape[1], q.shape[2], g.shape[2]);
    let decays = g.scratch().take(g.count());
    let [q, k, v, g, beta] = [q, k, v, g, beta].map(Operand::f32);
    let scale = 1.0 / (n as f32).sqrt();
    decays.iter_mut().zip(g).for_each(|(decay, g)| *decay = g.exp());
    let (decays, tokens) = (&*decays, Tokens::new(inputs, states, threads));
    tokens.each_head(out, states, |token, head, state, out| {
        let row = token * tokens.heads + head;
        let key = (token * k_heads + head % k_heads) * n;
        let (q, k) = (&q[key..][..n], &k[key..][..n]);
        let (beta, decays) = (beta[row], &decays[row * gates..][..gates]);
        let v = &v[row * out.len()..];
        for ((out, &v), state) in out.iter_mut().zip(v).zip(state.chunks_mut(n)) {
            let decays = decays.iter().cycle();
            state.iter_mut().zip(decays).for_each(|(s, decay)| *s *= decay);
            let delta = (v - dot(state, k)) * beta;
            state.iter_mut().zip(k).for_each(|(s, k)| *s += k * delta);
            *out = dot(state, q) * scale;
        }
    });
}

/// DELTA_NET_ROWS: as [`conv`].
pub(super) fn delta_net_rows(
    inputs: &[Operand<'_>],
    (eps, neighbours): (f32, bool),
    [out, states]: [&mut [f32]; 2],
    threads: &Threads,
) {
    let [state, x, beta, alpha, step, rate, ..] = inputs else {
        return;
    };
    let (channels, n) = (x.shape[1], state.shape[3]);
    let [x, beta, alpha, step, rate] = [x, beta, alpha, step, rate].map(Operand::f32);
    let [silu, sigmoid, softplus] = [Unary::Silu, Unary::Sigmoid, Unary::Softplus].map(function);
    let tokens = Tokens::new(inputs, states, threads);
    let heads = tokens.heads;
    let direction = |from: &[f32], scale: f32| -> Vec<f32> {
        let mut v: Vec<f32> = from.iter().map(|&x| silu(x)).collect();
        let factor = scale / (dot(&v, &v) + eps).sqrt();
        v.iter_mut().for_each(|x| *x *= factor);
        v
    };
    tokens.each_head(out, states, |token, head, state, out| {
        let (row, at) = (token * heads + head, token * channels);
        // What is not values is queries and keys.
        let values = channels - heads * out.len();
        let k_heads = values / (2 * n);
        let key = n * if neighbours {
            head / (heads / k_heads)
        } else {
            head % k_heads
        };
        let q = direction(&x[at + key..][..n], 1.0 / (n as f32).sqrt());
        let k = direction(&x[at + values / 2 + key..][..n], 1.0);
        let decay = (softplus(alpha[row] + step[head]) * rate[head]).exp();
        let beta = sigmoid(beta[row]);
        let v = &x[at + values + head * out.len()..];
        for ((out, &v), state) in out.iter_mut().zip(v).zip(state.chunks_mut(n)) {
            state.iter_mut().for_each(|s| *s *= decay);
            let delta = (silu(v) - dot(state, &k)) * beta;
            state.iter_mut().zip(&k).for_each(|(s, k)| *s += k * delta);
            *out = dot(state, &q);
        }
    });
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Tokens, the row of the states of each, and the heads and length of a state.
struct Tokens<'a> {
    sequence: &'a [u32],
    heads: usize,
    len: usize,
    threads: &'a Threads,
}

impl<'a> Tokens<'a> {
    /// Those of an op whose first operand is the states and whose last two are indices; `states` begin as the rows that the last one names.
    fn new(inputs: &[Operand<'a>], states: &mut [f32], threads: &'a Threads) -> Self {
        let (state, [sequence, ids]) = (&inputs[0], [2, 1].map(|back| inputs[inputs.len() - back].indices()));
        let (heads, len) = (state.shape[1], state.shape[1..].iter().product::<usize>());
        let old = state.f32();
        for (new, &slot) in states.chunks_mut(len).zip(ids) {
            new.copy_from_slice(&old[slot as usize * len..][..len]);
        }
        Self {
            sequence,
            heads,
            len,
            threads,
        }
    }

    /// `step(token, head, state, out)` for each token and each head of it, with the head's part of its sequence's state and of its result.
    fn each_head(
        &self,
        out: &mut [f32],
        states: &mut [f32],
        step: impl Fn(usize, usize, &mut [f32], &mut [f32]) + Sync,
    ) {
        let &Self {
            sequence,
            heads,
            len,
            threads,
        } = self;
        let Some(width) = out.len().checked_div(sequence.len() * heads) else {
            return;
        };
        let own = len / heads;
        let piece = threads.rows_each(heads, own + width);
        for (token, (out, &sequence)) in out.chunks_mut(width * heads).zip(sequence).enumerate() {
            let state = &mut states[sequence as usize * len..][..len];
            let pieces = state.chunks_mut(piece * own).zip(out.chunks_mut(piece * width));
            let (tasks, nothing) = (pieces.enumerate(), std::iter::repeat(()));
            threads.each(tasks, heads.div_ceil(piece), nothing, |(), (index, (state, out))| {
                let parts = state.chunks_mut(own).zip(out.chunks_mut(width));
                for (head, (state, out)) in (index * piece..).zip(parts) {
                    step(token, head, state, out);
                }
            });
        }
    }
}
