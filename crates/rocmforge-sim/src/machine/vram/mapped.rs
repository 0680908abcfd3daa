//! Reserved ranges of addresses, and the charge for physical memory that can be mapped into them.

use super::{Allocation, OutOfMemory, PAGE, Vram};
use crate::machine::space::Placed;
use rocmforge_amdgcn::ByteState;

/// Bytes that somebody has written, each run with its distance from the start.
pub(crate) type Contents = Vec<(u64, Vec<u8>)>;

impl Vram {
    /// Addresses without memory, their start a multiple of `alignment`.
    pub(crate) fn reserve(&mut self, size: u64, alignment: u64) -> Option<(u64, Placed)> {
        let placed = self.space.take(size.checked_add(alignment)?)?;
        Some((placed.address.next_multiple_of(alignment), placed))
    }

    pub(crate) fn give_back(&mut self, placed: Placed) {
        self.space.give_back(placed);
    }

    /// Takes physical memory.
    pub(crate) fn charge(&mut self, size: u64, other_rocm: u64) -> Result<(), OutOfMemory> {
        let charged = size.checked_next_multiple_of(PAGE).ok_or(OutOfMemory)?;
        if charged > self.available(other_rocm) {
            return Err(OutOfMemory);
        }
        self.stats.live_bytes += size;
        self.stats.charged_bytes += charged;
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.stats.live_bytes);
        Ok(())
    }

    pub(crate) fn give_back_charge(&mut self, size: u64) {
        self.stats.live_bytes -= size;
        self.stats.charged_bytes -= size.next_multiple_of(PAGE);
    }

    /// Makes memory with these contents accessible.
    pub(crate) fn show(&mut self, address: u64, size: u64, contents: &Contents) {
        self.memory.set_state(address, size, ByteState::Uninit);
        self.fill_fresh(address, size);
        for (at, bytes) in contents {
            if *at + bytes.len() as u64 <= size {
                // The bytes are allocated, so this cannot fail.
                let _ = self.memory.write(address + at, bytes);
            }
        }
    }

    /// Takes accessible memory away, and answers its contents.
    pub(crate) fn hide(&mut self, address: u64, size: u64) -> Contents {
        let mut contents = Contents::new();
        let mut at = 0;
        while at < size {
            let state = self.memory.state_at(address + at);
            let rest = at + 1..size;
            let end = rest
                .into_iter()
                .find(|next| self.memory.state_at(address + next) != state)
                .unwrap_or(size);
            if state == ByteState::Init {
                let mut bytes = vec![0; (end - at) as usize];
                self.memory.peek(address + at, &mut bytes);
                contents.push((at, bytes));
            }
            at = end;
        }
        self.memory.set_state(address, size, ByteState::Unmapped);
        contents
    }

    /// The accessible parts of the range, as they are known now.
    pub(crate) fn mapped_within(&self, address: u64, size: u64) -> Vec<Allocation> {
        let found = self.live.range(address..address + size);
        found.map(|(_, allocation)| allocation.clone()).collect()
    }

    /// Makes an accessible part known, so that copies and fills may name it.
    pub(crate) fn add_mapped(&mut self, address: u64, size: u64, id: u64, call: u64) {
        let allocation = Allocation {
            mapped: true,
            ..Allocation::new(address, size, size, id, call)
        };
        self.live.insert(address, allocation);
    }

    pub(crate) fn remove_mapped(&mut self, address: u64) {
        self.live.remove(&address);
    }
}
