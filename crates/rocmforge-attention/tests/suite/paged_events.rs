//! Events of the prefix cache: a reader of them alone knows what the cache has.

use std::collections::{HashMap, HashSet};

use rocmforge_attention::paged::{BlockHash, CacheEvent, Keep, PagedKv, PagedKvConfig, PoolConfig, PrefixKey};
use rocmforge_testkit::data::rng;

const SIZE: usize = 2;

fn kv(pools: &[PoolConfig]) -> PagedKv {
    let mut kv = PagedKv::<u32>::new(PagedKvConfig {
        block_size: SIZE,
        pools: pools.to_vec(),
        states: None,
    })
    .unwrap();
    kv.record_events(1000);
    kv
}

fn all(blocks: usize) -> PoolConfig {
    let keep = Keep::All;
    PoolConfig { blocks, keep }
}

/// Who reads the events.
#[derive(Default)]
struct Reader {
    blocks: HashSet<BlockHash>,
    stored: usize,
    removed: usize,
    cleared: usize,
}

impl Reader {
    fn read(&mut self, events: Vec<CacheEvent>) {
        for event in events {
            match event {
                CacheEvent::Stored { parent, hashes, tokens } => {
                    assert_eq!(tokens.len(), hashes.len() * SIZE);
                    let mut before = parent;
                    assert!(before.is_none_or(|parent| self.blocks.contains(&parent)), "an orphan");
                    for (&hash, tokens) in hashes.iter().zip(tokens.chunks(SIZE)) {
                        assert_eq!(hash, BlockHash::new(before, tokens));
                        assert!(self.blocks.insert(hash), "stored twice");
                        before = Some(hash);
                    }
                    self.stored += hashes.len();
                }
                CacheEvent::Removed(hashes) => {
                    self.removed += hashes.len();
                    for hash in hashes {
                        assert!(self.blocks.remove(&hash), "removed, and was not stored");
                    }
                }
                CacheEvent::Cleared => {
                    self.cleared += 1;
                    self.blocks.clear();
                }
            }
        }
    }
}

fn compute(kv: &mut PagedKv, key: &PrefixKey, tokens: &[u32]) {
    let added = kv.add_sequence(key, tokens).unwrap();
    kv.append(added.id, &tokens[added.cached_tokens..]).unwrap();
    kv.mark_written(added.id).unwrap();
    kv.remove(added.id).unwrap();
}

#[test]
fn blocks_are_stored_in_runs_and_removed_when_they_are_given_up() {
    let mut kv = kv(&[all(3)]);
    let key = PrefixKey::default();
    assert_eq!(kv.take_events(), []);
    compute(&mut kv, &key, &[1, 2, 3, 4, 5]);
    let first = BlockHash::new(None, &[1_u32, 2]);
    let second = BlockHash::new(Some(first), &[3_u32, 4]);
    let stored = CacheEvent::Stored {
        parent: None,
        hashes: vec![first, second],
        tokens: vec![1, 2, 3, 4],
    };
    assert_eq!(kv.take_events(), [stored]);
    // The same again says nothing; what goes on from it names the block before.
    compute(&mut kv, &key, &[1, 2, 3, 4, 5]);
    assert_eq!(kv.take_events(), []);
    compute(&mut kv, &key, &[1, 2, 3, 4, 5, 6]);
    let third = BlockHash::new(Some(second), &[5_u32, 6]);
    let stored = CacheEvent::Stored {
        parent: Some(second),
        hashes: vec![third],
        tokens: vec![5, 6],
    };
    assert_eq!(kv.take_events(), [stored]);
    // The last block of the oldest goes first.
    compute(&mut kv, &key, &[7, 8]);
    let stored = CacheEvent::Stored {
        parent: None,
        hashes: vec![BlockHash::new(None, &[7_u32, 8])],
        tokens: vec![7, 8],
    };
    assert_eq!(kv.take_events(), [CacheEvent::Removed(vec![third]), stored]);
    assert_eq!(first.low_64(), BlockHash::new(None, &[1_u32, 2]).low_64());
    assert_ne!(first.low_64(), second.low_64());
}

#[test]
fn blocks_of_other_keys_are_not_named() {
    let mut kv = kv(&[all(2)]);
    for (adapter, salt) in [("", "tenant"), ("adapter", "")] {
        let key = PrefixKey {
            adapter: adapter.to_owned(),
            salt: salt.to_owned(),
        };
        compute(&mut kv, &key, &[1, 2, 3, 4]);
    }
    assert!(kv.counts().evictions > 0);
    assert_eq!(kv.take_events(), []);
}

#[test]
fn lost_events_are_said_and_what_is_used_is_stored_anew() {
    let mut kv = kv(&[all(8)]);
    let key = PrefixKey::default();
    let mut reader = Reader::default();
    compute(&mut kv, &key, &[1, 2, 3, 4]);
    compute(&mut kv, &key, &[5, 6]);
    drop(kv.take_events());
    kv.lose_events();
    compute(&mut kv, &key, &[1, 2, 3, 4, 5]);
    reader.read(kv.take_events());
    assert_eq!((reader.cleared, reader.stored, reader.blocks.len()), (1, 2, 2));
    // More than may wait.
    kv.record_events(3);
    compute(&mut kv, &key, &[11, 12, 13, 14]);
    compute(&mut kv, &key, &[21, 22, 23, 24]);
    assert_eq!(kv.take_events(), [CacheEvent::Cleared]);
}

#[test]
fn a_reader_of_random_events_knows_the_cache() {
    let window = Keep::Window { keys: 3, ahead: 4 };
    let windows = PoolConfig {
        blocks: 9,
        keep: window,
    };
    for (seed, pools) in [(1, vec![all(9)]), (2, vec![windows, all(9)]), (3, vec![windows])] {
        let mut rng = rng(seed);
        let mut kv = kv(&pools);
        let (mut reader, mut known, mut unknown) = (Reader::default(), 0, 0);
        let mut sequences: HashMap<_, Vec<u32>> = HashMap::new();
        let about = pools.iter().position(|pool| pool.keep == Keep::All).unwrap_or(0);
        for round in 0..4000 {
            let picked = sequences.keys().copied().min_by_key(|id| format!("{id:?}{round}"));
            match (rng.below(8), picked) {
                (0 | 1, _) | (_, None) => {
                    let prompt: Vec<u32> = (0..rng.below(9)).map(|_| rng.below(4) as u32).collect();
                    let added = kv.add_sequence(&PrefixKey::default(), &prompt).unwrap();
                    sequences.insert(added.id, prompt[..added.cached_tokens].to_vec());
                }
                (2 | 6, Some(id)) => {
                    sequences.remove(&id);
                    kv.remove(id).unwrap();
                }
                (3, Some(id)) => {
                    let tokens = sequences.get_mut(&id).unwrap();
                    let end = rng.below(tokens.len() + 1);
                    let left = kv.truncate(id, end).unwrap();
                    tokens.truncate(left);
                }
                (4, Some(id)) => {
                    kv.mark_written(id).unwrap();
                }
                (5, Some(_)) => drop(kv.defragment()),
                (_, Some(id)) => {
                    let more: Vec<u32> = (0..1 + rng.below(3)).map(|_| rng.below(4) as u32).collect();
                    if kv.append(id, &more).is_ok() {
                        sequences.get_mut(&id).unwrap().extend(more);
                    }
                }
            }
            if rng.below(3) == 0 {
                reader.read(kv.take_events());
                let allocator = kv.allocators().nth(about).unwrap();
                for &hash in &reader.blocks {
                    assert!(allocator.find(hash).is_some(), "seed {seed}, round {round}");
                }
                // What a prompt finds is known, but where a block was given up and computed again below a block that stayed.
                let prompt: Vec<u32> = (0..9).map(|_| rng.below(4) as u32).collect();
                let found = kv.clone().add_sequence(&PrefixKey::default(), &prompt).unwrap();
                let mut before = None;
                for block in prompt[..found.cached_tokens].chunks(SIZE) {
                    let hash = BlockHash::new(before, block);
                    match reader.blocks.contains(&hash) {
                        true => known += 1,
                        false => unknown += 1,
                    }
                    before = Some(hash);
                }
            }
        }
        let counts = (reader.stored, reader.removed, known, unknown);
        assert!(
            counts.0 > 50 && counts.1 > 50 && known > 50 && unknown * 50 < known,
            "seed {seed}: {counts:?}"
        );
    }
}
