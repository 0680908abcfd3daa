//! Vector instructions of waves of 64 lanes: each half of the wave does its own part.

use super::Machine;
use crate::exec::checks::Checks;
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::wave::Wave;

impl Machine<'_> {
    /// Runs an instruction that was lowered by [`crate::exec::lower::halves`], whose head has this index; gives the index of the next one.
    // Cold, so that the loop over instructions stays what it is for waves of 32 lanes.
    #[cold]
    #[inline(never)]
    pub(super) fn halves(&mut self, w: &mut Wave, ctx: &mut Ctx<'_>, head: usize) -> usize {
        let ins = self.code.ins.as_slice();
        let i = &ins[head];
        let upper = head + 1 + i.imm as usize;
        let end = upper + i.target as usize;
        w.share(i.half & 1 != 0);
        if let Some(race) = &mut self.checks.borrow_mut().race {
            race.start_halves();
        }
        self.part(w, ctx, head, &ins[head + 1..upper]);
        if let Some(mut high) = w.high.take() {
            self.part(&mut high, ctx, head, &ins[upper..end]);
            w.join(&high, i.sdst);
            w.high = Some(high);
        }
        end
    }

    /// Runs the part of one half of the wave.
    fn part(&mut self, w: &mut Wave, ctx: &mut Ctx<'_>, head: usize, part: &[Ins]) {
        let left_out = |checks: &Checks| (checks.init.as_ref()).is_some_and(|init| init.leaves(w, &part[0], head));
        if ctx.replays && left_out(&self.checks.borrow()) {
            return;
        }
        for i in part {
            // SAFETY: `lower` stored the build of this handler that `isa::vector` found this host to support.
            unsafe { (i.run)(w, ctx, i) };
        }
        if ctx.woken {
            self.follow(w, ctx, head);
        } else if ctx.follows
            && let Some(init) = &mut self.checks.borrow_mut().init
        {
            init.after(w, ctx, &self.code.ins[head], head);
        }
    }
}
