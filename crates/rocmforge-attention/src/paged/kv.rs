//! Sequences of a paged KV cache: their blocks, appends, forks, copies on write and release.

use std::collections::HashMap;

use super::events::EventLog;
use super::pool::Pool;
use super::states::StateSlots;
use super::{
    BlockAllocator, BlockCounts, BlockHash, BlockTable, CacheEvent, Keep, PagedKvError, PoolConfig, PrefixKey,
    SequenceId, Token, blocks_for,
};

/// Sizes of the pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedKvConfig {
    /// Tokens of a block.
    pub block_size: usize,
    /// A pool for each kind of layer.
    pub pools: Vec<PoolConfig>,
    /// Slots of states, if there are layers that keep one.
    pub states: Option<usize>,
}

/// A sequence that was added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Added {
    /// The new sequence.
    pub id: SequenceId,
    /// Tokens at the start of the prompt whose K and V are already there: the sequence has this length now. The rest of the prompt is the
    /// caller's to append and compute.
    pub cached_tokens: usize,
}

/// Where appended tokens go in one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// One slot for each new token.
    pub slots: Vec<u32>,
    /// Copies to make, in order, before the slots are written; at most one.
    pub copies: Vec<BlockCopy>,
}

/// A whole block to be copied, K and V of every layer of its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCopy {
    /// The block that stays as it is.
    pub from: u32,
    /// The block that becomes equal to it.
    pub to: u32,
}

/// Figures of a cache, of all its pools together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheCounts {
    /// Blocks of the pools.
    pub blocks: usize,
    /// Blocks that no sequence holds, cached ones included.
    pub free: usize,
    /// Free blocks whose content can still be shared.
    pub cached: usize,
    /// Sequences.
    pub sequences: usize,
    /// Cached blocks that were given up for new content.
    pub evictions: u64,
    /// Blocks copied because they were shared and about to be written.
    pub copies: u64,
}

#[derive(Clone, Debug)]
pub(super) struct Sequence<T> {
    /// Stands for the block before the first.
    root: Option<BlockHash>,
    tokens: Vec<T>,
    /// Hashes of the full blocks at the start, as far as their K and V are known to be written.
    hashes: Vec<BlockHash>,
    /// Its blocks in each pool.
    pub(super) tables: Vec<BlockTable>,
    /// Tokens that have been written.
    written: usize,
    states: StateSlots,
}

/// A paged KV cache: the pools, and the sequences that share them. See the [module](super).
#[derive(Clone, Debug)]
pub struct PagedKv<T = u32> {
    block_size: usize,
    pub(super) pools: Vec<Pool>,
    states: Option<BlockAllocator>,
    pub(super) sequences: HashMap<SequenceId, Sequence<T>>,
    next_id: u64,
    copies: u64,
    /// Events, and the pool that they are about.
    events: Option<(usize, EventLog)>,
}

impl<T: Token> PagedKv<T> {
    /// An empty cache.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::Zero`] for no blocks, blocks without tokens, or a window without keys; [`PagedKvError::TooManySlots`] for a pool of
    /// `u32::MAX` + 1 or more slots (`u32::MAX` is never a slot: kernels may give it a meaning of their own).
    pub fn new(config: PagedKvConfig) -> Result<Self, PagedKvError> {
        let block_size = config.block_size;
        if block_size == 0 {
            return Err(PagedKvError::Zero("block_size"));
        }
        let pools = config.pools.into_iter().map(|pool| Pool::new(pool, block_size));
        // A slot is as a block of one token.
        let states = config.states.map(|blocks| {
            let keep = Keep::All;
            Pool::new(PoolConfig { blocks, keep }, 1)
        });
        Ok(Self {
            block_size,
            pools: pools.collect::<Result<_, _>>()?,
            states: states.transpose()?.map(|pool| pool.allocator),
            sequences: HashMap::new(),
            next_id: 0,
            copies: 0,
            events: None,
        })
    }

    /// Records what the prefix cache gets and loses from now on, until [`take_events`](Self::take_events): at most `limit` blocks, or else
    /// [`CacheEvent::Cleared`] stands for all.
    ///
    /// Only sequences of the default [`PrefixKey`] are named, so that no tenant's tokens get outside. Of several pools the events are about
    /// the first that keeps all tokens, or the first of all; a cache of states alone has none.
    pub fn record_events(&mut self, limit: usize) {
        let all = self.pools.iter().position(|pool| pool.keep == Keep::All);
        let index = all.unwrap_or(0);
        if let Some(pool) = self.pools.get_mut(index) {
            pool.allocator.forgotten = Some(Vec::new());
            self.events = Some((index, EventLog::new(limit)));
        }
    }

    /// The events since they were taken last.
    pub fn take_events(&mut self) -> Vec<CacheEvent> {
        let Some((pool, log)) = &mut self.events else {
            return Vec::new();
        };
        log.remove(&mut self.pools[*pool]);
        log.take()
    }

    /// Says that events that were taken have been lost: the next is [`CacheEvent::Cleared`].
    pub fn lose_events(&mut self) {
        if let Some((_, log)) = &mut self.events {
            log.clear();
        }
    }

    /// Adds a sequence that shares the cached blocks with which `prompt` begins, of those that were written under the same key. At least the last token of the prompt is left to
    /// compute, because the logits after it are wanted. Takes no new block, so it cannot run out of them.
    ///
    /// # Errors
    ///
    /// There is no prompt that is refused today.
    pub fn add_sequence(&mut self, key: &PrefixKey, prompt: &[T]) -> Result<Added, PagedKvError> {
        let reusable = &prompt[..prompt.len().saturating_sub(1)];
        let sequence = self.share_prefix(key.root(), reusable)?;
        let cached_tokens = sequence.tokens.len();
        let id = self.insert(sequence);
        Ok(Added { id, cached_tokens })
    }

    /// A sequence of the longest beginning of `tokens` of which every pool still has what the token after it sees.
    fn share_prefix(&mut self, root: Option<BlockHash>, tokens: &[T]) -> Result<Sequence<T>, PagedKvError> {
        let size = self.block_size;
        let mut hashes: Vec<BlockHash> = Vec::new();
        // For each pool, how many blocks at the end were found.
        let mut runs = vec![0; self.pools.len()];
        let mut found = 0;
        for block in tokens.chunks_exact(size) {
            let hash = BlockHash::new(hashes.last().copied().or(root), block);
            hashes.push(hash);
            let end = hashes.len();
            let mut complete = self.states.as_ref().is_none_or(|slots| slots.find(hash).is_some());
            for (run, pool) in runs.iter_mut().zip(&self.pools) {
                *run = pool.allocator.find(hash).map_or(0, |_| *run + 1);
                // Where nothing before is seen, the last block says that the prefix was computed.
                complete &= *run >= (end - pool.keep.first_block(end * size, size)).max(1);
            }
            if complete {
                found = end;
            } else if (runs.iter().zip(&self.pools)).any(|(&run, pool)| run < end && pool.keep == Keep::All) {
                break;
            }
        }
        hashes.truncate(found);
        let mut tables = Vec::with_capacity(self.pools.len());
        for Pool { keep, allocator } in &mut self.pools {
            let first = keep.first_block(found * size, size);
            let seen = hashes[first..].iter().filter_map(|&hash| allocator.find(hash));
            let blocks: Vec<u32> = seen.collect();
            for &block in &blocks {
                allocator.share(block)?;
            }
            tables.push(BlockTable {
                first,
                blocks,
                tokens: found * size,
                block_size: size,
            });
        }
        let mut states = StateSlots::default();
        if let (Some(slots), Some(&hash)) = (&mut self.states, hashes.last()) {
            states = StateSlots::of_prefix(slots, hash)?;
        }
        Ok(Sequence {
            root,
            tokens: tokens[..found * size].to_vec(),
            hashes,
            tables,
            written: found * size,
            states,
        })
    }

    fn insert(&mut self, sequence: Sequence<T>) -> SequenceId {
        let id = SequenceId(self.next_id);
        self.next_id += 1;
        self.sequences.insert(id, sequence);
        id
    }

    /// Blocks, and slots of states, that [`append`](Self::append) would take for `tokens` more tokens. For more than are appended at a time: the
    /// most that the sequence holds on its way there, less those it holds.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`]; [`PagedKvError::Overflow`] for a length beyond 64 bits.
    pub fn blocks_to_append(&self, id: SequenceId, tokens: usize) -> Result<BlockCounts, PagedKvError> {
        self.missing(id, tokens, true)
    }

    /// [`Self::blocks_to_append`], in several steps or in one.
    fn missing(&self, id: SequenceId, tokens: usize, in_steps: bool) -> Result<BlockCounts, PagedKvError> {
        let sequence = self.sequence(id)?;
        let overflow = PagedKvError::Overflow("the length of the sequence");
        let len = sequence.tokens.len().checked_add(tokens).ok_or(overflow)?;
        let counts = self.pools.iter().zip(&sequence.tables).map(|(pool, table)| {
            let mut held = blocks_for(len, self.block_size) - table.first;
            if pool.keep.ahead().is_some_and(|ahead| in_steps && tokens > ahead) {
                held = held.min(pool.keep.most_blocks(len, self.block_size));
            }
            let copy = tokens > 0 && shared_partial_block(&pool.allocator, table).is_some();
            held.saturating_sub(table.blocks.len()) + usize::from(copy)
        });
        let slot = self.states.as_ref().map(|_| usize::from(tokens > 0));
        Ok(BlockCounts(counts.chain(slot).collect()))
    }

    /// How many of `pending` tokens of a sequence to append at a time, of up to `most`. Where there are states, a step of several tokens ends at the
    /// end of a block, and leaves the last token of `pending` to another if that lets it: so that the longest prefix that can be shared has a
    /// checkpoint.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn tokens_of_step(&self, id: SequenceId, pending: usize, most: usize) -> Result<usize, PagedKvError> {
        let (len, tokens) = (self.len(id)?, pending.min(most));
        let end = len + tokens - usize::from(tokens == pending && tokens > 0);
        let border = end / self.block_size * self.block_size;
        Ok(match self.states {
            Some(_) if border > len => border - len,
            _ => tokens,
        })
    }

    /// Appends tokens, and says for each pool in which slots their K and V go, after the copies have been made.
    ///
    /// An append says that the K and V of the tokens before it have been written, as [`mark_written`](Self::mark_written) does.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::OutOfBlocks`] leaves everything as it was: remove a sequence and try again. [`PagedKvError::UnknownSequence`].
    pub fn append(&mut self, id: SequenceId, tokens: &[T]) -> Result<Vec<Appended>, PagedKvError> {
        let (needed, free) = (self.missing(id, tokens.len(), false)?, self.free_blocks());
        if let Some((&needed, &free)) = needed.0.iter().zip(&free.0).find(|(needed, free)| needed > free) {
            return Err(PagedKvError::OutOfBlocks { needed, free });
        }
        if tokens.is_empty() {
            return Ok(vec![Appended::default(); self.pools.len()]);
        }
        self.mark_written(id)?;

        let sequence = self.sequences.get_mut(&id).ok_or(PagedKvError::UnknownSequence(id))?;
        let begin = sequence.tokens.len();
        let end = begin + tokens.len();
        sequence.tokens.extend_from_slice(tokens);
        sequence.states.to = self.states.as_mut().and_then(BlockAllocator::allocate);
        let mut all = Vec::with_capacity(self.pools.len());
        for (Pool { allocator, .. }, table) in self.pools.iter_mut().zip(&mut sequence.tables) {
            let out = PagedKvError::OutOfBlocks { needed: 1, free: 0 };
            let shared = shared_partial_block(allocator, table);
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
            table.tokens = end;
            while table.first + table.blocks.len() < blocks_for(end, table.block_size) {
                table.blocks.push(allocator.allocate().ok_or(out.clone())?);
            }
            self.copies += copies.len() as u64;
            let slots = table.slots(begin..end).collect();
            all.push(Appended { slots, copies });
        }
        Ok(all)
    }

    /// Takes back a copy of the last [`append`](Self::append) that could not be made: the sequence has the shared block again. Then
    /// [truncate](Self::truncate) it to what it was.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`]; [`PagedKvError::BlockNotInUse`] for another copy.
    pub fn undo_copy(&mut self, id: SequenceId, pool: usize, copy: BlockCopy) -> Result<(), PagedKvError> {
        let sequence = self.sequences.get_mut(&id).ok_or(PagedKvError::UnknownSequence(id))?;
        let mut pools = self.pools.iter_mut().zip(&mut sequence.tables);
        let unknown = PagedKvError::BlockNotInUse(copy.to);
        let (Pool { allocator, .. }, table) = pools.nth(pool).ok_or(unknown.clone())?;
        let block = table
            .blocks
            .iter_mut()
            .find(|block| **block == copy.to)
            .ok_or(unknown)?;
        allocator.share(copy.from)?;
        *block = copy.from;
        allocator.release(copy.to)?;
        self.copies -= 1;
        Ok(())
    }

    /// Says that the K and V of all tokens of a sequence have been written, or will be before any later work of the device. From now on
    /// its full blocks are shared with new sequences, and blocks that no later token sees are released.
    ///
    /// [`append`](Self::append) does this for the tokens before it. Call it after the last append of a sequence, before
    /// [`remove`](Self::remove), and as early as other sequences shall profit. Do not call it if the forward pass has failed.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn mark_written(&mut self, id: SequenceId) -> Result<(), PagedKvError> {
        let sequence = self.sequences.get_mut(&id).ok_or(PagedKvError::UnknownSequence(id))?;
        let Sequence {
            root,
            tokens,
            hashes,
            tables,
            written,
            states,
        } = sequence;
        *written = tokens.len();
        let known = hashes.len();
        for block in tokens.chunks_exact(self.block_size).skip(known) {
            hashes.push(BlockHash::new(hashes.last().copied().or(*root), block));
        }
        for (Pool { keep, allocator }, table) in self.pools.iter_mut().zip(tables) {
            for (index, &hash) in hashes.iter().enumerate().skip(known) {
                allocator.publish(table.blocks[index - table.first], hash)?;
            }
            // What the same tokens share again begins with the block of the last one.
            let last = tokens.len().saturating_sub(1) / self.block_size * self.block_size;
            let seen = keep.first_block(last, self.block_size);
            for block in table.blocks.drain(..seen.saturating_sub(table.first)) {
                allocator.release(block)?;
            }
            table.first = table.first.max(seen);
        }
        if let Some((pool, log)) = &mut self.events {
            log.remove(&mut self.pools[*pool]);
            // No root: nobody's alone.
            if root.is_none() {
                log.store(&self.pools[*pool], self.block_size, hashes, tokens);
            }
        }
        let at_border = tokens.len().is_multiple_of(self.block_size);
        let border = hashes.last().copied().filter(|_| at_border);
        self.states
            .as_mut()
            .map_or(Ok(()), |slots| states.advance(slots, border))
    }

    /// A second sequence with the same tokens. All blocks are shared; whichever of the two first appends to a shared, partly filled
    /// block gets an order to copy it.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn fork(&mut self, id: SequenceId) -> Result<SequenceId, PagedKvError> {
        let copy = self.sequence(id)?.clone();
        for (pool, table) in self.pools.iter_mut().zip(&copy.tables) {
            for &block in &table.blocks {
                pool.allocator.share(block)?;
            }
        }
        self.states.as_mut().map_or(Ok(()), |slots| copy.states.share(slots))?;
        Ok(self.insert(copy))
    }

    /// Shortens a sequence to `tokens` tokens and releases the blocks behind them; returns its length. That is less than `tokens` if a pool has
    /// no more what the token after them sees, or there is no state of theirs: then as many of them are left as are cached, and the others are to be
    /// computed again.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::TruncateBeyondEnd`] for more tokens than it has; [`PagedKvError::UnknownSequence`].
    pub fn truncate(&mut self, id: SequenceId, tokens: usize) -> Result<usize, PagedKvError> {
        let size = self.block_size;
        let unknown = PagedKvError::UnknownSequence(id);
        let sequence = self.sequences.get_mut(&id).ok_or(unknown)?;
        let len = sequence.tokens.len();
        if tokens > len {
            return Err(PagedKvError::TruncateBeyondEnd { len, tokens });
        }
        let mut pools = self.pools.iter().zip(&sequence.tables);
        let has_state = self.states.is_none() || [0, sequence.written, len].contains(&tokens);
        if !has_state || pools.any(|(pool, table)| table.first > pool.keep.first_block(tokens, size)) {
            let (root, kept) = (sequence.root, std::mem::take(&mut sequence.tokens));
            let shorter = self.share_prefix(root, &kept[..tokens])?;
            let len = shorter.tokens.len();
            let old = self.sequences.insert(id, shorter);
            return old.map_or(Ok(()), |old| self.release(old)).map(|()| len);
        }
        for (Pool { allocator, .. }, table) in self.pools.iter_mut().zip(&mut sequence.tables) {
            // The last block first: it is then also the first to be evicted.
            for block in table.blocks.drain(blocks_for(tokens, size) - table.first..).rev() {
                allocator.release(block)?;
            }
            table.tokens = tokens;
        }
        sequence.tokens.truncate(tokens);
        sequence.hashes.truncate(tokens / size);
        let gone = StateSlots {
            from: sequence.states.from.take_if(|_| tokens == 0),
            to: sequence.states.to.take_if(|_| tokens <= sequence.written),
        };
        sequence.written = sequence.written.min(tokens);
        self.states.as_mut().map_or(Ok(()), |slots| gone.release(slots))?;
        Ok(tokens)
    }

    /// Removes a sequence and releases its blocks. Those that are known to be written stay cached.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn remove(&mut self, id: SequenceId) -> Result<(), PagedKvError> {
        let sequence = self.sequences.remove(&id).ok_or(PagedKvError::UnknownSequence(id))?;
        self.release(sequence)
    }

    fn release(&mut self, sequence: Sequence<T>) -> Result<(), PagedKvError> {
        for (pool, table) in self.pools.iter_mut().zip(sequence.tables) {
            for block in table.blocks.into_iter().rev() {
                pool.allocator.release(block)?;
            }
        }
        let slots = self.states.as_mut();
        slots.map_or(Ok(()), |slots| sequence.states.release(slots))
    }

    fn sequence(&self, id: SequenceId) -> Result<&Sequence<T>, PagedKvError> {
        self.sequences.get(&id).ok_or(PagedKvError::UnknownSequence(id))
    }

    /// The block tables of a sequence, one for each pool.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn tables(&self, id: SequenceId) -> Result<&[BlockTable], PagedKvError> {
        Ok(&self.sequence(id)?.tables)
    }

    /// The slots of a sequence's state.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn state(&self, id: SequenceId) -> Result<StateSlots, PagedKvError> {
        Ok(self.sequence(id)?.states)
    }

    /// Length of a sequence in tokens.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn len(&self, id: SequenceId) -> Result<usize, PagedKvError> {
        Ok(self.tokens(id)?.len())
    }

    /// The tokens of a sequence.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::UnknownSequence`].
    pub fn tokens(&self, id: SequenceId) -> Result<&[T], PagedKvError> {
        Ok(&self.sequence(id)?.tokens)
    }

    /// Whether there are no sequences.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// No block of any pool.
    pub fn no_blocks(&self) -> BlockCounts {
        BlockCounts(self.allocators().map(|_| 0).collect())
    }

    /// Blocks of each pool that no sequence holds, cached ones included; at last slots of states, if there are any.
    pub fn free_blocks(&self) -> BlockCounts {
        BlockCounts(self.allocators().map(BlockAllocator::free).collect())
    }

    /// The blocks of each pool and their references; at last the slots of states, if there are any.
    pub fn allocators(&self) -> impl Iterator<Item = &BlockAllocator> {
        self.pools.iter().map(|pool| &pool.allocator).chain(&self.states)
    }

    /// Figures of the cache.
    pub fn counts(&self) -> CacheCounts {
        let mut counts = CacheCounts {
            sequences: self.sequences.len(),
            copies: self.copies,
            ..CacheCounts::default()
        };
        for allocator in self.allocators() {
            counts.blocks += allocator.capacity();
            counts.free += allocator.free();
            counts.cached += allocator.cached();
            counts.evictions += allocator.evictions();
        }
        counts
    }
}

/// The last block, if it has room for a token but belongs to another sequence too.
fn shared_partial_block(allocator: &BlockAllocator, table: &BlockTable) -> Option<u32> {
    let last = *table.blocks.last()?;
    (table.last_is_partial() && allocator.refs(last) > 1).then_some(last)
}
