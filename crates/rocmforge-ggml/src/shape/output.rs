//! Checks of an output's descriptor against what the inputs determine.

use super::{Inferred, divides};
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
        let shape_error = |left: &[usize], rule| {
            Err(GgmlError::InvalidShape {
                node,
                op: op.name(),
                left: left.to_vec(),
                right: output.shape.clone(),
                rule,
            })
        };
        let mut dtype = output.dtype;
        match self {
            Self::Exact(shape, exact) => {
                if output.shape != *shape {
                    return shape_error(shape, "the output must have the shape that the inputs determine");
                }
                dtype = *exact;
            }
            Self::Elements(_, exact) => {
                if let Some(input) = inputs.first() {
                    check_reshape(node, input, output)?;
                }
                dtype = *exact;
            }
            Self::Multiple(shape, exact) => {
                let fits = output.shape.len() == shape.len();
                if !fits || !shape.iter().zip(&output.shape).all(|(&part, &n)| divides(part, n)) {
                    return shape_error(shape, "each dimension of the output must be a multiple of the input's");
                }
                dtype = *exact;
            }
            Self::Part => {
                if let Some(input) = inputs.first() {
                    if !alias && output.element_count() != input.element_count() {
                        return shape_error(
                            &input.shape,
                            "an output that does not share the input's memory must be as large",
                        );
                    }
                    dtype = input.dtype;
                }
            }
        }
        if output.dtype != dtype {
            return Err(GgmlError::InvalidDType {
                node,
                op: op.name(),
                operand: inputs.len(),
                expected: "of the type that the inputs determine",
                found: output.dtype,
                operands: inputs.iter().copied().collect(),
            });
        }
        match inputs.first() {
            Some(input) if alias => check_alias(node, op, input, output),
            _ => Ok(()),
        }
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

/// Checks that an alias names the elements that its op says.
fn check_alias(node: usize, op: &Op, input: &TensorDesc, output: &TensorDesc) -> GgmlResult<()> {
    let expected = match op {
        Op::Transpose | Op::Permute { .. } => permuted(op, input),
        Op::Reshape => {
            let mut view = TensorDesc::view_of(input, 0);
            view.layout = Layout::RowMajor;
            view.set_shape(output.shape.clone());
            view
        }
        _ => return Ok(()),
    };
    let same =
        expected.byte_offset == output.byte_offset && same_addresses(&output.shape, &output.strides, &expected.strides);
    if same {
        return Ok(());
    }
    Err(GgmlError::InvalidShape {
        node,
        op: op.name(),
        left: expected.strides,
        right: output.strides.clone(),
        rule: "a view of the input must begin where it begins and have the strides that the op gives",
    })
}

/// Checks that `output` is `input` under another shape.
pub(crate) fn check_reshape(node: usize, input: &TensorDesc, output: &TensorDesc) -> GgmlResult<()> {
    let op = Op::Reshape.name();
    if input.element_count() != output.element_count() {
        return Err(GgmlError::InvalidShape {
            node,
            op,
            left: input.shape.clone(),
            right: output.shape.clone(),
            rule: "both must have the same number of elements",
        });
    }
    if output.is_view() && !(input.is_contiguous() && output.is_contiguous()) {
        return Err(GgmlError::InvalidLayout {
            used_by: UsedBy(Some((node, op))),
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
