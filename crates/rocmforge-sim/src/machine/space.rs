//! Address space of a card: which addresses the next allocation gets.
//!
//! There are two regions. The roomy one has padding behind every allocation and keeps freed ranges unused as long as it can. What does
//! not fit there goes to the dense one, which has the smallest padding and hands out freed ranges at once: it alone is large enough for
//! every allocation that the card's memory allows, so padding and quarantine never make one fail.

use crate::config::{FreedMemory, SimConfig};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Every allocation starts at a multiple of this, as HIP's do.
pub(crate) const ALIGNMENT: u64 = 256;
/// Unmapped bytes behind every allocation, at least: one element past the end hits them, not a neighbour.
pub(crate) const RED_ZONE: u64 = 256;
/// The most padding that is in proportion to an allocation.
const MOST_PADDING: u64 = 16 << 20;
/// Freed ranges that are kept to be used again last, and freed ranges in quarantine, at most: reports remember as many.
pub(crate) const REMEMBERED: usize = 4096;
/// Bytes of short ranges in quarantine, at most: the host keeps their pages. It gets those of long ranges back.
const MOST_SHORT: u64 = 256 << 20;
/// What counts as long.
const LONG: u64 = 1 << 20;
/// Bytes of the roomy region, at most: racecheck reserves ten times the addresses, for every simulated machine of a process.
const MOST_ROOM: u64 = 16 << 30;

/// Free address space: ranges by address and by length, and the most recently freed ones on a stack.
#[derive(Default)]
pub(crate) struct FreeSpace {
    by_address: BTreeMap<u64, u64>,
    by_length: BTreeSet<(u64, u64)>,
    recent: Vec<(u64, u64)>,
}

impl FreeSpace {
    pub(crate) fn insert(&mut self, mut address: u64, mut length: u64) {
        if let Some((&before, &n)) = self.by_address.range(..address).next_back()
            && before + n == address
        {
            self.remove(before, n);
            address = before;
            length += n;
        }
        if let Some((&after, &n)) = self.by_address.range(address..).next()
            && address + length == after
        {
            self.remove(after, n);
            length += n;
        }
        self.by_address.insert(address, length);
        self.by_length.insert((length, address));
    }

    fn remove(&mut self, address: u64, length: u64) {
        self.by_address.remove(&address);
        self.by_length.remove(&(length, address));
    }

    pub(crate) fn freed(&mut self, address: u64, length: u64) {
        if self.recent.len() == REMEMBERED {
            self.recent.drain(..REMEMBERED / 2);
        }
        self.recent.push((address, length));
        self.insert(address, length);
    }

    /// Takes `need` bytes: where memory was freed last, if that fits, so that stale pointers hit somebody; else the
    /// smallest range that fits.
    pub(crate) fn take(&mut self, need: u64) -> Option<u64> {
        let recent = self.recent.iter().rposition(|&(_, n)| n >= need);
        if let Some(at) = recent {
            let (address, length) = self.recent.remove(at);
            if let Some((&start, &n)) = self.by_address.range(..=address).next_back()
                && address + length <= start + n
            {
                return Some(self.carve(start, n, address, need));
            }
        }
        let &(n, start) = self.by_length.range((need, 0)..).next()?;
        Some(self.carve(start, n, start, need))
    }

    fn carve(&mut self, start: u64, n: u64, address: u64, need: u64) -> u64 {
        self.remove(start, n);
        if address > start {
            self.insert(start, address - start);
        }
        let end = address + need;
        if end < start + n {
            self.insert(end, start + n - end);
        }
        address
    }
}

/// A place for an allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) address: u64,
    /// Bytes up to the next allocation's start.
    pub(crate) length: u64,
}

/// All addresses that allocations can have.
pub(crate) struct Space {
    roomy: FreeSpace,
    dense: FreeSpace,
    /// Where the roomy region starts, and its length.
    room: (u64, u64),
    /// Freed ranges of the roomy region, the first freed in front.
    quarantine: VecDeque<(u64, u64)>,
    /// Bytes of the short ones.
    short: u64,
    freed: FreedMemory,
    padding: Option<u64>,
}

impl Space {
    /// Bytes of the dense region of a card with `capacity` bytes of memory: red zones need address space, not memory, and twice the
    /// capacity is enough for allocations of 256 B.
    pub(crate) fn dense_bytes(capacity: u64) -> u64 {
        capacity.saturating_mul(2).saturating_add(64 << 20)
    }

    /// Bytes of the roomy region.
    pub(crate) fn roomy_bytes(capacity: u64) -> u64 {
        Self::dense_bytes(capacity).min(MOST_ROOM)
    }

    /// Regions that follow each other from `base` on; `roomy` may be 0.
    pub(crate) fn new(base: u64, dense: u64, roomy: u64, config: &SimConfig) -> Self {
        let mut space = Self {
            roomy: FreeSpace::default(),
            dense: FreeSpace::default(),
            room: (base, roomy),
            quarantine: VecDeque::new(),
            short: 0,
            freed: config.freed,
            padding: config.padding.map(|bytes| bytes.0),
        };
        if roomy > 0 {
            space.roomy.insert(base, roomy);
        }
        space.dense.insert(base + roomy, dense);
        space
    }

    /// A place for `size` bytes, which the card's memory has.
    pub(crate) fn take(&mut self, size: u64) -> Option<Placed> {
        let bytes = size.checked_next_multiple_of(ALIGNMENT)?;
        let wanted = self.padding.unwrap_or((size / 4).min(MOST_PADDING));
        let mut padding = wanted
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(RED_ZONE)
            .max(RED_ZONE);
        while padding > RED_ZONE && bytes.saturating_add(padding) > self.room.1 {
            padding = (padding / 2).next_multiple_of(ALIGNMENT);
        }
        loop {
            let length = bytes + padding;
            if let Some(address) = self.take_roomy(length) {
                return Some(Placed { address, length });
            }
            if padding == RED_ZONE {
                break;
            }
            padding = (padding / 2).next_multiple_of(ALIGNMENT).max(RED_ZONE);
        }
        let length = bytes + RED_ZONE;
        let address = self.dense.take(length)?;
        Some(Placed { address, length })
    }

    /// A range of the roomy region, of what was freed first if there is no other.
    fn take_roomy(&mut self, length: u64) -> Option<u64> {
        if length > self.room.1 {
            return None;
        }
        loop {
            if let Some(address) = self.roomy.take(length) {
                return Some(address);
            }
            self.end_quarantine()?;
        }
    }

    /// Lets the range that was freed first be used again.
    fn end_quarantine(&mut self) -> Option<()> {
        let (address, length) = self.quarantine.pop_front()?;
        if length < LONG {
            self.short -= length;
        }
        self.roomy.freed(address, length);
        Some(())
    }

    /// A place is free again.
    pub(crate) fn give_back(&mut self, placed: Placed) {
        let Placed { address, length } = placed;
        let (start, bytes) = self.room;
        if !(start..start + bytes).contains(&address) {
            self.dense.freed(address, length);
            return;
        }
        if self.freed == FreedMemory::ReusedAtOnce {
            self.roomy.freed(address, length);
            return;
        }
        self.quarantine.push_back((address, length));
        if length < LONG {
            self.short += length;
        }
        while self.quarantine.len() > REMEMBERED || self.short > MOST_SHORT {
            if self.end_quarantine().is_none() {
                break;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_memory::Bytes;

    const BASE: u64 = 1 << 40;

    fn space(config: &SimConfig, room: u64) -> Space {
        Space::new(BASE, 1 << 20, room, config)
    }

    #[test]
    fn padding_is_in_proportion_and_shrinks() {
        let mut space_of = space(&SimConfig::default(), 64 << 10);
        let mut length = |size| space_of.take(size).map(|placed| placed.length);
        assert_eq!(length(1), Some(512), "at least 256 B");
        assert_eq!(length(16 << 10), Some(20 << 10), "a quarter");
        assert_eq!(
            length(40 << 10),
            Some((40 << 10) + 2560),
            "what fits: 10 KiB halved twice"
        );
        assert_eq!(length(40 << 10), Some((40 << 10) + 256), "from the dense region");
        let config = SimConfig {
            padding: Some(Bytes(1000)),
            ..SimConfig::default()
        };
        assert_eq!(
            space(&config, 64 << 10).take(256).map(|placed| placed.length),
            Some(1280)
        );
        let config = SimConfig {
            padding: Some(Bytes(u64::MAX)),
            ..SimConfig::default()
        };
        assert_eq!(
            space(&config, 64 << 10).take(256).map(|placed| placed.length),
            Some(512)
        );
    }

    #[test]
    fn what_was_freed_first_is_used_again_first_and_only_when_nothing_else_is_left() {
        let mut space_of = space(&SimConfig::default(), 2048);
        let take = |space_of: &mut Space| space_of.take(256).unwrap();
        let all: Vec<Placed> = (0..4).map(|_| take(&mut space_of)).collect();
        for placed in [all[2], all[0]] {
            space_of.give_back(placed);
        }
        assert_eq!(take(&mut space_of), all[2]);
        assert_eq!(take(&mut space_of), all[0]);
        assert!(take(&mut space_of).address >= BASE + 2048, "the dense region");
        let config = SimConfig {
            freed: FreedMemory::ReusedAtOnce,
            ..SimConfig::default()
        };
        let mut space_of = space(&config, 2048);
        let first = take(&mut space_of);
        space_of.give_back(first);
        assert_eq!(take(&mut space_of), first);
    }

    #[test]
    fn the_quarantine_of_short_ranges_is_bounded() {
        let mut space_of = Space::new(BASE, 1 << 20, 1 << 40, &SimConfig::default());
        for _ in 0..3 * REMEMBERED {
            let placed = space_of.take(512 << 10).unwrap();
            space_of.give_back(placed);
        }
        assert!(space_of.short <= MOST_SHORT);
        assert!(space_of.quarantine.len() <= REMEMBERED);
    }
}
