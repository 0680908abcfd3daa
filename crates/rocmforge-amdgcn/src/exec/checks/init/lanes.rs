//! Exchanges between lanes: which bytes of their results are unknown.
//!
//! An exchange moves bits as they are. So its handler runs a second time, on a copy of the wave that holds in place of the values which of their bytes are
//! unknown, and what it gives is which bytes of the result are.

use super::uses::{Part, Reg, What};
use super::{ALL, COMPUTED, Effect, Init, Unknown};
use crate::exec::simd::masks::bits_of_bytes;
use crate::exec::state::ctx::{Ctx, FromInactive, Ins};
use crate::exec::state::fields::{Kind, Src};
use crate::exec::state::wave::Wave;

impl Init {
    /// Makes unknown what a shuffle has given of lanes that are off.
    pub(super) fn shuffled(&mut self, w: &Wave, inactive: FromInactive, i: &Ins, index: usize) {
        let part = self.uses.0[index].as_ref().and_then(|u| u.parts.first());
        let Some(&Reg::V(register, _)) = part.and_then(|part| part.writes.first()) else {
            return;
        };
        for (half, lanes) in [Some(w), w.high.as_deref()].into_iter().flatten().zip(inactive.lanes) {
            if lanes == 0 {
                continue;
            }
            let origin = self
                .origins
                .of_lane(half, lanes.trailing_zeros() as usize, inactive.source, i.at);
            let unknown = &mut self.units[half.unit()];
            for l in (0..32).filter(|l| lanes >> l & 1 != 0) {
                unknown.v[register as usize][l] = ALL | COMPUTED;
            }
            unknown.comes_from(register as usize, origin, lanes);
        }
    }
}

impl Unknown {
    /// Finds the effect of an instruction whose source `data` goes from lane to lane.
    pub(super) fn exchange(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, u: &Part, data: usize, effect: &mut Effect) {
        if self.any(&u.reads) == 0 && self.any(&u.writes) == 0 {
            return;
        }
        let (Some(&written), operand) = (u.writes.first(), if data == 0 { i.a } else { i.b }) else {
            return;
        };
        let chosen = u.reads.iter().filter(|&&read| !is_of(read, &operand));
        let chosen = chosen.fold(0, |lanes, &read| lanes | self.of(read));
        let (mut copy, mut ins) = (w.clone(), *i);
        let [from, to] = free(i);
        let moved = match operand.kind {
            Kind::V => {
                copy.v[from as usize].0 = self.v[operand.reg as usize].map(u32::from);
                Src::reg(Kind::V, from)
            }
            _ => Src::ZERO,
        };
        *(if data == 0 { &mut ins.a } else { &mut ins.b }) = moved;
        if let Reg::V(register, _) = written {
            copy.v[to as usize].0 = self.v[register as usize].map(u32::from);
            ins.dst = to;
        }
        // SAFETY: `lower` stored the build of this handler that `isa::vector` found this host to support.
        unsafe { (ins.run)(&mut copy, c, &ins) };
        // The instruction itself notes them again.
        c.inactive = FromInactive::default();
        match written {
            Reg::V(..) => {
                effect.from = effect.from.or(self.origin(written));
                let state = |l: usize| {
                    if chosen & w.exec() >> l & 1 != 0 {
                        ALL | COMPUTED
                    } else {
                        copy.v[to as usize].0[l] as u8
                    }
                };
                effect.bytes = Some(Box::new(std::array::from_fn(state)));
            }
            _ if chosen != 0 => effect.result = u32::MAX,
            _ => effect.result = bits_of_bytes(copy.s[i.dst as usize & 127] as u8),
        }
    }

    /// Finds the effect of an instruction with a DPP control, of which `i` is the part that moves the first source.
    pub(super) fn permuted(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, u: &Part, effect: &mut Effect) {
        if self.any(&u.reads) == 0 && self.any(&u.writes) == 0 {
            return;
        }
        let (mut copy, mut ins) = (w.clone(), *i);
        let [from, _] = free(i);
        copy.v[from as usize].0 = match i.a.kind {
            Kind::V => self.v[i.a.reg as usize].map(u32::from),
            _ => [0; 32],
        };
        ins.a = Src::reg(Kind::V, from);
        // SAFETY: `lower` stored the build of this handler that `isa::vector` found this host to support.
        unsafe { (ins.run)(&mut copy, c, &ins) };
        let source = copy.tmp.0;
        effect.lanes = copy.exec();
        if u.what == (What::Permuted { moves: true }) {
            effect.bytes = Some(Box::new(source.map(|state| state as u8)));
            return;
        }
        let permuted = (0..32).fold(0, |lanes, l| lanes | u32::from(source[l] & u32::from(ALL) != 0) << l);
        effect.result = permuted | self.any(u.reads.get(1..).unwrap_or_default());
    }
}

/// Whether a register that is read is that operand.
fn is_of(read: Reg, operand: &Src) -> bool {
    matches!(read, Reg::V(first, _) if operand.kind == Kind::V && first == operand.reg)
}

/// Two vector registers that an instruction does not use.
fn free(i: &Ins) -> [u8; 2] {
    let used = [i.a.reg, i.b.reg, i.c.reg, i.dst];
    let mut others = (0..=u8::MAX).filter(|register| !used.contains(register));
    [(); 2].map(|()| others.next().unwrap_or_default())
}
