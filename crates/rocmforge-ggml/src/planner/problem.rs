//! Planning problem: what needs memory, how much and from which node to which, without the ops themselves.

use super::PlanError;

/// A kind of buffer: a device, or host memory. Items of different kinds never share memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferKind {
    /// Every offset is a multiple of this, and every item's size is rounded up to it. A power of two.
    pub alignment: usize,
    /// Largest buffer in bytes; `None` if one buffer may have any size. A larger item gets a buffer of its own size: whether it can
    /// exist is for the backend to say.
    pub max_bytes: Option<usize>,
}

/// Most nodes of a problem: tables have an entry for each.
pub const MAX_NODES: u32 = 1 << 22;

impl BufferKind {
    /// One buffer of any size.
    #[must_use]
    pub const fn unlimited(alignment: usize) -> Self {
        Self {
            alignment,
            max_bytes: None,
        }
    }
}

/// Memory that is needed from one node to another. Nodes are counted in the order they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Bytes. An item of 0 bytes gets a place of 0 bytes.
    pub bytes: usize,
    /// The alignment it needs itself: a power of two, at most its kind's.
    pub alignment: usize,
    /// First node that needs it: the one that writes it, 0 for an input.
    pub first: u32,
    /// Last node that needs it: the last that reads it or a view of it, the last of all for an output.
    pub last: u32,
    /// Index in [`Problem::kinds`].
    pub kind: u32,
}

/// Permission to put one item where another is: the node that writes `item` reads `over` for the last time, element by element or
/// row by row, so that it may overwrite what it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InPlacePair {
    /// The item that is written.
    pub item: u32,
    /// The item that is read. Its last node is the first of `item`, and it is at least as large.
    pub over: u32,
}

/// What is to be placed.
///
/// Views are resolved: an item is the memory of a root, and lives as long as any view of it is used. Memory that is not the planner's
/// (weights, caches) and inputs that no node reads have no item.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problem {
    /// Number of nodes.
    pub nodes: u32,
    /// Kinds of buffers.
    pub kinds: Vec<BufferKind>,
    /// What is placed.
    pub items: Vec<Item>,
    /// In-place pairs, in order of preference for each item.
    pub pairs: Vec<InPlacePair>,
    /// Whether an in-place pair of two kinds may be used; the item then lies in the kind of the one it overwrites. ggml does so. It is
    /// right only where a node can write the memory that it reads.
    pub pairs_across_kinds: bool,
}

impl Problem {
    /// No items yet, one kind of buffer.
    #[must_use]
    pub fn new(nodes: u32, kind: BufferKind) -> Self {
        Self {
            nodes,
            kinds: vec![kind],
            ..Self::default()
        }
    }

    /// Adds an item of kind 0 that is aligned as its kind asks, and returns its index.
    pub fn add(&mut self, bytes: usize, first: u32, last: u32) -> u32 {
        self.items.push(Item {
            bytes,
            alignment: 1,
            first,
            last,
            kind: 0,
        });
        (self.items.len() - 1) as u32
    }

    /// An item's bytes, rounded up to the alignment of a kind. [`Self::check`] has made sure that it fits.
    pub(super) fn rounded(&self, item: &Item) -> usize {
        let alignment = self.kinds[item.kind as usize].alignment;
        item.bytes.next_multiple_of(alignment)
    }

    /// Checks lives, kinds, alignments and pairs, and that all sizes together fit in an address space.
    ///
    /// # Errors
    /// The first fault, with the item and the figures.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.nodes > MAX_NODES {
            return Err(PlanError::Nodes {
                nodes: self.nodes,
                limit: MAX_NODES,
            });
        }
        for (kind, k) in self.kinds.iter().enumerate() {
            let alignment = k.alignment;
            if !alignment.is_power_of_two() {
                return Err(PlanError::Alignment { kind, alignment });
            }
        }
        // Across kinds an item may be rounded to the coarsest alignment of all.
        let coarsest = self.kinds.iter().map(|k| k.alignment).max().unwrap_or(1);
        let mut total = 0usize;
        for (item, i) in self.items.iter().enumerate() {
            let Some(kind) = self.kinds.get(i.kind as usize) else {
                return Err(PlanError::Kind {
                    item,
                    kind: i.kind,
                    kinds: self.kinds.len(),
                });
            };
            if i.first > i.last || i.last >= self.nodes {
                return Err(PlanError::Life {
                    item,
                    first: i.first,
                    last: i.last,
                    nodes: self.nodes,
                });
            }
            if !i.alignment.is_power_of_two() || i.alignment > kind.alignment {
                return Err(PlanError::ItemAlignment {
                    item,
                    alignment: i.alignment,
                    limit: kind.alignment,
                });
            }
            // Offsets are compared as isize, too.
            total = i
                .bytes
                .checked_next_multiple_of(coarsest)
                .and_then(|bytes| total.checked_add(bytes))
                .filter(|&total| total <= isize::MAX as usize)
                .ok_or(PlanError::TooLarge { item, bytes: i.bytes })?;
        }
        for (pair, &InPlacePair { item, over }) in self.pairs.iter().enumerate() {
            let fault = |rule| Err(PlanError::Pair { pair, item, over, rule });
            let (Some(y), Some(x)) = (self.items.get(item as usize), self.items.get(over as usize)) else {
                return fault("both items must exist");
            };
            if item == over || x.last != y.first {
                return fault("the last node of what is overwritten must be the first of what is written");
            }
            if y.bytes > x.bytes {
                return fault("what is written must not be larger than what is overwritten");
            }
        }
        Ok(())
    }
}
