//! Rotary position embedding.

use super::operand::Operand;
use crate::Rope;

pub(super) fn rope(
    x: &Operand<'_>,
    positions: &Operand<'_>,
    factors: Option<&Operand<'_>>,
    rope: Rope,
    out: &mut [f32],
) {
    let &[_, _, heads, dim] = x.shape else { return };
    if heads * dim == 0 {
        return;
    }
    let mut turns = Turns::new(x, positions, factors, rope);
    x.values().put(out);
    for (token, heads) in out.chunks_mut(heads * dim).enumerate() {
        turns.token(token, heads);
    }
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
    /// On the heads of `x [batch, seq, heads, head_dim]`.
    pub(super) fn new(x: &Operand<'a>, positions: &Operand<'a>, factors: Option<&Operand<'_>>, rope: Rope) -> Self {
        let pairs = rope.pairs();
        let frequencies = x.scratch().take(pairs);
        rope.write_frequencies(factors.map(Operand::f32), frequencies);
        Self {
            rope,
            positions: positions.words(),
            frequencies,
            turns: x.scratch().take(pairs),
            dim: x.shape.last().copied().unwrap_or(1).max(1),
        }
    }

    /// Rotates all heads of one token.
    pub(super) fn token(&mut self, token: usize, heads: &mut [f32]) {
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
        for head in heads.chunks_mut(self.dim) {
            for (i, &[cos, sin]) in self.turns.iter().enumerate() {
                let [first, second] = self.rope.elements(i);
                let (a, b) = (f64::from(head[first]), f64::from(head[second]));
                head[first] = (a * cos - b * sin) as f32;
                head[second] = (a * sin + b * cos) as f32;
            }
        }
    }
}
