//! Outputs of a step: rows of logits, or the largest of each row, and how much of them was read.

use std::collections::BTreeMap;

use crate::sampling::{Row, RowReason, TopLogits};

/// Logits of a step, in the order of the chunks and their tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logits {
    /// All rows, one after the other.
    pub data: Vec<f32>,
    /// Length of a row: the vocabulary.
    pub vocab: usize,
}

impl Logits {
    /// The rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> {
        self.data.chunks_exact(self.vocab.max(1))
    }
}

impl From<TopRows> for Logits {
    fn from(rows: TopRows) -> Self {
        rows.whole
    }
}

/// The rows of a step, in the order of [`Logits`]: the largest logits of each, and whole ones where they were needed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TopRows {
    pub(super) ids: Vec<u32>,
    pub(super) logits: Vec<f32>,
    /// Probabilities of the candidates.
    pub(super) probabilities: Vec<f32>,
    /// Candidates of a row.
    pub(super) count: usize,
    /// Rows that were read whole, and those between.
    pub(super) whole: Logits,
    /// For each row whether it was read whole.
    pub(super) is_whole: Vec<bool>,
}

impl TopRows {
    /// The rows.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = Row<'_>> {
        self.is_whole.iter().enumerate().map(|(row, is_whole)| match is_whole {
            true => Row::Whole(&self.whole.data[row * self.whole.vocab..][..self.whole.vocab]),
            false => Row::Top(self.top(row)),
        })
    }

    pub(super) fn top(&self, row: usize) -> TopLogits<'_> {
        let range = row * self.count..(row + 1) * self.count;
        let (logits, probabilities) = (&self.logits[range.clone()], &self.probabilities[range.clone()]);
        TopLogits {
            ids: &self.ids[range],
            logits,
            // The largest has the probability e^largest / sum.
            log_sum_exp: f64::from(logits[0]) - f64::from(probabilities[0]).ln(),
            vocabulary: self.whole.vocab,
        }
    }
}

/// What an engine has read of the outputs of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Rows of which the largest logits were read.
    pub candidates: u64,
    /// Rows that were read whole, by reason.
    pub rows: BTreeMap<RowReason, u64>,
    /// Bytes of all.
    pub bytes: u64,
}
