//! Tests of flash attention: every path against the definition in f64, with numbers that are not finite.

use half::f16;
use rocmforge_testkit::data::rng;

use super::*;

/// One sequence of `length` keys; its `tokens` are the last ones, and see up to `window` keys.
struct Sequence {
    q: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    /// The same in f16, where they are stored so.
    halves: Option<[Vec<u16>; 2]>,
    shape: Shape,
    tokens: usize,
    length: usize,
    window: usize,
    /// Every so many keys one is hidden, and is no number, nor is its value.
    hidden: usize,
    sinks: bool,
}

impl Sequence {
    fn new(shape: Shape, tokens: usize, length: usize) -> Self {
        let count = length * shape.kv_heads;
        // Numbers of f16.
        let values = |seed: u64, count: usize| -> Vec<f32> {
            let values = rng(seed).vec_in(count, -2.0, 2.0);
            values.into_iter().map(|v| f16::from_f32(v).to_f32()).collect()
        };
        Self {
            q: values(3, tokens * shape.heads * shape.key_dim),
            keys: values(1, count * shape.key_dim),
            values: values(2, count * shape.value_dim),
            halves: None,
            shape,
            tokens,
            length,
            window: usize::MAX,
            hidden: usize::MAX,
            sinks: false,
        }
    }

    fn is_hidden(&self, position: usize) -> bool {
        position % self.hidden == self.hidden - 1
    }

    fn poison_hidden(&mut self) {
        for position in (0..self.length).filter(|&position| position % self.hidden == self.hidden - 1) {
            for kv_head in 0..self.shape.kv_heads {
                let (key, value) = (
                    self.at(Part::Keys, position, kv_head),
                    self.at(Part::Values, position, kv_head),
                );
                self.keys[key].fill(f32::NAN);
                self.values[value].fill(f32::INFINITY);
            }
        }
    }

    fn store_halves(&mut self) {
        let bits = |values: &[f32]| values.iter().map(|&v| f16::from_f32(v).to_bits()).collect();
        self.halves = Some([bits(&self.keys), bits(&self.values)]);
    }

    fn at(&self, part: Part, position: usize, kv_head: usize) -> Range<usize> {
        let dim = match part {
            Part::Keys => self.shape.key_dim,
            Part::Values => self.shape.value_dim,
        };
        let start = (position * self.shape.kv_heads + kv_head) * dim;
        start..start + dim
    }

    /// From the definition, in f64.
    fn expected(&self) -> Vec<f64> {
        let shape = self.shape;
        let mut out = Vec::new();
        for query in 0..self.tokens * shape.heads {
            let q = &self.q[query * shape.key_dim..][..shape.key_dim];
            let (token, head) = (query / shape.heads, query % shape.heads);
            let kv_head = head / (shape.heads / shape.kv_heads);
            let score = |position: usize| {
                let key = &self.keys[self.at(Part::Keys, position, kv_head)];
                let dot: f64 = q.iter().zip(key).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                (dot * f64::from(shape.scale) + bias(head, position)).exp()
            };
            let weights: Vec<(usize, f64)> = self
                .visible(token)
                .filter(|&position| !self.is_hidden(position))
                .map(|position| (position, score(position)))
                .collect();
            let sink = self.sink(head).map_or(0.0, |sink| f64::from(sink).exp());
            let total: f64 = sink + weights.iter().map(|(_, weight)| weight).sum::<f64>();
            out.extend((0..shape.value_dim).map(|i| {
                let value = |position: usize| f64::from(self.values[self.at(Part::Values, position, kv_head)][i]);
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

    fn query(&self, token: usize, head: usize) -> &[f32] {
        &self.q[(token * self.shape.heads + head) * self.shape.key_dim..][..self.shape.key_dim]
    }

    fn load(&self, part: Part, _: usize, kv_head: usize, positions: Range<usize>, out: &mut [f32]) {
        let (data, dim) = match part {
            Part::Keys => (&self.keys, self.shape.key_dim),
            Part::Values => (&self.values, self.shape.value_dim),
        };
        for (position, out) in positions.zip(out.chunks_mut(dim)) {
            out.copy_from_slice(&data[self.at(part, position, kv_head)]);
        }
    }

    fn halves(&self, part: Part, _: usize, kv_head: usize, position: usize) -> Option<&[u16]> {
        let [keys, values] = self.halves.as_ref()?;
        let data = match part {
            Part::Keys => keys,
            Part::Values => values,
        };
        Some(&data[self.at(part, position, kv_head)])
    }

    fn adjust(&self, _: usize, head: usize, positions: Range<usize>, scores: &mut [f32]) {
        for (position, score) in positions.zip(scores) {
            *score += bias(head, position) as f32;
            if self.is_hidden(position) {
                *score = f32::NEG_INFINITY;
            }
        }
    }

    fn sink(&self, head: usize) -> Option<f32> {
        self.sinks.then_some(head as f32 * 2.0)
    }
}

fn run(path: Path, sequence: &Sequence, threads: usize) -> Vec<f32> {
    let order: Vec<usize> = (0..sequence.tokens).collect();
    let tokens = Tokens {
        order: &order,
        ends: &[sequence.tokens],
    };
    let mut out = vec![f32::NAN; sequence.tokens * sequence.shape.heads * sequence.shape.value_dim];
    attention(
        path,
        sequence.shape,
        tokens,
        sequence,
        &mut out,
        &Threads::new(threads),
        &Scratch::new(),
    );
    out
}

fn shape(heads: usize, kv_heads: usize, [key_dim, value_dim]: [usize; 2]) -> Shape {
    Shape {
        heads,
        kv_heads,
        key_dim,
        value_dim,
        scale: 1.0 / (key_dim.max(1) as f32).sqrt(),
    }
}

#[test]
fn every_path_is_near_the_definition() {
    // (query heads, key heads, dimensions), tokens, keys, window: one block and many, packed or not, parts that are merged.
    let cases = [
        (shape(1, 1, [1, 1]), 1, 1, usize::MAX),
        (shape(3, 1, [31, 31]), 1, 63, usize::MAX),
        (shape(4, 2, [64, 64]), 1, 1500, usize::MAX),
        (shape(2, 2, [65, 67]), 5, 241, usize::MAX),
        (shape(4, 2, [33, 33]), 31, 129, usize::MAX),
        (shape(6, 2, [64, 64]), 65, 500, usize::MAX),
        (shape(8, 1, [128, 128]), 33, 720, 100),
        (shape(2, 1, [80, 80]), 2, 1300, 1100),
        (shape(3, 1, [24, 96]), 3, 250, usize::MAX),
        (shape(7, 1, [96, 24]), 2, 300, usize::MAX),
        (shape(4, 4, [40, 112]), 20, 300, usize::MAX),
        (shape(2, 1, [0, 16]), 20, 60, usize::MAX),
        (shape(2, 1, [0, 16]), 1, 60, usize::MAX),
    ];
    for path in Path::available() {
        for (index, &(shape, tokens, length, window)) in cases.iter().enumerate() {
            for (halves, hidden, sinks) in [
                (false, usize::MAX, false),
                (true, usize::MAX, true),
                (true, 5, false),
                (false, 7, true),
            ] {
                let mut sequence = Sequence {
                    window,
                    hidden,
                    sinks,
                    ..Sequence::new(shape, tokens, length)
                };
                sequence.poison_hidden();
                if halves {
                    sequence.store_halves();
                }
                let what = format!("{path:?} case {index}, f16 {halves}, hidden {hidden}, sinks {sinks}");
                let found = run(path, &sequence, 1);
                assert!(found == run(path, &sequence, 3), "{what}: one thread and three");
                for (at, (found, expected)) in found.iter().zip(sequence.expected()).enumerate() {
                    let difference = (f64::from(*found) - expected).abs();
                    assert!(difference < 5e-6, "{what} at {at}: {found} for {expected}");
                }
            }
        }
    }
}

#[test]
fn queries_that_are_not_finite_do_not_reach_others() {
    for path in Path::available() {
        for (odd, tokens) in [
            (f32::NAN, 3),
            (f32::INFINITY, 3),
            (f32::NAN, 20),
            (f32::NEG_INFINITY, 20),
        ] {
            for halves in [false, true] {
                let mut sequence = Sequence::new(shape(2, 1, [16, 16]), tokens, 300);
                if halves {
                    sequence.store_halves();
                }
                let whole = run(path, &sequence, 1);
                sequence.q[2 * 16 + 5] = odd;
                for (at, (found, whole)) in run(path, &sequence, 1).iter().zip(whole).enumerate() {
                    if at / 16 == 2 {
                        assert!(found.is_nan(), "{path:?} {odd} {at}: {found}");
                    } else {
                        assert_eq!(found.to_bits(), whole.to_bits(), "{path:?} {odd} {at}");
                    }
                }
            }
        }
    }
}
