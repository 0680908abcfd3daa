//! Compatibility: names that earlier programs call and that only forward. New code calls what they forward to.

use crate::{DeviceTensor, HipBackend, HipBuffer, HipResult};
use bytemuck::Pod;
use rocmforge_memory::Elems;
use std::sync::Arc;

impl HipBackend {
    /// Whether [`availability`](Self::availability) finds an AMD GPU that can be used.
    pub fn gpu_available() -> bool {
        Self::availability().is_available()
    }

    /// Whether `size` bytes would be within the budget now.
    pub fn can_allocate(&self, size: usize) -> HipResult<bool> {
        Ok(size <= self.safe_alloc_size()?)
    }

    /// `size` bytes, zeroed on the backend's stream, within the budget or not at all.
    #[track_caller]
    pub fn allocate_buffer_safe(self: &Arc<Self>, size: usize) -> HipResult<HipBuffer<u8>> {
        HipBuffer::zeroed(self.stream(), Elems(size), "buffer")
    }

    /// Copies a buffer to the host, after all work on it. Returns when the data are there.
    pub fn copy_from_device_safe<T: Pod>(&self, src: &HipBuffer<T>, dst: &mut [T]) -> HipResult<()> {
        src.copy_to_host(self.stream(), dst)
    }

    /// Whether the calling thread's current device is this backend's.
    pub fn verify_device(&self) -> HipResult<bool> {
        Ok(self.thread_device()? == self.device().ordinal)
    }
}

impl DeviceTensor {
    /// [`zeros`](Self::zeros): memory that was never written is never handed out, and no tensor escapes the budget.
    #[track_caller]
    pub fn empty_safe(backend: &Arc<HipBackend>, shape: &[usize]) -> HipResult<Self> {
        Self::zeros(backend, shape)
    }
}

/// The quotient, rounded up.
///
/// # Panics
///
/// If `denominator` is 0, as division does.
pub const fn ceil_div_u64(numerator: u64, denominator: u64) -> u64 {
    assert!(denominator != 0, "division by zero");
    numerator.div_ceil(denominator)
}

/// Blocks of `tile` items that cover `items`, or `None` if a grid cannot have so many.
///
/// # Panics
///
/// If `tile` is 0, as division does.
pub const fn safe_grid_dim(items: u64, tile: u32) -> Option<u32> {
    assert!(tile != 0, "a tile of 0 items");
    let blocks = ceil_div_u64(items, tile as u64);
    // HIP counts the threads of an axis in 32 bits, and a block has at least one.
    if blocks > u32::MAX as u64 {
        None
    } else {
        Some(blocks as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_ceil_div_u64() {
        for (numerator, denominator, quotient) in [
            (0, 1, 0),
            (1, 1, 1),
            (31, 32, 1),
            (32, 32, 1),
            (33, 32, 2),
            (u64::MAX, 2, 1 << 63),
            (u64::MAX, 1, u64::MAX),
        ] {
            assert_eq!(
                ceil_div_u64(numerator, denominator),
                quotient,
                "{numerator} / {denominator}"
            );
        }
    }

    #[test]
    #[should_panic(expected = "division by zero")]
    fn test_ceil_div_u64_panic_on_zero_denominator() {
        ceil_div_u64(1, std::hint::black_box(0));
    }

    #[test]
    fn test_safe_grid_dim() {
        assert_eq!(safe_grid_dim(0, 256), Some(0));
        assert_eq!(safe_grid_dim(1, 256), Some(1));
        assert_eq!(safe_grid_dim(257, 256), Some(2));
        assert_eq!(safe_grid_dim(u64::from(u32::MAX), 1), Some(u32::MAX));
        assert_eq!(safe_grid_dim(u64::from(u32::MAX) + 1, 1), None);
    }

    #[test]
    #[should_panic(expected = "a tile of 0 items")]
    fn test_safe_grid_dim_panic_on_zero_tile() {
        safe_grid_dim(1, std::hint::black_box(0));
    }
}
