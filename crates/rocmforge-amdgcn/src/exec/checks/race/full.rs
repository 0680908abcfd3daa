//! End of the check within a launch that has synchronised more often than can be remembered.

use super::sync::Sync;
use super::{MOST_RELEASES, Race};
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::request::Request;
use crate::exec::state::wave::Wave;
use crate::fault::FaultKind;

impl Race {
    /// Ends the check, and says so: the launch has synchronised more often than can be remembered.
    #[cold]
    pub(super) fn end(&mut self, c: &mut Ctx<'_>, w: &Wave, i: &Ins, r: &Request<'_>) {
        self.full = true;
        let lane = r.exec.trailing_zeros() % 32;
        let mut warning = c.new_fault(w, i, FaultKind::GlobalRace, r.access, lane, r.at[lane as usize], r.size);
        warning.note = format!("not checked from here on: more than {MOST_RELEASES} releases by atomics in one launch");
        c.warnings.push(warning);
        (self.sync, self.befores) = (Sync::default(), Vec::new());
        for wave in &mut self.waves {
            wave.seen.clear();
        }
        self.shared.clear();
    }
}
