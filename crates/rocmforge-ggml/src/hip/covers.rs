//! Coverage: which ops with which operands the device has kernels for.

use super::attention::mask_shape;
use super::copies::{moved, packed, part_of, plan};
use super::elementwise::{map_of, repeated};
use super::operands::rows_and_cols;
use super::products::whole_matrices;
use super::rows::table_type;
use super::types::{kv_type, weight_type};
use super::{HipGgmlBackend, limits, matrix_order, unimplemented};
use crate::{DType, GgmlError, Kernel, Op, TensorDesc};
use rocmforge_kernels::Kernels;

type Covered = Result<(), String>;

/// Pattern of the ops that no kernel computes. Coverage and launches match all ops, so that the compiler names both for a new one.
macro_rules! without_kernel {
    () => {
        Op::SsmConv
            | Op::SsmScan
            | Op::GatedDeltaNet
            | Op::GroupNorm { .. }
            | Op::Tri { .. }
            | Op::SolveTri
            | Op::Im2col { .. }
            | Op::Conv2d { .. }
            | Op::Pool1d { .. }
            | Op::Pool2d { .. }
            | Op::Arange { .. }
            | Op::Fill { .. }
            | Op::Upscale { .. }
    };
}

/// Pattern of the ops of single elements, whose function [`map_of`] knows.
macro_rules! of_elements {
    () => {
        Op::Scale { .. }
            | Op::ScaleBias { .. }
            | Op::Clamp { .. }
            | Op::Sqr
            | Op::Sqrt
            | Op::Log
            | Op::Sin
            | Op::Cos
            | Op::Unary(_)
    };
}

pub(super) use {of_elements, without_kernel};

fn rule(holds: bool, what: impl FnOnce() -> String) -> Covered {
    if holds { Ok(()) } else { Err(what()) }
}

/// An operand or result that is f32 without gaps, or is packed.
fn float(desc: &TensorDesc) -> Covered {
    rule(desc.dtype.is_plain_float(), || desc.summary())?;
    plan(desc, &packed(&desc.shape, DType::F32), false).map(drop)
}

/// Indices that kernels read where they are.
fn index(desc: &TensorDesc) -> Covered {
    let words = matches!(desc.dtype, DType::U32 | DType::I32);
    rule(words && desc.is_contiguous(), || format!("indices {}", desc.summary()))
}

fn contiguous(desc: &TensorDesc) -> Covered {
    rule(desc.is_contiguous(), || format!("{} with gaps", desc.summary()))
}

impl HipGgmlBackend {
    /// Whether the device has a kernel for an op with these operands, whose shapes and types fit the op
    /// ([`crate::shape::infer`]).
    ///
    /// This is the one list of what is missing: every launch asks it first, and [`crate::HybridBackend`] asks before it
    /// copies an operand and counts its reasons.
    ///
    /// # Errors
    /// What no kernel does, or which dimension is more than one launch takes.
    pub fn covers(op: &Op, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Covered {
        if inputs.is_empty() || outputs.is_empty() {
            return Err("no kernel without operands".to_owned());
        }
        let (first, output) = (inputs[0], outputs[0]);
        if map_of(op).is_some() {
            float(first)?;
            return float(output);
        }
        let dims = rows_and_cols(&first.shape);
        match *op {
            Op::Dup | Op::Cont | Op::Cpy { .. } | Op::Reshape | Op::View | Op::Permute { .. } | Op::Transpose => {
                rule(first.element_count() == output.element_count(), || {
                    format!("{} of other elements than {}", output.summary(), first.summary())
                })?;
                plan(&moved(op, first), output, false)?;
                limits::transpose(op, first, output)
            }
            Op::Repeat => plan(first, output, true).map(drop),
            Op::Concat { axis } => {
                let mut at = vec![0; output.shape.len()];
                for input in inputs {
                    plan(input, &part_of(input, output, &at), false)?;
                    at[axis] += input.shape[axis];
                }
                Ok(())
            }
            Op::Pad { left, .. } => {
                contiguous(output)?;
                plan(first, &part_of(first, output, &left), false).map(drop)
            }
            Op::GetRows => {
                get_rows(inputs, output)?;
                limits::rows_of(first)?;
                limits::tiles(rows_and_cols(&output.shape))
            }
            Op::SetRows => {
                set_rows(inputs, output)?;
                limits::rows_of(output)?;
                limits::tiles(dims)
            }
            Op::MulMat => mul_mat(inputs, output),
            Op::MulMatId => {
                float(first)?;
                index(inputs[2])?;
                let experts = inputs[1];
                rule(experts.shape[1] > 0, || "an inner dimension of 0".to_owned())?;
                let as_they_lie = weight_type(experts.dtype).is_some() && whole_matrices(experts);
                if !as_they_lie {
                    float(experts)?;
                }
                float(output)?;
                limits::mul_mat_id(inputs)
            }
            Op::AddId => {
                float(first)?;
                float(inputs[1])?;
                index(inputs[2])?;
                float(output)?;
                limits::rows_of(inputs[1])?;
                limits::tiles(dims)
            }
            Op::Add | Op::Sub | Op::Mul | Op::Div => {
                all(inputs, output)?;
                let [whole, part] = repeated(&first.shape, &inputs[1].shape)?;
                if whole == part {
                    return Ok(());
                }
                limits::tiles([whole[..3].iter().product(), whole[3]])
            }
            Op::Accumulate { .. } => {
                float(first)?;
                rule(output.dtype == DType::F32, || format!("a sum in {}", output.dtype))?;
                contiguous(output)
            }
            Op::SoftMax(s) => {
                all(inputs, output)?;
                let four = first.shape.len() <= 4;
                rule(four || !(s.mask || s.sinks), || {
                    format!("a mask or sinks of {}", first.summary())
                })?;
                limits::team_rows(dims)
            }
            Op::Rope(r) => {
                rope(inputs)?;
                float(output)?;
                limits::heads(r, dims)
            }
            Op::Attention(a) => {
                all(inputs, output)?;
                let (batch, keys) = (first.shape[0], inputs[1].shape[1]);
                inputs.get(3).map_or(Ok(()), |mask| {
                    let known = mask_shape(&mask.shape, [batch, keys]).is_some();
                    rule(known, || format!("a mask {}", mask.summary()))
                })?;
                limits::attention(a, inputs)
            }
            Op::FlashAttnExt(_) => {
                let heads = [first, inputs[1], inputs[2]];
                all(inputs, output)?;
                heads.into_iter().try_for_each(|operand| {
                    let dim = operand.shape[3];
                    head_dim(dim, operand)
                })?;
                limits::flash_attn_ext(inputs)
            }
            Op::PagedAttention(a) => {
                head_dim(a.head_dim, first)?;
                for cache in &inputs[1..3] {
                    contiguous(cache)?;
                }
                for indices in &inputs[3..] {
                    index(indices)?;
                }
                float(first)?;
                contiguous(output)?;
                limits::paged_attention(a, inputs)
            }
            Op::Argmax | Op::TopK { .. } | Op::Argsort { .. } => {
                let cols = first.shape.last().copied().unwrap_or(1);
                let most = match *op {
                    Op::TopK { .. } => Kernels::MAX_TOP_K,
                    Op::Argsort { .. } => Kernels::MAX_ARGSORT,
                    _ => usize::MAX,
                };
                let wanted = match *op {
                    Op::TopK { k } => k,
                    _ => cols,
                };
                rule(wanted <= most, || format!("{wanted} columns, over {most}"))?;
                float(first)?;
                index(output)?;
                limits::block_rows(dims)
            }
            Op::LayerNorm { .. } | Op::RmsNorm { .. } | Op::SumRows | Op::Mean => {
                all(inputs, output)?;
                limits::team_rows(dims)
            }
            Op::Cumsum => {
                all(inputs, output)?;
                limits::block_rows(dims)
            }
            Op::L2Norm { .. } => {
                all(inputs, output)?;
                limits::norm_rows(dims)
            }
            Op::Glu { .. } | Op::DiagMask { .. } => {
                all(inputs, output)?;
                limits::tiles(rows_and_cols(&output.shape))
            }
            Op::MeanPool => {
                all(inputs, output)?;
                limits::mean_pool(first)
            }
            Op::Softcap { .. } | Op::Sum => all(inputs, output),
            without_kernel!() => Err("no kernel".to_owned()),
            of_elements!() => Err("no function".to_owned()),
        }
    }

    /// [`Self::covers`] as the error of a launch; of one of several nodes, its parts.
    pub(crate) fn refusal(kernel: &Kernel, inputs: &[&TensorDesc], outputs: &[&TensorDesc]) -> Option<GgmlError> {
        // An op may have no operand, which is refused; launches of several nodes have some.
        let dims = || rows_and_cols(&inputs[0].shape);
        let (op, covered) = match *kernel {
            Kernel::Op(op) => (op, Self::covers(&op, inputs, outputs)),
            Kernel::MulMatUnary(_) => (Op::MulMat, mul_mat(inputs, outputs[0])),
            Kernel::MulMatGlu(_) => {
                let mut weights = inputs[1..].iter();
                (
                    Op::MulMat,
                    weights.try_for_each(|weight| mul_mat(&[inputs[0], weight], outputs[0])),
                )
            }
            Kernel::MulMatMany { .. } => {
                let (weights, biases) = inputs[1..].split_at(outputs.len());
                let mut products = weights.iter().zip(outputs).enumerate();
                let covered = products.try_for_each(|(index, (&weight, output))| {
                    let operands = [inputs[0], weight].into_iter().chain(biases.get(index).copied());
                    mul_mat(&operands.collect::<Vec<_>>(), output)
                });
                (Op::MulMat, covered)
            }
            Kernel::AddRmsNorm { eps } => {
                let norms = || outputs[1..].iter().try_for_each(|norm| float(norm));
                let covered = all(inputs, outputs[0]).and_then(|()| norms());
                (Op::RmsNorm { eps }, covered.and_then(|()| limits::team_rows(dims())))
            }
            Kernel::RopeSetRows(r) => {
                let covered = rope(&[&[inputs[0]], &inputs[3..]].concat())
                    .and_then(|()| set_rows(inputs, outputs[0]))
                    .and_then(|()| limits::heads(r, dims()))
                    .and_then(|()| limits::rows_of(inputs[1]))
                    .and_then(|()| limits::tiles(rows_and_cols(&outputs[0].shape)));
                (Op::Rope(r), covered)
            }
        };
        covered.err().map(|reason| unimplemented(&op, reason))
    }
}

/// Elements of a head that the kernels of attention take.
fn head_dim(dim: usize, operand: &TensorDesc) -> Covered {
    rule(dim.is_multiple_of(4) && (1..=256).contains(&dim), || {
        format!("heads of {dim} elements, in {}", operand.summary())
    })
}

/// Every operand and the result as f32.
fn all(inputs: &[&TensorDesc], output: &TensorDesc) -> Covered {
    inputs.iter().try_for_each(|desc| float(desc))?;
    float(output)
}

fn get_rows(inputs: &[&TensorDesc], output: &TensorDesc) -> Covered {
    let table = inputs[0];
    if table_type(table).is_none() {
        float(table)?;
    }
    index(inputs[1])?;
    match output.dtype {
        DType::F32 => float(output),
        _ => contiguous(output),
    }
}

fn set_rows(inputs: &[&TensorDesc], output: &TensorDesc) -> Covered {
    float(inputs[0])?;
    rule(inputs[0].shape.len() <= 4, || {
        format!("rows of {}", inputs[0].summary())
    })?;
    rule(kv_type(output.dtype).is_some(), || {
        format!("rows into {}", output.dtype)
    })?;
    contiguous(output)?;
    match inputs[2].dtype {
        DType::I64 => contiguous(inputs[2]),
        _ => index(inputs[2]),
    }
}

/// The operands of ROPE.
fn rope(inputs: &[&TensorDesc]) -> Covered {
    float(inputs[0])?;
    index(inputs[1])?;
    inputs.get(2).map_or(Ok(()), |factors| contiguous(factors))
}

fn mul_mat(inputs: &[&TensorDesc], output: &TensorDesc) -> Covered {
    let (a, b) = (inputs[0], inputs[1]);
    float(a)?;
    inputs.get(2).map_or(Ok(()), |bias| float(bias))?;
    float(output)?;
    rule(a.shape.last() != Some(&0), || "an inner dimension of 0".to_owned())?;
    if !b.dtype.is_quantized() {
        let one = b.shape.len() == 2 && matrix_order(b).is_some();
        rule(one || b.shape.len() <= 4 && a.shape.len() <= 4, || {
            format!("{} and {}: more than 4 dimensions", a.summary(), b.summary())
        })?;
        float(b)?;
        return limits::mul_mat(a, b);
    }
    rule(weight_type(b.dtype).is_some() && whole_matrices(b), || {
        format!(
            "{} whose matrices do not lie one after the other in rows of their columns",
            b.summary()
        )
    })?;
    rule(b.shape.len() == 2 || a.shape.len() <= 4, || {
        format!("{} by {}", a.summary(), b.summary())
    })?;
    limits::mul_mat(a, b)
}
