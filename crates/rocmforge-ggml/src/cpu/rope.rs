//! Rotary position embedding.

use super::operand::Operand;
use crate::{Rope, RopeStyle};

pub(super) fn rope(x: &Operand<'_>, positions: &Operand<'_>, rope: Rope, out: &mut [f32]) {
    let &[_, seq, heads, dim] = x.shape else { return };
    let data = x.f32();
    let positions_words = positions.words();
    let pairs = rope.n_dims / 2;
    let frequencies: Vec<f64> = (0..pairs)
        .map(|i| f64::from(rope.theta).powf(-2.0 * i as f64 / rope.n_dims as f64))
        .collect();
    if heads * dim == 0 {
        return;
    }
    for (token, (o, x)) in out.chunks_mut(heads * dim).zip(data.chunks(heads * dim)).enumerate() {
        let position = positions_words[if positions.shape.len() == 2 { token } else { token % seq }];
        for (o, x) in o.chunks_mut(dim).zip(x.chunks(dim)) {
            o.copy_from_slice(x);
            for (i, &frequency) in frequencies.iter().enumerate() {
                let (sin, cos) = (f64::from(position) * frequency).sin_cos();
                let (first, second) = match rope.style {
                    RopeStyle::HalfSplit => (i, i + pairs),
                    RopeStyle::Interleaved => (2 * i, 2 * i + 1),
                };
                let (a, b) = (f64::from(x[first]), f64::from(x[second]));
                o[first] = (a * cos - b * sin) as f32;
                o[second] = (a * sin + b * cos) as f32;
            }
        }
    }
}
