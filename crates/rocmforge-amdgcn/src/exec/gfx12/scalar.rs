//! Scalar floating point and 64-bit integers.

use crate::exec::code::Code;
use crate::exec::code::isa::{Handler, plain};
use crate::exec::code::operands::{NOTHING, Refused, sgpr, source};
use crate::exec::gfx12::vector::{maximum32, minimum32, num_max32, num_min32};
use crate::exec::number::mode::{self, Mode};
use crate::exec::number::num::{f32_to_half, f32_to_half_rtz, half_to_f32, quieted};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::{Kind, Src};
use crate::exec::state::wave::Wave;
use rocmforge_isa::{Inst, Op, Operand, Registers};

/// Operand of single precision.
fn single(w: &Wave, s: &Src) -> f32 {
    w.mode.input32(f32::from_bits(w.scalar(s)))
}

/// Operand of half precision.
fn half(w: &Wave, s: &Src) -> f32 {
    w.mode.input16(half_to_f32(w.scalar(s) as u16))
}

/// Result of half precision; the upper half of the register becomes zero.
fn put_half(w: &mut Wave, i: &Ins, x: f32) {
    let x = w.mode.output16(x, 0, false);
    w.set(i.dst, f32_to_half(x).into());
}

fn put_single(w: &mut Wave, i: &Ins, x: f32) {
    let x = w.mode.output32(x, 0, false);
    w.set(i.dst, x.to_bits());
}

/// Operations on floats of a precision, whose operands come by `$fetch` and whose results go by `$put`.
macro_rules! floats {
    ($lookup:ident, $fetch:ident, $put:ident: $($op:ident |$a:ident, $b:ident, $c:ident, $m:ident| $body:expr;)*) => {
        fn $lookup(op: Op) -> Option<Run> {
            Some(match op {
                $(Op::$op => {
                    struct Table;
                    impl Handler for Table {
                        fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
                            #[allow(unused_variables)]
                            let ($a, $b, $c, $m): (f32, f32, f32, Mode) = ($fetch(w, &i.a), $fetch(w, &i.b), $fetch(w, &i.c), w.mode);
                            $put(w, i, $body);
                        }
                    }
                    plain::<Table>()
                })*
                _ => return None,
            })
        }
    };
}

floats! { of_single, single, put_single:
    SAddF32 |a, b, _c, m| mode::add32(a, b, m.round32());
    SSubF32 |a, b, _c, m| mode::add32(a, -b, m.round32());
    SMulF32 |a, b, _c, m| mode::mul32(a, b, m.round32());
    SFmacF32 |a, b, c, m| mode::fma32(a, b, c, m.round32());
    SFmaakF32 |a, b, c, m| mode::fma32(a, b, c, m.round32());
    SFmamkF32 |a, b, c, m| mode::fma32(a, b, c, m.round32());
    SMinNumF32 |a, b, _c, _m| num_min32(a, b);
    SMaxNumF32 |a, b, _c, _m| num_max32(a, b);
    SMinimumF32 |a, b, _c, _m| minimum32(a, b);
    SMaximumF32 |a, b, _c, _m| maximum32(a, b);
    SCeilF32 |a, _b, _c, _m| quieted(a.ceil());
    SFloorF32 |a, _b, _c, _m| quieted(a.floor());
    STruncF32 |a, _b, _c, _m| quieted(a.trunc());
    SRndneF32 |a, _b, _c, _m| quieted(a.round_ties_even());
}

floats! { of_half, half, put_half:
    SAddF16 |a, b, _c, m| mode::add16(a, b, m.round16_64());
    SSubF16 |a, b, _c, m| mode::add16(a, -b, m.round16_64());
    SMulF16 |a, b, _c, m| mode::mul16(a, b, m.round16_64());
    SFmacF16 |a, b, c, m| mode::fma16(a, b, c, m.round16_64());
    SMinNumF16 |a, b, _c, _m| num_min32(a, b);
    SMaxNumF16 |a, b, _c, _m| num_max32(a, b);
    SMinimumF16 |a, b, _c, _m| minimum32(a, b);
    SMaximumF16 |a, b, _c, _m| maximum32(a, b);
    SCeilF16 |a, _b, _c, _m| a.ceil();
    SFloorF16 |a, _b, _c, _m| a.floor();
    STruncF16 |a, _b, _c, _m| a.trunc();
    SRndneF16 |a, _b, _c, _m| a.round_ties_even();
}

macro_rules! handlers {
    ($lookup:ident $($op:ident($w:ident, $i:ident) $body:expr;)*) => {
        fn $lookup(op: Op) -> Option<Run> {
            Some(match op {
                $(Op::$op => {
                    struct Table;
                    impl Handler for Table {
                        fn run($w: &mut Wave, _: &mut Ctx<'_>, $i: &Ins) { $body }
                    }
                    plain::<Table>()
                })*
                _ => return None,
            })
        }
    };
}

handlers! { of_other
    SCvtF32I32(w, i) {
        let x = mode::from_int((w.scalar(&i.a) as i32).into(), w.mode.round32());
        put_single(w, i, x);
    };
    SCvtF32U32(w, i) {
        let x = mode::from_int(w.scalar(&i.a).into(), w.mode.round32());
        put_single(w, i, x);
    };
    SCvtI32F32(w, i) w.set(i.dst, single(w, &i.a) as i32 as u32);
    SCvtU32F32(w, i) w.set(i.dst, single(w, &i.a) as u32);
    SCvtF16F32(w, i) {
        let x = single(w, &i.a);
        put_half(w, i, x);
    };
    SCvtF32F16(w, i) {
        let x = quieted(half(w, &i.a));
        put_single(w, i, x);
    };
    SCvtHiF32F16(w, i) {
        let x = w.mode.input16(half_to_f32((w.scalar(&i.a) >> 16) as u16));
        put_single(w, i, quieted(x));
    };
    SCvtPkRtzF16F32(w, i) {
        let (low, high) = (single(w, &i.a), single(w, &i.b));
        w.set(i.dst, u32::from(f32_to_half_rtz(low)) | u32::from(f32_to_half_rtz(high)) << 16);
    };
    SAddNcU64(w, i) w.set64(i.dst, w.scalar64(&i.a).wrapping_add(w.scalar64(&i.b)));
    SSubNcU64(w, i) w.set64(i.dst, w.scalar64(&i.a).wrapping_sub(w.scalar64(&i.b)));
    SMulU64(w, i) w.set64(i.dst, w.scalar64(&i.a).wrapping_mul(w.scalar64(&i.b)));
}

macro_rules! compares {
    ($($single:ident $half:ident |$a:ident, $b:ident| $body:expr;)*) => {
        handlers! { compare
            $($single(w, i) {
                let ($a, $b) = (single(w, &i.a), single(w, &i.b));
                w.scc = u32::from($body);
            };
            $half(w, i) {
                let ($a, $b) = (half(w, &i.a), half(w, &i.b));
                w.scc = u32::from($body);
            };)*
        }
    };
}

// Negated comparisons are true for NaN, so they are not the opposite ones.
#[allow(clippy::neg_cmp_op_on_partial_ord)]
mod compare {
    use super::*;

    fn less_or_greater(a: f32, b: f32) -> bool {
        a.partial_cmp(&b)
            .is_some_and(|order| order != std::cmp::Ordering::Equal)
    }

    compares! {
        SCmpLtF32 SCmpLtF16 |a, b| a < b;
        SCmpEqF32 SCmpEqF16 |a, b| a == b;
        SCmpLeF32 SCmpLeF16 |a, b| a <= b;
        SCmpGtF32 SCmpGtF16 |a, b| a > b;
        SCmpLgF32 SCmpLgF16 |a, b| less_or_greater(a, b);
        SCmpGeF32 SCmpGeF16 |a, b| a >= b;
        SCmpOF32 SCmpOF16 |a, b| !a.is_nan() && !b.is_nan();
        SCmpUF32 SCmpUF16 |a, b| a.is_nan() || b.is_nan();
        SCmpNgeF32 SCmpNgeF16 |a, b| !(a >= b);
        SCmpNlgF32 SCmpNlgF16 |a, b| !less_or_greater(a, b);
        SCmpNgtF32 SCmpNgtF16 |a, b| !(a > b);
        SCmpNleF32 SCmpNleF16 |a, b| !(a <= b);
        SCmpNeqF32 SCmpNeqF16 |a, b| a != b;
        SCmpNltF32 SCmpNltF16 |a, b| !(a < b);
    }

    pub(super) fn lookup(op: Op) -> Option<Run> {
        compare(op)
    }
}

/// Lowers the operations of this file; `None` for all others.
pub(crate) fn lower(inst: &Inst, code: &mut Code) -> Option<Result<(), Refused>> {
    let run = of_single(inst.op)
        .or_else(|| of_half(inst.op))
        .or_else(|| of_other(inst.op))
        .or_else(|| compare::lookup(inst.op))?;
    Some(operands(inst, run).map(|ins| code.ins.push(ins)))
}

fn operands(inst: &Inst, run: Run) -> Result<Ins, Refused> {
    let dst = sgpr(inst.dst).ok_or("a destination of this kind")?;
    let of = |n: usize| source(inst.src[n], inst.ty.src[n]);
    let accumulates = inst.op.facts().reads.has(Registers::DST);
    Ok(Ins {
        run,
        a: of(0)?,
        b: of(1)?,
        c: match inst.dst {
            Operand::Null | Operand::None => Src::ZERO,
            _ if accumulates => Src::reg(Kind::S, dst),
            _ => of(2)?,
        },
        dst,
        ..NOTHING
    })
}
