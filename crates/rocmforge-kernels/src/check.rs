//! Checks of every launcher, under the name of its operation.

use crate::fault::MAX_TAG;
use crate::{KernelError, KernelResult, KvType, WeightType};
use rocmforge_runtime::HipBuffer;

/// The largest dimension of an operand: the device counts in 32 bits, and pads up to tiles without overflow.
pub const MAX_DIM: usize = (u32::MAX - 4096) as usize;

/// The most columns of a product's operands: 64 rows must be addressable in 32 bits within a tile.
pub(crate) const MAX_COLUMNS: usize = (1 << 24) - 1;

/// Whether two buffers share a byte.
pub fn overlap<T: bytemuck::Pod, U: bytemuck::Pod>(a: &HipBuffer<T>, b: &HipBuffer<U>) -> bool {
    let (a0, b0) = (a.as_device_ptr().addr(), b.as_device_ptr().addr());
    a0.saturating_add(a.byte_len()) > b0 && b0.saturating_add(b.byte_len()) > a0
}

/// The checks of the operation of this name, which every error carries.
#[derive(Clone, Copy, Debug)]
pub struct Check(pub &'static str);

impl Check {
    /// A dimension from 1 to what the device counts.
    pub(crate) fn dim(self, dim: &'static str, value: usize) -> KernelResult<u32> {
        self.dim_to(dim, value, MAX_DIM)
    }

    /// Dimensions, each as [`dim`](Self::dim) has it.
    pub(crate) fn dims<const N: usize>(self, dims: [(&'static str, usize); N]) -> KernelResult<[u32; N]> {
        let mut counts = [0; N];
        for (count, (dim, value)) in counts.iter_mut().zip(dims) {
            *count = self.dim(dim, value)?;
        }
        Ok(counts)
    }

    /// A dimension from 1 to `limit`, itself at most [`MAX_DIM`].
    ///
    /// # Errors
    ///
    /// [`KernelError::Dimension`].
    pub fn dim_to(self, dim: &'static str, value: usize, limit: usize) -> KernelResult<u32> {
        if value == 0 {
            return Err(self.dimension(dim, value, limit));
        }
        self.at_most(dim, value, limit)
    }

    /// A dimension from 0 to `limit`, itself at most [`MAX_DIM`].
    pub(crate) fn at_most(self, dim: &'static str, value: usize, limit: usize) -> KernelResult<u32> {
        if value > limit {
            return Err(self.dimension(dim, value, limit));
        }
        Ok(value as u32)
    }

    fn dimension(self, dim: &'static str, value: usize, limit: usize) -> KernelError {
        KernelError::Dimension {
            op: self.0,
            dim,
            value,
            limit,
        }
    }

    /// The number of elements of a shape.
    ///
    /// # Errors
    ///
    /// [`KernelError::TooLarge`].
    pub fn elements(self, operand: &'static str, shape: &[usize]) -> KernelResult<usize> {
        let product = shape.iter().try_fold(1usize, |product, &dim| product.checked_mul(dim));
        // In bytes it must fit too: device addresses are formed from element * 4.
        product
            .filter(|&n| n <= isize::MAX as usize / 4)
            .ok_or_else(|| KernelError::TooLarge {
                op: self.0,
                operand,
                shape: shape.to_vec(),
            })
    }

    /// Query heads that share key and value heads evenly.
    ///
    /// # Errors
    ///
    /// [`KernelError::Heads`].
    pub fn heads(self, heads: usize, kv_heads: usize) -> KernelResult<()> {
        if heads.is_multiple_of(kv_heads) {
            return Ok(());
        }
        Err(KernelError::Heads {
            op: self.0,
            heads,
            kv_heads,
        })
    }

    /// A rule between two figures.
    pub(crate) fn holds(self, holds: bool, what: &'static str, left: usize, right: usize) -> KernelResult<()> {
        if holds {
            Ok(())
        } else {
            Err(self.mismatch(what, left, right))
        }
    }

    /// A whole that is a multiple of a part.
    pub(crate) fn multiple(self, what: &'static str, whole: usize, part: usize) -> KernelResult<()> {
        self.holds(whole.is_multiple_of(part), what, whole, part)
    }

    /// A part that divides a whole: [`multiple`](Self::multiple), with the part named first in the error.
    pub(crate) fn divides(self, what: &'static str, part: usize, whole: usize) -> KernelResult<()> {
        self.holds(whole.is_multiple_of(part), what, part, whole)
    }

    /// The error of a rule between two figures.
    pub(crate) fn mismatch(self, what: &'static str, left: usize, right: usize) -> KernelError {
        KernelError::Mismatch {
            op: self.0,
            what,
            left,
            right,
        }
    }

    /// A product of dimensions that the kernel itself counts in 32 bits.
    pub(crate) fn rows(self, dim: &'static str, shape: &[usize]) -> KernelResult<u32> {
        self.dim(dim, self.elements(dim, shape)?)
    }

    /// A buffer that has exactly the elements of its shape.
    ///
    /// # Errors
    ///
    /// [`KernelError::Length`], [`KernelError::TooLarge`].
    pub fn len<T: bytemuck::Pod>(
        self,
        operand: &'static str,
        buffer: &HipBuffer<T>,
        shape: &[usize],
    ) -> KernelResult<()> {
        let expected = self.elements(operand, shape)?;
        if buffer.len() != expected {
            return Err(KernelError::Length {
                op: self.0,
                operand,
                got: buffer.len(),
                expected,
                shape: shape.to_vec(),
            });
        }
        Ok(())
    }

    /// The same, at an address that is a multiple of so many bytes.
    pub(crate) fn len_at<T: bytemuck::Pod>(
        self,
        operand: &'static str,
        buffer: &HipBuffer<T>,
        shape: &[usize],
        alignment: usize,
    ) -> KernelResult<()> {
        self.len(operand, buffer, shape)?;
        self.aligned(operand, buffer, alignment)
    }

    /// A buffer, elements of `size` bytes each, in which strides over a shape stay, outermost first.
    pub(crate) fn reach<T: bytemuck::Pod>(
        self,
        operand: &'static str,
        (buffer, size): (&HipBuffer<T>, usize),
        shape: &[usize],
        strides: &[u64],
    ) -> KernelResult<()> {
        let got = buffer.byte_len() / size;
        let mut dims = shape.iter().zip(strides);
        let needed = dims.try_fold(1u64, |sum, (&n, &stride)| {
            (n as u64).saturating_sub(1).checked_mul(stride)?.checked_add(sum)
        });
        if needed.is_some_and(|needed| needed <= got as u64) {
            return Ok(());
        }
        Err(KernelError::Reach {
            op: self.0,
            operand,
            got,
            needed: needed.unwrap_or(u64::MAX),
            strides: strides.to_vec(),
            shape: shape.to_vec(),
        })
    }

    /// A buffer that the kernel reads or writes as elements of this alignment.
    pub(crate) fn aligned<T: bytemuck::Pod>(
        self,
        operand: &'static str,
        buffer: &HipBuffer<T>,
        alignment: usize,
    ) -> KernelResult<()> {
        let address = buffer.as_device_ptr().addr();
        if address.is_multiple_of(alignment) {
            return Ok(());
        }
        Err(KernelError::Alignment {
            op: self.0,
            operand,
            address,
            alignment,
        })
    }

    /// An output that shares no byte with an input.
    ///
    /// # Errors
    ///
    /// [`KernelError::Overlap`].
    pub fn disjoint<T: bytemuck::Pod, U: bytemuck::Pod>(
        self,
        (first, a): (&'static str, &HipBuffer<T>),
        (second, b): (&'static str, &HipBuffer<U>),
    ) -> KernelResult<()> {
        if !overlap(a, b) {
            return Ok(());
        }
        Err(KernelError::Overlap {
            op: self.0,
            first,
            second,
        })
    }

    /// A number that is finite and satisfies `ok`.
    ///
    /// # Errors
    ///
    /// [`KernelError::Value`].
    pub fn value(
        self,
        name: &'static str,
        value: f32,
        ok: impl Fn(f32) -> bool,
        must: &'static str,
    ) -> KernelResult<f32> {
        self.value_of(name, value, value.is_finite() && ok(value), must)?;
        Ok(value)
    }

    /// The bound of scores, as kernels take it: 0 stands for none.
    pub(crate) fn softcap(self, softcap: Option<f32>) -> KernelResult<f32> {
        match softcap {
            Some(cap) => self.value("softcap", cap, |cap| cap >= f32::MIN_POSITIVE, "positive and normal"),
            None => Ok(0.0),
        }
    }

    /// A number of which the caller says whether it fits.
    pub(crate) fn value_of(self, name: &'static str, value: f32, fits: bool, must: &'static str) -> KernelResult<()> {
        if fits {
            return Ok(());
        }
        Err(KernelError::Value {
            op: self.0,
            name,
            value,
            must,
        })
    }

    /// Blocks of so many elements and their bytes, as the last two dimensions of a cache in bytes.
    pub(crate) fn kv_row(self, kv: KvType, what: &'static str, elements: usize) -> KernelResult<[usize; 2]> {
        let block = kv.block_len();
        self.multiple(what, elements, block)?;
        Ok([elements / block, kv.block_bytes()])
    }

    /// Weights of `[rows, k]` in whole, aligned blocks.
    pub(crate) fn weights(
        self,
        ty: WeightType,
        (operand, w): (&'static str, &HipBuffer<u8>),
        [rows, k]: [usize; 2],
    ) -> KernelResult<()> {
        self.multiple("a row of weights must be whole blocks", k, ty.block_len())?;
        let shape = [rows, k / ty.block_len(), ty.block_bytes()];
        self.len_at(operand, w, &shape, ty.alignment())
    }

    /// The number that names a launch in a fault.
    pub(crate) fn fault_tag(self, tag: u32) -> KernelResult<()> {
        if tag == 0 {
            return Ok(());
        }
        self.dim_to("tag", tag as usize, MAX_TAG).map(|_| ())
    }

    /// An operation that takes only some types.
    pub(crate) fn kv_type(self, kv: KvType, takes: &'static [KvType]) -> KernelResult<()> {
        if takes.contains(&kv) {
            Ok(())
        } else {
            Err(KernelError::CacheType { op: self.0, kv, takes })
        }
    }
}
