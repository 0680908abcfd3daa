//! Errors of graphs and backends.

use std::fmt;

use crate::{DType, TensorId};

/// Types and shapes of a node's operands, for messages: ` (operands F32 [2, 3] and F16 [4])`, or nothing where they are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operands(pub(crate) Vec<(DType, Vec<usize>)>);

impl fmt::Display for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (dtype, shape)) in self.0.iter().enumerate() {
            let before = match index {
                0 => " (operands ",
                _ if index + 1 == self.0.len() => " and ",
                _ => ", ",
            };
            write!(f, "{before}{dtype} {shape:?}")?;
        }
        if self.0.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// The first node that uses a tensor, for messages: `node 3 (ADD): `, or nothing where there is none or none is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UsedBy(pub Option<(usize, &'static str)>);

impl fmt::Display for UsedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some((node, op)) => write!(f, "node {node} ({op}): "),
            None => Ok(()),
        }
    }
}

/// What can be wrong with a graph, or go wrong when it runs. Every variant says where and with which figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GgmlError {
    /// A hybrid backend has as many cards as it can tell apart.
    #[error("a hybrid backend takes {most} cards at most")]
    TooManyCards {
        /// The most.
        most: usize,
    },
    /// Two shapes that an op needs to agree do not.
    #[error("node {node} ({op}): {rule}, but the shapes are {left:?} and {right:?}")]
    InvalidShape {
        /// Index of the node in [`crate::Graph::nodes`].
        node: usize,
        /// Name of the op.
        op: &'static str,
        /// The first shape.
        left: Vec<usize>,
        /// The second shape.
        right: Vec<usize>,
        /// What the op asks for.
        rule: &'static str,
    },
    /// An op has too few or too many inputs or outputs.
    #[error("node {node} ({op}): takes {expected}, but has {inputs} inputs and {outputs} outputs{operands}")]
    InvalidArity {
        /// Index of the node.
        node: usize,
        /// Name of the op.
        op: &'static str,
        /// What the op takes, in words.
        expected: &'static str,
        /// Inputs given.
        inputs: usize,
        /// Outputs given.
        outputs: usize,
        /// The inputs.
        operands: Operands,
    },
    /// An operand has the wrong element type.
    #[error("node {node} ({op}): operand {operand} must be {expected}, but it is {found}{operands}")]
    InvalidDType {
        /// Index of the node.
        node: usize,
        /// Name of the op.
        op: &'static str,
        /// Position among the inputs; the outputs follow.
        operand: usize,
        /// What the op asks for.
        expected: &'static str,
        /// What it got.
        found: DType,
        /// The inputs.
        operands: Operands,
    },
    /// A parameter of an op makes no sense.
    #[error("node {node} ({op}): parameter {parameter} = {value} is not usable: {rule}{operands}")]
    InvalidParameter {
        /// Index of the node.
        node: usize,
        /// Name of the op.
        op: &'static str,
        /// Name of the parameter.
        parameter: &'static str,
        /// Its value.
        value: f64,
        /// What is asked of it.
        rule: &'static str,
        /// The inputs.
        operands: Operands,
    },
    /// A descriptor contradicts itself or its buffer.
    #[error("{used_by}tensor {}: {rule} (shape {shape:?}, strides {strides:?}, byte offset {byte_offset}, {dtype})", tensor.0)]
    InvalidLayout {
        /// The first node that uses it.
        used_by: UsedBy,
        /// The tensor.
        tensor: TensorId,
        /// Its shape.
        shape: Vec<usize>,
        /// Its strides in elements.
        strides: Vec<usize>,
        /// Its offset in bytes.
        byte_offset: usize,
        /// Its element type.
        dtype: DType,
        /// What is wrong.
        rule: &'static str,
    },
    /// The graph itself is wrong: order, missing tensors, two writers.
    #[error("node {node} ({op}): {rule} (tensor {}){operands}", tensor.0)]
    InvalidGraph {
        /// Index of the node.
        node: usize,
        /// Name of the op.
        op: &'static str,
        /// The tensor concerned.
        tensor: TensorId,
        /// What is wrong.
        rule: &'static str,
        /// The inputs that exist.
        operands: Operands,
    },
    /// No such tensor in the graph or in the backend.
    #[error("tensor {} does not exist here: add it to the graph, or allocate or bind it first", .0.0)]
    UnknownTensor(TensorId),
    /// The backend already holds something else under this id.
    #[error(
        "tensor {}: the backend already holds {bound} under this id, the graph wants {wanted}: free it, or use one backend per graph",
        tensor.0
    )]
    Rebound {
        /// The tensor.
        tensor: TensorId,
        /// What is bound.
        bound: String,
        /// What the graph describes.
        wanted: String,
    },
    /// A buffer or host slice has the wrong size.
    #[error("tensor {}: needs {expected} bytes, got {found}", tensor.0)]
    BufferSize {
        /// The tensor.
        tensor: TensorId,
        /// Bytes that the descriptor asks for.
        expected: usize,
        /// Bytes there are.
        found: usize,
    },
    /// An index that a tensor holds is out of range.
    #[error("node data ({op}): index {index} at position {position} is outside 0..{limit}")]
    IndexOutOfRange {
        /// Name of the op.
        op: &'static str,
        /// Position in the index tensor.
        position: usize,
        /// The index.
        index: u64,
        /// First index that is too large.
        limit: usize,
    },
    /// The backend does not do this op with these operands.
    #[error("the {backend} backend does not do {op} with {what}")]
    Unimplemented {
        /// Name of the backend.
        backend: &'static str,
        /// Name of the op.
        op: &'static str,
        /// What it cannot do.
        what: String,
    },
    /// The memory of the intermediates could not be planned.
    #[error("the memory plan failed: {0}")]
    Plan(#[from] crate::planner::PlanError),
    /// The backend failed; the source, which the message repeats, has the figures (an allocation over budget, a device error).
    #[error("the {backend} backend failed at {at}: {source}")]
    Backend {
        /// Name of the backend.
        backend: &'static str,
        /// The op or the call.
        at: String,
        /// What it said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Wraps an error of a layer below a backend.
pub(crate) fn failed<E>(backend: &'static str, at: impl Into<String>) -> impl FnOnce(E) -> GgmlError
where
    E: std::error::Error + Send + Sync + 'static,
{
    let at = at.into();
    move |source| GgmlError::Backend {
        backend,
        at,
        source: Box::new(source),
    }
}

/// Result of everything fallible in this crate.
pub type GgmlResult<T> = Result<T, GgmlError>;
