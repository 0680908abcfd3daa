//! Order of two accesses: which hits of an access nothing orders, and the findings they become.

use super::{
    Race, Span,
    slot::{Hit, Info, Slot, flags},
    sync::{Level, Segment, What},
    wording::{access_of, describe},
};
use crate::calls::Calls;
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::request::Request;
use crate::exec::state::wave::Wave;
use crate::fault::{FaultKind, Side};

impl Race {
    /// Reports those hits that nothing orders.
    #[cold]
    #[inline(never)]
    pub(super) fn judge(
        &mut self,
        c: &mut Ctx<'_>,
        w: &Wave,
        i: &Ins,
        r: &Request<'_>,
        slot: Slot,
        info: Info,
        span: &Span,
    ) {
        let mut known: Option<(u32, What, bool)> = None;
        for hit in std::mem::take(&mut self.hits) {
            let by = self.whose(hit.segment);
            let what = match (span.lds, hit.slot) {
                (true, _) => What::Lds,
                (false, Slot::Store) => What::GlobalStore,
                (false, Slot::Atomic) => What::GlobalAtomic,
                (false, _) => What::GlobalLoad,
            };
            let ordered = match known {
                Some((segment, of, ordered)) if (segment, of) == (hit.segment, what) => ordered,
                _ => self.ordered(w.index, hit.segment, by, what, slot, info),
            };
            known = Some((hit.segment, what, ordered));
            let atomic = hit.slot as u32 >= Slot::Load as u32 && hit.info.flags() == flags::ATOMIC;
            if ordered || atomic {
                continue;
            }
            if !span.lds && hit.slot == Slot::Store && self.follows(w.index, &hit) {
                continue;
            }
            let first = hit.dword * 4 + hit.mask.trailing_zeros() as usize;
            let lane = span.lane + ((first - span.offset) / r.size as usize) as u32;
            if slot == Slot::Store && hit.slot == Slot::Store && same(c, w, r, &hit, span) {
                continue;
            }
            let start = span.offset + (lane - span.lane) as usize * r.size as usize;
            let (kind, address) = if span.lds {
                (FaultKind::LdsRace, start as u64)
            } else {
                (FaultKind::GlobalRace, c.memory.base() + start as u64)
            };
            let text = c.text;
            if c.count(i, kind, 1) || !c.tools.wants(kind) {
                continue;
            }
            let workgroup = self.workgroups[by.group as usize];
            let inside = by.group == self.group_number;
            let earlier = access_of(hit.slot, hit.info);
            let cure = match (inside, span.lds) {
                (true, true) => ", no barrier between them",
                (true, false) if hit.segment < self.epoch => {
                    "; the store was under way at the barrier between them, which orders LDS only without a wait for stores"
                }
                (true, false) => ", no barrier or fence with an atomic between them",
                (false, _) => ", which only atomics with fences can order",
            };
            let other = hit.info.at(self.lane_bits).map_or(0, |at| text + u64::from(at));
            let fault = |c: &Ctx<'_>| {
                let mut fault = c.new_fault(w, i, kind, r.access, lane, address, r.size);
                fault.note = describe(r.access, earlier, inside, cure);
                fault.other = Some(Box::new(Side {
                    access: earlier,
                    pc: other,
                    frames: Vec::new(),
                    workgroup,
                    wave: by.wave,
                    lane: hit.info.lane(self.lane_bits),
                    calls: Calls::NONE,
                }));
                fault
            };
            let loads_now = slot == Slot::Load && info.flags() == 0;
            let loaded_before = hit.slot as u32 >= Slot::Load as u32 && hit.info.flags() == 0;
            if !span.lds || !(loads_now || loaded_before) {
                c.note(fault(c));
                continue;
            }
            let Some(race) = c.race(text + u64::from(i.at), other, fault) else {
                c.note(fault(c));
                continue;
            };
            if loaded_before {
                let mask = self.early_loads.entry((by.wave, hit.dword, race)).or_default();
                *mask |= hit.mask;
            } else if !c.load_of_race(w, r, hit.dword, hit.mask, race) {
                c.race_matters(race);
            }
        }
    }

    /// Whether the wave has loaded atomically what the store of a hit wrote, by a load of those bytes or one that has them.
    fn follows(&self, wave: u32, hit: &Hit) -> bool {
        let saw = |seen, var| self.sync.saw(seen, var, hit.segment);
        let bytes = (0..4)
            .filter(|n| hit.mask >> n & 1 != 0)
            .map(|n| hit.dword as u64 * 4 + n);
        let around = [0, 4].map(|before| (hit.dword as u64 * 4).wrapping_sub(before));
        (bytes.chain(around).filter_map(|address| self.sync.find(address)))
            .any(|var| saw(&self.waves[wave as usize].seen, var) || saw(&self.shared, var))
    }

    /// Whether an earlier access precedes what the wave does now.
    fn ordered(&self, wave: u32, segment: u32, by: Segment, what: What, slot: Slot, info: Info) -> bool {
        let inside = by.group == self.group_number;
        let under_way = |by: u32| self.waves[by as usize].open.is_some_and(|open| segment >= open);
        let complete = || what != What::GlobalStore || !under_way(by.wave);
        if inside && (by.wave == wave || segment < self.epoch && complete()) {
            return true;
        }
        let plain_load = slot == Slot::Load && info.flags() & flags::COHERENT == 0;
        let level = match (plain_load && what != What::Lds, inside) {
            (false, _) => Level::Read,
            (true, true) => Level::Workgroup,
            (true, false) => Level::Device,
        };
        let own = &self.waves[wave as usize].seen;
        self.sync.covers(own, segment, by, what, level) || self.sync.covers(&self.shared, segment, by, what, level)
    }
}

/// Whether a store writes into the bytes of a hit what they hold already.
fn same(c: &Ctx<'_>, w: &Wave, r: &Request<'_>, hit: &Hit, span: &Span) -> bool {
    (0..4).filter(|n| hit.mask >> n & 1 != 0).all(|n| {
        let at = hit.dword * 4 + n;
        let size = r.size as usize;
        let lane = span.lane as usize + (at - span.offset) / size;
        let old = if span.lds {
            c.lds.get(at..=at)
        } else {
            c.memory.bytes(at, 1, false)
        };
        r.data.byte(w, lane, (at - span.offset) % size).as_ref() == old.and_then(<[u8]>::first)
    })
}
