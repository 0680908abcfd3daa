//! Shapes of rotary embedding, alone and with the write of its rows.

use super::{At, Inferred};
use crate::{GgmlResult, Rope, RopeScaling, RopeStyle};

/// `x [batch, seq, heads, head_dim]` positions, optional factors.
pub(super) fn rope(at: &At<'_>, rope: Rope) -> GgmlResult<Inferred> {
    at.arity(2..=3, "x, positions, optional factors and 1 output")?;
    let dtype = at.float(0)?;
    at.index(1)?;
    let x = at.rank(0, 4..=4, "x must be [batch, seq, heads, head_dim]")?;
    let list = &at.inputs[1].shape;
    match rope.style.sections() {
        None => at.rule(
            *list == x[..2] || *list == x[1..2],
            "positions must be [batch, seq] or [seq]",
            x,
            list,
        )?,
        Some(pairs) => {
            let of_axis = list.split_first().filter(|(axes, _)| **axes == 4).map(|(_, rest)| rest);
            at.rule(
                of_axis == Some(&x[..2]) || of_axis == Some(&x[1..2]),
                "positions of sections must be [4, batch, seq] or [4, seq]",
                x,
                list,
            )?;
            sections(at, rope, pairs, x)?;
        }
    }
    at.rule(
        rope.n_dims <= x[3],
        "n_dims must not exceed head_dim",
        x,
        &[rope.n_dims],
    )?;
    at.parameter(
        rope.n_dims.is_multiple_of(2),
        "n_dims",
        rope.n_dims as f64,
        "it must be even",
    )?;
    at.parameter(rope.theta > 0.0, "theta", f64::from(rope.theta), "it must be positive")?;
    let magnitude = f64::from(rope.magnitude);
    at.parameter(magnitude.is_finite(), "magnitude", magnitude, "it must be finite")?;
    scaling(at, rope.scaling)?;
    if let Some(factors) = at.inputs.get(2) {
        let expected = [rope.pairs()];
        at.rule(
            factors.shape == expected,
            "there must be a factor per pair",
            &factors.shape,
            &expected,
        )?;
        at.f32(2)?;
    }
    Ok(Inferred::Exact(x.to_vec(), dtype))
}

/// Sections of pairs of a head.
fn sections(at: &At<'_>, rope: Rope, pairs: [usize; 4], x: &[usize]) -> GgmlResult<()> {
    let all = pairs.iter().try_fold(0usize, |sum, &pairs| sum.checked_add(pairs));
    at.rule(
        all.is_some_and(|all| all <= x[3]) && pairs[..3] != [0; 3],
        "one of the first three sections must have pairs, and all together at most head_dim",
        x,
        &pairs,
    )?;
    if let RopeStyle::Vision(_) = rope.style {
        at.rule(
            rope.n_dims.checked_mul(2) == Some(x[3]),
            "n_dims must be half of head_dim where whole heads are rotated",
            x,
            &[rope.n_dims],
        )?;
        // Else ggml's frequencies begin anew at another pair.
        let empty = pairs.iter().position(|&pairs| pairs == 0).unwrap_or(4);
        at.rule(
            pairs[empty..].iter().all(|&pairs| pairs == 0),
            "no section without pairs may come before one with pairs",
            x,
            &pairs,
        )?;
    }
    Ok(())
}

fn scaling(at: &At<'_>, scaling: RopeScaling) -> GgmlResult<()> {
    match scaling {
        RopeScaling::None => Ok(()),
        RopeScaling::Linear { factor } => at.positive("factor", factor),
        RopeScaling::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
            ext_factor,
        } => {
            let ext = f64::from(ext_factor);
            at.parameter(ext.is_finite(), "ext_factor", ext, "it must be finite")?;
            at.positive("factor", factor)?;
            at.positive("beta_fast", beta_fast)?;
            at.positive("beta_slow", beta_slow)?;
            let context = original_context as f64;
            at.parameter(original_context > 0, "original_context", context, "it must be positive")
        }
    }
}
