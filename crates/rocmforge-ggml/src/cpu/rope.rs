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
    let &[_, _, heads, dim] = x.shape else { return Ok(()) };
    let mut turns = Turns::new(&Op::Rope(rope), x, positions, factors, rope)?;
    if heads * dim == 0 {
        return Ok(());
    }
    let data = x.f32();
    for (token, (o, x)) in out.chunks_mut(heads * dim).zip(data.chunks(heads * dim)).enumerate() {
        turns.token(token, x, o);
    }
    Ok(())
}

/// The rotation of each token's heads.
pub(super) struct Turns<'a> {
    rope: Rope,
    /// Of as many tokens as there are before they repeat.
    positions: &'a [u32],
    frequencies: &'a [f64],
    /// Cosine and sine of each pair, of the token at hand.
    turns: &'a mut [[f64; 2]],
    dim: usize,
}

impl<'a> Turns<'a> {
    /// Of `op` on the heads of `x [batch, seq, heads, head_dim]`.
    pub(super) fn new(
        op: &Op,
        x: &Operand<'a>,
        positions: &Operand<'a>,
        factors: Option<&Operand<'_>>,
        rope: Rope,
    ) -> GgmlResult<Self> {
        let positions = positions.words();
        indices::check(op, positions, rope.max_position)?;
        let pairs = rope.n_dims / 2;
        let frequencies = x.scratch().take(pairs);
        rope.write_frequencies(factors.map(Operand::f32), frequencies);
        Ok(Self {
            rope,
            positions,
            frequencies,
            turns: x.scratch().take(pairs),
            dim: x.shape.last().copied().unwrap_or(1).max(1),
        })
    }

    /// Rotates all heads of one token.
    pub(super) fn token(&mut self, token: usize, x: &[f32], out: &mut [f32]) {
        let pairs = self.turns.len();
        let position = self.positions[token % self.positions.len()];
        for (turn, &frequency) in self.turns.iter_mut().zip(self.frequencies) {
            *turn = <[f64; 2]>::from(self.rope.turn(frequency, position));
        }
        for (o, x) in out.chunks_mut(self.dim).zip(x.chunks(self.dim)) {
            o.copy_from_slice(x);
            for (i, &[cos, sin]) in self.turns.iter().enumerate() {
                let (first, second) = match self.rope.style {
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
