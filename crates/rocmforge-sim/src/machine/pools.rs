//! Memory pools: what each has handed out, and what is on its way back.

use crate::machine::handle::{Kind, Table};
use std::collections::{BTreeMap, BTreeSet};

/// A pool.
pub(crate) struct Pool {
    pub(crate) card: usize,
    /// Bytes it never exceeds; 0 for no limit.
    pub(crate) max: u64,
    /// Whether it is its card's own, which lives as long as the card.
    pub(crate) own: bool,
    /// Bytes that the program holds: allocated, and not given to a free.
    pub(crate) used: u64,
    pub(crate) used_high: u64,
    /// The same with what waits for its stream to be freed.
    pub(crate) reserved: u64,
    pub(crate) reserved_high: u64,
    /// The three reuse settings and the release threshold, which change nothing here: freed memory goes back to the card
    /// when the free runs.
    pub(crate) settings: [u64; 4],
}

struct Block {
    pool: u64,
    size: u64,
}

/// All pools of a host, and who owns which allocation.
pub(crate) struct Pools {
    table: Table<Pool>,
    blocks: BTreeMap<u64, Block>,
    /// Allocations that a queued free takes, from a pool or not.
    leaving: BTreeSet<u64>,
}

impl Pools {
    pub(crate) fn new() -> Self {
        Self {
            table: Table::new(Kind::Pool),
            blocks: BTreeMap::new(),
            leaving: BTreeSet::new(),
        }
    }

    /// A new pool's handle.
    pub(crate) fn create(&mut self, card: usize, max: u64, own: bool) -> u64 {
        let pool = Pool {
            card,
            max,
            own,
            used: 0,
            used_high: 0,
            reserved: 0,
            reserved_high: 0,
            settings: [1, 1, 1, 0],
        };
        // Pools are not looked for when leaks are: the default ones live as long as their card.
        self.table.insert(pool, 0)
    }

    pub(crate) fn get(&self, pool: u64) -> Option<&Pool> {
        self.table.get(pool)
    }

    pub(crate) fn get_mut(&mut self, pool: u64) -> Option<&mut Pool> {
        self.table.get_mut(pool)
    }

    /// The pool is gone; what it has handed out lives until it is freed.
    pub(crate) fn destroy(&mut self, pool: u64) {
        self.table.remove(pool);
    }

    /// A pool has handed out an allocation.
    pub(crate) fn allocated(&mut self, pool: u64, allocation: u64, size: u64) {
        self.blocks.insert(allocation, Block { pool, size });
        if let Some(pool) = self.table.get_mut(pool) {
            pool.used += size;
            pool.used_high = pool.used_high.max(pool.used);
            pool.reserved += size;
            pool.reserved_high = pool.reserved_high.max(pool.reserved);
        }
    }

    /// Whether an allocation comes from a pool.
    pub(crate) fn owns(&self, allocation: u64) -> bool {
        self.blocks.contains_key(&allocation)
    }

    /// A free of the allocation has been queued. False if one had been before.
    pub(crate) fn leave(&mut self, allocation: u64) -> bool {
        let first = self.leaving.insert(allocation);
        if first && let Some(pool) = self.pool_of(allocation) {
            pool.0.used -= pool.1;
        }
        first
    }

    pub(crate) fn is_leaving(&self, allocation: u64) -> bool {
        self.leaving.contains(&allocation)
    }

    pub(crate) fn anything_leaves(&self) -> bool {
        !self.leaving.is_empty()
    }

    /// The allocation is gone.
    pub(crate) fn released(&mut self, allocation: u64) {
        let queued = self.leaving.remove(&allocation);
        if let Some((pool, size)) = self.pool_of(allocation) {
            pool.reserved -= size;
            if !queued {
                pool.used -= size;
            }
        }
        self.blocks.remove(&allocation);
    }

    fn pool_of(&mut self, allocation: u64) -> Option<(&mut Pool, u64)> {
        let block = self.blocks.get(&allocation)?;
        Some((self.table.get_mut(block.pool)?, block.size))
    }
}
