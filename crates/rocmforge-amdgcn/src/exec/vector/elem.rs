//! Types of vector operands and results: how 32 lanes of each are read and written.

use crate::exec::number::mode::Mode;
use crate::exec::number::num::{bf16_to_f32, clamp32, f32_to_bf16, f32_to_half, half_to_f32, quieted, quieted64};
use crate::exec::state::ctx::Ins;
use crate::exec::state::fields::{ABS, Kind, NEG, NEG_HI, SEL_HI, SEL_LO, Src};
use crate::exec::state::wave::Wave;
use std::mem::MaybeUninit;

/// A type that a vector operand can be read as.
pub(crate) trait Elem: Copy {
    /// Whether negation and absolute value mean something.
    const MODS: bool = false;
    /// Where lanes that are no register's own are put together. Uninitialised, because clearing it would cost as much as
    /// most instructions do.
    type Buffer;
    /// All lanes of an operand; `M` says that it may carry modifiers.
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32];
    /// Whether there are short handlers of operations with such operands.
    const SHORT: bool = false;
    /// Whether short handlers take operands of it that all lanes have the same of.
    const UNIFORM: bool = false;
    /// Whether it selects one of two other operands.
    const SELECTS: bool = false;
    /// Whether an operand of a short handler is one that all lanes have the same of; `None` of a kind that those do not take.
    fn is_uniform(_: Kind) -> Option<u8> {
        None
    }
    /// All lanes of an operand of a short handler that is not uniform.
    #[inline(always)]
    fn direct<'a>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        Self::fetch::<false>(w, s, buffer)
    }
    /// The value of a uniform operand; `None` of a type that has none.
    #[inline(always)]
    fn uniform(_: &Wave, _: &Src) -> Option<Self> {
        None
    }
    /// The operand as an operation sees it in this mode.
    #[inline(always)]
    fn input(self, _: &Src, _: Mode) -> Self {
        self
    }
    /// The bits of a NaN, made quiet, as the results of its operations keep them: of float `part`, where it holds several.
    fn nan(self, _part: usize) -> Option<u64> {
        None
    }
}

/// A type that a vector result can be written as.
pub(crate) trait Ret: Copy {
    /// Whether clamping means something.
    const MODS: bool = false;
    /// Whether there are short handlers of operations with such results.
    const SHORT: bool = false;
    type Out: Default;
    fn set(out: &mut Self::Out, lane: usize, value: Self);
    /// Whether the host is free to choose some of the results: then [`Self::replaced`] says what they are.
    #[inline(always)]
    fn chosen_by_host(_: &Self::Out) -> bool {
        false
    }
    /// The results with other ones in the place of those that the host is free to choose; `None` where there are none.
    #[inline(always)]
    fn replaced<O: LaneOp>(_: &Self::Out, _: &[O::A; 32], _: &[O::B; 32], _: &[O::C; 32]) -> Option<Self::Out> {
        None
    }
    /// `M` says that the instruction may clamp.
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out);
    /// The result as an operation leaves it in this mode, with output modifier and clamp.
    #[inline(always)]
    fn output(self, _: &Ins, _: Mode) -> Self {
        self
    }
}

/// What an instruction does to one lane.
pub(crate) trait LaneOp {
    type A: Elem;
    type B: Elem;
    type C: Elem;
    type R: Ret;
    fn lane(a: Self::A, b: Self::B, c: Self::C) -> Self::R;
}

/// [`Elem::fetch`], compiled once for each type.
#[inline(never)]
pub(crate) fn fetch<'a, E: Elem>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<E::Buffer>) -> &'a [E; 32] {
    E::fetch::<true>(w, s, buffer)
}

/// [`Ret::store`], compiled once for each type.
#[inline(never)]
pub(crate) fn store<R: Ret, const M: bool>(w: &mut Wave, i: &Ins, out: &R::Out) {
    R::store::<M>(w, i, out);
}

/// What [`Elem::nan`] is of a single, or of what is widened to one.
#[inline(always)]
fn single(x: f32) -> Option<u64> {
    x.is_nan().then(|| quieted(x).to_bits().into())
}

/// The same of a double.
#[inline(always)]
fn double(x: f64) -> Option<u64> {
    x.is_nan().then(|| quieted64(x).to_bits())
}

/// What a word is to short handlers: a register, or the same for all lanes.
macro_rules! short_word {
    () => {
        const SHORT: bool = true;
        const UNIFORM: bool = true;
        fn is_uniform(kind: Kind) -> Option<u8> {
            match kind {
                Kind::V => Some(0),
                Kind::S | Kind::C => Some(1),
                _ => None,
            }
        }
        #[inline(always)]
        fn direct<'a>(w: &'a Wave, s: &Src, _: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
            bytemuck::cast_ref(&w.v[s.reg as usize].0)
        }
        #[inline(always)]
        fn uniform(w: &Wave, s: &Src) -> Option<Self> {
            Some(bytemuck::cast(w.uniform(s)))
        }
    };
}

impl Elem for () {
    const SHORT: bool = true;
    type Buffer = [Self; 32];
    fn is_uniform(_: Kind) -> Option<u8> {
        Some(0)
    }
    #[inline(always)]
    fn fetch<'a, const M: bool>(_: &'a Wave, _: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        buffer.write([(); 32])
    }
}

impl Elem for u32 {
    short_word!();
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        w.lanes(s, buffer)
    }
}

impl Ret for u32 {
    const SHORT: bool = true;
    type Out = [u32; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = value;
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        w.put(i.dst, out);
    }
}

impl Elem for i32 {
    short_word!();
    type Buffer = [u32; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        bytemuck::cast_ref(w.lanes(s, buffer))
    }
}

impl Ret for i32 {
    const SHORT: bool = true;
    type Out = [u32; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = value as u32;
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        w.put(i.dst, out);
    }
}

/// Masks that take the absolute value and the negation of a float with this sign bit.
#[inline(always)]
fn modifiers(s: &Src, sign: u64) -> (u64, u64) {
    let keep = if s.mods & ABS != 0 { !sign } else { u64::MAX };
    let flip = if s.mods & NEG != 0 { sign } else { 0 };
    (keep, flip)
}

impl Elem for f32 {
    const MODS: bool = true;
    short_word!();
    type Buffer = [u32; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        if !M {
            return bytemuck::cast_ref(w.lanes(s, buffer));
        }
        let (keep, flip) = modifiers(s, 1 << 31);
        let mut raw = MaybeUninit::uninit();
        let lanes = w.lanes(s, &mut raw);
        let bits = buffer.write([0; 32]);
        for l in 0..32 {
            bits[l] = (lanes[l] & keep as u32) ^ flip as u32;
        }
        bytemuck::cast_ref(bits)
    }
    #[inline(always)]
    fn input(self, _: &Src, mode: Mode) -> Self {
        mode.input32(self)
    }
    fn nan(self, _: usize) -> Option<u64> {
        single(self)
    }
}

impl Ret for f32 {
    const MODS: bool = true;
    const SHORT: bool = true;
    type Out = [u32; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = value.to_bits();
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        if M && i.clamp {
            let mut clamped = [0; 32];
            for l in 0..32 {
                clamped[l] = clamp32(f32::from_bits(out[l])).to_bits();
            }
            w.put(i.dst, &clamped);
        } else {
            w.put(i.dst, out);
        }
    }
    #[inline(always)]
    fn output(self, i: &Ins, mode: Mode) -> Self {
        mode.output32(self, i.target, i.clamp)
    }
}

#[inline(always)]
fn fetch64<'a>(w: &Wave, s: &Src, buffer: &'a mut MaybeUninit<[u64; 32]>) -> &'a mut [u64; 32] {
    if s.kind == Kind::V {
        let low = &w.v[s.reg as usize].0;
        let high = &w.v[(s.reg as usize + 1) & 255].0;
        let lanes = buffer.write([0; 32]);
        for l in 0..32 {
            lanes[l] = u64::from(low[l]) | u64::from(high[l]) << 32;
        }
        lanes
    } else {
        buffer.write([w.scalar64(s); 32])
    }
}

#[inline(always)]
fn store64(w: &mut Wave, reg: u8, out: &[u64; 32]) {
    let (mut low, mut high) = ([0; 32], [0; 32]);
    for l in 0..32 {
        low[l] = out[l] as u32;
        high[l] = (out[l] >> 32) as u32;
    }
    w.put(reg, &low);
    w.put(reg.wrapping_add(1), &high);
}

macro_rules! wide_integer {
    ($($int:ty),*) => {$(
        impl Elem for $int {
            type Buffer = [u64; 32];
            #[inline(always)]
            fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
                bytemuck::cast_ref(fetch64(w, s, buffer))
            }
        }

        impl Ret for $int {
            type Out = [u64; 32];
            #[inline(always)]
            fn set(out: &mut Self::Out, lane: usize, value: Self) {
                out[lane] = value as u64;
            }
            #[inline(always)]
            fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
                store64(w, i.dst, out);
            }
        }
    )*};
}
wide_integer!(u64, i64);

impl Elem for f64 {
    const MODS: bool = true;
    type Buffer = [u64; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let bits = fetch64(w, s, buffer);
        if M {
            let (keep, flip) = modifiers(s, 1 << 63);
            for lane in &mut *bits {
                *lane = (*lane & keep) ^ flip;
            }
        }
        bytemuck::cast_ref(bits)
    }
    #[inline(always)]
    fn input(self, _: &Src, mode: Mode) -> Self {
        mode.input64(self)
    }
    fn nan(self, _: usize) -> Option<u64> {
        double(self)
    }
}

impl Ret for f64 {
    const MODS: bool = true;
    type Out = [u64; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = value.to_bits();
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        let mut value = *out;
        if M && i.clamp {
            for lane in &mut value {
                let x = f64::from_bits(*lane);
                *lane = (if x > 0.0 { x } else { 0.0 }).min(1.0).to_bits();
            }
        }
        store64(w, i.dst, &value);
    }
    #[inline(always)]
    fn output(self, i: &Ins, mode: Mode) -> Self {
        mode.output64(self, i.target, i.clamp)
    }
}

/// Writes a half of a register; the other half stays.
#[inline(always)]
fn store16(w: &mut Wave, i: &Ins, out: &[u16; 32]) {
    let keep = 0xFFFF_0000u32 >> i.half;
    let old = &w.v[i.dst as usize].0;
    let mut value = [0; 32];
    for l in 0..32 {
        value[l] = (old[l] & keep) | u32::from(out[l]) << i.half;
    }
    w.put(i.dst, &value);
}

macro_rules! half_integer {
    ($($int:ty),*) => {$(
        impl Elem for $int {
            type Buffer = [Self; 32];
            #[inline(always)]
            fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
                let mut raw = MaybeUninit::uninit();
                let lanes = w.lanes(s, &mut raw);
                let buffer = buffer.write([0; 32]);
                for l in 0..32 {
                    buffer[l] = (lanes[l] >> s.shift) as $int;
                }
                buffer
            }
        }

        impl Ret for $int {
            type Out = [u16; 32];
            #[inline(always)]
            fn set(out: &mut Self::Out, lane: usize, value: Self) {
                out[lane] = value as u16;
            }
            #[inline(always)]
            fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
                store16(w, i, out);
            }
        }
    )*};
}
half_integer!(u16, i16);

/// Half precision, widened: sums and products of halves are exact or correctly rounded through single precision.
#[derive(Clone, Copy, Default)]
pub(crate) struct H(pub(crate) f32);

impl Elem for H {
    const MODS: bool = true;
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let mut raw = MaybeUninit::uninit();
        let lanes = w.lanes(s, &mut raw);
        let (keep, flip) = if M { modifiers(s, 1 << 15) } else { (u64::MAX, 0) };
        let buffer = buffer.write([Self(0.0); 32]);
        for l in 0..32 {
            let bits = (lanes[l] >> s.shift) as u16;
            buffer[l] = H(half_to_f32((bits & keep as u16) ^ flip as u16));
        }
        buffer
    }
    #[inline(always)]
    fn input(self, _: &Src, mode: Mode) -> Self {
        H(mode.input16(self.0))
    }
    fn nan(self, _: usize) -> Option<u64> {
        single(self.0)
    }
}

impl Ret for H {
    const MODS: bool = true;
    type Out = [f32; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = value.0;
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        let mut bits = [0; 32];
        for l in 0..32 {
            bits[l] = f32_to_half(if M && i.clamp { clamp32(out[l]) } else { out[l] });
        }
        store16(w, i, &bits);
    }
    #[inline(always)]
    fn output(self, i: &Ins, mode: Mode) -> Self {
        H(mode.output16(self.0, i.target, i.clamp))
    }
}

/// A half that only moves: its modifiers change the sign, nothing else changes.
#[derive(Clone, Copy)]
pub(crate) struct Bits16(pub(crate) u16);

impl Elem for Bits16 {
    const MODS: bool = true;
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let mut raw = MaybeUninit::uninit();
        let lanes = w.lanes(s, &mut raw);
        let (keep, flip) = if M { modifiers(s, 1 << 15) } else { (u64::MAX, 0) };
        let buffer = buffer.write([Self(0); 32]);
        for l in 0..32 {
            buffer[l] = Self(((lanes[l] >> s.shift) as u16 & keep as u16) ^ flip as u16);
        }
        buffer
    }
}

#[inline(always)]
fn fetch_packed<'a>(w: &Wave, s: &Src, buffer: &'a mut MaybeUninit<[[u16; 2]; 32]>, float: bool) -> &'a [[u16; 2]; 32] {
    let mut raw = MaybeUninit::uninit();
    let lanes = w.lanes(s, &mut raw);
    let low = if s.mods & SEL_LO != 0 { 16 } else { 0 };
    let high = if s.mods & SEL_HI != 0 { 16 } else { 0 };
    let flip_low = if float && s.mods & NEG != 0 { 0x8000 } else { 0 };
    let flip_high = if float && s.mods & NEG_HI != 0 { 0x8000 } else { 0 };
    let buffer = buffer.write([[0; 2]; 32]);
    for l in 0..32 {
        buffer[l] = [
            (lanes[l] >> low) as u16 ^ flip_low,
            (lanes[l] >> high) as u16 ^ flip_high,
        ];
    }
    buffer
}

/// Two integers of 16 bits.
impl Elem for [u16; 2] {
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        fetch_packed(w, s, buffer, false)
    }
}

impl Ret for [u16; 2] {
    type Out = [u32; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = u32::from(value[0]) | u32::from(value[1]) << 16;
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        w.put(i.dst, out);
    }
}

/// Two halves.
impl Elem for [H; 2] {
    const MODS: bool = true;
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let mut bits = MaybeUninit::uninit();
        let bits = fetch_packed(w, s, &mut bits, true);
        let buffer = buffer.write([[H(0.0); 2]; 32]);
        for l in 0..32 {
            buffer[l] = bits[l].map(|half| H(half_to_f32(half)));
        }
        buffer
    }
    #[inline(always)]
    fn input(self, _: &Src, mode: Mode) -> Self {
        self.map(|x| H(mode.input16(x.0)))
    }
    fn nan(self, part: usize) -> Option<u64> {
        single(self[part].0)
    }
}

impl Ret for [H; 2] {
    const MODS: bool = true;
    type Out = [[f32; 2]; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = [value[0].0, value[1].0];
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        let mut value = [0; 32];
        for l in 0..32 {
            let [a, b] = out[l].map(|x| u32::from(f32_to_half(if M && i.clamp { clamp32(x) } else { x })));
            value[l] = a | b << 16;
        }
        w.put(i.dst, &value);
    }
    #[inline(always)]
    fn output(self, i: &Ins, mode: Mode) -> Self {
        self.map(|x| H(mode.output16(x.0, i.target, i.clamp)))
    }
}

/// A bfloat16, widened.
#[derive(Clone, Copy)]
pub(crate) struct Bf(pub(crate) f32);

impl Elem for Bf {
    const MODS: bool = true;
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let mut raw = MaybeUninit::uninit();
        let lanes = w.lanes(s, &mut raw);
        let (keep, flip) = if M { modifiers(s, 1 << 15) } else { (u64::MAX, 0) };
        let buffer = buffer.write([Self(0.0); 32]);
        for l in 0..32 {
            let bits = (lanes[l] >> s.shift) as u16;
            buffer[l] = Self(bf16_to_f32((bits & keep as u16) ^ flip as u16));
        }
        buffer
    }
}

impl Ret for Bf {
    type Out = [u16; 32];
    #[inline(always)]
    fn set(out: &mut Self::Out, lane: usize, value: Self) {
        out[lane] = f32_to_bf16(value.0);
    }
    #[inline(always)]
    fn store<const M: bool>(w: &mut Wave, i: &Ins, out: &Self::Out) {
        store16(w, i, out);
    }
}

/// Two bfloat16.
#[derive(Clone, Copy)]
pub(crate) struct Bf2(pub(crate) [f32; 2]);

impl Elem for Bf2 {
    const MODS: bool = true;
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let mut bits = MaybeUninit::uninit();
        let bits = fetch_packed(w, s, &mut bits, true);
        let buffer = buffer.write([Self([0.0; 2]); 32]);
        for l in 0..32 {
            buffer[l] = Bf2(bits[l].map(bf16_to_f32));
        }
        buffer
    }
}

/// A single, or either half of a register: `v_fma_mix*`.
#[derive(Clone, Copy)]
pub(crate) struct Mix(pub(crate) f32);

impl Elem for Mix {
    const MODS: bool = true;
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let mut raw = MaybeUninit::uninit();
        let lanes = w.lanes(s, &mut raw);
        let (keep, flip) = modifiers(s, 1 << 31);
        let half = s.mods & SEL_HI != 0;
        let buffer = buffer.write([Self(0.0); 32]);
        for l in 0..32 {
            let bits = if half {
                half_to_f32((lanes[l] >> s.shift) as u16).to_bits()
            } else {
                lanes[l]
            };
            buffer[l] = Mix(f32::from_bits((bits & keep as u32) ^ flip as u32));
        }
        buffer
    }
    #[inline(always)]
    fn input(self, s: &Src, mode: Mode) -> Self {
        Mix(if s.mods & SEL_HI != 0 {
            mode.input16(self.0)
        } else {
            mode.input32(self.0)
        })
    }
    fn nan(self, _: usize) -> Option<u64> {
        single(self.0)
    }
}

/// Four bytes or eight nibbles, signed where the operand's `neg` bit says so.
#[derive(Clone, Copy)]
pub(crate) struct Dot {
    bits: u32,
    signed: bool,
}

impl Dot {
    #[inline(always)]
    pub(crate) fn byte(self, n: u32) -> i32 {
        let byte = (self.bits >> (8 * n)) as u8;
        if self.signed {
            i32::from(byte as i8)
        } else {
            i32::from(byte)
        }
    }

    #[inline(always)]
    pub(crate) fn nibble(self, n: u32) -> i32 {
        let nibble = (self.bits >> (4 * n) & 15) as i32;
        if self.signed { nibble << 28 >> 28 } else { nibble }
    }
}

impl Elem for Dot {
    const MODS: bool = true;
    type Buffer = [Self; 32];
    #[inline(always)]
    fn fetch<'a, const M: bool>(w: &'a Wave, s: &Src, buffer: &'a mut MaybeUninit<Self::Buffer>) -> &'a [Self; 32] {
        let mut raw = MaybeUninit::uninit();
        let lanes = w.lanes(s, &mut raw);
        let signed = s.mods & NEG != 0;
        let buffer = buffer.write([Self { bits: 0, signed }; 32]);
        for l in 0..32 {
            buffer[l].bits = lanes[l];
        }
        buffer
    }
}
