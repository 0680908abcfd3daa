//! Vector instructions that move values between lanes, registers and the scalar side.

use crate::exec::code::isa::{Handler, plain, vector};
use crate::exec::simd::masks::BIT;
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::Kind;
use crate::exec::state::wave::{EXEC, Wave};
use crate::exec::vector::elem::Elem;
use crate::exec::vector::integer::msad8;
use crate::exec::vector::relative;
use rocmforge_isa::{Dpp, DppCtrl, Op};
use std::mem::MaybeUninit;

macro_rules! handlers {
    ($($(#[$doc:meta])* $name:ident($w:ident, $i:ident) $body:block)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;
        impl Handler for $name {
            #[inline(always)]
            fn run($w: &mut Wave, _: &mut Ctx<'_>, $i: &Ins) $body
        }
    )*};
}

/// One lane of an operand.
#[inline(always)]
fn lane(w: &Wave, i: &Ins, n: u32) -> u32 {
    match i.a.kind {
        Kind::V => w.v[i.a.reg as usize].0[n as usize & 31],
        Kind::T => w.tmp.0[n as usize & 31],
        _ => w.scalar(&i.a),
    }
}

/// Lanes with the half at bit `at` replaced by the one at bit `from` of others.
fn with_half(lanes: &[u32; 32], at: u8, others: &[u32; 32], from: u8) -> [u32; 32] {
    std::array::from_fn(|l| lanes[l] & !(0xFFFF << at) | (others[l] >> from & 0xFFFF) << at)
}

handlers! {
    ReadFirstLane(w, i) {
        let exec = w.s[EXEC];
        let value = lane(w, i, if exec == 0 { 0 } else { exec.trailing_zeros() });
        w.set(i.dst, value);
    }
    ReadLane(w, i) {
        let value = lane(w, i, w.scalar(&i.b) & 31);
        w.set(i.dst, value);
    }
    WriteLane(w, i) {
        let n = w.scalar(&i.b) & 31;
        w.v[i.dst as usize].0[n as usize] = w.scalar(&i.a);
    }
    Permlane16(w, i) { permlane(w, i, 0) }
    PermlaneX16(w, i) { permlane(w, i, 16) }
    Swap(w, i) {
        let (a, b) = (w.v[i.a.reg as usize].0, w.v[i.dst as usize].0);
        w.put(i.dst, &a);
        w.put(i.a.reg, &b);
    }
    /// Exchanges halves, which may be those of one register.
    SwapHalves(w, i) {
        let (ours, theirs) = (w.v[i.dst as usize].0, w.v[i.a.reg as usize].0);
        w.put(i.dst, &with_half(&ours, i.half, &theirs, i.a.shift));
        let theirs = w.v[i.a.reg as usize].0;
        w.put(i.a.reg, &with_half(&theirs, i.a.shift, &ours, i.half));
    }
    /// Four sums of masked differences of bytes, at four offsets: four registers.
    MqsadU32(w, i) {
        let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let (a, b) = (*<u64 as Elem>::fetch::<false>(w, &i.a, &mut a), *w.lanes(&i.b, &mut b));
        let old: [[u32; 32]; 4] = std::array::from_fn(|n| match i.c.kind {
            Kind::V => w.v[(i.c.reg as usize + n) & 255].0,
            _ => [w.scalar(&i.c); 32],
        });
        for n in 0..4 {
            let sum = std::array::from_fn(|l| {
                let difference = msad8((a[l] >> (8 * n)) as u32, b[l]);
                if i.clamp { difference.saturating_add(old[n][l]) } else { difference.wrapping_add(old[n][l]) }
            });
            w.put(i.dst.wrapping_add(n as u8), &sum);
        }
    }
    /// Keeps a register for the next instruction, which may overwrite it.
    Save(w, i) {
        let mut buffer = MaybeUninit::uninit();
        w.tmp.0 = *w.lanes(&i.a, &mut buffer);
    }
    /// Ends a DPP instruction.
    Restore(w, _i) { w.s[EXEC] = w.saved_exec; }
    DppQuad(w, i) {
        let select = i.imm as u32;
        permute(w, i, |l| Some((l & !3) | (select >> (2 * (l & 3)) & 3)));
    }
    DppRowShl(w, i) {
        let n = i.imm as u32;
        permute(w, i, |l| ((l & 15) + n < 16).then_some(l + n));
    }
    DppRowShr(w, i) {
        let n = i.imm as u32;
        permute(w, i, |l| ((l & 15) >= n).then(|| l - n));
    }
    DppRowRor(w, i) {
        let n = i.imm as u32;
        permute(w, i, |l| Some((l & 16) | ((l + 16 - n) & 15)));
    }
    DppMirror(w, i) { permute(w, i, |l| Some(l ^ 15)) }
    DppHalfMirror(w, i) { permute(w, i, |l| Some(l ^ 7)) }
    DppShare(w, i) {
        let n = i.imm as u32;
        permute(w, i, |l| Some((l & 16) | n));
    }
    DppXmask(w, i) {
        let n = i.imm as u32;
        permute(w, i, |l| Some(l ^ n));
    }
    Dpp8(w, i) {
        let select = i.imm as u32;
        permute(w, i, |l| Some((l & 24) | (select >> (3 * (l & 7)) & 7)));
    }
}

fn permlane(w: &mut Wave, i: &Ins, other_row: u32) {
    let select = u64::from(w.scalar(&i.b)) | u64::from(w.scalar(&i.c)) << 32;
    let exec = w.s[EXEC];
    let (fetch_inactive, zero) = (i.imm & 1 != 0, i.imm & 2 != 0);
    let source = w.v[i.a.reg as usize].0;
    for l in 0..32u32 {
        if exec & BIT[l as usize] == 0 {
            continue;
        }
        let from = ((l & 16) ^ other_row) | (select >> (4 * (l & 15)) & 15) as u32;
        if fetch_inactive || exec & BIT[from as usize] != 0 {
            w.v[i.dst as usize].0[l as usize] = source[from as usize];
        } else if zero {
            w.v[i.dst as usize].0[l as usize] = 0;
        }
    }
}

/// Options of [`permute`] in `Ins::target`: rows, banks, and these.
const BOUND_CTRL: u32 = 1 << 8;
const FETCH_INACTIVE: u32 = 1 << 9;

/// First half of a DPP instruction: the permuted operand goes to the wave's temporary, and lanes that must not be written
/// leave `exec` until [`Restore`].
#[inline(always)]
fn permute(w: &mut Wave, i: &Ins, from: impl Fn(u32) -> Option<u32>) {
    let exec = w.s[EXEC];
    let mut buffer = MaybeUninit::uninit();
    let source = *w.lanes(&i.a, &mut buffer);
    let mut narrowed = exec;
    for l in 0..32u32 {
        let row_on = i.target >> (l / 16) & 1 != 0;
        let bank_on = i.target >> (4 + l / 4 % 4) & 1 != 0;
        let valid = from(l).filter(|&f| i.target & FETCH_INACTIVE != 0 || exec & BIT[f as usize & 31] != 0);
        w.tmp.0[l as usize] = valid.map_or(0, |f| source[f as usize & 31]);
        if !row_on || !bank_on || (valid.is_none() && i.target & BOUND_CTRL == 0) {
            narrowed &= !BIT[l as usize];
        }
    }
    w.saved_exec = exec;
    w.s[EXEC] = narrowed;
}

/// Handler, immediate and options of the first half of a DPP instruction.
pub(crate) fn dpp(dpp: &Dpp) -> (Run, i32, u32) {
    let fetch = |inactive: bool| if inactive { FETCH_INACTIVE } else { 0 };
    match *dpp {
        Dpp::Dpp8 { lanes, fetch_inactive } => {
            let select = lanes
                .iter()
                .enumerate()
                .fold(0, |s, (n, &lane)| s | i32::from(lane & 7) << (3 * n));
            (plain::<Dpp8>(), select, 0xFF | BOUND_CTRL | fetch(fetch_inactive))
        }
        Dpp::Dpp16 {
            ctrl,
            row_mask,
            bank_mask,
            bound_ctrl,
            fetch_inactive,
        } => {
            let bound = if bound_ctrl { BOUND_CTRL } else { 0 };
            let options = u32::from(row_mask & 3) | u32::from(bank_mask & 15) << 4 | bound | fetch(fetch_inactive);
            // Row bits 2 and 3 belong to lanes that a wave of 32 does not have, and share their bits with nothing.
            let (run, imm) = match ctrl {
                DppCtrl::QuadPerm(sel) => (
                    plain::<DppQuad>(),
                    sel.iter()
                        .enumerate()
                        .fold(0, |s, (n, &q)| s | i32::from(q & 3) << (2 * n)),
                ),
                DppCtrl::RowShl(n) => (plain::<DppRowShl>(), n.into()),
                DppCtrl::RowShr(n) => (plain::<DppRowShr>(), n.into()),
                DppCtrl::RowRor(n) => (plain::<DppRowRor>(), n.into()),
                DppCtrl::RowMirror => (plain::<DppMirror>(), 0),
                DppCtrl::RowHalfMirror => (plain::<DppHalfMirror>(), 0),
                DppCtrl::RowShare(n) => (plain::<DppShare>(), n.into()),
                DppCtrl::RowXmask(n) => (plain::<DppXmask>(), n.into()),
            };
            (run, imm, options)
        }
    }
}

/// The handler of an operation of this file; `modal`: the floating-point mode may not be the default one.
pub(crate) fn lookup(op: Op, modal: bool) -> Option<Run> {
    Some(match op {
        Op::VReadfirstlaneB32 => plain::<ReadFirstLane>(),
        Op::VReadlaneB32 => plain::<ReadLane>(),
        Op::VWritelaneB32 => plain::<WriteLane>(),
        Op::VPermlane16B32 => plain::<Permlane16>(),
        Op::VPermlanex16B32 => plain::<PermlaneX16>(),
        Op::VSwapB32 => vector::<Swap>(),
        Op::VSwapB16 => plain::<SwapHalves>(),
        Op::VMqsadU32U8 => plain::<MqsadU32>(),
        Op::VDivFmasF32 if !modal => vector::<crate::exec::vector::float::DivFmas32>(),
        Op::VDivFmasF64 if !modal => vector::<crate::exec::vector::double::DivFmas64>(),
        _ => return relative::lookup(op),
    })
}
