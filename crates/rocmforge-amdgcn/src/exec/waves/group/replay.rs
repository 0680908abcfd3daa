//! Replay of a wave since its last barrier, to find out whether something depends on what it has loaded from LDS.
//!
//! A load of LDS that another wave's later write races with is only a warning if nothing depends on its value, and when the write comes, the
//! load is long over. So at each barrier what the waves and LDS hold is kept, and where such a write has come, the part of the wave
//! since then runs once more, with the value followed. It stores nothing outside of LDS and private memory. The values that nobody
//! knows aside, it must end with the registers that the wave has; otherwise what it has read has changed, and the race counts as a fault.

use super::Machine;
use crate::exec::checks::init::{Init, Uses};
use crate::exec::checks::race::EarlyLoads;
use crate::exec::state::ctx::Ctx;
use crate::exec::state::request::Request;
use crate::exec::state::wave::{Wave, WaveState};
use crate::fault::Access;
use std::rc::Rc;

/// What waves and their memory held at the last barrier.
#[derive(Default)]
pub(super) struct Epoch {
    waves: Vec<Box<Wave>>,
    local: Local,
}

/// LDS, private memory, and the states of their bytes.
#[derive(Clone, Default)]
struct Local {
    lds: Vec<u8>,
    lds_state: Vec<u8>,
    scratch: Vec<u8>,
    scratch_state: Vec<u8>,
}

impl Local {
    fn swap(&mut self, ctx: &mut Ctx<'_>) {
        std::mem::swap(&mut self.lds, &mut ctx.lds);
        std::mem::swap(&mut self.lds_state, &mut ctx.lds_state);
        std::mem::swap(&mut self.scratch, &mut ctx.scratch);
        std::mem::swap(&mut self.scratch_state, &mut ctx.scratch_state);
    }
}

/// The bytes whose loads are followed: see [`EarlyLoads`].
pub(crate) struct Watch {
    wave: u32,
    loads: Rc<EarlyLoads>,
}

impl Watch {
    /// Finds them in a load of LDS.
    pub(crate) fn request(&self, c: &mut Ctx<'_>, w: &Wave, r: &Request<'_>) {
        if r.access != Access::Load {
            return;
        }
        let reach = |dword: usize| {
            let touched = |lane: usize| {
                let (start, end) = (r.at[lane], r.at[lane] + u64::from(r.size));
                r.exec >> lane & 1 != 0 && start < dword as u64 * 4 + 4 && dword as u64 * 4 < end
            };
            (0..32).any(touched)
        };
        let of_wave = self.loads.range((self.wave, 0, 0)..(self.wave + 1, 0, 0));
        for (&(_, dword, race), &mask) in of_wave {
            if reach(dword) && !c.load_of_race(w, r, dword, mask, race) {
                c.race_matters(race);
            }
        }
    }
}

impl Machine<'_> {
    /// Keeps what the waves hold, which begin a workgroup or have passed a barrier.
    #[inline]
    pub(super) fn keep_epoch(&mut self, waves: &[Box<Wave>], ctx: &Ctx<'_>) {
        if !self.asks {
            return;
        }
        let Epoch { waves: kept, local } = &mut self.epoch;
        if kept.len() != waves.len() {
            *kept = waves.to_vec();
        }
        for (kept, wave) in kept.iter_mut().zip(waves) {
            kept.keep(wave, self.kernel.setup.vgprs as usize);
        }
        local.lds.clone_from(&ctx.lds);
        local.lds_state.clone_from(&ctx.lds_state);
        local.scratch.clone_from(&ctx.scratch);
        local.scratch_state.clone_from(&ctx.scratch_state);
    }

    /// Finds out which loads since the last barrier matter, of those that a later write races with.
    #[inline]
    pub(super) fn judge_early_loads(&mut self, waves: &[Box<Wave>], ctx: &mut Ctx<'_>) {
        let loads = (self.checks.borrow_mut().race.as_mut()).map(|race| race.take_early_loads());
        if let Some(loads) = loads.filter(|loads| !loads.is_empty()) {
            self.judge_loads(waves, Rc::new(loads), ctx);
        }
    }

    #[cold]
    #[inline(never)]
    fn judge_loads(&mut self, waves: &[Box<Wave>], loads: Rc<EarlyLoads>, ctx: &mut Ctx<'_>) {
        for wave in waves {
            let of_wave = || {
                loads
                    .keys()
                    .filter(|(by, ..)| *by == wave.index)
                    .map(|&(.., race)| race)
            };
            if of_wave().next().is_none() {
                continue;
            }
            let used = self.replay(wave, &loads, ctx);
            for race in used.unwrap_or_else(|| of_wave().collect()) {
                ctx.race_matters(race);
            }
        }
    }

    /// Runs a wave again from the last barrier. Gives the races that matter; `None` if it does not do what it has done.
    fn replay(&mut self, actual: &Wave, loads: &Rc<EarlyLoads>, ctx: &mut Ctx<'_>) -> Option<Vec<u32>> {
        let start = self.epoch.waves.get(actual.index as usize).filter(|_| self.asks)?;
        if !matches!(actual.state, WaveState::Barrier | WaveState::Ended) {
            return None;
        }
        let mut wave = start.clone();
        let mut local = self.epoch.local.clone();
        let uses = self.uses.get_or_insert_with(|| Uses::of(self.dispatch.program)).clone();
        let checks = Rc::clone(&self.checks);
        let (race, known) = {
            let mut checks = checks.borrow_mut();
            checks.watch = Some(Watch {
                wave: actual.index,
                loads: Rc::clone(loads),
            });
            let (kernel, units) = (self.kernel, self.ids.len() as u32);
            let init = checks
                .init
                .get_or_insert_with(|| Init::start(uses, kernel, units, false));
            let known = init.set_aside(actual);
            (checks.race.take(), known)
        };
        // The replay leaves this as it is: it is set aside here, and put back afterwards.
        local.swap(ctx);
        let faults = std::mem::take(&mut ctx.faults);
        let warnings = std::mem::take(&mut ctx.warnings);
        let attendant = ctx.attendant.take();
        let shared = (ctx.signals, ctx.latest, ctx.stop, ctx.lds_written, ctx.scratch_written);
        let limits = (self.budget, self.slice);
        (self.budget, self.slice) = (i64::MAX, actual.ran.wrapping_sub(wave.ran) as i64);
        (ctx.follows, ctx.observed, ctx.replays) = (true, true, true);
        ctx.races.deferred = Some(Vec::new());
        self.run(&mut wave, ctx);
        ctx.replays = false;
        (self.budget, self.slice) = limits;
        (ctx.signals, ctx.latest, ctx.stop, ctx.lds_written, ctx.scratch_written) = shared;
        (ctx.faults, ctx.warnings) = (faults, warnings);
        ctx.attendant = attendant;
        local.swap(ctx);
        let mut checks = checks.borrow_mut();
        (checks.race, checks.watch) = (race, None);
        let used = ctx.races.deferred.take();
        let init = checks.init.as_mut()?;
        let same = (wave.next, wave.state) == (actual.next, actual.state) && init.are_same(&wave, actual);
        init.take_back(known, same);
        if !same {
            return None;
        }
        // Copies of what is followed are where the wave has put them.
        let copied = |was: u8, is: u8| (was, is) == (2, 3);
        for at in 0..ctx.lds_state.len() {
            if copied(local.lds_state[at], ctx.lds_state[at]) && init.is_copy_in_lds(at) {
                ctx.lds_state[at] = 2;
            }
        }
        let lanes = 32 * (1 + usize::from(wave.high.is_some()));
        let private = wave.slot as usize * ctx.scratch_size..(wave.slot as usize + lanes) * ctx.scratch_size;
        let end = private.end.min(ctx.scratch_state.len());
        for at in private.start..end {
            if copied(local.scratch_state[at], ctx.scratch_state[at]) {
                ctx.scratch_state[at] = 2;
            }
        }
        used
    }
}

impl Wave {
    /// Becomes what another is, with the first of its vector registers; all others are what they were.
    fn keep(&mut self, other: &Self, registers: usize) {
        let registers = registers.min(self.v.len());
        self.v[..registers].copy_from_slice(&other.v[..registers]);
        self.s = other.s;
        (self.scc, self.mode, self.state) = (other.scc, other.mode, other.state);
        (self.clock, self.looks, self.ran) = (other.clock, other.looks, other.ran);
        (self.next, self.saved_exec, self.signals) = (other.next, other.saved_exec, other.signals);
        self.calls.clone_from(&other.calls);
        if let (Some(kept), Some(high)) = (&mut self.high, &other.high) {
            kept.keep(high, registers);
        }
    }
}
