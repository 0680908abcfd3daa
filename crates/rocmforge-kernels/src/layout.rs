//! Shapes and layouts of attention operands.

use crate::check::Check;
use crate::{KernelError, KernelResult};
use bytemuck::{Pod, Zeroable};
use rocmforge_runtime::HipBuffer;

/// Distances in elements between batches, heads and rows of a `[batch, heads, rows, columns]` operand whose columns are adjacent.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
pub struct Strides {
    /// From a batch to the next. 0 shares one among all.
    pub batch: u64,
    /// From a head to the next.
    pub head: u64,
    /// From a row (a token) to the next.
    pub row: u64,
}

impl Strides {
    /// The largest `row`: the kernels form the offset of a row within a tile of 64 rows in 32 bits.
    pub const MAX_ROW: u64 = (1 << 24) - 1;

    /// Contiguous `[batch, heads, rows, columns]`.
    pub const fn heads_first(heads: usize, rows: usize, columns: usize) -> Self {
        Self {
            batch: (heads as u64)
                .saturating_mul(rows as u64)
                .saturating_mul(columns as u64),
            head: (rows as u64).saturating_mul(columns as u64),
            row: columns as u64,
        }
    }

    /// Contiguous `[batch, rows, heads, columns]`: what a projection to `heads * columns` leaves.
    pub const fn tokens_first(heads: usize, rows: usize, columns: usize) -> Self {
        Self {
            batch: (heads as u64)
                .saturating_mul(rows as u64)
                .saturating_mul(columns as u64),
            head: columns as u64,
            row: (heads as u64).saturating_mul(columns as u64),
        }
    }

    /// A `[batch, columns]` mask, the same for every head and query: key padding.
    pub const fn per_batch(columns: usize) -> Self {
        Self {
            batch: columns as u64,
            head: 0,
            row: 0,
        }
    }

    /// A `[rows, columns]` mask, the same for every batch and head.
    pub const fn per_row(columns: usize) -> Self {
        Self {
            batch: 0,
            head: 0,
            row: columns as u64,
        }
    }

    fn list(self) -> Vec<u64> {
        vec![self.batch, self.head, self.row]
    }
}

/// A buffer and how an operand lies in it.
#[derive(Debug)]
pub struct Operand<'a, T: Pod = f32> {
    /// The elements.
    pub buffer: &'a HipBuffer<T>,
    /// Where batches, heads and rows begin.
    pub strides: Strides,
}

impl<T: Pod> Clone for Operand<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Pod> Copy for Operand<'_, T> {}

impl<'a, T: Pod> Operand<'a, T> {
    /// `buffer` seen through `strides`.
    pub fn new(buffer: &'a HipBuffer<T>, strides: Strides) -> Self {
        Self { buffer, strides }
    }
}

/// The dimensions of attention.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AttentionShape {
    /// Independent sequences.
    pub batch: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`. Equal: MHA; 1: MQA; between: GQA.
    pub kv_heads: usize,
    /// Queries.
    pub seq_q: usize,
    /// Keys and values.
    pub seq_k: usize,
    /// Elements of a query, a key and a value.
    pub head_dim: usize,
}

/// An [`AttentionShape`] as the kernels take it.
pub(crate) struct Dims {
    pub(crate) batch: u32,
    pub(crate) heads: u32,
    pub(crate) kv_heads: u32,
    pub(crate) seq_q: u32,
    pub(crate) seq_k: u32,
    pub(crate) head_dim: u32,
    /// Batch times heads.
    pub(crate) planes: u32,
}

impl AttentionShape {
    /// Self-attention of `heads` equal heads: `seq` queries and as many keys.
    pub const fn square(batch: usize, heads: usize, seq: usize, head_dim: usize) -> Self {
        Self {
            batch,
            heads,
            kv_heads: heads,
            seq_q: seq,
            seq_k: seq,
            head_dim,
        }
    }

    /// Of `[batch, heads, kv_heads, seq_q, seq_k, head_dim]`, or without `kv_heads` where there are as many.
    pub(crate) const fn of(dims: &[usize]) -> Option<Self> {
        let (heads, kv_heads, [batch, _, seq_q, seq_k, head_dim]) = match *dims {
            [batch, heads, seq_q, seq_k, dim] => (heads, heads, [batch, heads, seq_q, seq_k, dim]),
            [batch, heads, kv_heads, seq_q, seq_k, dim] => (heads, kv_heads, [batch, heads, seq_q, seq_k, dim]),
            _ => return None,
        };
        Some(Self {
            batch,
            heads,
            kv_heads,
            seq_q,
            seq_k,
            head_dim,
        })
    }

    /// Shape of Q and of the output.
    pub(crate) const fn queries(&self) -> [usize; 4] {
        [self.batch, self.heads, self.seq_q, self.head_dim]
    }

    /// Shape of K and of V.
    pub(crate) const fn keys(&self) -> [usize; 4] {
        [self.batch, self.kv_heads, self.seq_k, self.head_dim]
    }

    /// Shape of the scores.
    pub(crate) const fn scores(&self) -> [usize; 4] {
        [self.batch, self.heads, self.seq_q, self.seq_k]
    }

    /// Pairs of a query and a key that it sees, of each head.
    pub(crate) fn pairs(&self, causal: bool) -> usize {
        let seen = |query: usize| match causal {
            true => (query + 1 + self.seq_k).saturating_sub(self.seq_q).min(self.seq_k),
            false => self.seq_k,
        };
        self.batch * self.heads * (0..self.seq_q).map(seen).sum::<usize>()
    }

    /// The same with fewer key and value heads.
    pub const fn with_kv_heads(self, kv_heads: usize) -> Self {
        Self { kv_heads, ..self }
    }

    /// The same with another number of keys.
    pub const fn with_seq_k(self, seq_k: usize) -> Self {
        Self { seq_k, ..self }
    }

    /// Elements of Q and of the output.
    ///
    /// # Errors
    ///
    /// [`KernelError::TooLarge`] if they cannot be counted.
    pub fn q_elements(&self) -> KernelResult<usize> {
        Check("attention").elements("q", &self.queries())
    }

    /// Elements of K, and of V.
    ///
    /// # Errors
    ///
    /// [`KernelError::TooLarge`] if they cannot be counted.
    pub fn kv_elements(&self) -> KernelResult<usize> {
        Check("attention").elements("k", &self.keys())
    }

    /// Elements of the scores, which flash attention never stores.
    ///
    /// # Errors
    ///
    /// [`KernelError::TooLarge`] if they cannot be counted.
    pub fn score_elements(&self) -> KernelResult<usize> {
        Check("attention").elements("weights", &self.scores())
    }

    /// Strides of Q and of the output in `[batch, heads, seq_q, head_dim]`.
    pub const fn q_strides(&self) -> Strides {
        Strides::heads_first(self.heads, self.seq_q, self.head_dim)
    }

    /// Strides of K and V in `[batch, kv_heads, seq_k, head_dim]`.
    pub const fn kv_strides(&self) -> Strides {
        Strides::heads_first(self.kv_heads, self.seq_k, self.head_dim)
    }

    pub(crate) fn dims(&self, check: Check) -> KernelResult<Dims> {
        let dims = Dims {
            batch: check.dim("batch", self.batch)?,
            heads: check.dim("heads", self.heads)?,
            kv_heads: check.dim("kv_heads", self.kv_heads)?,
            seq_q: check.dim("seq_q", self.seq_q)?,
            seq_k: check.dim("seq_k", self.seq_k)?,
            head_dim: check.dim("head_dim", self.head_dim)?,
            planes: check.rows("batch * heads", &[self.batch, self.heads])?,
        };
        check.heads(self.heads, self.kv_heads)?;
        Ok(dims)
    }
}

/// The offset of a causal mask that lines up the last query with the last key: seq_k - seq_q.
pub(crate) fn causal_offset(check: Check, seq_q: u32, seq_k: u32) -> KernelResult<i32> {
    let offset = i64::from(seq_k) - i64::from(seq_q);
    i32::try_from(offset).map_err(|_| {
        check.mismatch(
            "seq_q and seq_k are too far apart for a causal mask",
            seq_q as usize,
            seq_k as usize,
        )
    })
}

/// Every element the strides reach lies inside of the buffer.
pub(crate) fn check_operand<T: Pod>(
    check: Check,
    name: &'static str,
    operand: Operand<'_, T>,
    shape: [usize; 4],
) -> KernelResult<()> {
    let [batch, heads, rows, columns] = shape;
    let strides = operand.strides;
    let span = |size: usize, stride: u64| (size as u64 - 1).checked_mul(stride);
    let needed = (|| {
        span(batch, strides.batch)?
            .checked_add(span(heads, strides.head)?)?
            .checked_add(span(rows, strides.row)?)?
            .checked_add(columns as u64)
    })();
    if needed.is_none_or(|needed| needed > operand.buffer.len() as u64) {
        return Err(KernelError::Reach {
            op: check.0,
            operand: name,
            got: operand.buffer.len(),
            needed: needed.unwrap_or(u64::MAX),
            strides: strides.list(),
            shape: shape.to_vec(),
        });
    }
    if strides.row > Strides::MAX_ROW {
        return Err(KernelError::Dimension {
            op: check.0,
            dim: "row stride",
            value: strides.row as usize,
            limit: Strides::MAX_ROW as usize,
        });
    }
    Ok(())
}

/// The same for an output: besides, no two elements share a place. Sufficient, and what every sensible layout satisfies: from the
/// smallest stride up, each is at least the extent of everything below it.
pub(crate) fn check_output<T: Pod>(
    check: Check,
    name: &'static str,
    operand: Operand<'_, T>,
    shape: [usize; 4],
) -> KernelResult<()> {
    check_operand(check, name, operand, shape)?;
    let [batch, heads, rows, columns] = shape;
    let strides = operand.strides;
    let mut dims = [(strides.batch, batch), (strides.head, heads), (strides.row, rows)];
    dims.sort_unstable();
    let mut extent = columns as u64;
    for (stride, size) in dims.into_iter().filter(|(_, size)| *size > 1) {
        if stride < extent {
            return Err(KernelError::SelfOverlap {
                op: check.0,
                operand: name,
                strides: strides.list(),
                shape: shape.to_vec(),
            });
        }
        // Within the buffer, as checked above: no overflow.
        extent += (size as u64 - 1) * stride;
    }
    Ok(())
}

/// An operand of 16-bit floats whose rows the kernels read 16 bytes at a time: they begin at multiples of that.
pub(crate) fn check_rows_of_16_bytes(
    check: Check,
    name: &'static str,
    operand: Operand<'_, u16>,
    shape: [usize; 4],
) -> KernelResult<()> {
    check_operand(check, name, operand, shape)?;
    let address = operand.buffer.as_device_ptr().addr();
    if !address.is_multiple_of(16) {
        return Err(KernelError::Alignment {
            op: check.0,
            operand: name,
            address,
            alignment: 16,
        });
    }
    let strides = operand.strides.list();
    for (&stride, _) in strides.iter().zip(shape).filter(|(_, size)| *size > 1) {
        check.multiple(
            "strides of 16-bit floats must be multiples of 8 elements",
            stride as usize,
            8,
        )?;
    }
    Ok(())
}

/// The same for an output: besides, no two elements share a place.
pub(crate) fn check_output_of_16_bytes(
    check: Check,
    name: &'static str,
    operand: Operand<'_, u16>,
    shape: [usize; 4],
) -> KernelResult<()> {
    check_rows_of_16_bytes(check, name, operand, shape)?;
    check_output(check, name, operand, shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_cannot_be_counted_are_an_error() {
        let shape = AttentionShape::square(2, 3, 5, 7);
        assert_eq!(shape.q_elements().unwrap(), 210);
        assert_eq!(shape.with_kv_heads(1).kv_elements().unwrap(), 70);
        assert_eq!(shape.with_seq_k(4).score_elements().unwrap(), 120);
        let shape = AttentionShape::square(1 << 20, 1 << 10, 1 << 20, 1 << 14);
        for elements in [shape.q_elements(), shape.kv_elements(), shape.score_elements()] {
            assert!(matches!(elements, Err(KernelError::TooLarge { .. })), "{elements:?}");
        }
    }
}
