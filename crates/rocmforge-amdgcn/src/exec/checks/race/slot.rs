//! Slots of shadow memory: what one says about an access, and what it is compared with.

use memmap2::{MmapMut, MmapOptions};

/// What a slot says about an access, besides its segment: words from the start of `.text` to the instruction (21 bits, or 20),
/// lane (5, or 6), bytes of the dword (4), [`flags`] (2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Info(pub(super) u32);

pub(super) mod flags {
    /// In a load slot: a scalar load.
    pub(in super::super) const SCALAR: u32 = 1;
    /// In a load slot: a volatile load, which does not conflict with atomics.
    pub(in super::super) const VOLATILE: u32 = 2;
    /// In a load slot: an atomic load, which conflicts with nothing.
    pub(in super::super) const ATOMIC: u32 = 3;
    /// Set in both of the last two.
    pub(in super::super) const COHERENT: u32 = 2;
    /// In the slot of atomics: a store with release semantics.
    pub(in super::super) const STORE: u32 = 1;
}

pub(super) const FULL: u32 = 0xF << 2;

/// How many bits of an [`Info`] are the lane: 6 where waves have 64.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LaneBits(u32);

impl LaneBits {
    pub(super) fn of(wide: bool) -> Self {
        Self(if wide { 6 } else { 5 })
    }

    fn most_words(self) -> u32 {
        u32::MAX >> (6 + self.0)
    }
}

impl Info {
    /// No bytes, of the first lane of half a wave, which is its lane `first`: what is added later counts from there.
    pub(super) fn new(at: u32, flags: u32, first: u32, bits: LaneBits) -> Self {
        Self((at >> 2).min(bits.most_words()) << (6 + bits.0) | first << 6 | flags)
    }

    pub(super) fn with(self, lane: u32, mask: u32) -> Self {
        Self(self.0 | (lane & 31) << 6 | mask << 2)
    }

    /// Offset of the instruction in `.text`; `None` past what a slot can say.
    pub(super) fn at(self, bits: LaneBits) -> Option<u32> {
        let word = self.0 >> (6 + bits.0);
        (word != bits.most_words()).then_some(word << 2)
    }

    pub(super) fn lane(self, bits: LaneBits) -> u32 {
        self.0 >> 6 & ((1 << bits.0) - 1)
    }

    pub(super) fn mask(self) -> u32 {
        self.0 >> 2 & 15
    }

    pub(super) fn flags(self) -> u32 {
        self.0 & 3
    }
}

/// The slots of a dword.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Slot {
    Store = 0,
    Atomic = 1,
    Load = 2,
    /// Load by another wave of the same workgroup.
    Beside = 3,
    /// Load by another workgroup.
    Before = 4,
}

pub(super) const SLOTS: [Slot; 5] = [Slot::Store, Slot::Atomic, Slot::Load, Slot::Beside, Slot::Before];

/// Segments of the running wave: which of the earlier ones can matter to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    /// Its own.
    pub(super) mine: u32,
    /// Lower ones are forgotten.
    pub(super) floor: u32,
    /// From here on: its workgroup.
    pub(super) group: u32,
    /// From here on: since the workgroup's last barrier.
    pub(super) epoch: u32,
    /// From here on: stores that no barrier has ordered, because they were still under way at the last one.
    pub(super) stores: u32,
    /// Bits of a segment that are the number of its wave.
    pub(super) waves: u32,
}

impl Now {
    /// Whether what a slot holds of that segment is not plainly before everything the wave does now.
    #[inline(always)]
    pub(super) fn open(&self, slot: Slot, segment: u32) -> bool {
        let epoch = if slot as u32 == Slot::Store as u32 {
            self.stores
        } else {
            self.epoch
        };
        (segment >= self.floor) & ((segment < self.group) | (segment >= epoch)) & (segment != self.mine)
    }

    /// Whether an access of that segment is still to be remembered: no barrier orders it before all that follows.
    #[inline(always)]
    pub(super) fn counts(&self, segment: u32) -> bool {
        (segment >= self.floor) & ((segment < self.group) | (segment >= self.epoch))
    }

    /// Whether a segment since the barrier is one of the running wave's.
    #[inline(always)]
    pub(super) fn own(&self, segment: u32) -> bool {
        (segment ^ self.mine) & self.waves == 0 && segment >= self.epoch
    }
}

/// An earlier access to the same bytes that may be unordered with this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    /// Which dword.
    pub(super) dword: usize,
    /// Bytes of it that both touch.
    pub(super) mask: u32,
    pub(super) slot: Slot,
    pub(super) segment: u32,
    pub(super) info: Info,
}

/// Words that are zero until written, and cost nothing until then.
pub(super) enum Words {
    Map(MmapMut),
    Vec(Vec<u32>),
}

impl Words {
    /// Words of some bytes of address space, if the host reserves it.
    pub(super) fn mapped(bytes: usize) -> std::io::Result<Self> {
        let map = MmapOptions::new().len(bytes.max(4096)).no_reserve_swap().map_anon();
        map.map(Words::Map)
    }
}

impl std::ops::Deref for Words {
    type Target = [u32];
    #[inline(always)]
    fn deref(&self) -> &[u32] {
        match self {
            Words::Map(map) => bytemuck::cast_slice(map),
            Words::Vec(vec) => vec,
        }
    }
}

impl std::ops::DerefMut for Words {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [u32] {
        match self {
            Words::Map(map) => bytemuck::cast_slice_mut(map),
            Words::Vec(vec) => vec,
        }
    }
}
