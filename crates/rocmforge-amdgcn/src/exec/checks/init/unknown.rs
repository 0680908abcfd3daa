//! Unknown registers of a wave, and what instructions make of them.

use super::bits::{self, Value};
use super::origin::Origin;
use super::uses::{self, Part, Reg, What};
use super::{ALL, COMPUTED, Effect};
use crate::exec::simd::masks::bits_of_bytes;
use crate::exec::state::ctx::{Ctx, Ins};
use crate::exec::state::fields::Src;
use crate::exec::state::wave::{VCC, Wave};
use crate::fault::{Access, FaultKind};

/// Unknown bits of a wave's registers, and where the last unknown value of each comes from.
#[derive(Clone)]
pub(super) struct Unknown {
    pub(super) v: Box<[[u8; 32]; 256]>,
    pub(super) v_from: [Origin; 256],
    pub(super) s: [u32; 128],
    pub(super) s_from: [Origin; 128],
    pub(super) scc: bool,
    pub(super) scc_from: Origin,
}

impl Unknown {
    /// All registers are written.
    pub(super) fn none() -> Self {
        Self {
            v: Box::new([[0; 32]; 256]),
            v_from: [Origin::REGISTER; 256],
            s: [0; 128],
            s_from: [Origin::REGISTER; 128],
            scc: false,
            scc_from: Origin::REGISTER,
        }
    }

    /// Adds what else is unknown.
    pub(super) fn add(&mut self, other: &Self) {
        for n in 0..256 {
            let (mine, theirs) = (self.of(Reg::V(n as u8, 1)), other.of(Reg::V(n as u8, 1)));
            if theirs != 0 {
                let from = if mine != 0 { self.v_from[n] } else { Origin::NONE };
                self.v_from[n] = from.or(other.v_from[n]);
                for l in 0..32 {
                    self.v[n][l] |= other.v[n][l];
                }
            }
        }
        for n in 0..128 {
            if other.s[n] != 0 {
                let from = if self.s[n] != 0 { self.s_from[n] } else { Origin::NONE };
                self.s_from[n] = from.or(other.s_from[n]);
                self.s[n] |= other.s[n];
            }
        }
        if other.scc {
            let from = if self.scc { self.scc_from } else { Origin::NONE };
            (self.scc, self.scc_from) = (true, from.or(other.scc_from));
        }
    }

    /// Lanes in which some byte of a register is unknown; all, if a scalar one is.
    pub(super) fn of(&self, reg: Reg) -> u32 {
        let lanes = |state: &[u8; 32]| (0..32).fold(0, |mask, l| mask | u32::from(state[l] & ALL != 0) << l);
        match reg {
            Reg::V(first, count) => (0..count).fold(0, |mask, n| mask | lanes(&self.v[first.wrapping_add(n) as usize])),
            Reg::S(first, count) => {
                let any = (0..count).any(|n| self.s[first.wrapping_add(n) as usize & 127] != 0);
                if any { u32::MAX } else { 0 }
            }
            Reg::Mask(n) => self.s[n as usize & 127],
            Reg::Scc if self.scc => u32::MAX,
            Reg::Scc => 0,
        }
    }

    pub(super) fn any(&self, reads: &[Reg]) -> u32 {
        reads.iter().fold(0, |mask, &read| mask | self.of(read))
    }

    /// Where the unknown value of a register comes from.
    pub(super) fn origin(&self, reg: Reg) -> Origin {
        let if_unknown = |unknown: bool, origin: Origin| if unknown { origin } else { Origin::NONE };
        match reg {
            Reg::V(first, count) => (0..count).map(|n| first.wrapping_add(n)).fold(Origin::NONE, |all, n| {
                all.or(if_unknown(self.of(Reg::V(n, 1)) != 0, self.v_from[n as usize]))
            }),
            Reg::S(first, count) => (0..count).fold(Origin::NONE, |all, n| {
                all.or(self.origin(Reg::Mask(first.wrapping_add(n))))
            }),
            Reg::Mask(n) => if_unknown(self.s[n as usize & 127] != 0, self.s_from[n as usize & 127]),
            Reg::Scc => if_unknown(self.scc, self.scc_from),
        }
    }

    /// A register has got unknown values in some of these lanes.
    pub(super) fn comes_from(&mut self, register: usize, origin: Origin, lanes: u32) {
        let others = self.of(Reg::V(register as u8, 1)) & !lanes != 0;
        let before = &mut self.v_from[register];
        *before = if others { before.or(origin) } else { origin };
    }

    /// Unknown halves of the result of an operation of 16-bit values.
    pub(super) fn halves(&self, w: &Wave, halves: uses::Halves, effect: &mut Effect) {
        use rocmforge_isa::Operand;
        let mut out = Box::new([0; 32]);
        for l in (0..32).filter(|l| w.exec() >> l & 1 != 0) {
            let depends = |bytes: [u8; 3]| {
                halves.src.iter().zip(bytes).any(|(&operand, bytes)| match operand {
                    Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => self.v[n as usize][l] & bytes != 0,
                    Operand::Sgpr(n) => self.s[n as usize & 127] & bits_of_bytes(bytes) != 0,
                    Operand::VccLo => self.s[VCC] & bits_of_bytes(bytes) != 0,
                    _ => false,
                })
            };
            // The low byte of a sum depends on low bytes alone.
            let lowest = |bytes: [u8; 3]| bytes.map(|bytes| bytes & bytes.wrapping_neg());
            let half = |bytes: [u8; 3]| match depends(bytes) {
                false => 0,
                true if halves.upwards && !depends(lowest(bytes)) => 0b10,
                true => 0b11,
            };
            let (low, high) = (half(halves.low), half(halves.high));
            effect.result |= u32::from(low | high != 0) << l;
            out[l] = match halves.written {
                _ if low | high == 0 => 0,
                uses::BOTH_HALVES => low | high << 2 | COMPUTED,
                uses::LOW_HALF => low | COMPUTED,
                uses::HIGH_HALF => low << 2 | COMPUTED,
                _ => ALL | COMPUTED,
            };
        }
        effect.bytes = Some(out);
    }

    pub(super) fn bitwise(&self, w: &Wave, operation: bits::Bits) -> Box<[u8; 32]> {
        use rocmforge_isa::Operand;
        let mut out = Box::new([0; 32]);
        for l in (0..32).filter(|l| w.exec() >> l & 1 != 0) {
            let computed = std::cell::Cell::new(if operation.computes() { COMPUTED } else { 0 });
            let mask = operation.unknown(|operand| match operand {
                Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => {
                    let state = self.v[n as usize][l];
                    computed.set(computed.get() | state & COMPUTED);
                    Value {
                        bits: bits::value(w, operand, l),
                        unknown: bits_of_bytes(state),
                    }
                }
                other => self.scalar(w, other),
            });
            let bytes = (0..4).fold(0, |bytes, n| bytes | u8::from(mask >> (8 * n) & 0xFF != 0) << n);
            out[l] = if bytes == 0 { 0 } else { bytes | computed.get() };
        }
        out
    }

    /// A scalar operand.
    pub(super) fn scalar(&self, w: &Wave, operand: rocmforge_isa::Operand) -> Value {
        use rocmforge_isa::Operand;
        let unknown = match operand {
            Operand::Sgpr(n) => self.s[n as usize & 127],
            Operand::VccLo => self.s[VCC],
            Operand::VccHi => self.s[VCC + 1],
            _ => 0,
        };
        Value {
            bits: bits::value(w, operand, 0),
            unknown,
        }
    }

    /// Unknown bits of an `and` or `or` of scalars, one word or two.
    pub(super) fn scalar_bits(&self, w: &Wave, i: &Ins, u: &Part, effect: &mut Effect) {
        let two = u.reads.iter().any(|read| matches!(read, Reg::S(_, 2)));
        let mut known = [0; 2];
        for n in 0..1 + usize::from(two) {
            (known[n], effect.not_zero) = {
                let (unknown, ones) = self.scalar_word(w, i, u, n);
                (unknown, effect.not_zero | (ones & !unknown != 0))
            };
        }
        [effect.result, effect.upper] = known;
    }

    /// Unknown bits of a word of the result, and bits that are set in it.
    pub(super) fn scalar_word(&self, w: &Wave, i: &Ins, u: &Part, n: usize) -> (u32, u32) {
        let s = |register: u8| {
            let at = (register as usize + n) & 127;
            (self.s[at], w.s[at])
        };
        match (u.reads.first(), u.reads.get(1)) {
            (Some(&Reg::S(a, _)), Some(&Reg::S(b, _))) => {
                let ((pa, a), (pb, b)) = (s(a), s(b));
                if u.what == What::And {
                    ((pa | pb) & (pa | a) & (pb | b), a & b)
                } else {
                    ((pa | pb) & (pa | !a) & (pb | !b), a | b)
                }
            }
            (Some(&Reg::S(a, _)), _) => {
                let constant: &Src = if i.a.kind == crate::exec::state::fields::Kind::C {
                    &i.a
                } else {
                    &i.b
                };
                let other = (w.scalar64(constant) >> (32 * n)) as u32;
                (s(a).0 & if u.what == What::And { other } else { !other }, 0)
            }
            _ => (0, 0),
        }
    }

    /// Unknown bits of the selected operand.
    pub(super) fn select(&self, w: &Wave, u: &Part, effect: &mut Effect) {
        use rocmforge_isa::Operand;
        let scalar = |n: usize| if self.s[n & 127] == 0 { 0 } else { u32::MAX };
        if !matches!(u.writes.first(), Some(Reg::V(..))) {
            // s_cselect: the first operand where scc is set.
            let operand = |operand| match operand {
                Operand::Sgpr(n) => scalar(n as usize),
                Operand::VccLo => scalar(VCC),
                _ => 0,
            };
            let taken = operand(u.select[usize::from(w.scc == 0)]);
            effect.result = if self.scc { u32::MAX } else { taken };
            if self.scc {
                effect.from = effect.from.or(self.scc_from);
            }
            effect.upper = effect.result;
            return;
        }
        let operand = |operand, l: usize| match operand {
            Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => self.v[n as usize][l],
            Operand::Sgpr(n) if scalar(n as usize) != 0 => ALL | COMPUTED,
            _ => 0,
        };
        let by = match u.select[2] {
            Operand::Sgpr(n) => n as usize & 127,
            Operand::VccHi => VCC + 1,
            _ => VCC,
        };
        let mut bytes = Box::new([0; 32]);
        let mut selected = [false; 2];
        effect.from = if self.s[by] & w.exec() != 0 {
            self.s_from[by]
        } else {
            Origin::NONE
        };
        for l in (0..32).filter(|l| w.exec() >> l & 1 != 0) {
            let n = (w.s[by] >> l & 1) as usize;
            bytes[l] = if self.s[by] >> l & 1 != 0 {
                ALL | COMPUTED
            } else {
                operand(u.select[n], l)
            };
            // One half of it goes to a half.
            if u.written != uses::WHOLE {
                let from = if u.op_sel >> n & 1 != 0 { 2 } else { 0 };
                let to = if u.written == uses::HIGH_HALF { 2 } else { 0 };
                let half = (bytes[l] & ALL) >> from & uses::LOW_HALF;
                bytes[l] = if half == 0 { 0 } else { half << to | bytes[l] & COMPUTED };
            }
            selected[n] |= bytes[l] != 0;
        }
        for operand in (0..2).filter(|&n| selected[n]).map(|n| u.select[n]) {
            effect.from = effect.from.or(match operand {
                Operand::Vgpr(n) | Operand::VgprHalf { reg: n, .. } => self.origin(Reg::V(n, 1)),
                Operand::Sgpr(n) => self.origin(Reg::Mask(n)),
                _ => Origin::NONE,
            });
        }
        effect.bytes = Some(bytes);
    }

    /// Reports lanes of A and B that are known in one half of the wave only.
    pub(super) fn matrix_halves(&self, w: &Wave, c: &mut Ctx<'_>, i: &Ins, u: &Part, registers: bool) {
        for (n, name) in ["A", "B"].into_iter().enumerate().filter(|_| registers) {
            let lanes = u.reads.get(n).map_or(0, |&read| self.of(read));
            let one_half = (lanes ^ lanes >> 16) & 0xFFFF;
            if one_half == 0 {
                continue;
            }
            let lane = one_half.trailing_zeros();
            let (written, not) = if lanes >> lane & 1 == 0 {
                (lane, lane + 16)
            } else {
                (lane + 16, lane)
            };
            if let Some(fault) = c.fault(w, i, FaultKind::MatrixHalves, Access::None, not, 0, 0) {
                fault.note = format!("{name} was written in lane {written} and not in lane {not}");
            }
        }
    }

    /// A matrix instruction reads and writes all lanes, whatever `exec` is.
    pub(super) fn matrix(&mut self, u: &Part, from: Origin) {
        let operand = |n: usize| u.reads.get(n).map_or(0, |&read| self.of(read));
        let (a, b) = (operand(0), operand(1));
        let rows = (a | a >> 16) & 0xFFFF;
        let columns = (b | b >> 16) & 0xFFFF;
        let results: [u32; 8] = std::array::from_fn(|r| {
            let half = |row: usize| if rows >> row & 1 != 0 { 0xFFFF } else { 0 };
            let addend = match u.reads.get(2) {
                Some(&Reg::V(first, _)) => self.of(Reg::V(first.wrapping_add(r as u8), 1)),
                Some(&other) => self.of(other),
                None => 0,
            };
            half(2 * r) | half(2 * r + 1) << 16 | columns | columns << 16 | addend
        });
        if let Some(&Reg::V(first, _)) = u.writes.first() {
            for (r, result) in results.into_iter().enumerate() {
                let at = first.wrapping_add(r as u8) as usize;
                for l in 0..32 {
                    self.v[at][l] = if result >> l & 1 != 0 { ALL | COMPUTED } else { 0 };
                }
                self.v_from[at] = from;
            }
        }
    }
}
