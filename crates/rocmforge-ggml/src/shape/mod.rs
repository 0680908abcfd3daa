//! Shape inference: the output's descriptor, from an op's inputs. Graph constructors, validation and backends all use it.

mod attention;
mod moves;
mod output;
mod planes;
mod products;
mod recurrent;
mod rope;
mod rows;

use smallvec::{SmallVec, smallvec};

use crate::{DType, GgmlError, GgmlResult, Layout, Op, TensorDesc};

pub(crate) use output::{check_reshape, permuted};
pub(crate) use recurrent::key_heads;

/// What the inputs determine of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inferred {
    /// Shape and type.
    Exact(Vec<usize>, DType),
    /// Only the number of elements and the type: `Reshape`.
    Elements(usize, DType),
    /// A shape that each dimension of the output is a multiple of, and the type: `Repeat`.
    Multiple(Vec<usize>, DType),
    /// Only that it lies in the input's memory: `View`.
    Part,
}

/// What is known of a node's outputs, in their order.
pub type Outputs = SmallVec<[Inferred; 1]>;

impl From<Inferred> for Outputs {
    fn from(one: Inferred) -> Self {
        smallvec![one]
    }
}

impl Inferred {
    /// The descriptor of a new output tensor with its own memory.
    ///
    /// # Errors
    /// [`GgmlError::InvalidArity`] if the inputs do not determine the shape.
    pub fn into_desc(self, node: usize, op: &Op) -> GgmlResult<TensorDesc> {
        match self {
            Self::Exact(shape, dtype) => Ok(TensorDesc::new(shape, dtype, Layout::RowMajor)),
            Self::Elements(..) | Self::Multiple(..) | Self::Part => Err(GgmlError::InvalidArity {
                node,
                op: op.name(),
                expected: "an output with a shape of its own: add the tensor and the node yourself",
                inputs: 1,
                outputs: 0,
                operands: Default::default(),
            }),
        }
    }
}

/// The checks of one node, with what they need for their messages.
struct At<'a> {
    node: usize,
    op: &'static str,
    inputs: &'a [&'a TensorDesc],
}

impl<'a> At<'a> {
    fn new(node: usize, op: &Op, inputs: &'a [&'a TensorDesc]) -> Self {
        let op = op.name();
        Self { node, op, inputs }
    }

    /// The outputs that a rule gives, one or several.
    fn outputs<R: Into<Outputs>>(&self, rule: impl FnOnce(&Self) -> GgmlResult<R>) -> GgmlResult<Outputs> {
        rule(self).map(Into::into)
    }

    fn arity(&self, range: std::ops::RangeInclusive<usize>, expected: &'static str) -> GgmlResult<()> {
        if range.contains(&self.inputs.len()) {
            return Ok(());
        }
        let inputs = self.inputs.len();
        Err(GgmlError::InvalidArity {
            node: self.node,
            op: self.op,
            expected,
            inputs,
            outputs: 1,
            operands: self.inputs.iter().copied().collect(),
        })
    }

    fn rule(&self, holds: bool, rule: &'static str, left: &[usize], right: &[usize]) -> GgmlResult<()> {
        if holds {
            return Ok(());
        }
        Err(GgmlError::InvalidShape {
            node: self.node,
            op: self.op,
            left: left.to_vec(),
            right: right.to_vec(),
            rule,
        })
    }

    fn rank(
        &self,
        input: usize,
        ranks: std::ops::RangeInclusive<usize>,
        rule: &'static str,
    ) -> GgmlResult<&'a [usize]> {
        let shape = self.inputs[input].shape.as_slice();
        self.rule(ranks.contains(&shape.len()), rule, shape, &[])?;
        Ok(shape)
    }

    fn float(&self, operand: usize) -> GgmlResult<DType> {
        let found = self.inputs[operand].dtype;
        if found.is_plain_float() {
            return Ok(found);
        }
        Err(self.dtype(operand, "F32, F16 or BF16", found))
    }

    fn f32(&self, operand: usize) -> GgmlResult<()> {
        match self.inputs[operand].dtype {
            DType::F32 => Ok(()),
            found => Err(self.dtype(operand, "F32", found)),
        }
    }

    /// A type that products and look-ups take with f32 activations.
    fn weight(&self, operand: usize) -> GgmlResult<()> {
        let found = self.inputs[operand].dtype;
        if found.is_weight() {
            return Ok(());
        }
        Err(self.dtype(operand, "F32, F16, BF16 or a block format of weights", found))
    }

    fn same_float(&self, count: usize) -> GgmlResult<DType> {
        let first = self.float(0)?;
        for operand in 1..count.min(self.inputs.len()) {
            if self.inputs[operand].dtype != first {
                return Err(self.dtype(operand, "of the first operand's type", self.inputs[operand].dtype));
            }
        }
        Ok(first)
    }

    fn index(&self, operand: usize) -> GgmlResult<()> {
        match self.inputs[operand].dtype {
            DType::U32 | DType::I32 => Ok(()),
            found => Err(self.dtype(operand, "U32 or I32", found)),
        }
    }

    fn dtype(&self, operand: usize, expected: &'static str, found: DType) -> GgmlError {
        GgmlError::InvalidDType {
            node: self.node,
            op: self.op,
            operand,
            expected,
            found,
            operands: self.inputs.iter().copied().collect(),
        }
    }

    fn parameter(&self, holds: bool, parameter: &'static str, value: f64, rule: &'static str) -> GgmlResult<()> {
        if holds {
            return Ok(());
        }
        Err(GgmlError::InvalidParameter {
            node: self.node,
            op: self.op,
            parameter,
            value,
            rule,
            operands: self.inputs.iter().copied().collect(),
        })
    }

    fn number(&self, name: &'static str, value: f32) -> GgmlResult<()> {
        self.parameter(!value.is_nan(), name, f64::from(value), "it must be a number")
    }

    fn positive(&self, name: &'static str, value: f32) -> GgmlResult<()> {
        let holds = value.is_finite() && value > 0.0;
        self.parameter(holds, name, f64::from(value), "it must be finite and positive")
    }

    fn not_negative(&self, name: &'static str, value: f32) -> GgmlResult<()> {
        let holds = value.is_finite() && value >= 0.0;
        self.parameter(holds, name, f64::from(value), "it must be finite and not negative")
    }

    /// `a` and a `b` that repeats to `a`'s shape, each of any plain float.
    fn broadcast(&self) -> GgmlResult<Inferred> {
        self.arity(2..=2, "2 inputs and 1 output")?;
        let dtype = self.float(0)?;
        self.float(1)?;
        let (a, b) = (&self.inputs[0].shape, &self.inputs[1].shape);
        self.rule(repeats(a, b), "the second operand must broadcast to the first", a, b)?;
        Ok(Inferred::Exact(a.clone(), dtype))
    }

    /// A shape of at least one dimension.
    fn rows(&self, input: usize) -> GgmlResult<&'a [usize]> {
        self.rank(input, 1..=usize::MAX, "the input must have rows")
    }

    fn unary(&self) -> GgmlResult<Inferred> {
        self.arity(1..=1, "1 input and 1 output")?;
        Ok(Inferred::Exact(self.inputs[0].shape.clone(), self.float(0)?))
    }

    /// One input with rows, of any plain float; its shape with the last dimension replaced.
    fn row_to(&self, last: usize, dtype: Option<DType>) -> GgmlResult<Inferred> {
        self.arity(1..=1, "1 input and 1 output")?;
        let own = self.float(0)?;
        let mut shape = self.rows(0)?.to_vec();
        let end = shape.len() - 1;
        shape[end] = last;
        Ok(Inferred::Exact(shape, dtype.unwrap_or(own)))
    }
}

/// Whether `b`'s shape, aligned at the last dimension, can be repeated to `a`'s where it is 1.
#[must_use]
pub fn broadcasts(a: &[usize], b: &[usize]) -> bool {
    b.len() <= a.len() && b.iter().rev().zip(a.iter().rev()).all(|(&b, &a)| b == a || b == 1)
}

/// Whether `b`'s shape, aligned at the last dimension, can be repeated to `a`'s: each dimension divides `a`'s.
#[must_use]
pub fn repeats(a: &[usize], b: &[usize]) -> bool {
    b.len() <= a.len() && b.iter().rev().zip(a.iter().rev()).all(|(&b, &a)| divides(b, a))
}

/// Whether `whole` is a multiple of `part`; of 0 only 0 is.
fn divides(part: usize, whole: usize) -> bool {
    part == whole || (part != 0 && whole.is_multiple_of(part))
}

/// Checks a node's outputs: as many as the op has, of the shapes and types that its inputs determine.
///
/// # Errors
/// The first fault, with the node, the op and both shapes.
pub(crate) fn check_outputs(
    node: usize,
    op: &Op,
    inputs: &[&TensorDesc],
    outputs: &[&TensorDesc],
    alias: bool,
) -> GgmlResult<()> {
    let inferred = infer_all(node, op, inputs)?;
    if inferred.len() != outputs.len() {
        return Err(GgmlError::InvalidArity {
            node,
            op: op.name(),
            expected: match inferred.len() {
                1 => "1 output",
                _ => "2 outputs",
            },
            inputs: inputs.len(),
            outputs: outputs.len(),
            operands: inputs.iter().copied().collect(),
        });
    }
    let mut pairs = inferred.iter().zip(outputs);
    pairs.try_for_each(|(inferred, output)| inferred.check_output(node, op, inputs, output, alias))
}

/// What the inputs of `op` determine of its output, the first one if it has several.
///
/// # Errors
/// As [`infer_all`].
pub fn infer(node: usize, op: &Op, inputs: &[&TensorDesc]) -> GgmlResult<Inferred> {
    Ok(infer_all(node, op, inputs)?.swap_remove(0))
}

macro_rules! rules {
    ($(
        $name:tt $variant:ident $(($member:tt: $kind:ident of $family:ident))? $({ $($field:tt: $parameter:ident),* })?
            [$($fact:tt)*] shape $rule:expr, cpu $cpu:expr, hip ($($hip:tt)*)
    )*) => {
        /// What the inputs of `op` determine of each of its outputs.
        ///
        /// # Errors
        /// The inputs do not fit the op; the error has `node`, the op, and both shapes.
        #[allow(unused_variables)]
        pub fn infer_all(node: usize, op: &Op, inputs: &[&TensorDesc]) -> GgmlResult<Outputs> {
            let at = At::new(node, op, inputs);
            match *op {
                $(Op::$variant { $($member: $kind,)? $($($field: $parameter),*)? } => at.outputs($rule),)*
            }
        }
    };
}

crate::op::ops!(rules);
