//! Operations that compilers seldom emit: cube maps, sums of differences, saturating dot products, DPP compares.

use crate::harness::{As, Lane, check, lanes, low, run, vop3};

fn f32s(lane: &Lane) -> [f32; 3] {
    [lane.a, lane.b, lane.c].map(|bits| f32::from_bits(bits as u32))
}

fn bytes(x: u32) -> [i64; 4] {
    x.to_le_bytes().map(i64::from)
}

fn packed(code: u32, neg: u32, clamp: bool) -> [u32; 2] {
    let [_, second] = vop3(0, 3);
    [
        0xcc00_4008 | code << 16 | u32::from(clamp) << 15,
        second | neg << 29 | 0x1800_0000,
    ]
}

#[test]
fn cube_maps() {
    // Largest axis (ties to z, then y), then the table of faces: id, s, t.
    let face = |x: f32, y: f32, z: f32| {
        if z.abs() >= x.abs() && z.abs() >= y.abs() {
            if z < 0.0 { (5.0, z, -x, -y) } else { (4.0, z, x, -y) }
        } else if y.abs() >= x.abs() {
            if y < 0.0 { (3.0, y, x, -z) } else { (2.0, y, x, z) }
        } else if x < 0.0 {
            (1.0, x, z, -y)
        } else {
            (0.0, x, -z, -y)
        }
    };
    let model = |pick: fn((f32, f32, f32, f32)) -> f32| {
        move |l: &Lane| {
            let [x, y, z] = f32s(l);
            if [x, y, z].iter().any(|x| x.is_nan()) {
                return None;
            }
            low(l, pick(face(x, y, z)).to_bits())
        }
    };
    check("v_cubeid_f32", &vop3(0x20c, 3), false, As::F32, model(|f| f.0));
    check("v_cubema_f32", &vop3(0x20f, 3), false, As::F32, model(|f| 2.0 * f.1));
    check("v_cubesc_f32", &vop3(0x20d, 3), false, As::F32, model(|f| f.2));
    check("v_cubetc_f32", &vop3(0x20e, 3), false, As::F32, model(|f| f.3));
    check("v_mullit_f32", &vop3(0x218, 3), false, As::F32, |l| {
        let [a, b, c] = f32s(l);
        let dark = b == -f32::MAX || b == f32::NEG_INFINITY || b.is_nan() || c <= 0.0 || c.is_nan();
        low(l, if dark { -f32::MAX } else { a * b }.to_bits())
    });
}

#[test]
fn sums_of_absolute_differences() {
    let sad = |a: u32, b: u32, masked: bool| -> u32 {
        let (a, b) = (bytes(a), bytes(b));
        (0..4)
            .filter(|&n| !masked || b[n] != 0)
            .map(|n| a[n].abs_diff(b[n]) as u32)
            .sum()
    };
    for (name, code, masked) in [("v_qsad_pk_u16_u8", 0x23a, false), ("v_mqsad_pk_u16_u8", 0x23b, true)] {
        check(name, &vop3(code, 3), true, As::Bits, |l| {
            let sums: [u16; 4] = std::array::from_fn(|n| {
                let old = (l.c >> (16 * n)) as u16;
                old.wrapping_add(sad((l.a >> (8 * n)) as u32, l.b as u32, masked) as u16)
            });
            Some(sums.iter().rev().fold(0, |x, &s| x << 16 | u64::from(s)))
        });
    }
    // v_mqsad_u32_u8 v[8:11], v[2:3], v4, v[4:7]: the accumulator is b in two registers, then c in two.
    let words = [0xd63d_0008, 0x0412_0902];
    let lanes = lanes(true);
    for (lane, ours) in lanes.iter().zip(run("template_kernel", &words, &lanes)) {
        let sum = |n: u32| (lane.b >> (32 * n)) as u32;
        let expected: [u32; 2] =
            [0, 1].map(|n| sum(n).wrapping_add(sad((lane.a >> (8 * n)) as u32, lane.b as u32, true)));
        assert_eq!([ours as u32, (ours >> 32) as u32], expected, "{lane:x?}");
    }
}

#[test]
fn dot_products_saturate_when_clamped() {
    let signed = |x: i64| x as u8 as i8 as i64;
    for clamp in [false, true] {
        check("v_dot4_i32_iu8", &packed(0x16, 3, clamp), false, As::Bits, |l| {
            let (a, b) = (bytes(l.a as u32), bytes(l.b as u32));
            let sum = (0..4).map(|n| signed(a[n]) * signed(b[n])).sum::<i64>() + i64::from(l.c as i32);
            let result = if clamp {
                sum.clamp(i32::MIN.into(), i32::MAX.into())
            } else {
                sum
            };
            low(l, result as u32)
        });
        check("v_dot4_u32_u8", &packed(0x17, 0, clamp), false, As::Bits, |l| {
            let (a, b) = (bytes(l.a as u32), bytes(l.b as u32));
            let sum = (0..4).map(|n| a[n] * b[n]).sum::<i64>() + i64::from(l.c as u32);
            low(l, if clamp { sum.min(u32::MAX.into()) } else { sum } as u32)
        });
        check("v_dot8_i32_iu4", &packed(0x18, 1, clamp), false, As::Bits, |l| {
            let nibble = |x: u64, n: u32| (x >> (4 * n) & 15) as i64;
            let signed = |x: i64| if x > 7 { x - 16 } else { x };
            let products = (0..8).map(|n| signed(nibble(l.a, n)) * nibble(l.b, n));
            let sum = products.sum::<i64>() + i64::from(l.c as i32);
            let result = if clamp {
                sum.clamp(i32::MIN.into(), i32::MAX.into())
            } else {
                sum
            };
            low(l, result as u32)
        });
        check("v_dot8_u32_u4", &packed(0x19, 0, clamp), false, As::Bits, |l| {
            let nibble = |x: u64, n: u32| (x >> (4 * n) & 15) as i64;
            let sum = (0..8).map(|n| nibble(l.a, n) * nibble(l.b, n)).sum::<i64>() + i64::from(l.c as u32);
            low(l, if clamp { sum.min(u32::MAX.into()) } else { sum } as u32)
        });
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
fn normalised_halves() {
    for (name, code, low_bound, scale) in [
        ("v_cvt_pk_norm_i16_f16", 0x312, -1.0, 32767.0),
        ("v_cvt_pk_norm_u16_f16", 0x313, 0.0, 65535.0),
    ] {
        check(name, &vop3(code, 2), false, As::Bits, |l| {
            let [a, b] = [l.a, l.b].map(|x| half::f16::from_bits(x as u16).to_f64());
            if a.is_nan() || b.is_nan() {
                return None;
            }
            let norm = |x: f64| (x.clamp(low_bound, 1.0) * scale).round_ties_even() as i32 as u16;
            low(l, u32::from(norm(a)) | u32::from(norm(b)) << 16)
        });
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

#[test]
fn wide_saveexec_keeps_both_halves() {
    let lanes = lanes(false);
    // s_mov_b32 s20, 0xff; s_mov_b32 s21, 5; s_and_saveexec_b64 s[20:21], s[20:21]; v_mov_b32 v8, s20;
    // s_mov_b32 exec_lo, -1
    let words = [0xbe94_00ff, 0xff, 0xbe95_0085, 0xbe94_2114, 0x7e10_0214, 0xbefe_00c1];
    for (n, (lane, ours)) in lanes.iter().zip(run("template_kernel", &words, &lanes)).enumerate() {
        let low_half = if n % 32 < 8 { u32::MAX } else { lane.d as u32 };
        assert_eq!(ours, lane.d & !0xffff_ffff | u64::from(low_half), "lane {n}");
    }
}

#[test]
fn relative_moves_take_both_distances_from_m0() {
    let lanes = lanes(true);
    // s_mov_b32 m0, 0x10001; v_swaprel_b32 v7, v2: exchanges v8 and v3.
    let swapped = run("template_kernel", &[0xbefd_00ff, 0x0001_0001, 0x7e0e_d102], &lanes);
    // v_movrelsd_2_b32 v7, v2: v8 = v3.
    let moved = run("template_kernel", &[0xbefd_00ff, 0x0001_0001, 0x7e0e_9102], &lanes);
    for ((lane, swapped), moved) in lanes.iter().zip(swapped).zip(moved) {
        let expected = lane.d & !0xffff_ffff | lane.a >> 32;
        assert_eq!((swapped, moved), (expected, expected), "{lane:x?}");
    }
}
