//! Rotary position embedding.

use super::operand::Operand;
use crate::{GgmlResult, Op, Rope, indices};

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
    /// A list for each of a token's positions, of as many tokens as there are before they repeat.
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
        let pairs = rope.pairs();
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
        let tokens = self.positions.len() / self.rope.style.axes();
        let positions = self.positions[token % tokens..].iter().step_by(tokens);
        let mut of_token = [0; 4];
        of_token
            .iter_mut()
            .zip(positions)
            .for_each(|(own, &position)| *own = position);
        for (pair, (turn, &frequency)) in self.turns.iter_mut().zip(self.frequencies).enumerate() {
            *turn = <[f64; 2]>::from(self.rope.turn(frequency, of_token[self.rope.section(pair).0]));
        }
        for (o, x) in out.chunks_mut(self.dim).zip(x.chunks(self.dim)) {
            o.copy_from_slice(x);
            for (i, &[cos, sin]) in self.turns.iter().enumerate() {
                let [first, second] = self.rope.elements(i);
                let (a, b) = (f64::from(x[first]), f64::from(x[second]));
                o[first] = (a * cos - b * sin) as f32;
                o[second] = (a * sin + b * cos) as f32;
            }
        }
    }
}
