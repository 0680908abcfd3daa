//! The footprint of a launch, read out of the shadow memory when it has ended.

use crate::exec::checks::race::Race;
use crate::exec::checks::race::log::Patterns;
use crate::exec::checks::race::records::Record;
use crate::exec::checks::race::slot::{Info, Slot};
use crate::fault::Access;
use crate::footprint::{Footprint, Touch};

impl Race {
    /// What the launch touched.
    pub(super) fn footprint(&mut self, base: u64, text: u64) -> Footprint {
        let mut chunks = self.global.touched.take().unwrap_or_default();
        chunks.sort_unstable();
        let mut touches = Vec::new();
        let mut ranges = [
            (Access::Load, &[Slot::Load, Slot::Before][..]),
            (Access::Store, &[Slot::Store][..]),
            (Access::Atomic, &[Slot::Atomic][..]),
        ]
        .map(|(access, slots)| Ranges {
            race: self,
            base,
            text,
            access,
            slots,
            patterns: Patterns::default(),
            done: Vec::new(),
        });
        for &chunk in &chunks {
            for ranges in &mut ranges {
                ranges.chunk(chunk as usize);
            }
        }
        for ranges in ranges {
            touches.extend(ranges.done);
        }
        self.global.touched = Some(Vec::new());
        touches.sort_by_key(|touch: &Touch| touch.start);
        Footprint { touches }
    }
}

/// Adjacent ranges of one access are joined whatever their instruction once there are this many.
const MANY: usize = 4096;

/// Joins what slots hold to ranges.
struct Ranges<'a> {
    race: &'a Race,
    base: u64,
    text: u64,
    access: Access,
    /// Slots of such accesses, the latest first.
    slots: &'static [Slot],
    patterns: Patterns,
    done: Vec<Touch>,
}

impl Ranges<'_> {
    fn chunk(&mut self, chunk: usize) {
        let slots = self.slots;
        let cells = &self.race.global;
        let (dwords, used) = cells.chunk(chunk);
        if used == 0 {
            return self.logged(chunk, slots[0]);
        }
        if slots.iter().all(|&slot| used >> slot as u32 & 1 == 0) {
            return;
        }
        let floor = self.race.floor;
        let written = used & 1 != 0 && slots[0] != Slot::Store;
        if !written && cells.full(slots[0], dwords.clone(), floor) {
            return self.add(slots[0], dwords.start, dwords.start * 4, dwords.end * 4);
        }
        for dword in dwords {
            let mut mask = 0;
            let mut from = slots[0];
            for &slot in slots.iter().filter(|&&slot| used >> slot as u32 & 1 != 0) {
                if let Some((_, info)) = cells.get(slot, dword, floor) {
                    mask |= info.mask();
                    from = slot;
                }
            }
            if written && let Some((_, info)) = cells.get(Slot::Store, dword, floor) {
                mask &= !info.mask();
            }
            while mask != 0 {
                let first = mask.trailing_zeros();
                let run = (mask >> first).trailing_ones();
                let start = dword * 4 + first as usize;
                self.add(from, dword, start, start + run as usize);
                mask &= !(((1 << run) - 1) << first);
            }
        }
    }

    /// A chunk whose requests are in the log.
    fn logged(&mut self, chunk: usize, slot: Slot) {
        let cells = &self.race.global;
        let bytes = cells.bytes_of(chunk);
        let store = slot == Slot::Store;
        if slot == Slot::Atomic {
            return;
        }
        if let Some((run, record)) = cells.one_run(chunk) {
            if record.store != store {
                return;
            }
            let lane = cells.lane_at(record, run.start).unwrap_or_default();
            return self.join(record.now.mine, record.info, lane, run.start, run.end);
        }
        if !cells.records(chunk).any(|record| record.store == store) {
            return;
        }
        let mut touched = cells.bitmap(chunk, store, &mut self.patterns);
        if !store && cells.records(chunk).any(|record| record.store) {
            touched = touched.without(&cells.bitmap(chunk, true, &mut self.patterns));
        }
        for run in touched.runs() {
            let start = bytes.start + run.start;
            // The first that touched the first byte.
            let of = |record: &&Record| record.store == store && cells.lane_at(record, start).is_some();
            let Some(record) = cells.records(chunk).filter(of).last() else {
                continue;
            };
            let lane = cells.lane_at(record, start).unwrap_or_default();
            self.join(record.now.mine, record.info, lane, start, bytes.start + run.end);
        }
    }

    fn add(&mut self, slot: Slot, dword: usize, start: usize, end: usize) {
        if let Some((segment, info)) = self.race.global.get(slot, dword, self.race.floor) {
            self.join(segment, info, 0, start, end);
        }
    }

    /// Adds a range that an instruction of a segment touched, or makes the last one longer; `lane` counts from the one in `info`.
    fn join(&mut self, segment: u32, info: Info, lane: u32, start: usize, end: usize) {
        let start = self.base + start as u64;
        let end = self.base + end as u64;
        let pc = info.at(self.race.lane_bits).map_or(0, |at| self.text + u64::from(at));
        let many = self.done.len() >= MANY;
        if let Some(last) = self.done.last_mut()
            && last.end == start
            && (many || last.pc == pc)
        {
            last.end = end;
            return;
        }
        let by = self.race.whose(segment);
        self.done.push(Touch {
            start,
            end,
            access: self.access,
            pc,
            workgroup: self.race.workgroups[by.group as usize],
            wave: by.wave,
            lane: info.lane(self.race.lane_bits) + lane,
        });
    }
}
