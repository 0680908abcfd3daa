//! Moves of vector registers whose numbers are relative to `m0`: elements of arrays that compilers keep in registers.
//!
//! A number beyond the registers of the kernel is a fault; as on a card, such a source is v0, and nothing is written to such a
//! destination.

use crate::exec::code::isa::{Handler, vector};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::wave::{M0, Wave};
use crate::fault::{Access, FaultKind};
use rocmforge_isa::Op;
use std::mem::MaybeUninit;

/// The register so far behind another; `None`, and a fault, where the kernel has none.
#[inline(always)]
fn register(w: &Wave, c: &mut Ctx<'_>, i: &Ins, reg: u8, distance: u32) -> Option<u8> {
    let number = u32::from(reg).wrapping_add(distance);
    if number < c.vgprs.min(256) {
        return Some(number as u8);
    }
    outside(w, c, i, number as i32);
    None
}

#[cold]
#[inline(never)]
fn outside(w: &Wave, c: &mut Ctx<'_>, i: &Ins, number: i32) {
    let exec = w.exec();
    if exec == 0 {
        return;
    }
    let vgprs = c.vgprs;
    if let Some(fault) = c.fault(
        w,
        i,
        FaultKind::RegisterOutOfRange,
        Access::None,
        exec.trailing_zeros(),
        0,
        0,
    ) {
        fault.note = format!("v{number} by m0, of {vgprs}");
    }
}

/// Both numbers of an instruction that has a distance for each in `m0`.
fn distances(w: &Wave) -> (u32, u32) {
    (w.s[M0] & 0x3FF, w.s[M0] >> 16 & 0x3FF)
}

/// Moves the register at a distance to `dst` at another.
#[inline(always)]
fn from_to(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins, from: u32, to: u32) {
    let source = register(w, c, i, i.a.reg, from).unwrap_or(0);
    if let Some(destination) = register(w, c, i, i.dst, to) {
        let value = w.v[source as usize].0;
        w.put(destination, &value);
    }
}

struct Source;
struct Destination;
struct Both;
struct BothApart;
struct Swap;

impl Handler for Source {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let source = register(w, c, i, i.a.reg, w.s[M0]).unwrap_or(0);
        let value = w.v[source as usize].0;
        w.put(i.dst, &value);
    }
}

impl Handler for Destination {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        if let Some(destination) = register(w, c, i, i.dst, w.s[M0]) {
            let mut buffer = MaybeUninit::uninit();
            let value = *w.lanes(&i.a, &mut buffer);
            w.put(destination, &value);
        }
    }
}

impl Handler for Both {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let distance = w.s[M0];
        from_to(w, c, i, distance, distance);
    }
}

impl Handler for BothApart {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let (from, to) = distances(w);
        from_to(w, c, i, from, to);
    }
}

impl Handler for Swap {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let (from, to) = distances(w);
        let registers = (register(w, c, i, i.a.reg, from), register(w, c, i, i.dst, to));
        if let (Some(source), Some(destination)) = registers {
            let (a, b) = (w.v[source as usize].0, w.v[destination as usize].0);
            w.put(destination, &a);
            w.put(source, &b);
        }
    }
}

/// The handler of an operation of this file.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    Some(match op {
        Op::VMovrelsB32 => vector::<Source>(),
        Op::VMovreldB32 => vector::<Destination>(),
        Op::VMovrelsdB32 => vector::<Both>(),
        Op::VMovrelsd2B32 => vector::<BothApart>(),
        Op::VSwaprelB32 => vector::<Swap>(),
        _ => return None,
    })
}
