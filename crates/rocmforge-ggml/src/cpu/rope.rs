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
    let turns = Turns::new(&Op::Rope(rope), x.shape, positions, factors, rope)?;
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
    positions: std::borrow::Cow<'a, [u32]>,
    frequencies: Vec<f64>,
    /// Tokens after which positions repeat.
    period: usize,
    dim: usize,
}

impl<'a> Turns<'a> {
    /// Of `op` on heads of `shape [batch, seq, heads, head_dim]`.
    pub(super) fn new(
        op: &Op,
        shape: &[usize],
        positions: &Operand<'a>,
        factors: Option<&Operand<'_>>,
        rope: Rope,
    ) -> GgmlResult<Self> {
        let words = positions.words();
        indices::check(op, &words, rope.max_position)?;
        Ok(Self {
            rope,
            period: words.len().max(1),
            positions: words,
            frequencies: rope.frequencies(factors.map(Operand::f32).as_deref()),
            dim: shape.last().copied().unwrap_or(1).max(1),
        })
    }

    /// Rotates all heads of one token.
    pub(super) fn token(&self, token: usize, x: &[f32], out: &mut [f32]) {
        let pairs = self.rope.n_dims / 2;
        let position = self.positions[token % self.period];
        let turns: Vec<(f64, f64)> = self.frequencies.iter().map(|&f| self.rope.turn(f, position)).collect();
        for (o, x) in out.chunks_mut(self.dim).zip(x.chunks(self.dim)) {
            o.copy_from_slice(x);
            for (i, &(cos, sin)) in turns.iter().enumerate() {
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
