//! The gated delta rule from the rows of a convolution: a layer's function, normalisation and gates in the launch that changes its states.

use super::recurrent::{Order, Rule, Sequences, StateSlots, States, expect, into_slots, state_of, tokens_of};
use crate::declared::{Call, Declared};
use crate::launch::Launch;
use crate::{Faults, KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[IN_TURN, NEIGHBOURS];

/// Operands of a gated delta rule.
#[derive(Debug, Clone, Copy)]
pub struct DeltaNetRows<'a> {
    /// Of each token the queries and keys of `k_heads` heads of `cols`, then the values of all heads, each before its SiLU: `[tokens, 2 k_heads cols + heads dim]`.
    pub x: &'a HipBuffer<f32>,
    /// The factor on the correction of a state, before its sigmoid, `[tokens, heads]`.
    pub beta: &'a HipBuffer<f32>,
    /// The step of a decay without its bias and before its softplus, `[tokens, heads]`.
    pub alpha: &'a HipBuffer<f32>,
    /// That bias, `[heads]`.
    pub step: &'a HipBuffer<f32>,
    /// The rate of a decay, `[heads]`.
    pub rate: &'a HipBuffer<f32>,
    /// `[tokens, heads, dim]`.
    pub out: &'a HipBuffer<f32>,
    /// Heads of queries and keys.
    pub k_heads: usize,
    /// The value heads of one key head are neighbours; else they come in turn.
    pub neighbours: bool,
    /// Added to the square of a length.
    pub eps: f32,
    /// Where the states after go among those before, if they do; for states of up to 128 columns.
    pub into: Option<StateSlots<'a>>,
}

impl Kernels {
    /// For each token and head, with `q` and `k` the SiLU of x divided by their lengths, `|x|^2 = sum x^2 + eps`, and `v` that of x: the state S is multiplied by
    /// `exp(softplus(alpha + step) rate)`, then `S += sigmoid(beta) (v - S k) k^T`; the result is `S q / sqrt(cols)`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, more than [`MAX_STATE_COLS`](Self::MAX_STATE_COLS) columns, heads of keys that do not divide the
    /// heads, more than 65535 sequences, slots for more than [`MAX_IN_PLACE`](Self::MAX_IN_PLACE) or for wider states, an `eps` that is not finite or negative, a tag over 4095. A sequence or a slot out of range is a fault, and nothing is
    /// written for it.
    pub fn delta_net_rows(
        &self,
        stream: &HipStream,
        operands: DeltaNetRows<'_>,
        states: States<'_>,
        sequences: Sequences<'_>,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("delta_net_rows");
        let cols = states.shape[2];
        let fits = operands.into.is_none() || cols <= Self::MAX_IN_PLACE_COLS;
        op.holds(
            fits,
            "states of more than 128 columns are not written into slots",
            cols,
            Self::MAX_IN_PLACE_COLS,
        )?;
        let name = if cols <= 128 {
            "delta_net_rows_128"
        } else {
            "delta_net_rows_256"
        };
        let (op, blocks) = delta_rows(op, operands, states, sequences, faults, Rule::Tokens)?;
        op.run(stream, "recurrent", (name, geometry::config(blocks, 256)))
    }
}

/// Adds the operands, and says how many blocks there are.
pub(super) fn delta_rows<'k, 'a>(
    op: Launch<'k, 'a>,
    operands: DeltaNetRows<'a>,
    states: States<'a>,
    sequences: Sequences<'a>,
    faults: Faults<'a>,
    rule: Rule,
) -> KernelResult<(Launch<'k, 'a>, [u32; 3])> {
    let ([heads, dim, cols], [tokens, count, slots]) = (states.shape, sequences.shape);
    let of = tokens_of(op.check(), sequences)?;
    let k_heads = operands.k_heads;
    let [h, kh, d] = op.dims([("heads", heads), ("k_heads", k_heads), ("dim", dim)])?;
    let c = op.dim_to("cols", cols, rule.most_cols())?;
    op.divides("the heads of keys must divide the heads", k_heads, heads)?;
    let eps = operands.eps;
    op.value_of("eps", eps, eps >= 0.0 && eps.is_finite(), "finite and not negative")?;
    let blocks = rule.blocks(op.check(), heads, d)?;
    let channels = op.elements("channels", &[2 * k_heads, cols])? + op.elements("channels", &[heads, dim])?;
    op.dim("channels", channels)?;
    let mut op = state_of(op, states.before, operands.into, &[slots, heads, dim, cols])?.read(
        "x",
        operands.x,
        &[tokens, channels],
    )?;
    if let Rule::Chunks = rule {
        // What a selective scan has apart from x.
        op = op.null().null();
    }
    let op = op
        .read("beta", operands.beta, &[tokens, heads])?
        .read("alpha", operands.alpha, &[tokens, heads])?
        .read("step", operands.step, &[heads])?
        .read("rate", operands.rate, &[heads])?;
    let op = into_slots(op, operands.into, sequences)?
        .write("out", operands.out, &[tokens, heads, dim], &[])?
        .write("after", states.after, &[count, heads, dim, cols], &[])?
        .values([h, kh, u32::from(operands.neighbours), d, c])
        .values([eps, 1.0 / (cols as f32).sqrt()])
        .value(of)
        .faults(faults)?
        .value(operands.into.map_or(0, |into| into.tag));
    Ok((op, [blocks, of.sequences, 1]))
}

/// Tokens, sequences, heads, heads of keys, rows and columns of a state.
const IN_TURN: Declared = Declared {
    name: "delta_net_rows",
    call: |c, dims| rows(c, dims, false, Rule::Tokens),
    tested: &[
        &[1, 1, 1, 1, 1, 1],
        &[7, 2, 4, 2, 5, 33],
        &[5, 5, 2, 1, 16, 128],
        &[39, 3, 3, 3, 7, 129],
        &[11, 1, 4, 2, 9, 256],
    ],
    counted: &[&[16, 1, 4, 2, 128, 128], &[8, 8, 2, 2, 64, 64], &[8, 1, 2, 2, 16, 256]],
    ..Declared::NEW
};
const NEIGHBOURS: Declared = Declared {
    call: |c, dims| rows(c, dims, true, Rule::Tokens),
    counted: &[],
    ..IN_TURN
};

/// A call of either launcher.
pub(super) fn rows(c: &mut Call<'_>, dims: &[usize], neighbours: bool, rule: Rule) -> KernelResult<()> {
    let &[tokens, count, heads, k_heads, dim, cols] = dims else {
        return Ok(());
    };
    let of = Order { tokens, count };
    let channels = 2 * k_heads * cols + heads * dim;
    let state = c.input("state", of.slots() * heads * dim * cols, -1.0..1.0)?;
    let x = c.input("x", tokens * channels, -2.0..2.0)?;
    let beta = c.input("beta", tokens * heads, -3.0..3.0)?;
    let alpha = c.input("alpha", tokens * heads, -2.0..1.0)?;
    let step = c.input("step", heads, -1.0..1.0)?;
    let rate = c.input("rate", heads, -1.0..-0.1)?;
    let with = of.written(c, [heads, dim, cols])?;
    let eps = 1e-6;
    let operands = DeltaNetRows {
        x: &x,
        beta: &beta,
        alpha: &alpha,
        step: &step,
        rate: &rate,
        out: &with.out,
        k_heads,
        neighbours,
        eps,
        into: None,
    };
    let (states, sequences, faults) = with.operands(&state);
    match rule {
        Rule::Tokens => c.kernels.delta_net_rows(c.stream, operands, states, sequences, faults),
        Rule::Chunks => c
            .kernels
            .delta_net_rows16(c.stream, operands, states, sequences, faults),
    }?;
    expect(c, rule, move |c| {
        let float = |name, at: usize| f64::from(c.f32(name)[at]);
        let silu = |at: usize| float("x", at) / (1.0 + (-float("x", at)).exp());
        let direction = |at: usize| -> Vec<f64> {
            let v: Vec<f64> = (at..at + cols).map(silu).collect();
            let length = (v.iter().map(|x| x * x).sum::<f64>() + f64::from(eps)).sqrt();
            v.iter().map(|x| x / length).collect()
        };
        of.run(c.f32("state"), [heads, dim, cols], |row, t, head, element| {
            let (own, token) = (t * heads + head, t * channels);
            let key_head = if neighbours {
                head / (heads / k_heads)
            } else {
                head % k_heads
            };
            let (q, k) = (
                direction(token + key_head * cols),
                direction(token + (k_heads + key_head) * cols),
            );
            let v = silu(token + 2 * k_heads * cols + head * dim + element);
            let decay = (float("alpha", own) + float("step", head)).exp().ln_1p() * float("rate", head);
            row.iter_mut().for_each(|s| *s *= decay.exp());
            let dot = |row: &[f64], with: &[f64]| -> f64 { row.iter().zip(with).map(|(s, x)| s * x).sum() };
            let delta = (v - dot(row, &k)) / (1.0 + (-float("beta", own)).exp());
            row.iter_mut().zip(&k).for_each(|(s, k)| *s += delta * k);
            dot(row, &q) / (cols as f64).sqrt()
        })
    });
    Ok(())
}
