//! The footprint of a launch, read out of the shadow memory when it has ended.

use crate::exec::checks::race::Race;
use crate::exec::checks::race::cells::Slot;
use crate::fault::Access;
use crate::footprint::{Footprint, Touch};

impl Race {
    /// What the launch touched.
    pub(super) fn footprint(&mut self, base: u64, text: u64) -> Footprint {
        let mut chunks = self.global.touched.take().unwrap_or_default();
        chunks.sort_unstable();
        let mut touches = Vec::new();
        for (access, slots) in [
            (Access::Load, &[Slot::Load, Slot::Before][..]),
            (Access::Store, &[Slot::Store][..]),
            (Access::Atomic, &[Slot::Atomic][..]),
        ] {
            let mut ranges = Ranges {
                race: self,
                base,
                text,
                access,
                done: Vec::new(),
            };
            for &chunk in &chunks {
                ranges.chunk(chunk, slots);
            }
            touches.append(&mut ranges.done);
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
    done: Vec<Touch>,
}

impl Ranges<'_> {
    fn chunk(&mut self, chunk: u32, slots: &[Slot]) {
        let cells = &self.race.global;
        let (dwords, used) = cells.chunk(chunk);
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

    fn add(&mut self, slot: Slot, dword: usize, start: usize, end: usize) {
        let start = self.base + start as u64;
        let end = self.base + end as u64;
        let Some((segment, info)) = self.race.global.get(slot, dword, self.race.floor) else {
            return;
        };
        let pc = info.at().map_or(0, |at| self.text + u64::from(at));
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
            wave: by.wave.unwrap_or(0),
            lane: info.lane(),
        });
    }
}
