//! Vector instructions of waves of 64 lanes that move values between the halves of the wave, or to and from the scalar side.

use crate::exec::code::isa::{Handler, plain};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::Kind;
use crate::exec::state::wave::{EXEC, Lanes, Wave};
use rocmforge_isa::Op;

/// One of 64 lanes of a vector register.
fn at(w: &mut Wave, reg: u8, lane: u32) -> &mut u32 {
    let registers = match &mut w.high {
        Some(high) if lane >= 32 => &mut high.v,
        _ => &mut w.v,
    };
    &mut registers[reg as usize].0[lane as usize & 31]
}

/// One of 64 lanes of an operand.
fn lane(w: &mut Wave, i: &Ins, n: u32) -> u32 {
    match i.a.kind {
        Kind::V => *at(w, i.a.reg, n),
        _ => w.scalar(&i.a),
    }
}

macro_rules! handlers {
    ($($(#[$doc:meta])* $name:ident($w:ident, $i:ident) $body:block)*) => {$(
        $(#[$doc])*
        struct $name;
        impl Handler for $name {
            fn run($w: &mut Wave, _: &mut Ctx<'_>, $i: &Ins) $body
        }
    )*};
}

handlers! {
    ReadFirstLane(w, i) {
        let exec = w.exec64();
        let value = lane(w, i, if exec == 0 { 0 } else { exec.trailing_zeros() });
        w.set(i.dst, value);
    }
    ReadLane(w, i) {
        let n = w.scalar(&i.b) & 63;
        let value = lane(w, i, n);
        w.set(i.dst, value);
    }
    WriteLane(w, i) {
        let (n, value) = (w.scalar(&i.b) & 63, w.scalar(&i.a));
        *at(w, i.dst, n) = value;
    }
    /// Exchanges the halves.
    Permlane64(w, i) {
        let (low, high) = both(w, i);
        put(w, i.dst, &high, &low);
    }
}

/// Both halves of an operand.
fn both(w: &mut Wave, i: &Ins) -> ([u32; 32], [u32; 32]) {
    (
        std::array::from_fn(|n| lane(w, i, n as u32)),
        std::array::from_fn(|n| lane(w, i, n as u32 + 32)),
    )
}

/// Writes the active lanes of both halves of a register.
pub(crate) fn put(w: &mut Wave, reg: u8, low: &[u32; 32], high: &[u32; 32]) {
    let mask = w.s[EXEC + 1];
    w.put(reg, low);
    if let Some(upper) = &mut w.high {
        let Lanes(out) = &mut upper.v[reg as usize];
        for l in (0..32).filter(|l| mask >> l & 1 != 0) {
            out[l] = high[l];
        }
    }
}

/// The handler of an operation of this file.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    Some(match op {
        Op::VReadfirstlaneB32 => plain::<ReadFirstLane>(),
        Op::VReadlaneB32 => plain::<ReadLane>(),
        Op::VWritelaneB32 => plain::<WriteLane>(),
        Op::VPermlane64B32 => plain::<Permlane64>(),
        _ => return None,
    })
}
