//! The paged KV cache against a model: random calls, with a cache array whose content is checked after each.
//!
//! What a slot holds depends on all tokens up to it, as K and V do: a block shared by mistake cannot go unseen.

use std::collections::{BTreeMap, HashMap};

use rocmforge_attention::paged::{PagedKv, PagedKvConfig, PagedKvError, SequenceId};
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
    config: PagedKvConfig,
    cache: Vec<u64>,
    /// Each sequence's tokens.
    sequences: BTreeMap<SequenceId, Vec<u32>>,
    refused: usize,
    moved: usize,
}

impl Model {
    fn new(config: PagedKvConfig) -> Self {
        Self {
            kv: PagedKv::new(config).unwrap(),
            config,
            cache: vec![POISON; config.blocks * config.block_size],
            sequences: BTreeMap::new(),
            refused: 0,
            moved: 0,
        }
    }

    fn pick(&self, rng: &mut Rng) -> Option<SequenceId> {
        let ids: Vec<_> = self.sequences.keys().copied().collect();
        (!ids.is_empty()).then(|| ids[rng.below(ids.len())])
    }

    fn references(&self) -> HashMap<u32, usize> {
        let mut counts = HashMap::new();
        for &id in self.sequences.keys() {
            for &block in self.kv.table(id).unwrap() {
                *counts.entry(block).or_default() += 1;
            }
        }
        counts
    }

    fn add(&mut self, prompt: &[u32]) -> SequenceId {
        let added = self.kv.add_sequence(prompt).unwrap();
        assert!(
            added.cached_tokens < prompt.len().max(1) && added.cached_tokens.is_multiple_of(self.config.block_size)
        );
        let before = self.sequences.insert(added.id, prompt[..added.cached_tokens].to_vec());
        assert_eq!(before, None, "an id is used twice");
        added.id
    }

    /// Appends, and runs the pass that fills the slots, or one that fails half way. False if it was refused.
    fn append(&mut self, id: SequenceId, tokens: &[u32], fails: bool) -> bool {
        let (size, references) = (self.config.block_size, self.references());
        let held = self.sequences[&id].clone();
        // The definition: blocks for the new length, less those there are, and one more to copy a shared block.
        let table = self.kv.table(id).unwrap().to_vec();
        let copied = table
            .last()
            .copied()
            .filter(|last| !held.len().is_multiple_of(size) && references[last] > 1 && !tokens.is_empty());
        let needed = (held.len() + tokens.len()).div_ceil(size) - table.len() + usize::from(copied.is_some());
        let free = self.config.blocks - references.len();
        assert_eq!(self.kv.blocks_to_append(id, tokens.len()), Ok(needed));

        let (stats, before) = (self.kv.stats(), self.kv.clone());
        let appended = match self.kv.append(id, tokens) {
            Ok(appended) => appended,
            Err(error) => {
                assert_eq!(error, PagedKvError::OutOfBlocks { needed, free });
                assert!(needed > free);
                assert_eq!(self.kv.stats(), stats);
                for &id in self.sequences.keys() {
                    assert_eq!(self.kv.block_table(id), before.block_table(id));
                }
                self.refused += 1;
                return false;
            }
        };
        assert!(needed <= free);
        assert_eq!(appended.copies.first().map(|copy| copy.from), copied);
        for copy in appended.copies {
            let (from, to) = (copy.from as usize * size, copy.to as usize * size);
            self.cache.copy_within(from..from + size, to);
        }
        assert_eq!(appended.slots.len(), tokens.len());
        let mut all = held;
        for (&token, &slot) in tokens.iter().zip(&appended.slots) {
            all.push(token);
            self.cache[slot as usize] = if fails { POISON } else { content(&all) };
        }
        self.sequences.insert(id, all);
        true
    }

    fn truncate(&mut self, id: SequenceId, tokens: usize) {
        self.kv.truncate(id, tokens).unwrap();
        self.sequences.get_mut(&id).unwrap().truncate(tokens);
    }

    /// Makes the moves one by one, and in batches: both give the same. Sometimes the pool becomes smaller and is made anew at its size.
    fn defragment(&mut self) {
        let size = self.config.block_size;
        let (before, stats) = (self.kv.clone(), self.kv.stats());
        let plan = self.kv.defragment();
        let old = self.cache.clone();
        for copy in &plan.moves {
            let (from, to) = (copy.from as usize * size, copy.to as usize * size);
            self.cache.copy_within(from..from + size, to);
            self.moved += 1;
        }
        let mut batched = old;
        let mut made = 0;
        for batch in plan.batches() {
            let source = batched.clone();
            for copy in batch {
                assert!(
                    batch
                        .iter()
                        .all(|other| other == copy || ![other.from, other.to].contains(&copy.to))
                );
                let (from, to) = (copy.from as usize * size, copy.to as usize * size);
                batched[to..to + size].copy_from_slice(&source[from..from + size]);
            }
            made += batch.len();
        }
        assert_eq!((batched, made), (self.cache.clone(), plan.moves.len()));

        // Used blocks first, cached ones next, the others last.
        let (now, used) = (self.kv.stats(), self.config.blocks - self.kv.free_blocks());
        let lost = now.evictions - stats.evictions;
        assert_eq!(now.cached as u64 + lost, stats.cached as u64, "at most one is given up");
        assert!(lost <= 1 && (lost == 0 || stats.cached == stats.free));
        assert_eq!(now.free, stats.free);
        assert_eq!(plan.end, used + now.cached);
        let allocator = self.kv.allocator();
        for block in 0..self.config.blocks as u32 {
            assert_eq!(allocator.refs(block) > 0, (block as usize) < used, "block {block}");
            let held = allocator.hash(block).is_some() || allocator.refs(block) > 0;
            assert_eq!(held, (block as usize) < plan.end, "block {block}");
        }
        // Sharing is as before; what a hash names has moved with it.
        let sharing = |kv: &PagedKv| -> Vec<Vec<usize>> {
            let tables: Vec<&[u32]> = self.sequences.keys().map(|&id| kv.table(id).unwrap()).collect();
            let all: Vec<u32> = tables.concat();
            let first = |block: &u32| all.iter().position(|other| other == block).unwrap();
            tables.iter().map(|table| table.iter().map(first).collect()).collect()
        };
        assert_eq!(sharing(&before), sharing(&self.kv));
        let hashes = |kv: &PagedKv| {
            (0..self.config.blocks as u32)
                .filter_map(|b| kv.allocator().hash(b))
                .collect::<Vec<_>>()
        };
        let (was, is) = (hashes(&before), hashes(&self.kv));
        assert!(is.iter().all(|hash| was.contains(hash)) && (is.len() as u64) + lost == was.len() as u64);
        for block in 0..self.config.blocks as u32 {
            if let Some(hash) = allocator.hash(block) {
                assert_eq!(allocator.find(hash), Some(block));
            }
        }
        assert!(self.kv.clone().defragment().moves.is_empty(), "once is enough");
        // A smaller pool, of which this model goes on with a copy only.
        let mut small = self.kv.clone();
        if used > 0 {
            small.shrink(used).unwrap();
            assert_eq!((small.free_blocks(), small.stats().cached), (0, 0));
        }
        if used > 1 {
            let refused = PagedKvError::BlocksInUse {
                blocks: used - 1,
                needed: used,
            };
            assert_eq!(self.kv.clone().shrink(used - 1), Err(refused));
        }
    }

    fn remove(&mut self, id: SequenceId) {
        self.kv.remove(id).unwrap();
        self.sequences.remove(&id);
    }

    fn check(&self) {
        for (&id, tokens) in &self.sequences {
            let table = self.kv.block_table(id).unwrap();
            assert_eq!((table.len(), self.kv.tokens(id).unwrap()), (tokens.len(), &tokens[..]));
            assert_eq!(table.blocks().len(), tokens.len().div_ceil(self.config.block_size));
            for i in 0..tokens.len() {
                let slot = table.blocks()[i / self.config.block_size] as usize * self.config.block_size
                    + i % self.config.block_size;
                assert_eq!(table.slot(i), Some(slot as u32));
                assert_eq!(
                    self.cache[slot],
                    content(&tokens[..=i]),
                    "sequence {}, token {i}",
                    id.number()
                );
            }
        }
        let references = self.references();
        for block in 0..self.config.blocks as u32 {
            assert_eq!(
                self.kv.allocator().refs(block),
                references.get(&block).copied().unwrap_or(0),
                "block {block}"
            );
        }
        assert_eq!(self.kv.free_blocks(), self.config.blocks - references.len());
        let stats = self.kv.stats();
        assert_eq!(
            (stats.free, stats.sequences),
            (self.kv.free_blocks(), self.sequences.len())
        );
        assert!(stats.cached <= stats.free);
    }
}

#[test]
fn random_calls_read_back_what_was_written() {
    let mut rng = rng(20_251);
    let (mut refused, mut moved, mut cached, mut copies, mut evictions) = (0, 0, 0, 0, 0);
    for config in [(1, 1), (7, 1), (5, 2), (16, 3), (40, 4), (9, 16)] {
        let config = PagedKvConfig {
            blocks: config.0,
            block_size: config.1,
        };
        let mut model = Model::new(config);
        for _ in 0..3000 {
            // Two kinds of token only, so that prefixes meet often.
            let tokens: Vec<u32> = (0..rng.below(3 * config.block_size + 2))
                .map(|_| rng.below(2) as u32)
                .collect();
            match (rng.below(16), model.pick(&mut rng)) {
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
                    let len = model.sequences[&id].len();
                    if model.append(id, &tokens, true) {
                        model.truncate(id, len);
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
        assert_eq!(model.kv.free_blocks(), config.blocks);
        let stats = model.kv.stats();
        refused += model.refused;
        moved += model.moved;
        cached += stats.cached_tokens;
        copies += stats.copies;
        evictions += stats.evictions;
    }
    // The calls did reach what they are meant to reach.
    assert!(
        refused > 500 && moved > 500 && cached > 500 && copies > 100 && evictions > 500,
        "{refused} {moved} {cached} {copies} {evictions}"
    );
}
