//! Barriers that waves of a workgroup miss: those that have ended, and those that wait at another one.

use super::Machine;
use crate::exec::state::absence::{Absence, NOWHERE};
use crate::exec::state::ctx::{Ctx, Ins, side};
use crate::exec::state::wave::{Wave, WaveState};
use crate::fault::{Access, FaultKind, Side};

impl Machine<'_> {
    /// Looks at the waves of a workgroup that wait at a barrier, and at those that have ended, before the former go on.
    #[inline]
    pub(super) fn meet(&self, waves: &mut [Box<Wave>], ctx: &mut Ctx<'_>) {
        if !ctx.tools.synccheck {
            return;
        }
        let mut waiting = waves.iter().filter(|w| w.state == WaveState::Barrier);
        let Some(first) = waiting.next() else { return };
        if let Some(other) = waiting.find(|wave| wave.next != first.next || wave.calls != first.calls) {
            self.meets_elsewhere(first, other, ctx);
        }
        // A wave that has ended may have signalled before.
        let passed =
            |w: &Wave| w.state == WaveState::Ended && w.signals == 0 && w.barriers == 0 && w.last_write != NOWHERE;
        if let Some(ended) = waves.iter().find(|wave| passed(wave)) {
            let side = Side {
                access: Access::Store,
                pc: ctx.text + u64::from(ended.last_write),
                frames: Vec::new(),
                workgroup: ctx.workgroup,
                wave: ended.index,
                lane: 0,
                calls: ended.calls.clone(),
            };
            self.wait_without(ended.last_write, &side, waves);
        }
    }

    /// Notes waves that wait at different barriers.
    #[cold]
    #[inline(never)]
    fn meets_elsewhere(&self, wave: &Wave, other: &Wave, ctx: &mut Ctx<'_>) {
        let (i, pc) = (self.barrier(wave), ctx.text + u64::from(self.barrier(other).at));
        if let Some(fault) = ctx.fault(wave, i, FaultKind::BarrierDivergence, Access::None, 0, 0, 0) {
            fault.note = format!(
                "wave {} of the workgroup waits at another one; a card lets both go on",
                other.index
            );
            fault.other = side(other, pc, fault, Access::None, 0);
        }
    }

    /// Remembers of the waves that wait at their first barrier that one has ended without any, which has last written at `last_write`.
    #[cold]
    #[inline(never)]
    fn wait_without(&self, last_write: u32, side: &Side, waves: &mut [Box<Wave>]) {
        for wave in waves
            .iter_mut()
            .filter(|w| w.state == WaveState::Barrier && w.barriers == 1)
        {
            let absence = Absence::of_ended(wave, self.barrier(wave), last_write, Box::new(side.clone()));
            wave.absent.push(absence);
        }
    }

    /// The barrier at which a wave waits: the instruction before the next one.
    fn barrier(&self, wave: &Wave) -> &Ins {
        &self.code.ins[wave.next - 1]
    }
}
