//! Block allocator: free list, reference counts and prefix index of the cache's blocks.

use std::collections::{BTreeMap, HashMap};

use super::{BlockHash, PagedKvError};

/// One block's state. `refs` and `hash` are independent: a block is
/// in use (refs > 0), cached (refs 0, a hash, listed in `idle`) or blank (refs 0, no hash, listed in `blank`).
#[derive(Clone, Debug, Default)]
struct Block {
    refs: usize,
    hash: Option<BlockHash>,
    /// Key of this block in `idle`, while it is there.
    released: u64,
}

/// A fixed pool of blocks with reference counts, and a cache of the blocks without references.
#[derive(Clone, Debug, Default)]
pub struct BlockAllocator {
    capacity: u32,
    /// Blocks that have ever been in use; the others need no memory here.
    blocks: Vec<Block>,
    blank: Vec<u32>,
    /// Cached blocks by the time of their release.
    idle: BTreeMap<u64, u32>,
    by_hash: HashMap<BlockHash, u32>,
    clock: u64,
    in_use: usize,
    evictions: u64,
    /// Hashes that were taken away since somebody looked; `None` if nobody wants them. Each had been published, so there are no more of them than that.
    pub(super) forgotten: Option<Vec<BlockHash>>,
}

impl BlockAllocator {
    /// A pool of `capacity` blocks, numbered from 0.
    pub fn new(capacity: u32) -> Self {
        Self {
            capacity,
            ..Self::default()
        }
    }

    /// Blocks of the pool.
    pub fn capacity(&self) -> usize {
        self.capacity as usize
    }

    /// Blocks without references, cached ones included.
    pub fn free(&self) -> usize {
        self.capacity() - self.in_use
    }

    /// Blocks without references whose content can still be shared.
    pub fn cached(&self) -> usize {
        self.idle.len()
    }

    /// Cached blocks that were given up for a new use.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// References to `block`; 0 for one that is free or does not exist.
    pub fn refs(&self, block: u32) -> usize {
        self.blocks.get(block as usize).map_or(0, |block| block.refs)
    }

    /// The hash under which `block` can be found.
    pub fn hash(&self, block: u32) -> Option<BlockHash> {
        self.blocks.get(block as usize)?.hash
    }

    /// The block that holds the prefix of this hash. It may be free: [`share`](Self::share) it before anything else is allocated.
    pub fn find(&self, hash: BlockHash) -> Option<u32> {
        self.by_hash.get(&hash).copied()
    }

    /// Takes a block for new content, with one reference: a blank one while there is any, or else the cached block that was released
    /// longest ago, whose content is forgotten. None if all blocks are in use.
    pub fn allocate(&mut self) -> Option<u32> {
        let block = match self.blank.pop() {
            Some(block) => block,
            None => self.grow().or_else(|| self.evict())?,
        };
        self.blocks.get_mut(block as usize)?.refs = 1;
        self.in_use += 1;
        Some(block)
    }

    /// The lowest block that has never been in use.
    pub(super) fn grow(&mut self) -> Option<u32> {
        let block = u32::try_from(self.blocks.len())
            .ok()
            .filter(|&next| next < self.capacity)?;
        self.blocks.push(Block::default());
        Some(block)
    }

    /// Gives up the block that has been cached longest, which is blank then.
    pub(super) fn evict(&mut self) -> Option<u32> {
        let (_, block) = self.idle.pop_first()?;
        self.forget(block);
        self.evictions += 1;
        Some(block)
    }

    /// Adds a reference to a block that is in use or cached.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::BlockNotInUse`] for a block without content.
    pub fn share(&mut self, block: u32) -> Result<(), PagedKvError> {
        let missing = PagedKvError::BlockNotInUse(block);
        let state = self.blocks.get_mut(block as usize).ok_or(missing.clone())?;
        if state.refs == 0 {
            if state.hash.is_none() {
                return Err(missing);
            }
            self.idle.remove(&state.released);
            self.in_use += 1;
        }
        state.refs += 1;
        Ok(())
    }

    /// Takes a reference away. With the last one the block becomes free: cached if it has a hash, blank if not.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::BlockNotInUse`] for a block without references.
    pub fn release(&mut self, block: u32) -> Result<(), PagedKvError> {
        let state = held(&mut self.blocks, block)?;
        state.refs -= 1;
        if state.refs == 0 {
            self.in_use -= 1;
            if state.hash.is_some() {
                state.released = self.clock;
                self.idle.insert(self.clock, block);
                self.clock += 1;
            } else {
                self.blank.push(block);
            }
        }
        Ok(())
    }

    /// Makes a block in use findable by the hash of its content. Nothing changes if it has a hash, or if another block holds the same
    /// prefix: one of them is enough.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::BlockNotInUse`] for a block without references.
    pub fn publish(&mut self, block: u32, hash: BlockHash) -> Result<(), PagedKvError> {
        let state = held(&mut self.blocks, block)?;
        if state.hash.is_none() && !self.by_hash.contains_key(&hash) {
            state.hash = Some(hash);
            self.by_hash.insert(hash, block);
        }
        Ok(())
    }

    /// Blocks with references.
    pub(super) fn in_use(&self) -> usize {
        self.in_use
    }

    /// Blocks that have ever been in use: the others are blank.
    pub(super) fn known(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Whether a block has neither references nor content.
    pub(super) fn is_blank(&self, block: u32) -> bool {
        self.refs(block) == 0 && self.hash(block).is_none()
    }

    /// What is known of `from` becomes that of the blank block `to`, and `from` blank.
    pub(super) fn relocate(&mut self, from: u32, to: u32) {
        let state = std::mem::take(&mut self.blocks[from as usize]);
        if let Some(hash) = state.hash {
            self.by_hash.insert(hash, to);
            if state.refs == 0 {
                self.idle.insert(state.released, to);
            }
        }
        self.blocks[to as usize] = state;
    }

    /// Forgets blocks from `end` on, which are all blank, as if they had never been in use; below there is no blank one.
    pub(super) fn forget_blank_from(&mut self, end: u32) {
        self.blocks.truncate(end as usize);
        self.blank.clear();
    }

    /// Makes the pool smaller.
    pub(super) fn shrink(&mut self, capacity: u32) -> Result<(), PagedKvError> {
        let beyond = capacity..self.known();
        if let Some(block) = beyond.clone().rev().find(|&block| self.refs(block) > 0) {
            return Err(PagedKvError::BlocksInUse {
                blocks: capacity as usize,
                needed: block as usize + 1,
            });
        }
        for block in beyond {
            if self.hash(block).is_some() {
                self.idle.remove(&self.blocks[block as usize].released);
                self.forget(block);
                self.evictions += 1;
            }
        }
        self.blocks.truncate(capacity as usize);
        self.blank.retain(|&block| block < capacity);
        self.capacity = capacity;
        Ok(())
    }

    /// Takes a block's hash away: its content is about to change.
    pub(super) fn forget(&mut self, block: u32) {
        if let Some(hash) = self.blocks.get_mut(block as usize).and_then(|state| state.hash.take()) {
            self.by_hash.remove(&hash);
            if let Some(forgotten) = &mut self.forgotten {
                forgotten.push(hash);
            }
        }
    }
}

/// A block with references.
fn held(blocks: &mut [Block], block: u32) -> Result<&mut Block, PagedKvError> {
    let state = blocks.get_mut(block as usize).filter(|state| state.refs > 0);
    state.ok_or(PagedKvError::BlockNotInUse(block))
}
