//! Tensor table of a backend: descriptor, buffer and root tensor of each id.

use crate::{GgmlError, GgmlResult, TensorDesc, TensorId};
use std::collections::HashMap;

#[derive(Debug)]
struct Slot<B> {
    desc: TensorDesc,
    /// `None` for views, and while it is taken.
    buffer: Option<B>,
}

/// The tensors of a backend whose memory is `B`.
#[derive(Debug)]
pub(crate) struct Slots<B>(HashMap<TensorId, Slot<B>>);

impl<B> Slots<B> {
    pub(crate) fn new() -> Self {
        Self(HashMap::new())
    }

    /// Gives a tensor a buffer, in place of what it had.
    pub(crate) fn insert(&mut self, desc: &TensorDesc, buffer: B) {
        self.put(desc, Some(buffer));
    }

    /// [`Self::insert`] of a buffer of `bytes` that the caller made.
    pub(crate) fn bind(&mut self, desc: &TensorDesc, buffer: B, bytes: usize) -> GgmlResult<()> {
        desc.check()?;
        let expected = desc.byte_size();
        if bytes < expected {
            return Err(GgmlError::BufferSize {
                tensor: desc.id,
                expected,
                found: bytes,
            });
        }
        self.insert(desc, buffer);
        Ok(())
    }

    pub(crate) fn bind_view(&mut self, desc: &TensorDesc) -> GgmlResult<()> {
        desc.check()?;
        self.put(desc, None);
        Ok(())
    }

    fn put(&mut self, desc: &TensorDesc, buffer: Option<B>) {
        let desc = desc.clone();
        self.0.insert(desc.id, Slot { desc, buffer });
    }

    pub(crate) fn remove(&mut self, id: TensorId) -> GgmlResult<()> {
        self.0.remove(&id).map(drop).ok_or(GgmlError::UnknownTensor(id))
    }

    pub(crate) fn desc(&self, id: TensorId) -> GgmlResult<&TensorDesc> {
        self.0
            .get(&id)
            .map(|slot| &slot.desc)
            .ok_or(GgmlError::UnknownTensor(id))
    }

    /// The descriptors of some tensors.
    pub(crate) fn descs(&self, ids: &[TensorId]) -> GgmlResult<Vec<&TensorDesc>> {
        ids.iter().map(|&id| self.desc(id)).collect()
    }

    pub(crate) fn buffer(&self, id: TensorId) -> Option<&B> {
        self.0.get(&id)?.buffer.as_ref()
    }

    /// Buffers of all tensors that have one.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = &B> {
        self.0.values().filter_map(|slot| slot.buffer.as_ref())
    }

    pub(crate) fn buffer_mut(&mut self, id: TensorId) -> Option<&mut B> {
        self.0.get_mut(&id)?.buffer.as_mut()
    }

    /// Takes a tensor's buffer out, to write it while others are read; [`Self::give_back`] returns it.
    pub(crate) fn take(&mut self, id: TensorId) -> GgmlResult<B> {
        let slot = self.0.get_mut(&id).ok_or(GgmlError::UnknownTensor(id))?;
        slot.buffer.take().ok_or(GgmlError::UnknownTensor(id))
    }

    pub(crate) fn give_back(&mut self, id: TensorId, buffer: B) {
        if let Some(slot) = self.0.get_mut(&id) {
            slot.buffer = Some(buffer);
        }
    }

    /// The tensor whose memory `id` lies in: itself, or the end of its chain of views.
    pub(crate) fn root(&self, id: TensorId) -> GgmlResult<TensorId> {
        let mut at = id;
        // A chain longer than there are tensors is a circle.
        for _ in 0..=self.0.len() {
            match self.desc(at)?.view_of {
                None => return Ok(at),
                Some(base) => at = base,
            }
        }
        Err(GgmlError::UnknownTensor(id))
    }
}
