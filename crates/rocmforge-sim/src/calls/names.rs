//! Names of allocations, and which of them a pool of the program has in use.

use crate::calls::sim::SimHost;
use rocmforge_hip_sys::HipNames;

impl HipNames for SimHost {
    fn name_allocation(&self, ptr: *const std::ffi::c_void, label: &str, site: &str) {
        let address = ptr.addr() as u64;
        let mut host = self.lock();
        if let Some(card) = host.card_of(address) {
            host.cards[card].vram.name(address, label, site);
        }
    }

    fn mark_idle(&self, ptr: *const std::ffi::c_void) {
        let address = ptr.addr() as u64;
        let mut host = self.lock();
        if let Some(card) = host.card_of(address) {
            host.cards[card].vram.mark_idle(address);
        }
    }

    fn mark_in_use(&self, ptr: *const std::ffi::c_void, bytes: u64, label: &str, site: &str) {
        let address = ptr.addr() as u64;
        let mut host = self.lock();
        let call = host.calls;
        if let Some(card) = host.card_of(address) {
            let vram = &mut host.cards[card].vram;
            vram.mark_in_use(address, bytes, call);
            vram.name(address, label, site);
        }
    }
}
