//! A device buffer of f32 with a shape.

use crate::backend::HipBackend;
use crate::buffer::HipBuffer;
use crate::error::{HipError, HipResult};
use rocmforge_memory::Elems;
use std::ops::Range;
use std::sync::Arc;

/// f32 values in row-major order, with a shape. A shape without dimensions is one value.
///
/// Work on it goes to the backend's own stream unless another is named.
#[derive(Clone, Debug)]
pub struct DeviceTensor {
    backend: Arc<HipBackend>,
    buffer: HipBuffer<f32>,
    shape: Vec<usize>,
}

/// Elements of a shape.
fn elements(shape: &[usize]) -> HipResult<usize> {
    shape
        .iter()
        .try_fold(1usize, |product, &dim| product.checked_mul(dim))
        .ok_or(HipError::SizeOverflow {
            count: usize::MAX,
            size: size_of::<f32>(),
        })
}

impl DeviceTensor {
    /// Zeros.
    #[track_caller]
    pub fn zeros(backend: &Arc<HipBackend>, shape: &[usize]) -> HipResult<Self> {
        let buffer = HipBuffer::zeroed(backend.stream(), Elems(elements(shape)?), "tensor")?;
        Ok(Self::of(backend, buffer, shape))
    }

    /// A copy of `values`, which must be as many as the shape holds.
    #[track_caller]
    pub fn from_host(backend: &Arc<HipBackend>, values: &[f32], shape: &[usize]) -> HipResult<Self> {
        check_len(shape, values.len())?;
        let buffer = HipBuffer::from_slice(backend.stream(), values, "tensor")?;
        Ok(Self::of(backend, buffer, shape))
    }

    /// Bytes `range` of `bytes` (a mapped file, say) as little-endian f32 of the given shape. They need no alignment.
    #[track_caller]
    pub fn from_mmap(backend: &Arc<HipBackend>, bytes: &[u8], range: Range<usize>, shape: &[usize]) -> HipResult<Self> {
        let (start, end, len) = (range.start, range.end, bytes.len());
        let part = bytes.get(range).ok_or_else(|| HipError::OutOfRange {
            start,
            end,
            len,
            label: "mapped bytes".to_owned(),
        })?;
        let (values, rest) = part.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(HipError::Shape {
                shape: shape.to_vec(),
                expected: elements(shape)?,
                actual: values.len(),
            });
        }
        let values: Vec<f32> = values.iter().map(|&word| f32::from_le_bytes(word)).collect();
        Self::from_host(backend, &values, shape)
    }

    /// A tensor over an existing buffer, which must have as many elements as the shape holds.
    pub fn from_buffer(backend: &Arc<HipBackend>, buffer: HipBuffer<f32>, shape: &[usize]) -> HipResult<Self> {
        check_len(shape, buffer.len())?;
        let foreign = || format!("buffer {:?}", buffer.label());
        backend.core().same_backend(buffer.root().core(), foreign)?;
        Ok(Self::of(backend, buffer, shape))
    }

    fn of(backend: &Arc<HipBackend>, buffer: HipBuffer<f32>, shape: &[usize]) -> Self {
        Self {
            backend: Arc::clone(backend),
            buffer,
            shape: shape.to_vec(),
        }
    }

    /// The values, on the host.
    pub fn to_host(&self) -> HipResult<Vec<f32>> {
        self.buffer.to_vec(self.backend.stream())
    }

    /// Replaces the values. As many as there are.
    pub fn copy_from_host(&self, values: &[f32]) -> HipResult<()> {
        self.buffer.copy_from_host(self.backend.stream(), values)
    }

    /// The same values under another shape with as many elements. Shares the memory.
    pub fn reshape(&self, shape: &[usize]) -> HipResult<Self> {
        check_len(shape, self.buffer.len())?;
        Ok(Self::of(&self.backend, self.buffer.clone(), shape))
    }

    /// The shape.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// Its memory.
    pub fn buffer(&self) -> &HipBuffer<f32> {
        &self.buffer
    }

    /// Its backend.
    pub fn backend(&self) -> &Arc<HipBackend> {
        &self.backend
    }
}

fn check_len(shape: &[usize], actual: usize) -> HipResult<()> {
    let expected = elements(shape)?;
    if expected == actual {
        Ok(())
    } else {
        Err(HipError::Shape {
            shape: shape.to_vec(),
            expected,
            actual,
        })
    }
}
