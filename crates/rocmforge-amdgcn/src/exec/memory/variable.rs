//! Accesses with the address of a variable: what they reach is noted, for [`crate::exec::state::variables`].

use crate::byte_state::ByteState;
use crate::exec::state::ctx::{Ctx, Run, Watched};
use crate::exec::state::request::Addresses;
use crate::exec::state::variables::Reach;
use crate::exec::state::wave::Wave;
use crate::fault::Access;

/// The handler of such an instruction, whose number is in `Ins::target`.
pub(crate) fn handler() -> Run {
    |w, c, i| {
        let Some(Watched { run, addresses }) = c.watched.get(i.target as usize) else {
            return;
        };
        if c.tools.memcheck {
            let mut at = [0; 32];
            addresses(w, i, &mut at);
            look(w, c, i.target, &at);
        }
        // SAFETY: lowering has chosen it on this host.
        unsafe { run(w, c, i) }
    }
}

fn look(w: &Wave, c: &mut Ctx<'_>, number: u32, at: &Addresses) {
    let Some(access) = c.variables.accesses.get(number as usize) else {
        return;
    };
    let lanes = if access.how == Access::Scalar { 1 } else { w.exec() };
    let near = access.near.and_then(|near| c.variables.all.get(near));
    let near = near.map_or(0..0, |variable| variable.addresses.clone());
    let mut inside = 0;
    for l in 0..32 {
        inside |= u32::from(near.contains(&at[l])) << l;
    }
    if inside & lanes != 0 && !c.reached.near(number) {
        c.reached.note_near(number);
    }
    if lanes & !inside != 0 {
        note(w, c, number, at, lanes & !inside);
    }
}

#[cold]
fn note(w: &Wave, c: &mut Ctx<'_>, number: u32, at: &Addresses, lanes: u32) {
    for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
        let address = at[lane as usize];
        // What is no memory the handler reports.
        if matches!(c.memory.state_at(address), ByteState::Unmapped | ByteState::Freed) {
            continue;
        }
        let reach = Reach {
            workgroup: c.workgroup,
            wave: w.index,
            lane: w.first_lane + lane,
            address,
            count: 1,
        };
        c.reached.note(number, c.variables, reach);
    }
}
