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
}

impl Model {
    fn new(config: PagedKvConfig) -> Self {
        Self {
            kv: PagedKv::new(config).unwrap(),
            config,
            cache: vec![POISON; config.blocks * config.block_size],
            sequences: BTreeMap::new(),
            refused: 0,
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
    let (mut refused, mut cached, mut copies, mut evictions) = (0, 0, 0, 0);
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
            match (rng.below(15), model.pick(&mut rng)) {
                (0..=2, _) | (_, None) => {
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
        cached += stats.cached_tokens;
        copies += stats.copies;
        evictions += stats.evictions;
    }
    // The calls did reach what they are meant to reach.
    assert!(
        refused > 500 && cached > 500 && copies > 100 && evictions > 500,
        "{refused} {cached} {copies} {evictions}"
    );
}
