//! Host memory that HIP knows: allocated by it (`hipHostMalloc`, `hipMallocManaged`) or registered with it (`hipHostRegister`).

use crate::machine::host_block::HostBlock;
use crate::machine::space::REMEMBERED;
use crate::report::{AllocationInfo, AllocationState};
use std::collections::{BTreeMap, VecDeque};

/// A range of host memory that HIP knows.
pub(crate) struct Pinned {
    /// Unique on the host.
    pub(crate) id: u64,
    pub(crate) address: usize,
    pub(crate) size: usize,
    pub(crate) flags: u32,
    /// It comes from `hipMallocManaged`.
    pub(crate) managed: bool,
    pub(crate) card: usize,
    /// The call that allocated or registered it.
    pub(crate) made_by: u64,
    /// The memory, if HIP allocated it; none if the program registered its own.
    pub(crate) block: Option<HostBlock>,
}

impl Pinned {
    fn info(&self, state: AllocationState) -> AllocationInfo {
        AllocationInfo {
            address: self.address as u64,
            size: self.size as u64,
            allocated_by: self.made_by,
            state,
            label: None,
            site: None,
        }
    }

    /// The byte behind the last one.
    pub(crate) fn end(&self) -> usize {
        self.address.saturating_add(self.size)
    }
}

/// How far behind a range an access was probably meant for it.
const NEAR: usize = 4096;

/// All of them, by address.
#[derive(Default)]
pub(crate) struct PinnedRanges {
    ranges: BTreeMap<usize, Pinned>,
    /// Those that are no more.
    gone: VecDeque<AllocationInfo>,
    bytes: u64,
}

impl PinnedRanges {
    pub(crate) fn insert(&mut self, range: Pinned) {
        self.bytes += range.size as u64;
        self.ranges.insert(range.address, range);
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Pinned> {
        self.ranges.values()
    }

    /// The range `address` lies in.
    pub(crate) fn find(&self, address: usize) -> Option<&Pinned> {
        let (_, range) = self.ranges.range(..=address).next_back()?;
        (address - range.address < range.size).then_some(range)
    }

    /// The range that starts at `address`.
    pub(crate) fn at(&self, address: usize) -> Option<&Pinned> {
        self.ranges.get(&address)
    }

    pub(crate) fn overlaps(&self, address: usize, size: usize) -> bool {
        let end = address.saturating_add(size);
        let before = self.ranges.range(..end).next_back();
        before.is_some_and(|(_, range)| range.address.saturating_add(range.size) > address)
    }

    /// Removes the range that starts at `address`, as `call` asks for.
    pub(crate) fn remove(&mut self, address: usize, call: u64) -> Option<Pinned> {
        let range = self.ranges.remove(&address)?;
        self.bytes -= range.size as u64;
        if self.gone.len() == REMEMBERED {
            self.gone.pop_front();
        }
        self.gone.push_back(range.info(AllocationState::Freed(call)));
        Some(range)
    }

    /// The range an access at `address` was probably meant for: the one it lies in, one that was there, or one that ends shortly
    /// before.
    pub(crate) fn blame(&self, address: u64) -> Option<AllocationInfo> {
        let at = usize::try_from(address).ok()?;
        let live = |range: &Pinned| range.info(AllocationState::Live);
        let was_there = |info: &&AllocationInfo| address.wrapping_sub(info.address) < info.size;
        if let Some(range) = self.find(at) {
            return Some(live(range));
        }
        if let Some(gone) = self.gone.iter().rev().find(was_there) {
            return Some(gone.clone());
        }
        let (_, before) = self.ranges.range(..=at).next_back()?;
        (at - before.end() < NEAR).then(|| live(before))
    }

    /// Bytes that are pinned.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }
}
