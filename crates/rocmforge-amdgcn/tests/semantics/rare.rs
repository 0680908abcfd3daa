//! Operations that the common engine does not cover: results of four registers, bfloat16 sums, permuted compares into `exec`.

use crate::harness::{lanes, run, vop3};
use crate::valu::named;
use rocmforge_isa::Op;

#[test]
fn sums_of_absolute_differences_into_four_registers() {
    let sad = |a: u32, b: u32| -> u32 {
        let (a, b) = (a.to_le_bytes(), b.to_le_bytes());
        (0..4)
            .filter(|&n| b[n] != 0)
            .map(|n| u32::from(a[n].abs_diff(b[n])))
            .sum()
    };
    // v_mqsad_u32_u8 v[8:11], v[2:3], v4, v[4:7]: the accumulator is b in two registers, then c in two.
    let words = [0xd63d_0008, 0x0412_0902];
    let lanes = lanes(true);
    for (lane, ours) in lanes.iter().zip(run("template_kernel", &words, &lanes)) {
        let sum = |n: u32| (lane.b >> (32 * n)) as u32;
        let expected: [u32; 2] = [0, 1].map(|n| sum(n).wrapping_add(sad((lane.a >> (8 * n)) as u32, lane.b as u32)));
        assert_eq!([ours as u32, (ours >> 32) as u32], expected, "{lane:x?}");
    }
}

#[test]
fn dot_products_of_halves() {
    use half::{bf16, f16};
    // Small whole numbers, for which every order of rounding gives the same.
    let mut lanes = lanes(false);
    for (n, lane) in lanes.iter_mut().enumerate() {
        let n = n as i64;
        let pair = |bits: fn(f32) -> u16, x: i64, y: i64| u64::from(bits(x as f32)) | u64::from(bits(y as f32)) << 16;
        let bits: fn(f32) -> u16 = if n % 2 == 0 {
            |x| f16::from_f32(x).to_bits()
        } else {
            |x| bf16::from_f32(x).to_bits()
        };
        lane.a = pair(bits, n % 7 - 3, n % 5);
        lane.b = pair(bits, n % 3 - 1, n % 11 - 5);
        lane.c = pair(bits, n % 13, 99);
    }
    let value = |n: i64| ((n % 7 - 3) * (n % 3 - 1) + (n % 5) * (n % 11 - 5) + n % 13) as f32;
    for (start, code) in [(0, 0x266), (1, 0x267)] {
        let ours = run("template_kernel", &vop3(code, 3), &lanes);
        for n in (start..lanes.len()).step_by(2) {
            let expected = if start == 0 {
                f16::from_f32(value(n as i64)).to_bits()
            } else {
                bf16::from_f32(value(n as i64)).to_bits()
            };
            assert_eq!(
                ours[n],
                lanes[n].d & !0xffff | u64::from(expected),
                "lane {n} of {code:#x}"
            );
        }
    }
}

#[test]
fn a_compare_of_permuted_lanes_narrows_exec() {
    // v_cmpx_lt_u32 v2, v4 quad_perm:[1,0,3,2] bank_mask:0x5; v_mov_b32 v8, 7; s_mov_b32 exec_lo, -1
    for words in [
        &[0x7d92_08fa, 0xf500_b102, 0x7e10_0287, 0xbefe_00c1][..],
        &[0xd4c9_007e, 0x0002_08fa, 0xf500_b102, 0x7e10_0287, 0xbefe_00c1],
    ] {
        let lanes = lanes(false);
        let ours = run("template_kernel", words, &lanes);
        for (n, lane) in lanes.iter().enumerate() {
            let bank_on = (n / 4) % 2 == 0;
            let passes = bank_on && (lanes[n ^ 1].a as u32) < lane.b as u32;
            let expected = if passes { lane.d & !0xffff_ffff | 7 } else { lane.d };
            assert_eq!(ours[n], expected, "lane {n}");
        }
    }
}

pub(crate) fn ops() -> Vec<Op> {
    ["v_mqsad_u32_u8", "v_dot2_f16_f16", "v_dot2_bf16_bf16"]
        .into_iter()
        .filter_map(named)
        .collect()
}
