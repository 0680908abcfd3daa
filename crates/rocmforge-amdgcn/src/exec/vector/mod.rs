//! Vector instructions that treat every lane alike: the choice of their handlers.

pub(crate) mod compare;
pub(crate) mod cross;
mod double;
pub(crate) mod elem;
mod float;
mod half;
mod integer;
pub(crate) mod lane_ops;
pub(crate) mod mask;
pub(crate) mod modal;
pub(crate) mod nan;
mod packed;
mod relative;
pub(crate) mod wide;

use crate::exec::state::ctx::Run;
use crate::exec::vector::lane_ops::Form;
use rocmforge_isa::Op;

/// Whether an operation moves or inspects the bits of floating-point operands in every mode.
fn ignores_mode(op: Op) -> bool {
    use Op::*;
    matches!(
        op,
        VCndmaskB32
            | VPackB32F16
            | VCmpClassF16
            | VCmpClassF32
            | VCmpClassF64
            | VCmpxClassF16
            | VCmpxClassF32
            | VCmpxClassF64
    )
}

/// The handler of an operation whose third source is the high half of a register or literal.
pub(crate) fn third_half(op: Op, form: Form) -> Option<Run> {
    integer::third_half(op, form)
}

/// The handler of an operation; `clamp`: its modifiers include saturation.
pub(crate) fn lookup(op: Op, form: Form, clamp: bool) -> Option<Run> {
    let bare = Form {
        mods: false,
        modal: false,
        ..form
    };
    if clamp && let Some(run) = integer::saturating(op, bare).or_else(|| packed::saturating(op, bare)) {
        return Some(run);
    }
    let form = Form {
        modal: form.modal && !ignores_mode(op),
        ..form
    };
    if form.modal
        && let Some(run) = modal::lookup(op)
    {
        return Some(run);
    }
    integer::lookup(op, form)
        .or_else(|| float::lookup(op, form))
        .or_else(|| compare::lookup(op, form))
        .or_else(|| double::lookup(op, form))
        .or_else(|| half::lookup(op, form))
        .or_else(|| packed::lookup(op, form))
        .or_else(|| crate::exec::gfx12::vector::lookup(op, form))
}
