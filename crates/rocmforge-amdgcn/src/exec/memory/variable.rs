//! Handler of instructions with the address of a variable: it records what they access, then runs them.

use crate::byte_state::ByteState;
use crate::exec::state::ctx::{Ctx, Run, Watched};
use crate::exec::state::request::Addresses;
use crate::exec::state::variables::AccessRecord;
use crate::exec::state::wave::Wave;
use crate::fault::Access;

/// That handler. The number of the instruction is in `Ins::target`.
pub(crate) fn handler() -> Run {
    |w, c, i| {
        let Watched { run, addresses } = &c.watched[i.target as usize];
        if c.tools.memcheck {
            let mut at = [0; 32];
            addresses(w, i, &mut at);
            record(w, c, i.target, &at);
        }
        // SAFETY: lowering has chosen it on this host.
        unsafe { run(w, c, i) }
    }
}

fn record(w: &Wave, c: &mut Ctx<'_>, number: u32, at: &Addresses) {
    let instruction = &c.variables.instructions[number as usize];
    let scalar = instruction.how == Access::Scalar;
    let lanes = if scalar { 1 } else { w.exec() };
    // Of a scalar load compilers may use less than they load.
    let last = if scalar {
        0
    } else {
        u64::from(instruction.size.saturating_sub(1))
    };
    let base = instruction.base.and_then(|base| c.variables.all.get(base));
    let base = base.map_or(0..0, |variable| variable.addresses.clone());
    let mut inside = 0;
    for l in 0..32 {
        inside |= u32::from(base.contains(&at[l]) && base.contains(&at[l].wrapping_add(last))) << l;
    }
    let of = |lanes: u32, count: u32| AccessRecord {
        workgroup: c.workgroup,
        wave: w.index,
        lane: w.first_lane + lanes.trailing_zeros() % 32,
        address: at[lanes.trailing_zeros() as usize % 32],
        count: count.into(),
    };
    let (inside, outside) = (inside & lanes, lanes & !inside);
    if inside != 0 {
        let record = of(inside, inside.count_ones());
        c.variable_accesses.note_base(number, record);
    }
    for lane in (0..32).map(|lane| 1 << lane).filter(|lane| outside & lane != 0) {
        let record = of(lane, 1);
        // The instruction's own handler reports addresses without live memory.
        if !matches!(
            c.memory.state_at(record.address),
            ByteState::Unmapped | ByteState::Freed
        ) {
            c.variable_accesses.note(number, c.variables, last, record);
        }
    }
}
