//! The paged KV cache against a model: random calls, with a cache array whose content is checked after each.
//!
//! What a slot holds depends on all tokens up to it, as K and V do: a block shared by mistake cannot go unseen.

use std::collections::{BTreeMap, HashMap};

use rocmforge_attention::paged::{
    BlockAllocator, Keep, PagedKv, PagedKvConfig, PagedKvError, PoolConfig, PrefixKey, SequenceId,
};
use rocmforge_testkit::data::{Rng, rng};

/// The content of an unwritten slot, and of one that a failed pass has written.
const POISON: u64 = u64::MAX;

/// What the slot of the last of `tokens` holds.
fn content(tokens: &[u32]) -> u64 {
    tokens.iter().fold(0, |hash: u64, &token| {
        let mixed = hash
            .wrapping_add(u64::from(token) + 1)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 29)
    })
}

struct Model {
    kv: PagedKv,
    block_size: usize,
    pools: Vec<PoolConfig>,
    /// The slots of each pool.
    caches: Vec<Vec<u64>>,
    /// The slots of states.
    states: Option<Vec<u64>>,
    /// Each sequence's tokens.
    sequences: BTreeMap<SequenceId, Vec<u32>>,
    refused: usize,
    moved: usize,
    shorter: usize,
    /// Tokens of prompts that were found in the cache.
    cached: usize,
}

/// The first token that one at `position` sees.
fn first_seen(keep: Keep, position: usize) -> usize {
    match keep {
        Keep::All => 0,
        Keep::Window { keys, .. } => (position + 1).saturating_sub(keys),
        Keep::Chunk { keys, .. } => position - position % keys,
    }
}

impl Model {
    fn new(block_size: usize, pools: &[PoolConfig], states: Option<usize>) -> Self {
        let pools = pools.to_vec();
        let slots = pools.iter().map(|pool| vec![POISON; pool.blocks * block_size]);
        Self {
            caches: slots.collect(),
            kv: PagedKv::<u32>::new(PagedKvConfig {
                block_size,
                pools: pools.clone(),
                states,
            })
            .unwrap(),
            block_size,
            pools,
            states: states.map(|slots| vec![POISON; slots]),
            sequences: BTreeMap::new(),
            refused: 0,
            moved: 0,
            shorter: 0,
            cached: 0,
        }
    }

    fn pick(&self, rng: &mut Rng) -> Option<SequenceId> {
        let ids: Vec<_> = self.sequences.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[rng.below(ids.len())])
    }

    fn references(&self, pool: usize) -> HashMap<u32, usize> {
        let mut counts = HashMap::new();
        for &id in self.sequences.keys() {
            for &block in self.kv.tables(id).unwrap()[pool].blocks() {
                *counts.entry(block).or_default() += 1;
            }
        }
        counts
    }

    fn state_references(&self) -> HashMap<u32, usize> {
        let mut counts = HashMap::new();
        for &id in self.sequences.keys() {
            let state = self.kv.state(id).unwrap();
            for slot in state.from.into_iter().chain(state.to) {
                *counts.entry(slot).or_default() += 1;
            }
        }
        counts
    }

    fn add(&mut self, prompt: &[u32]) -> SequenceId {
        let added = self.kv.add_sequence(&PrefixKey::default(), prompt).unwrap();
        assert!(added.cached_tokens < prompt.len().max(1) && added.cached_tokens.is_multiple_of(self.block_size));
        self.cached += added.cached_tokens;
        let before = self.sequences.insert(added.id, prompt[..added.cached_tokens].to_vec());
        assert_eq!(before, None, "an id is used twice");
        added.id
    }

    /// Appends, and runs the pass that fills the slots, or one that fails half way. False if it was refused.
    fn append(&mut self, id: SequenceId, tokens: &[u32], fails: bool) -> bool {
        let size = self.block_size;
        let held = self.sequences[&id].clone();
        // The definition: blocks for the new length, less those there are or were, and one more to copy a shared block.
        let mut lacks = None;
        let mut copied = Vec::new();
        let needed = self.kv.blocks_to_append(id, tokens.len()).unwrap();
        for (pool, config) in self.pools.iter().enumerate() {
            let references = self.references(pool);
            let table = &self.kv.tables(id).unwrap()[pool];
            let last = table.blocks().last().copied();
            let copy =
                last.filter(|last| !held.len().is_multiple_of(size) && references[last] > 1 && !tokens.is_empty());
            copied.push(copy);
            let had = table.released() + table.blocks().len();
            let need = (held.len() + tokens.len()).div_ceil(size) - had + usize::from(copy.is_some());
            let free = config.blocks - references.len();
            match config.keep {
                Keep::Window { ahead, .. } | Keep::Chunk { ahead, .. } if tokens.len() > ahead => {
                    assert!(needed.0[pool] <= need)
                }
                _ => assert_eq!(needed.0[pool], need),
            }
            if need > free && lacks.is_none() {
                lacks = Some(PagedKvError::OutOfBlocks { needed: need, free });
            }
        }

        if let Some(slots) = &self.states {
            let free = slots.len() - self.state_references().len();
            assert_eq!(needed.0.last(), Some(&usize::from(!tokens.is_empty())));
            if free == 0 && !tokens.is_empty() && lacks.is_none() {
                lacks = Some(PagedKvError::OutOfBlocks { needed: 1, free });
            }
        }

        let (stats, before) = (self.kv.counts(), self.kv.clone());
        let appended = match self.kv.append(id, tokens) {
            Ok(appended) => appended,
            Err(error) => {
                assert_eq!(Some(error), lacks);
                assert_eq!(self.kv.counts(), stats);
                for &id in self.sequences.keys() {
                    assert_eq!(self.kv.tables(id), before.tables(id));
                }
                self.refused += 1;
                return false;
            }
        };
        assert_eq!(lacks, None);
        let mut all = held.clone();
        all.extend(tokens);
        for ((appended, cache), copied) in appended.into_iter().zip(&mut self.caches).zip(copied) {
            assert_eq!(appended.copies.first().map(|copy| copy.from), copied);
            for copy in appended.copies {
                let (from, to) = (copy.from as usize * size, copy.to as usize * size);
                cache.copy_within(from..from + size, to);
            }
            assert_eq!(appended.slots.len(), tokens.len());
            for (end, &slot) in (held.len() + 1..).zip(&appended.slots) {
                cache[slot as usize] = if fails { POISON } else { content(&all[..end]) };
            }
        }
        if let Some(slots) = &mut self.states
            && !tokens.is_empty()
        {
            let state = self.kv.state(id).unwrap();
            let read = state.from.map_or(content(&[]), |slot| slots[slot as usize]);
            assert_eq!(read, content(&held), "sequence {}", id.number());
            slots[state.to.unwrap() as usize] = if fails { POISON } else { content(&all) };
        }
        self.sequences.insert(id, all);
        true
    }

    /// Truncates; the length is less than `tokens` only where a window has gone on.
    fn truncate(&mut self, id: SequenceId, tokens: usize) -> usize {
        let tables = self.kv.tables(id).unwrap();
        let there = self.pools.iter().zip(tables).all(|(pool, table)| {
            let first = first_seen(pool.keep, tokens);
            first >= table.released() * self.block_size
        });
        let len = self.kv.truncate(id, tokens).unwrap();
        let there = there && self.states.is_none();
        assert!(len == tokens || !there && len < tokens && len.is_multiple_of(self.block_size));
        self.shorter += usize::from(len < tokens);
        self.sequences.get_mut(&id).unwrap().truncate(len);
        len
    }

    /// Makes the moves one by one. Sometimes a pool becomes smaller and is made anew at its size.
    fn defragment(&mut self) {
        let size = self.block_size;
        let before = self.kv.clone();
        let plans = self.kv.defragment();
        assert_eq!(plans.len(), self.pools.len());
        let (was, is): (Vec<&BlockAllocator>, Vec<_>) = (before.allocators().collect(), self.kv.allocators().collect());
        for (pool, plan) in plans.iter().enumerate() {
            let blocks = self.pools[pool].blocks;
            let cache = &mut self.caches[pool];
            for copy in &plan.moves {
                let (from, to) = (copy.from as usize * size, copy.to as usize * size);
                cache.copy_within(from..from + size, to);
                self.moved += 1;
            }

            // Used blocks first, cached ones next, the others last.
            let (was, is) = (was[pool], is[pool]);
            let used = blocks - is.free();
            let lost = is.evictions() - was.evictions();
            let all_cached = was.cached() as u64;
            assert_eq!(is.cached() as u64 + lost, all_cached, "at most one is given up");
            assert!(lost <= 1 && (lost == 0 || was.cached() == was.free()));
            assert_eq!(is.free(), was.free());
            assert_eq!(plan.end, used + is.cached());
            for block in 0..blocks as u32 {
                assert_eq!(is.refs(block) > 0, (block as usize) < used, "block {block}");
                let held = is.hash(block).is_some() || is.refs(block) > 0;
                assert_eq!(held, (block as usize) < plan.end, "block {block}");
            }
            // Sharing is as before; what a hash names has moved with it.
            let sharing = |kv: &PagedKv| -> Vec<Vec<usize>> {
                let ids = self.sequences.keys();
                let tables: Vec<&[u32]> = ids.map(|&id| kv.tables(id).unwrap()[pool].blocks()).collect();
                let all: Vec<u32> = tables.concat();
                let first = |block: &u32| all.iter().position(|other| other == block).unwrap();
                tables.iter().map(|table| table.iter().map(first).collect()).collect()
            };
            assert_eq!(sharing(&before), sharing(&self.kv));
            let hashes =
                |allocator: &BlockAllocator| (0..blocks as u32).filter_map(|b| allocator.hash(b)).collect::<Vec<_>>();
            let (old, new) = (hashes(was), hashes(is));
            assert!(new.iter().all(|hash| old.contains(hash)) && (new.len() as u64) + lost == old.len() as u64);
            for block in 0..blocks as u32 {
                if let Some(hash) = is.hash(block) {
                    assert_eq!(is.find(hash), Some(block));
                }
            }
            // A smaller pool, of which this model goes on with a copy only.
            let mut small = self.kv.clone();
            if used > 0 {
                small.shrink(pool, used).unwrap();
                let small = small.allocators().nth(pool).unwrap();
                assert_eq!((small.free(), small.cached()), (0, 0));
            }
            if used > 1 {
                let refused = PagedKvError::BlocksInUse {
                    blocks: used - 1,
                    needed: used,
                };
                assert_eq!(self.kv.clone().shrink(pool, used - 1), Err(refused));
            }
        }
        let mut again = self.kv.clone();
        assert!(
            again.defragment().iter().all(|plan| plan.moves.is_empty()),
            "once is enough"
        );
    }

    fn remove(&mut self, id: SequenceId) {
        self.kv.remove(id).unwrap();
        self.sequences.remove(&id);
    }

    fn check(&self) {
        let allocators: Vec<&BlockAllocator> = self.kv.allocators().collect();
        for (pool, config) in self.pools.iter().enumerate() {
            for (&id, tokens) in &self.sequences {
                let table = &self.kv.tables(id).unwrap()[pool];
                // The longest step of these tests.
                let ahead = 3 * self.block_size + 1;
                let keep = match config.keep {
                    Keep::All => Keep::All,
                    Keep::Window { keys, .. } => Keep::Window { keys, ahead },
                    Keep::Chunk { keys, .. } => Keep::Chunk { keys, ahead },
                };
                let most = keep.most_blocks(usize::MAX, self.block_size);
                assert!(table.blocks().len() <= most, "{table:?}");
                assert_eq!((table.len(), self.kv.tokens(id).unwrap()), (tokens.len(), &tokens[..]));
                let released = table.released();
                assert_eq!(released + table.blocks().len(), tokens.len().div_ceil(self.block_size));
                // What the next token sees is there.
                assert!(released * self.block_size <= first_seen(config.keep, tokens.len()));
                for i in 0..tokens.len() {
                    let Some(block) = (i / self.block_size).checked_sub(released) else {
                        assert_eq!(table.slot(i), None);
                        continue;
                    };
                    let slot = table.blocks()[block] as usize * self.block_size + i % self.block_size;
                    assert_eq!(table.slot(i), Some(slot as u32));
                    assert_eq!(
                        self.caches[pool][slot],
                        content(&tokens[..=i]),
                        "sequence {}, token {i}",
                        id.number()
                    );
                }
            }
            let references = self.references(pool);
            for block in 0..config.blocks as u32 {
                let expected = references.get(&block).copied().unwrap_or(0);
                assert_eq!(allocators[pool].refs(block), expected, "block {block}");
            }
            assert_eq!(self.kv.free_blocks().0[pool], config.blocks - references.len());
        }
        if let Some(slots) = &self.states {
            for (&id, tokens) in &self.sequences {
                let state = self.kv.state(id).unwrap();
                let last = state.to.or(state.from);
                let found = last.map_or(content(&[]), |slot| slots[slot as usize]);
                assert_eq!(found, content(tokens), "sequence {}", id.number());
            }
            let references = self.state_references();
            for slot in 0..slots.len() as u32 {
                let expected = references.get(&slot).copied().unwrap_or(0);
                assert_eq!(allocators[self.pools.len()].refs(slot), expected, "slot {slot}");
            }
        }
        let stats = self.kv.counts();
        assert_eq!(stats.free, self.kv.free_blocks().0.iter().sum::<usize>());
        assert_eq!(stats.sequences, self.sequences.len());
        assert!(stats.cached <= stats.free);
    }
}

/// Random calls on a cache; figures of what they reached.
fn check_random(model: &mut Model, rng: &mut Rng) {
    let size = model.block_size;
    for _ in 0..3000 {
        // Two kinds of token only, so that prefixes meet often.
        let tokens: Vec<u32> = (0..rng.below(3 * size + 2)).map(|_| rng.below(2) as u32).collect();
        match (rng.below(16), model.pick(rng)) {
            (0..=2, _) | (3..=9 | 11.., None) => {
                let id = model.add(&tokens);
                let rest = tokens[model.sequences[&id].len()..].to_vec();
                if !model.append(id, &rest, false) {
                    model.remove(id);
                }
            }
            (3..=5, Some(id)) => {
                model.append(id, &tokens, false);
            }
            // A pass that fails is taken back.
            (6, Some(id)) => {
                // What the passes before wrote is known.
                model.kv.mark_written(id).unwrap();
                let len = model.sequences[&id].len();
                if model.append(id, &tokens, true) {
                    assert_eq!(model.truncate(id, len), len);
                }
            }
            (7, Some(id)) => {
                let tokens = model.sequences[&id].clone();
                let fork = model.kv.fork(id).unwrap();
                assert_eq!(model.sequences.insert(fork, tokens), None);
            }
            (8, Some(id)) => {
                let len = rng.below(model.sequences[&id].len() + 1);
                model.truncate(id, len);
            }
            (9, Some(id)) => model.kv.mark_written(id).unwrap(),
            (10, _) => model.defragment(),
            (_, Some(id)) => model.remove(id),
        }
        model.check();
    }
    for id in model.sequences.keys().copied().collect::<Vec<_>>() {
        model.remove(id);
        model.check();
    }
    let blocks = model.pools.iter().map(|pool| pool.blocks);
    let blocks: Vec<usize> = blocks.chain(model.states.as_ref().map(Vec::len)).collect();
    assert_eq!(model.kv.free_blocks().0, blocks);
}

#[test]
fn random_calls_read_back_what_was_written() {
    let mut rng = rng(20_251);
    let (mut refused, mut moved, mut cached, mut copies, mut evictions) = (0, 0, 0, 0, 0);
    for (blocks, block_size) in [(1, 1), (7, 1), (5, 2), (16, 3), (40, 4), (9, 16)] {
        let keep = Keep::All;
        let mut model = Model::new(block_size, &[PoolConfig { blocks, keep }], None);
        check_random(&mut model, &mut rng);
        let stats = model.kv.counts();
        refused += model.refused;
        moved += model.moved;
        assert_eq!(model.shorter, 0);
        cached += model.cached;
        copies += stats.copies;
        evictions += stats.evictions;
    }
    // The calls did reach what they are meant to reach.
    assert!(
        refused > 500 && moved > 500 && cached > 500 && copies > 100 && evictions > 500,
        "{refused} {moved} {cached} {copies} {evictions}"
    );
}

#[test]
fn random_calls_on_windows_and_states_read_back_what_was_written() {
    check_windows(20_252, |keys, ahead| Keep::Window { keys, ahead });
}

#[test]
fn random_calls_on_chunks_and_states_read_back_what_was_written() {
    check_windows(20_253, |keys, ahead| Keep::Chunk { keys, ahead });
}

/// Pools of windows or chunks of so many keys, for steps of so many tokens.
fn check_windows(seed: u64, of_keys: impl Fn(usize, usize) -> Keep) {
    let mut rng = rng(seed);
    let (mut refused, mut moved, mut cached, mut copies, mut shorter) = (0, 0, 0, 0, 0);
    for (blocks, of_window, block_size, keys) in [
        (7, 5, 1, 1),
        (12, 9, 2, 3),
        (16, 12, 3, 4),
        (40, 20, 4, 9),
        (40, 30, 1, 6),
    ] {
        let window = of_keys(keys, 2 * block_size);
        let all = PoolConfig {
            blocks,
            keep: Keep::All,
        };
        let some = PoolConfig {
            blocks: of_window,
            keep: window,
        };
        for (pools, states) in [
            (&[all, some][..], None),
            (&[some], None),
            (&[all, some], Some(9)),
            (&[all], Some(30)),
            (&[], Some(9)),
        ] {
            let mut model = Model::new(block_size, pools, states);
            check_random(&mut model, &mut rng);
            let stats = model.kv.counts();
            refused += model.refused;
            moved += model.moved;
            shorter += model.shorter;
            cached += model.cached;
            copies += stats.copies;
        }
    }
    assert!(
        refused > 500 && moved > 500 && cached > 500 && copies > 100 && shorter > 100,
        "{refused} {moved} {cached} {copies} {shorter}"
    );
}
