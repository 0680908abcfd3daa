//! Errors of graph files.

/// What can be wrong with a graph file. Every variant names the entry and the figures.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GraphFileError {
    /// The file cannot be read or written.
    #[error("{path}")]
    Io {
        /// The file.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The bytes are no gzip stream, or one that ends early.
    #[error("the compressed data is damaged")]
    Gzip(#[source] std::io::Error),
    /// More bytes than a graph file may have, unpacked.
    #[error("the file has more than {limit} B when unpacked")]
    TooLong {
        /// Most bytes.
        limit: u64,
    },
    /// The text is no JSON of this schema: a missing field, another type, nesting that is too deep.
    #[error("the JSON does not fit the schema")]
    Json(#[source] serde_json::Error),
    /// Another schema.
    #[error("the schema is `{found}`, this reads `{expected}`")]
    Schema {
        /// What the file says.
        found: String,
        /// What is read.
        expected: &'static str,
    },
    /// More entries than a graph may have.
    #[error("{found} entries are more than a graph file may have, {limit}")]
    TooManyEntries {
        /// Entries there are.
        found: usize,
        /// Most entries.
        limit: usize,
    },
    /// A number at the top of the file contradicts the entries.
    #[error("the file says {field} = {stated}, but has {found}")]
    Count {
        /// The field.
        field: &'static str,
        /// What it says.
        stated: u64,
        /// What there is.
        found: usize,
    },
    /// An entry's `id` is not its position.
    #[error("entry {entry} has the id {id}: ids are positions")]
    Id {
        /// Position of the entry.
        entry: usize,
        /// Its id.
        id: u64,
    },
    /// An entry refers to another that does not exist.
    #[error("entry {entry} ({op}): {field} names entry {id}, but there are {entries}")]
    Dangling {
        /// The entry.
        entry: usize,
        /// Its op.
        op: String,
        /// `srcs` or `view_of`.
        field: &'static str,
        /// What it names.
        id: u32,
        /// Entries there are.
        entries: usize,
    },
    /// An entry refers to itself or to a later one, which a circle must do somewhere.
    #[error(
        "entry {entry} ({op}): {field} names entry {id}, which does not come before it: entries are in the order they run, without circles"
    )]
    Order {
        /// The entry.
        entry: usize,
        /// Its op.
        op: String,
        /// `srcs` or `view_of`.
        field: &'static str,
        /// What it names.
        id: u32,
    },
    /// A view reaches beyond its root.
    #[error("entry {entry} ({op}): a view of {bytes} B at byte {offset} of entry {root}, which has {root_bytes} B")]
    ViewRange {
        /// The view.
        entry: usize,
        /// Its op.
        op: String,
        /// First byte in the root.
        offset: u64,
        /// Bytes of the view.
        bytes: u64,
        /// The root.
        root: u32,
        /// Bytes of the root.
        root_bytes: u64,
    },
    /// Shape and strides lead beyond the entry's bytes, or overflow.
    #[error("entry {entry} ({op}): shape {shape:?} with strides {strides:?} does not fit in {bytes} B")]
    Extent {
        /// The entry.
        entry: usize,
        /// Its op.
        op: String,
        /// Its shape, fastest dimension first.
        shape: [u64; 4],
        /// Its strides in bytes.
        strides: [u64; 4],
        /// Its bytes.
        bytes: u64,
    },
    /// An entry contradicts itself.
    #[error("entry {entry} ({op}): {rule}")]
    Entry {
        /// The entry.
        entry: usize,
        /// Its op.
        op: String,
        /// What is asked of it.
        rule: &'static str,
    },
    /// A node's parameters are not those of its op.
    #[error("entry {entry} ({op}): parameter `{parameter}`: {rule}")]
    Parameter {
        /// The entry.
        entry: usize,
        /// Its op.
        op: String,
        /// The parameter.
        parameter: String,
        /// What is asked of it.
        rule: &'static str,
    },
    /// The file holds together, but as a graph its nodes do not fit their ops.
    #[error("the graph of the file is not valid")]
    Graph(#[source] Box<crate::GgmlError>),
    /// A graph of ours cannot be written in this schema.
    #[error("tensor {tensor}: {rule}")]
    Export {
        /// The tensor.
        tensor: usize,
        /// What the schema asks.
        rule: &'static str,
    },
    /// A node of ours cannot be written in this schema.
    #[error("node {node} ({op}): {rule}")]
    ExportNode {
        /// The node.
        node: usize,
        /// Its op.
        op: &'static str,
        /// What the schema asks.
        rule: &'static str,
    },
}
