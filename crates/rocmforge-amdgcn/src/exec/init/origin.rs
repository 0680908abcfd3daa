//! Origins of unknown values: the loads that gave them, and the memory that holds copies of them.

use crate::exec::code::Ins;
use crate::exec::ctx::Ctx;
use crate::exec::observe::Place;
use crate::exec::wave::Wave;
use crate::fault::{Access, FaultKind, Side};
use crate::memory::ByteState;
use std::collections::HashMap;

/// A load of bytes that nobody has written, by one lane.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unwritten {
    pub(crate) place: Place,
    pub(crate) access: Access,
    pub(crate) lane: usize,
    pub(crate) address: u64,
    /// The bytes that nobody has written, a bit for each.
    pub(crate) bytes: u64,
    /// The register that gets the first byte.
    pub(crate) register: u8,
}

/// Where an unknown value comes from: an index.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Origin(u32);

impl Origin {
    /// From a register nobody has written.
    pub(super) const REGISTER: Self = Self(0);
}

/// A load that gave an unknown value.
struct Source {
    /// Offset of the instruction in `.text`.
    at: u32,
    load: Unwritten,
    /// By where the memory is.
    kind: FaultKind,
    /// Bytes that a lane loads.
    size: u32,
}

/// One byte of memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Memory {
    place: Place,
    /// Wave and lane whose private memory it is.
    owner: (u32, u32),
    address: u64,
}

impl Memory {
    pub(super) fn new(place: Place, w: &Wave, lane: usize, address: u64) -> Self {
        let private = place == Place::Scratch;
        Self {
            place,
            owner: if private { (w.index, lane as u32) } else { (0, 0) },
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
        let (wave, lane) = (self.owner.0 as usize, self.owner.1 as usize);
        (wave * 32 + lane) * c.scratch_size + self.address as usize
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

    /// Where the value of an unwritten byte that a load has read comes from: what was copied there, or that load.
    pub(super) fn of(&mut self, byte: Memory, load: &Unwritten, at: u32, size: u32) -> Origin {
        if !self.copies.is_empty()
            && let Some(&origin) = self.copies.get(&byte.word())
        {
            return origin;
        }
        let known = self
            .sources
            .iter()
            .position(|source| source.at == at && source.load.place == load.place);
        let index = known.unwrap_or_else(|| {
            let kind = match load.place {
                Place::Lds => FaultKind::UninitialisedLds,
                Place::Scratch => FaultKind::UninitialisedPrivate,
                Place::Global | Place::Flat => FaultKind::UninitialisedGlobal,
            };
            let load = *load;
            self.sources.push(Source { at, load, kind, size });
            self.sources.len() - 1
        });
        Origin(index as u32 + 1)
    }

    /// Whether it is LDS nobody has written.
    pub(super) fn is_lds(&self, origin: Origin) -> bool {
        let source = (origin.0 as usize).checked_sub(1).and_then(|n| self.sources.get(n));
        source.is_some_and(|source| source.load.place == Place::Lds)
    }

    /// Notes that something depends on an unknown value in these lanes: at the load that gave it, or where it is used if a
    /// register that nobody has written did, or nobody wants to know about memory.
    #[cold]
    pub(super) fn report(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, origin: Origin, lanes: u32, why: &str) {
        let lane = lanes.trailing_zeros() % 32;
        let source = (origin.0 as usize).checked_sub(1).and_then(|n| self.sources.get(n));
        let Some(source) = source.filter(|_| c.tools.initcheck) else {
            if let Some(fault) = c.fault(w, i, FaultKind::UninitialisedRegister, Access::None, lane, 0, 0) {
                fault.note = format!("lanes {lanes:#010x}: {why}");
            }
            return;
        };
        let load = &source.load;
        let (text, workgroup) = (c.text, c.workgroup);
        let at_load = Ins { at: source.at, ..*i };
        let more = u64::from(lanes.count_ones()) - 1;
        let lane_of_load = if load.access == Access::Scalar {
            0
        } else {
            load.lane as u32
        };
        let known = c.count(&at_load, source.kind, more + 1);
        if known {
            return;
        }
        if let Some(fault) = c.fault(
            w,
            &at_load,
            source.kind,
            load.access,
            lane_of_load,
            load.address,
            source.size,
        ) {
            fault.count += more;
            fault.note = why.to_owned();
            fault.other = Some(Box::new(Side {
                access: Access::None,
                pc: text + u64::from(i.at),
                frames: Vec::new(),
                workgroup,
                wave: w.index,
                lane,
            }));
        }
    }
}
