//! Checks of an output's descriptor against what the inputs determine.

use super::{At, Inferred, divides};
use crate::tensor::{contiguous_strides, same_addresses};
use crate::{GgmlError, GgmlResult, Layout, Op, TensorDesc, UsedBy};

impl Inferred {
    /// Checks that a node's output is what its inputs determine. `alias`: the node only names its input's memory
    /// ([`crate::Graph::is_alias`]); then it must name the elements that the op says.
    ///
    /// # Errors
    /// The output has another shape or type, or names other elements.
    pub fn check_output(
        &self,
        node: usize,
        op: &Op,
        inputs: &[&TensorDesc],
        output: &TensorDesc,
        alias: bool,
    ) -> GgmlResult<()> {
        let at = At::new(node, op, inputs);
        let input = inputs.first().copied().unwrap_or(output);
        let dtype = match self {
            Self::Exact(shape, dtype) => {
                let rule = "the output must have the shape that the inputs determine";
                at.rule(output.shape == *shape, rule, shape, &output.shape)?;
                *dtype
            }
            Self::Elements(_, dtype) => {
                check_reshape(node, input, output)?;
                *dtype
            }
            Self::Multiple(shape, dtype) => {
                let fits = output.shape.len() == shape.len()
                    && shape.iter().zip(&output.shape).all(|(&part, &n)| divides(part, n));
                let rule = "each dimension of the output must be a multiple of the input's";
                at.rule(fits, rule, shape, &output.shape)?;
                *dtype
            }
            Self::Part => {
                let fits = alias || output.element_count() == input.element_count();
                let rule = "an output that does not share the input's memory must be as large";
                at.rule(fits, rule, &input.shape, &output.shape)?;
                input.dtype
            }
        };
        if output.dtype != dtype {
            return Err(at.dtype(inputs.len(), "of the type that the inputs determine", output.dtype));
        }
        if !alias {
            return Ok(());
        }
        // It names the elements that its op says.
        let named = match self {
            Self::Part => return Ok(()),
            Self::Elements(..) => {
                let mut view = TensorDesc::view_of(input, 0);
                view.layout = Layout::RowMajor;
                view.set_shape(output.shape.clone());
                view
            }
            Self::Exact(..) | Self::Multiple(..) => permuted(op, input),
        };
        let same =
            named.byte_offset == output.byte_offset && same_addresses(&output.shape, &output.strides, &named.strides);
        let rule = "a view of the input must begin where it begins and have the strides that the op gives";
        at.rule(same, rule, &named.strides, &output.strides)
    }
}

/// The view that a TRANSPOSE or PERMUTE of `input` is.
pub(crate) fn permuted(op: &Op, input: &TensorDesc) -> TensorDesc {
    let rank = input.shape.len();
    let mut order: Vec<usize> = (0..rank).collect();
    match *op {
        Op::Permute { axes } if rank <= axes.len() => order.copy_from_slice(&axes[..rank]),
        Op::Transpose if rank >= 2 => order.swap(rank - 1, rank - 2),
        _ => {}
    }
    let mut view = TensorDesc::view_of(input, 0);
    view.shape = order.iter().map(|&d| input.shape[d]).collect();
    view.strides = order.iter().map(|&d| input.strides[d]).collect();
    let lies = |layout| same_addresses(&view.shape, &view.strides, &contiguous_strides(&view.shape, layout));
    view.layout = if lies(Layout::RowMajor) {
        Layout::RowMajor
    } else if lies(Layout::ColMajor) {
        Layout::ColMajor
    } else {
        Layout::Strided
    };
    view
}

/// Checks that `output` is `input` under another shape.
pub(crate) fn check_reshape(node: usize, input: &TensorDesc, output: &TensorDesc) -> GgmlResult<()> {
    let same = input.element_count() == output.element_count();
    let rule = "both must have the same number of elements";
    At::new(node, &Op::Reshape, &[input]).rule(same, rule, &input.shape, &output.shape)?;
    if output.is_view() && !(input.is_contiguous() && output.is_contiguous()) {
        return Err(GgmlError::InvalidLayout {
            used_by: UsedBy(Some((node, Op::Reshape.name()))),
            tensor: input.id,
            shape: input.shape.clone(),
            strides: input.strides.clone(),
            byte_offset: input.byte_offset,
            dtype: input.dtype,
            rule: "only contiguous memory can be given another shape: copy it first",
        });
    }
    Ok(())
}
