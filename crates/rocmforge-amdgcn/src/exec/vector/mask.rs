//! Masks as operands and results: a bit for each lane.

use crate::exec::number::mode::Mode;
use crate::exec::simd::masks::{pack, spread};
use crate::exec::state::ctx::Ins;
use crate::exec::state::fields::{Kind, Src};
use crate::exec::state::wave::{EXEC, Wave};
use crate::exec::vector::elem::{Elem, Ret};
use std::mem::MaybeUninit;

/// A bit per lane, spread: all ones where it is set.
#[derive(Clone, Copy)]
pub(crate) struct Sel(pub(crate) u32);

impl Sel {
    #[inline(always)]
    fn spread(mask: u32, buffer: &mut MaybeUninit<[Self; 32]>) -> &[Self; 32] {
        let mask = spread(mask);
        let buffer = buffer.write([Self(0); 32]);
        for l in 0..32 {
            buffer[l] = Self(mask[l]);
        }
        buffer
    }
}

impl Elem for Sel {
    const SHORT: bool = true;
    const SELECTS: bool = true;
    type Buffer = [Self; 32];
    fn is_uniform(kind: Kind) -> Option<u8> {
        (kind == Kind::S).then_some(0)
    }
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        Self::spread(w.scalar(s), buffer)
    }
    #[inline(always)]
    fn direct<'a>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        Self::spread(w.s[s.reg as usize & 127], buffer)
    }
}

/// The number of the lane.
#[derive(Clone, Copy)]
pub(crate) struct Lane(pub(crate) u32);

impl Elem for Lane {
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(_: &'a Wave, _: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let buffer = buffer.write([Self(0); 32]);
        for l in 0..32 {
            buffer[l] = Self(l as u32);
        }
        buffer
    }
}

/// A compare result.
impl Ret for bool {
    const SHORT: bool = true;
    type Out = [u32; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = u32::from(value).wrapping_neg();
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        // Through memory: else the compiler takes the comparisons of 64 bits lane by lane.
        let mask = pack(&std::hint::black_box(*out)) & w.s[EXEC];
        w.set(i.sdst, mask);
    }
}

/// A bit of a mask, as the highest bit of a word.
#[derive(Clone, Copy)]
pub(crate) struct Sign(pub(crate) u32);

impl Ret for Sign {
    const SHORT: bool = true;
    type Out = [u32; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = value.0;
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        // A copy: packing takes an address, and what has none stays in registers.
        let copy = *out;
        let mask = pack(&copy) & w.s[EXEC];
        w.set(i.sdst, mask);
    }
}

/// A result with a carry.
impl<T: Ret, Carry: Ret<Out = [u32; 32]>> Ret for (T, Carry) {
    const MODS: bool = T::MODS;
    const SHORT: bool = T::SHORT && Carry::SHORT;
    type Out = (T::Out, [u32; 32]);
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        T::set(&mut out.0, lane, value.0);
        Carry::set(&mut out.1, lane, value.1);
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        T::store::<M>(w, i, &out.0);
        Carry::store::<M>(w, i, &out.1);
    }
    #[inline(always)]
    fn output(self, i: &Ins, mode: Mode) -> Self {
        (self.0.output(i, mode), self.1)
    }
}
