//! Sequences of a paged KV cache: their blocks, appends, forks, copies on write and release.

use std::collections::HashMap;

use super::{BlockAllocator, BlockHash, BlockTable, PagedKvError, SequenceId, blocks_for};

/// Size of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedKvConfig {
    /// Blocks of the pool.
    pub blocks: usize,
    /// Tokens of a block.
    pub block_size: usize,
}

/// A sequence that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The new sequence.
    pub id: SequenceId,
    /// Tokens at the prompt's begin whose K and V are already there: the sequence has this length now. The rest of the prompt is the
    /// caller's to append and compute.
    pub cached_tokens: usize,
}

/// Where appended tokens go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// One slot for each new token.
    pub slots: Vec<u32>,
    /// Copies to make, in order, before the slots are written; at most one.
    pub copies: Vec<BlockCopy>,
}

/// A whole block to be copied, K and V of every layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCopy {
    /// The block that stays as it is.
    pub from: u32,
    /// The block that becomes equal to it.
    pub to: u32,
}

/// Figures of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PagedKvStats {
    /// Blocks of the pool.
    pub blocks: usize,
    /// Blocks that no sequence holds, cached ones included.
    pub free: usize,
    /// Free blocks whose content can still be shared.
    pub cached: usize,
    /// Sequences.
    pub sequences: usize,
    /// Tokens of all prompts that were added, since the cache was made.
    pub prompt_tokens: u64,
    /// Those of them that were found in the cache.
    pub cached_tokens: u64,
    /// Cached blocks that were given up for new content.
    pub evictions: u64,
    /// Blocks copied because they were shared and about to be written.
    pub copies: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) table: BlockTable,
    tokens: Vec<u32>,
    /// Hashes of the full blocks at the begin, as far as their K and V are known to be written.
    hashes: Vec<BlockHash>,
}

/// A paged KV cache: the pool, and the sequences that share it. See the [module](super).
#[derive(Clone, Debug)]
pub struct PagedKv {
    pub(super) config: PagedKvConfig,
    pub(super) allocator: BlockAllocator,
    pub(super) sequences: HashMap<SequenceId, Sequence>,
    next_id: u64,
    prompt_tokens: u64,
    cached_tokens: u64,
    copies: u64,
}

impl PagedKv {
    /// An empty cache.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::Zero`] for no blocks or blocks without tokens; [`PagedKvError::TooManySlots`] for a pool of `u32::MAX` + 1 or more
    /// slots (`u32::MAX` is never a slot: kernels may give it a meaning of their own).
    pub fn new(config: PagedKvConfig) -> Result<Self, PagedKvError> {
        let PagedKvConfig { blocks, block_size } = config;
        for (name, size) in [("blocks", blocks), ("block_size", block_size)] {
            if size == 0 {
                return Err(PagedKvError::Zero(name));
            }
        }
        let slots = blocks
            .checked_mul(block_size)
            .and_then(|slots| u32::try_from(slots).ok());
        let (Some(_), Ok(capacity)) = (slots, u32::try_from(blocks)) else {
            return Err(PagedKvError::TooManySlots {
                blocks,
                block_size,
                limit: u32::MAX as usize,
            });
        };
        Ok(Self {
            config,
            allocator: BlockAllocator::new(capacity),
            sequences: HashMap::new(),
            next_id: 0,
            prompt_tokens: 0,
            cached_tokens: 0,
            copies: 0,
        })
    }

    /// Adds a sequence that shares the cached blocks with which `prompt` begins. At least the last token of the prompt is left to
    /// compute, because the logits after it are wanted. Takes no new block, so it cannot run out of them.
    ///
    /// # Errors
    ///
    /// There is no prompt that is refused today.
    pub fn add_sequence(&mut self, prompt: &[u32]) -> Result<Added, PagedKvError> {
        let mut sequence = Sequence {
            table: BlockTable::new(self.config.block_size),
            tokens: Vec::new(),
            hashes: Vec::new(),
        };
        let reusable = prompt.len().saturating_sub(1);
        for tokens in prompt[..reusable].chunks_exact(self.config.block_size) {
            let hash = BlockHash::new(sequence.hashes.last().copied(), tokens);
            let Some(block) = self.allocator.find(hash) else { break };
            self.allocator.share(block)?;
            sequence.hashes.push(hash);
            sequence.tokens.extend_from_slice(tokens);
            sequence.table.blocks.push(block);
            sequence.table.tokens += tokens.len();
        }
        let cached_tokens = sequence.tokens.len();
        self.prompt_tokens += prompt.len() as u64;
        self.cached_tokens += cached_tokens as u64;
        let id = self.insert(sequence);
        Ok(Added { id, cached_tokens })
    }

    fn insert(&mut self, sequence: Sequence) -> SequenceId {
        let id = SequenceId(self.next_id);
        self.next_id += 1;
        self.sequences.insert(id, sequence);
        id
    }

    /// Blocks that [`append`](Self::append) would take for `tokens` more tokens.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`]; [`PagedKvError::Overflow`] for a length beyond 64 bits.
    pub fn blocks_to_append(&self, id: SequenceId, tokens: usize) -> Result<usize, PagedKvError> {
        let table = self.block_table(id)?;
        let len = table
            .tokens
            .checked_add(tokens)
            .ok_or(PagedKvError::Overflow("the length of the sequence"))?;
        let copy = tokens > 0 && self.shared_partial_block(table).is_some();
        Ok(blocks_for(len, self.config.block_size) - table.blocks.len() + usize::from(copy))
    }

    /// The last block, if it has room for a token but belongs to another sequence too.
    fn shared_partial_block(&self, table: &BlockTable) -> Option<u32> {
        let last = *table.blocks.last()?;
        (table.last_is_partial() && self.allocator.refs(last) > 1).then_some(last)
    }

    /// Appends tokens, and says in which slots their K and V go, after the copies have been made.
    ///
    /// An append says that the K and V of the tokens before it have been written, as [`mark_written`](Self::mark_written) does.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::OutOfBlocks`] leaves everything as it was: remove a sequence and try again. [`PagedKvError::UnknownSequence`].
    pub fn append(&mut self, id: SequenceId, tokens: &[u32]) -> Result<Appended, PagedKvError> {
        let needed = self.blocks_to_append(id, tokens.len())?;
        let free = self.free_blocks();
        let out = PagedKvError::OutOfBlocks { needed, free };
        if needed > free {
            return Err(out);
        }
        if tokens.is_empty() {
            return Ok(Appended::default());
        }
        self.mark_written(id)?;

        let shared = self.shared_partial_block(self.block_table(id)?);
        let Self {
            allocator, sequences, ..
        } = self;
        let Sequence {
            table, tokens: held, ..
        } = sequences.get_mut(&id).ok_or(PagedKvError::UnknownSequence(id))?;
        let mut copies = Vec::new();
        if table.last_is_partial()
            && let Some(last) = table.blocks.last_mut()
        {
            if let Some(from) = shared {
                let to = allocator.allocate().ok_or(out.clone())?;
                allocator.release(from)?;
                *last = to;
                copies.push(BlockCopy { from, to });
            } else {
                // A truncated block may still be findable by the tokens that are now overwritten.
                allocator.forget(*last);
            }
        }
        let begin = table.tokens;
        held.extend_from_slice(tokens);
        table.tokens = held.len();
        while table.blocks.len() < blocks_for(table.tokens, table.block_size) {
            table.blocks.push(allocator.allocate().ok_or(out.clone())?);
        }
        let slots = table.slots(begin..table.tokens).collect();
        self.copies += copies.len() as u64;
        Ok(Appended { slots, copies })
    }

    /// Says that the K and V of all tokens of a sequence have been written, or will be before any later work of the device. From now on
    /// its full blocks are shared with new sequences.
    ///
    /// [`append`](Self::append) does this for the tokens before it. Call it after the last append of a sequence, before
    /// [`remove`](Self::remove), and as early as other sequences shall profit. Do not call it if the forward pass has failed.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn mark_written(&mut self, id: SequenceId) -> Result<(), PagedKvError> {
        let Self {
            allocator, sequences, ..
        } = self;
        let Sequence { table, tokens, hashes } = sequences.get_mut(&id).ok_or(PagedKvError::UnknownSequence(id))?;
        let full = tokens.chunks_exact(table.block_size).zip(&table.blocks);
        for (tokens, &block) in full.skip(hashes.len()) {
            let hash = BlockHash::new(hashes.last().copied(), tokens);
            allocator.publish(block, hash)?;
            hashes.push(hash);
        }
        Ok(())
    }

    /// A second sequence with the same tokens. All blocks are shared; whichever of the two first appends to a shared, partly filled
    /// block gets an order to copy it.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn fork(&mut self, id: SequenceId) -> Result<SequenceId, PagedKvError> {
        let copy = self.sequence(id)?.clone();
        for &block in &copy.table.blocks {
            self.allocator.share(block)?;
        }
        Ok(self.insert(copy))
    }

    /// Shortens a sequence to `tokens` tokens and releases the blocks behind them.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::TruncateBeyondEnd`] for more tokens than it has; [`PagedKvError::UnknownSequence`].
    pub fn truncate(&mut self, id: SequenceId, tokens: usize) -> Result<(), PagedKvError> {
        let Self {
            allocator, sequences, ..
        } = self;
        let sequence = sequences.get_mut(&id).ok_or(PagedKvError::UnknownSequence(id))?;
        let table = &mut sequence.table;
        if tokens > table.tokens {
            return Err(PagedKvError::TruncateBeyondEnd {
                len: table.tokens,
                tokens,
            });
        }
        // The last block first: it is then also the first to be evicted.
        for block in table.blocks.drain(blocks_for(tokens, table.block_size)..).rev() {
            allocator.release(block)?;
        }
        table.tokens = tokens;
        sequence.tokens.truncate(tokens);
        sequence.hashes.truncate(tokens / table.block_size);
        Ok(())
    }

    /// Removes a sequence and releases its blocks. Those that are known to be written stay cached.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn remove(&mut self, id: SequenceId) -> Result<(), PagedKvError> {
        self.truncate(id, 0)?;
        self.sequences.remove(&id);
        Ok(())
    }

    fn sequence(&self, id: SequenceId) -> Result<&Sequence, PagedKvError> {
        self.sequences.get(&id).ok_or(PagedKvError::UnknownSequence(id))
    }

    /// The block table of a sequence.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn block_table(&self, id: SequenceId) -> Result<&BlockTable, PagedKvError> {
        Ok(&self.sequence(id)?.table)
    }

    /// The blocks of a sequence, in the order of its tokens.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn table(&self, id: SequenceId) -> Result<&[u32], PagedKvError> {
        Ok(self.block_table(id)?.blocks())
    }

    /// Length of a sequence in tokens.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn len(&self, id: SequenceId) -> Result<usize, PagedKvError> {
        Ok(self.block_table(id)?.len())
    }

    /// The tokens of a sequence.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn tokens(&self, id: SequenceId) -> Result<&[u32], PagedKvError> {
        Ok(&self.sequence(id)?.tokens)
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// Blocks that no sequence holds, cached ones included.
    pub fn free_blocks(&self) -> usize {
        self.allocator.free()
    }

    /// The pool's blocks and their references.
    pub fn allocator(&self) -> &BlockAllocator {
        &self.allocator
    }

    /// The size of the pool.
    pub fn config(&self) -> PagedKvConfig {
        self.config
    }

    /// Figures of the cache.
    pub fn stats(&self) -> PagedKvStats {
        PagedKvStats {
            blocks: self.allocator.capacity(),
            free: self.allocator.free(),
            cached: self.allocator.cached(),
            sequences: self.sequences.len(),
            prompt_tokens: self.prompt_tokens,
            cached_tokens: self.cached_tokens,
            evictions: self.allocator.evictions(),
            copies: self.copies,
        }
    }
}
