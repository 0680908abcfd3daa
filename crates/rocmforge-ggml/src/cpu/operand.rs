//! Operands of CPU ops: bytes with a type and strides.

use std::borrow::Cow;

use crate::{DType, TensorDesc};

/// One input: the bytes it spans, and where its elements lie in them.
pub(super) struct Operand<'a> {
    pub(super) shape: &'a [usize],
    pub(super) dtype: DType,
    strides: Cow<'a, [usize]>,
    bytes: &'a [u8],
}

impl<'a> Operand<'a> {
    /// `bytes` is the span of `desc`, aligned to 4 for types of 4 bytes.
    pub(super) fn strided(desc: &'a TensorDesc, bytes: &'a [u8]) -> Self {
        Self {
            shape: &desc.shape,
            dtype: desc.dtype,
            strides: Cow::Borrowed(&desc.strides),
            bytes,
        }
    }

    /// Words gathered before, in row-major order.
    pub(super) fn contiguous(desc: &'a TensorDesc, words: &'a [u32]) -> Self {
        Self {
            shape: &desc.shape,
            dtype: desc.dtype,
            strides: Cow::Owned(row_major(&desc.shape)),
            bytes: bytemuck::cast_slice(words),
        }
    }

    pub(super) fn is_contiguous(&self) -> bool {
        let expected = row_major(self.shape);
        self.shape.contains(&0)
            || self
                .shape
                .iter()
                .zip(self.strides.iter().zip(&expected))
                .all(|(&d, (a, b))| d <= 1 || a == b)
    }

    /// The span as it is, for types that are not 4 bytes wide.
    pub(super) fn raw(&self) -> &'a [u8] {
        self.bytes
    }

    fn span(&self) -> &'a [u32] {
        bytemuck::cast_slice(self.bytes)
    }

    /// Elements in row-major order; borrowed if they lie so.
    pub(super) fn words(&self) -> Cow<'a, [u32]> {
        if self.is_contiguous() {
            Cow::Borrowed(self.span())
        } else {
            Cow::Owned(self.gathered(self.shape, &self.strides))
        }
    }

    /// [`Self::words`] as f32.
    pub(super) fn f32(&self) -> Cow<'a, [f32]> {
        match self.words() {
            Cow::Borrowed(words) => Cow::Borrowed(bytemuck::cast_slice(words)),
            Cow::Owned(words) => Cow::Owned(bytemuck::allocation::cast_vec(words)),
        }
    }

    /// The raw span as f32, for ops that follow the strides themselves.
    pub(super) fn span_f32(&self) -> &'a [f32] {
        bytemuck::cast_slice(self.bytes)
    }

    pub(super) fn strides(&self) -> &[usize] {
        &self.strides
    }

    /// Elements in row-major order of the tensor with its last two dimensions swapped.
    pub(super) fn transposed(&self) -> Vec<u32> {
        let (mut shape, mut strides) = (self.shape.to_vec(), self.strides.to_vec());
        let rank = shape.len();
        shape.swap(rank - 1, rank - 2);
        strides.swap(rank - 1, rank - 2);
        self.gathered(&shape, &strides)
    }

    fn gathered(&self, shape: &[usize], strides: &[usize]) -> Vec<u32> {
        let words = self.span();
        let mut out = Vec::with_capacity(shape.iter().product());
        each_offset(shape, strides, |at| out.push(words[at]));
        out
    }
}

/// The elements of a tensor of 4-byte elements in row-major order.
pub(super) fn gather(bytes: &[u8], desc: &TensorDesc) -> Vec<u32> {
    let words: &[u32] = bytemuck::cast_slice(bytes);
    if desc.is_contiguous() {
        return words.to_vec();
    }
    let mut out = Vec::with_capacity(desc.element_count());
    each_offset(&desc.shape, &desc.strides, |at| out.push(words[at]));
    out
}

/// Puts row-major elements where a tensor's strides want them.
pub(super) fn scatter(elements: &[u32], desc: &TensorDesc, words: &mut [u32]) {
    let mut next = elements.iter();
    each_offset(&desc.shape, &desc.strides, |at| {
        if let Some(&word) = next.next() {
            words[at] = word;
        }
    });
}

fn row_major(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for i in (0..shape.len().saturating_sub(1)).rev() {
        strides[i] = strides[i + 1] * shape[i + 1];
    }
    strides
}

/// Calls `visit` with the offset of every element, in row-major order.
fn each_offset(shape: &[usize], strides: &[usize], mut visit: impl FnMut(usize)) {
    if shape.contains(&0) {
        return;
    }
    let Some((&row, outer)) = shape.split_last() else {
        return visit(0);
    };
    let step = strides[outer.len()];
    let mut index = vec![0usize; outer.len()];
    loop {
        let base: usize = index.iter().zip(strides).map(|(i, s)| i * s).sum();
        for i in 0..row {
            visit(base + i * step);
        }
        let mut dim = outer.len();
        loop {
            if dim == 0 {
                return;
            }
            dim -= 1;
            index[dim] += 1;
            if index[dim] < outer[dim] {
                break;
            }
            index[dim] = 0;
        }
    }
}
