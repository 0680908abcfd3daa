//! LDS instructions.

use super::space::{Addresses, Space};
use super::{atomic, load, store};
use crate::exec::code::Ins;
use crate::exec::ctx::Ctx;
use crate::exec::isa::{Handler, Run, plain, vector};
use crate::exec::wave::{BIT, EXEC, Wave, spread};
use crate::inst::Op;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

struct LoadWords<S, const R: usize>(PhantomData<S>);

impl<S: Space, const R: usize> Handler for LoadWords<S, R> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        load::words::<S, R>(w, c, i, &at, i.dst);
    }
}

struct StoreWords<S, const R: usize>(PhantomData<S>);

impl<S: Space, const R: usize> Handler for StoreWords<S, R> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        store::words::<S, R>(w, c, i, &at, i.b.reg);
    }
}

/// The second addresses of a `2addr` instruction: `Ins::target` bytes behind the first, with wrap-around.
#[inline(always)]
fn second(i: &Ins, first: &Addresses) -> Addresses {
    let mut at = [0; 32];
    for l in 0..32 {
        at[l] = u64::from((first[l] as u32).wrapping_add(i.target));
    }
    at
}

struct Load2<S, const R: usize>(PhantomData<S>);

impl<S: Space, const R: usize> Handler for Load2<S, R> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        load::words::<S, R>(w, c, i, &at, i.dst);
        load::words::<S, R>(w, c, i, &second(i, &at), i.dst.wrapping_add(R as u8));
    }
}

struct Store2<S, const R: usize>(PhantomData<S>);

impl<S: Space, const R: usize> Handler for Store2<S, R> {
    #[inline(always)]
    fn run(w: &mut Wave, c: &mut Ctx<'_>, i: &Ins) {
        let mut at = [0; 32];
        S::addresses(w, i, &mut at);
        store::words::<S, R>(w, c, i, &at, i.b.reg);
        store::words::<S, R>(w, c, i, &second(i, &at), i.c.reg);
    }
}

/// Each lane reads the lane its address names.
struct Bpermute;

impl Handler for Bpermute {
    #[inline(always)]
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let exec = w.s[EXEC];
        let mut buffer = MaybeUninit::uninit();
        let data = w.lanes(&i.b, &mut buffer);
        let mut active = spread(exec);
        for l in 0..32 {
            active[l] &= data[l];
        }
        let mut buffer = MaybeUninit::uninit();
        let select = w.lanes(&i.a, &mut buffer);
        let mut out = [0; 32];
        for l in 0..32 {
            out[l] = active[(select[l].wrapping_add(i.imm as u32) >> 2) as usize & 31];
        }
        w.put(i.dst, &out);
    }
}

/// Each lane writes to the lane its address names; the last one wins, lanes nobody writes get 0.
struct Permute;

impl Handler for Permute {
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let exec = w.s[EXEC];
        let (mut a, mut b) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let (select, data) = (*w.lanes(&i.a, &mut a), *w.lanes(&i.b, &mut b));
        let mut out = [0; 32];
        for l in (0..32).filter(|l| exec >> l & 1 != 0) {
            out[(select[l].wrapping_add(i.imm as u32) >> 2) as usize & 31] = data[l];
        }
        w.put(i.dst, &out);
    }
}

struct Swizzle;

impl Handler for Swizzle {
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let exec = w.s[EXEC];
        let mut a = MaybeUninit::uninit();
        let data = *w.lanes(&i.a, &mut a);
        let offset = i.imm as u32;
        let mut out = [0; 32];
        for l in 0..32u32 {
            let from = if offset >= 0xC000 {
                // Rotation of the lanes that the mask leaves free.
                let (mask, n) = (offset & 31, offset >> 5 & 31);
                let to = if offset >> 10 & 1 != 0 {
                    l.wrapping_sub(n)
                } else {
                    l + n
                };
                (l & mask) | (to & !mask & 31)
            } else if offset & 0x8000 != 0 {
                (l & !3) | (offset >> (2 * (l & 3)) & 3)
            } else {
                ((l & offset & 31) | (offset >> 5 & 31)) ^ (offset >> 10 & 31)
            };
            out[l as usize] = if exec & BIT[from as usize & 31] != 0 {
                data[from as usize & 31]
            } else {
                0
            };
        }
        w.put(i.dst, &out);
    }
}

/// The handler of a DS instruction.
pub(crate) fn lookup<S: Space>(op: Op) -> Option<Run> {
    use load::{HighB16, HighI8, HighU8, I8, I16, LowB16, LowI8, LowU8, Small, U8, U16};
    Some(match op {
        Op::DsLoadB32 => vector::<LoadWords<S, 1>>(),
        Op::DsLoadB64 => vector::<LoadWords<S, 2>>(),
        Op::DsLoadB96 => vector::<LoadWords<S, 3>>(),
        Op::DsLoadB128 => vector::<LoadWords<S, 4>>(),
        Op::DsLoad2addrB32 | Op::DsLoad2addrStride64B32 => vector::<Load2<S, 1>>(),
        Op::DsLoad2addrB64 | Op::DsLoad2addrStride64B64 => vector::<Load2<S, 2>>(),
        Op::DsLoadU8 => vector::<Small<S, U8>>(),
        Op::DsLoadI8 => vector::<Small<S, I8>>(),
        Op::DsLoadU16 => vector::<Small<S, U16>>(),
        Op::DsLoadI16 => vector::<Small<S, I16>>(),
        Op::DsLoadU8D16 => vector::<Small<S, LowU8>>(),
        Op::DsLoadI8D16 => vector::<Small<S, LowI8>>(),
        Op::DsLoadU16D16 => vector::<Small<S, LowB16>>(),
        Op::DsLoadU8D16Hi => vector::<Small<S, HighU8>>(),
        Op::DsLoadI8D16Hi => vector::<Small<S, HighI8>>(),
        Op::DsLoadU16D16Hi => vector::<Small<S, HighB16>>(),
        Op::DsStoreB32 => vector::<StoreWords<S, 1>>(),
        Op::DsStoreB64 => vector::<StoreWords<S, 2>>(),
        Op::DsStoreB96 => vector::<StoreWords<S, 3>>(),
        Op::DsStoreB128 => vector::<StoreWords<S, 4>>(),
        Op::DsStore2addrB32 | Op::DsStore2addrStride64B32 => vector::<Store2<S, 1>>(),
        Op::DsStore2addrB64 | Op::DsStore2addrStride64B64 => vector::<Store2<S, 2>>(),
        Op::DsStoreB8 => vector::<store::Small<S, 1, 0>>(),
        Op::DsStoreB16 => vector::<store::Small<S, 2, 0>>(),
        Op::DsStoreB8D16Hi => vector::<store::Small<S, 1, 16>>(),
        Op::DsStoreB16D16Hi => vector::<store::Small<S, 2, 16>>(),
        Op::DsBpermuteB32 => vector::<Bpermute>(),
        Op::DsPermuteB32 => plain::<Permute>(),
        Op::DsSwizzleB32 => plain::<Swizzle>(),
        _ => return atomic::lookup::<S>(op),
    })
}

/// Distance between offset units of a `2addr` instruction in bytes; `None` for other instructions.
pub(crate) fn two_addresses(op: Op) -> Option<u32> {
    match op {
        Op::DsLoad2addrB32 | Op::DsStore2addrB32 => Some(4),
        Op::DsLoad2addrB64 | Op::DsStore2addrB64 => Some(8),
        Op::DsLoad2addrStride64B32 | Op::DsStore2addrStride64B32 => Some(4 * 64),
        Op::DsLoad2addrStride64B64 | Op::DsStore2addrStride64B64 => Some(8 * 64),
        _ => None,
    }
}
