//! References of `kernels/numbers.hip`.

use crate::{ANY, Inputs, Reference, slots, words};
use half::{bf16, f16};

pub(crate) const KERNELS: &[(&str, Reference)] = &[
    ("shorts", shorts),
    ("bits", bits),
    ("wide", wide),
    ("halves", halves),
    ("brain", brain),
    ("dots", dots),
    ("doubles", doubles),
    ("singles", singles),
    ("denormals", denormals),
    ("divisions", divisions),
    ("mixed", mixed),
];

fn pair(low: u16, high: u16) -> u32 {
    u32::from(low) | u32::from(high) << 16
}

/// The same on both halves.
fn both(x: u32, y: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    pair(f(x as u16, y as u16), f((x >> 16) as u16, (y >> 16) as u16))
}

fn shorts(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, b| {
        let (x, y, ux, uy) = (a as i16, b as i16, a as u16, b as u16);
        let signed = |f: fn(i16, i16) -> i16| both(a, b, |x, y| f(x as i16, y as i16) as u16);
        vec![
            u32::from(ux.wrapping_add(uy)),
            u32::from(ux.wrapping_mul(uy).wrapping_add(7)),
            u32::from((x >> (y & 15)) as u16),
            pair(ux >> (uy & 15), ux << (uy & 15)),
            pair(x.min(y) as u16, ux.max(uy)),
            both(a, b, u16::wrapping_add),
            both(a, b, |x, y| x.wrapping_mul(y).wrapping_add(x)),
            signed(i16::min),
            both(a, b, u16::max),
            signed(i16::saturating_add),
            both(a, b, u16::saturating_sub),
            pair(x.saturating_add(y) as u16, ux.saturating_sub(uy)),
            both(a, 0, |x, _| (x as i16 >> 3) as u16 ^ x << 5),
            (i32::from(a as i8) * i32::from(b as i8) + i32::from((a >> 8) as u8)) as u32,
            (a as i32).saturating_add(b as i32) as u32,
            a.saturating_sub(b),
        ]
    })
}

fn bytes(x: u32) -> [u32; 4] {
    x.to_le_bytes().map(u32::from)
}

fn sad(x: u32, y: u32, masked: bool) -> u32 {
    let (x, y) = (bytes(x), bytes(y));
    (0..4)
        .filter(|&n| !masked || y[n] != 0)
        .map(|n| x[n].abs_diff(y[n]))
        .sum()
}

fn four_sads(wide: u64, y: u32, masked: bool) -> u64 {
    (0..4).fold(0, |out, n| {
        let old = (wide >> (16 * n)) as u16;
        let sum = old.wrapping_add(sad((wide >> (8 * n)) as u32, y, masked) as u16);
        out | u64::from(sum) << (16 * n)
    })
}

fn bits(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, x, y| {
        let z = x.wrapping_mul(0x9e37_79b9).wrapping_add(y);
        let joined = u64::from(x) << 32 | u64::from(y);
        let width = z & 15;
        let field = x as i32 >> (y & 15);
        let up = 31 - width;
        let lerp = (0..4).fold(0, |out, n| {
            let average = (bytes(x)[n] + bytes(y)[n] + (z >> (8 * n) & 1)) >> 1;
            out | average << (8 * n)
        });
        let picked = (joined >> (8 * (z & 7))) as u32 & 0xff;
        let mut row = vec![
            x.count_ones() | (x | 1).leading_zeros() << 8 | (y | 1 << 31).trailing_zeros() << 16,
            x.reverse_bits(),
            x >> (y & 31) & ((1 << (z & 31)) - 1),
            (field << up >> up) as u32,
            picked | ((joined >> 48) as u32 & 0xff) << 8 | 0xff << 16,
            (joined >> (z & 31)) as u32,
            (joined >> (8 * (z & 3))) as u32,
            sad(x, y, false).wrapping_add(z),
            sad(x, y, true).wrapping_add(z),
            (sad(x, y, false) << 16).wrapping_add(z),
            (x & 0xffff)
                .abs_diff(y & 0xffff)
                .wrapping_add((x >> 16).abs_diff(y >> 16))
                .wrapping_add(z),
            lerp,
            x & y | !x & z,
            (x ^ y ^ z)
                .wrapping_add(x << 3 | y)
                .wrapping_add(x.wrapping_add(y) << 2),
            ((u64::from(x) * u64::from(y)) >> 32) as u32,
            ((i64::from(x as i32) * i64::from(y as i32)) >> 32) as u32,
        ];
        row.extend(words(four_sads(joined, z, false)));
        row.extend(words(four_sads(joined, z, true)));
        row.push(joined.count_ones() + (joined | 1).leading_zeros() * 128);
        row.push(x & y | !x & z);
        row
    })
}

fn wide(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |i, a, b| {
        let x = (u64::from(a) << 32 | u64::from(b)) as i64;
        let y = (i64::from(inputs.a[i ^ 1]) - i64::from(inputs.b[i ^ 2]) * 3) | 1;
        let (ux, uy) = (x as u64, y as u64);
        let values = [
            ux.wrapping_add(uy),
            ux.wrapping_sub(uy),
            ux.wrapping_mul(uy),
            x.wrapping_div(y) as u64,
            x.wrapping_rem(y) as u64,
            ux / uy,
            ux % uy,
            (x >> (y & 63)) as u64,
            ux >> (uy & 63) ^ ux << (uy & 31),
            x.min(y) as u64,
            ux.max(uy),
        ];
        let mut row: Vec<u32> = values.into_iter().flat_map(words).collect();
        row.push((a as i32).wrapping_div(b as i32 | 1) as u32);
        row.push(a % (b | 1));
        row
    })
}

/// Rounds a value that is exact in double precision.
fn h(x: f64) -> u16 {
    f16::from_f64(x).to_bits()
}

fn of(bits: u32) -> [f64; 2] {
    [bits & 0xbfff, bits >> 16 & 0xbfff].map(|x| f16::from_bits(x as u16).to_f64())
}

/// Towards zero, at most the largest finite half.
fn truncated(x: f32) -> u16 {
    let near = f16::from_f32(x);
    if near.to_f32().abs() > x.abs() {
        near.to_bits() - 1
    } else {
        near.to_bits()
    }
}

fn halves(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, b| {
        let (p, q) = (of(a), of(b));
        let (x, y) = (p[0], q[0]);
        let raw = a & 0xbfff_bfff;
        vec![
            h(x + y).into(),
            h(x * y).into(),
            h(x * y + x).into(),
            pair(h(x.floor()), h(y.trunc())),
            pair(h(x + y), h(p[1] + q[1])),
            pair(h(x * y), h(p[1] * q[1])),
            pair(h(x * y + x), h(p[1] * q[1] + p[1])),
            raw.rotate_left(16) ^ u32::from(x < y) ^ u32::from(x > q[1]) << 1,
            (x as f32).to_bits(),
            ((x * y) as f32).to_bits(),
            pair(truncated(a as i32 as f32), truncated(b as i32 as f32)),
            f16::from_f32((a >> 17) as f32).to_bits().into(),
            f16::from_f32((a & 0xfff) as f32).to_f32() as u32,
            pair(h(p[1] + q[0]), h(p[0] - q[1])),
        ]
    })
}

fn brain(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, b| {
        let (x, y) = ((a & 0xbfff) << 16, (b & 0xbfff) << 16);
        let half = f32::from_bits((a & 0x3fff_ffff) | 0x1000_0000) * 0.5;
        let sum = (a & 0xffff) as f32 + (b & 0xffff) as f32;
        vec![
            x,
            bf16::from_f32(half).to_bits().into(),
            bf16::from_f32(sum).to_bits().into(),
            x ^ y,
        ]
    })
}

fn dots(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, x, y| {
        // Precedence of C: the shift goes first.
        let z = x ^ y << 7;
        let signed = |v: u32| i64::from(v as u8 as i8);
        let (bx, by) = (bytes(x), bytes(y));
        let nibbles = |v: u32| -> [i64; 8] { std::array::from_fn(|n| i64::from(v >> (4 * n) & 15)) };
        let signed4 = |v: i64| if v > 7 { v - 16 } else { v };
        let both_signed: i64 = (0..4).map(|n| signed(bx[n]) * signed(by[n])).sum();
        let mixed: i64 = (0..4).map(|n| signed(bx[n]) * i64::from(by[n])).sum();
        let unsigned: u64 = (0..4).map(|n| u64::from(bx[n] * by[n])).sum();
        let (nx, ny) = (nibbles(x), nibbles(y));
        let mixed4: i64 = (0..8).map(|n| signed4(nx[n]) * ny[n]).sum();
        let unsigned4: i64 = (0..8).map(|n| nx[n] * ny[n]).sum();
        let (c, limits) = (i64::from(z as i32), (i64::from(i32::MIN), i64::from(i32::MAX)));
        let dot = (x % 17 * (y % 11) + x / 32 % 13 * (y / 64 % 7)) as f32;
        vec![
            (both_signed + c) as u32,
            (mixed + c).clamp(limits.0, limits.1) as u32,
            (unsigned + u64::from(z)).min(u64::from(u32::MAX)) as u32,
            (unsigned + u64::from(z)) as u32,
            (mixed4 + c).clamp(limits.0, limits.1) as u32,
            (unsigned4 + i64::from(z)) as u32,
            (dot + 3.0).to_bits(),
            f16::from_f32(dot + 2.0).to_bits().into(),
            (dot + 3.0).to_bits(),
        ]
    })
}

fn doubles(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, b| {
        let x = f64::from(a as i32) / 512.0 + (-20f64).exp2();
        let y = f64::from(b as i32) / 8192.0 - 0.5;
        let scale = f64::from((b & 31) as i32 - 16).exp2();
        let values = [
            x + y,
            x * y,
            x.mul_add(y, x),
            x.min(y),
            x.max(y),
            x.floor(),
            y.trunc(),
            x.round_ties_even(),
            x * scale,
        ];
        let mut row: Vec<u32> = values.into_iter().flat_map(|v| words(v.to_bits())).collect();
        row.push(x as i32 as u32);
        row.push((y as f32).to_bits());
        row.push(u32::from(x < y) | u32::from(y.is_sign_negative()) << 1);
        row.extend(words((x * 1024.0) as i64 as u64));
        row.extend(words(((u64::from(a) << 17 | u64::from(b)) as i64 as f64).to_bits()));
        row.push(((u64::from(a) << 25 ^ u64::from(b)) as f32).to_bits());
        row
    })
}

/// The part after the binary point, mantissa in [0.5, 1) and exponent.
fn split(x: f32) -> (f32, i32) {
    if x == 0.0 {
        return (x, 0);
    }
    let exponent = (x.to_bits() >> 23 & 0xff) as i32 - 126;
    (x * (-exponent as f32).exp2(), exponent)
}

fn singles(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, b| {
        let of = |v: u32, shift: i32| v as i32 as f32 * (-shift as f32).exp2();
        let (x, y, z) = (of(a, 20), of(b, 22), of(a ^ b, 24));
        let mut sorted = [x, y, z];
        sorted.sort_by(f32::total_cmp);
        let (face, major, s, t) = if z.abs() >= x.abs() && z.abs() >= y.abs() {
            (4 + u32::from(z < 0.0), z, if z < 0.0 { -x } else { x }, -y)
        } else if y.abs() >= x.abs() {
            (2 + u32::from(y < 0.0), y, x, if y < 0.0 { -z } else { z })
        } else {
            (u32::from(x < 0.0), x, if x < 0.0 { z } else { -z }, -y)
        };
        let norm = |v: f32| (f64::from(v * 0.001).clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i32 as u16;
        let (mantissa, exponent) = split(x);
        vec![
            sorted[1].to_bits(),
            (x - x.floor()).min(1.0f32.next_down()).to_bits(),
            (x * (((b & 15) as i32 - 8) as f32).exp2()).to_bits(),
            mantissa.to_bits() ^ exponent as u32,
            face,
            (2.0 * major).to_bits(),
            s.to_bits(),
            t.to_bits(),
            x.min(y).max(z).to_bits(),
            (x * 0.5).clamp(0.0, 1.0).to_bits(),
            pair(norm(x), norm(y)),
            a.min(0xffff) | (b & 0xffff) << 16,
            u32::from(x.abs().min(255.0) as u8) + (a >> 24) + (a >> 8 & 255),
            x.abs().round_ties_even() as u32 + y.abs().ceil() as u32,
        ]
    })
}

fn denormals(inputs: &Inputs) -> Vec<u32> {
    let flush = |x: f32| {
        if inputs.flushes && x.is_subnormal() {
            0f32.copysign(x)
        } else {
            x
        }
    };
    let one = |v: u32| f32::from_bits(v & 0x7f_ffff | 0x3f80_0000);
    slots(inputs, |_, a, b| {
        let (x, y, other) = (flush(f32::from_bits(a >> 9)), one(b), flush(f32::from_bits(b >> 9)));
        vec![
            flush(x * y).to_bits(),
            flush(x + other).to_bits(),
            flush(y * flush((-127f32).exp2())).to_bits(),
            ((y + one(a)) * 4.0).to_bits(),
        ]
    })
}

fn divisions(inputs: &Inputs) -> Vec<u32> {
    let exact = |bits: u32| if inputs.fast { ANY } else { bits };
    slots(inputs, |_, a, b| {
        let (x, y) = (
            a as i32 as f32 * (-20f32).exp2(),
            (b | 1) as i32 as f32 * (-22f32).exp2(),
        );
        let (dx, dy) = (f64::from(a as i32) / 512.0, f64::from((b | 1) as i32) / 8192.0);
        let (quotient, root) = (words((dx / dy).to_bits()), words(dx.abs().sqrt().to_bits()));
        vec![
            exact((x / y).to_bits()),
            1,
            exact(quotient[0]),
            exact(quotient[1]),
            exact(x.abs().sqrt().to_bits()),
            exact(root[0]),
            exact(root[1]),
        ]
    })
}

fn mixed(inputs: &Inputs) -> Vec<u32> {
    slots(inputs, |_, a, b| {
        let (p, q, z) = (
            of(a).map(|x| x as f32),
            of(b).map(|x| x as f32),
            a as i32 as f32 * (-31f32).exp2(),
        );
        let half = |x: f32| f16::from_f32(x).to_bits();
        vec![
            p[0].mul_add(q[1], z).to_bits(),
            p[1].mul_add(z, -q[0]).to_bits(),
            pair(half(p[0].mul_add(q[0], z)), half(p[1].mul_add(-q[1], z))),
        ]
    })
}
