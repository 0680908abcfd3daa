//! Tensor descriptors: shape, element type and where the elements lie.

use std::ops::Range;

use crate::{DType, GgmlError, GgmlResult, Operands, TensorId, UsedBy};

/// How the elements lie in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// The last dimension is contiguous, no gaps.
    RowMajor,
    /// The last two dimensions are swapped in memory: a `[k, n]` matrix stored as `[n, k]`, as weights usually are.
    ColMajor,
    /// Anything else: see the strides.
    Strided,
}

/// What a tensor is: its type, shape and place in its buffer.
///
/// Dimensions are outermost first. Strides are in elements. `byte_offset` counts from the start of the buffer that the
/// chain of `view_of` ends in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDesc {
    /// The id; [`crate::Graph::add_tensor`] sets it.
    pub id: TensorId,
    /// Element type.
    pub dtype: DType,
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// Order of the elements in memory.
    pub layout: Layout,
    /// Distance of neighbours in each dimension, in elements.
    pub strides: Vec<usize>,
    /// First byte in the root's buffer.
    pub byte_offset: usize,
    /// The tensor whose memory this one shares.
    pub view_of: Option<TensorId>,
}

impl TensorDesc {
    /// A tensor with its own contiguous memory. `Strided` gives the row-major strides as a start.
    #[must_use]
    pub fn new(shape: impl Into<Vec<usize>>, dtype: DType, layout: Layout) -> Self {
        let shape = shape.into();
        let strides = contiguous_strides(&shape, layout);
        Self {
            id: TensorId(0),
            dtype,
            shape,
            layout,
            strides,
            byte_offset: 0,
            view_of: None,
        }
    }

    /// A row-major f32 tensor, the most usual kind.
    #[must_use]
    pub fn f32(shape: impl Into<Vec<usize>>) -> Self {
        Self::new(shape, DType::F32, Layout::RowMajor)
    }

    /// A row-major u32 tensor: token ids, positions, lengths.
    #[must_use]
    pub fn u32(shape: impl Into<Vec<usize>>) -> Self {
        Self::new(shape, DType::U32, Layout::RowMajor)
    }

    /// A tensor that shares `source`'s memory, `byte_offset` bytes after its first element, with `source`'s shape.
    /// Change the shape with [`Self::set_shape`].
    #[must_use]
    pub fn view_of(source: &Self, byte_offset: usize) -> Self {
        Self {
            id: TensorId(0),
            byte_offset: source.byte_offset.saturating_add(byte_offset),
            view_of: Some(source.id),
            ..source.clone()
        }
    }

    /// Whether the tensor shares another's memory.
    #[must_use]
    pub fn is_view(&self) -> bool {
        self.view_of.is_some()
    }

    /// Number of elements; saturates.
    #[must_use]
    pub fn element_count(&self) -> usize {
        self.shape.iter().fold(1, |n, &d| n.saturating_mul(d))
    }

    /// Bytes of one element; for block formats of one block, see [`DType::block_len`].
    #[must_use]
    pub fn element_size(&self) -> usize {
        self.dtype.block_bytes()
    }

    /// Bytes from the first to one past the last element, counted from the tensor's own start. Saturates; rows of a
    /// block format are rounded up to whole blocks (validation rejects them).
    #[must_use]
    pub fn byte_size(&self) -> usize {
        if self.element_count() == 0 {
            return 0;
        }
        if self.dtype.is_quantized() && self.layout != Layout::Strided {
            let row = self.contiguous_run();
            let blocks = row
                .div_ceil(self.dtype.block_len())
                .saturating_mul(self.element_count() / row.max(1));
            return blocks.saturating_mul(self.dtype.block_bytes());
        }
        let last = self
            .shape
            .iter()
            .zip(&self.strides)
            .fold(0usize, |n, (&d, &s)| n.saturating_add((d - 1).saturating_mul(s)));
        let blocks = last.saturating_add(1).div_ceil(self.dtype.block_len());
        blocks.saturating_mul(self.dtype.block_bytes())
    }

    /// The dimension along which a block format's blocks lie: the one with stride 1, of whole blocks; `None` if there is none, or if
    /// another dimension's neighbours are no whole number of blocks apart.
    pub(crate) fn block_dim(&self) -> Option<usize> {
        let block = self.dtype.block_len();
        let dims = self.shape.iter().zip(&self.strides);
        let run = dims.clone().rposition(|(&d, &s)| s == 1 && d.is_multiple_of(block))?;
        let whole = |(at, (&d, s)): (usize, (&usize, &usize))| at == run || d <= 1 || s.is_multiple_of(block);
        dims.enumerate().all(whole).then_some(run)
    }

    /// Its bytes in its root's buffer, from the first element to the last; saturates.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.byte_offset..self.byte_offset.saturating_add(self.byte_size())
    }

    /// Elements of the dimension whose neighbours are adjacent in memory: the last, or the last but one if column-major.
    fn contiguous_run(&self) -> usize {
        let back = if self.layout == Layout::ColMajor { 2 } else { 1 };
        let dim = self.shape.len().checked_sub(back);
        dim.map_or_else(|| self.shape.last().copied().unwrap_or(1), |dim| self.shape[dim])
    }

    /// Gives the tensor another shape, contiguous in its layout.
    pub fn set_shape(&mut self, shape: impl Into<Vec<usize>>) {
        self.shape = shape.into();
        self.strides = contiguous_strides(&self.shape, self.layout);
    }

    /// Whether the elements lie in row-major order without gaps.
    #[must_use]
    pub fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        let mut dims = self.shape.iter().zip(&self.strides).rev();
        self.strides.len() == self.shape.len()
            && (self.shape.contains(&0)
                || dims.all(|(&dim, &stride)| {
                    let fits = dim <= 1 || stride == expected;
                    expected = dim.saturating_mul(expected);
                    fits
                }))
    }

    /// Whether this is a matrix whose columns are contiguous: a `[k, n]` matrix stored as `[n, k]`.
    #[must_use]
    pub fn is_transposed_matrix(&self) -> bool {
        self.shape.len() == 2
            && same_addresses(
                &self.shape,
                &self.strides,
                &contiguous_strides(&self.shape, Layout::ColMajor),
            )
    }

    /// Refuses bytes that are not as many as the tensor's.
    pub(crate) fn check_bytes(&self, found: usize) -> GgmlResult<()> {
        let (tensor, expected) = (self.id, self.byte_size());
        if found == expected {
            return Ok(());
        }
        Err(GgmlError::BufferSize {
            tensor,
            expected,
            found,
        })
    }

    /// Checks the descriptor on its own: rank, strides, layout, whole blocks, sizes that fit.
    ///
    /// # Errors
    /// [`GgmlError::InvalidLayout`].
    pub fn check(&self) -> GgmlResult<()> {
        let fail = |rule| {
            Err(GgmlError::InvalidLayout {
                used_by: UsedBy::default(),
                tensor: self.id,
                shape: self.shape.clone(),
                strides: self.strides.clone(),
                byte_offset: self.byte_offset,
                dtype: self.dtype,
                rule,
            })
        };
        if self.strides.len() != self.shape.len() {
            return fail("there must be one stride per dimension");
        }
        let bytes = self.byte_size();
        if bytes
            .checked_add(self.byte_offset)
            .is_none_or(|n| n > isize::MAX as usize)
        {
            return fail("the tensor does not fit in an address space");
        }
        // A stride of 0 would hold any number of elements in little memory, and results have memory for each.
        if self.element_count() / self.dtype.block_len() > bytes / self.dtype.block_bytes() {
            return fail("elements must not share memory: there are more of them than they span");
        }
        match self.layout {
            Layout::RowMajor if !self.is_contiguous() => return fail("the layout says row-major, the strides do not"),
            Layout::ColMajor
                if !same_addresses(
                    &self.shape,
                    &self.strides,
                    &contiguous_strides(&self.shape, Layout::ColMajor),
                ) =>
            {
                return fail("the layout says column-major, the strides do not");
            }
            _ => {}
        }
        if self.dtype.is_quantized() {
            if self.layout == Layout::Strided && self.block_dim().is_none() {
                return fail("a block format's blocks must lie along one dimension, and rows be whole blocks apart");
            }
            if self.layout != Layout::Strided && self.dtype.row_bytes(self.contiguous_run()).is_none() {
                return fail("a row must be a whole number of blocks");
            }
        }
        // Scales of two bytes; MXFP4's blocks of 17 bytes are bytes all through.
        let alignment = match self.dtype.block_bytes() {
            bytes if !self.dtype.is_quantized() => bytes,
            bytes => 2 - bytes % 2,
        };
        if !self.byte_offset.is_multiple_of(alignment) {
            return fail("the byte offset is not aligned to the element");
        }
        if !self.is_view() && self.byte_offset != 0 {
            return fail("only a view has a byte offset");
        }
        Ok(())
    }

    /// `F32 [2, 3] RowMajor`, for messages.
    #[must_use]
    pub fn summary(&self) -> String {
        format!("{} {:?} {:?}", self.dtype, self.shape, self.layout)
    }
}

impl<'a> FromIterator<&'a TensorDesc> for Operands {
    fn from_iter<T: IntoIterator<Item = &'a TensorDesc>>(descs: T) -> Self {
        Self(descs.into_iter().map(|desc| (desc.dtype, desc.shape.clone())).collect())
    }
}

/// Strides in elements of a tensor without gaps; saturate.
pub(crate) fn contiguous_strides(shape: &[usize], layout: Layout) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    let rank = shape.len();
    if layout == Layout::ColMajor && rank >= 2 {
        strides[rank - 2] = 1;
        strides[rank - 1] = shape[rank - 2];
        let mut step = shape[rank - 2].saturating_mul(shape[rank - 1]);
        for i in (0..rank - 2).rev() {
            strides[i] = step;
            step = step.saturating_mul(shape[i]);
        }
    } else {
        for i in (0..rank.saturating_sub(1)).rev() {
            strides[i] = strides[i + 1].saturating_mul(shape[i + 1]);
        }
    }
    strides
}

/// Whether two lists of strides give every element the same address: a dimension of one element may have any stride.
pub(crate) fn same_addresses(shape: &[usize], a: &[usize], b: &[usize]) -> bool {
    a.len() == shape.len()
        && b.len() == shape.len()
        && (shape.contains(&0) || shape.iter().zip(a.iter().zip(b)).all(|(&d, (x, y))| d <= 1 || x == y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_of_both_layouts() {
        assert_eq!(TensorDesc::f32([2, 3, 4]).strides, [12, 4, 1]);
        assert_eq!(
            TensorDesc::new([5, 3, 4], DType::F32, Layout::ColMajor).strides,
            [12, 1, 3]
        );
        assert!(TensorDesc::new([3, 4], DType::F32, Layout::ColMajor).is_transposed_matrix());
        assert!(TensorDesc::new([1, 4], DType::F32, Layout::ColMajor).is_contiguous());
    }

    #[test]
    fn sizes_saturate_and_are_rejected() {
        let huge = TensorDesc::f32([usize::MAX, 2]);
        assert_eq!(huge.element_count(), usize::MAX);
        assert!(huge.check().is_err());
        assert_eq!(TensorDesc::new([2, 64], DType::Q4_0, Layout::RowMajor).byte_size(), 72);
        // Stored as three rows of 64: two blocks each.
        let weight = TensorDesc::new([64, 3], DType::Q4_0, Layout::ColMajor);
        weight.check().unwrap();
        assert_eq!(weight.byte_size(), 108);
        assert!(TensorDesc::new([3, 64], DType::Q4_0, Layout::ColMajor).check().is_err());
        assert_eq!(TensorDesc::f32([0, 4]).byte_size(), 0);
        assert_eq!(TensorDesc::f32([]).byte_size(), 4);
    }

    #[test]
    fn contradictions_are_found() {
        let mut lies = TensorDesc::f32([2, 3]);
        lies.strides = vec![1, 2];
        assert!(lies.check().is_err());
        lies.layout = Layout::ColMajor;
        lies.check().unwrap();
        let mut short = TensorDesc::f32([2, 3]);
        short.strides.pop();
        assert!(short.check().is_err());
        let partial = TensorDesc::new([33], DType::Q8_0, Layout::RowMajor);
        assert!(
            partial
                .check()
                .unwrap_err()
                .to_string()
                .contains("whole number of blocks")
        );
        let mut offset = TensorDesc::f32([2]);
        offset.byte_offset = 4;
        assert!(offset.check().is_err());
        offset.view_of = Some(TensorId(1));
        offset.check().unwrap();
        offset.byte_offset = 6;
        assert!(offset.check().is_err());
    }

    #[test]
    fn a_view_of_a_view_counts_from_the_root() {
        let mut a = TensorDesc::f32([16]);
        a.id = TensorId(3);
        let mut b = TensorDesc::view_of(&a, 16);
        b.id = TensorId(4);
        let c = TensorDesc::view_of(&b, 8);
        assert_eq!((c.byte_offset, c.view_of), (24, Some(TensorId(4))));
    }
}
