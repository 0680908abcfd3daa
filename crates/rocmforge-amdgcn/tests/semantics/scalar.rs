//! Scalar arithmetic, logic, compares and moves: results, and what becomes of `scc` and `exec`.

mod float;

use crate::enc::{self, EXEC, Fields, LITERAL, decode, int};
use crate::harness::Random;
use crate::rig::{Asm, Launch, word};
use crate::valu::{is_modelled, named};
use crate::value::Value;
use rocmforge_isa::{Format, Inst, Op, Operand, Ty};
use std::cmp::Ordering;

/// What an instruction starts from: operands at the width of their type, the destination before, `scc` and `exec`.
#[derive(Debug)]
struct Before {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
    scc: bool,
    exec: u32,
}

/// What it leaves; `None` where it leaves things as they were.
#[derive(Debug, Default)]
struct After {
    dst: Option<u64>,
    /// The result is a float of this type: where it is NaN, any quiet one will do, and within a stated error for some.
    float: Option<Value>,
    scc: Option<bool>,
    exec: Option<u32>,
}

fn to(dst: impl Into<u64>) -> After {
    After {
        dst: Some(dst.into()),
        ..After::default()
    }
}

fn with(dst: impl Into<u64>, scc: bool) -> After {
    After {
        scc: Some(scc),
        ..to(dst)
    }
}

/// `scc` tells whether the result is not zero.
fn nonzero(dst: impl Into<u64>) -> After {
    let dst = dst.into();
    with(dst, dst != 0)
}

fn only(scc: bool) -> After {
    After {
        scc: Some(scc),
        ..After::default()
    }
}

impl Before {
    fn a32(&self) -> u32 {
        self.a as u32
    }
    fn b32(&self) -> u32 {
        self.b as u32
    }
    fn ai(&self) -> i64 {
        i64::from(self.a as i32)
    }
    fn bi(&self) -> i64 {
        i64::from(self.b as i32)
    }
    fn exec64(&self) -> u64 {
        self.exec.into()
    }
    /// Both operands as unsigned numbers.
    fn wide(&self) -> (u64, u64) {
        (self.a, self.b)
    }
}

type Row = (&'static str, fn(&Before) -> After);

fn signed(exact: i64) -> After {
    with(exact as u32, i64::from(exact as i32) != exact)
}

/// A field of `width` bits from `offset` on.
fn field(value: i128, offset: u32, width: u32, signed: bool) -> i128 {
    let field = value >> offset & ((1 << width) - 1);
    if signed && width > 0 && field >> (width - 1) & 1 == 1 {
        field - (1 << width)
    } else {
        field
    }
}

fn bfe32(x: &Before, signed: bool) -> After {
    let value = if signed { i128::from(x.ai()) } else { x.a.into() };
    // A field that reaches past the top has the sign, or zeros, above it.
    let width = (x.b32() >> 16 & 0x7f).min(32);
    nonzero(field(value, x.b32() & 31, width, signed) as u32)
}

fn bfe64(x: &Before, signed: bool) -> After {
    let value = if signed { i128::from(x.a as i64) } else { x.a.into() };
    let width = (x.b32() >> 16 & 0x7f).min(64);
    nonzero(field(value, x.b32() & 63, width, signed) as u64)
}

/// The first position, from the top or the bottom, of a bit that is set; -1 where there is none.
fn position(bits: u32, found: impl Fn(u32) -> bool) -> After {
    to((0..bits).find(|&n| found(n)).map_or(u32::MAX, |n| n))
}

fn shift_add(x: &Before, shift: u32) -> After {
    let sum = (x.a << shift) + x.b;
    with(sum as u32, sum >> 32 != 0)
}

fn count(x: &Before, bits: u32, what: u64) -> After {
    nonzero((0..bits).filter(|n| x.a >> n & 1 == what).count() as u32)
}

/// A bit for each group of four.
fn quads(value: u64, bits: u32) -> u64 {
    (0..bits / 4).fold(0, |all, n| all | u64::from(value >> (4 * n) & 15 != 0) << n)
}

fn whole_quads(value: u64, bits: u32) -> u64 {
    (0..bits).fold(0, |all, n| all | u64::from(value >> (n & !3) & 15 != 0) << n)
}

fn reversed(value: u64, bits: u32) -> u64 {
    (0..bits).fold(0, |all, n| all | (value >> n & 1) << (bits - 1 - n))
}

fn save(x: &Before, exec: u32) -> After {
    After {
        dst: Some(x.exec.into()),
        scc: Some(exec != 0),
        exec: Some(exec),
        ..After::default()
    }
}

/// The same with 64 bits, of which a wave of 32 uses the lower ones; the others start as 0.
fn save64(x: &Before, exec: u64) -> After {
    After {
        dst: Some(x.exec64()),
        ..write64(exec)
    }
}

fn write64(exec: u64) -> After {
    After {
        dst: Some(exec),
        scc: Some(exec != 0),
        exec: Some(exec as u32),
        ..After::default()
    }
}

fn write(exec: u32) -> After {
    After {
        dst: Some(exec.into()),
        scc: Some(exec != 0),
        exec: Some(exec),
        ..After::default()
    }
}

#[rustfmt::skip]
const SOP1: &[Row] = &[
    ("s_mov_b32", |x| to(x.a)),
    ("s_mov_b64", |x| to(x.a)),
    ("s_cmov_b32", |x| if x.scc { to(x.a) } else { After::default() }),
    ("s_cmov_b64", |x| if x.scc { to(x.a) } else { After::default() }),
    ("s_brev_b32", |x| to(reversed(x.a, 32))),
    ("s_brev_b64", |x| to(reversed(x.a, 64))),
    ("s_ctz_i32_b32", |x| position(32, |n| x.a >> n & 1 == 1)),
    ("s_ctz_i32_b64", |x| position(64, |n| x.a >> n & 1 == 1)),
    ("s_clz_i32_u32", |x| position(32, |n| x.a >> (31 - n) & 1 == 1)),
    ("s_clz_i32_u64", |x| position(64, |n| x.a >> (63 - n) & 1 == 1)),
    ("s_cls_i32", |x| position(32, |n| x.a >> (31 - n) & 1 != x.a >> 31 & 1)),
    ("s_cls_i32_i64", |x| position(64, |n| x.a >> (63 - n) & 1 != x.a >> 63)),
    ("s_sext_i32_i8", |x| to(i32::from(x.a as i8) as u32)),
    ("s_sext_i32_i16", |x| to(i32::from(x.a as i16) as u32)),
    ("s_bitset0_b32", |x| to(x.d & !(1 << (x.a & 31)))),
    ("s_bitset1_b32", |x| to(x.d | 1 << (x.a & 31))),
    ("s_bitset0_b64", |x| to(x.d & !(1 << (x.a & 63)))),
    ("s_bitset1_b64", |x| to(x.d | 1 << (x.a & 63))),
    ("s_bitreplicate_b64_b32", |x| to((0..32).fold(0u64, |all, n| all | (x.a >> n & 1) * 3 << (2 * n)))),
    ("s_abs_i32", |x| nonzero(x.ai().unsigned_abs() as u32)),
    ("s_bcnt0_i32_b32", |x| count(x, 32, 0)),
    ("s_bcnt0_i32_b64", |x| count(x, 64, 0)),
    ("s_bcnt1_i32_b32", |x| count(x, 32, 1)),
    ("s_bcnt1_i32_b64", |x| count(x, 64, 1)),
    ("s_quadmask_b32", |x| nonzero(quads(x.a, 32))),
    ("s_quadmask_b64", |x| nonzero(quads(x.a, 64))),
    ("s_wqm_b32", |x| nonzero(whole_quads(x.a, 32))),
    ("s_wqm_b64", |x| nonzero(whole_quads(x.a, 64))),
    ("s_not_b32", |x| nonzero(!x.a32())),
    ("s_not_b64", |x| nonzero(!x.a)),
    ("s_and_saveexec_b32", |x| save(x, x.a32() & x.exec)),
    ("s_or_saveexec_b32", |x| save(x, x.a32() | x.exec)),
    ("s_xor_saveexec_b32", |x| save(x, x.a32() ^ x.exec)),
    ("s_nand_saveexec_b32", |x| save(x, !(x.a32() & x.exec))),
    ("s_nor_saveexec_b32", |x| save(x, !(x.a32() | x.exec))),
    ("s_xnor_saveexec_b32", |x| save(x, !(x.a32() ^ x.exec))),
    ("s_and_not0_saveexec_b32", |x| save(x, !x.a32() & x.exec)),
    ("s_or_not0_saveexec_b32", |x| save(x, !x.a32() | x.exec)),
    ("s_and_not1_saveexec_b32", |x| save(x, x.a32() & !x.exec)),
    ("s_or_not1_saveexec_b32", |x| save(x, x.a32() | !x.exec)),
    ("s_and_not0_wrexec_b32", |x| write(!x.a32() & x.exec)),
    ("s_and_not1_wrexec_b32", |x| write(x.a32() & !x.exec)),
    ("s_and_saveexec_b64", |x| save64(x, x.a & x.exec64())),
    ("s_or_saveexec_b64", |x| save64(x, x.a | x.exec64())),
    ("s_xor_saveexec_b64", |x| save64(x, x.a ^ x.exec64())),
    ("s_nand_saveexec_b64", |x| save64(x, !(x.a & x.exec64()))),
    ("s_nor_saveexec_b64", |x| save64(x, !(x.a | x.exec64()))),
    ("s_xnor_saveexec_b64", |x| save64(x, !(x.a ^ x.exec64()))),
    ("s_and_not0_saveexec_b64", |x| save64(x, !x.a & x.exec64())),
    ("s_or_not0_saveexec_b64", |x| save64(x, !x.a | x.exec64())),
    ("s_and_not1_saveexec_b64", |x| save64(x, x.a & !x.exec64())),
    ("s_or_not1_saveexec_b64", |x| save64(x, x.a | !x.exec64())),
    ("s_and_not0_wrexec_b64", |x| write64(!x.a & x.exec64())),
    ("s_and_not1_wrexec_b64", |x| write64(x.a & !x.exec64())),
];

#[rustfmt::skip]
const SOP2: &[Row] = &[
    ("s_add_u32", |x| with((x.a + x.b) as u32, (x.a + x.b) >> 32 != 0)),
    ("s_sub_u32", |x| with(x.a32().wrapping_sub(x.b32()), x.b > x.a)),
    ("s_add_i32", |x| signed(x.ai() + x.bi())),
    ("s_sub_i32", |x| signed(x.ai() - x.bi())),
    ("s_addc_u32", |x| { let sum = x.a + x.b + u64::from(x.scc); with(sum as u32, sum >> 32 != 0) }),
    ("s_subb_u32", |x| { let take = x.b + u64::from(x.scc); with(x.a.wrapping_sub(take) as u32, take > x.a) }),
    ("s_absdiff_i32", |x| { let d = x.ai().wrapping_sub(x.bi()) as i32; nonzero(d.unsigned_abs()) }),
    ("s_lshl_b32", |x| nonzero(x.a32() << (x.b & 31))),
    ("s_lshl_b64", |x| nonzero(x.a << (x.b & 63))),
    ("s_lshr_b32", |x| nonzero(x.a32() >> (x.b & 31))),
    ("s_lshr_b64", |x| nonzero(x.a >> (x.b & 63))),
    ("s_ashr_i32", |x| nonzero((x.ai() >> (x.b & 31)) as u32)),
    ("s_ashr_i64", |x| nonzero((x.a as i64 >> (x.b & 63)) as u64)),
    ("s_lshl1_add_u32", |x| shift_add(x, 1)),
    ("s_lshl2_add_u32", |x| shift_add(x, 2)),
    ("s_lshl3_add_u32", |x| shift_add(x, 3)),
    ("s_lshl4_add_u32", |x| shift_add(x, 4)),
    ("s_min_i32", |x| with(x.ai().min(x.bi()) as u32, x.ai() < x.bi())),
    ("s_min_u32", |x| with(x.a.min(x.b), x.a < x.b)),
    ("s_max_i32", |x| with(x.ai().max(x.bi()) as u32, x.ai() >= x.bi())),
    ("s_max_u32", |x| with(x.a.max(x.b), x.a >= x.b)),
    ("s_and_b32", |x| nonzero(x.a & x.b)),
    ("s_and_b64", |x| nonzero(x.a & x.b)),
    ("s_or_b32", |x| nonzero(x.a | x.b)),
    ("s_or_b64", |x| nonzero(x.a | x.b)),
    ("s_xor_b32", |x| nonzero(x.a ^ x.b)),
    ("s_xor_b64", |x| nonzero(x.a ^ x.b)),
    ("s_nand_b32", |x| nonzero(!(x.a & x.b) as u32)),
    ("s_nand_b64", |x| nonzero(!(x.a & x.b))),
    ("s_nor_b32", |x| nonzero(!(x.a | x.b) as u32)),
    ("s_nor_b64", |x| nonzero(!(x.a | x.b))),
    ("s_xnor_b32", |x| nonzero(!(x.a ^ x.b) as u32)),
    ("s_xnor_b64", |x| nonzero(!(x.a ^ x.b))),
    ("s_and_not1_b32", |x| nonzero(x.a & !x.b)),
    ("s_and_not1_b64", |x| nonzero(x.a & !x.b)),
    ("s_or_not1_b32", |x| nonzero((x.a | !x.b) as u32)),
    ("s_or_not1_b64", |x| nonzero(x.a | !x.b)),
    ("s_bfe_u32", |x| bfe32(x, false)),
    ("s_bfe_i32", |x| bfe32(x, true)),
    ("s_bfe_u64", |x| bfe64(x, false)),
    ("s_bfe_i64", |x| bfe64(x, true)),
    ("s_bfm_b32", |x| to(((1u64 << (x.a & 31)) - 1 << (x.b & 31)) as u32)),
    ("s_bfm_b64", |x| to(((1u128 << (x.a & 63)) - 1 << (x.b & 63)) as u64)),
    ("s_mul_i32", |x| to((x.ai() * x.bi()) as u32)),
    ("s_mul_hi_u32", |x| { let (a, b) = x.wide(); to(a * b >> 32) }),
    ("s_mul_hi_i32", |x| to((x.ai() * x.bi() >> 32) as u32)),
    ("s_cselect_b32", |x| to(if x.scc { x.a } else { x.b })),
    ("s_cselect_b64", |x| to(if x.scc { x.a } else { x.b })),
    ("s_pack_ll_b32_b16", |x| to(x.a & 0xffff | (x.b & 0xffff) << 16)),
    ("s_pack_lh_b32_b16", |x| to(x.a & 0xffff | (x.b >> 16) << 16)),
    ("s_pack_hh_b32_b16", |x| to(x.a >> 16 | (x.b >> 16) << 16)),
    ("s_pack_hl_b32_b16", |x| to(x.a >> 16 | (x.b & 0xffff) << 16)),
];

#[rustfmt::skip]
const SOPC: &[Row] = &[
    ("s_bitcmp0_b32", |x| only(x.a >> (x.b & 31) & 1 == 0)),
    ("s_bitcmp1_b32", |x| only(x.a >> (x.b & 31) & 1 == 1)),
    ("s_bitcmp0_b64", |x| only(x.a >> (x.b & 63) & 1 == 0)),
    ("s_bitcmp1_b64", |x| only(x.a >> (x.b & 63) & 1 == 1)),
    ("s_cmp_eq_u64", |x| only(x.a == x.b)),
    ("s_cmp_lg_u64", |x| only(x.a != x.b)),
];

/// `d` is the register, `b` the immediate, sign-extended to 64 bits.
#[rustfmt::skip]
const SOPK: &[Row] = &[
    ("s_movk_i32", |x| to(x.b32())),
    ("s_cmovk_i32", |x| if x.scc { to(x.b32()) } else { After::default() }),
    ("s_addk_i32", |x| signed(i64::from(x.d as i32) + x.b as i64)),
    ("s_mulk_i32", |x| to((i64::from(x.d as i32) * x.b as i64) as u32)),
];

type Relation = (&'static str, fn(Ordering) -> bool);

const RELATIONS: [Relation; 6] = [
    ("eq", Ordering::is_eq),
    ("lg", Ordering::is_ne),
    ("gt", Ordering::is_gt),
    ("ge", Ordering::is_ge),
    ("lt", Ordering::is_lt),
    ("le", Ordering::is_le),
];

/// Registers of a case: `a`, `b`, `c` and `d`, each 64 bits. `c` gives `scc` and `exec`; `d` is the destination.
const A: u32 = 20;
const B: u32 = 22;
const C: u32 = 24;
const D: u32 = 26;
const SCC_OUT: u32 = 28;
const EXEC_OUT: u32 = 29;

const EDGES: [u64; 22] = [
    0,
    1,
    2,
    31,
    32,
    33,
    63,
    64,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0xffff_0000,
    0x0010_0004,
    0x0008_001f,
    0x0020_0000,
    0x007f_003f,
    0x0000_8000,
    0x8000_0000_0000_0000,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
    0x0000_0001_0000_0000,
];

fn cases() -> Vec<[u64; 4]> {
    cases_of(&EDGES, 640)
}

/// Every pair of edge values, then random ones.
fn cases_of(edges: &[u64], count: usize) -> Vec<[u64; 4]> {
    let mut random = Random(0x5ca1);
    let mut cases = Vec::new();
    for &a in edges {
        for &b in edges {
            let exec = [0, u32::MAX, random.next() as u32][cases.len() % 3];
            cases.push([a, b, u64::from(exec) << 32 | random.next() & 1, random.next()]);
        }
    }
    while cases.len() < count {
        cases.push(std::array::from_fn(|_| random.next()));
    }
    cases
}

fn lane_write(reg: u32, scalar: u32, lane: u32) -> [u32; 2] {
    let code = enc::code("v_writelane_b32", Format::Vop3);
    enc::vop3(code, reg, [scalar, int(lane as i32), 0], Fields::default())
}

fn lane_read(scalar: u32, reg: u32, lane: u32) -> [u32; 2] {
    let code = enc::code("v_readlane_b32", Format::Vop3);
    enc::vop3(code, scalar, [enc::v(reg), int(lane as i32), 0], Fields::default())
}

/// Runs an instruction over all cases: what it leaves in `D`'s pair or the pair it writes, `scc`, and `exec`.
fn run(words: &[u32], inst: &Inst, cases: &[[u64; 4]]) -> Vec<[u32; 4]> {
    let dst = match inst.dst {
        Operand::Sgpr(reg) => u32::from(reg) & !1,
        _ => D,
    };
    let mut asm = Asm::default();
    asm.prologue(8, 32, 16);
    for lane in 0..32 {
        for reg in 0..8 {
            asm.put(&lane_read(A + reg, 2 + reg, lane));
        }
        // s_and_b32 s30, s24, 1 sets scc.
        asm.put(&[enc::sop2(enc::code("s_and_b32", Format::Sop2), 30, C, int(1))]);
        asm.put(&[enc::sop1(0, EXEC, C + 1), enc::sop1(0, EXEC + 1, int(0))])
            .put(words);
        asm.put(&[enc::sop2(
            enc::code("s_cselect_b32", Format::Sop2),
            SCC_OUT,
            int(1),
            int(0),
        )]);
        asm.put(&[enc::sop1(0, EXEC_OUT, EXEC), enc::sop1(0, EXEC, int(-1))]);
        for (reg, scalar) in [dst, dst + 1, SCC_OUT, EXEC_OUT].into_iter().enumerate() {
            asm.put(&lane_write(20 + reg as u32, scalar, lane));
        }
    }
    asm.store(20, 4, 0);
    let input: Vec<u8> = cases.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let done = Launch {
        words: &asm.0,
        lanes: cases.len(),
        input: &input,
        output: 16 * cases.len(),
        ..Launch::default()
    }
    .run();
    done.output
        .chunks_exact(16)
        .map(|case| [0, 4, 8, 12].map(|at| word(case, at)))
        .collect()
}

fn narrow(value: u64, ty: Ty) -> u64 {
    if ty.regs() == 2 { value } else { value & 0xffff_ffff }
}

/// An operand of a case at the width of its type.
fn operand(case: &[u64; 4], operand: Operand, ty: Ty) -> u64 {
    match operand {
        Operand::Sgpr(reg) => {
            let at = u32::from(reg) - A;
            narrow(case[at as usize / 2] >> (32 * (at & 1)), ty)
        }
        other => narrow(other.constant(ty).unwrap_or(0), ty),
    }
}

fn check(name: &str, model: impl Fn(&Before) -> After) {
    check_over(&cases(), name, model);
}

fn check_over(cases: &[[u64; 4]], name: &str, model: impl Fn(&Before) -> After) {
    let encodings = enc::all().iter().filter(|(e, _)| e.name == name);
    let mut checked = 0;
    for (encoding, _) in encodings {
        let literal = 0x8123_4567;
        let code = encoding.code;
        let forms: Vec<Vec<u32>> = match encoding.format {
            Format::Sop1 => [(D, A), (A, A), (D, int(-9)), (D, int(33)), (D, 242), (D, LITERAL)]
                .map(|(dst, src)| vec![enc::sop1(code, dst, src), literal])
                .to_vec(),
            Format::Sop2 => [
                (D, A, B),
                (A, A, B),
                (B, A, B),
                (D, A, int(-5)),
                (D, int(40), B),
                (D, A, LITERAL),
                (D, LITERAL, B),
            ]
            .map(|(dst, a, b)| vec![enc::sop2(code, dst, a, b), literal])
            .to_vec(),
            Format::Sopc => [(A, B), (A, A), (A, int(-5)), (int(40), B), (A, LITERAL)]
                .map(|(a, b)| vec![enc::sopc(code, a, b), literal])
                .to_vec(),
            // Scalar results of the vector unit (gfx1201).
            Format::Vop3 => [(D, A), (A, A), (D, int(33)), (D, 242), (D, LITERAL)]
                .into_iter()
                .flat_map(|(dst, src)| {
                    let modified = Fields {
                        neg: 1,
                        abs: 1,
                        clamp: true,
                        ..Fields::default()
                    };
                    [Fields::default(), modified].map(|m| {
                        let [first, second] = enc::vop3(code, dst, [src, 0, 0], m);
                        vec![first, second, literal]
                    })
                })
                .collect(),
            Format::Sopk => [0, 1, 0x201, 0x7fff, 0x8000, 0xffff]
                .map(|imm| vec![enc::sopk(code, D, imm)])
                .to_vec(),
            _ => continue,
        };
        for mut words in forms {
            // Some operations do not take a literal or a float.
            let Ok(inst) = decode(&words, 0) else { continue };
            assert_eq!(inst.op, encoding.op);
            words.truncate(inst.size as usize / 4);
            checked += 1;
            compare(&words, &inst, cases, &model);
        }
    }
    assert!(checked > 0 || !is_modelled(name), "{name} has no form");
}

/// The first source after its modifiers, which only scalar results of the vector unit have.
fn modified(inst: &Inst, raw: u64) -> u64 {
    let sign = if inst.ty.src[0].is_half() { 1 << 15 } else { 1 << 31 };
    let raw = if inst.mods.abs & 1 != 0 { raw & !sign } else { raw };
    if inst.mods.neg & 1 != 0 { raw ^ sign } else { raw }
}

fn compare(words: &[u32], inst: &Inst, cases: &[[u64; 4]], model: &impl Fn(&Before) -> After) {
    for (case, ours) in cases.iter().zip(run(words, inst, cases)) {
        let dst = match inst.dst {
            Operand::Sgpr(_) => operand(case, inst.dst, inst.ty.dst),
            // A compare with an immediate reads its register as a source.
            _ => operand(case, inst.src[0], inst.ty.src[0]),
        };
        let old_pair = match inst.dst {
            Operand::Sgpr(reg) => case[(u32::from(reg) - A) as usize / 2],
            _ => case[3],
        };
        let before = Before {
            a: modified(inst, operand(case, inst.src[0], inst.ty.src[0])),
            b: if inst.format == Format::Sopk {
                i64::from(inst.imm) as u64
            } else {
                operand(case, inst.src[1], inst.ty.src[1])
            },
            c: operand(case, inst.src[2], inst.ty.src[2]),
            d: dst,
            scc: case[2] & 1 == 1,
            exec: (case[2] >> 32) as u32,
        };
        let after = model(&before);
        let pair = match after.dst {
            Some(value) if inst.ty.dst.regs() == 2 => value,
            Some(value) => old_pair & !0xffff_ffff | value & 0xffff_ffff,
            None => old_pair,
        };
        let expected = [
            pair as u32,
            (pair >> 32) as u32,
            u32::from(after.scc.unwrap_or(before.scc)),
            after.exec.unwrap_or(before.exec),
        ];
        let ty = if inst.op.mnemonic().ends_with("_f16") {
            Ty::F16
        } else {
            Ty::F32
        };
        let accepted = |value: Value| {
            // Results of half precision have zeros above them.
            let half = matches!((value, ty), (Value::F16(_), _) | (Value::Near { .. }, Ty::F16));
            let zeros = !half || ours[0] >> 16 == 0;
            zeros && value.accepts(ours[0].into(), ty, inst.mods.clamp) && ours[1..] == expected[1..]
        };
        assert!(
            after.float.map_or(ours == expected, accepted),
            "`{inst}` of {before:x?}: {ours:x?}, the model says {after:x?}"
        );
    }
}

#[test]
fn one_source() {
    SOP1.iter().for_each(|(name, model)| check(name, model));
}

#[test]
fn two_sources() {
    SOP2.iter().for_each(|(name, model)| check(name, model));
}

#[test]
fn compares() {
    SOPC.iter().for_each(|(name, model)| check(name, model));
    for (relation, holds) in RELATIONS {
        check(&format!("s_cmp_{relation}_i32"), |x| only(holds(x.ai().cmp(&x.bi()))));
        check(&format!("s_cmp_{relation}_u32"), |x| only(holds(x.a.cmp(&x.b))));
    }
}

#[test]
fn immediates() {
    SOPK.iter().for_each(|(name, model)| check(name, model));
    for (relation, holds) in RELATIONS {
        check(&format!("s_cmpk_{relation}_i32"), |x| {
            only(holds(i64::from(x.d as i32).cmp(&(x.b as i64))))
        });
        check(&format!("s_cmpk_{relation}_u32"), |x| {
            only(holds(x.d.cmp(&(x.b & 0xffff))))
        });
    }
}

/// Registers relative to `m0`: `s[20:21]` and `s[22:23]` hold `a` and `b`, the instruction names `s20` and `m0` is 2.
#[test]
fn relative_registers() {
    let cases = cases();
    let relative = |name: &str, dst: u32, src: u32, m0: u32| {
        let code = enc::code(name, Format::Sop1);
        let words = [enc::sop1(0, enc::M0, LITERAL), m0, enc::sop1(code, dst, src)];
        let stored = Operand::Sgpr(D as u8);
        let mut inst = decode(&words[2..], 0).expect("an instruction");
        inst.dst = stored;
        run(&words, &inst, &cases)
    };
    let check = |name: &str, results: Vec<[u32; 4]>, model: &dyn Fn(&[u64; 4]) -> u64| {
        for (case, ours) in cases.iter().zip(results) {
            let ours = u64::from(ours[0]) | u64::from(ours[1]) << 32;
            assert_eq!(ours, model(case), "{name} of {case:x?}");
        }
    };
    check("s_movrels_b32", relative("s_movrels_b32", D, A, 2), &|c| {
        c[3] & !0xffff_ffff | c[1] & 0xffff_ffff
    });
    check("s_movrels_b64", relative("s_movrels_b64", D, A, 2), &|c| c[1]);
    check("s_movreld_b32", relative("s_movreld_b32", A, B, 6), &|c| {
        c[3] & !0xffff_ffff | c[1] & 0xffff_ffff
    });
    check("s_movreld_b64", relative("s_movreld_b64", A, B, 6), &|c| c[1]);
    if is_modelled("s_movrelsd_2_b32") {
        check(
            "s_movrelsd_2_b32",
            relative("s_movrelsd_2_b32", A, A, 6 << 16 | 2),
            &|c| c[3] & !0xffff_ffff | c[1] & 0xffff_ffff,
        );
    }
}

pub(crate) fn ops() -> Vec<Op> {
    let tables = [SOP1, SOP2, SOPC, SOPK]
        .into_iter()
        .flatten()
        .map(|(name, _)| (*name).to_owned());
    let relations = RELATIONS.into_iter().flat_map(|(relation, _)| {
        ["s_cmp", "s_cmpk"]
            .into_iter()
            .flat_map(move |kind| ["i32", "u32"].map(|ty| format!("{kind}_{relation}_{ty}")))
    });
    let relative = [
        "s_movrels_b32",
        "s_movrels_b64",
        "s_movreld_b32",
        "s_movreld_b64",
        "s_movrelsd_2_b32",
    ];
    tables
        .chain(relations)
        .chain(relative.map(str::to_owned))
        .chain(float::names())
        .filter_map(|name| named(&name))
        .collect()
}
