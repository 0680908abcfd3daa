//! What foreign programs call and the safe runtime must not: device-wide waits, reset, stream-ordered memory.

use super::memory::{address_of, pointer_to};
use super::{answer, required};
use crate::sim::{Call, Hip};
use crate::work::OpKind;
use rocmforge_hip_sys::*;
use std::ffi::c_void;

impl Call<'_> {
    pub(crate) fn device_synchronize(&mut self) -> Hip {
        let card = self.healthy_device()?;
        let all = self.queues.all_of(card);
        self.force(&all)?;
        self.knows_card(card);
        Ok(())
    }

    /// `hipDeviceReset`: this process's memory on the card is gone, under live pointers.
    pub(crate) fn device_reset(&mut self) -> Hip {
        let card = self.device();
        if self.healthy(card).is_ok() {
            let all = self.queues.all_of(card);
            // What cannot end is dropped below.
            let _ = self.force(&all);
        }
        self.drop_work(card);
        self.knows_card(card);
        let actor = self.as_actor();
        let live: Vec<u64> = self.cards[card]
            .vram
            .live()
            .map(|allocation| allocation.address)
            .collect();
        for address in live {
            self.release(card, address, &actor);
        }
        self.cards[card].fault = None;
        Ok(())
    }

    /// A stream handle of the pool functions: those answer another code, and HIP 7 does not check.
    pub(crate) unsafe fn malloc_async(&mut self, ptr: *mut *mut c_void, size: usize, stream: hipStream_t) -> Hip {
        required(ptr)?;
        let stream = self.stream_or(stream, hipErrorInvalidHandle)?;
        let card = self.healthy_device()?;
        let address = if size == 0 { 0 } else { self.allocate(card, size)? };
        self.belongs_to_stream(card, address, stream);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(ptr, pointer_to(address)) }
    }

    pub(crate) fn free_async(&mut self, pointer: *mut c_void, stream: hipStream_t) -> Hip {
        if pointer.is_null() {
            return if self.hip7() { Ok(()) } else { Err(hipErrorInvalidValue) };
        }
        let stream = self.stream_or(stream, hipErrorInvalidHandle)?;
        let address = address_of(pointer);
        let Some(card) = self.card_of(address) else {
            return Err(hipErrorInvalidValue);
        };
        let Some(allocation) = self.cards[card].vram.find(address).cloned() else {
            self.report_dead_free(card, address);
            return Err(hipErrorInvalidValue);
        };
        self.enqueue(
            stream,
            OpKind::Free {
                card,
                address: allocation.address,
                id: allocation.id,
            },
            Vec::new(),
        );
        Ok(())
    }
}
