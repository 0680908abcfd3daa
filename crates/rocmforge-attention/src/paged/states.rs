//! Slots of states: what recurrent layers keep, one slot for each length of a sequence that is needed.
//!
//! A slot is never written in place. A step reads the slot of a sequence and writes another one, which takes its place when the step has been
//! written. So a fork shares its slot, a step that fails changes nothing, and a slot that was written at the end of a block is a checkpoint:
//! it is found by the hash of the prefix until its memory is needed.

use super::{BlockAllocator, BlockHash, PagedKvError};

/// Slots of a sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateSlots {
    /// The state after the tokens that have been written; `None` for the state before the first token, which is all zero.
    pub from: Option<u32>,
    /// Where the step writes that is on its way.
    pub to: Option<u32>,
}

impl StateSlots {
    fn each(self) -> impl Iterator<Item = u32> {
        self.from.into_iter().chain(self.to)
    }

    /// The checkpoint of a prefix, in use once more.
    pub(super) fn of_prefix(slots: &mut BlockAllocator, hash: BlockHash) -> Result<Self, PagedKvError> {
        let from = slots.find(hash);
        from.map_or(Ok(()), |slot| slots.share(slot))?;
        Ok(Self { from, to: None })
    }

    pub(super) fn share(self, slots: &mut BlockAllocator) -> Result<(), PagedKvError> {
        self.each().try_for_each(|slot| slots.share(slot))
    }

    pub(super) fn release(self, slots: &mut BlockAllocator) -> Result<(), PagedKvError> {
        self.each().try_for_each(|slot| slots.release(slot))
    }

    /// The step has been written: a checkpoint if it has ended at the end of a block, with this hash.
    pub(super) fn advance(
        &mut self,
        slots: &mut BlockAllocator,
        border: Option<BlockHash>,
    ) -> Result<(), PagedKvError> {
        let Some(written) = self.to.take() else { return Ok(()) };
        border.map_or(Ok(()), |hash| slots.publish(written, hash))?;
        let before = self.from.replace(written);
        before.map_or(Ok(()), |slot| slots.release(slot))
    }
}
