//! Checks of index tensors, of the operands that the table of ops names: the same error on every backend.

use std::borrow::Cow;

use crate::op::{Below, Indices};
use crate::{GgmlError, GgmlResult, Op, PagedAttention};

/// The operands of a node whose indices are checked.
pub(crate) trait Operands {
    fn shape(&self, operand: usize) -> GgmlResult<&[usize]>;
    /// Indices of 32 bits in row-major order.
    fn narrow(&self, operand: usize) -> GgmlResult<Cow<'_, [u32]>>;
    /// Indices of 64 bits, if the operand holds such.
    fn wide(&self, operand: usize) -> GgmlResult<Option<Cow<'_, [i64]>>>;
}

/// Checks all indices of a node of `op`.
///
/// # Errors
/// [`GgmlError::IndexOutOfRange`] of the first that is out of range.
pub(crate) fn check(op: &Op, operands: &(impl Operands + ?Sized)) -> GgmlResult<()> {
    match op.facts().indices {
        Indices::No => Ok(()),
        Indices::Of(operand, below) => check_operand(op, operands, operand, below),
        Indices::OfBoth(both) => {
            let mut both = both.into_iter();
            both.try_for_each(|(operand, below)| check_operand(op, operands, operand, below))
        }
        Indices::Paged(a) => check_paged(op, a, operands),
    }
}

fn check_operand(op: &Op, operands: &(impl Operands + ?Sized), operand: usize, below: Below) -> GgmlResult<()> {
    let limit = match below {
        Below::Number(limit) => limit,
        Below::Elements(of) => operands.shape(of)?.iter().product(),
        Below::First(of) => operands.shape(of)?.first().copied().unwrap_or(0),
        Below::Rows(of) => operands.shape(of)?.iter().rev().nth(1).copied().unwrap_or(0),
    };
    let outside = match operands.wide(operand)? {
        Some(ids) => {
            // Negative ones are out of range too, and no operand has an index of more than 32 bits.
            let is_outside = |&id: &i64| usize::try_from(id).map_or(true, |id| id >= limit.min(1 << 32));
            ids.iter().position(is_outside).map(|at| (at, ids[at] as u64))
        }
        None => {
            let ids = operands.narrow(operand)?;
            let outside = ids.iter().position(|&id| id as usize >= limit);
            outside.map(|at| (at, u64::from(ids[at])))
        }
    };
    outside.map_or(Ok(()), |(position, index)| {
        Err(out_of_range(op, position, index, limit))
    })
}

/// Token after token: its sequence, its position, and the blocks that it sees. The error has the token as position.
fn check_paged(op: &Op, a: PagedAttention, operands: &(impl Operands + ?Sized)) -> GgmlResult<()> {
    let &[sequences, columns] = operands.shape(3)? else {
        return Ok(());
    };
    let (table, sequence, positions) = (operands.narrow(3)?, operands.narrow(4)?, operands.narrow(5)?);
    let blocks = operands.shape(1)?[0] / a.block_size;
    let end = columns.saturating_mul(a.block_size);
    for (token, (&sequence, &position)) in sequence.iter().zip(&*positions).enumerate() {
        for (index, limit) in [(sequence, sequences), (position, end)] {
            if index as usize >= limit {
                return Err(out_of_range(op, token, index.into(), limit));
            }
        }
        let first = a.first_visible(position as usize) / a.block_size;
        let row = sequence as usize * columns;
        let seen = &table[row + first..=row + position as usize / a.block_size];
        if let Some(&block) = seen.iter().find(|&&block| block as usize >= blocks) {
            return Err(out_of_range(op, token, block.into(), blocks));
        }
    }
    Ok(())
}

fn out_of_range(op: &Op, position: usize, index: u64, limit: usize) -> GgmlError {
    GgmlError::IndexOutOfRange {
        op: op.name(),
        position,
        index,
        limit,
    }
}
