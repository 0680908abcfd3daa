//! Inputs that another program can make too: element i of input `seed` is a hash of both.

use rocmforge_runtime::{HipBuffer, HipStream};

/// How an input's numbers are made.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// In -1 to 1.
    Numbers,
    /// Row numbers below this, 32 bits each.
    Rows(u32),
    /// Blocks of Q4_0: any bytes whose 16-bit floats are finite.
    Quantised,
    /// Two f16 each, in -1 to 1: numbers as those above, rounded.
    Halves,
}

/// 32 well mixed bits (Wellons, "Prospecting for hash functions", 2018: lowbias32).
fn mix(mut x: u32) -> u32 {
    x = (x ^ (x >> 16)).wrapping_mul(0x7feb_352d);
    x = (x ^ (x >> 15)).wrapping_mul(0x846c_a68b);
    x ^ (x >> 16)
}

fn element(kind: Kind, seed: u32, i: u32) -> f32 {
    let hash = mix(i.wrapping_add(seed.wrapping_mul(0x9e37_79b9)));
    match kind {
        // 24 bits: exact in a float.
        Kind::Numbers => (hash >> 8) as f32 / (1 << 23) as f32 - 1.0,
        Kind::Rows(below) => f32::from_bits(hash % below),
        Kind::Quantised => f32::from_bits(hash & 0x3fff_3fff),
        Kind::Halves => {
            let [low, high] =
                [0, 1].map(|part| half(element(Kind::Numbers, seed, i.wrapping_mul(2).wrapping_add(part))));
            f32::from_bits(u32::from(high) << 16 | u32::from(low))
        }
    }
}

/// The nearest f16 to a number of at most 1 in magnitude, of two the even one.
fn half(x: f32) -> u16 {
    let (magnitude, sign) = (x.abs(), u16::from(x < 0.0) << 15);
    if magnitude < 2f32.powi(-14) {
        return sign | (magnitude * 2f32.powi(24)).round_ties_even() as u16;
    }
    let bits = magnitude.to_bits();
    let rounded = (bits + 0xfff + (bits >> 13 & 1)) >> 13;
    // The exponents' zeros are 127 and 15.
    sign | (rounded - (112 << 10)) as u16
}

/// The elements `0..n` of input `seed`.
pub(crate) fn values(kind: Kind, seed: u32, n: usize) -> Vec<f32> {
    let mut values = vec![0.0f32; n];
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let piece = n.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (nth, piece_of) in values.chunks_mut(piece).enumerate() {
            scope.spawn(move || {
                for (i, value) in piece_of.iter_mut().enumerate() {
                    *value = element(kind, seed, (nth * piece + i) as u32);
                }
            });
        }
    });
    values
}

/// The most elements that are made on the host where nobody else has to make them too; copies of them follow.
const PATTERN: usize = 1 << 22;

/// `n` elements: [`values`] up to a few millions, and copies of them behind.
pub(crate) fn tiled(stream: &HipStream, kind: Kind, seed: u32, n: usize) -> HipBuffer<f32> {
    let pattern = values(kind, seed, n.min(PATTERN));
    if n <= PATTERN {
        return HipBuffer::from_slice(stream, &pattern, "input").expect("room");
    }
    let buffer = blank(stream, n);
    let start = buffer.view(0..PATTERN).expect("in range");
    start.copy_from_host(stream, &pattern).expect("a copy");
    let mut filled = PATTERN;
    while filled < n {
        let more = filled.min(n - filled);
        let (from, to) = (buffer.view(0..more), buffer.view(filled..filled + more));
        to.expect("in range")
            .copy_from_buffer(stream, &from.expect("in range"))
            .expect("a copy");
        filled += more;
    }
    buffer
}

/// `n` elements, each a NaN: what a kernel leaves out shows.
pub(crate) fn blank(stream: &HipStream, n: usize) -> HipBuffer<f32> {
    // SAFETY: written whole by the line below, before anybody else has it.
    let buffer = unsafe { HipBuffer::uninit(stream, rocmforge_runtime::Elems(n), "output") }.expect("room");
    buffer.fill_bytes(stream, 0xff).expect("a fill");
    buffer
}
