//! Origins of unknown values: the loads that gave them, and the memory that holds copies of them.

use crate::byte_state::ByteState;
use crate::calls::Calls;
use crate::exec::state::ctx::{Ctx, Ins, side};
use crate::exec::state::request::{Place, Unwritten};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, FaultKind};
use std::collections::HashMap;

/// Where an unknown value comes from: a set of loads, a bit for each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Origin(u128);

impl Origin {
    /// From nowhere.
    pub(super) const NONE: Self = Self(0);
    /// From a register nobody has written.
    pub(super) const REGISTER: Self = Self(1);

    /// Of load `n`; the last bit stands for all loads from there on.
    fn load(n: usize) -> Self {
        Self(1 << (n + 1).min(127))
    }

    /// Indices of the loads.
    fn loads(self) -> impl Iterator<Item = usize> {
        (1..128).filter(move |n| self.0 >> n & 1 != 0).map(|n| n - 1)
    }

    /// From either.
    pub(super) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A load that gave an unknown value.
struct Source {
    /// Offset of the instruction in `.text`.
    at: u32,
    load: Unwritten,
    /// By where the memory is, or a race.
    kind: FaultKind,
    /// Bytes that a lane loads.
    size: u32,
    /// Calls that the wave was in.
    calls: Calls,
}

/// One byte of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Memory {
    place: Place,
    /// The lane of the workgroup whose private memory it is.
    owner: u32,
    address: u64,
}

impl Memory {
    pub(super) fn new(place: Place, w: &Wave, lane: usize, address: u64) -> Self {
        let private = place == Place::Scratch;
        Self {
            place,
            owner: if private { w.slot + lane as u32 } else { 0 },
            address,
        }
    }

    pub(super) fn in_lds(address: u64) -> Self {
        Self {
            place: Place::Lds,
            owner: 0,
            address,
        }
    }

    /// The word that the byte lies in.
    fn word(self) -> Self {
        Self {
            address: self.address & !3,
            ..self
        }
    }

    fn private(&self, c: &Ctx<'_>) -> usize {
        self.owner as usize * c.scratch_size + self.address as usize
    }

    /// Makes the byte one that nobody has written.
    pub(super) fn forget(&self, c: &mut Ctx<'_>) {
        let at = match self.place {
            Place::Scratch => self.private(c),
            _ => self.address as usize,
        };
        let state = match self.place {
            Place::Lds => c.lds_state.get_mut(at),
            Place::Scratch => c.scratch_state.get_mut(at),
            Place::Global | Place::Flat => {
                if c.memory.state_at(self.address) == ByteState::Init {
                    c.memory.set_state(self.address, 1, ByteState::Uninit);
                }
                None
            }
        };
        if let Some(state) = state {
            *state = 2;
        }
    }
}

/// All origins of a workgroup, or of a launch.
#[derive(Default)]
pub(super) struct Origins {
    sources: Vec<Source>,
    /// Words with bytes that hold a copy of an unknown value.
    copies: HashMap<Memory, Origin>,
}

impl Origins {
    /// LDS and private memory have other contents in the next workgroup.
    pub(super) fn forget_workgroup(&mut self) {
        self.copies.retain(|at, _| at.place == Place::Global);
    }

    /// A byte holds a copy of an unknown value.
    pub(super) fn put(&mut self, at: Memory, origin: Origin) {
        self.copies.insert(at.word(), origin);
    }

    /// Whether a byte holds a copy of an unknown value.
    pub(super) fn is_copy(&self, at: Memory) -> bool {
        !self.copies.is_empty() && self.copies.contains_key(&at.word())
    }

    /// Where the value of an unwritten byte that a load has read comes from: what was copied there, or that load. That of a race comes from the load.
    pub(super) fn of(&mut self, w: &Wave, byte: Memory, load: &Unwritten, at: u32, size: u32) -> Origin {
        if load.race.is_none()
            && !self.copies.is_empty()
            && let Some(&origin) = self.copies.get(&byte.word())
        {
            return origin;
        }
        let kind = match load.place {
            Place::Lds if load.race.is_some() => FaultKind::LdsRace,
            Place::Lds => FaultKind::UninitialisedLds,
            Place::Scratch => FaultKind::UninitialisedPrivate,
            Place::Global | Place::Flat => FaultKind::UninitialisedGlobal,
        };
        self.source(w, load, at, kind, size)
    }

    /// The same of what a shuffle gives a lane of lane `source` of the wave, which is off.
    pub(super) fn of_lane(&mut self, w: &Wave, lane: usize, source: u32, at: u32) -> Origin {
        let shuffle = Unwritten {
            // What it has in common with LDS is that compilers keep nothing of their own there.
            place: Place::Lds,
            access: Access::None,
            lane,
            first_lane: w.first_lane,
            address: source.into(),
            bytes: 0,
            register: 0,
            race: None,
        };
        self.source(w, &shuffle, at, FaultKind::InactiveLane, 0)
    }

    fn source(&mut self, w: &Wave, load: &Unwritten, at: u32, kind: FaultKind, size: u32) -> Origin {
        let same = |source: &Source| (source.at, source.kind, source.load.race) == (at, kind, load.race);
        let index = self.sources.iter().position(same).unwrap_or_else(|| {
            self.sources.push(Source {
                at,
                load: *load,
                kind,
                size,
                calls: w.calls.clone(),
            });
            self.sources.len() - 1
        });
        Origin::load(index)
    }

    /// Whether a value comes from nothing but loads of memory that is not private.
    pub(super) fn is_shared(&self, origin: Origin) -> bool {
        let mut sources = origin.loads().filter_map(|n| self.sources.get(n));
        origin.0 & Origin::REGISTER.0 == 0 && sources.all(|source| source.load.place != Place::Scratch)
    }

    /// Notes that something depends on an unknown value in these lanes: at the loads that gave it, or where it is used if a
    /// register that nobody has written did, or nobody wants to know about memory.
    #[cold]
    pub(super) fn report(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, origin: Origin, lanes: u32, why: &str) {
        let sources = origin.loads().filter_map(|n| self.sources.get(n));
        let wanted = |source: &&Source| c.tools.initcheck || source.load.race.is_some();
        let sources: Vec<&Source> = sources.filter(wanted).collect();
        let lane = lanes.trailing_zeros() % 32;
        if sources.is_empty()
            && let Some(fault) = c.fault(w, i, FaultKind::UninitialisedRegister, Access::None, lane, 0, 0)
        {
            let lanes = u64::from(lanes) << w.first_lane;
            fault.note = format!("lanes {lanes:#010x}: {why}");
        }
        for source in sources {
            self.report_load(w, c, i, source, lanes, why);
        }
    }

    fn report_load(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, source: &Source, lanes: u32, why: &str) {
        let load = &source.load;
        if let Some(race) = load.race {
            return c.race_matters(race);
        }
        let at_load = Ins { at: source.at, ..*i };
        let count = u64::from(lanes.count_ones());
        if c.count(&at_load, source.kind, count) {
            return;
        }
        let lane = if load.access == Access::Scalar {
            0
        } else {
            load.lane as u32
        };
        let pc = c.text + u64::from(i.at);
        if let Some(fault) = c.fault(w, &at_load, source.kind, load.access, lane, load.address, source.size) {
            fault.lane = load.first_lane + lane;
            fault.count = count;
            fault.note = why.to_owned();
            if source.kind == FaultKind::InactiveLane {
                fault.address = 0;
                fault.note = format!("it has the value of lane {}, which is off; {why}", load.address);
            }
            fault.other = side(w, pc, fault, Access::None, lanes.trailing_zeros() % 32);
            fault.calls.clone_from(&source.calls);
        }
    }
}
