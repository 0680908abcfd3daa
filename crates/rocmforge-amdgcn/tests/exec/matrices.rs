//! The matrix instructions of gfx1201 against sums over logical matrices, which the layout of the ISA manual puts into
//! registers: lane `l` has row or column `l % 16`, and of the depth the half `l / 16`.

use super::gfx1201::OBJECT;
use crate::card::{Arg, Card, Numbers};

/// Matrices of small integers, exact in every format.
struct Case {
    depth: usize,
    a: Vec<Vec<i32>>,
    b: Vec<Vec<i32>>,
    c: Vec<Vec<i32>>,
}

impl Case {
    fn new(seed: u64, depth: usize, a: std::ops::Range<i32>, b: std::ops::Range<i32>) -> Self {
        let mut numbers = Numbers(seed);
        let mut draw = |rows: usize, columns: usize, range: std::ops::Range<i32>| -> Vec<Vec<i32>> {
            let of = |x: u64| range.start + (x >> 20) as i32 % (range.end - range.start);
            (0..rows)
                .map(|_| (0..columns).map(|_| of(numbers.next() & 0x0FFF_FFFF_FFFF)).collect())
                .collect()
        };
        Self {
            depth,
            a: draw(16, depth, a),
            b: draw(depth, 16, b),
            c: draw(16, 16, -50..50),
        }
    }

    fn product(&self, row: usize, column: usize) -> i64 {
        let sum: i64 = (0..self.depth)
            .map(|k| i64::from(self.a[row][k]) * i64::from(self.b[k][column]))
            .sum();
        sum + i64::from(self.c[row][column])
    }

    /// Elements of a lane: those of its half of the depth.
    fn of_a(&self, lane: usize) -> Vec<i32> {
        let half = self.depth / 2;
        (0..half).map(|k| self.a[lane % 16][lane / 16 * half + k]).collect()
    }

    fn of_b(&self, lane: usize) -> Vec<i32> {
        let half = self.depth / 2;
        (0..half).map(|k| self.b[lane / 16 * half + k][lane % 16]).collect()
    }

    fn of_c(&self, lane: usize) -> Vec<i32> {
        (0..8).map(|r| self.c[lane / 16 * 8 + r][lane % 16]).collect()
    }
}

/// Packs the elements of 32 lanes into their registers.
fn pack(lanes: impl Fn(usize) -> Vec<i32>, bits: usize, encode: impl Fn(i32) -> u32) -> Vec<u32> {
    (0..32)
        .flat_map(|lane| {
            let elements = lanes(lane);
            let per = 32 / bits;
            assert!(elements.len().is_multiple_of(per) || elements.len() < per);
            elements
                .chunks(per)
                .map(|chunk| {
                    chunk
                        .iter()
                        .rev()
                        .fold(0u64, |word, &x| word << bits | u64::from(encode(x))) as u32
                })
                .collect::<Vec<u32>>()
        })
        .collect()
}

fn f16(x: i32) -> u32 {
    half::f16::from_f32(x as f32).to_bits().into()
}

fn bf16(x: i32) -> u32 {
    (x as f32).to_bits() >> 16
}

fn f32(x: i32) -> u32 {
    (x as f32).to_bits()
}

fn low(bits: u32) -> impl Fn(i32) -> u32 {
    move |x| x as u32 & ((1 << bits) - 1)
}

fn whole(x: i32) -> u32 {
    x as u32
}

/// Runs a dense kernel: A and B of `bits`, results of `wide` bits.
fn run(
    kernel: &str,
    case: &Case,
    bits: usize,
    a: impl Fn(i32) -> u32,
    b: impl Fn(i32) -> u32,
    wide: usize,
    c: impl Fn(i32) -> u32,
) -> Vec<u32> {
    let mut card = Card::new(OBJECT);
    let (da, db) = (
        card.upload(&pack(|l| case.of_a(l), bits, a)),
        card.upload(&pack(|l| case.of_b(l), bits, b)),
    );
    let packed = pack(|l| case.of_c(l), wide, c);
    let (dc, out) = (card.upload(&packed), card.alloc(4 * packed.len()));
    card.run(kernel, 1, 32, &[da, db, dc, out].map(Arg::Ptr));
    card.download(out, packed.len())
}

fn check(kernel: &str, case: &Case, out: &[u32], wide: usize, encode: impl Fn(i64) -> u32) {
    let per = 32 / wide;
    let registers = 8 / per;
    for row in 0..16 {
        for column in 0..16 {
            let (lane, r) = (row / 8 * 16 + column, row % 8);
            let word = out[lane * registers + r / per] >> (r % per * wide);
            let ours = if wide == 32 { word } else { word & 0xFFFF };
            assert_eq!(
                ours,
                encode(case.product(row, column)),
                "{kernel}: row {row}, column {column}"
            );
        }
    }
}

#[test]
fn floats() {
    for seed in 0..4 {
        let case = Case::new(seed, 16, -7..8, -7..8);
        let single = |x: i64| f32(x as i32);
        check(
            "f32 f16",
            &case,
            &run("wmma_f32_f16", &case, 16, f16, f16, 32, f32),
            32,
            single,
        );
        check(
            "f32 bf16",
            &case,
            &run("wmma_f32_bf16", &case, 16, bf16, bf16, 32, f32),
            32,
            single,
        );
        let out = run("wmma_f16_f16", &case, 16, f16, f16, 16, f16);
        check("f16 f16", &case, &out, 16, |x| f16(x as i32));
        // Of bfloat16 only sums up to 256 are exact.
        let small = Case::new(seed, 16, -2..3, -2..3);
        let out = run("wmma_bf16_bf16", &small, 16, bf16, bf16, 16, bf16);
        check("bf16 bf16", &small, &out, 16, |x| bf16(x as i32));
    }
}

#[test]
fn eight_bit_floats() {
    // Powers of two and their sums of three and two bits.
    let fp8 = |x: i32| {
        if x == 0 {
            0
        } else {
            u32::from(x < 0) << 7 | fields(x.unsigned_abs(), 3, 7)
        }
    };
    let bf8 = |x: i32| {
        if x == 0 {
            0
        } else {
            u32::from(x < 0) << 7 | fields(x.unsigned_abs(), 2, 15)
        }
    };
    let case = Case::new(9, 16, -8..9, -4..5);
    let out = run("wmma_f32_fp8_bf8", &case, 8, fp8, bf8, 32, f32);
    check("fp8 bf8", &case, &out, 32, |x| f32(x as i32));
}

/// Exponent and mantissa of a small number.
fn fields(x: u32, mantissa: u32, bias: u32) -> u32 {
    let exponent = x.ilog2();
    (exponent + bias) << mantissa | (x - (1 << exponent)) << mantissa >> exponent
}

#[test]
fn integers() {
    for seed in 0..4 {
        let case = Case::new(seed, 16, -128..128, -128..128);
        let out = run("wmma_i32_iu8", &case, 8, low(8), low(8), 32, whole);
        check("iu8", &case, &out, 32, |x| x as u32);
        let mixed = Case::new(seed, 16, -8..8, 0..16);
        let out = run("wmma_i32_iu4", &mixed, 4, low(4), low(4), 32, whole);
        check("iu4", &mixed, &out, 32, |x| x as u32);
        let deep = Case::new(seed, 32, 0..16, -8..8);
        let out = run("wmma_i32_k32_iu4", &deep, 4, low(4), low(4), 32, whole);
        check("iu4, 32 deep", &deep, &out, 32, |x| x as u32);
    }
}

#[test]
fn saturation() {
    let mut case = Case::new(7, 16, 200..256, 100..128);
    for row in &mut case.c {
        row.fill(i32::MAX - 100);
    }
    let out = run("wmma_i32_iu8_clamp", &case, 8, low(8), low(8), 32, whole);
    check("iu8 clamp", &case, &out, 32, |x| {
        x.clamp(i32::MIN.into(), i32::MAX.into()) as i32 as u32
    });
}

/// Of each four elements of a row two are stored, at places that a lane's index names. Gives the case with zeros where
/// nothing is stored, what each lane stores, and the indices.
fn sparse(
    seed: u64,
    depth: usize,
    a: std::ops::Range<i32>,
    b: std::ops::Range<i32>,
) -> (Case, Vec<Vec<i32>>, Vec<u32>) {
    let mut case = Case::new(seed, depth, a, b);
    let mut numbers = Numbers(seed + 100);
    let half = depth / 2;
    let (mut stored, mut indices) = (vec![Vec::new(); 32], vec![0u32; 32]);
    for lane in 0..32 {
        let (row, base) = (lane % 16, lane / 16 * half);
        for group in 0..half / 4 {
            let pair = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]][(numbers.next() >> 30) as usize % 6];
            for place in 0..4 {
                if !pair.contains(&place) {
                    case.a[row][base + 4 * group + place] = 0;
                }
            }
            for place in pair {
                let n = stored[lane].len();
                indices[lane] |= (place as u32) << (2 * n);
                stored[lane].push(case.a[row][base + 4 * group + place]);
            }
        }
    }
    (case, stored, indices)
}

#[test]
fn sparse_matrices() {
    for seed in 0..4 {
        let sparse_run = |kernel: &str,
                          depth: usize,
                          range: std::ops::Range<i32>,
                          bits: usize,
                          encode: &dyn Fn(i32) -> u32,
                          wide: usize,
                          c: &dyn Fn(i32) -> u32| {
            let (case, stored, indices) = sparse(seed, depth, range.clone(), range);
            let mut card = Card::new(OBJECT);
            let (da, db) = (
                card.upload(&pack(|l| stored[l].clone(), bits, encode)),
                card.upload(&pack(|l| case.of_b(l), bits, encode)),
            );
            let packed = pack(|l| case.of_c(l), wide, c);
            let (dc, dk, out) = (
                card.upload(&packed),
                card.upload(&indices),
                card.alloc(4 * packed.len()),
            );
            card.run(kernel, 1, 32, &[da, db, dc, dk, out].map(Arg::Ptr));
            let out = card.download::<u32>(out, packed.len());
            check(kernel, &case, &out, wide, |x| c(x as i32));
        };
        sparse_run("swmmac_f32_f16", 32, -7..8, 16, &f16, 32, &f32);
        sparse_run("swmmac_f16_f16", 32, -5..6, 16, &f16, 16, &f16);
        sparse_run("swmmac_i32_iu8", 32, -128..128, 8, &low(8), 32, &whole);
        sparse_run("swmmac_i32_iu4", 32, -8..8, 4, &low(4), 32, &whole);
        sparse_run("swmmac_i32_k64_iu4", 64, -8..8, 4, &low(4), 32, &whole);
    }
}
