//! Graph files: the schema `rocmforge-graph-v1`, a graph's tensors in the order they are computed, with sizes and without data.
//!
//! [`GraphFile::read`] takes JSON, plain or compressed with gzip, and any bytes give a file that holds together or a typed error:
//! references exist and point backwards, views lie inside of their roots, shapes and strides inside of their bytes.
//! [`GraphFile::problem`] makes the memory planner's input of it, [`GraphFile::from_graph`] a file of a [`crate::Graph`], and
//! [`GraphFile::to_graph`] the graph again, [`GraphFile::optimized`] the file of that graph after the optimizer's passes.
//!
//! ```
//! use rocmforge_ggml::graph_file::GraphFile;
//! use rocmforge_ggml::planner::{BufferKind, InPlace, Plan};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/graphs/llama7b_tg1.json.gz");
//! let file = GraphFile::read(path)?;
//! let plan = Plan::new(&file.problem(BufferKind::unlimited(128), InPlace::Full).problem)?;
//! assert_eq!((plan.peak_bytes, plan.bound_bytes), (144_384, 144_384));
//! # Ok(())
//! # }
//! ```

mod check;
mod error;
mod export;
mod import;
mod io;
mod optimize;
mod order;
mod problem;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use error::GraphFileError;
pub use optimize::OptimizedFile;
pub use order::{FoundOrder, search_order};
pub use problem::PlannedFile;

use crate::planner::Overwrites;

/// Name of the schema.
pub const SCHEMA: &str = "rocmforge-graph-v1";

/// Ids of tensors in a file of a [`crate::Graph`] are below this, 8 times the most entries: a graph keeps a place for each id.
const MAX_TENSORS: u64 = 1 << 18;

/// A graph: leafs, then nodes in the order they run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphFile {
    /// Name of the schema.
    schema: String,
    /// What the graph is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Number of leafs, if the file states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n_leafs: Option<u64>,
    /// Number of nodes, if the file states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    n_nodes: Option<u64>,
    /// Bytes that ggml's allocator takes: `align_128` and so on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ggml_peak_bytes: BTreeMap<String, u64>,
    /// Microseconds that ggml's allocator needs for its plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ggml_plan_us: Option<f64>,
    /// Leafs, then nodes. Checked: they change only with the whole file.
    nodes: Vec<Entry>,
    /// All other fields, as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
    /// Of each entry's op, the row in the table of what may be overwritten.
    #[serde(skip)]
    overwrites: Vec<Overwrites>,
}

/// Whether a tensor is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// It is there before the first node runs.
    #[default]
    Leaf,
    /// It is computed, or named anew by a view op.
    Node,
}

/// What [`crate::Graph`] knows of an entry's tensor and the schema has no field for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Descriptor {
    /// The tensor's id. A second entry of one tensor is a change in place.
    pub tensor: u64,
    /// The node that makes the tensor, counted from 0; none for a leaf and for a view that no node makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<u64>,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Strides of the dimensions, in elements.
    pub strides: Vec<usize>,
    /// Name of the [`crate::Layout`].
    pub layout: String,
    /// The tensor that this one is a view of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<u64>,
}

/// A tensor and the op that makes it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its position in the file.
    pub id: u64,
    /// Leaf or node.
    pub kind: Kind,
    /// Name of the op; `NONE` for leafs.
    pub op: String,
    /// Name of the tensor.
    #[serde(default)]
    pub name: String,
    /// Element type, as ggml or [`crate::DType`] spells it.
    pub dtype: String,
    /// Elements in each dimension, fastest first.
    pub shape: [u64; 4],
    /// Bytes between neighbours in each dimension; of blocks in the first for block formats.
    pub nb: [u64; 4],
    /// Bytes from the first to the last element.
    pub nbytes: u64,
    /// The operands, by id.
    #[serde(default)]
    pub srcs: Vec<u32>,
    /// Root of a view. A view owns no memory, and a root is no view.
    #[serde(default)]
    pub view_of: Option<u32>,
    /// First byte of a view in its root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_offs: Option<u64>,
    /// Filled before the first node.
    #[serde(default)]
    pub is_input: bool,
    /// Read after the last node.
    #[serde(default)]
    pub is_output: bool,
    /// A parameter of the model.
    #[serde(default)]
    pub is_weight: bool,
    /// Part of a KV cache.
    #[serde(default)]
    pub is_kv: bool,
    /// Its memory is not the planner's.
    #[serde(default)]
    pub external: bool,
    /// Whether ggml writes this op's result over an operand.
    #[serde(default)]
    pub can_inplace: bool,
    /// Parameters of the op.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<Map<String, Value>>,
    /// In files of [`crate::Graph`]s: the rest of what the graph knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub descriptor: Option<Descriptor>,
    /// All other fields, as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl GraphFile {
    /// A file of these entries: leafs, then nodes in the order they run.
    ///
    /// # Errors
    /// They do not hold together, as in a file that is read.
    pub fn from_entries(nodes: Vec<Entry>) -> Result<Self, GraphFileError> {
        let leafs = nodes.iter().take_while(|entry| entry.kind == Kind::Leaf).count();
        let mut file = Self {
            schema: SCHEMA.to_owned(),
            n_leafs: Some(leafs as u64),
            n_nodes: Some((nodes.len() - leafs) as u64),
            nodes,
            ..Self::default()
        };
        file.check()?;
        Ok(file)
    }

    /// Leafs, then nodes in the order they run.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.nodes
    }

    /// How many of the entries are leafs: the first ones.
    #[must_use]
    pub fn leafs(&self) -> usize {
        self.nodes.iter().take_while(|entry| entry.kind == Kind::Leaf).count()
    }

    /// What ggml's allocator takes at an alignment, if the file says it.
    #[must_use]
    pub fn ggml_peak(&self, alignment: usize) -> Option<u64> {
        self.ggml_peak_bytes.get(&format!("align_{alignment}")).copied()
    }

    /// The entry whose memory an entry lies in: itself, or its view's root.
    fn root(&self, id: usize) -> usize {
        self.nodes[id].view_of.map_or(id, |root| root as usize)
    }
}
