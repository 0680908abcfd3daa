//! Names of tensors within a graph.

use std::fmt;

/// Name of a tensor within one [`crate::Graph`]. Stays the same for the life of the graph: removed tensors leave a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TensorId(pub usize);

impl fmt::Display for TensorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}
