//! Matrix multiply-accumulate of a wave as gfx1201 lays it out: 16 x 16 results.
//!
//! Lane `l` holds of row (A) or column (B) `l % 16` one half of the depth: lanes 0 to 15 the first, lanes 16 to 31 the
//! second. It holds of column `l % 16` of C and D the rows from `8 * (l / 16)` on, eight of them: one a register where
//! results have 32 bits, else two.
//!
//! Of a sparse A (`v_swmmac_*`) only two of each four elements are stored, and two bits of an index say for each which.

use crate::exec::code::isa::{Handler, Run, plain, vector};
use crate::exec::code::{Ins, Kind};
use crate::exec::gfx12::fp8::{from_bf8, from_fp8};
use crate::exec::vector::num::{bf16_to_f32, f32_to_bf16, f32_to_half, half_to_f32};
use crate::exec::waves::ctx::Ctx;
use crate::exec::waves::wave::Wave;
use rocmforge_isa::Op;

/// What an operation multiplies. All of them share two handlers, which look it up: twenty copies of the loops would take
/// the compiler minutes.
#[derive(Clone, Copy)]
struct Shape {
    op: Op,
    /// Of an element of A and B.
    bits: usize,
    depth: usize,
    sparse: bool,
    kinds: Kinds,
}

#[derive(Clone, Copy)]
enum Kinds {
    Integers,
    /// How elements of A and B become singles.
    Floats(fn(u32) -> f32, fn(u32) -> f32, Sums),
}

/// What C and D hold.
#[derive(Clone, Copy, PartialEq)]
enum Sums {
    F32,
    F16,
    Bf16,
}

/// The deepest matrix.
const MOST: usize = 64;

/// Element `k` of those that a lane holds from register `reg` on.
fn element(w: &Wave, bits: usize, reg: u8, lane: usize, k: usize) -> u32 {
    let per = 32 / bits;
    let word = w.v[(reg as usize + k / per) & 255].0[lane] >> (k % per * bits);
    word & (u32::MAX >> (32 - bits))
}

/// Raw elements of A by row and of B by column, each over the whole depth, and which elements of a row are stored.
struct Gathered {
    a: [[u32; MOST]; 16],
    b: [[u32; MOST]; 16],
    stored: [u64; 16],
}

fn gather(w: &Wave, i: &Ins, shape: &Shape) -> Gathered {
    let mut out = Gathered {
        a: [[0; MOST]; 16],
        b: [[0; MOST]; 16],
        stored: [if shape.sparse { 0 } else { u64::MAX }; 16],
    };
    let half = shape.depth / 2;
    for lane in 0..32 {
        let (n, base) = (lane % 16, lane / 16 * half);
        for k in 0..half {
            out.b[n][base + k] = element(w, shape.bits, i.b.reg, lane, k);
        }
        if !shape.sparse {
            for k in 0..half {
                out.a[n][base + k] = element(w, shape.bits, i.a.reg, lane, k);
            }
            continue;
        }
        // Two bits for each stored element: which of the four of its group it is. Eight elements need half a register.
        let word = w.v[i.c.reg as usize].0[lane];
        let index = if half == 32 {
            word
        } else {
            word >> (16 * (i.target & 1))
        };
        for k in 0..half / 2 {
            let at = base + k / 2 * 4 + (index >> (2 * k) & 3) as usize;
            out.stored[n] |= 1 << at;
            out.a[n][at] = element(w, shape.bits, i.a.reg, lane, k);
        }
    }
    out
}

/// Old accumulator bits of register `r`: of `src2`, or of the destination where `src2` is an index.
fn old(w: &Wave, i: &Ins, r: usize, lane: usize, sparse: bool) -> u32 {
    if sparse {
        w.v[(i.dst as usize + r) & 255].0[lane]
    } else if i.c.kind == Kind::V {
        w.v[(i.c.reg as usize + r) & 255].0[lane]
    } else {
        w.scalar(&i.c)
    }
}

struct Floats;

impl Handler for Floats {
    #[inline(always)]
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let shape = &SHAPES[(i.target >> 8) as usize % SHAPES.len()];
        let Kinds::Floats(a_of, b_of, sums) = shape.kinds else {
            return;
        };
        // Signs of even and odd elements of A and B; sign and absolute value of the accumulator.
        let sign = |bit: i32| ((i.imm >> bit & 1) as u32) << (shape.bits - 1);
        let (flip_a, flip_b) = ([sign(0), sign(8)], [sign(1), sign(9)]);
        let (negative, absolute) = (
            i.imm >> 2 & 1 != 0 && !shape.sparse,
            i.imm >> 10 & 1 != 0 && !shape.sparse,
        );
        let raw = gather(w, i, shape);
        // B by its depth, so that sixteen columns are added at a time.
        let mut b = [[0.0f32; 16]; MOST];
        for n in 0..16 {
            for k in 0..shape.depth {
                b[k][n] = b_of(raw.b[n][k] ^ flip_b[k & 1]);
            }
        }
        let mut out = [[0.0f32; 16]; 16];
        for (row, out) in out.iter_mut().enumerate() {
            for (n, sum) in out.iter_mut().enumerate() {
                let lane = row / 8 * 16 + n;
                let half = 16 * (row & 1);
                let c = match sums {
                    Sums::F32 => f32::from_bits(old(w, i, row % 8, lane, shape.sparse)),
                    Sums::F16 => half_to_f32((old(w, i, row % 8 / 2, lane, shape.sparse) >> half) as u16),
                    Sums::Bf16 => bf16_to_f32((old(w, i, row % 8 / 2, lane, shape.sparse) >> half) as u16),
                };
                let c = if absolute { c.abs() } else { c };
                *sum = if negative { -c } else { c };
            }
            for k in 0..shape.depth {
                // What is not stored is not multiplied, not even by NaN.
                if raw.stored[row] >> k & 1 == 0 {
                    continue;
                }
                let a = a_of(raw.a[row][k] ^ flip_a[k & 1]);
                for n in 0..16 {
                    out[n] = a.mul_add(b[k][n], out[n]);
                }
            }
        }
        let narrow = |low: f32, high: f32| match sums {
            Sums::F16 => u32::from(f32_to_half(low)) | u32::from(f32_to_half(high)) << 16,
            _ => u32::from(f32_to_bf16(low)) | u32::from(f32_to_bf16(high)) << 16,
        };
        for lane in 0..32 {
            let (base, n) = (lane / 16 * 8, lane % 16);
            for r in 0..if sums == Sums::F32 { 8 } else { 4 } {
                w.v[(i.dst as usize + r) & 255].0[lane] = match sums {
                    Sums::F32 => out[base + r][n].to_bits(),
                    _ => narrow(out[base + 2 * r][n], out[base + 2 * r + 1][n]),
                };
            }
        }
    }
}

struct Integers;

impl Handler for Integers {
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let shape = &SHAPES[(i.target >> 8) as usize % SHAPES.len()];
        let up = 32 - shape.bits;
        // Signed where the operand's `neg` bit says so.
        let widen = |bits: u32, signed: bool| {
            if signed { (bits << up) as i32 >> up } else { bits as i32 }
        };
        let (signed_a, signed_b) = (i.imm & 1 != 0, i.imm & 2 != 0);
        let raw = gather(w, i, shape);
        let mut out = [[0u32; 32]; 8];
        for (r, out) in out.iter_mut().enumerate() {
            for (lane, out) in out.iter_mut().enumerate() {
                let (a, b) = (&raw.a[lane / 16 * 8 + r], &raw.b[lane % 16]);
                let mut sum = i64::from(old(w, i, r, lane, shape.sparse) as i32);
                for k in 0..shape.depth {
                    sum += i64::from(widen(a[k], signed_a) * widen(b[k], signed_b));
                }
                let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
                *out = if i.clamp { clamped as u32 } else { sum as u32 };
            }
        }
        for (r, out) in out.iter().enumerate() {
            w.v[(i.dst as usize + r) & 255].0 = *out;
        }
    }
}

fn f16(bits: u32) -> f32 {
    half_to_f32(bits as u16)
}

fn bf16(bits: u32) -> f32 {
    bf16_to_f32(bits as u16)
}

fn fp8(bits: u32) -> f32 {
    from_fp8(bits as u8)
}

fn bf8(bits: u32) -> f32 {
    from_bf8(bits as u8)
}

const fn shape(op: Op, bits: usize, depth: usize, sparse: bool, kinds: Kinds) -> Shape {
    Shape {
        op,
        bits,
        depth,
        sparse,
        kinds,
    }
}

#[rustfmt::skip]
static SHAPES: [Shape; 22] = [
    shape(Op::VWmmaF32_16x16x16F16, 16, 16, false, Kinds::Floats(f16, f16, Sums::F32)),
    shape(Op::VWmmaF32_16x16x16Bf16, 16, 16, false, Kinds::Floats(bf16, bf16, Sums::F32)),
    shape(Op::VWmmaF16_16x16x16F16, 16, 16, false, Kinds::Floats(f16, f16, Sums::F16)),
    shape(Op::VWmmaBf16_16x16x16Bf16, 16, 16, false, Kinds::Floats(bf16, bf16, Sums::Bf16)),
    shape(Op::VWmmaI32_16x16x16Iu8, 8, 16, false, Kinds::Integers),
    shape(Op::VWmmaI32_16x16x16Iu4, 4, 16, false, Kinds::Integers),
    shape(Op::VWmmaI32_16x16x32Iu4, 4, 32, false, Kinds::Integers),
    shape(Op::VWmmaF32_16x16x16Fp8Fp8, 8, 16, false, Kinds::Floats(fp8, fp8, Sums::F32)),
    shape(Op::VWmmaF32_16x16x16Fp8Bf8, 8, 16, false, Kinds::Floats(fp8, bf8, Sums::F32)),
    shape(Op::VWmmaF32_16x16x16Bf8Fp8, 8, 16, false, Kinds::Floats(bf8, fp8, Sums::F32)),
    shape(Op::VWmmaF32_16x16x16Bf8Bf8, 8, 16, false, Kinds::Floats(bf8, bf8, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32F16, 16, 32, true, Kinds::Floats(f16, f16, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32Bf16, 16, 32, true, Kinds::Floats(bf16, bf16, Sums::F32)),
    shape(Op::VSwmmacF16_16x16x32F16, 16, 32, true, Kinds::Floats(f16, f16, Sums::F16)),
    shape(Op::VSwmmacBf16_16x16x32Bf16, 16, 32, true, Kinds::Floats(bf16, bf16, Sums::Bf16)),
    shape(Op::VSwmmacI32_16x16x32Iu8, 8, 32, true, Kinds::Integers),
    shape(Op::VSwmmacI32_16x16x32Iu4, 4, 32, true, Kinds::Integers),
    shape(Op::VSwmmacI32_16x16x64Iu4, 4, 64, true, Kinds::Integers),
    shape(Op::VSwmmacF32_16x16x32Fp8Fp8, 8, 32, true, Kinds::Floats(fp8, fp8, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32Fp8Bf8, 8, 32, true, Kinds::Floats(fp8, bf8, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32Bf8Fp8, 8, 32, true, Kinds::Floats(bf8, fp8, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32Bf8Bf8, 8, 32, true, Kinds::Floats(bf8, bf8, Sums::F32)),
];

/// The handler of a matrix instruction.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    let shape = SHAPES.iter().find(|shape| shape.op == op)?;
    Some(match shape.kinds {
        Kinds::Integers => plain::<Integers>(),
        Kinds::Floats(..) => vector::<Floats>(),
    })
}

/// What `Ins::target` of a matrix instruction holds above its `op_sel`.
pub(crate) fn number(op: Op) -> u32 {
    let at = SHAPES.iter().position(|shape| shape.op == op);
    (at.unwrap_or(0) as u32) << 8
}
