//! Matrix multiply-accumulate of gfx1201: dense (`v_wmma_*`) and sparse (`v_swmmac_*`), 16 x 16 results.
//!
//! As the ISA's section on WMMA lays the matrices out for waves of 32: lane `l` holds of row `l mod 16` of A and of column
//! `l mod 16` of B one half of the depth, lanes from 16 on the second half; and of column `l mod 16` of C and D the eight
//! rows from `8 (l / 16)` on. A sparse A stores two of each four elements of a row, and an index of two bits says for each
//! where it belongs.

// Registers and lanes are the coordinates of a matrix element.
#![allow(clippy::needless_range_loop)]

use crate::enc::{self, Fields, v};
use crate::fp8::{BF8, FP8, Format as Eight};
use crate::harness::Random;
use crate::registers::{A, B, C, D, Reg, run};
use crate::valu::named;
use rocmforge_isa::{Format, Op};

/// What an element is.
#[derive(Clone, Copy)]
enum Kind {
    F16,
    Bf16,
    Eight(&'static Eight),
    /// Signed where the source's `neg` bit says so.
    Integer(u32),
}

use Kind::{Bf16, F16, Integer};
const FP: Kind = Kind::Eight(&FP8);
const BF: Kind = Kind::Eight(&BF8);

impl Kind {
    fn bits(self) -> u32 {
        match self {
            F16 | Bf16 => 16,
            Self::Eight(_) => 8,
            Integer(bits) => bits,
        }
    }
    fn read(self, raw: u32, signed: bool) -> f64 {
        match self {
            F16 => half::f16::from_bits(raw as u16).to_f64(),
            Bf16 => half::bf16::from_bits(raw as u16).to_f64(),
            Self::Eight(format) => format.value(raw as u8),
            Integer(bits) if signed && raw >> (bits - 1) & 1 == 1 => f64::from(raw) - f64::from(1u32 << bits),
            Integer(_) => raw.into(),
        }
    }
    fn write(self, x: f64) -> u32 {
        match self {
            F16 => half::f16::from_f64(x).to_bits().into(),
            Bf16 => half::bf16::from_f64(x).to_bits().into(),
            Self::Eight(format) => format.nearest(x as f32)[0].into(),
            Integer(bits) => x as i32 as u32 & (u32::MAX >> (32 - bits)),
        }
    }
}

/// What C and D hold.
#[derive(Clone, Copy, PartialEq)]
enum Sums {
    F32,
    F16,
    Bf16,
    I32,
}

/// Name, kinds of A and B, depth, results. Of sparse ones half of the depth of A is stored.
type Shape = (&'static str, Kind, Kind, usize, Sums);

#[rustfmt::skip]
const DENSE: [Shape; 11] = [
    ("v_wmma_f32_16x16x16_f16", F16, F16, 16, Sums::F32),
    ("v_wmma_f32_16x16x16_bf16", Bf16, Bf16, 16, Sums::F32),
    ("v_wmma_f16_16x16x16_f16", F16, F16, 16, Sums::F16),
    ("v_wmma_bf16_16x16x16_bf16", Bf16, Bf16, 16, Sums::Bf16),
    ("v_wmma_i32_16x16x16_iu8", Integer(8), Integer(8), 16, Sums::I32),
    ("v_wmma_i32_16x16x16_iu4", Integer(4), Integer(4), 16, Sums::I32),
    ("v_wmma_i32_16x16x32_iu4", Integer(4), Integer(4), 32, Sums::I32),
    ("v_wmma_f32_16x16x16_fp8_fp8", FP, FP, 16, Sums::F32),
    ("v_wmma_f32_16x16x16_fp8_bf8", FP, BF, 16, Sums::F32),
    ("v_wmma_f32_16x16x16_bf8_fp8", BF, FP, 16, Sums::F32),
    ("v_wmma_f32_16x16x16_bf8_bf8", BF, BF, 16, Sums::F32),
];

#[rustfmt::skip]
const SPARSE: [Shape; 11] = [
    ("v_swmmac_f32_16x16x32_f16", F16, F16, 32, Sums::F32),
    ("v_swmmac_f32_16x16x32_bf16", Bf16, Bf16, 32, Sums::F32),
    ("v_swmmac_f16_16x16x32_f16", F16, F16, 32, Sums::F16),
    ("v_swmmac_bf16_16x16x32_bf16", Bf16, Bf16, 32, Sums::Bf16),
    ("v_swmmac_i32_16x16x32_iu8", Integer(8), Integer(8), 32, Sums::I32),
    ("v_swmmac_i32_16x16x32_iu4", Integer(4), Integer(4), 32, Sums::I32),
    ("v_swmmac_i32_16x16x64_iu4", Integer(4), Integer(4), 64, Sums::I32),
    ("v_swmmac_f32_16x16x32_fp8_fp8", FP, FP, 32, Sums::F32),
    ("v_swmmac_f32_16x16x32_fp8_bf8", FP, BF, 32, Sums::F32),
    ("v_swmmac_f32_16x16x32_bf8_fp8", BF, FP, 32, Sums::F32),
    ("v_swmmac_f32_16x16x32_bf8_bf8", BF, BF, 32, Sums::F32),
];

/// Puts element `n` of those that a lane holds from a register on.
fn put(regs: &mut [Reg; 32], first: u32, lane: usize, n: usize, bits: u32, raw: u32) {
    let per = 32 / bits as usize;
    regs[first as usize - 2 + n / per][lane] |= raw << (n % per * bits as usize);
}

/// Lane, register and shift of an element of C and D.
fn place(sums: Sums, row: usize, column: usize) -> (usize, usize, usize) {
    let lane = row / 8 * 16 + column;
    match sums {
        Sums::F32 | Sums::I32 => (lane, row % 8, 0),
        Sums::F16 | Sums::Bf16 => (lane, row % 8 / 2, row % 2 * 16),
    }
}

/// `exact`: small whole numbers, whose sums every format holds.
fn check(shape: &Shape, sparse: bool, exact: bool, fields: Fields, seed: u64) {
    let &(name, of_a, of_b, depth, sums) = shape;
    let code = enc::code(name, Format::Vop3p);
    let mut random = Random(seed);
    let mut number = |kind: Kind| match kind {
        Integer(bits) => random.next() as u32 >> (32 - bits),
        _ if exact => kind.write((random.next() % 5) as f64 - 2.0),
        _ => kind.write((random.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0),
    };
    let mut regs = [[0; 32]; 32];
    let half = depth / 2;
    // Raw elements; what is not stored of a sparse row is no factor at all.
    let mut a = [[None; 64]; 16];
    let op_sel = if sparse && half < 32 { fields.op_sel & 1 } else { 0 };
    for lane in 0..32 {
        let (row, base) = (lane % 16, lane / 16 * half);
        for n in 0..if sparse { half / 2 } else { half } {
            let raw = number(of_a);
            put(&mut regs, A, lane, n, of_a.bits(), raw);
            let k = if sparse {
                // Of each pair, the first comes before the second.
                let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
                let pair = pairs[(seed as usize + lane * 31 + n / 2 * 7) % 6];
                let at = pair[n % 2];
                regs[C as usize - 2][lane] |= at << (2 * n + 16 * op_sel as usize);
                n / 2 * 4 + at as usize
            } else {
                n
            };
            a[row][base + k] = Some(raw);
        }
    }
    let mut b = [[0; 16]; 64];
    for lane in 0..32 {
        for n in 0..half {
            let raw = number(of_b);
            put(&mut regs, B, lane, n, of_b.bits(), raw);
            b[lane / 16 * half + n][lane % 16] = raw;
        }
    }
    let addends = if sparse { D } else { C };
    let mut c = [[0.0; 16]; 16];
    for row in 0..16 {
        for column in 0..16 {
            let (lane, register, shift) = place(sums, row, column);
            let (raw, value) = match sums {
                Sums::I32 => {
                    let raw = if exact {
                        random_i32(row, column)
                    } else {
                        (row * 77 + column) as i32 - 500
                    };
                    (raw as u32, f64::from(raw))
                }
                Sums::F32 => {
                    let x = (row as f32 - 7.0) * 3.0 + column as f32;
                    (x.to_bits(), x.into())
                }
                Sums::F16 => (F16.write(row as f64 - column as f64), row as f64 - column as f64),
                Sums::Bf16 => (Bf16.write(row as f64 - column as f64), row as f64 - column as f64),
            };
            regs[addends as usize - 2 + register][lane] |= raw << shift;
            c[row][column] = value;
        }
    }
    let words = enc::vop3p(code, D, [v(A), v(B), v(C)], Fields { hi: 7, ..fields });
    let ours = run(&words, &regs);
    let float = sums != Sums::I32;
    let sign = |mask: u32, n: usize| if float && mask >> n & 1 == 1 { -1.0 } else { 1.0 };
    let step = match sums {
        Sums::F32 | Sums::I32 => 1.0 / 8_388_608.0,
        Sums::F16 => 1.0 / 1024.0,
        Sums::Bf16 => 1.0 / 128.0,
    };
    for row in 0..16 {
        for column in 0..16 {
            let factor = |kind: Kind, raw: u32, source: usize, k: usize| {
                let mask = if k.is_multiple_of(2) { fields.neg } else { fields.abs };
                kind.read(raw, fields.neg >> source & 1 == 1) * sign(mask, source)
            };
            let products = (0..depth).filter_map(|k| {
                let left = a[row][k]?;
                Some(factor(of_a, left, 0, k) * factor(of_b, b[k][column], 1, k))
            });
            let mut addend = c[row][column];
            if float && !sparse {
                if fields.abs & 4 != 0 {
                    addend = addend.abs();
                }
                addend *= sign(fields.neg, 2);
            }
            let terms: Vec<f64> = products.chain([addend]).collect();
            let sum: f64 = terms.iter().sum();
            let (lane, register, shift) = place(sums, row, column);
            let raw = ours[register][lane] >> shift;
            let at = format!("{name} {fields:?}, row {row}, column {column}");
            if !float {
                let model = if fields.clamp {
                    sum.clamp(i32::MIN.into(), i32::MAX.into())
                } else {
                    sum
                };
                assert_eq!(raw, model as i64 as u32, "{at}");
                continue;
            }
            let got = match sums {
                Sums::F16 => F16.read(raw & 0xffff, false),
                Sums::Bf16 => Bf16.read(raw & 0xffff, false),
                _ => f32::from_bits(raw).into(),
            };
            // Each addition may round by half a unit, in an order that the ISA leaves open.
            let tolerance = if exact {
                0.0
            } else {
                terms.iter().map(|t| t.abs()).sum::<f64>() * step * terms.len() as f64 / 2.0
            };
            assert!(
                (got - sum).abs() <= tolerance,
                "{at}: {got}, the model says {sum} within {tolerance}"
            );
        }
    }
}

/// Addends on both ends of the range, so that sums leave it.
fn random_i32(row: usize, column: usize) -> i32 {
    match (row + column) % 3 {
        0 => i32::MAX - row as i32,
        1 => i32::MIN + column as i32,
        _ => row as i32 * 1000,
    }
}

fn all_fields(shape: &Shape, sparse: bool) -> Vec<Fields> {
    let plain = Fields::default();
    let mut all = vec![plain];
    match shape.1 {
        Integer(_) => {
            for neg in 0..4 {
                for clamp in [false, true] {
                    all.push(Fields { neg, clamp, ..plain });
                }
            }
        }
        F16 | Bf16 if !sparse => {
            for (neg, abs) in [(1, 0), (2, 1), (3, 3), (4, 0), (4, 4), (0, 4)] {
                all.push(Fields { neg, abs, ..plain });
            }
        }
        _ if !sparse => {
            for (neg, abs) in [(4, 0), (4, 4), (0, 4)] {
                all.push(Fields { neg, abs, ..plain });
            }
        }
        _ => {}
    }
    if sparse && shape.3 < 64 {
        all.push(Fields { op_sel: 1, ..plain });
    }
    all
}

#[test]
fn dense() {
    for shape in &DENSE {
        for (n, fields) in all_fields(shape, false).into_iter().enumerate() {
            check(shape, false, true, fields, 1 + n as u64);
            check(shape, false, false, fields, 101 + n as u64);
        }
    }
}

#[test]
fn sparse() {
    for shape in &SPARSE {
        for (n, fields) in all_fields(shape, true).into_iter().enumerate() {
            check(shape, true, true, fields, 1 + n as u64);
            check(shape, true, false, fields, 101 + n as u64);
        }
    }
}

pub(crate) fn ops() -> Vec<Op> {
    let names = DENSE.iter().chain(&SPARSE).map(|(name, ..)| *name);
    names.filter_map(named).collect()
}
