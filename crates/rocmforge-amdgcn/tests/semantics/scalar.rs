//! Scalar arithmetic: results and what becomes of `scc`.

use crate::harness::{Lane, Random, run};
use rocmforge_amdgcn::decode;

const EDGES: [u32; 16] = [
    0,
    1,
    2,
    31,
    32,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_ffff,
    0xffff_0000,
    0x0010_0004,
    0x0008_001f,
    0x0000_8000,
    0xfff0_0f0f,
    0x4000_0000,
    0x1234_5678,
];

/// Result and `scc` of two operands and the old `scc`.
type Model = fn(u32, u32, u32) -> (u32, u32);

fn flag(value: u32) -> (u32, u32) {
    (value, u32::from(value != 0))
}

fn wide(value: i64) -> (u32, u32) {
    (value as u32, u32::from(i64::from(value as i32) != value))
}

fn bfe(a: u32, b: u32) -> u32 {
    let width = b >> 16 & 0x7f;
    let field = u64::from(a >> (b & 31));
    if width >= 32 {
        field as u32
    } else {
        (field & ((1 << width) - 1)) as u32
    }
}

#[rustfmt::skip]
const MODELS: &[(&str, u32, Model)] = &[
    ("s_add_u32", 0, |a, b, _| (a.wrapping_add(b), ((u64::from(a) + u64::from(b)) >> 32) as u32)),
    ("s_sub_u32", 1, |a, b, _| (a.wrapping_sub(b), u32::from(b > a))),
    ("s_add_i32", 2, |a, b, _| wide(i64::from(a as i32) + i64::from(b as i32))),
    ("s_sub_i32", 3, |a, b, _| wide(i64::from(a as i32) - i64::from(b as i32))),
    ("s_addc_u32", 4, |a, b, c| { let sum = u64::from(a) + u64::from(b) + u64::from(c); (sum as u32, (sum >> 32) as u32) }),
    ("s_subb_u32", 5, |a, b, c| (a.wrapping_sub(b).wrapping_sub(c), u32::from(u64::from(b) + u64::from(c) > u64::from(a)))),
    ("s_absdiff_i32", 6, |a, b, _| flag((a.wrapping_sub(b) as i32).wrapping_abs() as u32)),
    ("s_lshl_b32", 8, |a, b, _| flag(a << (b & 31))),
    ("s_lshr_b32", 10, |a, b, _| flag(a >> (b & 31))),
    ("s_ashr_i32", 12, |a, b, _| flag((a as i32 >> (b & 31)) as u32)),
    ("s_min_i32", 18, |a, b, _| ((a as i32).min(b as i32) as u32, u32::from((a as i32) < b as i32))),
    ("s_min_u32", 19, |a, b, _| (a.min(b), u32::from(a < b))),
    ("s_max_i32", 20, |a, b, _| ((a as i32).max(b as i32) as u32, u32::from(a as i32 >= b as i32))),
    ("s_max_u32", 21, |a, b, _| (a.max(b), u32::from(a >= b))),
    ("s_and_b32", 22, |a, b, _| flag(a & b)),
    ("s_or_b32", 24, |a, b, _| flag(a | b)),
    ("s_xor_b32", 26, |a, b, _| flag(a ^ b)),
    ("s_nand_b32", 28, |a, b, _| flag(!(a & b))),
    ("s_and_not1_b32", 34, |a, b, _| flag(a & !b)),
    ("s_or_not1_b32", 36, |a, b, _| flag(a | !b)),
    ("s_bfe_u32", 38, |a, b, _| flag(bfe(a, b))),
    ("s_mul_i32", 44, |a, b, c| (a.wrapping_mul(b), c)),
    ("s_mul_hi_u32", 45, |a, b, c| (((u64::from(a) * u64::from(b)) >> 32) as u32, c)),
    ("s_mul_hi_i32", 46, |a, b, c| (((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32, c)),
    ("s_cselect_b32", 48, |a, b, c| (if c == 1 { a } else { b }, c)),
];

#[test]
fn operations_of_32_bits_and_their_condition_code() {
    let mut random = Random(0x5ca1);
    let mut pairs: Vec<(u32, u32)> = EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b))).collect();
    pairs.extend((0..256).map(|_| (random.next() as u32, random.next() as u32)));
    let lanes: Vec<Lane> = pairs
        .iter()
        .enumerate()
        .flat_map(|(n, &(a, b))| {
            let lane = Lane {
                a: a.into(),
                b: b.into(),
                c: n as u64 & 1,
                d: 0,
            };
            std::iter::repeat_n(lane, 32)
        })
        .collect();
    for &(name, code, model) in MODELS {
        let op = 0x8000_0000 | code << 23 | 20 << 16 | 21 << 8 | 20;
        let text = decode(&[op], 0).expect("an instruction").to_string();
        assert_eq!(text.split(' ').next(), Some(name));
        let words = [
            // v_readfirstlane_b32 s20, v6; s_cmp_lg_u32 s20, 0
            0x7e28_0506,
            0xbf07_8014,
            // v_readfirstlane_b32 s20, v2; v_readfirstlane_b32 s21, v4
            0x7e28_0502,
            0x7e2a_0504,
            op,
            // s_cselect_b32 vcc_lo, 1, 0; v_mov_b32 v8, s20; v_mov_b32 v9, vcc_lo
            0x986a_8081,
            0x7e10_0214,
            0x7e12_026a,
        ];
        for (lane, ours) in lanes.iter().zip(run("template_kernel", &words, &lanes)) {
            let (value, scc) = model(lane.a as u32, lane.b as u32, lane.c as u32);
            assert_eq!((ours as u32, (ours >> 32) as u32), (value, scc), "{name} of {lane:x?}");
        }
    }
}
