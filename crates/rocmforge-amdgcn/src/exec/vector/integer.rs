//! Integers of 32 bits, and moves.

use crate::exec::vector::lane_ops::lane_ops;
use crate::exec::vector::mask::{Lane, Sel, Sign};

#[inline(always)]
fn low24(x: u32) -> u32 {
    x & 0xFF_FFFF
}

#[inline(always)]
fn signed24(x: u32) -> i32 {
    (x << 8) as i32 >> 8
}

#[inline(always)]
fn mask(bits: u32) -> u32 {
    (1u32 << (bits & 31)).wrapping_sub(1)
}

#[inline(always)]
fn med<T: Ord>(a: T, b: T, c: T) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    low.max(high.min(c))
}

#[inline(always)]
fn permute(high: u32, low: u32, select: u32) -> u32 {
    let data = u64::from(high) << 32 | u64::from(low);
    let mut out = 0;
    for n in 0..4 {
        let byte = match select >> (8 * n) & 0xFF {
            sel @ 0..=7 => (data >> (8 * sel)) as u32 & 0xFF,
            // The sign of a 16-bit half, spread.
            sel @ 8..=11 => ((data >> (16 * (sel - 8) + 15)) as u32 & 1) * 0xFF,
            12 => 0,
            _ => 0xFF,
        };
        out |= byte << (8 * n);
    }
    out
}

#[inline(always)]
fn bytes(x: u32) -> [i32; 4] {
    x.to_le_bytes().map(i32::from)
}

#[inline(always)]
fn sad8(a: u32, b: u32) -> u32 {
    let (a, b) = (bytes(a), bytes(b));
    (0..4).map(|n| (a[n] - b[n]).unsigned_abs()).sum()
}

/// The same without the bytes where the second operand is 0.
#[inline(always)]
pub(crate) fn msad8(a: u32, b: u32) -> u32 {
    let (a, b) = (bytes(a), bytes(b));
    (0..4)
        .filter(|&n| b[n] != 0)
        .map(|n| (a[n] - b[n]).unsigned_abs())
        .sum()
}

#[inline(always)]
fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

lane_ops! { lookup {
    VMovB32(a: u32) -> u32 { a }
    VNotB32(a: u32) -> u32 { !a }
    VClsI32(a: u32) -> u32 {
        let n = (a ^ ((a as i32) >> 31) as u32).leading_zeros();
        if n == 32 { u32::MAX } else { n }
    }
    VAddNcU32 | VAddNcI32(a: u32, b: u32) -> u32 { a.wrapping_add(b) }
    VSubNcU32 | VSubNcI32(a: u32, b: u32) -> u32 { a.wrapping_sub(b) }
    VSubrevNcU32(a: u32, b: u32) -> u32 { b.wrapping_sub(a) }
    // Carries out of the highest bit: `overflowing_add` would keep the compiler from doing eight lanes at a time.
    VAddCoU32(a: u32, b: u32) -> (u32, Sign) {
        let sum = a.wrapping_add(b);
        (sum, Sign(a & b | (a | b) & !sum))
    }
    VSubCoU32(a: u32, b: u32) -> (u32, Sign) { difference(a, b, Sel(0)) }
    VAddCoCiU32(a: u32, b: u32, carry: Sel) -> (u32, Sign) {
        // The carry is all ones: taking it away adds one.
        let sum = a.wrapping_add(b).wrapping_sub(carry.0);
        (sum, Sign(a & b | (a | b) & !sum))
    }
    VSubCoCiU32(a: u32, b: u32, carry: Sel) -> (u32, Sign) { difference(a, b, carry) }
    VSubrevCoCiU32(a: u32, b: u32, carry: Sel) -> (u32, Sign) { difference(b, a, carry) }
    VMulLoU32(a: u32, b: u32) -> u32 { a.wrapping_mul(b) }
    VMulHiU32(a: u32, b: u32) -> u32 { ((u64::from(a) * u64::from(b)) >> 32) as u32 }
    VMulU32U24(a: u32, b: u32) -> u32 { low24(a).wrapping_mul(low24(b)) }
    VMulI32I24(a: u32, b: u32) -> i32 { signed24(a).wrapping_mul(signed24(b)) }
    VMadU32U24(a: u32, b: u32, c: u32) -> u32 { low24(a).wrapping_mul(low24(b)).wrapping_add(c) }
    VMinU32(a: u32, b: u32) -> u32 { a.min(b) }
    VMaxU32(a: u32, b: u32) -> u32 { a.max(b) }
    VMinI32(a: i32, b: i32) -> i32 { a.min(b) }
    VMaxI32(a: i32, b: i32) -> i32 { a.max(b) }
    VMax3U32(a: u32, b: u32, c: u32) -> u32 { a.max(b).max(c) }
    VAndB32(a: u32, b: u32) -> u32 { a & b }
    VOrB32(a: u32, b: u32) -> u32 { a | b }
    VXorB32(a: u32, b: u32) -> u32 { a ^ b }
    VLshlrevB32(a: u32, b: u32) -> u32 { b << (a & 31) }
    VLshrrevB32(a: u32, b: u32) -> u32 { b >> (a & 31) }
    VAshrrevI32(a: u32, b: i32) -> i32 { b >> (a & 31) }
    VAdd3U32(a: u32, b: u32, c: u32) -> u32 { a.wrapping_add(b).wrapping_add(c) }
    VOr3B32(a: u32, b: u32, c: u32) -> u32 { a | b | c }
    VAndOrB32(a: u32, b: u32, c: u32) -> u32 { a & b | c }
    VXadU32(a: u32, b: u32, c: u32) -> u32 { (a ^ b).wrapping_add(c) }
    VLshlAddU32(a: u32, b: u32, c: u32) -> u32 { (a << (b & 31)).wrapping_add(c) }
    VAddLshlU32(a: u32, b: u32, c: u32) -> u32 { a.wrapping_add(b) << (c & 31) }
    VLshlOrB32(a: u32, b: u32, c: u32) -> u32 { a << (b & 31) | c }
    VBfeU32(a: u32, b: u32, c: u32) -> u32 { a >> (b & 31) & mask(c) }
    VBfeI32(a: i32, b: u32, c: u32) -> u32 {
        let field = (a >> (b & 31)) as u32 & mask(c);
        // The field's highest bit, spread; no field, no sign.
        let sign = mask(c) & !(mask(c) >> 1);
        (field ^ sign).wrapping_sub(sign)
    }
    VBfiB32(a: u32, b: u32, c: u32) -> u32 { a & b | !a & c }
    VAlignbitB32(a: u32, b: u32, c: u32) -> u32 { (pair(a, b) >> (c & 31)) as u32 }
    VPermB32(a: u32, b: u32, c: u32) -> u32 { permute(a, b, c) }
    VMbcntLoU32B32(a: u32, b: u32, lane: Lane) -> u32 { (a & ((1 << lane.0) - 1)).count_ones().wrapping_add(b) }
    VMadU64U32(a: u32, b: u32, c: u64) -> (u64, bool) {
        let sum = (u64::from(a) * u64::from(b)).wrapping_add(c);
        (sum, sum < c)
    }
    VLshlrevB64(a: u32, b: u64) -> u64 { b << (a & 63) }
    VLshrrevB64(a: u32, b: u64) -> u64 { b >> (a & 63) }
} seldom {
    VMulHiI32(a: i32, b: i32) -> i32 { ((i64::from(a) * i64::from(b)) >> 32) as i32 }
    VMadI32I24(a: u32, b: u32, c: i32) -> i32 { signed24(a).wrapping_mul(signed24(b)).wrapping_add(c) }
    VMed3I32(a: i32, b: i32, c: i32) -> i32 { med(a, b, c) }
    VXor3B32(a: u32, b: u32, c: u32) -> u32 { a ^ b ^ c }
    VAlignbyteB32(a: u32, b: u32, c: u32) -> u32 { (pair(a, b) >> (8 * (c & 3))) as u32 }
    VBcntU32B32(a: u32, b: u32) -> u32 { a.count_ones().wrapping_add(b) }
    // The second result is bit 64 of the exact sum: its sign.
    VMadI64I32(a: i32, b: i32, c: i64) -> (i64, bool) {
        let (sum, overflow) = (i64::from(a) * i64::from(b)).overflowing_add(c);
        (sum, (sum < 0) != overflow)
    }
    VAshrrevI64(a: u32, b: i64) -> i64 { b >> (a & 63) }
    VBfrevB32(a: u32) -> u32 { a.reverse_bits() }
    VClzI32U32(a: u32) -> u32 { if a == 0 { u32::MAX } else { a.leading_zeros() } }
    VCtzI32B32(a: u32) -> u32 { if a == 0 { u32::MAX } else { a.trailing_zeros() } }
    VSubrevCoU32(a: u32, b: u32) -> (u32, Sign) { difference(b, a, Sel(0)) }
    VMulHiU32U24(a: u32, b: u32) -> u32 { ((u64::from(low24(a)) * u64::from(low24(b))) >> 32) as u32 }
    VMulHiI32I24(a: u32, b: u32) -> i32 { ((i64::from(signed24(a)) * i64::from(signed24(b))) >> 32) as i32 }
    VMadU32U16(a: u16, b: u16, c: u32) -> u32 { (u32::from(a) * u32::from(b)).wrapping_add(c) }
    VMadI32I16(a: i16, b: i16, c: i32) -> i32 { (i32::from(a) * i32::from(b)).wrapping_add(c) }
    VMin3U32(a: u32, b: u32, c: u32) -> u32 { a.min(b).min(c) }
    VMed3U32(a: u32, b: u32, c: u32) -> u32 { med(a, b, c) }
    VMin3I32(a: i32, b: i32, c: i32) -> i32 { a.min(b).min(c) }
    VMax3I32(a: i32, b: i32, c: i32) -> i32 { a.max(b).max(c) }
    VMaxminU32(a: u32, b: u32, c: u32) -> u32 { a.max(b).min(c) }
    VMinmaxU32(a: u32, b: u32, c: u32) -> u32 { a.min(b).max(c) }
    VMaxminI32(a: i32, b: i32, c: i32) -> i32 { a.max(b).min(c) }
    VMinmaxI32(a: i32, b: i32, c: i32) -> i32 { a.min(b).max(c) }
    VXnorB32(a: u32, b: u32) -> u32 { !(a ^ b) }
    VBfmB32(a: u32, b: u32) -> u32 { mask(a) << (b & 31) }
    // A wave of 32 has no lanes for the high half of the mask.
    VMbcntHiU32B32(_a: u32, b: u32) -> u32 { b }
    VLerpU8(a: u32, b: u32, c: u32) -> u32 {
        let (a, b) = (bytes(a), bytes(b));
        (0..4).fold(0, |out, n| {
            let byte = (a[n] + b[n] + (c >> (8 * n) & 1) as i32) >> 1;
            out | (byte as u32) << (8 * n)
        })
    }
    VSadU8(a: u32, b: u32, c: u32) -> u32 { sad8(a, b).wrapping_add(c) }
    VSadHiU8(a: u32, b: u32, c: u32) -> u32 { (sad8(a, b) << 16).wrapping_add(c) }
    VSadU16(a: u32, b: u32, c: u32) -> u32 {
        (a & 0xFFFF).abs_diff(b & 0xFFFF).wrapping_add((a >> 16).abs_diff(b >> 16)).wrapping_add(c)
    }
    VSadU32(a: u32, b: u32, c: u32) -> u32 { a.abs_diff(b).wrapping_add(c) }
    VMsadU8(a: u32, b: u32, c: u32) -> u32 { msad8(a, b).wrapping_add(c) }
    VQsadPkU16U8(a: u64, b: u32, c: u64) -> u64 {
        (0..4).fold(0, |out, n| {
            let sum = sad8((a >> (8 * n)) as u32, b).wrapping_add((c >> (16 * n)) as u32);
            out | u64::from(sum as u16) << (16 * n)
        })
    }
    VMqsadPkU16U8(a: u64, b: u32, c: u64) -> u64 {
        (0..4).fold(0, |out, n| {
            let sum = msad8((a >> (8 * n)) as u32, b).wrapping_add((c >> (16 * n)) as u32);
            out | u64::from(sum as u16) << (16 * n)
        })
    }
    VCvtPkU16U32(a: u32, b: u32) -> u32 { a.min(0xFFFF) | b.min(0xFFFF) << 16 }
    VCvtPkI16I32(a: i32, b: i32) -> u32 {
        let narrow = |x: i32| x.clamp(-0x8000, 0x7FFF) as u32 & 0xFFFF;
        narrow(a) | narrow(b) << 16
    }
    VCvtI32I16(a: i16) -> i32 { i32::from(a) }
    VCvtU32U16(a: u16) -> u32 { u32::from(a) }
    VSatPkU8I16(a: u32) -> u16 {
        let narrow = |x: u32| (x as i16).clamp(0, 255) as u16;
        narrow(a) | narrow(a >> 16) << 8
    }
} }

fn clamp_u32(x: u64) -> u32 {
    x.min(u64::from(u32::MAX)) as u32
}

fn clamp_i32(x: i64) -> i32 {
    x.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
}

/// A difference less a borrow, and the borrow out of the highest bit.
#[inline(always)]
fn difference(a: u32, b: u32, borrow: Sel) -> (u32, Sign) {
    // The borrow is all ones: adding it takes one away.
    let rest = a.wrapping_sub(b).wrapping_add(borrow.0);
    (rest, Sign(!a & b | (!a | b) & rest))
}

/// A difference that does not go below zero, and whether it would have.
fn borrow(a: u32, b: u32, carry: Sel) -> (u32, bool) {
    let taken = u64::from(b) + u64::from(carry.0 & 1);
    (u64::from(a).saturating_sub(taken) as u32, u64::from(a) < taken)
}

lane_ops! { saturating {
} seldom {
    VMadU32U24(a: u32, b: u32, c: u32) -> u32 {
        clamp_u32(u64::from(low24(a)) * u64::from(low24(b)) + u64::from(c))
    }
    VMadI32I24(a: u32, b: u32, c: i32) -> i32 {
        clamp_i32(i64::from(signed24(a)) * i64::from(signed24(b)) + i64::from(c))
    }
    VMadU32U16(a: u16, b: u16, c: u32) -> u32 { (u32::from(a) * u32::from(b)).saturating_add(c) }
    VMadI32I16(a: i16, b: i16, c: i32) -> i32 { (i32::from(a) * i32::from(b)).saturating_add(c) }
    VMadU16(a: u16, b: u16, c: u16) -> u16 { (u32::from(a) * u32::from(b) + u32::from(c)).min(0xFFFF) as u16 }
    VMadI16(a: i16, b: i16, c: i16) -> i16 {
        (i32::from(a) * i32::from(b) + i32::from(c)).clamp(-0x8000, 0x7FFF) as i16
    }
    VSadU8(a: u32, b: u32, c: u32) -> u32 { sad8(a, b).saturating_add(c) }
    VMsadU8(a: u32, b: u32, c: u32) -> u32 { msad8(a, b).saturating_add(c) }
    VSadHiU8(a: u32, b: u32, c: u32) -> u32 { clamp_u32((u64::from(sad8(a, b)) << 16) + u64::from(c)) }
    VSadU16(a: u32, b: u32, c: u32) -> u32 {
        (a & 0xFFFF).abs_diff(b & 0xFFFF).wrapping_add((a >> 16).abs_diff(b >> 16)).saturating_add(c)
    }
    VSadU32(a: u32, b: u32, c: u32) -> u32 { a.abs_diff(b).saturating_add(c) }
    VQsadPkU16U8(a: u64, b: u32, c: u64) -> u64 {
        (0..4).fold(0, |out, n| {
            let sum = sad8((a >> (8 * n)) as u32, b) + (c >> (16 * n)) as u32 % 0x1_0000;
            out | u64::from(sum.min(0xFFFF)) << (16 * n)
        })
    }
    VMqsadPkU16U8(a: u64, b: u32, c: u64) -> u64 {
        (0..4).fold(0, |out, n| {
            let sum = msad8((a >> (8 * n)) as u32, b) + (c >> (16 * n)) as u32 % 0x1_0000;
            out | u64::from(sum.min(0xFFFF)) << (16 * n)
        })
    }
    VPkMadU16(a: [u16; 2], b: [u16; 2], c: [u16; 2]) -> [u16; 2] {
        [0, 1].map(|n| (u32::from(a[n]) * u32::from(b[n]) + u32::from(c[n])).min(0xFFFF) as u16)
    }
    VPkMadI16(a: [u16; 2], b: [u16; 2], c: [u16; 2]) -> [u16; 2] {
        let wide = |x: u16| i32::from(x as i16);
        [0, 1].map(|n| (wide(a[n]) * wide(b[n]) + wide(c[n])).clamp(-0x8000, 0x7FFF) as u16)
    }
    // The carries are those of the exact results: AMD's text takes them before the result is narrowed.
    VAddCoU32(a: u32, b: u32) -> (u32, bool) { (a.saturating_add(b), a.wrapping_add(b) < a) }
    VSubCoU32(a: u32, b: u32) -> (u32, bool) { (a.saturating_sub(b), a < b) }
    VSubrevCoU32(a: u32, b: u32) -> (u32, bool) { (b.saturating_sub(a), b < a) }
    VAddCoCiU32(a: u32, b: u32, carry: Sel) -> (u32, bool) {
        let sum = u64::from(a) + u64::from(b) + u64::from(carry.0 & 1);
        (clamp_u32(sum), sum > u64::from(u32::MAX))
    }
    VSubCoCiU32(a: u32, b: u32, carry: Sel) -> (u32, bool) { borrow(a, b, carry) }
    VSubrevCoCiU32(a: u32, b: u32, carry: Sel) -> (u32, bool) { borrow(b, a, carry) }
    VMadU64U32(a: u32, b: u32, c: u64) -> (u64, bool) {
        let product = u64::from(a) * u64::from(b);
        (product.saturating_add(c), product.wrapping_add(c) < c)
    }
    VMadI64I32(a: i32, b: i32, c: i64) -> (i64, bool) {
        // A sum that overflows has the sign of its saturated value.
        let sum = (i64::from(a) * i64::from(b)).saturating_add(c);
        (sum, sum < 0)
    }
    VAddNcU32(a: u32, b: u32) -> u32 { a.saturating_add(b) }
    VSubNcU32(a: u32, b: u32) -> u32 { a.saturating_sub(b) }
    VSubrevNcU32(a: u32, b: u32) -> u32 { b.saturating_sub(a) }
    VAddNcI32(a: i32, b: i32) -> i32 { a.saturating_add(b) }
    VSubNcI32(a: i32, b: i32) -> i32 { a.saturating_sub(b) }
    VAddNcU16(a: u16, b: u16) -> u16 { a.saturating_add(b) }
    VSubNcU16(a: u16, b: u16) -> u16 { a.saturating_sub(b) }
    VAddNcI16(a: i16, b: i16) -> i16 { a.saturating_add(b) }
    VSubNcI16(a: i16, b: i16) -> i16 { a.saturating_sub(b) }
    VPkAddI16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] {
        [(a[0] as i16).saturating_add(b[0] as i16) as u16, (a[1] as i16).saturating_add(b[1] as i16) as u16]
    }
    VPkSubI16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] {
        [(a[0] as i16).saturating_sub(b[0] as i16) as u16, (a[1] as i16).saturating_sub(b[1] as i16) as u16]
    }
    VPkAddU16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { [a[0].saturating_add(b[0]), a[1].saturating_add(b[1])] }
    VPkSubU16(a: [u16; 2], b: [u16; 2]) -> [u16; 2] { [a[0].saturating_sub(b[0]), a[1].saturating_sub(b[1])] }
} }

// The shift is in the high half of the third source.
lane_ops! { third_half {
} seldom {
    VAlignbitB32(a: u32, b: u32, c: u16) -> u32 { (pair(a, b) >> (c & 31)) as u32 }
    VAlignbyteB32(a: u32, b: u32, c: u16) -> u32 { (pair(a, b) >> (8 * (c & 3))) as u32 }
} }
