//! Copies between slices and buffers, through staging memory.

use crate::buffer::HipBuffer;
use crate::core::staging::{SLOT_BYTES, SLOTS, Slot};
use crate::error::{HipResult, same_len};
use crate::hip;
use crate::stream::HipStream;
use crate::touched::Work;
use bytemuck::Pod;
use rocmforge_hip_sys::{hipMemcpyDeviceToHost, hipMemcpyHostToDevice};
use rocmforge_memory::Access;

impl<T: Pod> HipBuffer<T> {
    /// Copies `src` here, on `stream`. Both have the same length.
    ///
    /// When this returns, `src` is free for other use; the device has the data in stream order. The data go through pinned
    /// memory of the backend, so that a copy that is late never reads memory of the caller.
    pub fn copy_from_host(&self, stream: &HipStream, src: &[T]) -> HipResult<()> {
        let core = stream.core();
        core.driver.enter()?;
        stream.shared().not_capturing("copy from a slice")?;
        same_len("copy to the device", self.len(), src.len())?;
        let data: &[u8] = bytemuck::cast_slice(src);
        for (index, chunk) in data.chunks(SLOT_BYTES).enumerate() {
            let mut slot = core.staging.take_one()?;
            slot.memory.as_mut_slice()[..chunk.len()].copy_from_slice(chunk);
            let pinned = slot.memory.ptr();
            let to = self.as_device_ptr().wrapping_byte_add(index * SLOT_BYTES);
            let enqueued = stream.submit(
                Work::SliceCopy,
                &mut vec![(self.root(), Access::Write)],
                |driver, stream| {
                    // SAFETY: `to` has the chunk's bytes inside of a live allocation; the slot is not used again
                    // before this copy is done.
                    unsafe { hip::copy::copy(driver, to, pinned.cast(), chunk.len(), hipMemcpyHostToDevice, stream) }
                },
            );
            if let Ok(Some(cursor)) = &enqueued {
                slot.in_use(stream.shared().at(*cursor));
            }
            core.staging.give(slot);
            enqueued?;
        }
        Ok(())
    }

    /// Copies this buffer into `dst`, after everything that `stream` has to wait for. Both have the same length. Returns
    /// when the data are there.
    pub fn copy_to_host(&self, stream: &HipStream, dst: &mut [T]) -> HipResult<()> {
        let core = stream.core();
        core.driver.enter()?;
        stream.shared().not_capturing("copy to a slice")?;
        same_len("copy from the device", self.len(), dst.len())?;
        let data: &mut [u8] = bytemuck::cast_slice_mut(dst);
        for (index, batch) in data.chunks_mut(SLOT_BYTES * SLOTS).enumerate() {
            let mut slots = Vec::with_capacity(SLOTS);
            let result = self.fetch(stream, index * SLOT_BYTES * SLOTS, batch, &mut slots);
            for slot in slots {
                core.staging.give(slot);
            }
            result?;
        }
        core.deferred.free_done();
        Ok(())
    }

    /// Fetches `batch` from `offset` on, as many slots at a time as can be had.
    fn fetch(&self, stream: &HipStream, mut offset: usize, batch: &mut [u8], slots: &mut Vec<Slot>) -> HipResult<()> {
        let core = stream.core();
        let mut rest = batch;
        while !rest.is_empty() {
            if slots.is_empty() {
                slots.push(core.staging.take_one()?);
            }
            while slots.len() < rest.len().div_ceil(SLOT_BYTES)
                && let Some(slot) = core.staging.take_another()?
            {
                slots.push(slot);
            }
            let here = rest.len().min(slots.len() * SLOT_BYTES);
            let (now, later) = rest.split_at_mut(here);
            for (slot, chunk) in slots.iter_mut().zip(now.chunks(SLOT_BYTES)) {
                let (pinned, from) = (slot.memory.ptr(), self.as_device_ptr().wrapping_byte_add(offset));
                let mut touches = vec![(self.root(), Access::Read)];
                let cursor = stream.submit(Work::SliceCopy, &mut touches, |driver, stream| {
                    // SAFETY: `from` has the chunk's bytes inside of a live allocation; the slot is idle, has
                    // SLOT_BYTES bytes, and is not used again before this copy is done.
                    unsafe { hip::copy::copy(driver, pinned.cast(), from, chunk.len(), hipMemcpyDeviceToHost, stream) }
                })?;
                if let Some(cursor) = cursor {
                    slot.in_use(stream.shared().at(cursor));
                }
                offset += chunk.len();
            }
            for (slot, chunk) in slots.iter_mut().zip(now.chunks_mut(SLOT_BYTES)) {
                slot.wait()?;
                chunk.copy_from_slice(&slot.memory.as_mut_slice()[..chunk.len()]);
            }
            rest = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{BackendOptions, HipBackend};
    use crate::error::HipError;
    use crate::provider::Provider;
    use rocmforge_memory::Policy;
    use rocmforge_sim::{SimConfig, SimHost};
    use std::time::Duration;

    #[test]
    fn a_wait_for_slots_that_others_keep_ends_at_the_deadline() {
        let sim = SimHost::new(SimConfig::default());
        let provider = Provider::new(sim.api())
            .with_clock(sim.clock())
            .with_readings(Box::new(sim.readings(0)));
        let options = BackendOptions {
            policy: Policy::tests(),
            deadline: Duration::from_millis(30),
            ..BackendOptions::default()
        };
        let backend = HipBackend::open(provider, options).unwrap();
        let core = backend.core();
        let kept: Vec<Slot> = (0..SLOTS).map(|_| core.staging.take_one().unwrap()).collect();
        // The simulated clock stands still: nobody waits on it.
        let error = HipBuffer::from_slice(backend.stream(), &[1u8], "refused").unwrap_err();
        assert!(
            matches!(error, HipError::StagingBusy { waited } if waited >= Duration::from_millis(30)),
            "{error}"
        );
        assert!(backend.is_poisoned().is_none());
        for slot in kept {
            core.staging.give(slot);
        }
        let buffer = HipBuffer::from_slice(backend.stream(), &[1u8], "accepted").unwrap();
        assert_eq!(buffer.to_vec(backend.stream()).unwrap(), [1]);
    }
}
