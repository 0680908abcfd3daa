//! Shape inference: what an op's inputs say about its output.

mod attention;

use crate::{DType, GgmlError, GgmlResult, Layout, Op, RopeScaling, TensorDesc};

/// What the inputs determine of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Inferred {
    /// Shape and type.
    Exact(Vec<usize>, DType),
    /// Only the number of elements and the type: `Reshape`.
    Elements(usize, DType),
    /// Only that it lies in the input's memory: `View`.
    Part,
}

impl Inferred {
    /// The descriptor of a new output tensor with its own memory.
    ///
    /// # Errors
    /// [`GgmlError::InvalidArity`] if the inputs do not determine the shape.
    pub fn into_desc(self, node: usize, op: &Op) -> GgmlResult<TensorDesc> {
        match self {
            Self::Exact(shape, dtype) => Ok(TensorDesc::new(shape, dtype, Layout::RowMajor)),
            Self::Elements(..) | Self::Part => Err(GgmlError::InvalidArity {
                node,
                op: op.name(),
                expected: "an output with a shape of its own: add the tensor and the node yourself",
                inputs: 1,
                outputs: 0,
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
        if matches!(found, DType::F32 | DType::F16 | DType::Bf16 | DType::F64) {
            return Ok(found);
        }
        Err(self.dtype(operand, "a plain float", found))
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
        })
    }

    fn broadcast(&self) -> GgmlResult<Inferred> {
        self.arity(2..=2, "2 inputs and 1 output")?;
        let dtype = self.same_float(2)?;
        let (a, b) = (&self.inputs[0].shape, &self.inputs[1].shape);
        self.rule(broadcasts(a, b), "the second operand must broadcast to the first", a, b)?;
        Ok(Inferred::Exact(a.clone(), dtype))
    }

    /// `x [.., d]` and per-column vectors `[d]`.
    fn rows_with_vectors(&self, vectors: usize, expected: &'static str) -> GgmlResult<Inferred> {
        self.arity(1..=1 + vectors, expected)?;
        let dtype = self.same_float(1 + vectors)?;
        let x = self.rank(0, 1..=usize::MAX, "the input must have rows")?;
        for vector in &self.inputs[1..] {
            self.rule(
                vector.shape == x[x.len() - 1..],
                "the vector must be as long as a row",
                x,
                &vector.shape,
            )?;
        }
        Ok(Inferred::Exact(x.to_vec(), dtype))
    }

    fn unary(&self) -> GgmlResult<Inferred> {
        self.arity(1..=1, "1 input and 1 output")?;
        Ok(Inferred::Exact(self.inputs[0].shape.clone(), self.float(0)?))
    }
}

/// Whether `b`'s shape, aligned at the last dimension, can be repeated to `a`'s.
#[must_use]
pub fn broadcasts(a: &[usize], b: &[usize]) -> bool {
    b.len() <= a.len() && b.iter().rev().zip(a.iter().rev()).all(|(&b, &a)| b == a || b == 1)
}

/// What the inputs of `op` determine of its output.
///
/// # Errors
/// The inputs do not fit the op; the error has `node`, the op, and both shapes.
pub fn infer(node: usize, op: &Op, inputs: &[&TensorDesc]) -> GgmlResult<Inferred> {
    let at = At {
        node,
        op: op.name(),
        inputs,
    };
    match *op {
        Op::GetRows => {
            at.arity(2..=2, "a table, ids and 1 output")?;
            let table = at.rank(0, 2..=2, "the table must have 2 dimensions")?;
            at.index(1)?;
            let dtype = match inputs[0].dtype {
                DType::F64 => DType::F64,
                _ => {
                    at.weight(0)?;
                    DType::F32
                }
            };
            let mut shape = inputs[1].shape.clone();
            shape.push(table[1]);
            Ok(Inferred::Exact(shape, dtype))
        }
        Op::MatMul => matmul(&at),
        Op::Add | Op::Mul | Op::Mask => at.broadcast(),
        Op::Scale { factor } => {
            at.parameter(!factor.is_nan(), "factor", f64::from(factor), "it must be a number")?;
            at.unary()
        }
        Op::LayerNorm { eps } => {
            at.parameter(
                eps >= 0.0 && eps.is_finite(),
                "eps",
                f64::from(eps),
                "it must be finite and not negative",
            )?;
            at.rows_with_vectors(2, "x, optional weight and bias, and 1 output")
        }
        Op::RmsNorm { eps } => {
            at.parameter(
                eps >= 0.0 && eps.is_finite(),
                "eps",
                f64::from(eps),
                "it must be finite and not negative",
            )?;
            at.rows_with_vectors(1, "x, optional weight, and 1 output")
        }
        Op::Rope(rope) => {
            at.arity(2..=3, "x, positions, optional factors and 1 output")?;
            let dtype = at.float(0)?;
            at.index(1)?;
            let x = at.rank(0, 4..=4, "x must be [batch, seq, heads, head_dim]")?;
            let positions = &inputs[1].shape;
            at.rule(
                *positions == x[..2] || *positions == x[1..2],
                "positions must be [batch, seq] or [seq]",
                x,
                positions,
            )?;
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
            rope_scaling(&at, rope.scaling)?;
            if let Some(factors) = inputs.get(2) {
                let expected = [rope.n_dims / 2];
                at.rule(
                    factors.shape == expected,
                    "there must be a factor per pair",
                    &factors.shape,
                    &expected,
                )?;
                if factors.dtype != DType::F32 {
                    return Err(at.dtype(2, "F32", factors.dtype));
                }
            }
            Ok(Inferred::Exact(x.to_vec(), dtype))
        }
        Op::Softmax | Op::Gelu(_) | Op::Silu => at.unary(),
        Op::Softcap { cap } => {
            at.parameter(
                cap.is_finite() && cap > 0.0,
                "cap",
                f64::from(cap),
                "it must be finite and positive",
            )?;
            at.unary()
        }
        Op::Cast { to } => {
            at.arity(1..=1, "1 input and 1 output")?;
            for (operand, dtype) in [(0, inputs[0].dtype), (1, to)] {
                if !matches!(dtype, DType::F32 | DType::F16 | DType::Bf16) {
                    return Err(at.dtype(operand, "F32, F16 or BF16", dtype));
                }
            }
            Ok(Inferred::Exact(inputs[0].shape.clone(), to))
        }
        Op::Concat { axis } => {
            at.arity(2..=2, "2 inputs and 1 output")?;
            let (a, b) = (&inputs[0].shape, &inputs[1].shape);
            at.parameter(axis < a.len(), "axis", axis as f64, "it must be a dimension")?;
            let agree = a.len() == b.len() && (0..a.len()).all(|d| d == axis || a[d] == b[d]);
            at.rule(agree, "all dimensions but the axis must agree", a, b)?;
            if inputs[1].dtype != inputs[0].dtype || inputs[0].dtype.is_quantized() {
                return Err(at.dtype(1, "of the first operand's type, and no block format", inputs[1].dtype));
            }
            let mut shape = a.clone();
            shape[axis] = shape[axis].saturating_add(b[axis]);
            Ok(Inferred::Exact(shape, inputs[0].dtype))
        }
        Op::ArgMax => {
            at.arity(1..=1, "1 input and 1 output")?;
            at.float(0)?;
            let x = at.rank(0, 1..=usize::MAX, "the input must have rows")?;
            at.rule(x[x.len() - 1] > 0, "a row must have elements", x, &[])?;
            Ok(Inferred::Exact(x[..x.len() - 1].to_vec(), DType::U32))
        }
        Op::TopK { k } => {
            at.arity(1..=1, "1 input and 1 output")?;
            at.float(0)?;
            let mut shape = at.rank(0, 1..=usize::MAX, "the input must have rows")?.to_vec();
            let last = shape.len() - 1;
            at.parameter(
                k > 0 && k <= shape[last],
                "k",
                k as f64,
                "it must be 1 to the length of a row",
            )?;
            shape[last] = k;
            Ok(Inferred::Exact(shape, DType::U32))
        }
        Op::SetRows => {
            at.arity(3..=3, "src, dst, row ids, and a view of dst as output")?;
            if inputs[0].dtype != DType::F32 {
                return Err(at.dtype(0, "F32", inputs[0].dtype));
            }
            let dtype = inputs[1].dtype;
            if !matches!(dtype, DType::F32 | DType::F16) {
                return Err(at.dtype(1, "F32 or F16", dtype));
            }
            at.index(2)?;
            let src = at.rank(0, 2..=2, "src must be [n, d]")?;
            let dst = at.rank(1, 2..=2, "dst must be [rows, d]")?;
            at.rule(src[1] == dst[1], "rows of src and dst must be equally long", src, dst)?;
            let ids = &inputs[2].shape;
            at.rule(ids[..] == src[..1], "there must be one row id per row of src", src, ids)?;
            Ok(Inferred::Exact(dst.to_vec(), dtype))
        }
        Op::L2Normalize { eps } => {
            at.parameter(
                eps >= 0.0 && eps.is_finite(),
                "eps",
                f64::from(eps),
                "it must be finite and not negative",
            )?;
            at.unary()
        }
        Op::Attention(a) => attention::whole(&at, &a),
        Op::PagedAttention(a) => attention::paged(&at, &a),
        Op::SwiGlu | Op::GeGlu => {
            at.arity(2..=2, "gate, up and 1 output")?;
            let dtype = at.same_float(2)?;
            let (gate, up) = (&inputs[0].shape, &inputs[1].shape);
            at.rule(gate == up, "gate and up must have the same shape", gate, up)?;
            Ok(Inferred::Exact(gate.clone(), dtype))
        }
        Op::Reshape => {
            at.arity(1..=1, "1 input and 1 output")?;
            Ok(Inferred::Elements(inputs[0].element_count(), inputs[0].dtype))
        }
        Op::View => {
            at.arity(1..=1, "1 input and 1 output")?;
            Ok(Inferred::Part)
        }
        Op::Copy => {
            at.arity(1..=1, "1 input and 1 output")?;
            Ok(Inferred::Exact(inputs[0].shape.clone(), inputs[0].dtype))
        }
        Op::Transpose => {
            at.arity(1..=1, "1 input and 1 output")?;
            let mut shape = at
                .rank(0, 2..=usize::MAX, "the input must have at least 2 dimensions")?
                .to_vec();
            let rank = shape.len();
            shape.swap(rank - 1, rank - 2);
            Ok(Inferred::Exact(shape, inputs[0].dtype))
        }
        Op::Accumulate { offset } => {
            at.arity(2..=2, "src, dst, and dst as output")?;
            let dtype = at.same_float(2)?;
            let (src, dst) = (inputs[0], inputs[1]);
            let fits = offset
                .checked_add(src.element_count())
                .is_some_and(|end| end <= dst.element_count());
            at.rule(fits, "src must fit into dst from the offset on", &src.shape, &dst.shape)?;
            Ok(Inferred::Exact(dst.shape.clone(), dtype))
        }
        Op::MeanPool => {
            at.arity(2..=2, "x, weight and 1 output")?;
            let dtype = at.same_float(2)?;
            let x = at.rank(0, 3..=3, "x must be [batch, seq, dim]")?;
            let weight = &inputs[1].shape;
            at.rule(*weight == x[..2], "the weight must be [batch, seq]", x, weight)?;
            Ok(Inferred::Exact(vec![x[0], x[2]], dtype))
        }
    }
}

fn matmul(at: &At<'_>) -> GgmlResult<Inferred> {
    at.arity(2..=3, "2 matrices, an optional bias and 1 output")?;
    let a = at.rank(0, 2..=usize::MAX, "the left matrix must have at least 2 dimensions")?;
    let b = at.rank(1, 2..=usize::MAX, "the right matrix must have at least 2 dimensions")?;
    let (batch, [k, n]) = (&b[..b.len() - 2], [b[b.len() - 2], b[b.len() - 1]]);
    at.rule(
        batch.is_empty() || *batch == a[..a.len() - 2],
        "the right matrix must be one, or one for each left matrix",
        a,
        b,
    )?;
    at.rule(a[a.len() - 1] == k, "the inner dimensions must agree", a, b)?;
    let dtype = at.float(0)?;
    if at.inputs[1].dtype != dtype {
        at.weight(1)?;
        if dtype != DType::F32 {
            return Err(at.dtype(0, "F32 where the weight is of another type", dtype));
        }
        // Rows of a block format are along k, and 16-bit weights lie the same way.
        at.rule(
            batch.is_empty() && at.inputs[1].layout == Layout::ColMajor,
            "a weight of another type must be one column-major matrix",
            a,
            b,
        )?;
    }
    if let Some(bias) = at.inputs.get(2) {
        at.rule(
            bias.shape == [n],
            "the bias must be as long as the right matrix is wide",
            b,
            &bias.shape,
        )?;
        if bias.dtype != dtype {
            return Err(at.dtype(2, "of the first operand's type", bias.dtype));
        }
    }
    let mut shape = a.to_vec();
    shape.pop();
    shape.push(n);
    Ok(Inferred::Exact(shape, dtype))
}

fn rope_scaling(at: &At<'_>, scaling: RopeScaling) -> GgmlResult<()> {
    let positive = |name, value: f32| {
        at.parameter(
            value.is_finite() && value > 0.0,
            name,
            f64::from(value),
            "it must be finite and positive",
        )
    };
    match scaling {
        RopeScaling::None => Ok(()),
        RopeScaling::Linear { factor } => positive("factor", factor),
        RopeScaling::Yarn {
            factor,
            original_context,
            beta_fast,
            beta_slow,
        } => {
            positive("factor", factor)?;
            positive("beta_fast", beta_fast)?;
            positive("beta_slow", beta_slow)?;
            let context = original_context as f64;
            at.parameter(original_context > 0, "original_context", context, "it must be positive")
        }
    }
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
