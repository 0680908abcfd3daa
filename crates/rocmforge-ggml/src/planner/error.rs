//! Errors of the planner.

/// What can be wrong with a [`Problem`](super::Problem) or with a finished placement. Every variant names the items and the figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// More nodes than the planner's tables are made for.
    #[error("{nodes} nodes are more than the planner takes, {limit}")]
    Nodes {
        /// Nodes of the problem.
        nodes: u32,
        /// Most nodes.
        limit: u32,
    },
    /// An item's life ends before it starts, or after the last node.
    #[error("item {item}: its life goes from node {first} to node {last}, but there are {nodes} nodes")]
    Life {
        /// Index in [`Problem::items`](super::Problem::items).
        item: usize,
        /// First node of its life.
        first: u32,
        /// Last node of its life.
        last: u32,
        /// Nodes of the problem.
        nodes: u32,
    },
    /// An item names a buffer kind that does not exist.
    #[error("item {item}: buffer kind {kind} does not exist, there are {kinds}")]
    Kind {
        /// Index of the item.
        item: usize,
        /// The kind it names.
        kind: u32,
        /// Number of kinds.
        kinds: usize,
    },
    /// A kind's alignment is no power of two.
    #[error("buffer kind {kind}: an alignment must be a power of two, this is {alignment}")]
    Alignment {
        /// Index of the kind.
        kind: usize,
        /// Its alignment.
        alignment: usize,
    },
    /// An item's alignment is no power of two, or more than its kind gives.
    #[error(
        "item {item}: its alignment {alignment} is no power of two up to {limit}, the alignment of its buffer kind"
    )]
    ItemAlignment {
        /// Index of the item.
        item: usize,
        /// Its alignment.
        alignment: usize,
        /// The alignment of its kind.
        limit: usize,
    },
    /// An in-place pair does not fit its items.
    #[error("in-place pair {pair}: item {item} over item {over}: {rule}")]
    Pair {
        /// Index in [`Problem::pairs`](super::Problem::pairs).
        pair: usize,
        /// The item that would be written.
        item: u32,
        /// The item that would be written over.
        over: u32,
        /// What is asked of a pair.
        rule: &'static str,
    },
    /// The sizes of all items, rounded up to their alignments, do not fit in an address space.
    #[error("item {item}: {bytes} bytes, and all items before it, are more than an address space holds")]
    TooLarge {
        /// The item at which the sum overflowed.
        item: usize,
        /// Its size.
        bytes: usize,
    },
    /// Verification: two items that live at the same time share bytes, and no in-place pair allows it.
    #[error(
        "the plan is wrong: items {a} ({a_bytes} B at {a_offset}) and {b} ({b_bytes} B at {b_offset}) overlap in buffer {buffer}, \
         and both live at node {node}"
    )]
    Overlap {
        /// The item that starts earlier.
        a: usize,
        /// Its offset.
        a_offset: usize,
        /// Its size.
        a_bytes: usize,
        /// The other item.
        b: usize,
        /// Its offset.
        b_offset: usize,
        /// Its size.
        b_bytes: usize,
        /// The buffer.
        buffer: u32,
        /// The first node at which both live.
        node: u32,
    },
    /// Verification: an item lies outside of its buffer, is not aligned, or lies in a buffer of another kind.
    #[error("the plan is wrong: item {item} ({bytes} B at {offset} of buffer {buffer}, {buffer_bytes} B): {rule}")]
    Place {
        /// The item.
        item: usize,
        /// Its size.
        bytes: usize,
        /// Its offset.
        offset: usize,
        /// The buffer it is in.
        buffer: u32,
        /// The buffer's size.
        buffer_bytes: usize,
        /// What is asked of a place.
        rule: &'static str,
    },
    /// Verification: a buffer is larger than its kind allows, and no single item needs that.
    #[error(
        "the plan is wrong: buffer {buffer} has {bytes} B, its kind allows {limit} B and its largest item has {largest} B"
    )]
    Limit {
        /// The buffer.
        buffer: usize,
        /// Its size.
        bytes: usize,
        /// The limit of its kind.
        limit: usize,
        /// Its largest item, rounded up to the alignment.
        largest: usize,
    },
}
