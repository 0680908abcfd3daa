//! The video memory of one card: who owns which bytes.

mod mapped;

pub(crate) use mapped::Contents;

use crate::config::{Poison, SimConfig};
pub(crate) use crate::machine::space::FreeSpace as SystemSpace;
use crate::machine::space::{FreeSpace, Placed, RED_ZONE, REMEMBERED, Space};
use crate::report::{AllocationInfo, AllocationState};
use rocmforge_amdgcn::{ByteState, GlobalMemory, ReserveError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// What the driver charges in: the page.
const PAGE: u64 = 4096;
/// KFD reports its figures rounded down to this.
const REPORTED: u64 = 2 << 20;
/// Page tables and firmware, never available.
const RESERVED: u64 = 64 << 20;
/// Address space kept for code objects and kernel arguments. Not charged: their size is not the program's affair.
const SYSTEM: u64 = 256 << 20;
/// Fresh memory is filled up to this size only: filling gigabytes would cost more than the test that needs them, and
/// what is read of it is reported anyway.
const POISON_LIMIT: u64 = 256 << 10;

/// A live allocation.
#[derive(Clone, Debug)]
pub(crate) struct Allocation {
    /// Unique on the host: two allocations at the same address differ in it.
    pub(crate) id: u64,
    pub(crate) address: u64,
    /// What its owner may use of it.
    pub(crate) size: u64,
    /// What `hipMalloc` gave: more than `size` only where the program has given it to an owner out of a pool of its own.
    pub(crate) block: u64,
    /// Bytes from its start to the next allocation's: the block and what lies behind it.
    length: u64,
    pub(crate) allocated_by: u64,
    /// Whether it lies idle in a pool of the program's.
    pub(crate) idle: bool,
    /// Whether it is a variable of a module, which goes with the module and cannot be freed.
    pub(crate) global: bool,
    /// Whether it is the accessible part of a reserved range of addresses, which has no memory of its own.
    pub(crate) mapped: bool,
    /// The last call before each new owner, and how many bytes it may use: what is enqueued later finds them new. Those that
    /// nothing has run for yet.
    owners: VecDeque<(u64, u64)>,
    /// What the program calls it, if it said so.
    pub(crate) label: Option<Arc<str>>,
    /// Where the program allocated it, if it said so.
    pub(crate) site: Option<Arc<str>>,
}

impl Allocation {
    /// What `call` has allocated: `size` bytes, with `length` bytes from its start to the next allocation's.
    fn new(address: u64, size: u64, length: u64, id: u64, call: u64) -> Self {
        Self {
            id,
            address,
            size,
            block: size,
            length,
            allocated_by: call,
            idle: false,
            global: false,
            mapped: false,
            owners: VecDeque::new(),
            label: None,
            site: None,
        }
    }

    pub(crate) fn info(&self) -> AllocationInfo {
        AllocationInfo {
            address: self.address,
            size: self.size,
            allocated_by: self.allocated_by,
            state: AllocationState::Live,
            label: self.label.clone(),
            site: self.site.clone(),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.address + self.size
    }
}

/// Figures of a card's memory, for tests and tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocationStats {
    /// Successful allocations so far.
    pub allocations: u64,
    /// Frees so far.
    pub frees: u64,
    /// Allocations alive.
    pub live: u64,
    /// Bytes alive, as asked for.
    pub live_bytes: u64,
    /// The most bytes alive at any time.
    pub peak_bytes: u64,
    /// Bytes the driver charges for what is alive (whole pages).
    pub charged_bytes: u64,
}

/// A card's memory and its allocator.
pub(crate) struct Vram {
    pub(crate) memory: GlobalMemory,
    capacity: u64,
    space: Space,
    system: FreeSpace,
    live: BTreeMap<u64, Allocation>,
    /// Variables of modules.
    globals: BTreeMap<u64, Allocation>,
    freed: VecDeque<AllocationInfo>,
    stats: AllocationStats,
    poison: Poison,
}

/// Why an allocation failed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutOfMemory;

impl Vram {
    pub(crate) fn new(base: u64, capacity: u64, config: &SimConfig) -> Result<Self, ReserveError> {
        let dense = Space::dense_bytes(capacity);
        let reserve = |roomy: u64| {
            let bytes = dense.saturating_add(roomy).saturating_add(SYSTEM);
            Ok((GlobalMemory::with_base(base, bytes)?, roomy))
        };
        // The host may have address space for the card and not for padding.
        let (memory, roomy) = reserve(Space::roomy_bytes(capacity)).or_else(|_: ReserveError| reserve(0))?;
        let mut vram = Self {
            memory,
            capacity,
            space: Space::new(base, dense, roomy, config),
            system: FreeSpace::default(),
            live: BTreeMap::new(),
            globals: BTreeMap::new(),
            freed: VecDeque::new(),
            stats: AllocationStats::default(),
            poison: config.poison,
        };
        vram.system.insert(base + dense + roomy, SYSTEM);
        Ok(vram)
    }

    pub(crate) fn stats(&self) -> AllocationStats {
        self.stats
    }

    /// Bytes the kernel driver would say are available: it knows ROCm's memory, not the desktop's.
    pub(crate) fn available(&self, other_rocm: u64) -> u64 {
        self.capacity
            .saturating_sub(self.stats.charged_bytes + RESERVED.min(self.capacity / 16))
            .saturating_sub(other_rocm)
    }

    /// The same as the driver reports it.
    pub(crate) fn reported_available(&self, other_rocm: u64) -> u64 {
        self.available(other_rocm) / REPORTED * REPORTED
    }

    pub(crate) fn allocate(&mut self, size: u64, other_rocm: u64, id: u64, call: u64) -> Result<u64, OutOfMemory> {
        let charged = size.checked_next_multiple_of(PAGE).ok_or(OutOfMemory)?;
        if charged > self.available(other_rocm) {
            return Err(OutOfMemory);
        }
        let Placed { address, length } = self.space.take(size).ok_or(OutOfMemory)?;
        self.memory.set_state(address, size, ByteState::Uninit);
        self.memory
            .set_state(address + size, length - size, ByteState::Unmapped);
        self.fill_fresh(address, size);
        self.live
            .insert(address, Allocation::new(address, size, length, id, call));
        self.stats.allocations += 1;
        self.stats.live += 1;
        self.stats.live_bytes += size;
        self.stats.charged_bytes += charged;
        self.stats.peak_bytes = self.stats.peak_bytes.max(self.stats.live_bytes);
        Ok(address)
    }

    fn fill_fresh(&mut self, address: u64, size: u64) {
        let byte = match self.poison {
            Poison::Nan => 0xFF,
            Poison::Zero => 0,
            Poison::Stale => return,
        };
        let chunk = [byte; 4096];
        let size = size.min(POISON_LIMIT);
        for at in (0..size).step_by(chunk.len()) {
            let n = (size - at).min(chunk.len() as u64) as usize;
            self.memory.poke(address + at, &chunk[..n]);
        }
    }

    /// Frees the allocation that starts at `address`.
    pub(crate) fn release(&mut self, address: u64, call: u64) -> Option<Allocation> {
        let allocation = self.live.remove(&address)?;
        self.memory.set_state(address, allocation.block, ByteState::Freed);
        let length = allocation.length;
        self.space.give_back(Placed { address, length });
        if self.freed.len() == REMEMBERED {
            self.freed.pop_front();
        }
        self.freed.push_back(AllocationInfo {
            state: AllocationState::Freed(call),
            ..allocation.info()
        });
        self.stats.frees += 1;
        self.stats.live -= 1;
        self.stats.live_bytes -= allocation.block;
        self.stats.charged_bytes -= allocation.block.next_multiple_of(PAGE);
        Some(allocation)
    }

    /// The live allocation, or the variable of a module, that `address` lies in.
    pub(crate) fn find(&self, address: u64) -> Option<&Allocation> {
        let within = |map: &'_ BTreeMap<u64, Allocation>| {
            let (start, allocation) = map.range(..=address).next_back()?;
            (address < allocation.address + allocation.block).then_some(*start)
        };
        within(&self.live)
            .and_then(|start| self.live.get(&start))
            .or_else(|| self.globals.get(&within(&self.globals)?))
    }

    /// Makes a variable of a module known, so that copies and fills may name it. Its bytes are those of the module's image.
    pub(crate) fn add_global(&mut self, name: &str, (address, size): (u64, u64), id: u64, call: u64) {
        let global = Allocation {
            global: true,
            label: Some(name.into()),
            ..Allocation::new(address, size, size, id, call)
        };
        self.globals.insert(address, global);
    }

    /// Forgets the variables of the module whose image takes `size` bytes from `base` on.
    pub(crate) fn remove_globals(&mut self, base: u64, size: u64) {
        self.globals.retain(|address, _| !(base..base + size).contains(address));
    }

    /// Remembers what the program calls the live allocation that starts at `address`.
    pub(crate) fn name(&mut self, address: u64, label: &str, site: &str) {
        if let Some(allocation) = self.live.get_mut(&address) {
            allocation.label = Some(label.into());
            allocation.site = Some(site.into());
        }
    }

    /// The allocation that starts at `address` has no owner. What is queued may still use it.
    pub(crate) fn mark_idle(&mut self, address: u64) {
        if let Some(allocation) = self.live.get_mut(&address) {
            (allocation.idle, allocation.size) = (true, allocation.block);
        }
    }

    /// The allocation that starts at `address` has a new owner, who may use `size` bytes of it. `call` is the last call so far.
    pub(crate) fn mark_in_use(&mut self, address: u64, size: u64, call: u64) {
        if let Some(allocation) = self.live.get_mut(&address) {
            let size = size.min(allocation.block);
            // To the owner of all of a new allocation its bytes are new anyway.
            if allocation.idle || size < allocation.block || !allocation.owners.is_empty() {
                allocation.owners.push_back((call, size));
            }
            (allocation.idle, allocation.size) = (false, size);
        }
    }

    /// An operation that `call` enqueued is about to use the memory at `address`. To the first one of an owner its bytes
    /// are as new: nobody has written them. Operations of earlier owners may still have been queued when it got
    /// its owner, and it may have got another since, so this is the moment.
    pub(crate) fn renew(&mut self, address: u64, call: u64) {
        let Some((_, allocation)) = self.live.range_mut(..=address).next_back() else {
            return;
        };
        let mut owner = None;
        while let Some(next) = allocation.owners.pop_front_if(|(after, _)| *after < call) {
            owner = Some(next);
        }
        let Some((_, size)) = owner else { return };
        let (start, block) = (allocation.address, allocation.block);
        self.memory.set_state(start, size, ByteState::Uninit);
        self.memory.set_state(start + size, block - size, ByteState::Unmapped);
        self.fill_fresh(start, size);
    }

    pub(crate) fn live(&self) -> impl Iterator<Item = &Allocation> {
        self.live.values()
    }

    /// The allocation that was at `address` most recently and is no more.
    pub(crate) fn find_freed(&self, address: u64) -> Option<AllocationInfo> {
        let was_there = |a: &&AllocationInfo| address >= a.address && address < a.address + a.size.max(1);
        self.freed.iter().rev().find(was_there).cloned()
    }

    /// The allocation an access at `address` was probably meant for.
    pub(crate) fn blame(&self, address: u64) -> Option<AllocationInfo> {
        if let Some(allocation) = self.find(address) {
            return Some(allocation.info());
        }
        if self.memory.state_at(address) == ByteState::Freed {
            return self.find_freed(address);
        }
        // Padding is there for the allocation before it.
        let before = self.live.range(..=address).next_back().map(|(_, a)| a);
        if let Some(allocation) = before.filter(|a| address - a.address < a.length) {
            return Some(allocation.info());
        }
        let near = |a: &Allocation| address.abs_diff(a.end()).min(address.abs_diff(a.address));
        let after = self.live.range(address..).next().map(|(_, a)| a);
        let nearest = before.into_iter().chain(after).min_by_key(|a| near(a))?;
        (near(nearest) <= RED_ZONE * 16).then(|| nearest.info())
    }

    /// The memory, and the address space for what is no allocation of the program's.
    pub(crate) fn parts(&mut self) -> (&mut GlobalMemory, &mut SystemSpace) {
        (&mut self.memory, &mut self.system)
    }

    /// Memory for code and kernel arguments. Its bytes are [`ByteState::Uninit`] until written.
    pub(crate) fn allocate_system(&mut self, size: u64) -> Result<u64, OutOfMemory> {
        let padded = size.checked_next_multiple_of(PAGE).ok_or(OutOfMemory)? + PAGE;
        let address = self.system.take(padded).ok_or(OutOfMemory)?;
        self.memory.set_state(address, size, ByteState::Uninit);
        Ok(address)
    }

    pub(crate) fn release_system(&mut self, address: u64, size: u64) {
        self.memory.set_state(address, size, ByteState::Freed);
        self.system.insert(address, size.next_multiple_of(PAGE) + PAGE);
    }

    /// Copies inside the card. Bytes nobody has written stay that way at the destination: a copy computes nothing, so
    /// it is their use that is reported, not the copy.
    pub(crate) fn copy_within(&mut self, destination: u64, source: u64, size: u64) {
        if self.memory.copy_within(destination, source, size).is_ok() {
            return;
        }
        let mut bytes = vec![0; size as usize];
        self.memory.peek(source, &mut bytes);
        let states: Vec<_> = (0..size).map(|i| self.memory.state_at(source + i)).collect();
        self.memory.poke(destination, &bytes);
        let mut at = 0;
        for run in states.chunk_by(|a, b| a == b) {
            let written = if run[0] == ByteState::Init {
                ByteState::Init
            } else {
                ByteState::Uninit
            };
            self.memory.set_state(destination + at, run.len() as u64, written);
            at += run.len() as u64;
        }
    }
}
