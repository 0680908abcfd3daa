//! Scalar arithmetic.

use crate::exec::code::isa::{Handler, plain};
use crate::exec::code::operands::Refused;
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::Src;
use crate::exec::state::wave::{EXEC, M0, Wave};
use crate::kernarg::{PRIVATE_APERTURE, SHARED_APERTURE};
use rocmforge_isa::{Arch, Op};
use std::marker::PhantomData;

/// A scalar value: 32 or 64 bits.
trait Scalar: Copy {
    fn get(w: &Wave, s: &Src) -> Self;
    fn put(self, w: &mut Wave, reg: u8);
}

impl Scalar for u32 {
    fn get(w: &Wave, s: &Src) -> Self {
        w.scalar(s)
    }
    fn put(self, w: &mut Wave, reg: u8) {
        w.set(reg, self);
    }
}
impl Scalar for i32 {
    fn get(w: &Wave, s: &Src) -> Self {
        w.scalar(s) as i32
    }
    fn put(self, w: &mut Wave, reg: u8) {
        w.set(reg, self as u32);
    }
}
impl Scalar for u64 {
    fn get(w: &Wave, s: &Src) -> Self {
        w.scalar64(s)
    }
    fn put(self, w: &mut Wave, reg: u8) {
        w.set64(reg, self);
    }
}
impl Scalar for i64 {
    fn get(w: &Wave, s: &Src) -> Self {
        w.scalar64(s) as i64
    }
    fn put(self, w: &mut Wave, reg: u8) {
        w.set64(reg, self as u64);
    }
}
impl Scalar for () {
    fn get(_: &Wave, _: &Src) -> Self {}
    fn put(self, _: &mut Wave, _: u8) {}
}

/// What an operation makes of its result: register, and `scc` if it sets it.
trait ScalarOp {
    type A: Scalar;
    type B: Scalar;
    type R: Scalar;
    /// `scc` comes in as it was.
    fn eval(a: Self::A, b: Self::B, scc: &mut u32) -> Self::R;
}

struct Do<O>(PhantomData<O>);

impl<O: ScalarOp> Handler for Do<O> {
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let (a, b) = (O::A::get(w, &i.a), O::B::get(w, &i.b));
        let mut scc = w.scc;
        let r = O::eval(a, b, &mut scc);
        w.scc = scc;
        r.put(w, i.dst);
    }
}

/// Tells `scc` whether the result is not zero, and passes it on.
fn nonzero<T: PartialEq + Default>(value: T, scc: &mut u32) -> T {
    *scc = u32::from(value != T::default());
    value
}

fn field32(shift_width: u32) -> (u32, u32) {
    (shift_width & 31, shift_width >> 16 & 0x7F)
}

fn bfe<const SIGNED: bool>(a: i64, shift: u32, width: u32, bits: u32) -> i64 {
    let width = width.min(bits);
    if width == 0 {
        return 0;
    }
    let shifted = a >> shift.min(63);
    let up = 64 - width;
    if SIGNED {
        shifted << up >> up
    } else {
        ((shifted as u64) << up >> up) as i64
    }
}

fn sign_count(x: u64, bits: u32) -> i32 {
    // `x` is sign-extended to 64 bits.
    let n = (x ^ (x as i64 >> 63) as u64).leading_zeros() - (64 - bits);
    if n == bits { -1 } else { n as i32 }
}

fn any_in_quads(x: u64) -> u64 {
    (0..16).fold(0, |out, q| out | u64::from(x >> (4 * q) & 15 != 0) << q)
}

fn whole_quads(x: u64) -> u64 {
    (0..16).fold(0, |out, q| out | if x >> (4 * q) & 15 != 0 { 15 << (4 * q) } else { 0 })
}

fn spread_bits(x: u32) -> u64 {
    (0..32).fold(0, |out, n| out | u64::from(x >> n & 1) * 3 << (2 * n))
}

macro_rules! scalar_ops {
    ($($op:ident ($a:ident : $ta:ty, $b:ident : $tb:ty, $scc:ident) -> $ret:ty $body:block)*) => {
        /// The handler of an operation of this table.
        pub(crate) fn lookup(op: Op) -> Option<Run> {
            match op {
                $(Op::$op => {
                    struct Table;
                    impl ScalarOp for Table {
                        type A = $ta;
                        type B = $tb;
                        type R = $ret;
                        fn eval($a: $ta, $b: $tb, $scc: &mut u32) -> $ret $body
                    }
                    Some(plain::<Do<Table>>())
                })*
                _ => special(op),
            }
        }
    };
}

scalar_ops! {
    SMovB32(a: u32, _b: (), _s) -> u32 { a }
    SMovB64(a: u64, _b: (), _s) -> u64 { a }
    SNotB32(a: u32, _b: (), scc) -> u32 { nonzero(!a, scc) }
    SNotB64(a: u64, _b: (), scc) -> u64 { nonzero(!a, scc) }
    SBrevB32(a: u32, _b: (), _s) -> u32 { a.reverse_bits() }
    SBrevB64(a: u64, _b: (), _s) -> u64 { a.reverse_bits() }
    SCtzI32B32(a: u32, _b: (), _s) -> u32 { if a == 0 { u32::MAX } else { a.trailing_zeros() } }
    SCtzI32B64(a: u64, _b: (), _s) -> u32 { if a == 0 { u32::MAX } else { a.trailing_zeros() } }
    SClzI32U32(a: u32, _b: (), _s) -> u32 { if a == 0 { u32::MAX } else { a.leading_zeros() } }
    SClzI32U64(a: u64, _b: (), _s) -> u32 { if a == 0 { u32::MAX } else { a.leading_zeros() } }
    SClsI32(a: i32, _b: (), _s) -> i32 { sign_count(i64::from(a) as u64, 32) }
    SClsI32I64(a: u64, _b: (), _s) -> i32 { sign_count(a, 64) }
    SSextI32I8(a: u32, _b: (), _s) -> i32 { i32::from(a as i8) }
    SSextI32I16(a: u32, _b: (), _s) -> i32 { i32::from(a as i16) }
    SBitreplicateB64B32(a: u32, _b: (), _s) -> u64 { spread_bits(a) }
    SAbsI32(a: i32, _b: (), scc) -> i32 { nonzero(a.wrapping_abs(), scc) }
    SBcnt0I32B32(a: u32, _b: (), scc) -> u32 { nonzero(a.count_zeros(), scc) }
    SBcnt0I32B64(a: u64, _b: (), scc) -> u32 { nonzero(a.count_zeros(), scc) }
    SBcnt1I32B32(a: u32, _b: (), scc) -> u32 { nonzero(a.count_ones(), scc) }
    SBcnt1I32B64(a: u64, _b: (), scc) -> u32 { nonzero(a.count_ones(), scc) }
    SQuadmaskB32(a: u32, _b: (), scc) -> u32 { nonzero(any_in_quads(a.into()) as u32, scc) }
    SQuadmaskB64(a: u64, _b: (), scc) -> u64 { nonzero(any_in_quads(a), scc) }
    SWqmB32(a: u32, _b: (), scc) -> u32 { nonzero(whole_quads(a.into()) as u32, scc) }
    SWqmB64(a: u64, _b: (), scc) -> u64 { nonzero(whole_quads(a), scc) }
    SAddU32(a: u32, b: u32, scc) -> u32 {
        let (sum, carry) = a.overflowing_add(b);
        *scc = carry.into();
        sum
    }
    SSubU32(a: u32, b: u32, scc) -> u32 {
        let (rest, borrow) = a.overflowing_sub(b);
        *scc = borrow.into();
        rest
    }
    SAddI32(a: i32, b: i32, scc) -> i32 {
        let (sum, overflow) = a.overflowing_add(b);
        *scc = overflow.into();
        sum
    }
    SSubI32(a: i32, b: i32, scc) -> i32 {
        let (rest, overflow) = a.overflowing_sub(b);
        *scc = overflow.into();
        rest
    }
    SAddkI32(a: i32, b: i32, scc) -> i32 {
        let (sum, overflow) = a.overflowing_add(b);
        *scc = overflow.into();
        sum
    }
    SMulkI32(a: i32, b: i32, _s) -> i32 { a.wrapping_mul(b) }
    SMovkI32(_a: (), b: u32, _s) -> u32 { b }
    SAddcU32(a: u32, b: u32, scc) -> u32 {
        let sum = u64::from(a) + u64::from(b) + u64::from(*scc);
        *scc = (sum >> 32) as u32;
        sum as u32
    }
    SSubbU32(a: u32, b: u32, scc) -> u32 {
        let take = u64::from(b) + u64::from(*scc);
        *scc = u32::from(take > u64::from(a));
        u64::from(a).wrapping_sub(take) as u32
    }
    SAbsdiffI32(a: i32, b: i32, scc) -> i32 { nonzero(a.wrapping_sub(b).wrapping_abs(), scc) }
    SLshlB32(a: u32, b: u32, scc) -> u32 { nonzero(a << (b & 31), scc) }
    SLshlB64(a: u64, b: u32, scc) -> u64 { nonzero(a << (b & 63), scc) }
    SLshrB32(a: u32, b: u32, scc) -> u32 { nonzero(a >> (b & 31), scc) }
    SLshrB64(a: u64, b: u32, scc) -> u64 { nonzero(a >> (b & 63), scc) }
    SAshrI32(a: i32, b: u32, scc) -> i32 { nonzero(a >> (b & 31), scc) }
    SAshrI64(a: i64, b: u32, scc) -> i64 { nonzero(a >> (b & 63), scc) }
    SLshl1AddU32(a: u32, b: u32, scc) -> u32 { shift_add(a, b, 1, scc) }
    SLshl2AddU32(a: u32, b: u32, scc) -> u32 { shift_add(a, b, 2, scc) }
    SLshl3AddU32(a: u32, b: u32, scc) -> u32 { shift_add(a, b, 3, scc) }
    SLshl4AddU32(a: u32, b: u32, scc) -> u32 { shift_add(a, b, 4, scc) }
    SMinI32(a: i32, b: i32, scc) -> i32 { *scc = u32::from(a < b); a.min(b) }
    SMinU32(a: u32, b: u32, scc) -> u32 { *scc = u32::from(a < b); a.min(b) }
    SMaxI32(a: i32, b: i32, scc) -> i32 { *scc = u32::from(a >= b); a.max(b) }
    SMaxU32(a: u32, b: u32, scc) -> u32 { *scc = u32::from(a >= b); a.max(b) }
    SAndB32(a: u32, b: u32, scc) -> u32 { nonzero(a & b, scc) }
    SAndB64(a: u64, b: u64, scc) -> u64 { nonzero(a & b, scc) }
    SOrB32(a: u32, b: u32, scc) -> u32 { nonzero(a | b, scc) }
    SOrB64(a: u64, b: u64, scc) -> u64 { nonzero(a | b, scc) }
    SXorB32(a: u32, b: u32, scc) -> u32 { nonzero(a ^ b, scc) }
    SXorB64(a: u64, b: u64, scc) -> u64 { nonzero(a ^ b, scc) }
    SNandB32(a: u32, b: u32, scc) -> u32 { nonzero(!(a & b), scc) }
    SNandB64(a: u64, b: u64, scc) -> u64 { nonzero(!(a & b), scc) }
    SNorB32(a: u32, b: u32, scc) -> u32 { nonzero(!(a | b), scc) }
    SNorB64(a: u64, b: u64, scc) -> u64 { nonzero(!(a | b), scc) }
    SXnorB32(a: u32, b: u32, scc) -> u32 { nonzero(!(a ^ b), scc) }
    SXnorB64(a: u64, b: u64, scc) -> u64 { nonzero(!(a ^ b), scc) }
    SAndNot1B32(a: u32, b: u32, scc) -> u32 { nonzero(a & !b, scc) }
    SAndNot1B64(a: u64, b: u64, scc) -> u64 { nonzero(a & !b, scc) }
    SOrNot1B32(a: u32, b: u32, scc) -> u32 { nonzero(a | !b, scc) }
    SOrNot1B64(a: u64, b: u64, scc) -> u64 { nonzero(a | !b, scc) }
    SBfeU32(a: u32, b: u32, scc) -> u32 {
        let (shift, width) = field32(b);
        nonzero(bfe::<false>(a.into(), shift, width, 32) as u32, scc)
    }
    SBfeI32(a: i32, b: u32, scc) -> i32 {
        let (shift, width) = field32(b);
        nonzero(bfe::<true>(a.into(), shift, width, 32) as i32, scc)
    }
    SBfeU64(a: i64, b: u32, scc) -> i64 {
        // Unsigned: what is shifted in must be zeros.
        let shifted = (a as u64 >> (b & 63)) as i64;
        nonzero(bfe::<false>(shifted, 0, b >> 16 & 0x7F, 64), scc)
    }
    SBfeI64(a: i64, b: u32, scc) -> i64 { nonzero(bfe::<true>(a, b & 63, b >> 16 & 0x7F, 64), scc) }
    SBfmB32(a: u32, b: u32, _s) -> u32 { (1u32 << (a & 31)).wrapping_sub(1) << (b & 31) }
    SBfmB64(a: u32, b: u32, _s) -> u64 { (1u64 << (a & 63)).wrapping_sub(1) << (b & 63) }
    SMulI32(a: i32, b: i32, _s) -> i32 { a.wrapping_mul(b) }
    SMulHiU32(a: u32, b: u32, _s) -> u32 { ((u64::from(a) * u64::from(b)) >> 32) as u32 }
    SMulHiI32(a: i32, b: i32, _s) -> i32 { ((i64::from(a) * i64::from(b)) >> 32) as i32 }
    SCselectB32(a: u32, b: u32, scc) -> u32 { if *scc != 0 { a } else { b } }
    SCselectB64(a: u64, b: u64, scc) -> u64 { if *scc != 0 { a } else { b } }
    SPackLlB32B16(a: u32, b: u32, _s) -> u32 { a & 0xFFFF | b << 16 }
    SPackLhB32B16(a: u32, b: u32, _s) -> u32 { a & 0xFFFF | b & 0xFFFF_0000 }
    SPackHhB32B16(a: u32, b: u32, _s) -> u32 { a >> 16 | b & 0xFFFF_0000 }
    SPackHlB32B16(a: u32, b: u32, _s) -> u32 { a >> 16 | b << 16 }
    SCmpEqI32(a: i32, b: i32, scc) -> () { *scc = (a == b).into(); }
    SCmpLgI32(a: i32, b: i32, scc) -> () { *scc = (a != b).into(); }
    SCmpGtI32(a: i32, b: i32, scc) -> () { *scc = (a > b).into(); }
    SCmpGeI32(a: i32, b: i32, scc) -> () { *scc = (a >= b).into(); }
    SCmpLtI32(a: i32, b: i32, scc) -> () { *scc = (a < b).into(); }
    SCmpLeI32(a: i32, b: i32, scc) -> () { *scc = (a <= b).into(); }
    SCmpEqU32(a: u32, b: u32, scc) -> () { *scc = (a == b).into(); }
    SCmpLgU32(a: u32, b: u32, scc) -> () { *scc = (a != b).into(); }
    SCmpGtU32(a: u32, b: u32, scc) -> () { *scc = (a > b).into(); }
    SCmpGeU32(a: u32, b: u32, scc) -> () { *scc = (a >= b).into(); }
    SCmpLtU32(a: u32, b: u32, scc) -> () { *scc = (a < b).into(); }
    SCmpLeU32(a: u32, b: u32, scc) -> () { *scc = (a <= b).into(); }
    SCmpEqU64(a: u64, b: u64, scc) -> () { *scc = (a == b).into(); }
    SCmpLgU64(a: u64, b: u64, scc) -> () { *scc = (a != b).into(); }
    SCmpkEqI32(a: i32, b: i32, scc) -> () { *scc = (a == b).into(); }
    SCmpkLgI32(a: i32, b: i32, scc) -> () { *scc = (a != b).into(); }
    SCmpkGtI32(a: i32, b: i32, scc) -> () { *scc = (a > b).into(); }
    SCmpkGeI32(a: i32, b: i32, scc) -> () { *scc = (a >= b).into(); }
    SCmpkLtI32(a: i32, b: i32, scc) -> () { *scc = (a < b).into(); }
    SCmpkLeI32(a: i32, b: i32, scc) -> () { *scc = (a <= b).into(); }
    SCmpkEqU32(a: u32, b: u32, scc) -> () { *scc = (a == b & 0xFFFF).into(); }
    SCmpkLgU32(a: u32, b: u32, scc) -> () { *scc = (a != b & 0xFFFF).into(); }
    SCmpkGtU32(a: u32, b: u32, scc) -> () { *scc = (a > b & 0xFFFF).into(); }
    SCmpkGeU32(a: u32, b: u32, scc) -> () { *scc = (a >= b & 0xFFFF).into(); }
    SCmpkLtU32(a: u32, b: u32, scc) -> () { *scc = (a < b & 0xFFFF).into(); }
    SCmpkLeU32(a: u32, b: u32, scc) -> () { *scc = (a <= b & 0xFFFF).into(); }
    SBitcmp0B32(a: u32, b: u32, scc) -> () { *scc = !(a >> (b & 31)) & 1; }
    SBitcmp1B32(a: u32, b: u32, scc) -> () { *scc = a >> (b & 31) & 1; }
    SBitcmp0B64(a: u64, b: u32, scc) -> () { *scc = !(a >> (b & 63)) as u32 & 1; }
    SBitcmp1B64(a: u64, b: u32, scc) -> () { *scc = (a >> (b & 63)) as u32 & 1; }
}

fn shift_add(a: u32, b: u32, shift: u32, scc: &mut u32) -> u32 {
    let sum = (u64::from(a) << shift) + u64::from(b);
    *scc = u32::from(sum >> 32 != 0);
    sum as u32
}

/// `s_*_saveexec_*` and `s_*_wrexec_*`: new `exec` from source and old `exec`. The upper half of `exec` is a register like
/// any other in a wave of 32.
trait ExecOp {
    /// Whether the old `exec` goes to the destination (else the new one).
    const SAVE: bool;
    fn eval(source: u64, exec: u64) -> u64;
}

struct SaveExec<O, const WIDE: bool>(PhantomData<O>);

impl<O: ExecOp, const WIDE: bool> Handler for SaveExec<O, WIDE> {
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        if WIDE {
            let (source, old) = (w.scalar64(&i.a), u64::from(w.s[EXEC]) | u64::from(w.s[EXEC + 1]) << 32);
            let new = O::eval(source, old);
            w.set64(i.dst, if O::SAVE { old } else { new });
            w.set64(EXEC as u8, new);
            w.scc = u32::from(new != 0);
        } else {
            let (source, old) = (w.scalar(&i.a), w.s[EXEC]);
            let new = O::eval(source.into(), old.into()) as u32;
            w.set(i.dst, if O::SAVE { old } else { new });
            w.s[EXEC] = new;
            w.scc = u32::from(new != 0);
        }
    }
}

macro_rules! exec_ops {
    ($($op:ident $wide:ident $save:literal ($s:ident, $e:ident) $body:expr;)*) => {
        fn exec_op(op: Op) -> Option<Run> {
            match op {
                $(Op::$op | Op::$wide => {
                    struct Table;
                    impl ExecOp for Table {
                        const SAVE: bool = $save;
                        fn eval($s: u64, $e: u64) -> u64 { $body }
                    }
                    Some(if op == Op::$wide {
                        plain::<SaveExec<Table, true>>()
                    } else {
                        plain::<SaveExec<Table, false>>()
                    })
                })*
                _ => None,
            }
        }
    };
}

exec_ops! {
    SAndSaveexecB32 SAndSaveexecB64 true (s, e) s & e;
    SOrSaveexecB32 SOrSaveexecB64 true (s, e) s | e;
    SXorSaveexecB32 SXorSaveexecB64 true (s, e) s ^ e;
    SNandSaveexecB32 SNandSaveexecB64 true (s, e) !(s & e);
    SNorSaveexecB32 SNorSaveexecB64 true (s, e) !(s | e);
    SXnorSaveexecB32 SXnorSaveexecB64 true (s, e) !(s ^ e);
    SAndNot0SaveexecB32 SAndNot0SaveexecB64 true (s, e) !s & e;
    SOrNot0SaveexecB32 SOrNot0SaveexecB64 true (s, e) !s | e;
    SAndNot1SaveexecB32 SAndNot1SaveexecB64 true (s, e) s & !e;
    SOrNot1SaveexecB32 SOrNot1SaveexecB64 true (s, e) s | !e;
    SAndNot0WrexecB32 SAndNot0WrexecB64 false (s, e) !s & e;
    SAndNot1WrexecB32 SAndNot1WrexecB64 false (s, e) s & !e;
}

/// A hardware register whose value is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Hardware {
    Mode,
    /// Of its bits `scc`, `execz` and `vccz`.
    Status,
    Apertures,
    /// Where the wave is: all are on the first compute unit, in the slot of their number.
    Place,
    Cycles,
    CyclesHigh,
}

/// Hardware registers that can be written, by number.
pub(crate) const MODE: u16 = 1;
pub(crate) const TRAPSTS: u16 = 3;

/// What the status register has beside what the trap handler and the graphics pipeline set.
const STATUS: u32 = 1 | 1 << 9 | 1 << 10;

/// The hardware register of a number, of which some bits are read.
pub(crate) fn hardware(arch: Arch, id: u16, bits: u32) -> Result<Hardware, Refused> {
    match (arch, id) {
        (_, MODE) => Ok(Hardware::Mode),
        (Arch::Gfx1100, 2) if bits & !STATUS == 0 => Ok(Hardware::Status),
        (Arch::Gfx1100, 2) => Err("bits of the status register beside scc, execz and vccz"),
        (Arch::Gfx1100, TRAPSTS) => Err("a record of the exceptions that have been seen"),
        (Arch::Gfx1100, 15) => Ok(Hardware::Apertures),
        (_, 23) => Ok(Hardware::Place),
        (_, 24) => Err("numbers of hardware queues and of processes"),
        (_, 29) => Ok(Hardware::Cycles),
        (Arch::Gfx1201, 30) => Ok(Hardware::CyclesHigh),
        _ => Err("a hardware register without a value here"),
    }
}

/// A field of `width` bits, as `Ins::imm` holds it: offset, and width from bit 8 on.
fn field(imm: i32) -> (u32, u32) {
    let width = imm as u32 >> 8;
    (imm as u32 & 31, u32::MAX >> (32 - width.clamp(1, 32)))
}

/// Reads a field of a hardware register.
fn get(w: &mut Wave, i: &Ins, register: u32) {
    let (offset, mask) = field(i.imm);
    w.set(i.dst, register >> offset & mask);
}

macro_rules! handlers {
    ($($(#[$doc:meta])* $name:ident($w:ident, $i:ident) $body:block)*) => {$(
        $(#[$doc])*
        pub(crate) struct $name;
        impl Handler for $name {
            fn run($w: &mut Wave, _: &mut Ctx<'_>, $i: &Ins) $body
        }
    )*};
}

handlers! {
    Cmov32(w, i) { if w.scc != 0 { let a = w.scalar(&i.a); w.set(i.dst, a); } }
    Cmov64(w, i) { if w.scc != 0 { let a = w.scalar64(&i.a); w.set64(i.dst, a); } }
    Cmovk(w, i) { if w.scc != 0 { let b = w.scalar(&i.b); w.set(i.dst, b); } }
    Bitset0B32(w, i) { let v = w.s[i.dst as usize & 127] & !(1 << (w.scalar(&i.a) & 31)); w.set(i.dst, v); }
    Bitset1B32(w, i) { let v = w.s[i.dst as usize & 127] | 1 << (w.scalar(&i.a) & 31); w.set(i.dst, v); }
    Bitset0B64(w, i) {
        let v = w.scalar64(&Src::reg(crate::exec::state::fields::Kind::S, i.dst)) & !(1 << (w.scalar(&i.a) & 63));
        w.set64(i.dst, v);
    }
    Bitset1B64(w, i) {
        let v = w.scalar64(&Src::reg(crate::exec::state::fields::Kind::S, i.dst)) | 1 << (w.scalar(&i.a) & 63);
        w.set64(i.dst, v);
    }
    /// Writes a field of the floating-point mode.
    SetMode(w, i) {
        let (offset, mask) = field(i.imm);
        let value = w.scalar(&i.a);
        w.mode.0 = w.mode.0 & !(mask << offset) | (value & mask) << offset;
    }
    GetMode(w, i) { get(w, i, w.mode.0); }
    GetStatus(w, i) { get(w, i, w.scc | u32::from(w.execz()) << 9 | u32::from(w.vccz()) << 10); }
    GetApertures(w, i) { get(w, i, (PRIVATE_APERTURE >> 16) | SHARED_APERTURE & 0xFFFF_0000); }
    GetPlace(w, i) { get(w, i, w.index & 31); }
    /// Writes a constant, to one register or to two.
    Set32(w, i) { let a = w.scalar(&i.a); w.set(i.dst, a); }
    Set64(w, i) { let a = w.scalar64(&i.a); w.set64(i.dst, a); }
    MovRelSD2(w, i) {
        let m0 = w.s[M0];
        let v = w.s[(u32::from(i.a.reg) + (m0 & 0x3FF)) as usize & 127];
        w.set(((u32::from(i.dst) + (m0 >> 16 & 0x3FF)) & 127) as u8, v);
    }
    MovRelS32(w, i) { let v = w.s[(u32::from(i.a.reg).wrapping_add(w.s[M0]) & 127) as usize]; w.set(i.dst, v); }
    MovRelS64(w, i) {
        let at = (u32::from(i.a.reg).wrapping_add(w.s[M0]) & 127) as u8;
        let v = w.scalar64(&Src::reg(crate::exec::state::fields::Kind::S, at));
        w.set64(i.dst, v);
    }
    MovRelD32(w, i) { let v = w.scalar(&i.a); w.set((u32::from(i.dst).wrapping_add(w.s[M0]) & 127) as u8, v); }
    MovRelD64(w, i) { let v = w.scalar64(&i.a); w.set64((u32::from(i.dst).wrapping_add(w.s[M0]) & 127) as u8, v); }
}

fn special(op: Op) -> Option<Run> {
    Some(match op {
        Op::SCmovB32 => plain::<Cmov32>(),
        Op::SCmovB64 => plain::<Cmov64>(),
        Op::SCmovkI32 => plain::<Cmovk>(),
        Op::SBitset0B32 => plain::<Bitset0B32>(),
        Op::SBitset1B32 => plain::<Bitset1B32>(),
        Op::SBitset0B64 => plain::<Bitset0B64>(),
        Op::SBitset1B64 => plain::<Bitset1B64>(),
        Op::SMovrelsd2B32 => plain::<MovRelSD2>(),
        Op::SMovrelsB32 => plain::<MovRelS32>(),
        Op::SMovrelsB64 => plain::<MovRelS64>(),
        Op::SMovreldB32 => plain::<MovRelD32>(),
        Op::SMovreldB64 => plain::<MovRelD64>(),
        _ => return exec_op(op),
    })
}
