//! Checks of a launch: races, values that nobody has written, and counts; and the one observer that they are together.

pub(crate) mod count;
pub(crate) mod init;
pub(crate) mod probe;
pub(crate) mod race;

use crate::exec::checks::count::Count;
use crate::exec::checks::init::Init;
use crate::exec::checks::probe::Probe;
use crate::exec::checks::race::Race;
use crate::exec::state::ctx::{Ctx, Fence, Ins, Observer};
use crate::exec::state::request::{Place, Request};
use crate::exec::state::wave::Wave;
use crate::exec::waves::group::replay::Watch;

/// What watches a launch.
#[derive(Default)]
pub(crate) struct Checks {
    /// Looks for changes of memory.
    pub(crate) probe: Option<Probe>,
    /// Which registers are unknown, once a value nobody has written is followed.
    pub(crate) init: Option<Box<Init>>,
    pub(crate) count: Option<Box<Count>>,
    pub(crate) race: Option<Box<Race>>,
    /// What a replay follows.
    pub(crate) watch: Option<Watch>,
}

impl Checks {
    #[inline(always)]
    fn watch(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, request: &Request<'_>) {
        if !c.absent.is_empty() {
            c.request_behind_barrier(w, i, request);
        }
        if let Some(probe) = &mut self.probe {
            probe.request(c, w, request);
        }
        if let Some(watch) = self.watch.as_ref().filter(|_| request.place == Place::Lds) {
            watch.request(c, w, request);
        }
        if let Some(init) = &mut self.init {
            init.request(c, w, i, request);
        }
        if let Some(count) = &mut self.count {
            count.request(request);
        }
        if let Some(race) = &mut self.race {
            race.request(c, w, i, request);
        }
    }
}

impl Observer for Checks {
    fn request(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, request: &Request<'_>) {
        request.by_place(|request| self.watch(c, w, i, request));
    }

    fn fence(&mut self, wave: u32, fence: Fence) {
        if let Some(race) = &mut self.race {
            race.fence(wave, fence);
        }
    }

    fn release_at(&mut self, wave: u32, number: u64) {
        if let Some(race) = &mut self.race {
            race.release_at(wave, number);
        }
    }

    fn released_at(&mut self, number: u64) -> (u32, u32) {
        self.race.as_mut().map_or((0, 0), |race| race.released_at(number))
    }

    fn acquire_at(&mut self, wave: u32, number: u64, released: (u32, u32)) {
        if let Some(race) = &mut self.race {
            race.acquire_at(wave, number, released);
        }
    }

    fn copies(&self, w: &Wave, place: Place, lane: usize, address: u64, bytes: u64) -> u64 {
        let init = self.init.as_ref();
        init.map_or(0, |init| init.copies(w, place, lane, address, bytes))
    }
}
