//! Exchanges of registers, and reads of a single lane: they move values, and what is unknown of them.

use crate::exec::checks::init::origin::Origin;
use crate::exec::checks::init::uses::{Part, Reg};
use crate::exec::checks::init::{ALL, COMPUTED, Init, Unknown, bits_of};
use crate::exec::state::wave::Wave;

/// Bytes of a register that an exchange moves: all of them, or those of a half.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Moved {
    pub(super) destination: u8,
    pub(super) source: u8,
}

/// What is unknown of a register in a lane when the bytes `to` of it get those that another has at `of`.
pub(super) fn replaced(register: u8, to: u8, other: u8, of: u8) -> u8 {
    let kept = register & ALL & !to;
    let moved = (other & of) >> of.trailing_zeros() << to.trailing_zeros();
    let computed = |bytes: u8, state: u8| if bytes != 0 { state & COMPUTED } else { 0 };
    kept | moved | computed(kept, register) | computed(moved, other)
}

impl Unknown {
    /// What is unknown of two registers, which may be the same one, after they have exchanged bytes in some lanes.
    pub(super) fn exchange(&mut self, destination: usize, source: usize, moved: Moved, lanes: u32) {
        // Either may have bytes of the other then, and of its own if only a half has changed.
        let origins = [destination, source].map(|register| self.origin(Reg::V(register as u8, 1)));
        let whole = moved.destination == ALL;
        for l in (0..32).filter(|l| lanes >> l & 1 != 0) {
            let (ours, theirs) = (self.v[destination][l], self.v[source][l]);
            self.v[destination][l] = replaced(ours, moved.destination, theirs, moved.source);
            // It is the register that has just been written where both are the same.
            self.v[source][l] = replaced(self.v[source][l], moved.source, ours, moved.destination);
        }
        for (register, own, other) in [(destination, origins[0], origins[1]), (source, origins[1], origins[0])] {
            let any = (0..32).any(|l| lanes >> l & 1 != 0 && self.v[register][l] & ALL != 0);
            if any {
                self.comes_from(register, if whole { other } else { own.or(other) }, lanes);
            }
        }
    }
}

impl Init {
    /// Unknown bits of what the first lane that is on has in an operand, or lane 0 if none is, and where they come from.
    pub(super) fn first_lane(&self, w: &Wave, u: &Part) -> (u32, Origin) {
        let exec = w.exec64();
        let lane = if exec == 0 { 0 } else { exec.trailing_zeros() as usize };
        let wave = w.high.as_deref().filter(|_| lane >= 32).unwrap_or(w);
        let unknown = &self.units[wave.unit()];
        let Some(&read) = u.reads.first() else {
            return (0, Origin::NONE);
        };
        let bits = match read {
            Reg::V(n, _) => bits_of(unknown.v[n as usize][lane & 31]),
            // A scalar register is the same for all lanes, and the lower half of the wave has it.
            scalar => {
                let unknown = &self.units[w.unit()];
                return (unknown.of(scalar), unknown.origin(scalar));
            }
        };
        (bits, unknown.origin(read))
    }
}
