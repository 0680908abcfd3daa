//! Lengths of the sequences of a batch, for kernels that read them on the device.

use crate::KernelResult;
use crate::check::Check;
use rocmforge_runtime::{HipBuffer, HipStream};

/// How many queries and keys each sequence of a batch has. Checked when it is made, and never changed.
///
/// A length of 0 is allowed: a sequence without queries gets nothing written, and queries without keys see nothing.
#[derive(Debug, Clone)]
pub struct SequenceLengths {
    buffer: HipBuffer<u32>,
    batch: usize,
    longest: [usize; 2],
}

impl SequenceLengths {
    /// Copies `[queries, keys]` of each sequence to the device.
    ///
    /// # Errors
    ///
    /// No sequence at all, a length over 2^31 - 1, no room on the device.
    pub fn new(stream: &HipStream, lengths: &[[usize; 2]]) -> KernelResult<Self> {
        const LIMIT: usize = i32::MAX as usize;
        let check = Check("sequence lengths");
        check.dim("batch", lengths.len())?;
        let longest = |side: usize| lengths.iter().map(|pair| pair[side]).fold(0, usize::max);
        let longest = [longest(0), longest(1)];
        for (dim, value) in [("queries", longest[0]), ("keys", longest[1])] {
            check.at_most(dim, value, LIMIT)?;
        }
        let words: Vec<u32> = lengths.iter().flatten().map(|&length| length as u32).collect();
        Ok(Self {
            buffer: HipBuffer::from_slice(stream, &words, "sequence lengths")?,
            batch: lengths.len(),
            longest,
        })
    }

    /// Sequences.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// The most queries and the most keys that a sequence has.
    pub fn longest(&self) -> [usize; 2] {
        self.longest
    }

    /// Whether they are those of a launch over `batch` sequences of up to `seq_q` queries and `seq_k` keys.
    pub(crate) fn fit(&self, check: Check, batch: usize, [seq_q, seq_k]: [usize; 2]) -> KernelResult<()> {
        let [queries, keys] = self.longest;
        let of_each = "there must be lengths for as many sequences as the batch has";
        check.holds(self.batch == batch, of_each, self.batch, batch)?;
        check.holds(
            queries <= seq_q,
            "the longest sequence of queries must be within seq_q",
            queries,
            seq_q,
        )?;
        check.holds(
            keys <= seq_k,
            "the longest sequence of keys must be within seq_k",
            keys,
            seq_k,
        )
    }

    /// `[batch, 2]` on the device.
    pub(crate) fn buffer(&self) -> &HipBuffer<u32> {
        &self.buffer
    }
}
