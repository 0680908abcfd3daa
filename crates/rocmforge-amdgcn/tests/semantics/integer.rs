//! Integer operations, moves and bit fields.

use crate::valu::{Args, Row, check_all};
use crate::value::{Out, bits, int32};

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

fn extend24(value: u32) -> i64 {
    i64::from(((value << 8) as i32) >> 8)
}

fn low24(value: u32) -> u64 {
    u64::from(value & 0xff_ffff)
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

fn median<T: Ord + Copy>(mut values: [T; 3]) -> T {
    values.sort_unstable();
    values[1]
}

fn sad8(a: u32, b: u32) -> u32 {
    (0..4).map(|n| bytes(a)[n].abs_diff(bytes(b)[n])).sum()
}

/// Skips the bytes whose reference is 0.
fn masked_sad8(a: u32, b: u32) -> u32 {
    (0..4)
        .filter(|&n| bytes(b)[n] != 0)
        .map(|n| bytes(a)[n].abs_diff(bytes(b)[n]))
        .sum()
}

/// Four sums of absolute differences of 16 bits, of bytes `n` to `n + 3`.
fn quad(x: &Args, sad: impl Fn(u32) -> u32) -> u64 {
    let (a, c) = (x.s[0], x.s[2]);
    (0..4).fold(0, |all, n| {
        let sum = u64::from(sad((a >> (8 * n)) as u32)) + (c >> (16 * n) & 0xffff);
        let sum = if x.mods.clamp { sum.min(0xffff) } else { sum & 0xffff };
        all | sum << (16 * n)
    })
}

/// An unsigned result, saturated where the instruction clamps.
fn unsigned32(x: &Args, exact: i128) -> Out {
    bits(if x.mods.clamp {
        exact.clamp(0, u32::MAX.into()) as u32
    } else {
        exact as u32
    })
}

fn signed32(x: &Args, exact: i128) -> Out {
    bits(if x.mods.clamp {
        exact.clamp(i32::MIN.into(), i32::MAX.into()) as u32
    } else {
        exact as u32
    })
}

fn unsigned16(x: &Args, exact: i64) -> Out {
    bits(if x.mods.clamp {
        exact.clamp(0, 0xffff) as u16
    } else {
        exact as u16
    })
}

fn signed16(x: &Args, exact: i64) -> Out {
    bits(if x.mods.clamp {
        exact.clamp(-0x8000, 0x7fff) as u16
    } else {
        exact as u16
    })
}

fn u(x: &Args, n: usize) -> i128 {
    x.u(n).into()
}

fn i(x: &Args, n: usize) -> i128 {
    x.i(n).into()
}

fn uh(x: &Args, n: usize) -> i64 {
    x.uh(n).into()
}

fn ih(x: &Args, n: usize) -> i64 {
    x.ih(n).into()
}

/// Sum or difference with a carry out.
fn carry(x: &Args, exact: i64) -> Out {
    let overflow = !(0..=i64::from(u32::MAX)).contains(&exact);
    unsigned32(x, exact.into()).flag(overflow)
}

fn wide(x: &Args, n: usize) -> i64 {
    x.u(n).into()
}

#[rustfmt::skip]
pub(crate) const BITS32: &[Row] = &[
    ("v_mov_b32", |x| bits(x.u(0))),
    ("v_not_b32", |x| bits(!x.u(0))),
    ("v_bfrev_b32", |x| bits((0..32).fold(0u32, |r, n| r | (x.u(0) >> n & 1) << (31 - n)))),
    ("v_clz_i32_u32", |x| int32((0..32).find(|n| x.u(0) >> (31 - n) & 1 == 1).unwrap_or(-1))),
    ("v_ctz_i32_b32", |x| int32((0..32).find(|n| x.u(0) >> n & 1 == 1).unwrap_or(-1))),
    ("v_cls_i32", |x| int32((1..32).find(|n| x.u(0) >> (31 - n) & 1 != x.u(0) >> 31).unwrap_or(-1))),
    ("v_and_b32", |x| bits(x.u(0) & x.u(1))),
    ("v_or_b32", |x| bits(x.u(0) | x.u(1))),
    ("v_xor_b32", |x| bits(x.u(0) ^ x.u(1))),
    ("v_xnor_b32", |x| bits(!(x.u(0) ^ x.u(1)))),
    ("v_lshlrev_b32", |x| bits(x.u(1) << (x.u(0) & 31))),
    ("v_lshrrev_b32", |x| bits(x.u(1) >> (x.u(0) & 31))),
    ("v_ashrrev_i32", |x| int32(x.i(1) >> (x.u(0) & 31))),
    ("v_bfe_u32", |x| bits(x.u(0) >> (x.u(1) & 31) & ((1u64 << (x.u(2) & 31)) - 1) as u32)),
    ("v_bfe_i32", |x| bits(bfe_i32(x.u(0), x.u(1), x.u(2)))),
    ("v_bfi_b32", |x| bits((x.u(0) & x.u(1)) | (!x.u(0) & x.u(2)))),
    ("v_bfm_b32", |x| bits(((1u32 << (x.u(0) & 31)) - 1) << (x.u(1) & 31))),
    ("v_alignbit_b32", |x| bits(((u64::from(x.u(0)) << 32 | u64::from(x.u(1))) >> (x.u(2) & 31)) as u32)),
    ("v_alignbyte_b32", |x| bits(((u64::from(x.u(0)) << 32 | u64::from(x.u(1))) >> (8 * (x.u(2) & 3))) as u32)),
    ("v_perm_b32", |x| bits(permute(x.u(0), x.u(1), x.u(2)))),
    ("v_bcnt_u32_b32", |x| bits((0..32).fold(x.u(1), |n, bit| n.wrapping_add(x.u(0) >> bit & 1)))),
    ("v_xor3_b32", |x| bits(x.u(0) ^ x.u(1) ^ x.u(2))),
    ("v_or3_b32", |x| bits(x.u(0) | x.u(1) | x.u(2))),
    ("v_and_or_b32", |x| bits((x.u(0) & x.u(1)) | x.u(2))),
    ("v_lshl_or_b32", |x| bits((x.u(0) << (x.u(1) & 31)) | x.u(2))),
    ("v_cndmask_b32", |x| bits(if x.carry { x.u(1) } else { x.u(0) })),
    ("v_mbcnt_lo_u32_b32", |x| bits((0..x.lane).fold(x.u(1), |n, bit| n.wrapping_add(x.u(0) >> bit & 1)))),
    // Lanes 0 to 31 have no lanes of the upper half below them.
    ("v_mbcnt_hi_u32_b32", |x| bits(x.u(1))),
];

#[rustfmt::skip]
pub(crate) const ARITHMETIC32: &[Row] = &[
    ("v_add_nc_u32", |x| unsigned32(x, u(x, 0) + u(x, 1))),
    ("v_sub_nc_u32", |x| unsigned32(x, u(x, 0) - u(x, 1))),
    ("v_subrev_nc_u32", |x| unsigned32(x, u(x, 1) - u(x, 0))),
    ("v_add_nc_i32", |x| signed32(x, i(x, 0) + i(x, 1))),
    ("v_sub_nc_i32", |x| signed32(x, i(x, 0) - i(x, 1))),
    ("v_min_i32", |x| int32(if x.i(0) < x.i(1) { x.i(0) } else { x.i(1) })),
    ("v_max_i32", |x| int32(if x.i(0) >= x.i(1) { x.i(0) } else { x.i(1) })),
    ("v_min_u32", |x| bits(if x.u(0) < x.u(1) { x.u(0) } else { x.u(1) })),
    ("v_max_u32", |x| bits(if x.u(0) >= x.u(1) { x.u(0) } else { x.u(1) })),
    ("v_min3_i32", |x| int32(x.i(0).min(x.i(1)).min(x.i(2)))),
    ("v_max3_i32", |x| int32(x.i(0).max(x.i(1)).max(x.i(2)))),
    ("v_med3_i32", |x| int32(median([x.i(0), x.i(1), x.i(2)]))),
    ("v_min3_u32", |x| bits(x.u(0).min(x.u(1)).min(x.u(2)))),
    ("v_max3_u32", |x| bits(x.u(0).max(x.u(1)).max(x.u(2)))),
    ("v_med3_u32", |x| bits(median([x.u(0), x.u(1), x.u(2)]))),
    ("v_maxmin_i32", |x| int32(x.i(0).max(x.i(1)).min(x.i(2)))),
    ("v_minmax_i32", |x| int32(x.i(0).min(x.i(1)).max(x.i(2)))),
    ("v_maxmin_u32", |x| bits(x.u(0).max(x.u(1)).min(x.u(2)))),
    ("v_minmax_u32", |x| bits(x.u(0).min(x.u(1)).max(x.u(2)))),
    ("v_add3_u32", |x| bits((u(x, 0) + u(x, 1) + u(x, 2)) as u32)),
    ("v_xad_u32", |x| bits(((u(x, 0) ^ u(x, 1)) + u(x, 2)) as u32)),
    ("v_lshl_add_u32", |x| bits(((u(x, 0) << (x.u(1) & 31)) + u(x, 2)) as u32)),
    ("v_add_lshl_u32", |x| bits(((u(x, 0) + u(x, 1)) << (x.u(2) & 31)) as u32)),
    ("v_mul_lo_u32", |x| bits((u(x, 0) * u(x, 1)) as u32)),
    ("v_mul_hi_u32", |x| bits(((u(x, 0) * u(x, 1)) >> 32) as u32)),
    ("v_mul_hi_i32", |x| bits(((i(x, 0) * i(x, 1)) >> 32) as u32)),
    ("v_mul_i32_i24", |x| bits((extend24(x.u(0)) * extend24(x.u(1))) as u32)),
    ("v_mul_hi_i32_i24", |x| bits(((extend24(x.u(0)) * extend24(x.u(1))) >> 32) as u32)),
    ("v_mul_u32_u24", |x| bits((low24(x.u(0)) * low24(x.u(1))) as u32)),
    ("v_mul_hi_u32_u24", |x| bits(((low24(x.u(0)) * low24(x.u(1))) >> 32) as u32)),
    ("v_mad_i32_i24", |x| signed32(x, i128::from(extend24(x.u(0)) * extend24(x.u(1))) + i(x, 2))),
    ("v_mad_u32_u24", |x| unsigned32(x, i128::from(low24(x.u(0)) * low24(x.u(1))) + u(x, 2))),
    ("v_mad_u32_u16", |x| unsigned32(x, i128::from(uh(x, 0) * uh(x, 1)) + u(x, 2))),
    ("v_mad_i32_i16", |x| signed32(x, i128::from(ih(x, 0) * ih(x, 1)) + i(x, 2))),
    ("v_add_co_u32", |x| carry(x, wide(x, 0) + wide(x, 1))),
    ("v_sub_co_u32", |x| carry(x, wide(x, 0) - wide(x, 1))),
    ("v_subrev_co_u32", |x| carry(x, wide(x, 1) - wide(x, 0))),
    ("v_add_co_ci_u32", |x| carry(x, wide(x, 0) + wide(x, 1) + i64::from(x.carry))),
    ("v_sub_co_ci_u32", |x| carry(x, wide(x, 0) - wide(x, 1) - i64::from(x.carry))),
    ("v_subrev_co_ci_u32", |x| carry(x, wide(x, 1) - wide(x, 0) - i64::from(x.carry))),
    ("v_lerp_u8", |x| bits(u32::from_le_bytes(std::array::from_fn(|n| ((bytes(x.u(0))[n] + bytes(x.u(1))[n] + (bytes(x.u(2))[n] & 1)) >> 1) as u8)))),
    ("v_sad_u8", |x| unsigned32(x, i128::from(sad8(x.u(0), x.u(1))) + u(x, 2))),
    ("v_sad_hi_u8", |x| unsigned32(x, (i128::from(sad8(x.u(0), x.u(1))) << 16) + u(x, 2))),
    ("v_sad_u16", |x| unsigned32(x, i128::from((x.u(0) & 0xffff).abs_diff(x.u(1) & 0xffff)) + i128::from((x.u(0) >> 16).abs_diff(x.u(1) >> 16)) + u(x, 2))),
    ("v_sad_u32", |x| unsigned32(x, i128::from(x.u(0).abs_diff(x.u(1))) + u(x, 2))),
    ("v_msad_u8", |x| unsigned32(x, i128::from(masked_sad8(x.u(0), x.u(1))) + u(x, 2))),
];

#[rustfmt::skip]
pub(crate) const BITS64: &[Row] = &[
    ("v_lshlrev_b64", |x| bits(x.s[1] << (x.s[0] & 63))),
    ("v_lshrrev_b64", |x| bits(x.s[1] >> (x.s[0] & 63))),
    ("v_ashrrev_i64", |x| bits(((x.s[1] as i64) >> (x.s[0] & 63)) as u64)),
    ("v_mad_u64_u32", |x| {
        let exact = u128::from(x.u(0)) * u128::from(x.u(1)) + u128::from(x.s[2]);
        let result = if x.mods.clamp { exact.min(u64::MAX.into()) } else { exact };
        bits(result as u64).flag(exact >> 64 != 0)
    }),
    ("v_mad_i64_i32", |x| {
        let exact = i128::from(x.i(0)) * i128::from(x.i(1)) + i128::from(x.s[2] as i64);
        let result = if x.mods.clamp { exact.clamp(i64::MIN.into(), i64::MAX.into()) } else { exact };
        // Bit 64 of the sum of 65 bits: its sign.
        bits(result as u64).flag(exact < 0)
    }),
    ("v_qsad_pk_u16_u8", |x| bits(quad(x, |a| sad8(a, x.u(1))))),
    ("v_mqsad_pk_u16_u8", |x| bits(quad(x, |a| masked_sad8(a, x.u(1))))),
];

#[rustfmt::skip]
pub(crate) const BITS16: &[Row] = &[
    ("v_mov_b16", |x| bits(x.uh(0))),
    ("v_not_b16", |x| bits(!x.uh(0))),
    ("v_and_b16", |x| bits(x.uh(0) & x.uh(1))),
    ("v_or_b16", |x| bits(x.uh(0) | x.uh(1))),
    ("v_xor_b16", |x| bits(x.uh(0) ^ x.uh(1))),
    ("v_cndmask_b16", |x| bits(if x.carry { x.uh(1) } else { x.uh(0) })),
    ("v_lshlrev_b16", |x| bits(x.uh(1) << (x.uh(0) & 15))),
    ("v_lshrrev_b16", |x| bits(x.uh(1) >> (x.uh(0) & 15))),
    ("v_ashrrev_i16", |x| bits((x.ih(1) >> (x.uh(0) & 15)) as u16)),
    ("v_add_nc_u16", |x| unsigned16(x, uh(x, 0) + uh(x, 1))),
    ("v_sub_nc_u16", |x| unsigned16(x, uh(x, 0) - uh(x, 1))),
    ("v_add_nc_i16", |x| signed16(x, ih(x, 0) + ih(x, 1))),
    ("v_sub_nc_i16", |x| signed16(x, ih(x, 0) - ih(x, 1))),
    ("v_mul_lo_u16", |x| bits((uh(x, 0) * uh(x, 1)) as u16)),
    ("v_mad_u16", |x| unsigned16(x, uh(x, 0) * uh(x, 1) + uh(x, 2))),
    ("v_mad_i16", |x| signed16(x, ih(x, 0) * ih(x, 1) + ih(x, 2))),
    ("v_min_u16", |x| bits(x.uh(0).min(x.uh(1)))),
    ("v_max_u16", |x| bits(x.uh(0).max(x.uh(1)))),
    ("v_min_i16", |x| bits(x.ih(0).min(x.ih(1)) as u16)),
    ("v_max_i16", |x| bits(x.ih(0).max(x.ih(1)) as u16)),
    ("v_min3_u16", |x| bits(x.uh(0).min(x.uh(1)).min(x.uh(2)))),
    ("v_max3_u16", |x| bits(x.uh(0).max(x.uh(1)).max(x.uh(2)))),
    ("v_med3_u16", |x| bits(median([x.uh(0), x.uh(1), x.uh(2)]))),
    ("v_min3_i16", |x| bits(x.ih(0).min(x.ih(1)).min(x.ih(2)) as u16)),
    ("v_max3_i16", |x| bits(x.ih(0).max(x.ih(1)).max(x.ih(2)) as u16)),
    ("v_med3_i16", |x| bits(median([x.ih(0), x.ih(1), x.ih(2)]) as u16)),
    ("v_cvt_i32_i16", |x| int32(x.ih(0).into())),
    ("v_cvt_u32_u16", |x| bits(u32::from(x.uh(0)))),
    ("v_sat_pk_u8_i16", |x| {
        let narrow = |n: u32| (((x.u(0) >> n) as i16).clamp(0, 255)) as u16;
        bits(narrow(0) | narrow(16) << 8)
    }),
    ("v_cvt_pk_u16_u32", |x| bits(x.u(0).min(0xffff) | x.u(1).min(0xffff) << 16)),
    ("v_cvt_pk_i16_i32", |x| {
        let narrow = |n: usize| x.i(n).clamp(-0x8000, 0x7fff) as u32 & 0xffff;
        bits(narrow(0) | narrow(1) << 16)
    }),
];

#[test]
fn bits_of_32() {
    check_all(BITS32);
}

#[test]
fn arithmetic_of_32_bits() {
    check_all(ARITHMETIC32);
}

#[test]
fn operations_of_64_bits() {
    check_all(BITS64);
}

#[test]
fn operations_of_16_bits() {
    check_all(BITS16);
}
