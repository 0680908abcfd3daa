//! Products of the packed weights of chosen experts with activations of 8 bits.

use super::matvec_q8::{BLOCK, BLOCK_BYTES, PackedWeights, Q8Activations, activations, packed, rounding};
use super::row_input::RowInput;
use crate::check::Check;
use crate::declared::{Again, Call, Declared, by_weight_type};
use crate::{Faults, GluKind, KernelResult, Kernels, WeightType, geometry, reference};
use rocmforge_runtime::{HipBuffer, HipStream, LaunchConfig};

pub(super) const GATED: &[Declared] = by_weight_type!(gated, gated_of, packable);
pub(super) const SUM: &[Declared] = by_weight_type!(sum, sum_of, packable);
pub(super) const PAIRS: &[Declared] = by_weight_type!(pairs, pairs_of, packable);

/// Blocks along the grid's second dimension.
const MAX_ROWS: usize = 65_535;
/// Rows of weights that 32 lanes take together for eight rows of activations: `R` of the kernel.
const PAIRS_GROUP: u32 = 2;
/// The fewest groups for which a block loads eight rows of activations.
const LEAST_GROUPS: u32 = 32;
/// The kernels' number of [`ExpertUnit::Bounded`], behind those of [`GluKind`].
const BOUNDED: u32 = 5;
const _: () = assert!(BOUNDED as usize == GluKind::ALL.len());

/// How gate and up of an expert are joined.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ExpertUnit {
    /// A function of the gate, times up.
    Glu(GluKind),
    /// Gate and up are bounded, and 1 is added to up: `min(gate, bound) * sigmoid(1.702 min(gate, bound)) * (clamp(up, -bound, bound) + 1)`, as gpt-oss has
    /// it.
    Bounded {
        /// Finite and positive.
        bound: f32,
    },
}

impl ExpertUnit {
    /// The function of the bounded gate: `x sigmoid(1.702 x)`.
    pub const BOUNDED_KIND: GluKind = GluKind::GegluQuick;

    /// The kernels' number, and their bound.
    const fn code(self) -> (u32, f32) {
        match self {
            Self::Glu(f) => (f as u32, 0.0),
            Self::Bounded { bound } => (BOUNDED, bound),
        }
    }
}

/// Matrices `[experts, n, k]` that are packed as one of `experts * n` rows.
#[derive(Debug, Clone, Copy)]
pub struct ExpertStack<'a> {
    /// All of them.
    pub w: &'a PackedWeights,
    /// How many they are.
    pub experts: usize,
}

impl ExpertStack<'_> {
    /// The most pairs of [`Kernels::experts_pairs`], which counts them in 16 bits.
    pub const MAX_PAIRS: usize = 1 << 16;

    /// Experts, rows of each, columns.
    pub(super) fn dims(self, check: Check) -> KernelResult<[usize; 3]> {
        check.dim("experts", self.experts)?;
        check.multiple("all experts must have as many rows", self.w.n(), self.experts)?;
        Ok([self.experts, self.w.n() / self.experts, self.w.k()])
    }

    /// A row's experts that [`Kernels::experts_sum`] takes at the most.
    #[must_use]
    pub fn most_in_sum(self) -> usize {
        RowInput::MAX_COLUMNS / self.w.k().max(1)
    }
}

/// What [`Kernels::experts_sum`] adds to its sums.
#[derive(Debug, Clone, Copy, Default)]
pub struct BesideExperts<'a> {
    /// `[tokens, n]`.
    pub x: Option<&'a HipBuffer<f32>>,
    /// `[tokens]`, whose sigmoid is a factor of `x`.
    pub gate: Option<&'a HipBuffer<f32>>,
    /// `[tokens, n]`, added last.
    pub residual: Option<&'a HipBuffer<f32>>,
}

impl Kernels {
    /// Whether [`experts_gated`](Self::experts_gated) takes these stacks together, and this unit.
    pub fn are_gated_experts(gate: ExpertStack<'_>, up: ExpertStack<'_>, unit: ExpertUnit) -> bool {
        let f = match unit {
            ExpertUnit::Glu(f) => f,
            ExpertUnit::Bounded { bound } if bound > 0.0 && bound.is_finite() => GluKind::Swiglu,
            ExpertUnit::Bounded { .. } => return false,
        };
        gate.experts == up.experts && Self::are_gated(gate.w, up.w, f)
    }

    /// `y[p, :]` = the unit of `gate[ids[p]] x[p / share, :]` and `up[ids[p]] x[p / share, :]`, each with its expert's bias if there are any: `x`
    /// `[pairs / share, k]`, which the kernel rounds to 8 bits, one id for
    /// each pair, biases `[experts, n]`, `y` `[pairs, n]`. Each pair reads its expert's weights. An id that is not below the experts reads nothing, gives a row of NaN and is
    /// a fault at its pair.
    ///
    /// # Errors
    ///
    /// Stacks or a unit that are not [gated](Self::are_gated_experts) by one kernel, wrong lengths, overlap, `share` that does not divide the pairs, over
    /// 65,535 pairs, a tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands of two products
    pub fn experts_gated(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        [gate, up]: [ExpertStack<'_>; 2],
        biases: Option<[&HipBuffer<f32>; 2]>,
        unit: ExpertUnit,
        y: &HipBuffer<f32>,
        share: usize,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("experts_gated");
        let [experts, n, k] = gate.dims(op.check())?;
        op.holds(
            Self::are_gated_experts(gate, up, unit),
            "gate and up must have one type and shape, at most 16384 columns, and a unit that the kernel has",
            gate.w.n(),
            up.w.n(),
        )?;
        let count = op.dim_to("pairs", ids.len(), MAX_ROWS)?;
        op.dim("share", share)?;
        op.multiple("as many pairs must share each row of x", ids.len(), share)?;
        let (kernels, (number, bound)) = (gate.w.kernels(op.check())?, unit.code());
        let (each, config) = self.shares_of((n as u32).div_ceil(kernels.group / 2), count, count);
        (op.read("x", x, &[ids.len() / share, k])?)
            .read("ids", ids, &[ids.len()])?
            .reads("gate", gate.w.bytes())
            .reads("up", up.w.bytes())
            .read_or_null("the gate's bias", biases.map(|[gate, _]| gate), &[experts, n])?
            .read_or_null("up's bias", biases.map(|[_, up]| up), &[experts, n])?
            .write("y", y, &[ids.len(), n], &[])?
            .values([n, k / BLOCK, experts, share].map(|value| value as u32))
            .value(number)
            .value(bound)
            .values(each)
            .faults(faults)?
            .run(stream, kernels.experts, (kernels.experts_gated, config))
    }

    /// `y[t, :]` = the sum over u of `factors[t, u] * (w[ids[t, u]] x[t, u, :] (+ bias[ids[t, u], :]))`, plus what [`BesideExperts`] names: `bias` `[experts, n]`, `x` `[tokens, used, k]`, whose rows the kernel rounds to 8 bits, `ids` and
    /// `factors` `[tokens, used]`, `y` `[tokens, n]`. Each token reads the weights of its experts. An id that is not below the experts gives a row of NaN
    /// and is a fault at its place.
    ///
    /// # Errors
    ///
    /// More experts of a token than [`ExpertStack::most_in_sum`], wrong lengths, overlap, `used` that does not divide the ids, over 65,535 tokens, a tag
    /// over 4095.
    #[allow(clippy::too_many_arguments)] // operands of a product and a sum
    pub fn experts_sum(
        &self,
        stream: &HipStream,
        x: &HipBuffer<f32>,
        ids: &HipBuffer<u32>,
        factors: &HipBuffer<f32>,
        w: ExpertStack<'_>,
        bias: Option<&HipBuffer<f32>>,
        beside: BesideExperts<'_>,
        y: &HipBuffer<f32>,
        used: usize,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("experts_sum");
        let [experts, n, k] = w.dims(op.check())?;
        op.dim_to("experts of a token", used, w.most_in_sum())?;
        op.multiple("each token must have as many experts", ids.len(), used)?;
        let tokens = op.dim_to("tokens", ids.len() / used, MAX_ROWS)?;
        let kernels = w.w.kernels(op.check())?;
        let (each, config) = self.shares_of((n as u32).div_ceil(kernels.group), tokens, tokens);
        let rows = [ids.len() / used, n];
        (op.read("x", x, &[ids.len(), k])?)
            .read("ids", ids, &[ids.len()])?
            .read("factors", factors, &[ids.len()])?
            .reads("w", w.w.bytes())
            .read_or_null("bias", bias, &[experts, n])?
            .read_or_null("beside", beside.x, &rows)?
            .read_or_null("its gate", beside.gate, &rows[..1])?
            .read_or_null("residual", beside.residual, &rows)?
            .write("y", y, &rows, &[])?
            .values([n, k / BLOCK, experts, used].map(|value| value as u32))
            .values(each)
            .faults(faults)?
            .run(stream, kernels.experts, (kernels.experts_sum, config))
    }

    /// `y[p, :] = w[ids[p]] x[p / share, :]` for any number of pairs: `x` has `pairs / share` rows of `k`, one id for each pair, `y` `[pairs, n]`. An expert's
    /// weights are read once for eight pairs that have it. An id that is not below the experts gives a row of NaN and is a fault at its pair.
    ///
    /// # Errors
    ///
    /// Activations and weights that differ in `k`, wrong lengths, overlap, `share` that does not divide the pairs, over 65,535 experts or 65,536 pairs, a
    /// tag over 4095.
    #[allow(clippy::too_many_arguments)] // operands of one product
    pub fn experts_pairs(
        &self,
        stream: &HipStream,
        x: &Q8Activations,
        ids: &HipBuffer<u32>,
        w: ExpertStack<'_>,
        y: &HipBuffer<f32>,
        share: usize,
        faults: Faults<'_>,
    ) -> KernelResult<()> {
        let op = self.op("experts_pairs");
        let [experts, n, k] = w.dims(op.check())?;
        let count = op.dim_to("pairs", ids.len(), ExpertStack::MAX_PAIRS)?;
        op.dim("share", share)?;
        op.multiple("as many pairs must share each row of x", ids.len(), share)?;
        let (rows, rule) = (ids.len() / share, "weights and activations must have as many columns");
        op.holds(x.k() == k, rule, k, x.k())?;
        op.holds(x.m() == rows, "each row of x must belong to a pair", rows, x.m())?;
        // The kernel counts eights of bytes of x in 32 bits.
        op.dim("eights of bytes of x", x.bytes().len() / 8)?;
        let parts = op.dim_to("experts", experts, MAX_ROWS)?;
        let kernels = w.w.kernels(op.check())?;
        let (each, config) = self.shares_of((n as u32).div_ceil(PAIRS_GROUP), count.min(parts), parts);
        (op.reads("x", x.bytes()).read("ids", ids, &[ids.len()])?)
            .reads("w", w.w.bytes())
            .write("y", y, &[ids.len(), n], &[])?
            .values([ids.len(), n, k / BLOCK, experts, share].map(|value| value as u32))
            .values(each)
            .faults(faults)?
            .run(stream, kernels.experts, (kernels.experts_pairs, config))
    }

    /// As [`shares`](Self::shares) for each of `parts` along the grid's second dimension, of which so many are `busy`.
    fn shares_of(&self, groups: u32, busy: u32, parts: u32) -> ([u32; 2], LaunchConfig) {
        const THREADS: u32 = 256;
        let most = self.resident_blocks(THREADS).div_ceil(busy).max(groups / LEAST_GROUPS);
        let blocks = groups.min(most.max(1));
        let config = geometry::config([blocks, parts, 1], THREADS);
        ([groups / blocks, groups % blocks], config)
    }
}

/// A stack `[experts, n, k]` as the operand `name`, of blocks that have a name, too.
pub(super) fn stack(
    c: &mut Call<'_>,
    names: [&'static str; 2],
    ty: WeightType,
    [experts, n, k]: [usize; 3],
) -> KernelResult<PackedWeights> {
    packed(c, names, ty, [experts * n, k])
}

/// The products of pairs with their experts in f64, `[pairs, n]`.
pub(super) fn products(
    c: &Call<'_>,
    (blocks, x): (&'static str, &'static str),
    ty: WeightType,
    [n, k]: [usize; 2],
    share: usize,
) -> Vec<f64> {
    let (w, x) = (c.u8(blocks), reference::wide(c.f32(x)));
    let expert = n * k / ty.block_len() * ty.block_bytes();
    let of_pair = |(pair, &id): (usize, &u32)| {
        let x = &x[pair / share * k..][..k];
        reference::matvec_q8(ty, &w[id as usize * expert..][..expert], x, None, None, k)
    };
    c.u32("ids").iter().enumerate().flat_map(of_pair).collect()
}

/// Adds to each pair's row the bias of its expert, if there are biases.
fn add_biases(rows: &mut [f64], biases: &[f32], ids: &[u32], n: usize) {
    for (row, &id) in rows.chunks_mut(n).zip(ids) {
        let bias = biases.chunks(n).nth(id as usize).unwrap_or_default();
        row.iter_mut()
            .zip(bias)
            .for_each(|(sum, &bias)| *sum += f64::from(bias));
    }
}

/// Experts, rows and columns of their weights, pairs, and pairs that share a row of activations. Biases and unit follow from the rows.
fn gated(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[experts, n, k, pairs, share] = dims else {
        return Ok(());
    };
    let (unit, biased) = match n % 4 {
        0 => (ExpertUnit::Glu(GluKind::Swiglu), false),
        2 => (ExpertUnit::Bounded { bound: 0.75 }, true),
        _ => (ExpertUnit::Glu(GluKind::Geglu), true),
    };
    let x = c.floats("x", activations(pairs / share.max(1) * k))?;
    let ids = c.indices("ids", pairs, experts)?;
    let gate = stack(c, ["blocks of the gate", "gate"], ty, [experts, n, k])?;
    let up = stack(c, ["blocks of up", "up"], ty, [experts, n, k])?;
    let biases = match biased {
        false => None,
        true => Some((
            c.input("the gate's bias", experts * n, -1.0..1.0)?,
            c.input("up's bias", experts * n, -1.0..1.0)?,
        )),
    };
    let (y, word) = (c.output("y", pairs * n)?, c.fault_word()?);
    let stacks = [&gate, &up].map(|w| ExpertStack { w, experts });
    let (biases, faults) = (
        biases.as_ref().map(|(gate, up)| [gate, up]),
        Faults { word: &word, tag: 1 },
    );
    c.kernels
        .experts_gated(c.stream, &x, &ids, stacks, biases, unit, &y, share, faults)?;
    c.expect_within("y", |c| {
        let product = |blocks, bias| -> Vec<f32> {
            let mut y = products(c, (blocks, "x"), ty, [n, k], share);
            add_biases(&mut y, c.f32(bias), c.u32("ids"), n);
            y.iter().map(|&y| y as f32).collect()
        };
        let (gate, up) = (
            product("blocks of the gate", "the gate's bias"),
            product("blocks of up", "up's bias"),
        );
        let values = match unit {
            ExpertUnit::Glu(f) => reference::glu(f, &gate, &up),
            ExpertUnit::Bounded { bound } => (gate.iter().zip(&up))
                .map(|(&gate, &up)| {
                    let (bound, gate, up) = (f64::from(bound), f64::from(gate), f64::from(up));
                    let gate = gate.min(bound);
                    gate / (1.0 + (-1.702 * gate).exp()) * (up.clamp(-bound, bound) + 1.0)
                })
                .collect(),
        };
        (1e-5 * values.iter().fold(1.0, |a: f64, b| a.max(b.abs())), values)
    });
    Ok(())
}

/// Odd rows, fewer than a group, and pairs of one expert.
const fn gated_of(ty: WeightType) -> Declared {
    Declared {
        name: "experts_gated",
        tested: match ty.block_len() {
            32 => &[
                &[1, 1, 32, 1, 1],
                &[2, 8, 32, 2, 1],
                &[5, 67, 64, 6, 3],
                &[3, 34, 1056, 4, 1],
            ],
            _ => &[
                &[1, 1, 256, 1, 1],
                &[2, 8, 256, 2, 1],
                &[5, 67, 512, 6, 3],
                &[3, 34, 1280, 4, 1],
            ],
        },
        counted: &[&[8, 64, 512, 4, 4]],
        moved: &[&[4, 256, 1024, 4, 4]],
        again: Again::Activations,
        ..Declared::NEW
    }
}

/// Experts, rows and columns of their weights, tokens, and experts of a token; with biases where the rows are odd.
fn sum(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[experts, n, k, tokens, used] = dims else {
        return Ok(());
    };
    let x = c.floats("x", activations(tokens * used * k))?;
    let ids = c.indices("ids", tokens * used, experts)?;
    let factors = c.input("factors", tokens * used, -1.0..1.0)?;
    let w = stack(c, ["blocks of w", "w"], ty, [experts, n, k])?;
    let bias = c.input_bias(n % 2 == 1, experts * n)?;
    // Something beside experts of two, with a gate where there are biases.
    let beside = (used == 2)
        .then(|| c.input("beside", tokens * n, -1.0..1.0))
        .transpose()?;
    let gate = (used == 2 && n % 2 == 1)
        .then(|| c.input("its gate", tokens, -2.0..2.0))
        .transpose()?;
    let residual = (used > 1)
        .then(|| c.input("residual", tokens * n, -1.0..1.0))
        .transpose()?;
    let added = BesideExperts {
        x: beside.as_ref(),
        gate: gate.as_ref(),
        residual: residual.as_ref(),
    };
    let (y, word) = (c.output("y", tokens * n)?, c.fault_word()?);
    let (stack, faults) = (ExpertStack { w: &w, experts }, Faults { word: &word, tag: 1 });
    c.kernels.experts_sum(
        c.stream,
        &x,
        &ids,
        &factors,
        stack,
        bias.as_ref(),
        added,
        &y,
        used,
        faults,
    )?;
    c.expect_within("y", |c| {
        let (mut pairs, factors) = (products(c, ("blocks of w", "x"), ty, [n, k], 1), c.f32("factors"));
        add_biases(&mut pairs, c.f32("bias"), c.u32("ids"), n);
        let mut values = vec![0.0; tokens * n];
        for (pair, row) in pairs.chunks(n).enumerate() {
            let of_token = &mut values[pair / used * n..][..n];
            for (sum, product) in of_token.iter_mut().zip(row) {
                *sum += f64::from(factors[pair]) * product;
            }
        }
        let (beside, gate) = (c.f32("beside"), c.f32("its gate"));
        for (at, (value, &x)) in values.iter_mut().zip(beside).enumerate() {
            let gate = gate
                .get(at / n)
                .map_or(1.0, |&gate| 1.0 / (1.0 + f64::from(-gate).exp()));
            *value += f64::from(x) * gate;
        }
        values
            .iter_mut()
            .zip(c.f32("residual"))
            .for_each(|(value, &x)| *value += f64::from(x));
        (used as f64 * rounding(ty, c.u8("blocks of w"), k), values)
    });
    Ok(())
}

/// One expert, several, and as many as there is room for.
const fn sum_of(ty: WeightType) -> Declared {
    Declared {
        name: "experts_sum",
        tested: match ty.block_len() {
            32 => &[
                &[1, 1, 32, 1, 1],
                &[5, 67, 96, 2, 3],
                &[3, 9, 4096, 1, 4],
                &[4, 33, 64, 3, 2],
                &[2, 8, 32, 1, 2],
            ],
            _ => &[
                &[1, 1, 256, 1, 1],
                &[5, 67, 768, 2, 3],
                &[3, 9, 4096, 1, 4],
                &[4, 33, 256, 3, 2],
                &[2, 8, 256, 1, 2],
            ],
        },
        counted: &[&[8, 64, 512, 1, 4]],
        moved: &[&[4, 256, 1024, 1, 4]],
        again: Again::Activations,
        ..Declared::NEW
    }
}

/// As for [`gated`], with activations that are rounded before.
fn pairs(c: &mut Call<'_>, dims: &[usize], ty: WeightType) -> KernelResult<()> {
    let &[experts, n, k, pairs, share] = dims else {
        return Ok(());
    };
    let rows = pairs / share.max(1);
    let x = c.floats("values of x", activations(rows * k))?;
    let to = c.output_bytes("x", rows * (k / BLOCK) * BLOCK_BYTES)?;
    let x = c.preparing().quantize_q8(c.stream, &x, to, [rows, k])?;
    let ids = c.indices("ids", pairs, experts)?;
    let w = stack(c, ["blocks of w", "w"], ty, [experts, n, k])?;
    let (y, word) = (c.output("y", pairs * n)?, c.fault_word()?);
    let (stack, faults) = (ExpertStack { w: &w, experts }, Faults { word: &word, tag: 1 });
    c.kernels.experts_pairs(c.stream, &x, &ids, stack, &y, share, faults)?;
    c.expect_within("y", |c| {
        let values = products(c, ("blocks of w", "values of x"), ty, [n, k], share);
        (rounding(ty, c.u8("blocks of w"), k), values)
    });
    Ok(())
}

/// More pairs than a block looks at together, more than eight of one expert, and columns that are more than one part.
const fn pairs_of(ty: WeightType) -> Declared {
    Declared {
        name: "experts_pairs",
        tested: match ty.block_len() {
            32 => &[
                &[1, 1, 32, 1, 1],
                &[5, 67, 64, 6, 3],
                &[3, 5, 32, 600, 2],
                &[2, 34, 4224, 20, 1],
            ],
            _ => &[
                &[1, 1, 256, 1, 1],
                &[5, 67, 512, 6, 3],
                &[3, 5, 256, 300, 2],
                &[2, 34, 4352, 20, 1],
            ],
        },
        counted: &[&[8, 64, 512, 16, 4]],
        moved: &[&[4, 256, 1024, 16, 4]],
        again: Again::Activations,
        ..Declared::NEW
    }
}
