//! racecheck: accesses of different waves to the same bytes that nothing orders.
//!
//! # The order
//! The instructions of a wave are in order; its lanes run in lockstep, and race only where one instruction stores for several of them to
//! the same bytes ([`lanes`]). A barrier orders everything the
//! waves of a workgroup did before it with everything they do after it, except for stores to global memory that are under way:
//! those a wave has not waited for (`s_waitcnt_vscnt null, 0`; `s_wait_storecnt 0` on gfx12) are ordered by the first barrier
//! after such a wait. A barrier for LDS alone, without that wait, so hands nothing over in global memory. Where a kernel runs in
//! CU mode all waves of a workgroup share a cache that keeps their order, and compilers leave the wait out. Nothing else
//! orders waves but atomics, and nothing at all orders workgroups otherwise.
//!
//! The life of a wave is cut into segments, numbered upwards through the whole launch: a new one begins at each barrier,
//! at the first store after a wait for stores, and after each release. Workgroups run one after the other (one that waits for
//! another goes on with new segments), so comparing
//! numbers tells almost everything: below the launch's first segment is another launch, below the workgroup's first is
//! another workgroup, below the first since the barrier is ordered by the barrier; and the lowest bits are the number of
//! the wave. What is left is looked up in the clocks of [`sync`].
//!
//! # Atomics
//! What the machine code does counts, not what the source says:
//! * A release is an atomic, a store to LDS that another wave waits for in a loop, a volatile one that is behind a wait for LDS,
//!   the first store after `s_waitcnt_vscnt null, 0` with neither barrier nor cache invalidation
//!   between (as compilers write it), a volatile store, or a store to where the wave itself has used an
//!   exchange or a compare-and-swap (the end of a lock). It covers what the wave did up to its last wait for stores, and its loads up to the release;
//!   everything if no store is under way.
//! * An atomic whose old value is used ([`crate::exec::lower::unused`]), or a load with `glc` (as compilers write an atomic load), has seen
//!   what was released at its address. Stores, atomics, loads with `glc` and LDS are ordered by that alone; plain loads of global memory need
//!   `buffer_gl0_inv` for their own workgroup and `buffer_gl1_inv` for others, as they may find stale lines in a cache.
//! * A plain load whose value a compare-and-swap at the same address expects is taken for an atomic load: see [`crate::exec::lower::idioms`].
//! * Atomics, such stores and such loads do not race among themselves; loads with `glc` but not `dlc` do not race with
//!   plain stores either.
//!
//! # What is approximated
//! * A relaxed atomic store is a plain store in gfx1100 code, and taken for one, but by atomic loads. So is one with
//!   release semantics that has nothing to wait for: an atomic load that finds it sees what was done before it, an atomic of another kind races with it.
//!   Atomic loads of LDS are plain loads.
//! * Loads complete where they are issued, and atomics at the next barrier. A barrier needs no invalidation of a cache behind it
//!   for what was stored before it.
//! * Of the loads of a byte, two by different waves are remembered since the last barrier, and two by different workgroups
//!   before that: a store races with one of them, unless atomics order just those two.
//! * All atomics have device scope, as the hardware's have.
//! * Stores of the value that memory already holds are no race with the store that put it there.

mod cells;
mod flag;
mod footprint;
mod full;
mod grid;
mod lanes;
mod log;
mod order;
mod place;
mod records;
mod slot;
mod sync;
#[cfg(test)]
mod tests;
mod wording;

use crate::exec::memory::form::{COHERENT, EXCHANGE, FENCED, GUESS, ORDERED, POLL, RETURN, UNUSED, VOLATILE};
use crate::exec::state::ctx::{Ctx, Fence, Ins};
use crate::exec::state::request::{Place, Request, Shape, filled};
use crate::exec::state::wave::Wave;
use crate::fault::Access;
use crate::footprint::Footprint;
use crate::kernel::Setup;
use crate::memory::GlobalMemory;
use cells::Cells;
use flag::Before;
use log::Loads;
use place::{place, places};
use records::Bytes;
use slot::{Hit, Info, LaneBits, Now, SLOTS, Slot, flags};
use std::collections::BTreeMap;
use std::io;
use sync::{Level, Seen, Segment, Sync, raise, see};

/// Shadow of a card's memory, kept from launch to launch so that it need not be cleared.
pub(crate) struct Shadow {
    cells: Cells,
    /// First segment of the next launch.
    next: u32,
}

/// Launches that would start beyond this segment start from 1 again, with a new shadow.
const WRAP: u32 = 1 << 31;

/// Releases and flags of a launch that are remembered at most: half a gigabyte.
const MOST_RELEASES: usize = 1 << 22;
/// The last segment of a launch is before this one.
const LAST: u32 = u32::MAX - (1 << 16);

/// In the address of an atomic location: it is in LDS.
const LDS: u64 = 1 << 63;

/// Segments that a workgroup was given without others between.
struct Block {
    first: u32,
    group: u32,
}

/// Bytes of a dword, by wave, dword and number of the race.
pub(crate) type EarlyLoads = BTreeMap<(u32, usize, u32), u32>;

/// A wave as racecheck sees it.
#[derive(Default)]
struct WaveClock {
    segment: u32,
    /// Last segment whose stores are done.
    done: u32,
    /// Stores are under way.
    stores: bool,
    /// From this segment on, stores were under way at the last barrier.
    open: Option<u32>,
    /// The segment has been released: what follows needs a new one.
    released: bool,
    /// A wait for stores came, and since then no store, barrier or invalidation.
    waited: bool,
    seen: Seen,
}

/// The state of racecheck during a launch.
pub(crate) struct Race {
    global: Cells,
    lds: Cells,
    /// Loads of LDS that are not in its slots.
    loads: Loads,
    floor: u32,
    group: u32,
    epoch: u32,
    /// The lowest segment with a store that no barrier has ordered.
    stores: u32,
    next: u32,
    group_number: u32,
    /// A power of two, at least the waves of a workgroup: a segment modulo this is the number of its wave.
    stride: u32,
    blocks: Vec<Block>,
    /// What was done before the stores that begin some segments, in the order of those.
    befores: Vec<(u32, Before)>,
    waves: Vec<WaveClock>,
    /// What every wave of the workgroup has seen, since a barrier.
    shared: Seen,
    sync: Sync,
    hits: Vec<Hit>,
    /// Loads of LDS since the barrier whose bytes another wave has written later: bytes of a dword by wave, dword and race.
    early_loads: EarlyLoads,
    workgroups: Vec<[u32; 3]>,
    /// A barrier orders stores that are under way: CU mode.
    in_order: bool,
    /// It has remembered as much as it may.
    full: bool,
    /// The host has AVX2.
    wide: bool,
    lane_bits: LaneBits,
    /// What lanes 0 to 31 of a wave of 64 store by the running instruction.
    lower: lanes::LowerHalf,
}

/// What racecheck knows of a workgroup that waits for another.
pub(crate) struct SuspendedRace {
    group_number: u32,
    waves: Vec<WaveClock>,
    shared: Seen,
}

/// Where some lanes of a request touch memory.
#[derive(Clone, Copy)]
struct Span {
    lds: bool,
    /// First byte, from the start of the memory.
    offset: usize,
    bytes: usize,
    /// The lane of the first byte.
    lane: u32,
}

impl Race {
    /// Starts a launch of a kernel with so many waves a workgroup; fails when the host has no address space for the shadow.
    pub(crate) fn start(memory: &mut GlobalMemory, waves: u32, lds: usize, setup: &Setup) -> io::Result<Box<Self>> {
        let kept = memory.shadow.take().and_then(|kept| kept.downcast::<Shadow>().ok());
        let mut shadow = match kept {
            Some(shadow) if shadow.next < WRAP => *shadow,
            _ => Shadow {
                cells: Cells::global(memory.size() as usize)?,
                next: 1,
            },
        };
        shadow.cells.forget();
        Ok(Box::new(Self {
            global: shadow.cells,
            lds: Cells::lds(lds),
            loads: Loads::default(),
            floor: shadow.next,
            group: shadow.next,
            epoch: shadow.next,
            stores: shadow.next,
            next: shadow.next,
            group_number: 0,
            stride: waves.next_power_of_two(),
            blocks: Vec::new(),
            befores: Vec::new(),
            waves: (0..waves).map(|_| WaveClock::default()).collect(),
            shared: Seen::new(),
            sync: Sync::default(),
            hits: Vec::new(),
            early_loads: EarlyLoads::new(),
            workgroups: Vec::new(),
            in_order: setup.cu_mode,
            full: false,
            wide: crate::exec::simd::fast(),
            lane_bits: LaneBits::of(setup.wide),
            lower: lanes::LowerHalf::default(),
        }))
    }

    /// Ends the launch: gives the shadow back to the memory, and what the launch touched.
    pub(crate) fn finish(mut self: Box<Self>, memory: &mut GlobalMemory, text: u64) -> Footprint {
        let footprint = self.footprint(memory.base(), text);
        memory.shadow = Some(Box::new(Shadow {
            cells: self.global,
            next: self.next,
        }));
        footprint
    }

    /// A workgroup starts.
    pub(crate) fn start_group(&mut self, workgroup: [u32; 3]) {
        self.group = self.next;
        self.group_number = self.workgroups.len() as u32;
        self.workgroups.push(workgroup);
        self.shared.clear();
        for wave in &mut self.waves {
            // Most have seen nothing, and to clear an empty map takes a while.
            if !wave.seen.is_empty() {
                wave.seen.clear();
            }
            wave.stores = false;
        }
        self.new_epoch();
    }

    /// The workgroup waits for another: what is its own.
    pub(crate) fn suspend(&mut self) -> SuspendedRace {
        let fresh = self.waves.iter().map(|_| WaveClock::default()).collect();
        SuspendedRace {
            group_number: self.group_number,
            waves: std::mem::replace(&mut self.waves, fresh),
            shared: std::mem::take(&mut self.shared),
        }
    }

    /// A workgroup that has waited goes on. What it did before counts as ordered by a barrier, since segments tell workgroups apart
    /// by when they ran.
    pub(crate) fn resume(&mut self, group: SuspendedRace) {
        self.group = self.next;
        self.group_number = group.group_number;
        self.waves = group.waves;
        self.shared = group.shared;
        self.new_epoch();
    }

    /// Takes the loads of LDS that later writes of other waves race with.
    pub(crate) fn take_early_loads(&mut self) -> EarlyLoads {
        std::mem::take(&mut self.early_loads)
    }

    /// A wave of 64 lanes is about to run an instruction of which each half does its own part.
    pub(crate) fn start_halves(&mut self) {
        self.lower.clear();
    }

    /// All waves passed a barrier.
    pub(crate) fn barrier(&mut self) {
        for wave in &mut self.waves {
            while let Some(((var, level), part)) = wave.seen.pop_first() {
                see(&mut self.shared, var, level, part);
            }
        }
        self.new_epoch();
    }

    fn new_epoch(&mut self) {
        if self.full {
            return;
        }
        self.next = self.next.next_multiple_of(self.stride);
        self.epoch = self.next;
        self.note_group(self.next);
        self.stores = self.next;
        for (n, wave) in self.waves.iter_mut().enumerate() {
            let segment = self.next + n as u32;
            let stores = wave.stores && !self.in_order;
            let done = if stores { wave.done } else { segment - 1 };
            let open = stores.then_some(done + 1);
            self.stores = self.stores.min(open.unwrap_or(self.next));
            (wave.segment, wave.done, wave.stores, wave.open) = (segment, done, stores, open);
            (wave.waited, wave.released) = (false, false);
        }
        self.next += self.stride;
        self.lds.forget();
        self.loads.forget();
    }

    /// Gives a wave a new segment.
    fn cut(&mut self, wave: u32) {
        let here = self.next & !(self.stride - 1) | wave;
        let segment = if here < self.next { here + self.stride } else { here };
        self.note_group(segment);
        self.waves[wave as usize].segment = segment;
        self.waves[wave as usize].released = false;
        self.next = segment + 1;
    }

    /// Notes that segments from here on are the running workgroup's.
    fn note_group(&mut self, first: u32) {
        let group = self.group_number;
        if self.blocks.last().is_none_or(|last| last.group != group) {
            self.blocks.push(Block { first, group });
        }
    }

    fn whose(&self, segment: u32) -> Segment {
        let at = self.blocks.partition_point(|block| block.first <= segment);
        let block = &self.blocks[at.saturating_sub(1)];
        Segment {
            group: block.group,
            wave: segment & (self.stride - 1),
        }
    }

    /// A wait or a cache invalidation.
    pub(crate) fn fence(&mut self, wave: u32, fence: Fence) {
        let wave = &mut self.waves[wave as usize];
        match fence {
            Fence::Stores => {
                wave.waited = true;
                if wave.stores {
                    wave.stores = false;
                    wave.done = wave.segment;
                }
            }
            Fence::Workgroup | Fence::Device => {
                wave.waited = false;
                let level = if fence == Fence::Device {
                    Level::Device
                } else {
                    Level::Workgroup
                };
                raise(&mut wave.seen, level);
                // What a barrier handed over without an invalidation is now this wave's to read.
                if self.shared.keys().any(|key| key.1 < level) {
                    let mut raised = self.shared.clone();
                    raise(&mut raised, level);
                    for ((var, level), part) in raised {
                        see(&mut wave.seen, var, level, part);
                    }
                }
            }
        }
    }

    /// A request of a wave to global memory or LDS.
    pub(crate) fn request(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>) {
        if self.full {
            return;
        }
        if self.sync.len() + self.befores.len() > MOST_RELEASES || self.next > LAST {
            return self.end(c, w, i, r);
        }
        let ordered = r.access == Access::Atomic && i.half & ORDERED != 0;
        if ordered {
            self.fence(w.index, Fence::Stores);
        }
        self.request_here(c, w, i, r);
        if ordered {
            self.fence(w.index, Fence::Device);
        }
    }

    fn request_here(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>) {
        #[cfg(target_arch = "x86_64")]
        if self.wide {
            // SAFETY: `start` found that the host has AVX2.
            return unsafe { self.request_wide(c, w, i, r) };
        }
        self.request_any(c, w, i, r, Self::by_dword::<{ cfg!(not(target_arch = "x86_64")) }>);
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn request_wide(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>) {
        self.request_any(c, w, i, r, |race, c, w, i, r, slot, info| {
            race.by_dword_wide(c, w, i, r, slot, info)
        });
    }

    /// Notes a request: in the log, or by `by_dword`, which is [`Self::by_dword`] as this host runs it.
    #[inline(always)]
    fn request_any<'a>(
        &mut self,
        c: &mut Ctx<'a>,
        w: &Wave,
        i: &Ins,
        r: &Request<'_>,
        by_dword: impl FnOnce(&mut Self, &mut Ctx<'a>, &Wave, &Ins, &Request<'_>, Slot, Info),
    ) {
        let lds = match r.place {
            Place::Global => false,
            Place::Lds => true,
            Place::Scratch | Place::Flat => return,
        };
        let n = w.index as usize;
        let (mut slot, mut mark) = match r.access {
            Access::Load if !lds && i.half & VOLATILE != 0 => (Slot::Load, flags::VOLATILE),
            // In LDS too, where the address is a generic one: DS instructions have no such bits.
            Access::Load if i.half & (COHERENT | VOLATILE) == COHERENT => (Slot::Load, flags::ATOMIC),
            Access::Load | Access::Scalar if i.half & (GUESS | POLL) != 0 => (Slot::Load, flags::ATOMIC),
            Access::Load => (Slot::Load, 0),
            Access::Scalar => (Slot::Load, flags::SCALAR),
            Access::Store => (Slot::Store, 0),
            Access::Atomic => (Slot::Atomic, 0),
            Access::None => return,
        };
        if slot == Slot::Store && lds && i.half & COHERENT != 0 {
            (slot, mark) = (Slot::Atomic, flags::STORE);
        }
        if slot == Slot::Store && !lds {
            let wave = &self.waves[n];
            if i.half & COHERENT != 0 || wave.waited {
                (slot, mark) = (Slot::Atomic, flags::STORE);
            }
            self.waves[n].waited = false;
        }
        if slot == Slot::Store && self.unlocks(c, w.index, r, lds) {
            (slot, mark) = (Slot::Atomic, flags::STORE);
        }
        // A release by several lanes is atomic, unless it is no release at all.
        if r.access == Access::Store {
            let several = r.shape != Shape::Contiguous && r.exec & (r.exec - 1) != 0;
            let half = w.high.is_some() || w.first_lane != 0;
            let update = (several || half) && lanes::is_update(w, i, r);
            if several && (update || slot == Slot::Store) {
                lanes::check(c, w, i, r, update);
            }
            if half && (update || slot == Slot::Store) {
                self.lower.meet(c, w, i, r, update);
            }
        }
        if slot == Slot::Store && !lds {
            let first = !self.waves[n].stores;
            if first {
                // What came before is complete, this is not.
                self.waves[n].done = self.waves[n].segment;
                self.waves[n].stores = true;
            }
            if first || self.is_flag(c, r) {
                self.cut(w.index);
                self.note_before(w.index);
            }
        }
        if self.waves[n].released && slot != Slot::Atomic {
            self.cut(w.index);
        }
        let info = Info::new(i.at, mark, w.first_lane, self.lane_bits);
        if !self.log(c, w, r, slot, info, lds) {
            by_dword(self, c, w, i, r, slot, info);
        }
    }

    /// [`Self::by_dword`], apart from the path of what is logged, which most requests take.
    #[cfg(target_arch = "x86_64")]
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn by_dword_wide(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>, slot: Slot, info: Info) {
        self.by_dword::<true>(c, w, i, r, slot, info);
    }

    /// Notes a request in the slots of what it touches, and judges what it finds there. `FAST`: lanes together where that is quicker; the
    /// build for x86-64 without AVX2 leaves that out, because it is rarely run and costs as much to compile.
    #[inline(always)]
    fn by_dword<const FAST: bool>(
        &mut self,
        c: &mut Ctx<'_>,
        w: &Wave,
        i: &Ins,
        r: &Request<'_>,
        slot: Slot,
        info: Info,
    ) {
        let lds = r.place == Place::Lds;
        let size = r.size as usize;
        let coherent = info.flags() & flags::COHERENT != 0;
        // Lanes that follow each other in memory, or all access the same, are one span.
        let bytes = match r.shape {
            Shape::Contiguous if slot != Slot::Atomic && !coherent => Some(r.exec.count_ones() as usize * size),
            Shape::Uniform if slot == Slot::Load => Some(size),
            _ => None,
        };
        let lane = r.exec.trailing_zeros();
        let whole = bytes.filter(|_| FAST).and_then(|bytes| {
            Some(Span {
                lds,
                offset: place(c, lds, r.at[lane as usize & 31], bytes)?,
                bytes,
                lane,
            })
        });
        if coherent && let Some(whole) = whole {
            return self.lane(c, w, i, r, slot, info, &whole);
        }
        if FAST && whole.is_none() && slot == Slot::Load && !coherent {
            return self.gather(c, w, i, r, info, lds);
        }
        if FAST && (whole.is_some() || slot == Slot::Store) {
            return self.runs(c, w, i, r, slot, info, lds, whole);
        }
        let (mut known, mut count) = ([0; 32], 0);
        for lane in (0..32).filter(|l| r.exec >> l & 1 != 0) {
            let at = r.at[lane as usize];
            // Lanes of one wave neither race nor order each other, so the first to touch an address stands for all.
            if known[..count].contains(&at) {
                continue;
            }
            known[count] = at;
            count += 1;
            if let Some(offset) = place(c, lds, at, size) {
                let span = Span {
                    lds,
                    offset,
                    bytes: size,
                    lane,
                };
                self.lane(c, w, i, r, slot, info, &span);
            }
        }
    }

    /// Looks at a plain request by runs of lanes that follow each other in memory, as those of a tile's row do. `whole`: the one run that
    /// all lanes are, where they are one.
    #[inline(always)]
    fn runs(
        &mut self,
        c: &mut Ctx<'_>,
        w: &Wave,
        i: &Ins,
        r: &Request<'_>,
        slot: Slot,
        info: Info,
        lds: bool,
        whole: Option<Span>,
    ) {
        let size = r.size as usize;
        let is_on = |lane: u32| lane < 32 && r.exec >> lane & 1 != 0;
        let mut next = 0;
        while next < 32 {
            let span = if let Some(whole) = whole {
                next = 32;
                whole
            } else {
                let lane = next;
                next += 1;
                if !is_on(lane) {
                    continue;
                }
                let Some(offset) = place(c, lds, r.at[lane as usize], size) else {
                    continue;
                };
                let mut bytes = size;
                while is_on(next)
                    && r.at[next as usize & 31] == r.at[lane as usize].wrapping_add(bytes as u64)
                    && place(c, lds, r.at[next as usize & 31], size).is_some()
                {
                    bytes += size;
                    next += 1;
                }
                Span {
                    lds,
                    offset,
                    bytes,
                    lane,
                }
            };
            self.span(c, w, i, r, slot, info, &span);
        }
    }

    /// Notes a plain request in the log, if that is enough; otherwise makes the slots of what it touches ready.
    #[inline(always)]
    fn log(&mut self, c: &Ctx<'_>, w: &Wave, r: &Request<'_>, slot: Slot, info: Info, lds: bool) -> bool {
        let size = r.size as usize;
        let plain = match slot {
            Slot::Load => info.flags() & flags::COHERENT == 0,
            // In LDS, loads alone.
            _ => slot == Slot::Store && !lds,
        };
        // Lanes that all touch the same are as good as one.
        let exec = match r.shape {
            Shape::Uniform => r.exec & r.exec.wrapping_neg(),
            _ => r.exec,
        };
        let first = r.at[exec.trailing_zeros() as usize & 31];
        let at;
        let mut bytes = None;
        if plain && r.shape == Shape::Scattered {
            at = places(c, lds, &filled(r.at, exec), size);
            bytes = at.as_ref().map(|at| Bytes::scattered(at, exec, size));
        } else if plain {
            let length = exec.count_ones() as usize * size;
            if let Some(start) = place(c, lds, first, length) {
                bytes = Some(Bytes {
                    start,
                    end: start + length,
                    size,
                    exec,
                    at: None,
                });
            }
        }
        let now = self.now(w, lds);
        let noted = match &bytes {
            None => false,
            Some(bytes) if lds => self.loads.note(&now, info, bytes),
            Some(bytes) => self.global.note(&now, slot == Slot::Store, info, bytes),
        };
        if !noted {
            self.end_log(c, r, exec, lds);
        }
        noted
    }

    /// Makes the slots of what a request touches ready.
    #[inline(always)]
    fn end_log(&mut self, c: &Ctx<'_>, r: &Request<'_>, exec: u32, lds: bool) {
        let size = r.size as usize;
        if lds {
            let all = filled(r.at, exec);
            let (first, last) = (all.iter().min(), all.iter().max());
            if let (Some(&first), Some(&last)) = (first, last) {
                self.loads.end(&mut self.lds, first as usize..last as usize + size);
            }
            return;
        }
        let mut done = usize::MAX;
        for lane in (0..32).filter(|lane| exec >> lane & 1 != 0) {
            // Bytes that are no memory are not looked at later either.
            let Some(offset) = c.memory.offset(r.at[lane as usize], size) else {
                continue;
            };
            let last = self.global.chunk_of(offset + size - 1);
            if last != done || self.global.chunk_of(offset) != done {
                self.global.carry_over(offset..offset + size);
                done = last;
            }
        }
    }

    /// Plain loads that lie anywhere.
    #[inline(always)]
    fn gather(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>, info: Info, lds: bool) {
        let now = self.now(w, lds);
        let size = r.size as usize;
        let active = |lane: &usize| r.exec >> lane & 1 != 0;
        // One look at the memory for all lanes, where they are near each other.
        let (mut low, mut high) = (u64::MAX, 0);
        for lane in (0..32).filter(active) {
            low = low.min(r.at[lane]);
            high = high.max(r.at[lane]);
        }
        let near = high.wrapping_sub(low) < 1 << 14;
        let base = if near {
            place(c, lds, low, (high - low) as usize + size)
        } else {
            None
        };
        for lane in (0..32).filter(active) {
            let at = r.at[lane];
            // Rows and columns of lanes often read the same: the first of them stands for all.
            let same = |back: usize| lane >= back && r.exec >> (lane - back) & 1 != 0 && r.at[lane - back] == at;
            if same(1) || same(2) || same(4) || same(8) || same(16) {
                continue;
            }
            let offset = match base {
                Some(base) => Some(base + (at - low) as usize),
                None => place(c, lds, at, size),
            };
            let Some(offset) = offset else {
                continue;
            };
            let cells = if lds { &mut self.lds } else { &mut self.global };
            if (offset | size) & 3 == 0 && size > 4 {
                cells.load(&now, info, offset / 4, size / 4, lane as u32, size / 4, &mut self.hits);
            } else {
                cells.gather(&now, info, offset, size, lane as u32, &mut self.hits);
            }
            if !self.hits.is_empty() {
                let span = Span {
                    lds,
                    offset,
                    bytes: size,
                    lane: lane as u32,
                };
                self.judge(c, w, i, r, Slot::Load, info, &span);
            }
        }
    }

    /// What the running wave compares segments with.
    #[inline(always)]
    fn now(&self, w: &Wave, lds: bool) -> Now {
        Now {
            mine: self.waves[w.index as usize].segment,
            floor: if lds { self.epoch } else { self.floor },
            group: self.group,
            epoch: self.epoch,
            stores: if lds { self.epoch } else { self.stores },
            waves: self.stride - 1,
        }
    }

    /// Whether a store is to a location that the wave has taken with an exchange or a compare-and-swap, as locks are: compilers leave the wait of a release out
    /// where they know that no store is under way.
    fn unlocks(&self, c: &Ctx<'_>, wave: u32, r: &Request<'_>, lds: bool) -> bool {
        if self.sync.is_empty() {
            return false;
        }
        let first = r.at[r.exec.trailing_zeros() as usize & 31];
        let address = if lds {
            first | LDS
        } else {
            first.wrapping_sub(c.memory.base())
        };
        let seen = |seen: &Seen, var| seen.range((var, Level::Read)..=(var, Level::Device)).next().is_some();
        (self.sync.find(address))
            .filter(|&var| self.sync.is_lock(var))
            .is_some_and(|var| seen(&self.waves[wave as usize].seen, var) || seen(&self.shared, var))
    }

    /// One lane, and what its access orders if it is an atomic one.
    fn lane(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>, slot: Slot, info: Info, span: &Span) {
        let address = span.offset as u64 | if span.lds { LDS } else { 0 };
        let n = w.index as usize;
        let reads = match slot {
            Slot::Load => info.flags() & flags::COHERENT != 0,
            Slot::Atomic => i.sdst & RETURN != 0 && i.half & UNUSED == 0 && info.flags() & flags::STORE == 0,
            _ => false,
        };
        // What a compare-and-swap only expects is no look at a flag: the compare-and-swap itself races with a plain store.
        let looks = reads && slot == Slot::Load && info.flags() == flags::ATOMIC && i.half & (COHERENT | POLL) != 0;
        if looks && span.lds {
            self.handed_over(w.index, address, span);
        } else if looks {
            self.stored_before(w.index, address, span);
        }
        let atomic = (slot == Slot::Atomic).then(|| self.sync.var(address));
        if let Some(var) = atomic.filter(|_| reads && i.sdst & EXCHANGE != 0) {
            self.sync.lock(var);
        }
        if reads && let Some(var) = atomic.or_else(|| self.sync.find(address)) {
            see(&mut self.waves[n].seen, var, Level::Read, self.sync.now(var));
        }
        self.span(c, w, i, r, slot, info, span);
        let store = info.flags() & flags::STORE != 0;
        // A volatile store to LDS goes another way than what the wave asks of LDS by itself.
        let early = store && span.lds && i.half & (COHERENT | FENCED) == COHERENT;
        if let Some(var) = atomic.filter(|_| !early) {
            self.release(w.index, var, self.waves[n].segment, store);
        }
    }

    /// Adjacent bytes of adjacent lanes.
    #[inline(always)]
    fn span(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>, slot: Slot, info: Info, span: &Span) {
        let now = self.now(w, span.lds);
        let cells = if span.lds { &mut self.lds } else { &mut self.global };
        let (offset, bytes, size) = (span.offset, span.bytes, r.size as usize);
        if (offset | bytes | size) & 3 == 0 && slot != Slot::Atomic {
            let (first, count, per) = (offset / 4, bytes / 4, size / 4);
            if slot == Slot::Store {
                cells.store(&now, info, first, count, span.lane, per, &mut self.hits);
            } else {
                cells.load(&now, info, first, count, span.lane, per, &mut self.hits);
            }
        } else {
            for dword in offset / 4..=(offset + bytes - 1) / 4 {
                let from = (dword * 4).max(offset);
                let to = (dword * 4 + 4).min(offset + bytes);
                let mask = ((1 << (to - from)) - 1) << (from % 4);
                let lane = span.lane + ((from - offset) / size) as u32;
                cells.part(&now, slot, info, dword, mask, lane, &mut self.hits);
            }
        }
        if !self.hits.is_empty() {
            self.judge(c, w, i, r, slot, info, span);
        }
    }
}

const _: () = assert!(SLOTS.len() == 5);
