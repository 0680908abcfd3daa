//! Launches of a graph: its nodes in the form in which a backend runs them, several as one where it has a kernel for them.

use crate::op::Output;
use crate::planner::Overwrites;
use crate::{ExpertUnit, GluKind, Node, Op, Rope, TensorId, Unary};

/// What one launch computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kernel {
    /// One op.
    Op(Op),
    /// MUL_MAT, with or without a bias, then a function of each element.
    MulMatUnary(Unary),
    /// `x [.., m, k]`, `gate [k, n]`, `up [k, n]` to f32 `[.., m, n]`: `f(x gate) * (x up)`, two MUL_MAT and their gated unit.
    MulMatGlu(GluKind),
    /// Several MUL_MAT of one `x [.., m, k]`: weights `[k, n_i]`, then with `biases` a bias `[n_i]` for each, to as many outputs.
    MulMatMany {
        /// Whether there is a bias for each weight.
        biases: bool,
    },
    /// `x [tokens, used or 1, k]`, `gate` and `up [n_expert, k, n]`, `ids [tokens, used]`, perhaps biases of gate and up `[n_expert, n]`, to f32
    /// `[tokens, used, n]`: two MUL_MAT_ID, their ADD_ID, and their gated unit.
    MulMatIdGlu(ExpertUnit),
    /// `x [tokens, used or 1, k]`, `experts [n_expert, k, n]`, `ids [tokens, used]`, `factors [tokens, 1, used]`, and what [`SumOf`] names, to f32
    /// `[tokens, 1, n]` or `[tokens, n]`: MUL_MAT_ID, its ADD_ID, the sum of its rows times their factors, and what is added to that sum.
    MulMatIdSum(SumOf),
    /// f32 `a`, `b [.., d]` of one shape and optionally `weight [d]` to two outputs: `a + b`, and the RMS_NORM of that.
    AddRmsNorm {
        /// Added to the mean square.
        eps: f32,
    },
    /// f32 `x [batch, seq, heads, head_dim]`, `dst [rows, heads * head_dim]`, `ids [batch * seq]`, positions and optional factors as of
    /// ROPE: the rotated heads of each token become a row of `dst`, which the output is a view of.
    RopeSetRows(Rope),
}

/// Operands of [`Kernel::MulMatIdSum`] after the factors, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SumOf {
    /// A bias `[n_expert, n]`, of ADD_ID.
    pub bias: bool,
    /// f32 `[tokens, n]` that is added.
    pub beside: bool,
    /// f32 `[tokens, 1]`, whose sigmoid is a factor of `beside`.
    pub gate: bool,
    /// Another f32 `[tokens, n]` that is added last.
    pub residual: bool,
}

impl SumOf {
    /// The operands that are named, of those after the factors: bias, beside, gate, residual.
    pub(crate) fn operands<T>(self, rest: &[T]) -> [Option<&T>; 4] {
        let mut rest = rest.iter();
        [self.bias, self.beside, self.gate, self.residual].map(|there| if there { rest.next() } else { None })
    }
}

impl Kernel {
    /// Its name in messages and profiles.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Op(op) => op.name(),
            Self::MulMatUnary(_) => "MUL_MAT_UNARY",
            Self::MulMatGlu(_) => "MUL_MAT_GLU",
            Self::MulMatMany { .. } => "MUL_MAT_MANY",
            Self::MulMatIdGlu(_) => "MUL_MAT_ID_GLU",
            Self::MulMatIdSum(_) => "MUL_MAT_ID_SUM",
            Self::AddRmsNorm { .. } => "ADD_RMS_NORM",
            Self::RopeSetRows(_) => "ROPE_SET_ROWS",
        }
    }

    /// The operands that a result may overwrite.
    pub(crate) const fn overwrites(&self) -> Overwrites {
        match self {
            Self::Op(op) => op.facts().overwrites,
            // Each of the two outputs depends on the same row of both operands.
            Self::AddRmsNorm { .. } => Overwrites::Both,
            Self::MulMatUnary(_)
            | Self::MulMatGlu(_)
            | Self::MulMatMany { .. }
            | Self::MulMatIdGlu(_)
            | Self::MulMatIdSum(_)
            | Self::RopeSetRows(_) => Overwrites::Nothing,
        }
    }

    /// Where its first output lies.
    pub(crate) const fn output(&self) -> Output {
        match self {
            Self::Op(op) => op.facts().output,
            Self::RopeSetRows(_) => Output::Second,
            Self::MulMatUnary(_)
            | Self::MulMatGlu(_)
            | Self::MulMatMany { .. }
            | Self::MulMatIdGlu(_)
            | Self::MulMatIdSum(_)
            | Self::AddRmsNorm { .. } => Output::Own,
        }
    }
}

/// One launch: what it computes, and the tensors that it reads and writes.
///
/// A launch comes from a [`Node`] or from [`crate::Graph::launches`]: only the optimizer makes one of several nodes, whose operands it has checked.
///
/// ```compile_fail,E0624
/// use rocmforge_ggml::{Kernel, Launch, TensorId};
///
/// let without_operands = Launch::new(Kernel::AddRmsNorm { eps: 1e-5 }, [], [TensorId(0)]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    pub(crate) kernel: Kernel,
    pub(crate) inputs: Vec<TensorId>,
    pub(crate) outputs: Vec<TensorId>,
    pub(crate) joined: bool,
}

impl Launch {
    /// What is computed.
    #[must_use]
    pub const fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Tensors read.
    #[must_use]
    pub fn inputs(&self) -> &[TensorId] {
        &self.inputs
    }

    /// Tensors written.
    #[must_use]
    pub fn outputs(&self) -> &[TensorId] {
        &self.outputs
    }

    /// Whether a device may run it and the launch before as one. A plan then keeps the operands and results of both in memory at the same time. None of
    /// them shares memory with another one that the second launch reads or writes, except a table of states: the first launch reads it, the second writes it.
    #[must_use]
    pub const fn is_joined(&self) -> bool {
        self.joined
    }

    /// A launch by itself. Of several nodes: the operands are those of nodes that are checked.
    #[must_use]
    pub(crate) fn new(kernel: Kernel, inputs: impl Into<Vec<TensorId>>, outputs: impl Into<Vec<TensorId>>) -> Self {
        Self {
            kernel,
            inputs: inputs.into(),
            outputs: outputs.into(),
            joined: false,
        }
    }

    /// Weights of a product, whatever it does with the results; a launch of another kind has no weights.
    pub(crate) fn weights(&self) -> &[TensorId] {
        let operands = match self.kernel {
            Kernel::Op(Op::MulMat) | Kernel::MulMatUnary(_) => 1..2,
            Kernel::MulMatGlu(_) => 1..3,
            Kernel::MulMatMany { .. } => 1..1 + self.outputs.len(),
            _ => 0..0,
        };
        self.inputs.get(operands).unwrap_or_default()
    }
}

impl From<&Node> for Launch {
    fn from(node: &Node) -> Self {
        Self::new(Kernel::Op(node.op), node.inputs.clone(), node.outputs.clone())
    }
}
