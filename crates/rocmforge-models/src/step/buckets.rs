//! Buckets: the shapes for which step graphs are kept. A step is padded to its bucket, so that a steady load builds no graph.
//!
//! Rows of the padding have slots that no sequence reads, and their results are left out.

use super::StepShape;

/// Sizes up to this one have a bucket each.
const EXACT: usize = 8;

/// Limits that steps are padded within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// Most tokens of a step.
    pub(crate) chunk: usize,
    /// Most sequences of a step, at most `chunk`.
    pub(crate) sequences: usize,
}

/// The next size that has a bucket, at most `most`: four of them from a power of two to the next.
fn rounded(size: usize, most: usize) -> usize {
    let step = match size {
        0..=EXACT => 1,
        _ => size.next_power_of_two() / 8,
    };
    size.next_multiple_of(step).min(most)
}

/// The sizes up to `most` that have a bucket.
fn sizes(most: usize) -> impl Iterator<Item = usize> {
    std::iter::successors(Some(1), move |&size| (size < most).then(|| rounded(size + 1, most)))
}

impl Buckets {
    /// The bucket of a step; `None` for one beyond the limits, or with more outputs than a step may have sequences.
    pub(crate) fn of(&self, step: StepShape) -> Option<StepShape> {
        if step.tokens > self.chunk || step.sequences > self.sequences || step.outputs > self.sequences {
            return None;
        }
        // One token of each sequence: there is a bucket for each number of sequences.
        if step.tokens == step.sequences && step.outputs == step.sequences {
            let all = rounded(step.tokens, self.sequences);
            return Some(StepShape {
                tokens: all,
                sequences: all,
                outputs: all,
                ..step
            });
        }
        // A prompt alone has no rows for others; of several it is not worth a graph how many there are. One with several outputs has the rows of others.
        let is_alone = step.sequences == 1 && step.outputs <= 1;
        let sequences = if is_alone { 1 } else { self.sequences };
        Some(StepShape {
            tokens: rounded(step.tokens, self.chunk),
            sequences,
            outputs: if step.outputs == 0 { 0 } else { sequences },
            ..step
        })
    }

    /// Shapes one of which takes the most memory: with logits no bucket has more of anything, and without some passes have less to do. Rows of
    /// embeddings have this width, and rows of logits so many candidates.
    pub(crate) fn largest(&self, row_width: usize, candidates: usize) -> [StepShape; 2] {
        [(self.sequences, candidates), (0, 0)].map(|(outputs, candidates)| StepShape {
            tokens: self.chunk,
            sequences: self.sequences,
            outputs,
            row_width,
            candidates,
        })
    }

    /// Every bucket of steps whose tokens are all ids, each once: one token of each sequence first. With logits they have so many candidates.
    pub(crate) fn all(&self, candidates: usize) -> Vec<StepShape> {
        let square = |all| StepShape {
            tokens: all,
            sequences: all,
            outputs: all,
            row_width: 0,
            candidates,
        };
        let mut shapes: Vec<StepShape> = sizes(self.sequences).map(square).collect();
        let most = self.sequences;
        let others = sizes(self.chunk).flat_map(|tokens| {
            let beside = [(1, 1), (1, 0), (most, most), (most, 0)].map(|(sequences, outputs)| StepShape {
                tokens,
                sequences,
                outputs,
                row_width: 0,
                candidates: if outputs == 0 { 0 } else { candidates },
            });
            // Twice the same where one sequence is all; one token of each sequence stands above.
            let kept = if most == 1 { 2 } else { 4 };
            beside.into_iter().take(kept).filter(|shape| {
                let is_square = shape.tokens == shape.sequences && shape.outputs > 0;
                shape.tokens >= shape.sequences.min(2) && !is_square
            })
        });
        shapes.extend(others);
        shapes
    }

    /// Most rows that padding adds to a step.
    pub(crate) fn padding(&self) -> usize {
        self.chunk.next_power_of_two() / 8
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn shape(tokens: usize, sequences: usize, outputs: usize) -> StepShape {
        StepShape {
            tokens,
            sequences,
            outputs,
            row_width: 0,
            candidates: 0,
        }
    }

    #[test]
    fn a_bucket_holds_its_steps_and_they_are_few() {
        for buckets in [(1, 1), (7, 3), (128, 16), (100, 100), (2048, 64)] {
            let buckets = Buckets {
                chunk: buckets.0,
                sequences: buckets.1,
            };
            let [largest, _] = buckets.largest(0, 0);
            let mut all = BTreeSet::new();
            for tokens in 1..=buckets.chunk {
                for sequences in 1..=buckets.sequences.min(tokens) {
                    for outputs in [0, 1, sequences, tokens.min(buckets.sequences)] {
                        let step = shape(tokens, sequences, outputs);
                        let bucket = buckets.of(step).expect("within the limits");
                        assert!(bucket.tokens >= tokens && bucket.sequences >= sequences && bucket.outputs >= outputs);
                        assert!(bucket.tokens <= largest.tokens && bucket.sequences <= largest.sequences);
                        assert!(bucket.outputs <= largest.outputs);
                        assert!(bucket.tokens - tokens <= buckets.padding(), "{step:?} in {bucket:?}");
                        // At most a quarter of the rows is padding beside as many that are not.
                        assert!(bucket.tokens * 4 <= tokens * 5 + 3, "{step:?} in {bucket:?}");
                        assert_eq!(bucket.outputs == 0, outputs == 0);
                        all.insert((bucket.tokens, bucket.sequences, bucket.outputs));
                    }
                }
            }
            let listed: BTreeSet<_> = buckets
                .all(0)
                .iter()
                .map(|b| (b.tokens, b.sequences, b.outputs))
                .collect();
            assert_eq!(listed.len(), buckets.all(0).len());
            assert_eq!(all, listed, "{buckets:?}");
            assert!(listed.len() <= 200, "{buckets:?}: {}", listed.len());
        }
    }

    #[test]
    fn steps_beyond_the_limits_have_no_bucket() {
        let buckets = Buckets {
            chunk: 128,
            sequences: 16,
        };
        assert_eq!(buckets.of(shape(1, 1, 1)), Some(shape(1, 1, 1)));
        assert_eq!(buckets.of(shape(9, 9, 9)), Some(shape(10, 10, 10)));
        assert_eq!(buckets.of(shape(128, 1, 0)), Some(shape(128, 1, 0)));
        assert_eq!(buckets.of(shape(65, 3, 1)), Some(shape(80, 16, 16)));
        assert_eq!(buckets.of(shape(5, 1, 5)), Some(shape(5, 16, 16)));
        for beyond in [shape(129, 1, 1), shape(17, 17, 17), shape(64, 1, 17)] {
            assert_eq!(buckets.of(beyond), None);
        }
    }
}
