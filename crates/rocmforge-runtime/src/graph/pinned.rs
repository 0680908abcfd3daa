//! Pinned memory of a graph, between its replays.

use crate::core::Core;
use crate::error::{HipResult, same_len};
use crate::pinned_range::PinnedRange;
use bytemuck::Pod;
use std::marker::PhantomData;
use std::sync::Arc;

/// Pinned memory of a graph, as who fills or reads it between replays sees it: `len` elements of `T`.
///
/// It lives as long as this, or a graph that copies from or to it.
pub struct GraphPinned<T: Pod> {
    core: Arc<Core>,
    /// `None` if it has no bytes.
    range: Option<Arc<PinnedRange>>,
    len: usize,
    _elements: PhantomData<fn() -> T>,
}

impl<T: Pod> GraphPinned<T> {
    pub(crate) fn new(core: &Arc<Core>, range: Option<Arc<PinnedRange>>, len: usize) -> Self {
        Self {
            core: Arc::clone(core),
            range,
            len,
            _elements: PhantomData,
        }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts `data` there, for the replays to come. Waits, at most until the backend's deadline, for those under way.
    pub fn copy_from_slice(&self, data: &[T]) -> HipResult<()> {
        self.core.driver.enter()?;
        same_len("copy to a graph's memory", self.len, data.len())?;
        let Some(range) = &self.range else { return Ok(()) };
        let _uses = range.idle()?;
        // SAFETY: the range has `len` elements, of an alignment that its `PinnedBuffer` checked; no copy is under way
        // (`idle`), and none begins while its uses are locked.
        unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), range.ptr().cast(), self.len) };
        Ok(())
    }

    /// What the last replay put there, or the caller since. Waits, at most until the backend's deadline, for replays under
    /// way.
    pub fn copy_to_slice(&self, data: &mut [T]) -> HipResult<()> {
        self.core.driver.enter()?;
        same_len("copy from a graph's memory", self.len, data.len())?;
        let Some(range) = &self.range else { return Ok(()) };
        let _uses = range.idle()?;
        // SAFETY: as in `copy_from_slice`; every byte was initialised when the memory was made, and all are valid.
        unsafe { std::ptr::copy_nonoverlapping(range.ptr().cast(), data.as_mut_ptr(), self.len) };
        Ok(())
    }

    /// The same as a new vector.
    pub fn to_vec(&self) -> HipResult<Vec<T>> {
        let mut data = vec![T::zeroed(); self.len];
        self.copy_to_slice(&mut data)?;
        Ok(data)
    }
}

debug_fields!(<T: Pod> GraphPinned<T>, |pinned| len: pinned.len);
