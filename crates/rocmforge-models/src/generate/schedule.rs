//! Schedule of a step: which sequences take part, and with how many of their tokens.
//!
//! Sequences are by turn, and in each turn in the order of their requests: of several clients that wait, each has one request in a turn. A younger
//! sequence is one later in this order. Each one that is past its prompt has its token in every step; what is left of the
//! chunk goes to prompts, the oldest first. A waiting sequence is admitted when the cache has room for all of its prompt beside
//! what the admitted prompts still need, so that a younger one does not overtake it. If the cache becomes too small for what
//! was admitted, the youngest sequence gives its blocks back and waits again; its tokens are computed anew later. So the oldest sequence
//! always goes on, and alone it fits: its length is limited to the context.
//!
//! A step has at most as many rows of logits as an engine has sequences, so that its graph is one of those that are kept. A prompt that wants a
//! row after each token has the rows that no other sequence may need.

use rocmforge_attention::paged::BlockCounts;
use rocmforge_ggml::HostAccess;

use super::sequence::Sequence;
use crate::{Engine, ModelError};

/// Tokens of the prompts that had a place in the cache, each prompt once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PromptCounts {
    /// All of them.
    pub tokens: u64,
    /// Those that earlier requests had left in the cache.
    pub cached: u64,
}

/// Tokens of one sequence in a step: `tokens[start..end]`.
pub(super) struct Part {
    pub(super) index: usize,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// The step that is being put together.
struct Schedule<'a, B: HostAccess> {
    engine: &'a mut Engine<B>,
    sequences: &'a mut [Sequence],
    counts: &'a mut PromptCounts,
    parts: Vec<Part>,
    /// Tokens that the chunk still holds.
    room: usize,
    /// Rows of logits that the step still has.
    rows: usize,
    /// Blocks that the parts will take.
    taken: BlockCounts,
}

/// The next step; empty only if no sequence is left.
pub(super) fn plan<B: HostAccess>(
    engine: &mut Engine<B>,
    sequences: &mut [Sequence],
    counts: &mut PromptCounts,
) -> Result<Vec<Part>, ModelError> {
    loop {
        let (room, rows) = (engine.chunk(), engine.max_sequences());
        let none = engine.cache().no_blocks();
        let mut schedule = Schedule {
            engine: &mut *engine,
            sequences: &mut *sequences,
            counts: &mut *counts,
            parts: Vec::new(),
            room,
            rows,
            taken: none,
        };
        schedule.add_decoding()?;
        schedule.add_prompts()?;
        // Admitted prompts may hold all blocks between them.
        if !schedule.parts.is_empty() || !schedule.preempt_after(None)? {
            return Ok(schedule.parts);
        }
    }
}

impl<B: HostAccess> Schedule<'_, B> {
    /// Tokens of a sequence that are computed.
    fn computed(&self, index: usize) -> Result<Option<usize>, ModelError> {
        let cache = self.sequences.get(index).and_then(|sequence| sequence.cache);
        cache.map(|cache| self.engine.cached_tokens(cache)).transpose()
    }

    /// Blocks that `tokens` more tokens of a sequence take, beside those of the parts; `None` if there are not so many.
    fn fit(&self, index: usize, tokens: usize) -> Result<Option<BlockCounts>, ModelError> {
        let Some(cache) = self.sequences[index].cache else {
            return Ok(None);
        };
        let cache_of_all = self.engine.cache();
        let taken = cache_of_all.blocks_to_append(cache, tokens)?.plus(&self.taken);
        Ok(taken.fit(&cache_of_all.free_blocks()).then_some(taken))
    }

    fn add(&mut self, index: usize, start: usize, tokens: usize, taken: BlockCounts) {
        self.taken = taken;
        self.room -= tokens;
        self.rows -= if self.sequences[index].wants_all_rows() {
            tokens
        } else {
            1
        };
        let end = start + tokens;
        self.parts.push(Part { index, start, end });
    }

    /// The sequences that lack one token only.
    fn add_decoding(&mut self) -> Result<(), ModelError> {
        for index in 0..self.sequences.len() {
            let Some(computed) = self.computed(index)? else {
                continue;
            };
            if self.sequences[index].tokens.len() - computed != 1 || self.room == 0 || self.rows == 0 {
                continue;
            }
            let mut taken = self.fit(index, 1)?;
            while taken.is_none() && self.preempt_after(Some(index))? {
                taken = self.fit(index, 1)?;
            }
            if let Some(taken) = taken {
                self.add(index, computed, 1, taken);
            }
        }
        Ok(())
    }

    fn add_prompts(&mut self) -> Result<(), ModelError> {
        for index in 0..self.sequences.len() {
            if self.room == 0 || self.rows == 0 {
                break;
            }
            if self.parts.iter().any(|part| part.index == index) {
                continue;
            }
            if self.sequences[index].cache.is_none() && !self.admit(index)? {
                break;
            }
            let Some(cache) = self.sequences[index].cache else {
                continue;
            };
            let computed = self.engine.cached_tokens(cache)?;
            let pending = self.sequences[index].tokens.len() - computed;
            let room = match self.sequences[index].wants_all_rows() {
                true => self.room.min(self.rows.saturating_sub(self.others_without_part(index))),
                false => self.room,
            };
            let most = self.engine.cache().tokens_of_step(cache, pending, room)?;
            let (mut tokens, mut beyond) = match self.fit(index, most)? {
                Some(_) => (most, most + 1),
                None => (0, most),
            };
            while tokens + 1 < beyond {
                let middle = tokens.midpoint(beyond);
                match self.fit(index, middle)? {
                    Some(_) => tokens = middle,
                    None => beyond = middle,
                }
            }
            if let Some(taken) = self.fit(index, tokens)?.filter(|_| tokens > 0) {
                self.add(index, computed, tokens, taken);
            }
        }
        Ok(())
    }

    /// Sequences that have a place in the cache and no part yet, beside this one. Each may need a row.
    fn others_without_part(&self, index: usize) -> usize {
        let others = self.sequences.iter().enumerate().filter(|(other, sequence)| {
            *other != index && sequence.cache.is_some() && self.parts.iter().all(|part| part.index != *other)
        });
        others.count()
    }

    /// Blocks that the tokens of a sequence take which are not computed; `None` if it has no place in the cache.
    fn pending_blocks(&self, index: usize) -> Result<Option<BlockCounts>, ModelError> {
        let Sequence {
            cache: Some(cache),
            tokens,
            ..
        } = &self.sequences[index]
        else {
            return Ok(None);
        };
        let pending = tokens.len() - self.engine.cached_tokens(*cache)?;
        Ok(Some(self.engine.cache().blocks_to_append(*cache, pending)?))
    }

    /// Gives a waiting sequence a place in the cache, if there is one.
    fn admit(&mut self, index: usize) -> Result<bool, ModelError> {
        let mut admitted = 0;
        let mut promised = self.engine.cache().no_blocks();
        for other in 0..self.sequences.len() {
            if let Some(pending) = self.pending_blocks(other)? {
                admitted += 1;
                promised = promised.plus(&pending);
            }
        }
        if admitted >= self.engine.max_sequences() {
            return Ok(false);
        }
        let sequence = &mut self.sequences[index];
        let cache = self.engine.add_keyed_sequence(&sequence.key, &sequence.tokens)?;
        sequence.cache = Some(cache);
        let cached = self.engine.cached_tokens(cache)?;
        let needed = self.pending_blocks(index)?.unwrap_or_default();
        let sequence = &mut self.sequences[index];
        // Counted after the cached blocks are shared: they were free before.
        if !needed.plus(&promised).fit(&self.engine.cache().free_blocks()) {
            sequence.cache = None;
            self.engine.remove(cache)?;
            return Ok(false);
        }
        // Whoever is admitted again finds blocks of its own in the cache.
        if !std::mem::replace(&mut sequence.was_admitted, true) {
            sequence.stats.cached_tokens = cached;
            self.counts.tokens += sequence.tokens.len() as u64;
            self.counts.cached += cached as u64;
        }
        Ok(true)
    }

    /// Takes the place of the youngest sequence away, if it is younger than `than`. Says whether there was one.
    fn preempt_after(&mut self, than: Option<usize>) -> Result<bool, ModelError> {
        let from = than.map_or(0, |index| index + 1);
        let youngest = self.sequences[from..]
            .iter_mut()
            .rev()
            .find_map(|sequence| sequence.cache.take());
        match youngest {
            None => Ok(false),
            Some(cache) => self.engine.remove(cache).map(|()| true),
        }
    }
}
