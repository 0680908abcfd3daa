//! Waves that wait for what does not come: loops without an end.

use super::{Machine, PROBES};
use crate::exec::checks::probe::Probe;
use crate::exec::state::ctx::{Ctx, side};
use crate::exec::state::wave::{Wave, WaveState};
use crate::fault::{Access, FaultKind};

impl Machine<'_> {
    /// Notes a loop that does not end, which a wave is about to go round again from its instruction `last`.
    #[cold]
    pub(super) fn endless(&self, w: &Wave, ctx: &mut Ctx<'_>, kind: FaultKind, last: usize) {
        let lane = w.exec64().trailing_zeros() % 64;
        let head = &self.code.ins[w.next.min(last)];
        let pc = ctx.text + u64::from(head.at);
        if let Some(fault) = ctx.fault(w, &self.code.ins[last], kind, Access::None, lane, 0, 0) {
            fault.note = format!("the loop begins at pc {pc:#x}");
            fault.other = side(w, pc, fault, Access::None, lane);
        }
    }

    /// Whether every wave that could run goes round a loop that changes neither its registers nor memory.
    #[cold]
    pub(super) fn spins(&mut self, waves: &mut [Box<Wave>], ctx: &mut Ctx<'_>) -> bool {
        let ready = |w: &&mut Box<Wave>| w.state == WaveState::Ready;
        for wave in waves.iter_mut().filter(ready) {
            let before = wave.clone();
            let observed = std::mem::replace(&mut ctx.observed, true);
            self.checks.borrow_mut().probe = Some(Probe::default());
            let mut same = false;
            // Slices of no instructions end at each branch that is taken.
            let slice = std::mem::replace(&mut self.slice, 0);
            for _ in 0..PROBES {
                self.run(wave, ctx);
                same = wave.state == WaveState::Ready && wave.same_registers(&before);
                if same || wave.state != WaveState::Ready || ctx.stop || self.exhausted {
                    break;
                }
            }
            self.slice = slice;
            self.looked |= wave.looks != before.looks;
            ctx.observed = observed || ctx.follows;
            let probe = self.checks.borrow_mut().probe.take();
            let changed = probe.is_none_or(|probe| probe.changed(ctx));
            if !same || changed {
                return false;
            }
        }
        true
    }

    /// Notes that the workgroup waits for what never comes, as `others` do.
    #[cold]
    pub(super) fn never_ends(&mut self, ctx: &mut Ctx<'_>, others: usize) {
        let waves = std::mem::take(&mut self.waves);
        let mut spinning = waves.iter().filter(|w| w.state == WaveState::Ready);
        if let Some(wave) = spinning.next() {
            self.exhausted = true;
            let more = spinning.count();
            self.endless(wave, ctx, FaultKind::Spinning, wave.last);
            if let Some(fault) = ctx.faults.last_mut().filter(|f| f.kind == FaultKind::Spinning) {
                let waiting = waves.iter().filter(|w| w.state == WaveState::Barrier).count();
                fault.note += &format!("; {more} more waves of the workgroup wait in a loop, {waiting} at a barrier");
                fault.note += &match (others, self.room) {
                    (0, true) => "; all other workgroups have ended".to_owned(),
                    (_, true) => format!("; so do {others} other workgroups, and the rest have ended"),
                    (_, false) => format!("; so do {others} other workgroups, more than a card holds at a time"),
                };
            }
        }
        self.waits_in_vain(&waves, ctx);
        self.waves = waves;
    }

    /// Notes a wave that waits for other workgroups at what none of them does.
    fn waits_in_vain(&mut self, waves: &[Box<Wave>], ctx: &mut Ctx<'_>) {
        let wave = waves.iter().find(|w| w.state == WaveState::Grid);
        let Some((wave, ticket)) = wave.and_then(|wave| Some((wave, wave.gws?))) else {
            return;
        };
        self.exhausted = true;
        let note = ctx.gws.missing(ticket);
        // The instruction before the next one.
        let i = &self.code.ins[wave.next - 1];
        let lane = wave.exec64().trailing_zeros() % 64;
        if let Some(fault) = ctx.fault(wave, i, FaultKind::Spinning, Access::None, lane, 0, 0) {
            fault.note = note;
        }
    }
}
