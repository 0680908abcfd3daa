//! Vector arithmetic in any floating-point mode, for programs that do not stay in the default one.
//!
//! Operands pass through [`Elem::input`] and results through [`Ret::output`], which know about denormals, output
//! modifiers and clamps. Operations that round, or whose minima treat NaN by the mode, have their own bodies here; all
//! others borrow theirs from the other tables.

use crate::exec::code::isa::{Handler, plain};
use crate::exec::number::mode::{self, Mode};
use crate::exec::number::num::{
    any_max32, any_max64, any_min32, any_min64, div_fmas32, div_fmas64, max32, max64, med32, min32, min64, unlit,
};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::wave::{VCC, Wave};
use crate::exec::vector::elem::{Elem, H, LaneOp, Mix, Ret};
use rocmforge_isa::Op;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// What an instruction does to one lane in a mode.
pub(crate) trait ModalOp {
    type A: Elem;
    type B: Elem;
    type C: Elem;
    type R: Ret;
    fn lane(a: Self::A, b: Self::B, c: Self::C, mode: Mode) -> Self::R;
}

/// An operation that does the same in every mode.
pub(crate) struct Any<O>(PhantomData<O>);

impl<O: LaneOp> ModalOp for Any<O> {
    type A = O::A;
    type B = O::B;
    type C = O::C;
    type R = O::R;
    #[inline(always)]
    fn lane(a: O::A, b: O::B, c: O::C, _: Mode) -> O::R {
        O::lane(a, b, c)
    }
}

/// Does it to all lanes.
pub(crate) struct Modal<O>(PhantomData<O>);

impl<O: ModalOp> Handler for Modal<O> {
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        all_lanes::<O::A, O::B, O::C, O::R>(w, i, O::lane);
    }
}

/// The loop of [`Modal`]: compiled once for each list of types, as hundreds of operations share it.
#[inline(never)]
fn all_lanes<A: Elem, B: Elem, C: Elem, R: Ret>(w: &mut Wave, i: &Ins, lane: fn(A, B, C, Mode) -> R) {
    let mode = w.mode;
    let (mut a, mut b, mut c) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    let a = crate::exec::vector::elem::fetch::<A>(w, &i.a, &mut a);
    let b = crate::exec::vector::elem::fetch::<B>(w, &i.b, &mut b);
    let c = crate::exec::vector::elem::fetch::<C>(w, &i.c, &mut c);
    let mut out = R::Out::default();
    for l in 0..32 {
        let result = lane(
            a[l].input(&i.a, mode),
            b[l].input(&i.b, mode),
            c[l].input(&i.c, mode),
            mode,
        );
        R::set(&mut out, l, result.output(i, mode));
    }
    crate::exec::vector::elem::store::<R, false>(w, i, &out);
}

macro_rules! modal_op {
    ($name:ident $m:ident ($a:ident : $ta:ty) -> $ret:ty $body:block) => {
        modal_op!($name $m ($a: $ta, _b: (), _c: ()) -> $ret $body);
    };
    ($name:ident $m:ident ($a:ident : $ta:ty, $b:ident : $tb:ty) -> $ret:ty $body:block) => {
        modal_op!($name $m ($a: $ta, $b: $tb, _c: ()) -> $ret $body);
    };
    ($name:ident $m:ident ($a:ident : $ta:ty, $b:ident : $tb:ty, $c:ident : $tc:ty) -> $ret:ty $body:block) => {
        impl ModalOp for $name {
            type A = $ta;
            type B = $tb;
            type C = $tc;
            type R = $ret;
            #[inline(always)]
            fn lane($a: $ta, $b: $tb, $c: $tc, $m: Mode) -> $ret $body
        }
    };
}

/// As [`crate::exec::vector::lane_ops::lane_ops`], with the mode in scope under the name before the operations.
macro_rules! modal_ops {
    ($m:ident { $($op:ident $(| $same:ident)* ($($arg:ident : $ty:ty),*) -> $ret:ty $body:block)* }) => {
        /// The handler of an operation of this file.
        pub(crate) fn lookup(op: Op) -> Option<Run> {
            match op {
                $(Op::$op $(| Op::$same)* => {
                    struct Table;
                    modal_op!(Table $m ($($arg : $ty),*) -> $ret $body);
                    Some(plain::<Modal<Table>>())
                })*
                Op::VDivFmasF32 => Some(plain::<DivFmas32>()),
                Op::VDivFmasF64 => Some(plain::<DivFmas64>()),
                _ => None,
            }
        }
    };
}

/// The minimum or maximum that the mode asks for.
macro_rules! by_mode {
    ($($name:ident $ty:ty: $ieee:ident, $any:ident;)*) => {$(
        #[inline(always)]
        fn $name(m: Mode, a: $ty, b: $ty) -> $ty {
            if m.ieee() { $ieee(a, b) } else { $any(a, b) }
        }
    )*};
}

by_mode! {
    lower32 f32: min32, any_min32;
    upper32 f32: max32, any_max32;
    lower64 f64: min64, any_min64;
    upper64 f64: max64, any_max64;
}

fn median(m: Mode, a: f32, b: f32, c: f32) -> f32 {
    if m.ieee() || !(a.is_nan() || b.is_nan() || c.is_nan()) {
        med32(a, b, c)
    } else {
        any_min32(any_min32(a, b), c)
    }
}

fn add16(m: Mode, a: H, b: H) -> H {
    H(mode::add16(a.0, b.0, m.round16_64()))
}

fn mul16(m: Mode, a: H, b: H) -> H {
    H(mode::mul16(a.0, b.0, m.round16_64()))
}

fn fma16(m: Mode, a: H, b: H, c: H) -> H {
    H(mode::fma16(a.0, b.0, c.0, m.round16_64()))
}

fn either_zero(a: f32, b: f32) -> bool {
    a == 0.0 || b == 0.0
}

modal_ops! { m {
    VAddF32(a: f32, b: f32) -> f32 { mode::add32(a, b, m.round32()) }
    VSubF32(a: f32, b: f32) -> f32 { mode::add32(a, -b, m.round32()) }
    VSubrevF32(a: f32, b: f32) -> f32 { mode::add32(b, -a, m.round32()) }
    VMulF32(a: f32, b: f32) -> f32 { mode::mul32(a, b, m.round32()) }
    VMulDx9ZeroF32(a: f32, b: f32) -> f32 { if either_zero(a, b) { 0.0 } else { mode::mul32(a, b, m.round32()) } }
    VFmaF32 | VFmacF32 | VFmaakF32 | VFmamkF32(a: f32, b: f32, c: f32) -> f32 { mode::fma32(a, b, c, m.round32()) }
    VFmaDx9ZeroF32 | VFmacDx9ZeroF32(a: f32, b: f32, c: f32) -> f32 {
        if either_zero(a, b) { c } else { mode::fma32(a, b, c, m.round32()) }
    }
    VMullitF32(a: f32, b: f32, c: f32) -> f32 {
        if unlit(b, c) { -f32::MAX } else { mode::mul32(a, b, m.round32()) }
    }
    VMinF32(a: f32, b: f32) -> f32 { lower32(m, a, b) }
    VMaxF32(a: f32, b: f32) -> f32 { upper32(m, a, b) }
    VMin3F32(a: f32, b: f32, c: f32) -> f32 { lower32(m, lower32(m, a, b), c) }
    VMax3F32(a: f32, b: f32, c: f32) -> f32 { upper32(m, upper32(m, a, b), c) }
    VMaxminF32(a: f32, b: f32, c: f32) -> f32 { lower32(m, upper32(m, a, b), c) }
    VMinmaxF32(a: f32, b: f32, c: f32) -> f32 { upper32(m, lower32(m, a, b), c) }
    VMed3F32(a: f32, b: f32, c: f32) -> f32 { median(m, a, b, c) }
    VFractF32(a: f32) -> f32 {
        let rest = mode::add32(a, -a.floor(), m.round32());
        if rest >= 1.0 { 1f32.next_down() } else { rest }
    }
    VLdexpF32(a: f32, b: i32) -> f32 { mode::ldexp32(a, b, m.round32()) }
    VCvtF32I32(a: i32) -> f32 { mode::from_int(a.into(), m.round32()) }
    VCvtF32U32(a: u32) -> f32 { mode::from_int(a.into(), m.round32()) }
    VCvtF32F64(a: f64) -> f32 { mode::narrow32(a, m.round32()) }
    VFmaMixF32(a: Mix, b: Mix, c: Mix) -> f32 { mode::fma32(a.0, b.0, c.0, m.round32()) }
    VFmaMixloF16 | VFmaMixhiF16(a: Mix, b: Mix, c: Mix) -> H { H(mode::fma32(a.0, b.0, c.0, m.round32())) }
    VAddF64(a: f64, b: f64) -> f64 { mode::add64(a, b, m.round16_64()) }
    VMulF64(a: f64, b: f64) -> f64 { mode::mul64(a, b, m.round16_64()) }
    VFmaF64(a: f64, b: f64, c: f64) -> f64 { mode::fma64(a, b, c, m.round16_64()) }
    VMinF64(a: f64, b: f64) -> f64 { lower64(m, a, b) }
    VMaxF64(a: f64, b: f64) -> f64 { upper64(m, a, b) }
    VLdexpF64(a: f64, b: i32) -> f64 { mode::ldexp64(a, b, m.round16_64()) }
    VAddF16(a: H, b: H) -> H { add16(m, a, b) }
    VSubF16(a: H, b: H) -> H { add16(m, a, H(-b.0)) }
    VSubrevF16(a: H, b: H) -> H { add16(m, b, H(-a.0)) }
    VMulF16(a: H, b: H) -> H { mul16(m, a, b) }
    VFmaF16 | VFmacF16 | VFmaakF16 | VFmamkF16(a: H, b: H, c: H) -> H { fma16(m, a, b, c) }
    VMinF16(a: H, b: H) -> H { H(lower32(m, a.0, b.0)) }
    VMaxF16(a: H, b: H) -> H { H(upper32(m, a.0, b.0)) }
    VMin3F16(a: H, b: H, c: H) -> H { H(lower32(m, lower32(m, a.0, b.0), c.0)) }
    VMax3F16(a: H, b: H, c: H) -> H { H(upper32(m, upper32(m, a.0, b.0), c.0)) }
    VMaxminF16(a: H, b: H, c: H) -> H { H(lower32(m, upper32(m, a.0, b.0), c.0)) }
    VMinmaxF16(a: H, b: H, c: H) -> H { H(upper32(m, lower32(m, a.0, b.0), c.0)) }
    VMed3F16(a: H, b: H, c: H) -> H { H(median(m, a.0, b.0, c.0)) }
    VPkAddF16(a: [H; 2], b: [H; 2]) -> [H; 2] { [add16(m, a[0], b[0]), add16(m, a[1], b[1])] }
    VPkMulF16(a: [H; 2], b: [H; 2]) -> [H; 2] { [mul16(m, a[0], b[0]), mul16(m, a[1], b[1])] }
    VPkFmaF16 | VPkFmacF16(a: [H; 2], b: [H; 2], c: [H; 2]) -> [H; 2] {
        [fma16(m, a[0], b[0], c[0]), fma16(m, a[1], b[1], c[1])]
    }
    VPkMinF16(a: [H; 2], b: [H; 2]) -> [H; 2] { [H(lower32(m, a[0].0, b[0].0)), H(lower32(m, a[1].0, b[1].0))] }
    VPkMaxF16(a: [H; 2], b: [H; 2]) -> [H; 2] { [H(upper32(m, a[0].0, b[0].0)), H(upper32(m, a[1].0, b[1].0))] }
} }

/// `v_div_fmas_f32` and `v_div_fmas_f64` read a fourth operand, `vcc`.
macro_rules! div_fmas {
    ($name:ident, $float:ty, |$a:ident, $b:ident, $c:ident, $scaled:ident, $mode:ident| $body:expr) => {
        struct $name;
        impl Handler for $name {
            fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
                let $mode = w.mode;
                let (mut a, mut b, mut c) = (
                    MaybeUninit::uninit(),
                    MaybeUninit::uninit(),
                    MaybeUninit::uninit(),
                );
                let a = <$float>::fetch::<true>(w, &i.a, &mut a);
                let b = <$float>::fetch::<true>(w, &i.b, &mut b);
                let c = <$float>::fetch::<true>(w, &i.c, &mut c);
                let vcc = w.s[VCC];
                let mut out = Default::default();
                for l in 0..32 {
                    let ($a, $b, $c) = (
                        a[l].input(&i.a, $mode),
                        b[l].input(&i.b, $mode),
                        c[l].input(&i.c, $mode),
                    );
                    let $scaled = vcc >> l & 1 != 0;
                    <$float>::set(&mut out, l, $body.output(i, $mode));
                }
                <$float>::store::<false>(w, i, &out);
            }
        }
    };
}

div_fmas!(DivFmas32, f32, |a, b, c, scaled, m| match m.round32() {
    mode::Round::NearestTiesToEven => div_fmas32(a, b, c, scaled),
    round if scaled => mode::scaled_fma32(a, b, c, round),
    round => mode::fma32(a, b, c, round),
});
div_fmas!(DivFmas64, f64, |a, b, c, scaled, m| match m.round16_64() {
    mode::Round::NearestTiesToEven => div_fmas64(a, b, c, scaled),
    round if scaled => mode::scaled_fma64(a, b, c, round),
    round => mode::fma64(a, b, c, round),
});
