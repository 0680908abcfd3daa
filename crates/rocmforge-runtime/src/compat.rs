//! Compatibility: names that earlier programs call. New code calls what they forward to.
//!
//! | name | new code |
//! |---|---|
//! | [`HipBackend::gpu_available`] | [`HipBackend::availability`] |
//! | [`HipBackend::get_memory_info`], [`safe_alloc_size`](HipBackend::safe_alloc_size), [`can_allocate`](HipBackend::can_allocate) | [`Card::budget`](crate::Card::budget) of [`HipBackend::card`] |
//! | [`HipBackend::allocate_buffer_safe`] | [`HipBuffer::zeroed`] |
//! | [`HipBackend::copy_from_device_safe`] | [`HipBuffer::copy_to_host`] |
//! | [`HipBackend::verify_device`] | [`HipBackend::thread_device`] |
//! | [`DeviceTensor::empty_safe`] | [`DeviceTensor::zeros`] |
//! | [`DeviceTensor::size_bytes`] | [`HipBuffer::byte_len`] |
//! | [`ceil_div_u64`] | [`u64::div_ceil`] |
//! | [`safe_grid_dim`] | [`u32::try_from`] of the quotient |

use crate::{DeviceTensor, HipBackend, HipBuffer, HipResult, hip};
use bytemuck::Pod;
use rocmforge_memory::{Bytes, Elems};
use std::sync::Arc;

/// Names of earlier programs: see [`compat`](crate::compat).
impl HipBackend {
    /// Whether [`availability`](Self::availability) finds an AMD GPU that can be used.
    pub fn gpu_available() -> bool {
        Self::availability().is_available()
    }

    /// Free and total bytes of the card's memory.
    ///
    /// Free is the smaller of what HIP and what the kernel say: HIP's figure does not see the desktop. It is a figure to
    /// print. What may be allocated is [`safe_alloc_size`](Self::safe_alloc_size), and asking first promises nothing:
    /// only an allocation does.
    pub fn get_memory_info(&self) -> HipResult<(usize, usize)> {
        let driver = &self.core().driver;
        driver.enter()?;
        let (free, total) = hip::memory::info(driver)?;
        let budget = self.card().budget();
        // What HIP calls the whole is only one kind of the memory that a GPU shares with the system.
        let whole = budget.total.filter(|_| budget.unified_memory).unwrap_or(total);
        // Without the kernel's figures HIP's is all there is.
        let seen = budget
            .others
            .map_or(free, |others| whole.saturating_sub(others.saturating_add(budget.own)));
        Ok((addressable(free.min(seen)), addressable(total)))
    }

    /// Bytes the budget has left now.
    pub fn safe_alloc_size(&self) -> HipResult<usize> {
        self.core().driver.enter()?;
        Ok(addressable(self.card().budget().available))
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

/// Names of earlier programs: see [`compat`](crate::compat).
impl DeviceTensor {
    /// [`zeros`](Self::zeros): memory that was never written is never handed out, and no tensor escapes the budget.
    #[track_caller]
    pub fn empty_safe(backend: &Arc<HipBackend>, shape: &[usize]) -> HipResult<Self> {
        Self::zeros(backend, shape)
    }

    /// Bytes.
    pub fn size_bytes(&self) -> usize {
        self.buffer().byte_len()
    }
}

/// The bytes as a size of memory, at most the largest there is.
fn addressable(bytes: Bytes) -> usize {
    bytes.to_usize().unwrap_or(usize::MAX)
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
