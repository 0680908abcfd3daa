//! Matrix multiply-accumulate of a wave as gfx1201 lays it out: 16 x 16 results.
//!
//! Lane `l` holds of row (A) or column (B) `l % 16` one half of the depth: lanes 0 to 15 the first, lanes 16 to 31 the
//! second. It holds of column `l % 16` of C and D the rows from `8 * (l / 16)` on, eight of them: one a register where
//! results have 32 bits, else two.
//!
//! Of a sparse A (`v_swmmac_*`) only two of each four elements are stored, and two bits of an index say for each which.

use crate::exec::code::isa::{Handler, vector};
use crate::exec::gfx12::fp8::{from_bf8, from_fp8};
use crate::exec::number::num::{bf16_to_f32, f32_to_bf16, f32_to_half, half_to_f32};
use crate::exec::state::ctx::{Ctx, Ins, Run};
use crate::exec::state::fields::Kind;
use crate::exec::state::wave::Wave;
use Element::{Bf8, Bf16, F16, Fp8};
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
    /// What A and B hold, and the results.
    Floats(Element, Element, Sums),
}

/// Floats that A and B hold.
#[derive(Clone, Copy, PartialEq)]
enum Element {
    F16,
    Bf16,
    Fp8,
    Bf8,
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

/// Raw elements by depth, of sixteen rows or columns each.
type Planes = [[u32; 16]; MOST];

/// Raw elements of A and of B over the whole depth, and which elements of a row of A are stored.
struct Gathered {
    a: Planes,
    b: Planes,
    stored: [u64; 16],
}

/// The first `count` elements that each lane holds from register `reg` on: lanes 16 to 31 go on `half` deeper than the others.
#[inline(always)]
fn planes(w: &Wave, bits: usize, reg: u8, count: usize, half: usize) -> Planes {
    let mut out = [[0; 16]; MOST];
    let (per, keep) = (32 / bits, u32::MAX >> (32 - bits));
    for k in 0..count {
        let (low, high) = w.v[(reg as usize + k / per) & 255].0.split_at(16);
        let shift = k % per * bits;
        for n in 0..16 {
            out[k][n] = low[n] >> shift & keep;
            out[half + k][n] = high[n] >> shift & keep;
        }
    }
    out
}

#[inline(always)]
fn gather(w: &Wave, i: &Ins, shape: &Shape) -> Gathered {
    let half = shape.depth / 2;
    let b = planes(w, shape.bits, i.b.reg, half, half);
    if !shape.sparse {
        return Gathered {
            a: planes(w, shape.bits, i.a.reg, half, half),
            b,
            stored: [u64::MAX; 16],
        };
    }
    let packed = planes(w, shape.bits, i.a.reg, half / 2, half);
    let (mut a, mut stored) = ([[0; 16]; MOST], [0; 16]);
    // Two bits for each stored element: which of the four of its group it is. Eight elements need half a register.
    for lane in 0..32 {
        let (n, base) = (lane % 16, lane / 16 * half);
        let word = w.v[i.c.reg as usize].0[lane];
        let index = if half == 32 {
            word
        } else {
            word >> (16 * (i.target & 1))
        };
        for k in 0..half / 2 {
            let at = base + k / 2 * 4 + (index >> (2 * k) & 3) as usize;
            stored[n] |= 1 << at;
            a[at][n] = packed[base + k][n];
        }
    }
    Gathered { a, b, stored }
}

/// Elements as singles, after changing the bits `flip` in even and in odd ones.
#[inline(always)]
fn widened(raw: &Planes, depth: usize, flip: [u32; 2], element: Element) -> [[f32; 16]; MOST] {
    let mut out = [[0.0; 16]; MOST];
    for (k, (out, raw)) in out.iter_mut().zip(raw).enumerate().take(depth) {
        let flip = flip[k & 1];
        // A loop for each, so that sixteen are widened at a time.
        match element {
            Element::F16 => (0..16).for_each(|n| out[n] = half_to_f32((raw[n] ^ flip) as u16)),
            Element::Bf16 => (0..16).for_each(|n| out[n] = bf16_to_f32((raw[n] ^ flip) as u16)),
            Element::Fp8 => (0..16).for_each(|n| out[n] = from_fp8((raw[n] ^ flip) as u8)),
            Element::Bf8 => (0..16).for_each(|n| out[n] = from_bf8((raw[n] ^ flip) as u8)),
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
        let a = widened(&raw.a, shape.depth, flip_a, a_of);
        let b = widened(&raw.b, shape.depth, flip_b, b_of);
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
                for n in 0..16 {
                    out[n] = a[k][row].mul_add(b[k][n], out[n]);
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
    #[inline(always)]
    fn run(w: &mut Wave, _: &mut Ctx<'_>, i: &Ins) {
        let shape = &SHAPES[(i.target >> 8) as usize % SHAPES.len()];
        let up = 32 - shape.bits;
        // Signed where the operand's `neg` bit says so.
        let widen = |mut planes: Planes, signed: bool| {
            if signed {
                for bits in planes.iter_mut().flatten() {
                    *bits = ((*bits << up) as i32 >> up) as u32;
                }
            }
            planes
        };
        let raw = gather(w, i, shape);
        let (a, b) = (widen(raw.a, i.imm & 1 != 0), widen(raw.b, i.imm & 2 != 0));
        let mut out = [[0u32; 32]; 8];
        for (r, out) in out.iter_mut().enumerate() {
            for high in 0..2 {
                // The products fit in 32 bits, with the old value no longer.
                let mut dot = [0i32; 16];
                for k in 0..shape.depth {
                    for n in 0..16 {
                        dot[n] += a[k][high * 8 + r] as i32 * b[k][n] as i32;
                    }
                }
                for (n, dot) in dot.into_iter().enumerate() {
                    let lane = high * 16 + n;
                    let sum = i64::from(old(w, i, r, lane, shape.sparse) as i32) + i64::from(dot);
                    let clamped = sum.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
                    out[lane] = if i.clamp { clamped as u32 } else { sum as u32 };
                }
            }
        }
        for (r, out) in out.iter().enumerate() {
            w.v[(i.dst as usize + r) & 255].0 = *out;
        }
    }
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
    shape(Op::VWmmaF32_16x16x16F16, 16, 16, false, Kinds::Floats(F16, F16, Sums::F32)),
    shape(Op::VWmmaF32_16x16x16Bf16, 16, 16, false, Kinds::Floats(Bf16, Bf16, Sums::F32)),
    shape(Op::VWmmaF16_16x16x16F16, 16, 16, false, Kinds::Floats(F16, F16, Sums::F16)),
    shape(Op::VWmmaBf16_16x16x16Bf16, 16, 16, false, Kinds::Floats(Bf16, Bf16, Sums::Bf16)),
    shape(Op::VWmmaI32_16x16x16Iu8, 8, 16, false, Kinds::Integers),
    shape(Op::VWmmaI32_16x16x16Iu4, 4, 16, false, Kinds::Integers),
    shape(Op::VWmmaI32_16x16x32Iu4, 4, 32, false, Kinds::Integers),
    shape(Op::VWmmaF32_16x16x16Fp8Fp8, 8, 16, false, Kinds::Floats(Fp8, Fp8, Sums::F32)),
    shape(Op::VWmmaF32_16x16x16Fp8Bf8, 8, 16, false, Kinds::Floats(Fp8, Bf8, Sums::F32)),
    shape(Op::VWmmaF32_16x16x16Bf8Fp8, 8, 16, false, Kinds::Floats(Bf8, Fp8, Sums::F32)),
    shape(Op::VWmmaF32_16x16x16Bf8Bf8, 8, 16, false, Kinds::Floats(Bf8, Bf8, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32F16, 16, 32, true, Kinds::Floats(F16, F16, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32Bf16, 16, 32, true, Kinds::Floats(Bf16, Bf16, Sums::F32)),
    shape(Op::VSwmmacF16_16x16x32F16, 16, 32, true, Kinds::Floats(F16, F16, Sums::F16)),
    shape(Op::VSwmmacBf16_16x16x32Bf16, 16, 32, true, Kinds::Floats(Bf16, Bf16, Sums::Bf16)),
    shape(Op::VSwmmacI32_16x16x32Iu8, 8, 32, true, Kinds::Integers),
    shape(Op::VSwmmacI32_16x16x32Iu4, 4, 32, true, Kinds::Integers),
    shape(Op::VSwmmacI32_16x16x64Iu4, 4, 64, true, Kinds::Integers),
    shape(Op::VSwmmacF32_16x16x32Fp8Fp8, 8, 32, true, Kinds::Floats(Fp8, Fp8, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32Fp8Bf8, 8, 32, true, Kinds::Floats(Fp8, Bf8, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32Bf8Fp8, 8, 32, true, Kinds::Floats(Bf8, Fp8, Sums::F32)),
    shape(Op::VSwmmacF32_16x16x32Bf8Bf8, 8, 32, true, Kinds::Floats(Bf8, Bf8, Sums::F32)),
];

/// The handler of a matrix instruction.
pub(crate) fn lookup(op: Op) -> Option<Run> {
    let shape = SHAPES.iter().find(|shape| shape.op == op)?;
    Some(match shape.kinds {
        Kinds::Integers => vector::<Integers>(),
        Kinds::Floats(..) => vector::<Floats>(),
    })
}

/// What `Ins::target` of a matrix instruction holds above its `op_sel`.
pub(crate) fn number(op: Op) -> u32 {
    let at = SHAPES.iter().position(|shape| shape.op == op);
    (at.unwrap_or(0) as u32) << 8
}
