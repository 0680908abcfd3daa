//! Races of loads of LDS: each is a warning, until something depends on what was loaded.

use crate::exec::state::ctx::{Ctx, count_in};
use crate::exec::state::request::{Data, Place, Request, Unwritten};
use crate::exec::state::wave::Wave;
use crate::fault::{Access, Fault};

/// Pairs of instructions that are remembered; races of others are faults at once.
const MOST: usize = 1024;

/// The races of a launch, one for each pair of instructions.
pub(crate) struct Races {
    /// Those that are faults by now have a count of 0.
    all: Vec<Fault>,
    /// They are asked for: otherwise each is a fault.
    asks: bool,
    /// While a wave is run again: those that something depends on.
    pub(crate) deferred: Option<Vec<u32>>,
}

impl Races {
    pub(crate) fn new(asks: bool) -> Self {
        Self {
            all: Vec::new(),
            asks,
            deferred: None,
        }
    }

    /// Those that nothing depends on.
    pub(crate) fn into_warnings(self) -> impl Iterator<Item = Fault> {
        self.all.into_iter().filter(|race| race.count != 0).map(|mut race| {
            race.note += "; nothing has used the value";
            race
        })
    }
}

impl Ctx<'_> {
    /// The number of a race between the instructions at two ELF addresses, the later access first, which one more lane has; `fault` makes it.
    pub(crate) fn race(&mut self, pc: u64, other: u64, fault: impl FnOnce(&Self) -> Fault) -> Option<u32> {
        if !self.races.asks {
            return None;
        }
        let same = |race: &Fault| race.pc == pc && race.other.as_ref().is_some_and(|side| side.pc == other);
        if let Some(known) = self.races.all.iter().position(same) {
            self.races.all[known].count += 1;
            return Some(known as u32);
        }
        if self.races.all.len() == MOST {
            return None;
        }
        let fault = fault(self);
        self.races.all.push(fault);
        Some(self.races.all.len() as u32 - 1)
    }

    /// Something depends on what the load of a race has given: makes it a fault.
    #[cold]
    pub(crate) fn race_matters(&mut self, number: u32) {
        if let Some(deferred) = &mut self.races.deferred {
            return deferred.push(number);
        }
        let Some(race) = self.races.all.get_mut(number as usize).filter(|race| race.count != 0) else {
            return;
        };
        let fault = race.clone();
        race.count = 0;
        if !count_in(&mut self.faults, fault.kind, fault.pc, fault.count) {
            self.note(fault);
        }
    }

    /// Notes that a request loads some bytes of a dword of LDS which are a race's; from the next instruction on their values are followed.
    /// False if it is not known where they go.
    pub(crate) fn load_of_race(&mut self, w: &Wave, r: &Request<'_>, dword: usize, mask: u32, race: u32) -> bool {
        let Data::Into(register) = r.data else {
            return false;
        };
        for lane in (0..32).filter(|lane| r.exec >> lane & 1 != 0) {
            let address = r.at[lane];
            let places = (0..4).filter(|n| mask >> n & 1 != 0).map(|n| dword as u64 * 4 + n);
            let bytes = places
                .filter_map(|place| place.checked_sub(address).filter(|&n| n < u64::from(r.size)))
                .fold(0, |bytes, n| bytes | 1 << n);
            if bytes != 0 {
                self.unwritten.push(Unwritten {
                    place: Place::Lds,
                    access: Access::Load,
                    lane,
                    first_lane: w.first_lane,
                    address,
                    bytes,
                    register,
                    race: Some(race),
                });
            }
        }
        if !self.follows {
            self.woken = true;
            self.observed = true;
        }
        true
    }
}
