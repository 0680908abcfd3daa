//! A plan in f16 or bf16 as the kernels take it.

use crate::{AttentionResult, MaskShape, Plan};
use rocmforge_kernels::{Attention16Options, Attention16Shape, Kernels, Visible};

/// The dimensions.
pub(crate) fn shape(plan: &Plan) -> Attention16Shape {
    let s = plan.shape();
    Attention16Shape {
        batch: s.batch,
        heads: s.heads,
        kv_heads: s.kv_heads,
        seq_q: s.seq_q,
        seq_k: s.seq_k,
        width_k: s.head_dim,
        width_v: s.head_dim,
    }
}

/// What the configuration says of the scores, except for the mask's elements.
pub(crate) fn options(plan: &Plan) -> Attention16Options<'static> {
    let config = plan.config();
    Attention16Options {
        scale: config.scale(),
        softcap: config.softcap(),
        mask: None,
        slopes: None,
        sinks: None,
        visible: match config.causal() {
            true => Visible::Causal {
                window: config.window(),
            },
            false => Visible::All,
        },
    }
}

/// Parts of a plan's keys on the device of `kernels`, and the floats that they take; `None` if it is computed at once.
pub(crate) fn parts(kernels: &Kernels, plan: &Plan) -> AttentionResult<Option<(usize, usize)>> {
    let Some(ty) = plan.config().elements().half() else {
        return Ok(None);
    };
    if plan.config().mask() != MaskShape::None {
        return Ok(None);
    }
    let shape = shape(plan);
    let parts = kernels.attention16_parts(ty, shape, options(plan))?;
    Ok(parts.and_then(|parts| Some((parts, Kernels::attention16_partial_len(shape, parts)?))))
}
