//! Compares. `v_cmpx_*` differs only in where the mask goes: to `exec`.

// `!(a < b)` is what `v_cmp_nlt` is: true for NaN.
#![allow(clippy::neg_cmp_op_on_partial_ord, clippy::nonminimal_bool)]

use crate::exec::vector::elem::H;
use crate::exec::vector::lane_ops::lane_ops;

macro_rules! class {
    ($name:ident, $float:ty, $bits:ty, $quiet:expr) => {
        /// Whether a value is of one of the classes in `mask`.
        #[inline(always)]
        fn $name(x: $float, mask: u32) -> bool {
            let negative = x.is_sign_negative();
            let class = if x.is_nan() {
                u32::from(x.to_bits() & $quiet != 0)
            } else if x.is_infinite() {
                if negative { 2 } else { 9 }
            } else if x == 0.0 {
                if negative { 5 } else { 6 }
            } else if x.abs() < <$float>::MIN_POSITIVE {
                if negative { 4 } else { 7 }
            } else if negative {
                3
            } else {
                8
            };
            mask >> class & 1 != 0
        }
    };
}
class!(class32, f32, u32, 1 << 22);
class!(class64, f64, u64, 1 << 51);

/// A half that is denormal is a normal single.
#[inline(always)]
fn class16(x: f32, mask: u32) -> bool {
    let small = x != 0.0 && x.abs() < 6.103_515_6e-5;
    class32(if small { f32::from_bits(1).copysign(x) } else { x }, mask)
}

/// `lg`: false for NaN, unlike `!=`.
#[inline(always)]
fn less_or_greater<T: PartialOrd>(a: T, b: T) -> bool {
    // Without a branch, so that lanes stay in vectors.
    (a < b) | (a > b)
}

/// Neither less, equal nor greater.
#[inline(always)]
fn unordered<T: PartialOrd>(a: T, b: T) -> bool {
    a.partial_cmp(&b).is_none()
}

lane_ops! { lookup {
    VCmpLtF32 | VCmpxLtF32(a: f32, b: f32) -> bool { a < b }
    VCmpEqF32 | VCmpxEqF32(a: f32, b: f32) -> bool { a == b }
    VCmpLeF32 | VCmpxLeF32(a: f32, b: f32) -> bool { a <= b }
    VCmpGtF32 | VCmpxGtF32(a: f32, b: f32) -> bool { a > b }
    VCmpGeF32 | VCmpxGeF32(a: f32, b: f32) -> bool { a >= b }
    VCmpOF32 | VCmpxOF32(a: f32, b: f32) -> bool { !unordered(a, b) }
    VCmpUF32 | VCmpxUF32(a: f32, b: f32) -> bool { unordered(a, b) }
    VCmpNgeF32 | VCmpxNgeF32(a: f32, b: f32) -> bool { !(a >= b) }
    VCmpNlgF32 | VCmpxNlgF32(a: f32, b: f32) -> bool { !less_or_greater(a, b) }
    VCmpNgtF32 | VCmpxNgtF32(a: f32, b: f32) -> bool { !(a > b) }
    VCmpNleF32 | VCmpxNleF32(a: f32, b: f32) -> bool { !(a <= b) }
    VCmpNeqF32 | VCmpxNeqF32(a: f32, b: f32) -> bool { a != b }
    VCmpNltF32 | VCmpxNltF32(a: f32, b: f32) -> bool { !(a < b) }
    VCmpLtI32 | VCmpxLtI32(a: i32, b: i32) -> bool { a < b }
    VCmpGtI32 | VCmpxGtI32(a: i32, b: i32) -> bool { a > b }
    VCmpLtU32 | VCmpxLtU32(a: u32, b: u32) -> bool { a < b }
    VCmpEqU32 | VCmpxEqU32(a: u32, b: u32) -> bool { a == b }
    VCmpLeU32 | VCmpxLeU32(a: u32, b: u32) -> bool { a <= b }
    VCmpGtU32 | VCmpxGtU32(a: u32, b: u32) -> bool { a > b }
    VCmpNeU32 | VCmpxNeU32(a: u32, b: u32) -> bool { a != b }
    VCmpGeU32 | VCmpxGeU32(a: u32, b: u32) -> bool { a >= b }
    VCmpLtI64 | VCmpxLtI64(a: i64, b: i64) -> bool { a < b }
    VCmpLeI64 | VCmpxLeI64(a: i64, b: i64) -> bool { a <= b }
    VCmpGtI64 | VCmpxGtI64(a: i64, b: i64) -> bool { a > b }
    VCmpLtU64 | VCmpxLtU64(a: u64, b: u64) -> bool { a < b }
    VCmpLeU64 | VCmpxLeU64(a: u64, b: u64) -> bool { a <= b }
    VCmpGtU64 | VCmpxGtU64(a: u64, b: u64) -> bool { a > b }
    VCmpNeU64 | VCmpxNeU64(a: u64, b: u64) -> bool { a != b }
    VCmpGeU64 | VCmpxGeU64(a: u64, b: u64) -> bool { a >= b }
    VCmpClassF32 | VCmpxClassF32(a: f32, b: u32) -> bool { class32(a, b) }
} seldom {
    VCmpLgF32 | VCmpxLgF32(a: f32, b: f32) -> bool { less_or_greater(a, b) }
    VCmpEqI32 | VCmpxEqI32(a: i32, b: i32) -> bool { a == b }
    VCmpLeI32 | VCmpxLeI32(a: i32, b: i32) -> bool { a <= b }
    VCmpNeI32 | VCmpxNeI32(a: i32, b: i32) -> bool { a != b }
    VCmpGeI32 | VCmpxGeI32(a: i32, b: i32) -> bool { a >= b }
    VCmpEqI64 | VCmpxEqI64(a: i64, b: i64) -> bool { a == b }
    VCmpNeI64 | VCmpxNeI64(a: i64, b: i64) -> bool { a != b }
    VCmpGeI64 | VCmpxGeI64(a: i64, b: i64) -> bool { a >= b }
    VCmpEqU64 | VCmpxEqU64(a: u64, b: u64) -> bool { a == b }
    VCmpFF16 | VCmpxFF16(_a: H, _b: H) -> bool { false }
    VCmpLtF16 | VCmpxLtF16(a: H, b: H) -> bool { a.0 < b.0 }
    VCmpEqF16 | VCmpxEqF16(a: H, b: H) -> bool { a.0 == b.0 }
    VCmpLeF16 | VCmpxLeF16(a: H, b: H) -> bool { a.0 <= b.0 }
    VCmpGtF16 | VCmpxGtF16(a: H, b: H) -> bool { a.0 > b.0 }
    VCmpLgF16 | VCmpxLgF16(a: H, b: H) -> bool { less_or_greater(a.0, b.0) }
    VCmpGeF16 | VCmpxGeF16(a: H, b: H) -> bool { a.0 >= b.0 }
    VCmpOF16 | VCmpxOF16(a: H, b: H) -> bool { !unordered(a.0, b.0) }
    VCmpUF16 | VCmpxUF16(a: H, b: H) -> bool { unordered(a.0, b.0) }
    VCmpNgeF16 | VCmpxNgeF16(a: H, b: H) -> bool { !(a.0 >= b.0) }
    VCmpNlgF16 | VCmpxNlgF16(a: H, b: H) -> bool { !less_or_greater(a.0, b.0) }
    VCmpNgtF16 | VCmpxNgtF16(a: H, b: H) -> bool { !(a.0 > b.0) }
    VCmpNleF16 | VCmpxNleF16(a: H, b: H) -> bool { !(a.0 <= b.0) }
    VCmpNeqF16 | VCmpxNeqF16(a: H, b: H) -> bool { a.0 != b.0 }
    VCmpNltF16 | VCmpxNltF16(a: H, b: H) -> bool { !(a.0 < b.0) }
    VCmpTF16 | VCmpxTF16(_a: H, _b: H) -> bool { true }
    VCmpFF32 | VCmpxFF32(_a: f32, _b: f32) -> bool { false }
    VCmpTF32 | VCmpxTF32(_a: f32, _b: f32) -> bool { true }
    VCmpFF64 | VCmpxFF64(_a: f64, _b: f64) -> bool { false }
    VCmpLtF64 | VCmpxLtF64(a: f64, b: f64) -> bool { a < b }
    VCmpEqF64 | VCmpxEqF64(a: f64, b: f64) -> bool { a == b }
    VCmpLeF64 | VCmpxLeF64(a: f64, b: f64) -> bool { a <= b }
    VCmpGtF64 | VCmpxGtF64(a: f64, b: f64) -> bool { a > b }
    VCmpLgF64 | VCmpxLgF64(a: f64, b: f64) -> bool { less_or_greater(a, b) }
    VCmpGeF64 | VCmpxGeF64(a: f64, b: f64) -> bool { a >= b }
    VCmpOF64 | VCmpxOF64(a: f64, b: f64) -> bool { !unordered(a, b) }
    VCmpUF64 | VCmpxUF64(a: f64, b: f64) -> bool { unordered(a, b) }
    VCmpNgeF64 | VCmpxNgeF64(a: f64, b: f64) -> bool { !(a >= b) }
    VCmpNlgF64 | VCmpxNlgF64(a: f64, b: f64) -> bool { !less_or_greater(a, b) }
    VCmpNgtF64 | VCmpxNgtF64(a: f64, b: f64) -> bool { !(a > b) }
    VCmpNleF64 | VCmpxNleF64(a: f64, b: f64) -> bool { !(a <= b) }
    VCmpNeqF64 | VCmpxNeqF64(a: f64, b: f64) -> bool { a != b }
    VCmpNltF64 | VCmpxNltF64(a: f64, b: f64) -> bool { !(a < b) }
    VCmpTF64 | VCmpxTF64(_a: f64, _b: f64) -> bool { true }
    VCmpLtI16 | VCmpxLtI16(a: i16, b: i16) -> bool { a < b }
    VCmpEqI16 | VCmpxEqI16(a: i16, b: i16) -> bool { a == b }
    VCmpLeI16 | VCmpxLeI16(a: i16, b: i16) -> bool { a <= b }
    VCmpGtI16 | VCmpxGtI16(a: i16, b: i16) -> bool { a > b }
    VCmpNeI16 | VCmpxNeI16(a: i16, b: i16) -> bool { a != b }
    VCmpGeI16 | VCmpxGeI16(a: i16, b: i16) -> bool { a >= b }
    VCmpLtU16 | VCmpxLtU16(a: u16, b: u16) -> bool { a < b }
    VCmpEqU16 | VCmpxEqU16(a: u16, b: u16) -> bool { a == b }
    VCmpLeU16 | VCmpxLeU16(a: u16, b: u16) -> bool { a <= b }
    VCmpGtU16 | VCmpxGtU16(a: u16, b: u16) -> bool { a > b }
    VCmpNeU16 | VCmpxNeU16(a: u16, b: u16) -> bool { a != b }
    VCmpGeU16 | VCmpxGeU16(a: u16, b: u16) -> bool { a >= b }
    VCmpFI32 | VCmpxFI32(_a: i32, _b: i32) -> bool { false }
    VCmpTI32 | VCmpxTI32(_a: i32, _b: i32) -> bool { true }
    VCmpFU32 | VCmpxFU32(_a: u32, _b: u32) -> bool { false }
    VCmpTU32 | VCmpxTU32(_a: u32, _b: u32) -> bool { true }
    VCmpFI64 | VCmpxFI64(_a: i64, _b: i64) -> bool { false }
    VCmpTI64 | VCmpxTI64(_a: i64, _b: i64) -> bool { true }
    VCmpFU64 | VCmpxFU64(_a: u64, _b: u64) -> bool { false }
    VCmpTU64 | VCmpxTU64(_a: u64, _b: u64) -> bool { true }
    VCmpClassF16 | VCmpxClassF16(a: H, b: u16) -> bool { class16(a.0, u32::from(b)) }
    VCmpClassF64 | VCmpxClassF64(a: f64, b: u32) -> bool { class64(a, b) }
} }
