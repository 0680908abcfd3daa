//! Events of a prefix cache: which blocks can be found, for those outside of the process who choose where a prompt goes.

use std::collections::HashSet;

use super::pool::Pool;
use super::{BlockHash, Token};

/// A change of what the prefix cache has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheEvent {
    /// Blocks that follow each other can be found now.
    Stored {
        /// The block before the first; `None` at the start of a sequence.
        parent: Option<BlockHash>,
        /// The blocks.
        hashes: Vec<BlockHash>,
        /// Their tokens: so many for each block as a block has.
        tokens: Vec<u32>,
    },
    /// Blocks that were stored can be found no more.
    Removed(Vec<BlockHash>),
    /// All that was stored is to be forgotten: events were lost. What sequences still use is stored anew when they go on.
    Cleared,
}

/// Events that nobody has taken yet, and what those taken have named.
#[derive(Clone, Debug, Default)]
pub(super) struct EventLog {
    /// Most blocks in `events`.
    limit: usize,
    blocks: usize,
    events: Vec<CacheEvent>,
    /// Blocks that are stored and not removed, for those who read the events.
    named: HashSet<BlockHash>,
}

impl EventLog {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Notes that blocks have been forgotten.
    pub(super) fn remove(&mut self, pool: &mut Pool) {
        let forgotten = pool.allocator.forgotten.as_mut().map(std::mem::take);
        let mut hashes = forgotten.unwrap_or_default();
        // Others were never named: they are a tenant's.
        hashes.retain(|hash| self.named.remove(hash));
        if !hashes.is_empty() {
            self.push(hashes.len(), CacheEvent::Removed(hashes));
        }
    }

    /// Notes which of a sequence's blocks can be found: those behind the last that is named. A block that holds more than ids of tokens ends them,
    /// because its content has no name outside.
    pub(super) fn store<T: Token>(&mut self, pool: &Pool, block_size: usize, hashes: &[BlockHash], tokens: &[T]) {
        let known = hashes.iter().rposition(|hash| self.named.contains(hash));
        let first = known.map_or(0, |last| last + 1);
        let mut ids = Vec::new();
        let blocks = hashes.iter().zip(tokens.chunks_exact(block_size)).skip(first);
        let stored = blocks.map_while(|(&hash, block)| {
            pool.allocator.find(hash)?;
            let block: Vec<u32> = block.iter().map(Token::id).collect::<Option<_>>()?;
            ids.extend(block);
            Some(hash)
        });
        let stored: Vec<BlockHash> = stored.collect();
        if stored.is_empty() {
            return;
        }
        self.named.extend(&stored);
        let event = CacheEvent::Stored {
            parent: first.checked_sub(1).map(|before| hashes[before]),
            tokens: ids,
            hashes: stored.clone(),
        };
        self.push(stored.len(), event);
    }

    fn push(&mut self, blocks: usize, event: CacheEvent) {
        self.blocks += blocks;
        match self.blocks > self.limit {
            true => self.clear(),
            false => self.events.push(event),
        }
    }

    /// Forgets all events, and says so.
    pub(super) fn clear(&mut self) {
        self.blocks = 0;
        self.named.clear();
        self.events = vec![CacheEvent::Cleared];
    }

    pub(super) fn take(&mut self) -> Vec<CacheEvent> {
        self.blocks = 0;
        std::mem::take(&mut self.events)
    }
}
