//! Virtual memory: reserved ranges of addresses, physical memory, and what is mapped where.

use crate::machine::handle::{Kind, Table};
use crate::machine::space::Placed;
use crate::machine::vram::Contents;
use rocmforge_hip_sys::hipMemAllocationProp;
use std::collections::BTreeMap;

/// A range of addresses that the program has reserved.
pub(crate) struct Reservation {
    pub(crate) card: usize,
    pub(crate) size: u64,
    /// What the card's address space gave for it.
    pub(crate) placed: Placed,
    /// What is mapped into it, by address.
    pub(crate) mappings: BTreeMap<u64, Mapping>,
}

/// Physical memory that is mapped into a reserved range.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    pub(crate) size: u64,
    /// Handle of the physical memory.
    pub(crate) physical: u64,
    pub(crate) accessible: bool,
}

/// Physical memory: charged to the card from its creation until nobody holds it and it is mapped nowhere.
pub(crate) struct Physical {
    pub(crate) card: usize,
    pub(crate) size: u64,
    pub(crate) properties: hipMemAllocationProp,
    /// How often the program holds it.
    pub(crate) references: u32,
    /// Whether it is mapped. It can be at one place only.
    pub(crate) mapped: bool,
    /// What it holds while it is not accessible.
    pub(crate) contents: Contents,
}

/// All of a machine.
pub(crate) struct VirtualMemory {
    pub(crate) reservations: BTreeMap<u64, Reservation>,
    pub(crate) physical: Table<Physical>,
}

// SAFETY: the one pointer in it, metadata of Windows' handles in the properties, is kept to be answered and never followed.
unsafe impl Send for VirtualMemory {}

impl Default for VirtualMemory {
    fn default() -> Self {
        Self {
            reservations: BTreeMap::new(),
            physical: Table::new(Kind::PhysicalMemory),
        }
    }
}

impl VirtualMemory {
    /// The reservation that a range lies in whole: its start, and itself.
    pub(crate) fn reservation(&mut self, address: u64, size: u64) -> Option<(u64, &mut Reservation)> {
        let (start, found) = self.reservations.range_mut(..=address).next_back()?;
        let end = address.checked_add(size)?;
        (end <= start + found.size).then_some((*start, found))
    }
}

impl Reservation {
    /// The mappings that a range consists of, none cut, no gap: empty if it does not.
    pub(crate) fn covered(&self, address: u64, size: u64) -> Vec<u64> {
        let mut at = address;
        let mut found = Vec::new();
        while at < address + size {
            let Some(mapping) = self.mappings.get(&at) else {
                return Vec::new();
            };
            found.push(at);
            at += mapping.size;
        }
        if at == address + size { found } else { Vec::new() }
    }

    /// Accessible parts, each as long as it goes on without a gap.
    pub(crate) fn accessible(&self) -> Vec<(u64, u64)> {
        let mut parts: Vec<(u64, u64)> = Vec::new();
        for (address, mapping) in self.mappings.iter().filter(|(_, mapping)| mapping.accessible) {
            match parts.last_mut() {
                Some((start, size)) if *start + *size == *address => *size += mapping.size,
                _ => parts.push((*address, mapping.size)),
            }
        }
        parts
    }
}
