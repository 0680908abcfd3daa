//! Routing: which experts a token is given to, and the factors of their results.

use crate::declared::{Call, Declared};
use crate::{KernelResult, Kernels, geometry};
use rocmforge_runtime::{HipBuffer, HipStream};

pub(super) const DECLARED: &[Declared] = &[SOFTMAX, OF_CHOSEN, SIGMOID, GROUPS];

/// Rows of a block, as `kernels/route.hip` has them.
const ROWS: u32 = 4;

/// What makes a share of a score. Their order is that of `kernels/route.hip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RouteGate {
    /// The softmax of all scores of a token.
    SoftMax,
    /// The score chooses; the softmax of the chosen ones is their share.
    SoftMaxOfChosen,
    /// `1 / (1 + exp(-score))`.
    Sigmoid,
}

/// How experts are chosen: those with the highest share + bias, the lower of equal ones first, NaN last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Route {
    /// Chosen experts of a token.
    pub k: usize,
    /// What makes a share of a score.
    pub gate: RouteGate,
    /// Into how many groups of equal size the experts are divided, and from how many of these they are chosen: those with the highest
    /// sum of their two highest share + bias. `[1, 1]`: from all.
    pub groups: [usize; 2],
    /// Divides the shares of the chosen by their sum.
    pub normalised: bool,
    /// The least divisor.
    pub least_sum: f32,
    /// A factor on all.
    pub factor: f32,
}

impl Route {
    /// The expert with the largest score; its share of a softmax over all is its factor.
    pub const PLAIN: Self = Self {
        k: 1,
        gate: RouteGate::SoftMax,
        groups: [1, 1],
        normalised: false,
        least_sum: 0.0,
        factor: 1.0,
    };
}

impl Kernels {
    /// The most experts of [`route`](Self::route).
    pub const MAX_ROUTED: usize = 512;
    /// The most chosen experts of a token, and the most groups.
    pub const MAX_CHOSEN: usize = 32;

    /// `ids[r, :]` = the chosen experts of token r, the first choice first, and `factors[r, :]` = the factors of their results, for `scores`
    /// `[rows, experts]`, `bias` `[experts]`, `ids` and `factors` `[rows, k]`.
    ///
    /// # Errors
    ///
    /// Wrong lengths, overlap, a dimension of 0, more than [`MAX_ROUTED`](Self::MAX_ROUTED) experts, more than
    /// [`MAX_CHOSEN`](Self::MAX_CHOSEN) chosen or groups, groups that do not divide the experts or have too few for `k`, a `least_sum` or a
    /// factor that is not finite.
    #[allow(clippy::too_many_arguments)] // operands and dimensions of one operation
    pub fn route(
        &self,
        stream: &HipStream,
        scores: &HipBuffer<f32>,
        bias: Option<&HipBuffer<f32>>,
        ids: &HipBuffer<u32>,
        factors: &HipBuffer<f32>,
        [rows, experts]: [usize; 2],
        how: Route,
    ) -> KernelResult<()> {
        let op = self.op("route");
        let [groups, kept] = how.groups;
        let (r, e) = (op.dim("rows", rows)?, op.dim_to("experts", experts, Self::MAX_ROUTED)?);
        let g = op.dim_to("groups", groups, Self::MAX_CHOSEN)?;
        op.multiple("experts", experts, groups)?;
        let used = op.dim_to("kept groups", kept, groups)?;
        let k = op.dim_to("k", how.k, Self::MAX_CHOSEN.min(experts / groups * kept))?;
        op.value_of("least_sum", how.least_sum, how.least_sum.is_finite(), "finite")?;
        op.value_of("factor", how.factor, how.factor.is_finite(), "finite")?;
        let chosen = [rows, how.k];
        op.read("scores", scores, &[rows, experts])?
            .read_or_null("bias", bias, &[experts])?
            .write("ids", ids, &chosen, &[])?
            .write("factors", factors, &chosen, &[])?
            .values([r, e, k, how.gate as u32, g, used, u32::from(how.normalised)])
            .values([how.least_sum, how.factor])
            .run(
                stream,
                "route",
                ("route", geometry::config([r.div_ceil(ROWS), 1, 1], 32 * ROWS)),
            )
    }
}

/// Rows, experts, k.
const TESTED: &[&[usize]] = &[
    &[1, 1, 1],
    &[5, 2, 2],
    &[3, 31, 4],
    &[4, 32, 32],
    &[9, 33, 1],
    &[2, 64, 8],
    &[6, 128, 8],
    &[3, 256, 8],
    &[3, 257, 10],
    &[2, 512, 22],
];

const SOFTMAX: Declared = Declared {
    name: "route",
    call: |c, dims| {
        let &[rows, experts, k] = dims else { return Ok(()) };
        let how = Route {
            k,
            normalised: true,
            ..Route::PLAIN
        };
        route(c, [rows, experts], false, how)
    },
    tested: TESTED,
    counted: &[&[64, 128, 8]],
    ..Declared::NEW
};
const OF_CHOSEN: Declared = Declared {
    call: |c, dims| {
        let &[rows, experts, k] = dims else { return Ok(()) };
        let how = Route {
            k,
            gate: RouteGate::SoftMaxOfChosen,
            ..Route::PLAIN
        };
        route(c, [rows, experts], true, how)
    },
    counted: &[],
    ..SOFTMAX
};
const SIGMOID: Declared = Declared {
    call: |c, dims| {
        let &[rows, experts, k] = dims else { return Ok(()) };
        let how = Route {
            k,
            gate: RouteGate::Sigmoid,
            normalised: true,
            least_sum: 6.103_515_6e-5,
            factor: 2.5,
            ..Route::PLAIN
        };
        route(c, [rows, experts], true, how)
    },
    counted: &[],
    ..SOFTMAX
};
/// Rows, experts, k, groups, groups that are chosen from.
const GROUPS: Declared = Declared {
    call: |c, dims| {
        let &[rows, experts, k, groups, kept] = dims else {
            return Ok(());
        };
        let how = Route {
            k,
            gate: RouteGate::Sigmoid,
            groups: [groups, kept],
            normalised: true,
            ..Route::PLAIN
        };
        route(c, [rows, experts], true, how)
    },
    tested: &[
        &[3, 6, 2, 6, 3],
        &[5, 66, 4, 2, 1],
        &[2, 256, 8, 8, 4],
        &[2, 96, 5, 32, 3],
    ],
    counted: &[&[64, 256, 8, 8, 4]],
    ..SOFTMAX
};

fn route(c: &mut Call<'_>, [rows, experts]: [usize; 2], biased: bool, how: Route) -> KernelResult<()> {
    // In an order without a pattern, so far apart that rounding chooses no other.
    let apart = |row: usize, e: usize| (e * 619 + row * 37) % experts;
    let scores = (0..rows * experts).map(|at| apart(at / experts, at % experts) as f32 * 4.0 / experts as f32 - 2.0);
    let scores = c.floats("scores", scores.collect())?;
    let bias = match biased {
        true => Some(c.floats(
            "bias",
            (0..experts).map(|e| 0.25 * (e % 3) as f32 + 3e-4 * e as f32).collect(),
        )?),
        false => None,
    };
    let (ids, factors) = (c.output_words("ids", rows * how.k)?, c.output("factors", rows * how.k)?);
    c.kernels
        .route(c.stream, &scores, bias.as_ref(), &ids, &factors, [rows, experts], how)?;
    let chosen = |c: &Call<'_>| -> Vec<(usize, f64)> {
        let rows = c.f32("scores").chunks(experts);
        rows.flat_map(|scores| definition(scores, c.f32("bias"), how)).collect()
    };
    c.expect("ids", 0.0, |c| chosen(c).into_iter().map(|(id, _)| id as f64).collect());
    c.expect("factors", 4e-6, |c| {
        chosen(c).into_iter().map(|(_, factor)| factor).collect()
    });
    Ok(())
}

/// The chosen experts of one token and their factors, in f64. Without a bias `bias` is empty.
fn definition(scores: &[f32], bias: &[f32], how: Route) -> Vec<(usize, f64)> {
    let softmax = |x: &[f64]| -> Vec<f64> {
        let top = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = x.iter().map(|x| (x - top).exp()).sum();
        x.iter().map(|x| (x - top).exp() / sum).collect()
    };
    let scores: Vec<f64> = scores.iter().map(|&x| x.into()).collect();
    let shares = match how.gate {
        RouteGate::SoftMax => softmax(&scores),
        RouteGate::SoftMaxOfChosen => scores,
        RouteGate::Sigmoid => scores.iter().map(|x| 1.0 / (1.0 + (-x).exp())).collect(),
    };
    let choice = |e: usize| shares[e] + bias.get(e).map_or(0.0, |&b| b.into());
    let highest = |mut of: Vec<usize>, value: &dyn Fn(usize) -> f64| {
        of.sort_by(|&a, &b| value(b).total_cmp(&value(a)).then(a.cmp(&b)));
        of
    };
    let [groups, kept] = how.groups;
    let size = shares.len() / groups;
    let best = |group: usize| -> f64 {
        let sorted = highest((group * size..(group + 1) * size).collect(), &choice);
        sorted.iter().take(2).map(|&e| choice(e)).sum()
    };
    let kept = &highest((0..groups).collect(), &best)[..kept];
    let mut chosen = highest(
        (0..shares.len()).filter(|e| kept.contains(&(e / size))).collect(),
        &choice,
    );
    chosen.truncate(how.k);
    let mut factors: Vec<f64> = chosen.iter().map(|&e| shares[e]).collect();
    if how.gate == RouteGate::SoftMaxOfChosen {
        factors = softmax(&factors);
    }
    let divisor = match how.normalised {
        true => factors.iter().sum::<f64>().max(how.least_sum.into()),
        false => 1.0,
    };
    let scaled = factors.iter().map(|factor| factor / divisor * f64::from(how.factor));
    chosen.into_iter().zip(scaled).collect()
}
