//! Rotary position embedding.

use super::operand::Operand;
use crate::{GgmlResult, Op, Rope, RopeStyle, indices};

pub(super) fn rope(
    x: &Operand<'_>,
    positions: &Operand<'_>,
    factors: Option<&Operand<'_>>,
    rope: Rope,
    out: &mut [f32],
) -> GgmlResult<()> {
    let &[_, seq, heads, dim] = x.shape else { return Ok(()) };
    let data = x.f32();
    let per_token = positions.shape.len() == 2;
    let positions = positions.words();
    let pairs = rope.n_dims / 2;
    indices::check(&Op::Rope(rope), positions, rope.max_position)?;
    let frequencies = x.scratch().take(pairs);
    rope.write_frequencies(factors.map(Operand::f32), frequencies);
    let turns = x.scratch().take(pairs);
    if heads * dim == 0 {
        return Ok(());
    }
    for (token, (o, x)) in out.chunks_mut(heads * dim).zip(data.chunks(heads * dim)).enumerate() {
        let position = positions[if per_token { token } else { token % seq }];
        for (turn, &frequency) in turns.iter_mut().zip(&*frequencies) {
            *turn = <[f64; 2]>::from(rope.turn(frequency, position));
        }
        for (o, x) in o.chunks_mut(dim).zip(x.chunks(dim)) {
            o.copy_from_slice(x);
            for (i, &[cos, sin]) in turns.iter().enumerate() {
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
    Ok(())
}
