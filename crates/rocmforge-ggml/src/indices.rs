//! Checks of index tensors: the same error on every backend.

use crate::{GgmlError, GgmlResult, Op, PagedAttention};

/// The first of `ids` that is not below `limit` is an error.
pub(crate) fn check(op: &Op, ids: &[u32], limit: usize) -> GgmlResult<()> {
    match ids.iter().position(|&id| id as usize >= limit) {
        Some(position) => Err(out_of_range(op, position, ids[position], limit)),
        None => Ok(()),
    }
}

/// [`check`] of indices of 64 bits, of which negative ones are out of range too.
pub(crate) fn check_wide(op: &Op, ids: &[i64], limit: usize) -> GgmlResult<()> {
    let outside = |&id: &i64| usize::try_from(id).map_or(true, |id| id >= limit);
    match ids.iter().position(outside) {
        Some(position) => Err(GgmlError::IndexOutOfRange {
            op: op.name(),
            position,
            index: ids[position] as u64,
            limit,
        }),
        None => Ok(()),
    }
}

/// The indices of a paged attention.
pub(crate) struct PagedIndices<'a> {
    /// `[sequences, blocks]`.
    pub(crate) table: &'a [u32],
    /// Rows and columns of the table.
    pub(crate) shape: [usize; 2],
    /// Rows of the table, one for each token.
    pub(crate) sequence: &'a [u32],
    /// Positions, one for each token.
    pub(crate) positions: &'a [u32],
    /// Blocks of the cache.
    pub(crate) blocks: usize,
}

impl PagedIndices<'_> {
    /// Token after token: its sequence, its position, and the blocks that it sees.
    ///
    /// # Errors
    /// [`GgmlError::IndexOutOfRange`] with the token as position.
    pub(crate) fn check(&self, a: PagedAttention) -> GgmlResult<()> {
        let op = Op::PagedAttention(a);
        let [sequences, columns] = self.shape;
        let end = columns.saturating_mul(a.block_size);
        for (token, (&sequence, &position)) in self.sequence.iter().zip(self.positions).enumerate() {
            for (index, limit) in [(sequence, sequences), (position, end)] {
                if index as usize >= limit {
                    return Err(out_of_range(&op, token, index, limit));
                }
            }
            let first = a.first_visible(position as usize) / a.block_size;
            let row = sequence as usize * columns;
            let seen = &self.table[row + first..=row + position as usize / a.block_size];
            if let Some(&block) = seen.iter().find(|&&block| block as usize >= self.blocks) {
                return Err(out_of_range(&op, token, block, self.blocks));
            }
        }
        Ok(())
    }
}

fn out_of_range(op: &Op, position: usize, index: u32, limit: usize) -> GgmlError {
    GgmlError::IndexOutOfRange {
        op: op.name(),
        position,
        index: u64::from(index),
        limit,
    }
}
