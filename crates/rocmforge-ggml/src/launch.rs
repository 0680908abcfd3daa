//! Launches of a graph: its nodes in the form in which a backend runs them, several as one where it has a kernel for them.

use crate::planner::Overwrites;
use crate::{GluKind, Node, Op, Rope, TensorId, Unary};

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
    /// f32 `a`, `b [.., d]` of one shape and optionally `weight [d]` to two outputs: `a + b`, and the RMS_NORM of that.
    AddRmsNorm {
        /// Added to the mean square.
        eps: f32,
    },
    /// f32 `x [batch, seq, heads, head_dim]`, `dst [rows, heads * head_dim]`, `ids [batch * seq]`, positions and optional factors as of
    /// ROPE: the rotated heads of each token become a row of `dst`, which the output is a view of.
    RopeSetRows(Rope),
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
            Self::AddRmsNorm { .. } => "ADD_RMS_NORM",
            Self::RopeSetRows(_) => "ROPE_SET_ROWS",
        }
    }

    /// The operands that a result may overwrite.
    pub(crate) fn overwrites(&self) -> Overwrites {
        match self {
            Self::Op(op) => Overwrites::of(op.name()),
            // Each of the two outputs depends on the same row of both operands.
            Self::AddRmsNorm { .. } => Overwrites::Both,
            _ => Overwrites::Nothing,
        }
    }
}

/// One launch: what it computes, and the tensors that it reads and writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// What is computed.
    pub kernel: Kernel,
    /// Tensors read.
    pub inputs: Vec<TensorId>,
    /// Tensors written.
    pub outputs: Vec<TensorId>,
    /// Whether a device may run it with the launch before, as one. Their operands and results live at once in a plan, and none lies over another
    /// that a second launch of theirs reads or writes.
    pub joined: bool,
}

impl Launch {
    /// A launch by itself.
    #[must_use]
    pub fn new(kernel: Kernel, inputs: impl Into<Vec<TensorId>>, outputs: impl Into<Vec<TensorId>>) -> Self {
        Self {
            kernel,
            inputs: inputs.into(),
            outputs: outputs.into(),
            joined: false,
        }
    }

    /// Weights of a product, whatever it does with the results; none of another launch.
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
