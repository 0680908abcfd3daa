//! Integer operations.

use crate::harness::{As, check, low, vop3};

type Model = fn(u32, u32, u32) -> u32;

fn bytes(value: u32) -> [u32; 4] {
    value.to_le_bytes().map(u32::from)
}

fn permute(a: u32, b: u32, select: u32) -> u32 {
    let data = u64::from(a) << 32 | u64::from(b);
    let byte = |sel: u8| match sel {
        0..=7 => (data >> (8 * sel)) as u8,
        8..=11 => (((data >> (16 * (sel - 8) + 15)) & 1) * 255) as u8,
        12 => 0,
        _ => 255,
    };
    u32::from_le_bytes(select.to_le_bytes().map(byte))
}

fn extend24(value: u32) -> i32 {
    ((value << 8) as i32) >> 8
}

fn bfe_i32(a: u32, b: u32, c: u32) -> u32 {
    let (offset, width) = (b & 31, c & 31);
    if width == 0 {
        return 0;
    }
    // The shift is an arithmetic one, so a field that runs past the top repeats the sign.
    let field = i64::from((a as i32) >> offset) & ((1 << width) - 1);
    ((field << (64 - width)) >> (64 - width)) as u32
}

fn median(mut values: [i64; 3]) -> i64 {
    values.sort_unstable();
    values[1]
}

#[rustfmt::skip]
const MODELS: &[(&str, u32, usize, Model)] = &[
    ("v_mul_i32_i24", 0x109, 2, |a, b, _| extend24(a).wrapping_mul(extend24(b)) as u32),
    ("v_mul_u32_u24", 0x10b, 2, |a, b, _| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)),
    ("v_min_i32", 0x111, 2, |a, b, _| (a as i32).min(b as i32) as u32),
    ("v_max_i32", 0x112, 2, |a, b, _| (a as i32).max(b as i32) as u32),
    ("v_min_u32", 0x113, 2, |a, b, _| a.min(b)),
    ("v_max_u32", 0x114, 2, |a, b, _| a.max(b)),
    ("v_lshlrev_b32", 0x118, 2, |a, b, _| b << (a & 31)),
    ("v_lshrrev_b32", 0x119, 2, |a, b, _| b >> (a & 31)),
    ("v_ashrrev_i32", 0x11a, 2, |a, b, _| ((b as i32) >> (a & 31)) as u32),
    ("v_and_b32", 0x11b, 2, |a, b, _| a & b),
    ("v_or_b32", 0x11c, 2, |a, b, _| a | b),
    ("v_xor_b32", 0x11d, 2, |a, b, _| a ^ b),
    ("v_xnor_b32", 0x11e, 2, |a, b, _| !(a ^ b)),
    ("v_add_nc_u32", 0x125, 2, |a, b, _| a.wrapping_add(b)),
    ("v_sub_nc_u32", 0x126, 2, |a, b, _| a.wrapping_sub(b)),
    ("v_mov_b32", 0x181, 1, |a, _, _| a),
    ("v_not_b32", 0x1b7, 1, |a, _, _| !a),
    ("v_bfrev_b32", 0x1b8, 1, |a, _, _| a.reverse_bits()),
    ("v_clz_i32_u32", 0x1b9, 1, |a, _, _| if a == 0 { u32::MAX } else { a.leading_zeros() }),
    ("v_ctz_i32_b32", 0x1ba, 1, |a, _, _| if a == 0 { u32::MAX } else { a.trailing_zeros() }),
    ("v_cls_i32", 0x1bb, 1, |a, _, _| { let x = a ^ ((a as i32) >> 31) as u32; if x == 0 { u32::MAX } else { x.leading_zeros() } }),
    ("v_mad_i32_i24", 0x20a, 3, |a, b, c| extend24(a).wrapping_mul(extend24(b)).wrapping_add(c as i32) as u32),
    ("v_mad_u32_u24", 0x20b, 3, |a, b, c| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)),
    ("v_bfe_u32", 0x210, 3, |a, b, c| (a >> (b & 31)) & (((1u64 << (c & 31)) - 1) as u32)),
    ("v_bfe_i32", 0x211, 3, bfe_i32),
    ("v_bfi_b32", 0x212, 3, |a, b, c| (a & b) | (!a & c)),
    ("v_lerp_u8", 0x215, 3, |a, b, c| { u32::from_le_bytes(std::array::from_fn(|i| ((bytes(a)[i] + bytes(b)[i] + (bytes(c)[i] & 1)) >> 1) as u8)) }),
    ("v_alignbit_b32", 0x216, 3, |a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32),
    ("v_alignbyte_b32", 0x217, 3, |a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (8 * (c & 3))) as u32),
    ("v_min3_i32", 0x21a, 3, |a, b, c| (a as i32).min(b as i32).min(c as i32) as u32),
    ("v_max3_u32", 0x21e, 3, |a, b, c| a.max(b).max(c)),
    ("v_med3_i32", 0x220, 3, |a, b, c| median([a as i32, b as i32, c as i32].map(i64::from)) as u32),
    ("v_med3_u32", 0x221, 3, |a, b, c| median([a, b, c].map(i64::from)) as u32),
    ("v_sad_u8", 0x222, 3, |a, b, c| (0..4).fold(c, |sum, i| sum.wrapping_add(bytes(a)[i].abs_diff(bytes(b)[i])))),
    ("v_sad_u32", 0x225, 3, |a, b, c| a.abs_diff(b).wrapping_add(c)),
    ("v_xor3_b32", 0x240, 3, |a, b, c| a ^ b ^ c),
    ("v_perm_b32", 0x244, 3, permute),
    ("v_xad_u32", 0x245, 3, |a, b, c| (a ^ b).wrapping_add(c)),
    ("v_lshl_add_u32", 0x246, 3, |a, b, c| (a << (b & 31)).wrapping_add(c)),
    ("v_add_lshl_u32", 0x247, 3, |a, b, c| a.wrapping_add(b) << (c & 31)),
    ("v_add3_u32", 0x255, 3, |a, b, c| a.wrapping_add(b).wrapping_add(c)),
    ("v_lshl_or_b32", 0x256, 3, |a, b, c| (a << (b & 31)) | c),
    ("v_and_or_b32", 0x257, 3, |a, b, c| (a & b) | c),
    ("v_or3_b32", 0x258, 3, |a, b, c| a | b | c),
    ("v_maxmin_u32", 0x262, 3, |a, b, c| a.max(b).min(c)),
    ("v_bfm_b32", 0x31d, 2, |a, b, _| ((1u32 << (a & 31)) - 1) << (b & 31)),
    ("v_bcnt_u32_b32", 0x31e, 2, |a, b, _| a.count_ones().wrapping_add(b)),
    ("v_mul_lo_u32", 0x32c, 2, |a, b, _| a.wrapping_mul(b)),
    ("v_mul_hi_u32", 0x32d, 2, |a, b, _| ((u64::from(a) * u64::from(b)) >> 32) as u32),
    ("v_mul_hi_i32", 0x32e, 2, |a, b, _| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32),
];

#[test]
fn operations_of_32_bits() {
    for &(name, code, sources, model) in MODELS {
        check(name, &vop3(code, sources), false, As::Bits, |lane| {
            low(lane, model(lane.a as u32, lane.b as u32, lane.c as u32))
        });
    }
}

#[test]
fn shifts_of_64_bits() {
    check("v_lshlrev_b64", &vop3(0x33c, 2), true, As::Bits, |l| {
        Some(l.b << (l.a & 63))
    });
    check("v_lshrrev_b64", &vop3(0x33d, 2), true, As::Bits, |l| {
        Some(l.b >> (l.a & 63))
    });
    check("v_ashrrev_i64", &vop3(0x33e, 2), true, As::Bits, |l| {
        Some(((l.b as i64) >> (l.a & 63)) as u64)
    });
}

#[test]
fn wide_multiply_add() {
    let null_carry = |code| {
        let [first, second] = vop3(code, 3);
        [first | 124 << 8, second]
    };
    check("v_mad_u64_u32", &null_carry(0x2fe), true, As::Bits, |l| {
        Some((l.a & 0xffff_ffff).wrapping_mul(l.b & 0xffff_ffff).wrapping_add(l.c))
    });
    check("v_mad_i64_i32", &null_carry(0x2ff), true, As::Bits, |l| {
        Some((i64::from(l.a as i32) * i64::from(l.b as i32)).wrapping_add(l.c as i64) as u64)
    });
}
