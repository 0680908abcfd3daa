use super::*;
use rocmforge_testkit::data::rng;

/// One sequence of `keys` keys; its `tokens` are the last ones, and see up to `window` keys.
struct Sequence {
    keys: Vec<f32>,
    values: Vec<f32>,
    shape: Shape,
    tokens: usize,
    length: usize,
    window: usize,
}

impl Sequence {
    fn at(&self, position: usize, kv_head: usize) -> Range<usize> {
        let start = (position * self.shape.kv_heads + kv_head) * self.shape.head_dim;
        start..start + self.shape.head_dim
    }

    /// From the definition, in f64.
    fn expected(&self, q: &[f32]) -> Vec<f64> {
        let (shape, dim) = (self.shape, self.shape.head_dim);
        let mut out = Vec::new();
        for (query, q) in q.chunks(dim).enumerate() {
            let (token, head) = (query / shape.heads, query % shape.heads);
            let kv_head = head / (shape.heads / shape.kv_heads);
            let score = |position: usize| {
                let key = &self.keys[self.at(position, kv_head)];
                let dot: f64 = q.iter().zip(key).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                (dot * f64::from(shape.scale) + bias(head, position)).exp()
            };
            let weights: Vec<(usize, f64)> = self
                .visible(token)
                .map(|position| (position, score(position)))
                .collect();
            let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
            out.extend((0..dim).map(|i| {
                let value = |position: usize| f64::from(self.values[self.at(position, kv_head)][i]);
                weights
                    .iter()
                    .map(|&(position, weight)| weight * value(position))
                    .sum::<f64>()
                    / total
            }));
        }
        out
    }
}

/// What is added to a score.
fn bias(head: usize, position: usize) -> f64 {
    ((head * 7 + position) % 5) as f64 / 4.0
}

impl Heads for Sequence {
    fn visible(&self, token: usize) -> Range<usize> {
        let end = self.length - self.tokens + token + 1;
        end.saturating_sub(self.window)..end
    }

    fn load(&self, part: Part, _: usize, kv_head: usize, positions: Range<usize>, out: &mut [f32]) {
        let data = match part {
            Part::Keys => &self.keys,
            Part::Values => &self.values,
        };
        for (position, out) in positions.zip(out.chunks_mut(self.shape.head_dim)) {
            out.copy_from_slice(&data[self.at(position, kv_head)]);
        }
    }

    fn adjust(&self, _: usize, head: usize, positions: Range<usize>, scores: &mut [f32]) {
        for (position, score) in positions.zip(scores) {
            *score += bias(head, position) as f32;
        }
    }
}

fn sequence(shape: Shape, tokens: usize, length: usize, window: usize) -> (Vec<f32>, Sequence) {
    let count = length * shape.kv_heads * shape.head_dim;
    let sequence = Sequence {
        keys: rng(1).vec_in(count, -2.0, 2.0),
        values: rng(2).vec_in(count, -2.0, 2.0),
        shape,
        tokens,
        length,
        window,
    };
    (
        rng(3).vec_in(tokens * shape.heads * shape.head_dim, -2.0, 2.0),
        sequence,
    )
}

fn run(path: Path, q: &[f32], sequence: &Sequence, threads: usize) -> Vec<f32> {
    let order: Vec<usize> = (0..sequence.tokens).collect();
    let tokens = Tokens {
        order: &order,
        ends: &[sequence.tokens],
    };
    let mut out = vec![f32::NAN; q.len()];
    attention(
        path,
        sequence.shape,
        q,
        tokens,
        sequence,
        &mut out,
        &Threads::new(threads),
        &Scratch::new(),
    );
    out
}

#[test]
fn every_path_is_near_the_definition() {
    for path in Path::available() {
        // (query heads, key heads, dimension), tokens, keys, window: one block and many, packed or not, parts that are merged.
        for (heads, tokens, length, window) in [
            ((1, 1, 1), 1, 1, usize::MAX),
            ((3, 1, 31), 1, 63, usize::MAX),
            ((4, 2, 64), 1, 1500, usize::MAX),
            ((2, 2, 65), 5, 241, usize::MAX),
            ((4, 2, 33), 31, 129, usize::MAX),
            ((6, 2, 64), 65, 500, usize::MAX),
            ((8, 1, 128), 33, 720, 100),
            ((2, 1, 80), 2, 1300, 1100),
        ] {
            let (heads, kv_heads, head_dim) = heads;
            let shape = Shape {
                heads,
                kv_heads,
                head_dim,
                scale: 1.0 / (head_dim as f32).sqrt(),
            };
            let (q, sequence) = sequence(shape, tokens, length, window);
            let found = run(path, &q, &sequence, 1);
            assert!(
                found == run(path, &q, &sequence, 3),
                "{path:?} {tokens} {length}: one thread and three"
            );
            for (at, (found, expected)) in found.iter().zip(sequence.expected(&q)).enumerate() {
                let difference = (f64::from(*found) - expected).abs();
                assert!(
                    difference < 5e-6,
                    "{path:?} {tokens} {length} at {at}: {found} for {expected}"
                );
            }
        }
    }
}

#[test]
fn queries_that_are_not_finite_do_not_reach_others() {
    let shape = Shape {
        heads: 2,
        kv_heads: 1,
        head_dim: 16,
        scale: 0.25,
    };
    for path in Path::available() {
        for (odd, tokens) in [
            (f32::NAN, 3),
            (f32::INFINITY, 3),
            (f32::NAN, 20),
            (f32::NEG_INFINITY, 20),
        ] {
            let (mut q, sequence) = sequence(shape, tokens, 300, usize::MAX);
            let whole = run(path, &q, &sequence, 1);
            q[2 * 16 + 5] = odd;
            for (at, (found, whole)) in run(path, &q, &sequence, 1).iter().zip(whole).enumerate() {
                if at / 16 == 2 {
                    assert!(found.is_nan(), "{path:?} {odd} {at}: {found}");
                } else {
                    assert_eq!(found.to_bits(), whole.to_bits(), "{path:?} {odd} {at}");
                }
            }
        }
    }
}
