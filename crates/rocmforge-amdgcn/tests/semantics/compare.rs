//! Compares, classes, and selection by a mask.

use crate::harness::{As, Lane, check, vop3};
use std::cmp::Ordering;

/// `v_cndmask_b32 v8, 0, 1, vcc_lo`, then `v_mov_b32 v9, vcc_lo`.
const TAKE: [u32; 4] = [0xd501_0008, 128 | 129 << 9 | 106 << 18, 0xd581_0009, 106];
const VCC: u32 = 106;

/// `vcc = compare(v2, v4)` as VOP3, and what it says of the lane in `v8`; the whole mask in `v9`.
fn words(code: u32) -> Vec<u32> {
    let second = vop3(code, 2)[1];
    [0xd400_0000 | VCC | code << 16, second]
        .into_iter()
        .chain(TAKE)
        .collect()
}

fn compare(name: &str, code: u32, wide: bool, model: impl Fn(&Lane) -> bool) {
    check_low(name, &words(code), wide, |lane| u32::from(model(lane)));
}

/// As [`check`], but `v9` holds a mask, which no lane knows by itself.
fn check_low(name: &str, words: &[u32], wide: bool, model: impl Fn(&Lane) -> u32) {
    // v_mov_b32 v9, 0
    let words: Vec<u32> = words.iter().copied().chain([0xd581_0009, 128]).collect();
    check(name, &words, wide, As::Bits, |lane| Some(model(lane).into()));
}

type Relation = (&'static str, u32, fn(Option<Ordering>) -> bool);

/// What each relation says of less, equal, greater and unordered.
const FLOATS: [Relation; 16] = [
    ("f", 0, |_| false),
    ("lt", 1, |o| o == Some(Ordering::Less)),
    ("eq", 2, |o| o == Some(Ordering::Equal)),
    ("le", 3, |o| matches!(o, Some(Ordering::Less | Ordering::Equal))),
    ("gt", 4, |o| o == Some(Ordering::Greater)),
    ("lg", 5, |o| matches!(o, Some(Ordering::Less | Ordering::Greater))),
    ("ge", 6, |o| matches!(o, Some(Ordering::Greater | Ordering::Equal))),
    ("o", 7, |o| o.is_some()),
    ("u", 8, |o| o.is_none()),
    ("nge", 9, |o| !matches!(o, Some(Ordering::Greater | Ordering::Equal))),
    ("nlg", 10, |o| !matches!(o, Some(Ordering::Less | Ordering::Greater))),
    ("ngt", 11, |o| o != Some(Ordering::Greater)),
    ("nle", 12, |o| !matches!(o, Some(Ordering::Less | Ordering::Equal))),
    ("neq", 13, |o| o != Some(Ordering::Equal)),
    ("nlt", 14, |o| o != Some(Ordering::Less)),
    ("t", 15, |_| true),
];

#[test]
fn compares_of_floats_tell_unordered_from_unequal() {
    for (relation, code, model) in FLOATS {
        compare(&format!("v_cmp_{relation}_f16"), code, false, |l| {
            let of = |bits: u64| half::f16::from_bits(bits as u16);
            model(of(l.a).partial_cmp(&of(l.b)))
        });
        compare(&format!("v_cmp_{relation}_f32"), 0x10 + code, false, |l| {
            let of = |bits: u64| f32::from_bits(bits as u32);
            model(of(l.a).partial_cmp(&of(l.b)))
        });
        compare(&format!("v_cmp_{relation}_f64"), 0x20 + code, true, |l| {
            model(f64::from_bits(l.a).partial_cmp(&f64::from_bits(l.b)))
        });
    }
}

/// A relation: its name, its opcode's offset, and what it says of an order.
type IntegerRelation = (&'static str, u32, fn(Ordering) -> bool);

const INTEGERS: [IntegerRelation; 6] = [
    ("lt", 1, Ordering::is_lt),
    ("eq", 2, Ordering::is_eq),
    ("le", 3, Ordering::is_le),
    ("gt", 4, Ordering::is_gt),
    ("ne", 5, Ordering::is_ne),
    ("ge", 6, Ordering::is_ge),
];

#[test]
fn compares_of_integers() {
    for (relation, code, model) in INTEGERS {
        compare(&format!("v_cmp_{relation}_i16"), 0x30 + code, false, |l| {
            model((l.a as i16).cmp(&(l.b as i16)))
        });
        compare(&format!("v_cmp_{relation}_u16"), 0x38 + code, false, |l| {
            model((l.a as u16).cmp(&(l.b as u16)))
        });
        compare(&format!("v_cmp_{relation}_i32"), 0x40 + code, false, |l| {
            model((l.a as i32).cmp(&(l.b as i32)))
        });
        compare(&format!("v_cmp_{relation}_u32"), 0x48 + code, false, |l| {
            model((l.a as u32).cmp(&(l.b as u32)))
        });
        compare(&format!("v_cmp_{relation}_i64"), 0x50 + code, true, |l| {
            model((l.a as i64).cmp(&(l.b as i64)))
        });
        compare(&format!("v_cmp_{relation}_u64"), 0x58 + code, true, |l| {
            model(l.a.cmp(&l.b))
        });
    }
}

/// Class of a float of `mantissa` bits and `exponent` bits, as a bit number.
fn class(bits: u64, exponent: u32, mantissa: u32) -> u32 {
    let negative = bits >> (exponent + mantissa) & 1 == 1;
    let fraction = bits & ((1 << mantissa) - 1);
    let power = bits >> mantissa & ((1 << exponent) - 1);
    let signed = |minus, plus| if negative { minus } else { plus };
    match (power == (1 << exponent) - 1, power, fraction) {
        (true, _, 0) => signed(2, 9),
        // The first bit of the fraction tells a quiet NaN.
        (true, ..) => (fraction >> (mantissa - 1)) as u32,
        (_, 0, 0) => signed(5, 6),
        (_, 0, _) => signed(4, 7),
        _ => signed(3, 8),
    }
}

#[test]
fn classes_of_floats() {
    compare("v_cmp_class_f16", 0x7d, false, |l| {
        l.b as u16 >> class(l.a & 0xffff, 5, 10) & 1 == 1
    });
    compare("v_cmp_class_f32", 0x7e, false, |l| {
        l.b as u32 >> class(l.a & 0xffff_ffff, 8, 23) & 1 == 1
    });
    compare("v_cmp_class_f64", 0x7f, true, |l| {
        l.b as u32 >> class(l.a, 11, 52) & 1 == 1
    });
}

#[test]
fn a_compare_into_exec_turns_lanes_off() {
    // v_cmpx_lt_u32 v2, v4; v_mov_b32 v8, 7; s_mov_b32 exec_lo, -1
    let second = vop3(0xc9, 2)[1];
    let words = [0xd4c9_007e, second, 0xd581_0008, 135, 0xbefe_00c1];
    check("v_cmpx_lt_u32", &words, false, As::Bits, |l| {
        Some(if (l.a as u32) < l.b as u32 {
            l.d & !0xffff_ffff | 7
        } else {
            l.d
        })
    });
}

#[test]
fn selection_negates_only_what_it_selects() {
    // vcc = v2 < v4 (signed); v8 = vcc ? -v6 : |v2| as floats.
    let words = [
        0xd441_006a,
        0x102 | 0x104 << 9,
        0xd501_0108,
        0x102 | 0x106 << 9 | 106 << 18 | 1 << 30,
    ];
    check_low("v_cmp_lt_i32", &words, false, |l| {
        if (l.a as i32) < l.b as i32 {
            l.c as u32 ^ 0x8000_0000
        } else {
            l.a as u32 & 0x7fff_ffff
        }
    });
}

#[test]
fn carries_in_and_out() {
    // vcc = v6 < v2; v8 = v2 op v4 with carry from vcc to vcc; v9 = the new carry.
    let with_carry = |code: u32| {
        vec![
            0xd449_006a,
            0x106 | 0x102 << 9,
            0xd400_6a08 | code << 16,
            0x102 | 0x104 << 9 | 106 << 18,
            0xd501_0009,
            128 | 129 << 9 | 106 << 18,
        ]
    };
    let model = |code: u32, l: &Lane| {
        let carry = i64::from((l.c as u32) < l.a as u32);
        let (a, b) = (i64::from(l.a as u32), i64::from(l.b as u32));
        let value = match code {
            0x120 => a + b + carry,
            0x121 => a - b - carry,
            0x122 => b - a - carry,
            0x300 => a + b,
            0x301 => a - b,
            _ => b - a,
        };
        Some(u64::from(value as u32) | u64::from(!(0..1 << 32).contains(&value)) << 32)
    };
    for code in [0x120, 0x121, 0x122, 0x300, 0x301, 0x302] {
        let mut words = with_carry(code);
        if code >= 0x300 {
            // No carry in.
            words[3] = 0x102 | 0x104 << 9;
        }
        check("v_cmp_lt_u32", &words, false, As::Bits, |l| model(code, l));
    }
}
