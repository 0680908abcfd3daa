//! Defragmentation: moves of blocks that leave the free blocks at the end of the cache.

use std::collections::{BTreeSet, HashMap};

use super::pool::Pool;
use super::{BlockAllocator, BlockCopy, PagedKv, PagedKvError, Token};

/// The moves of a defragmentation in one pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Defragmented {
    /// Copies of whole blocks, K and V of every layer. Made in this order, none overwrites a block that is still to be read.
    pub moves: Vec<BlockCopy>,
    /// Blocks from this number on are free and hold nothing.
    pub end: usize,
}

impl<T: Token> PagedKv<T> {
    /// Moves blocks of each pool so that those of sequences are the lowest, cached ones follow, and the others are the highest. Tables, references and the prefix
    /// cache stay as they are except for the numbers. The caller makes the moves on the device before any later work of the cache, in their order, and
    /// writes tables of blocks anew.
    ///
    /// Blocks need not be neighbours for attention to be quick, so this is for making the cache smaller: what lies from
    /// [`Defragmented::end`] on can be given back after [`shrink`](Self::shrink). A block is moved once; a cached one that lies where a sequence's is to
    /// go may be moved twice. If every block is in use or cached and both kinds would have to change places, the block cached longest is given up: one
    /// eviction at most.
    pub fn defragment(&mut self) -> Vec<Defragmented> {
        let mut plans = Vec::new();
        for (index, Pool { allocator, .. }) in self.pools.iter_mut().enumerate() {
            let (moves, moved) = allocator.compact();
            for block in self.sequences.values_mut().flat_map(|s| &mut s.tables[index].blocks) {
                *block = moved.get(block).copied().unwrap_or(*block);
            }
            let end = allocator.in_use() + allocator.cached();
            plans.push(Defragmented { moves, end });
        }
        plans
    }

    /// Makes a pool smaller: blocks from `blocks` on are no more. What is cached there is forgotten, and counts as evicted.
    ///
    /// # Errors
    ///
    /// [`PagedKvError::BlocksInUse`] if a sequence has a block beyond: [`defragment`](Self::defragment) first. [`PagedKvError::Zero`]. A number that is
    /// not smaller changes nothing.
    ///
    /// # Panics
    ///
    /// There is no such pool.
    pub fn shrink(&mut self, pool: usize, blocks: usize) -> Result<(), PagedKvError> {
        if blocks == 0 {
            return Err(PagedKvError::Zero("blocks"));
        }
        let allocator = &mut self.pools[pool].allocator;
        match blocks < allocator.capacity() {
            true => allocator.shrink(blocks as u32),
            false => Ok(()),
        }
    }
}

impl BlockAllocator {
    /// The moves that bring blocks in use to the start and cached ones behind them, in order, and the new numbers of those in use.
    fn compact(&mut self) -> (Vec<BlockCopy>, HashMap<u32, u32>) {
        let mut moves = Vec::new();
        let mut moved = HashMap::new();
        // One past the last in use.
        let used = self.in_use() as u32;
        let mut blank: BTreeSet<u32> = (0..self.known()).filter(|&block| self.is_blank(block)).collect();
        let late: Vec<u32> = (used..self.known()).filter(|&block| self.refs(block) > 0).collect();
        // As many places as blocks that want one: blank ones first, which need no move before.
        let mut places: Vec<u32> = (0..used).filter(|&block| self.refs(block) == 0).collect();
        places.sort_by_key(|block| !blank.contains(block));
        for (from, to) in late.into_iter().zip(places) {
            if !blank.contains(&to) {
                // A cached block makes room: to the lowest place behind those in use, which may be where it stays.
                let behind = blank.range(used..).next().copied();
                match behind.or_else(|| self.grow()) {
                    Some(free) => {
                        self.relocate(to, free);
                        moves.push(BlockCopy { from: to, to: free });
                        blank.remove(&free);
                    }
                    None => {
                        // No block is blank before the first of these moves; `from` is afterwards.
                        if let Some(free) = self.evict().filter(|&free| free != to) {
                            self.relocate(to, free);
                            moves.push(BlockCopy { from: to, to: free });
                        }
                    }
                }
            }
            blank.remove(&to);
            self.relocate(from, to);
            moves.push(BlockCopy { from, to });
            moved.insert(from, to);
            blank.insert(from);
        }
        // Cached blocks behind.
        let end = used + self.cached() as u32;
        let last: Vec<u32> = (end..self.known())
            .filter(|&block| self.hash(block).is_some())
            .collect();
        let holes: Vec<u32> = (used..end.min(self.known()))
            .filter(|&block| self.is_blank(block))
            .collect();
        for (from, to) in last.into_iter().zip(holes) {
            self.relocate(from, to);
            moves.push(BlockCopy { from, to });
        }
        self.forget_blank_from(end);
        (moves, moved)
    }
}
