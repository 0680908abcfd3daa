//! Operations on single lanes: the handlers that do one to all lanes, and tables of them.

use crate::exec::code::isa::{self, Handler, plain};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::{Kind, Src};
use crate::exec::state::wave::Wave;
use crate::exec::vector::elem::{Elem, LaneOp, Ret, fetch, store};
use crate::exec::vector::modal;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

/// Applies an operation to all lanes, with the modifiers of operands and result.
pub(crate) struct Each<O>(PhantomData<O>);

impl<O: LaneOp> Handler for Each<O> {
    #[inline(always)]
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let (mut a, mut b, mut c) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
        let a = O::A::fetch::<true>(w, &i.a, &mut a);
        let b = O::B::fetch::<true>(w, &i.b, &mut b);
        let c = O::C::fetch::<true>(w, &i.c, &mut c);
        let mut out = <O::R as Ret>::Out::default();
        for l in 0..32 {
            O::R::set(&mut out, l, O::lane(a[l], b[l], c[l]));
        }
        // Two stores rather than one of either: the results stay in registers.
        match O::R::replaced::<O>(&out, a, b, c) {
            Some(out) => store::<O::R, true>(w, i, &out),
            None => O::R::store::<true>(w, i, &out),
        }
    }
}

/// The same without modifiers, where all lanes are active and each operand is of the kind that most are of: a register, or where `UNIFORM` has its bit a
/// scalar register or a constant. Few instructions, and little on the stack: other cases are left to [`Each`].
pub(crate) struct Short<O, const UNIFORM: u8>(PhantomData<O>);

impl<O: LaneOp, const UNIFORM: u8> Handler for Short<O, UNIFORM> {
    #[inline(always)]
    fn run(w: &mut Wave, ctx: &mut Ctx<'_>, i: &Ins) {
        if w.exec() != u32::MAX || all_lanes::<O, UNIFORM>(w, i).is_none() {
            std::hint::cold_path();
            isa::lanes_now::<Each<O>, OneByOne<O>>(w, ctx, i);
        }
    }
}

/// [`Short`] with all lanes active; `None` where there is more to do, and nothing has happened.
#[inline(always)]
fn all_lanes<O: LaneOp, const UNIFORM: u8>(w: &mut Wave, i: &Ins) -> Option<()> {
    let (mut a, mut b, mut c) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    let a = Operand::read(w, &i.a, UNIFORM & 1 != 0, &mut a)?;
    let b = Operand::read(w, &i.b, UNIFORM & 2 != 0, &mut b)?;
    let c = Operand::read(w, &i.c, UNIFORM & 4 != 0, &mut c)?;
    let mut out = <O::R as Ret>::Out::default();
    for l in 0..32 {
        O::R::set(&mut out, l, O::lane(a.lane(l), b.lane(l), c.lane(l)));
    }
    if O::R::chosen_by_host(&out) {
        return None;
    }
    O::R::store::<false>(w, i, &out);
    Some(())
}

/// An operand of [`Short`].
enum Operand<'a, E> {
    Lanes(&'a [E; 32]),
    Uniform(E),
}

impl<'a, E: Elem> Operand<'a, E> {
    #[inline(always)]
    fn read(w: &'a Wave, s: &Src, uniform: bool, buffer: &'a mut MaybeUninit<E::Buffer>) -> Option<Self> {
        if uniform {
            return E::uniform(w, s).map(Self::Uniform);
        }
        Some(Self::Lanes(E::direct(w, s, buffer)))
    }

    #[inline(always)]
    fn lane(&self, lane: usize) -> E {
        match self {
            Self::Lanes(lanes) => lanes[lane],
            Self::Uniform(value) => *value,
        }
    }
}

/// The same in little code, which takes one lane after the other. Without modifiers, looking at them changes nothing.
pub(crate) struct OneByOne<O>(PhantomData<O>);

impl<O: LaneOp> Handler for OneByOne<O> {
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        one_by_one::<O::A, O::B, O::C, O::R>(w, i, O::lane, O::R::replaced::<O>);
    }
}

/// [`Ret::replaced`] of one operation.
type Replaced<A, B, C, R> = fn(&<R as Ret>::Out, &[A; 32], &[B; 32], &[C; 32]) -> Option<<R as Ret>::Out>;

/// The loop of [`OneByOne`]: compiled once for each list of types, as hundreds of operations share it.
#[inline(never)]
fn one_by_one<A: Elem, B: Elem, C: Elem, R: Ret>(
    w: &mut Wave,
    i: &Ins,
    lane: fn(A, B, C) -> R,
    replaced: Replaced<A, B, C, R>,
) {
    let (mut a, mut b, mut c) = (MaybeUninit::uninit(), MaybeUninit::uninit(), MaybeUninit::uninit());
    let a = fetch::<A>(w, &i.a, &mut a);
    let b = fetch::<B>(w, &i.b, &mut b);
    let c = fetch::<C>(w, &i.c, &mut c);
    let mut out = R::Out::default();
    for l in 0..32 {
        R::set(&mut out, l, lane(a[l], b[l], c[l]));
    }
    let out = replaced(&out, a, b, c).unwrap_or(out);
    store::<R, true>(w, i, &out);
}

/// Which handler of an operation is wanted.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// Operands or result carry modifiers.
    pub(crate) mods: bool,
    /// The wave may be in another floating-point mode than the default.
    pub(crate) modal: bool,
    /// The kinds of the operands.
    pub(crate) kinds: [Kind; 3],
}

/// The handler, or `None` when modifiers are asked for that mean nothing to its operands.
pub(crate) fn each<O: LaneOp>(form: Form) -> Option<Run> {
    match by_mode::<O>(form) {
        Choice::Modal(run) => Some(run),
        Choice::Refused => None,
        Choice::Plain => {
            let short = if form.mods { None } else { short::<O>(form) };
            Some(short.unwrap_or_else(isa::lanes::<Each<O>, OneByOne<O>>))
        }
    }
}

/// The handler of an operation that compilers seldom make: the small one for every host, as another would cost the compiler more time than
/// it saves. `None` as for [`each`].
pub(crate) fn seldom<O: LaneOp>(form: Form) -> Option<Run> {
    match by_mode::<O>(form) {
        Choice::Modal(run) => Some(run),
        Choice::Refused => None,
        Choice::Plain => Some(plain::<OneByOne<O>>()),
    }
}

/// What modifiers and the floating-point mode leave to choose.
enum Choice {
    /// Nothing: this handler knows the mode.
    Modal(Run),
    /// Nothing: the modifiers mean nothing to its operands.
    Refused,
    /// Any handler for the default mode.
    Plain,
}

fn by_mode<O: LaneOp>(form: Form) -> Choice {
    // Conditions that are constants, here and below: what is behind one that is false is not compiled.
    if const { O::A::MODS || O::B::MODS || O::C::MODS || O::R::MODS } {
        if form.modal {
            return Choice::Modal(plain::<modal::Modal<modal::Any<O>>>());
        }
    } else if form.mods {
        return Choice::Refused;
    }
    Choice::Plain
}

/// A short handler of an operation, if there is one for operands of these kinds: for those that compilers make most of.
fn short<O: LaneOp>(form: Form) -> Option<Run> {
    if const { O::A::SHORT && O::B::SHORT && O::C::SHORT && O::R::SHORT } {
        let [a, b, c] = form.kinds;
        let uniform = O::A::is_uniform(a)? | O::B::is_uniform(b)? << 1 | O::C::is_uniform(c)? << 2;
        match uniform {
            0 => return Some(isa::lanes::<Short<O, 0>, OneByOne<O>>()),
            1 => return Some(isa::lanes::<Short<O, 1>, OneByOne<O>>()),
            _ => {}
        }
        if const { O::B::UNIFORM } {
            if uniform == 2 {
                return Some(isa::lanes::<Short<O, 2>, OneByOne<O>>());
            }
            if const { O::C::UNIFORM } {
                match uniform {
                    4 => return Some(isa::lanes::<Short<O, 4>, OneByOne<O>>()),
                    6 => return Some(isa::lanes::<Short<O, 6>, OneByOne<O>>()),
                    _ => {}
                }
            } else if const { O::C::SELECTS } && uniform == 3 {
                return Some(isa::lanes::<Short<O, 3>, OneByOne<O>>());
            }
        }
    }
    None
}

/// A table of operations, those that compilers make often and [`seldom`], and the function that looks one up. Names are those of [`Op`].
macro_rules! lane_ops {
    (
        $lookup:ident { $($op:ident $(| $same:ident)* ($($arg:ident : $ty:ty),*) -> $ret:ty $body:block)* }
        $(seldom { $($rare:ident $(| $alike:ident)* ($($input:ident : $in:ty),*) -> $out:ty $does:block)* })?
    ) => {
        /// The handler of an operation of this table.
        pub(crate) fn $lookup(op: rocmforge_isa::Op, form: $crate::exec::vector::lane_ops::Form) -> Option<$crate::exec::state::ctx::Run> {
            match op {
                $(rocmforge_isa::Op::$op $(| rocmforge_isa::Op::$same)* => {
                    struct Table;
                    $crate::exec::vector::lane_ops::lane_op!(Table ($($arg : $ty),*) -> $ret $body);
                    $crate::exec::vector::lane_ops::each::<Table>(form)
                })*
                $($(rocmforge_isa::Op::$rare $(| rocmforge_isa::Op::$alike)* => {
                    struct Table;
                    $crate::exec::vector::lane_ops::lane_op!(Table ($($input : $in),*) -> $out $does);
                    $crate::exec::vector::lane_ops::seldom::<Table>(form)
                })*)?
                _ => None,
            }
        }
    };
}

macro_rules! lane_op {
    ($name:ident ($a:ident : $ta:ty) -> $ret:ty $body:block) => {
        $crate::exec::vector::lane_ops::lane_op!($name ($a: $ta, _b: (), _c: ()) -> $ret $body);
    };
    ($name:ident ($a:ident : $ta:ty, $b:ident : $tb:ty) -> $ret:ty $body:block) => {
        $crate::exec::vector::lane_ops::lane_op!($name ($a: $ta, $b: $tb, _c: ()) -> $ret $body);
    };
    ($name:ident ($a:ident : $ta:ty, $b:ident : $tb:ty, $c:ident : $tc:ty) -> $ret:ty $body:block) => {
        impl $crate::exec::vector::elem::LaneOp for $name {
            type A = $ta;
            type B = $tb;
            type C = $tc;
            type R = $ret;
            #[inline(always)]
            fn lane($a: $ta, $b: $tb, $c: $tc) -> $ret $body
        }
    };
}
pub(crate) use {lane_op, lane_ops};
