//! Memory planner: intermediates share buffers, and each may overwrite an operand that is not read afterwards.
//!
//! A [`Problem`] says what needs memory and for how long, apart from any graph; [`share_memory`] makes one of a [`crate::Graph`],
//! [`crate::graph_file::GraphFile::problem`] one of a graph file. [`Plan::new`] places all of it at once (offline), and verifies the
//! result in every build. [`Plan::bound_bytes`] is a proven lower bound for the order of the nodes; docs/graph.md has figures.

mod bodies;
mod error;
mod place;
mod plan;
mod problem;
mod reuse;
mod share;
mod verify;

pub use error::PlanError;
pub use plan::{Buffer, Place, Plan, Planner};
pub use problem::{BufferKind, InPlacePair, Item, MAX_NODES, Problem};
pub use reuse::{InPlace, Overwrites};
pub use share::{GraphProblem, PlanStats, graph_problem, share_memory, share_memory_in};
pub use verify::verify;
