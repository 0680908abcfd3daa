//! Recurrent layers: a state for each sequence, which its tokens change one after the other.

use crate::check::Check;
use crate::declared::{Call, Declared};
use crate::launch::Launch;
use crate::{Faults, KernelResult, Kernels, geometry};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchConfig};

pub(super) const DECLARED: &[Declared] = &[CONV, DELTA_NET, DELTA_NET_GATES, SCAN, SCAN_RATES];

/// Tokens of several sequences. Those of one sequence are in their order.
#[derive(Debug, Clone, Copy)]
pub struct Sequences<'a> {
    /// The sequence of each token.
    pub of_tokens: &'a HipBuffer<u32>,
    /// The slot of the state that each sequence begins with.
    pub slots: &'a HipBuffer<u32>,
    /// Tokens, sequences, and slots of states.
    pub shape: [usize; 3],
}

/// States: a matrix `[dim, cols]` for each head, in a slot; and those of each sequence after its tokens.
#[derive(Debug, Clone, Copy)]
pub struct States<'a> {
    /// `[slots, heads, dim, cols]`.
    pub before: &'a HipBuffer<f32>,
    /// `[sequences, heads, dim, cols]`.
    pub after: &'a HipBuffer<f32>,
    /// Heads, rows and columns of a matrix.
    pub shape: [usize; 3],
}

/// Slots of the states before that take the states after, which then are not in `after`. Where one is a slot that a sequence begins with, the results are the
/// same, and slower to get.
#[derive(Debug, Clone, Copy)]
pub struct StateSlots<'a> {
    /// A slot for each of at most [`Kernels::MAX_IN_PLACE`] sequences, no two the same.
    pub slots: &'a HipBuffer<u32>,
    /// The tag, at most 4095, of the fault of a slot that is out of range.
    pub tag: u32,
}

/// `Tokens` of include/recurrent.h.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
pub(super) struct Tokens {
    tokens: u32,
    pub(super) sequences: u32,
    slots: u32,
}

/// Operands of a convolution over the last inputs of each channel.
#[derive(Debug, Clone, Copy)]
pub struct SsmConv<'a> {
    /// The last inputs before the step, the oldest first, `[slots, channels, taps - 1]`.
    pub state: &'a HipBuffer<f32>,
    /// `[tokens, channels]`.
    pub x: &'a HipBuffer<f32>,
    /// `[channels, taps]`.
    pub weight: &'a HipBuffer<f32>,
    /// `[tokens, channels]`.
    pub out: &'a HipBuffer<f32>,
    /// The last inputs after the step, `[sequences, channels, taps - 1]`.
    pub after: &'a HipBuffer<f32>,
    /// Where the inputs after the step go in `state`, if they do.
    pub into: Option<StateSlots<'a>>,
    /// Channels and taps.
    pub shape: [usize; 2],
}

/// Operands of a gated delta rule.
#[derive(Debug, Clone, Copy)]
pub struct DeltaNet<'a> {
    /// Queries, `[tokens, k_heads, cols]`.
    pub q: &'a HipBuffer<f32>,
    /// Keys, of the same shape.
    pub k: &'a HipBuffer<f32>,
    /// Values, `[tokens, heads, dim]`.
    pub v: &'a HipBuffer<f32>,
    /// Logarithms of the decay, `[tokens, heads, gates]`.
    pub g: &'a HipBuffer<f32>,
    /// Factor on the correction `v - S k` of a state, `[tokens, heads]`.
    pub beta: &'a HipBuffer<f32>,
    /// `[tokens, heads, dim]`.
    pub out: &'a HipBuffer<f32>,
    /// Heads of queries and keys, which value heads have in turn; and gates: 1, or one for each column.
    pub shape: [usize; 2],
}

/// Operands of a selective scan.
#[derive(Debug, Clone, Copy)]
pub struct SsmScan<'a> {
    /// `[tokens, heads, dim]`.
    pub x: &'a HipBuffer<f32>,
    /// Steps before their softplus, `[tokens, heads]`.
    pub dt: &'a HipBuffer<f32>,
    /// Rates, `[heads, rates]`.
    pub a: &'a HipBuffer<f32>,
    /// What an input adds, `[tokens, groups, cols]`.
    pub b: &'a HipBuffer<f32>,
    /// What is read of the state, of the same shape.
    pub c: &'a HipBuffer<f32>,
    /// `[tokens, heads, dim]`.
    pub out: &'a HipBuffer<f32>,
    /// Groups of neighbouring heads; and rates of a head: 1, or one for each column.
    pub shape: [usize; 2],
}

impl Kernels {
    /// The most sequences whose states are written into their slots.
    pub const MAX_IN_PLACE: usize = 256;
    /// The most columns of a state that [`delta_net_rows`](Self::delta_net_rows) writes into its slot.
    pub const MAX_IN_PLACE_COLS: usize = 128;
    /// The most columns of a state's matrix.
    pub const MAX_STATE_COLS: usize = 256;

    /// `out[t, c] = sum_i weight[c, i] * seen[i]`, where `seen` are the last `taps` inputs of channel c in the token's sequence, its own last.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, fewer than 2 taps, more than 65535 tokens and sequences, slots for more than [`MAX_IN_PLACE`](Self::MAX_IN_PLACE) sequences, a tag over 4095. A sequence or a slot out of
    /// range is a fault, and nothing is written for it.
    pub fn ssm_conv(
        &self,
        stream: &HipStream,
        operands: SsmConv<'_>,
        sequences: Sequences<'_>,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("ssm_conv");
        let ([channels, taps], [tokens, count, slots]) = (operands.shape, sequences.shape);
        let of = tokens_of(op.check(), sequences)?;
        let [c, t] = op.dims([("channels", channels), ("taps", taps)])?;
        let kept = op.dim("taps - 1", taps - 1)? as usize;
        op.dim_to("tokens + sequences", tokens.saturating_add(count), 65535)?;
        // Neighbouring tokens are mostly of one sequence: a thread then reads an input once for all of them.
        let each = (of.tokens / of.sequences).clamp(1, CONV_TOKENS);
        let grid = [c.div_ceil(BLOCK), of.tokens.div_ceil(each) + of.sequences, 1];
        let op = state_of(op, operands.state, operands.into, &[slots, channels, kept])?
            .read("x", operands.x, &[tokens, channels])?
            .read("weight", operands.weight, &[channels, taps])?;
        into_slots(op, operands.into, sequences)?
            .write("out", operands.out, &[tokens, channels], &[])?
            .write("after", operands.after, &[count, channels, kept], &[])?
            .values([c, t, each])
            .value(of)
            .faults(faults)?
            .value(operands.into.map_or(0, |into| into.tag))
            .run(stream, "recurrent", ("ssm_conv", geometry::config(grid, BLOCK)))
    }

    /// For each token and head: the state S decays by `exp(g)`, then `S += (v - S k) beta k^T`; the result is `S q scale`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, more than [`MAX_STATE_COLS`](Self::MAX_STATE_COLS) columns, heads of keys that do not divide the
    /// heads, gates that are neither 1 nor the columns, more than 65535 sequences, a `scale` that is not finite, a tag over 4095. A sequence or a slot out
    /// of range is a fault, and nothing is written for it.
    pub fn delta_net(
        &self,
        stream: &HipStream,
        operands: DeltaNet<'_>,
        states: States<'_>,
        scale: f32,
        sequences: Sequences<'_>,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("delta_net");
        let ([heads, dim, cols], [tokens, ..]) = (states.shape, sequences.shape);
        let [k_heads, gates] = operands.shape;
        let of = tokens_of(op.check(), sequences)?;
        let [h, kh, d, e] = op.dims([("heads", heads), ("k_heads", k_heads), ("dim", dim), ("gates", gates)])?;
        let c = op.dim_to("cols", cols, Self::MAX_STATE_COLS)?;
        op.divides("the heads of keys must divide the heads", k_heads, heads)?;
        one_or_each(op.check(), "gates must be 1 or cols", gates, cols)?;
        op.value_of("scale", scale, scale.is_finite(), "finite")?;
        let name = if cols <= 128 { "delta_net_128" } else { "delta_net_256" };
        let keys = [tokens, k_heads, cols];
        let op = op
            .read("state", states.before, &[sequences.shape[2], heads, dim, cols])?
            .read("q", operands.q, &keys)?
            .read("k", operands.k, &keys)?
            .read("v", operands.v, &[tokens, heads, dim])?
            .read("g", operands.g, &[tokens, heads, gates])?
            .read("beta", operands.beta, &[tokens, heads])?;
        results(op, operands.out, states, sequences)?
            .values([h, kh, d, c, e])
            .value(scale)
            .value(of)
            .faults(faults)?
            .run(stream, "recurrent", (name, over_tokens(h, d, of)))
    }

    /// For each token and head, with `s = softplus(dt)`: the state S decays by `exp(s a)`, then `S += s x b^T`; the result is `S c`.
    ///
    /// # Errors
    ///
    /// As [`delta_net`](Self::delta_net), for groups and rates.
    pub fn ssm_scan(
        &self,
        stream: &HipStream,
        operands: SsmScan<'_>,
        states: States<'_>,
        sequences: Sequences<'_>,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("ssm_scan");
        let ([_, _, cols], rates) = (states.shape, operands.shape[1]);
        let (of, [h, gr, d, c]) = scan_dims(op.check(), operands, states, sequences, Rule::Tokens)?;
        let r = op.dim("rates", rates)?;
        one_or_each(op.check(), "rates must be 1 or cols", rates, cols)?;
        let name = match cols {
            ..=32 => "ssm_scan_32",
            33..=128 => "ssm_scan_128",
            _ => "ssm_scan_256",
        };
        let ([heads, dim, _], [tokens, _, slots]) = (states.shape, sequences.shape);
        let of_group = [tokens, operands.shape[0], cols];
        let op = op
            .read("state", states.before, &[slots, heads, dim, cols])?
            .read("x", operands.x, &[tokens, heads, dim])?
            .read("dt", operands.dt, &[tokens, heads])?
            .read("a", operands.a, &[heads, rates])?
            .read("b", operands.b, &of_group)?
            .read("c", operands.c, &of_group)?;
        results(op, operands.out, states, sequences)?
            .values([h, gr, d, c, r])
            .value(of)
            .faults(faults)?
            .run(stream, "recurrent", (name, over_tokens(h, d, of)))
    }
}

/// Tokens, and heads, groups, rows and columns of the states of a scan.
pub(super) fn scan_dims(
    op: Check,
    operands: SsmScan<'_>,
    states: States<'_>,
    sequences: Sequences<'_>,
    rule: Rule,
) -> KernelResult<(Tokens, [u32; 4])> {
    let ([heads, dim, cols], groups) = (states.shape, operands.shape[0]);
    let of = tokens_of(op, sequences)?;
    let [h, gr, d] = [("heads", heads), ("groups", groups), ("dim", dim)].map(|(name, n)| op.dim(name, n));
    let c = op.dim_to("cols", cols, rule.most_cols())?;
    let dims = [h?, gr?, d?, c];
    op.divides("the groups must divide the heads", groups, heads)?;
    Ok((of, dims))
}

/// How the tokens of a sequence are taken.
#[derive(Debug, Clone, Copy)]
pub(super) enum Rule {
    /// One after the other.
    Tokens,
    /// 16 at a time.
    Chunks,
}

impl Rule {
    /// The most columns of a state.
    pub(super) const fn most_cols(self) -> usize {
        match self {
            Self::Tokens => Kernels::MAX_STATE_COLS,
            Self::Chunks => Kernels::MAX_CHUNK_COLS,
        }
    }

    /// Blocks of a sequence, each with so many rows of a head's state.
    pub(super) fn blocks(self, op: Check, heads: usize, rows: u32) -> KernelResult<u32> {
        let each = match self {
            Self::Tokens => 8,
            // RF_CHUNK_VALUES of recurrent16.hip.
            Self::Chunks => 64,
        };
        op.dim("blocks", op.elements("blocks", &[heads, rows.div_ceil(each) as usize])?)
    }
}

const BLOCK: u32 = 256;
/// The most tokens of a block of the convolution.
const CONV_TOKENS: u32 = 16;

/// Blocks of 8 rows, for each sequence.
fn over_tokens(heads: u32, dim: u32, of: Tokens) -> LaunchConfig {
    let rows = u64::from(heads) * u64::from(dim);
    let blocks = u32::try_from(rows.div_ceil(8)).unwrap_or(u32::MAX);
    geometry::config([blocks, of.sequences, 1], BLOCK)
}

pub(super) fn tokens_of(op: Check, sequences: Sequences<'_>) -> KernelResult<Tokens> {
    let [tokens, count, slots] = sequences.shape;
    Ok(Tokens {
        tokens: op.dim("tokens", tokens)?,
        sequences: op.dim_to("sequences", count, 65535)?,
        slots: op.dim("slots", slots)?,
    })
}

fn one_or_each(op: Check, what: &'static str, number: usize, cols: usize) -> KernelResult<()> {
    op.holds(number == 1 || number == cols, what, number, cols)
}

/// The states before, which the kernel also writes if those after go into their slots.
pub(super) fn state_of<'k, 'a>(
    op: Launch<'k, 'a>,
    state: &'a HipBuffer<f32>,
    into: Option<StateSlots<'a>>,
    shape: &[usize],
) -> KernelResult<Launch<'k, 'a>> {
    match into {
        Some(_) => op.write("state", state, shape, &[]),
        None => op.read("state", state, shape),
    }
}

/// The sequence of each token, the slots of the states before, and those of the states after.
pub(super) fn into_slots<'k, 'a>(
    op: Launch<'k, 'a>,
    into: Option<StateSlots<'a>>,
    sequences: Sequences<'a>,
) -> KernelResult<Launch<'k, 'a>> {
    let [tokens, count, _] = sequences.shape;
    if let Some(into) = into {
        op.dim_to("sequences in place", count, Kernels::MAX_IN_PLACE)?;
        op.check().fault_tag(into.tag)?;
    }
    op.read("sequence", sequences.of_tokens, &[tokens])?
        .read("ids", sequences.slots, &[count])?
        .read_or_null("into", into.map(|into| into.slots), &[count])
}

/// What follows the operands of a rule.
fn results<'k, 'a>(
    op: Launch<'k, 'a>,
    out: &'a HipBuffer<f32>,
    states: States<'a>,
    sequences: Sequences<'a>,
) -> KernelResult<Launch<'k, 'a>> {
    let ([heads, dim, cols], [tokens, count, _]) = (states.shape, sequences.shape);
    op.dim("heads * dim", op.elements("heads * dim", &[heads, dim])?)?;
    op.read("sequence", sequences.of_tokens, &[tokens])?
        .read("ids", sequences.slots, &[count])?
        .write("out", out, &[tokens, heads, dim], &[])?
        .write("after", states.after, &[count, heads, dim, cols], &[])
}

/// Tokens, sequences, channels, taps.
const CONV: Declared = Declared {
    name: "ssm_conv",
    call: |c, dims| {
        let &[tokens, count, channels, taps] = dims else {
            return Ok(());
        };
        let of = Order { tokens, count };
        let kept = taps.saturating_sub(1);
        let state = c.input("state", of.slots() * channels * kept, -1.0..1.0)?;
        let x = c.input("x", tokens * channels, -1.0..1.0)?;
        let weight = c.input("weight", channels * taps, -1.0..1.0)?;
        let (sequence, ids) = of.operands(c)?;
        let out = c.output("out", tokens * channels)?;
        let after = c.output("after", count * channels * kept)?;
        let word = c.fault_word()?;
        let operands = SsmConv {
            state: &state,
            x: &x,
            weight: &weight,
            out: &out,
            after: &after,
            into: None,
            shape: [channels, taps],
        };
        let faults = Faults { word: &word, tag: 0 };
        c.kernels
            .ssm_conv(c.stream, operands, of.sequences(&sequence, &ids), faults)?;
        let computed = move |c: &Call<'_>| {
            let mut states = of.begin(c.f32("state"), channels * kept);
            let (x, weight) = (c.f32("x"), c.f32("weight"));
            let mut out = Vec::new();
            for t in 0..tokens {
                let state = &mut states[of.sequence(t)];
                for channel in 0..channels {
                    let seen = &mut state[channel * kept..][..kept];
                    let mut all = seen.to_vec();
                    all.push(x[t * channels + channel].into());
                    let weight = &weight[channel * taps..][..taps];
                    out.push(all.iter().zip(weight).map(|(x, &w)| x * f64::from(w)).sum());
                    seen.copy_from_slice(&all[1..]);
                }
            }
            (out, states.concat())
        };
        c.expect("out", 1e-5, |c| computed(c).0);
        c.expect("after", 0.0, |c| computed(c).1);
        Ok(())
    },
    tested: &[
        &[1, 1, 1, 2],
        &[7, 2, 33, 4],
        &[5, 5, 300, 3],
        &[13, 3, 257, 4],
        &[40, 4, 64, 9],
        &[37, 1, 130, 4],
        &[50, 1, 5, 3],
        &[20, 1, 3, 2],
    ],
    counted: &[&[64, 1, 512, 4], &[16, 16, 512, 4]],
    ..Declared::NEW
};

/// Tokens, sequences, heads, heads of keys, rows and columns of a state.
const DELTA_NET: Declared = Declared {
    name: "delta_net",
    call: |c, dims| delta_net(c, dims, false),
    tested: &[
        &[1, 1, 1, 1, 1, 1],
        &[7, 2, 4, 2, 5, 33],
        &[5, 5, 2, 1, 16, 128],
        &[9, 3, 3, 3, 7, 129],
        &[6, 1, 2, 2, 8, 256],
    ],
    counted: &[&[16, 1, 4, 2, 128, 128], &[8, 8, 2, 2, 64, 64], &[8, 1, 2, 2, 16, 256]],
    ..Declared::NEW
};
const DELTA_NET_GATES: Declared = Declared {
    call: |c, dims| delta_net(c, dims, true),
    counted: &[],
    ..DELTA_NET
};

fn delta_net(c: &mut Call<'_>, dims: &[usize], each: bool) -> KernelResult<()> {
    let &[tokens, count, heads, k_heads, dim, cols] = dims else {
        return Ok(());
    };
    let (of, gates) = (Order { tokens, count }, if each { cols } else { 1 });
    // Keys of about length 1, so that the state stays small.
    let part = 1.0 / (cols as f32).sqrt();
    let state = c.input("state", of.slots() * heads * dim * cols, -1.0..1.0)?;
    let q = c.input("q", tokens * k_heads * cols, -1.0..1.0)?;
    let k = c.input("k", tokens * k_heads * cols, -part..part)?;
    let v = c.input("v", tokens * heads * dim, -1.0..1.0)?;
    let g = c.input("g", tokens * heads * gates, -0.5..0.0)?;
    let beta = c.input("beta", tokens * heads, 0.0..1.0)?;
    let with = of.written(c, [heads, dim, cols])?;
    let operands = DeltaNet {
        q: &q,
        k: &k,
        v: &v,
        g: &g,
        beta: &beta,
        out: &with.out,
        shape: [k_heads, gates],
    };
    let (states, sequences, faults) = with.operands(&state);
    c.kernels
        .delta_net(c.stream, operands, states, part, sequences, faults)?;
    expect(c, Rule::Tokens, move |c| {
        let float = |name, at: usize| f64::from(c.f32(name)[at]);
        of.run(c.f32("state"), [heads, dim, cols], |row, t, head, element| {
            let (own, key) = (t * heads + head, (t * k_heads + head % k_heads) * cols);
            for (at, s) in row.iter_mut().enumerate() {
                *s *= float("g", own * gates + if each { at } else { 0 }).exp();
            }
            let dot =
                |row: &[f64], name| -> f64 { row.iter().enumerate().map(|(at, s)| s * float(name, key + at)).sum() };
            let delta = (float("v", own * dim + element) - dot(row, "k")) * float("beta", own);
            for (at, s) in row.iter_mut().enumerate() {
                *s += delta * float("k", key + at);
            }
            dot(row, "q") * f64::from(part)
        })
    });
    Ok(())
}

/// Tokens, sequences, heads, groups, rows and columns of a state.
const SCAN: Declared = Declared {
    name: "ssm_scan",
    call: |c, dims| ssm_scan(c, dims, false, Rule::Tokens),
    tested: &[
        &[1, 1, 1, 1, 1, 1],
        &[7, 2, 4, 2, 5, 16],
        &[5, 5, 2, 1, 16, 128],
        &[9, 3, 33, 3, 1, 31],
        &[6, 1, 2, 2, 8, 256],
    ],
    counted: &[&[16, 1, 4, 2, 64, 128], &[8, 8, 64, 1, 1, 16], &[8, 1, 2, 2, 16, 256]],
    ..Declared::NEW
};
const SCAN_RATES: Declared = Declared {
    call: |c, dims| ssm_scan(c, dims, true, Rule::Tokens),
    counted: &[],
    ..SCAN
};

/// A call of either launcher.
pub(super) fn ssm_scan(c: &mut Call<'_>, dims: &[usize], each: bool, rule: Rule) -> KernelResult<()> {
    let &[tokens, count, heads, groups, dim, cols] = dims else {
        return Ok(());
    };
    let (of, rates) = (Order { tokens, count }, if each { cols } else { 1 });
    let state = c.input("state", of.slots() * heads * dim * cols, -1.0..1.0)?;
    let x = c.input("x", tokens * heads * dim, -1.0..1.0)?;
    let dt = c.input("dt", tokens * heads, -2.0..1.0)?;
    let a = c.input("a", heads * rates, -1.0..-0.1)?;
    let b = c.input("b", tokens * groups * cols, -1.0..1.0)?;
    let read = c.input("c", tokens * groups * cols, -1.0..1.0)?;
    let with = of.written(c, [heads, dim, cols])?;
    let operands = SsmScan {
        x: &x,
        dt: &dt,
        a: &a,
        b: &b,
        c: &read,
        out: &with.out,
        shape: [groups, rates],
    };
    let (states, sequences, faults) = with.operands(&state);
    match rule {
        Rule::Tokens => c.kernels.ssm_scan(c.stream, operands, states, sequences, faults),
        Rule::Chunks => c.kernels.ssm_scan16(c.stream, operands, states, sequences, faults),
    }?;
    expect(c, rule, move |c| {
        let float = |name, at: usize| f64::from(c.f32(name)[at]);
        of.run(c.f32("state"), [heads, dim, cols], |row, t, head, element| {
            let own = t * heads + head;
            let (step, group) = (
                float("dt", own).exp().ln_1p(),
                (t * groups + head / (heads / groups)) * cols,
            );
            let mut sum = 0.0;
            for (at, s) in row.iter_mut().enumerate() {
                let rate = float("a", head * rates + if each { at } else { 0 });
                *s = *s * (step * rate).exp() + float("x", own * dim + element) * step * float("b", group + at);
                sum += *s * float("c", group + at);
            }
            sum
        })
    });
    Ok(())
}

/// What a rule reads behind its operands, and what it writes.
pub(super) struct Written {
    of: Order,
    shape: [usize; 3],
    sequence: HipBuffer<u32>,
    ids: HipBuffer<u32>,
    pub(super) out: HipBuffer<f32>,
    after: HipBuffer<f32>,
    word: HipBuffer<u64>,
}

impl Written {
    /// With the states before: operands of the launcher.
    pub(super) fn operands<'a>(&'a self, state: &'a HipBuffer<f32>) -> (States<'a>, Sequences<'a>, Faults<'a>) {
        let states = States {
            before: state,
            after: &self.after,
            shape: self.shape,
        };
        let sequences = self.of.sequences(&self.sequence, &self.ids);
        let word = &self.word;
        (states, sequences, Faults { word, tag: 0 })
    }
}

/// What a rule must give: results and states.
pub(super) fn expect(c: &mut Call<'_>, rule: Rule, computed: impl Fn(&Call<'_>) -> (Vec<f64>, Vec<f64>)) {
    let within = |values: Vec<f64>| {
        let largest = values.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        // Products of f32, and of operands that are rounded to 11 bits.
        let within = match rule {
            Rule::Tokens => 2e-5,
            Rule::Chunks => largest / 1000.0,
        };
        (within, values)
    };
    c.expect_within("out", |c| within(computed(c).0));
    c.expect_within("after", |c| within(computed(c).1));
}

/// Tokens of the sequences in turn, and states in every other slot, the last sequence's first.
#[derive(Clone, Copy)]
pub(super) struct Order {
    pub(super) tokens: usize,
    pub(super) count: usize,
}

impl Order {
    fn sequence(self, token: usize) -> usize {
        token % self.count.max(1)
    }

    pub(super) fn slots(self) -> usize {
        2 * self.count + 1
    }

    /// The last operands of a rule over states of `[heads, dim, cols]`.
    pub(super) fn written(self, c: &mut Call<'_>, shape: [usize; 3]) -> KernelResult<Written> {
        let [heads, dim, cols] = shape;
        let (sequence, ids) = self.operands(c)?;
        Ok(Written {
            of: self,
            shape,
            sequence,
            ids,
            out: c.output("out", self.tokens * heads * dim)?,
            after: c.output("after", self.count * heads * dim * cols)?,
            word: c.fault_word()?,
        })
    }

    fn operands(self, c: &mut Call<'_>) -> KernelResult<(HipBuffer<u32>, HipBuffer<u32>)> {
        let sequence = (0..self.tokens).map(|t| self.sequence(t) as u32).collect();
        let ids = (0..self.count as u32).rev().map(|s| 2 * s + 1).collect();
        Ok((c.words("sequence", sequence)?, c.words("ids", ids)?))
    }

    fn sequences<'a>(self, of_tokens: &'a HipBuffer<u32>, slots: &'a HipBuffer<u32>) -> Sequences<'a> {
        Sequences {
            of_tokens,
            slots,
            shape: [self.tokens, self.count, self.slots()],
        }
    }

    /// The states that the sequences begin with.
    fn begin(self, states: &[f32], len: usize) -> Vec<Vec<f64>> {
        let slot = |s: usize| 2 * (self.count - 1 - s) + 1;
        let of = |s| states[slot(s) * len..][..len].iter().map(|&x| x.into()).collect();
        (0..self.count).map(of).collect()
    }

    /// Results and states, in f64, of a rule that changes a row of the state by a token, a head and an element of it.
    pub(super) fn run(
        self,
        states: &[f32],
        [heads, dim, cols]: [usize; 3],
        mut step: impl FnMut(&mut [f64], usize, usize, usize) -> f64,
    ) -> (Vec<f64>, Vec<f64>) {
        let (mut states, mut out) = (self.begin(states, heads * dim * cols), Vec::new());
        for t in 0..self.tokens {
            let rows = states[self.sequence(t)].chunks_mut(cols);
            out.extend(rows.enumerate().map(|(at, row)| step(row, t, at / dim, at % dim)));
        }
        (out, states.concat())
    }
}
