//! Device-wide waits and reset, which foreign programs call and the safe runtime must not.

use crate::calls::call::{Call, Hip};
use crate::machine::settings::Settings;
use rocmforge_hip_sys::hipErrorStreamCaptureUnsupported;

impl Call<'_> {
    pub(crate) fn hipDeviceSynchronize(&mut self) -> Hip {
        let card = self.healthy_device()?;
        if self.captures.invalidate_where(|_| true) {
            return Err(hipErrorStreamCaptureUnsupported);
        }
        let all = self.queues.all_of(card);
        self.force(&all)?;
        self.knows_card(card);
        Ok(())
    }

    /// `hipDeviceReset`: this process's memory on the card is gone, under live pointers.
    pub(crate) fn hipDeviceReset(&mut self) -> Hip {
        let card = self.device();
        if self.healthy(card).is_ok() {
            let all = self.queues.all_of(card);
            // What cannot end is dropped below.
            let _ = self.force(&all);
        }
        self.drop_work(card);
        self.graph_memory.retain(|_, found| found.card != card);
        self.knows_card(card);
        let actor = self.as_actor();
        self.forget_virtual_memory(card);
        let live = self.cards[card].vram.live();
        let live: Vec<u64> = live.map(|allocation| allocation.address).collect();
        for address in live {
            self.release(card, address, &actor);
        }
        self.cards[card].fault = None;
        self.cards[card].settings = Settings::default();
        Ok(())
    }
}
