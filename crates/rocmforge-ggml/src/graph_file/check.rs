//! Checks of a graph file: everything that other code relies on.

use super::{Entry, GraphFile, GraphFileError, Kind, SCHEMA};
use crate::planner::Overwrites;

/// Most entries, 8 times those of the largest file that is committed: planning may take time in the square of their number.
const MAX_ENTRIES: usize = 1 << 15;

impl GraphFile {
    /// Checks that the file holds together, and looks up its ops. The first fault is the error.
    pub(super) fn check(&mut self) -> Result<(), GraphFileError> {
        if self.schema != SCHEMA {
            return Err(GraphFileError::Schema {
                found: self.schema.clone(),
                expected: SCHEMA,
            });
        }
        if self.nodes.len() > MAX_ENTRIES {
            return Err(GraphFileError::TooManyEntries {
                found: self.nodes.len(),
                limit: MAX_ENTRIES,
            });
        }
        let leafs = self.leafs();
        for (field, stated, found) in [
            ("n_leafs", self.n_leafs, leafs),
            ("n_nodes", self.n_nodes, self.nodes.len() - leafs),
        ] {
            if let Some(stated) = stated.filter(|&stated| stated != found as u64) {
                return Err(GraphFileError::Count { field, stated, found });
            }
        }
        for id in 0..self.nodes.len() {
            self.check_entry(id, leafs)?;
        }
        self.overwrites = self.nodes.iter().map(|entry| Overwrites::of(&entry.op)).collect();
        Ok(())
    }

    fn check_entry(&self, id: usize, leafs: usize) -> Result<(), GraphFileError> {
        let entry = &self.nodes[id];
        let fault = |rule| {
            Err(GraphFileError::Entry {
                entry: id,
                op: entry.op.clone(),
                rule,
            })
        };
        if entry.id != id as u64 {
            return Err(GraphFileError::Id {
                entry: id,
                id: entry.id,
            });
        }
        if id >= leafs && entry.kind == Kind::Leaf {
            return fault("leafs come before all nodes");
        }
        if entry.kind == Kind::Leaf && !entry.srcs.is_empty() {
            return fault("a leaf has no operands");
        }
        let references = entry.srcs.iter().map(|&src| ("srcs", src));
        for (field, other) in references.chain(entry.view_of.map(|root| ("view_of", root))) {
            if other as usize >= self.nodes.len() {
                return Err(GraphFileError::Dangling {
                    entry: id,
                    op: entry.op.clone(),
                    field,
                    id: other,
                    entries: self.nodes.len(),
                });
            }
            if other as usize >= id {
                return Err(GraphFileError::Order {
                    entry: id,
                    op: entry.op.clone(),
                    field,
                    id: other,
                });
            }
        }
        if usize::try_from(entry.nbytes).is_err() || entry.nbytes > i64::MAX as u64 {
            return fault("its bytes must fit in an address space");
        }
        check_extent(id, entry)?;
        let Some(root) = entry.view_of else {
            return match entry.view_offs {
                Some(1..) => fault("only a view has an offset"),
                _ => Ok(()),
            };
        };
        let base = &self.nodes[root as usize];
        if base.view_of.is_some() {
            return fault("a view names its root, never another view");
        }
        let offset = entry.view_offs.unwrap_or(0);
        if offset.checked_add(entry.nbytes).is_none_or(|end| end > base.nbytes) {
            return Err(GraphFileError::ViewRange {
                entry: id,
                op: entry.op.clone(),
                offset,
                bytes: entry.nbytes,
                root,
                root_bytes: base.nbytes,
            });
        }
        Ok(())
    }
}

/// The last row starts inside of the entry's bytes. The first dimension is left out: its stride is that of a block, whose number of
/// elements is not in the file.
fn check_extent(id: usize, entry: &Entry) -> Result<(), GraphFileError> {
    if entry.shape.contains(&0) {
        return Ok(());
    }
    let rows = entry.shape.iter().zip(&entry.nb).skip(1);
    let last = rows
        .map(|(&dim, &stride)| (dim - 1).checked_mul(stride))
        .try_fold(0u64, |sum, step| sum.checked_add(step?));
    let elements = entry.shape.iter().try_fold(1u64, |n, &dim| n.checked_mul(dim));
    if elements.is_some() && last.is_some_and(|last| last < entry.nbytes) {
        return Ok(());
    }
    Err(GraphFileError::Extent {
        entry: id,
        op: entry.op.clone(),
        shape: entry.shape,
        strides: entry.nb,
        bytes: entry.nbytes,
    })
}
