//! The paged KV cache, call by call.

use rocmforge_attention::paged::{
    Appended, BlockAllocator, BlockCopy, BlockHash, BlockTable, Keep, PagedKv, PagedKvConfig, PagedKvError, PoolConfig,
    PrefixKey, SequenceId, StateSlots, blocks_for,
};

fn config(blocks: usize, block_size: usize) -> PagedKvConfig {
    let keep = Keep::All;
    let pools = vec![PoolConfig { blocks, keep }];
    PagedKvConfig {
        block_size,
        pools,
        states: None,
    }
}

fn kv(blocks: usize, block_size: usize) -> PagedKv {
    PagedKv::<u32>::new(config(blocks, block_size)).unwrap()
}

/// Calls on a cache with one pool, whose results are that pool's.
trait OnePool {
    fn add(&mut self, id: SequenceId, tokens: &[u32]) -> Result<Appended, PagedKvError>;
    fn needed(&self, id: SequenceId, tokens: usize) -> Result<usize, PagedKvError>;
    fn block_table(&self, id: SequenceId) -> Result<&BlockTable, PagedKvError>;
    fn table(&self, id: SequenceId) -> Result<&[u32], PagedKvError>;
    fn allocator(&self) -> &BlockAllocator;
    fn free(&self) -> usize;
}

impl OnePool for PagedKv {
    fn add(&mut self, id: SequenceId, tokens: &[u32]) -> Result<Appended, PagedKvError> {
        self.append(id, tokens).map(|mut pools| pools.remove(0))
    }

    fn needed(&self, id: SequenceId, tokens: usize) -> Result<usize, PagedKvError> {
        self.blocks_to_append(id, tokens).map(|counts| counts.0[0])
    }

    fn block_table(&self, id: SequenceId) -> Result<&BlockTable, PagedKvError> {
        self.tables(id).map(|tables| &tables[0])
    }

    fn table(&self, id: SequenceId) -> Result<&[u32], PagedKvError> {
        self.block_table(id).map(BlockTable::blocks)
    }

    fn allocator(&self) -> &BlockAllocator {
        self.allocators().next().unwrap()
    }

    fn free(&self) -> usize {
        self.free_blocks().0[0]
    }
}

#[test]
fn kv_cache_append_and_retrieve_consistency() {
    let mut kv = kv(8, 3);
    let mut cache = [None; 24];
    let a = kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    let b = kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    let mut expected = [Vec::new(), Vec::new()];
    for round in 0..11_u32 {
        for (which, id) in [a, b].into_iter().enumerate() {
            let tokens: Vec<u32> = (0..(round + which as u32) % 3)
                .map(|i| 100 * round + 10 * which as u32 + i)
                .collect();
            let appended = kv.add(id, &tokens).unwrap();
            assert_eq!((appended.slots.len(), appended.copies.len()), (tokens.len(), 0));
            for (&slot, &token) in appended.slots.iter().zip(&tokens) {
                assert_eq!(
                    cache[slot as usize].replace(token),
                    None,
                    "slot {slot} is given out twice"
                );
            }
            expected[which].extend(tokens);
        }
    }
    assert_eq!((expected[0].len(), expected[1].len()), (10, 12));
    for (id, tokens) in [a, b].into_iter().zip(&expected) {
        let table = kv.block_table(id).unwrap();
        let read: Vec<u32> = table
            .slots(0..usize::MAX)
            .map(|slot| cache[slot as usize].unwrap())
            .collect();
        assert_eq!(&read, tokens);
        assert_eq!(kv.tokens(id).unwrap(), tokens);
        assert_eq!((kv.len(id).unwrap(), kv.table(id).unwrap().len()), (tokens.len(), 4));
        assert_eq!(table.slot(tokens.len()), None);
    }
    assert_eq!(kv.free(), 0);
}

#[test]
fn kv_cache_capacity_boundary() {
    let mut kv = kv(3, 4);
    let a = kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    assert_eq!(kv.add(a, &[7; 11]).unwrap().slots.len(), 11);
    assert_eq!(kv.free(), 0);
    // The last slot can be filled, and nothing more.
    assert_eq!(
        kv.add(a, &[7, 7]),
        Err(PagedKvError::OutOfBlocks { needed: 1, free: 0 })
    );
    assert_eq!(kv.len(a).unwrap(), 11);
    assert_eq!(kv.add(a, &[7]).unwrap().slots, [11]);
    assert_eq!(kv.add(a, &[7]), Err(PagedKvError::OutOfBlocks { needed: 1, free: 0 }));
    assert_eq!(
        kv.add(a, &[7; 9]),
        Err(PagedKvError::OutOfBlocks { needed: 3, free: 0 })
    );
    assert_eq!((kv.len(a).unwrap(), kv.table(a).unwrap()), (12, &[0, 1, 2][..]));
    // Nothing at all always fits.
    assert!(kv.add(a, &[]).unwrap().slots.is_empty());

    kv.truncate(a, 4).unwrap();
    assert_eq!(
        (kv.free(), kv.needed(a, 8).unwrap(), kv.needed(a, 9).unwrap()),
        (2, 2, 3)
    );
    assert_eq!(kv.add(a, &[8; 8]).unwrap().slots.len(), 8);
}

#[test]
fn a_fork_shares_until_it_writes() {
    let mut kv = kv(6, 4);
    let a = kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    kv.add(a, &[1, 2, 3, 4, 5]).unwrap();
    let b = kv.fork(a).unwrap();
    assert_eq!(kv.table(b).unwrap(), [0, 1]);
    assert_eq!((kv.free(), kv.allocator().refs(0), kv.allocator().refs(1)), (4, 2, 2));

    // One block for the copy and one for the tokens beyond it.
    assert_eq!(kv.needed(b, 4).unwrap(), 2);
    let appended = kv.add(b, &[6, 7, 8, 9]).unwrap();
    assert_eq!(appended.copies, [BlockCopy { from: 1, to: 2 }]);
    assert_eq!(appended.slots, [9, 10, 11, 12]);
    // The other has its block for itself again.
    assert_eq!((kv.allocator().refs(0), kv.allocator().refs(1)), (2, 1));
    let appended = kv.add(a, &[60]).unwrap();
    assert_eq!((appended.copies, appended.slots), (vec![], vec![5]));

    // A fork at a block's end has nothing to copy.
    kv.add(a, &[61, 62]).unwrap();
    let c = kv.fork(a).unwrap();
    let appended = kv.add(c, &[63]).unwrap();
    assert_eq!((appended.copies, kv.counts().copies), (vec![], 1));
    for id in [a, b, c] {
        kv.remove(id).unwrap();
    }
    assert_eq!(kv.free(), 6);
}

#[test]
fn a_copy_that_could_not_be_made_is_taken_back() {
    let mut kv = kv(6, 4);
    let a = kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    kv.add(a, &[1, 2, 3, 4, 5]).unwrap();
    let b = kv.fork(a).unwrap();
    let copy = kv.add(b, &[6, 7, 8, 9]).unwrap().copies[0];
    kv.undo_copy(b, 0, copy).unwrap();
    kv.truncate(b, 5).unwrap();
    assert_eq!(kv.table(b).unwrap(), [0, 1]);
    assert_eq!((kv.free(), kv.allocator().refs(0), kv.allocator().refs(1)), (4, 2, 2));
    assert_eq!(kv.counts().copies, 0);
    // It is the last append's, once.
    for (pool, copy) in [(0, copy), (1, copy)] {
        assert_eq!(kv.undo_copy(b, pool, copy), Err(PagedKvError::BlockNotInUse(copy.to)));
    }
    assert_eq!(kv.add(b, &[6]).unwrap().copies.len(), 1);
}

#[test]
fn a_copy_needs_a_block_of_its_own() {
    let mut kv = kv(1, 4);
    let a = kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    kv.add(a, &[1]).unwrap();
    let b = kv.fork(a).unwrap();
    assert_eq!(kv.add(b, &[2]), Err(PagedKvError::OutOfBlocks { needed: 1, free: 0 }));
    assert_eq!((kv.tokens(b).unwrap(), kv.allocator().refs(0)), (&[1][..], 2));
    kv.remove(a).unwrap();
    assert_eq!(kv.add(b, &[2]).unwrap().slots, [1]);
}

#[test]
fn a_prompt_is_found_up_to_its_last_full_block_but_never_whole() {
    let mut kv = kv(8, 2);
    let prompt = [1, 2, 3, 4, 5, 6];
    let a = kv.add_sequence(&PrefixKey::default(), &prompt).unwrap().id;
    kv.add(a, &prompt).unwrap();
    // Nothing is shared before it is written.
    assert_eq!(
        kv.add_sequence(&PrefixKey::default(), &prompt).unwrap().cached_tokens,
        0
    );
    kv.mark_written(a).unwrap();
    for (prompt, cached) in [
        (&prompt[..], 4), // its last token must be computed
        (&[1, 2, 3, 4, 5, 6, 7], 6),
        (&[1, 2, 3, 4, 5], 4),
        (&[1, 2, 3, 4], 2),
        (&[1, 2, 3, 9, 5, 6, 7], 2),
        (&[1], 0),
        (&[], 0),
        (&[3, 4, 5, 6, 7], 0), // the same tokens after another prefix
        (&[2, 1, 3], 0),
    ] {
        let added = kv.add_sequence(&PrefixKey::default(), prompt).unwrap();
        assert_eq!(added.cached_tokens, cached, "{prompt:?}");
        assert_eq!(kv.tokens(added.id).unwrap(), &prompt[..cached]);
        assert_eq!(kv.table(added.id).unwrap(), &kv.table(a).unwrap()[..cached / 2]);
        kv.remove(added.id).unwrap();
    }
    // All of them lived on the three blocks of the first one.
    assert_eq!(kv.free(), 5);
}

#[test]
fn cached_blocks_go_in_the_order_of_their_release_the_end_of_a_sequence_first() {
    let mut kv = kv(4, 1);
    let fill = |kv: &mut PagedKv, tokens: &[u32]| {
        let added = kv.add_sequence(&PrefixKey::default(), tokens).unwrap();
        kv.add(added.id, &tokens[added.cached_tokens..]).unwrap();
        kv.mark_written(added.id).unwrap();
        kv.remove(added.id).unwrap();
        added.cached_tokens
    };
    assert_eq!(fill(&mut kv, &[1, 2]), 0);
    assert_eq!(fill(&mut kv, &[3, 4]), 0);
    assert_eq!((kv.free(), kv.counts().cached, kv.counts().evictions), (4, 4, 0));
    // Evicts the block of 2: the oldest sequence's end.
    assert_eq!(fill(&mut kv, &[5]), 0);
    assert_eq!((kv.counts().cached, kv.counts().evictions), (4, 1));
    // 1 is still there, and is the most recently used now; 2 is computed again, in the block of 4.
    assert_eq!(fill(&mut kv, &[1, 2]), 1);
    assert_eq!(fill(&mut kv, &[3, 4]), 1);
    assert_eq!(kv.counts().evictions, 3);
}

#[test]
fn a_failed_pass_leaves_nothing_to_share() {
    let mut kv = kv(4, 2);
    let prompt = [1, 2, 3, 4, 5];
    let a = kv.add_sequence(&PrefixKey::default(), &prompt).unwrap().id;
    kv.add(a, &prompt).unwrap();
    kv.remove(a).unwrap(); // without `mark_written`
    assert_eq!(
        (
            kv.add_sequence(&PrefixKey::default(), &prompt).unwrap().cached_tokens,
            kv.counts().cached
        ),
        (0, 0)
    );
    assert_eq!(kv.free(), 4);
}

#[test]
fn a_truncated_block_is_not_found_by_what_it_held() {
    let mut kv = kv(4, 2);
    let a = kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    kv.add(a, &[1, 2, 3, 4]).unwrap();
    kv.mark_written(a).unwrap();
    kv.truncate(a, 3).unwrap();
    // Until it is overwritten, it still holds 3 and 4.
    let b = kv.add_sequence(&PrefixKey::default(), &[1, 2, 3, 4, 5]).unwrap();
    assert_eq!(b.cached_tokens, 4);
    // Now it belongs to both, so it is copied.
    assert_eq!(kv.add(a, &[40]).unwrap().copies, [BlockCopy { from: 1, to: 2 }]);
    kv.remove(b.id).unwrap();
    assert_eq!(
        kv.add_sequence(&PrefixKey::default(), &[1, 2, 3, 4, 5])
            .unwrap()
            .cached_tokens,
        4
    );

    // The copy belongs to one alone: written in place, and forgotten.
    kv.mark_written(a).unwrap();
    kv.truncate(a, 3).unwrap();
    assert_eq!(
        kv.add(a, &[41]).unwrap(),
        rocmforge_attention::paged::Appended {
            slots: vec![5],
            copies: vec![]
        }
    );
    assert_eq!(
        kv.add_sequence(&PrefixKey::default(), &[1, 2, 3, 40, 5])
            .unwrap()
            .cached_tokens,
        2
    );
}

#[test]
fn impossible_calls_are_refused_with_their_figures() {
    for (blocks, block_size, name) in [(0, 4, "blocks"), (4, 0, "block_size")] {
        assert_eq!(
            PagedKv::<u32>::new(config(blocks, block_size)).unwrap_err(),
            PagedKvError::Zero(name)
        );
    }
    for (blocks, block_size) in [(usize::MAX, 2), (1 << 31, 2), (1, 1 << 32), (1 << 32, 1)] {
        match PagedKv::<u32>::new(config(blocks, block_size)) {
            Err(PagedKvError::TooManySlots {
                blocks: b,
                block_size: s,
                limit,
            }) => {
                assert_eq!((b, s, limit), (blocks, block_size, u32::MAX as usize));
            }
            other => panic!("{other:?}"),
        }
    }
    // The largest pool there can be takes no memory before it is used; its last slot fits in 32 bits.
    let mut largest = kv(1, u32::MAX as usize);
    let id = largest.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    assert_eq!(largest.add(id, &[1, 2]).unwrap().slots, [0, 1]);
    assert_eq!(kv(u32::MAX as usize, 1).free(), u32::MAX as usize);

    let mut kv = kv(2, 2);
    let id = kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id;
    kv.add(id, &[1]).unwrap();
    assert_eq!(
        kv.truncate(id, 2),
        Err(PagedKvError::TruncateBeyondEnd { len: 1, tokens: 2 })
    );
    assert_eq!(
        kv.needed(id, usize::MAX),
        Err(PagedKvError::Overflow("the length of the sequence"))
    );
    kv.remove(id).unwrap();
    let unknown = Err(PagedKvError::UnknownSequence(id));
    assert_eq!(kv.add(id, &[1]).map(drop), unknown);
    assert_eq!(kv.fork(id).map(drop), unknown);
    assert_eq!(kv.truncate(id, 0).map(drop), unknown);
    assert_eq!(kv.mark_written(id), unknown);
    assert_eq!(kv.remove(id), unknown);
    assert_eq!(kv.len(id).map(drop), unknown);
    assert_eq!(kv.table(id).map(drop), unknown);
    // The number of a removed sequence is not used again.
    assert_ne!(kv.add_sequence(&PrefixKey::default(), &[]).unwrap().id, id);
}

#[test]
fn the_allocator_refuses_blocks_that_are_not_in_use() {
    let mut pool = BlockAllocator::new(2);
    let hash = BlockHash::new(None, &[1, 2]);
    assert_eq!(pool.share(0), Err(PagedKvError::BlockNotInUse(0)));
    assert_eq!(pool.release(9), Err(PagedKvError::BlockNotInUse(9)));
    assert_eq!(pool.publish(0, hash), Err(PagedKvError::BlockNotInUse(0)));
    assert_eq!(
        (pool.allocate(), pool.allocate(), pool.allocate()),
        (Some(0), Some(1), None)
    );
    pool.release(0).unwrap();
    assert_eq!(pool.release(0), Err(PagedKvError::BlockNotInUse(0)));
    assert_eq!(pool.share(0), Err(PagedKvError::BlockNotInUse(0)));

    pool.publish(1, hash).unwrap();
    pool.release(1).unwrap();
    assert_eq!(
        (pool.free(), pool.cached(), pool.find(hash), pool.hash(1)),
        (2, 1, Some(1), Some(hash))
    );
    pool.share(1).unwrap();
    assert_eq!((pool.free(), pool.cached(), pool.refs(1)), (1, 0, 1));
    pool.release(1).unwrap();
    // The blank block is taken before the cached one.
    assert_eq!((pool.allocate(), pool.find(hash)), (Some(0), Some(1)));
    assert_eq!((pool.allocate(), pool.find(hash), pool.evictions()), (Some(1), None, 1));
}

#[test]
fn a_hash_stands_for_the_whole_prefix() {
    let first = BlockHash::new(None, &[1, 2]);
    assert_eq!(first, BlockHash::new(None, &[1, 2]));
    for other in [
        BlockHash::new(None, &[2, 1]),
        BlockHash::new(None, &[1, 2, 0]),
        BlockHash::new(Some(first), &[1, 2]),
        BlockHash::new(Some(BlockHash::new(None, &[3])), &[1, 2]),
    ] {
        assert_ne!(first, other);
    }
}

#[test]
fn blocks_for_rounds_up() {
    let cases = [
        (0, 16, 0),
        (1, 16, 1),
        (16, 16, 1),
        (17, 16, 2),
        (usize::MAX, 1, usize::MAX),
        (3, 0, 3),
    ];
    for (tokens, block_size, blocks) in cases {
        assert_eq!(blocks_for(tokens, block_size), blocks);
    }
}

/// Blocks of 4 tokens; a window of 6, and steps of up to 5 tokens.
const WINDOW: Keep = Keep::Window { keys: 6, ahead: 5 };

fn windowed() -> PagedKv {
    let pools = [(Keep::All, 16), (WINDOW, 8)];
    let pools = pools.map(|(keep, blocks)| PoolConfig { blocks, keep }).to_vec();
    PagedKv::<u32>::new(PagedKvConfig {
        block_size: 4,
        pools,
        states: None,
    })
    .unwrap()
}

/// Appends and writes in steps of up to 5 tokens.
fn run(kv: &mut PagedKv, id: SequenceId, tokens: &[u32]) {
    for step in tokens.chunks(5) {
        kv.append(id, step).unwrap();
        kv.mark_written(id).unwrap();
    }
}

#[test]
fn a_window_keeps_what_the_next_token_sees() {
    let mut kv = windowed();
    let prompt: Vec<u32> = (0..23).collect();
    let a = kv.add_sequence(&PrefixKey::default(), &prompt).unwrap().id;
    run(&mut kv, a, &prompt);
    // The token at 20, the first of the last block, sees those from 15 on: block 3 and what follows.
    let held = |kv: &PagedKv, id| -> Vec<(usize, usize)> {
        let tables = kv.tables(id).unwrap().iter();
        tables.map(|table| (table.released(), table.blocks().len())).collect()
    };
    assert_eq!(held(&kv, a), [(0, 6), (3, 3)]);
    assert_eq!(
        (kv.tables(a).unwrap()[1].slot(11), kv.free_blocks().0),
        (None, vec![10, 5])
    );
    assert!(kv.tables(a).unwrap()[1].slot(12).is_some());
    // A step that fails goes back to where it was.
    kv.append(a, &[1, 2, 3, 4, 5]).unwrap();
    assert_eq!((kv.truncate(a, 23), held(&kv, a)), (Ok(23), vec![(0, 6), (3, 3)]));
    // At most blocks for 6 + 5 tokens and two more, however long the sequence becomes.
    assert_eq!(WINDOW.most_blocks(usize::MAX, 4), 5);
    assert_eq!(kv.blocks_to_append(a, 5).unwrap().0, [1, 1]);
    assert_eq!(kv.blocks_to_append(a, 30).unwrap().0, [8, 2]);

    // The same beginning is found where both pools have what is seen: 5 blocks of all, and of the window blocks 3 and 4.
    let b = kv.add_sequence(&PrefixKey::default(), &prompt).unwrap();
    assert_eq!((b.cached_tokens, held(&kv, b.id)), (20, vec![(0, 5), (3, 2)]));
    let c = kv.fork(b.id).unwrap();
    run(&mut kv, c, &[1, 2, 3]);
    assert_eq!(held(&kv, c), [(0, 6), (3, 3)]);
    assert_eq!((kv.truncate(c, 19), held(&kv, c)), (Ok(19), vec![(0, 5), (3, 2)]));
    // Back to 15 tokens: the token there sees from 10 on, in block 2, which it has no more. Of 12 tokens blocks 1 and 2 are cached.
    assert_eq!((kv.truncate(c, 15), held(&kv, c)), (Ok(12), vec![(0, 3), (1, 2)]));
    assert_eq!((kv.truncate(c, 0), held(&kv, c)), (Ok(0), vec![(0, 0), (0, 0)]));
    for id in [a, b.id, c] {
        kv.remove(id).unwrap();
    }
    assert_eq!(kv.free_blocks().0, [16, 8]);

    // Others take the blocks of the window, so that the beginning is not cached any more although the other pool has it all.
    let others: Vec<u32> = (100..108).collect();
    let others: Vec<SequenceId> = (0..4)
        .map(|_| kv.add_sequence(&PrefixKey::default(), &others).unwrap().id)
        .collect();
    others.iter().for_each(|&id| drop(kv.append(id, &[9; 8]).unwrap()));
    assert_eq!(
        kv.add_sequence(&PrefixKey::default(), &prompt).unwrap().cached_tokens,
        0
    );
}

#[test]
fn a_window_needs_a_key_and_pools_need_blocks() {
    for (blocks, keys, name) in [(0, 1, "blocks"), (1, 0, "keys")] {
        let keep = Keep::Window { keys, ahead: 1 };
        let pools = vec![PoolConfig { blocks, keep }];
        let refused = PagedKv::<u32>::new(PagedKvConfig {
            block_size: 4,
            pools,
            states: None,
        });
        assert_eq!(refused.unwrap_err(), PagedKvError::Zero(name));
    }
    // States alone have no pool, and their borders are those of blocks.
    let refused = PagedKv::<u32>::new(PagedKvConfig {
        block_size: 0,
        pools: Vec::new(),
        states: Some(4),
    });
    assert_eq!(refused.unwrap_err(), PagedKvError::Zero("block_size"));
}

#[test]
fn a_state_is_written_beside_the_one_that_is_read() {
    let states = Some(4);
    let mut kv = PagedKv::<u32>::new(PagedKvConfig {
        block_size: 4,
        pools: vec![],
        states,
    })
    .unwrap();
    let state = |from, to| StateSlots { from, to };
    let prompt: Vec<u32> = (0..10).collect();
    let a = kv.add_sequence(&PrefixKey::default(), &prompt).unwrap().id;
    // Steps end where a block ends, and the last token of all has one of its own.
    let mut steps = Vec::new();
    while kv.len(a).unwrap() < 10 {
        let len = kv.len(a).unwrap();
        let count = kv.tokens_of_step(a, 10 - len, 6).unwrap();
        steps.push(count);
        kv.append(a, &prompt[len..len + count]).unwrap();
        assert_eq!(kv.blocks_to_append(a, 1).unwrap().0, [1]);
        kv.mark_written(a).unwrap();
    }
    assert_eq!(steps, [4, 4, 2]);
    // The states after 4 and after 8 tokens are checkpoints.
    assert_eq!((kv.state(a).unwrap(), kv.counts().cached), (state(Some(2), None), 2));

    // A step that fails: the next one reads the same state.
    kv.append(a, &[10]).unwrap();
    assert_eq!(kv.state(a).unwrap(), state(Some(2), Some(3)));
    assert_eq!(
        (kv.truncate(a, 10), kv.state(a).unwrap()),
        (Ok(10), state(Some(2), None))
    );

    // Forks and prompts share what is never written again.
    let b = kv.fork(a).unwrap();
    let c = kv.add_sequence(&PrefixKey::default(), &prompt).unwrap();
    assert_eq!((c.cached_tokens, kv.state(c.id).unwrap()), (8, state(Some(1), None)));
    kv.append(b, &[11]).unwrap();
    assert_eq!(kv.state(b).unwrap(), state(Some(2), Some(3)));
    // All four are in use, or, that after 4 tokens, cached: it goes.
    kv.append(c.id, &[8]).unwrap();
    assert_eq!(
        (kv.state(c.id).unwrap(), kv.counts().evictions),
        (state(Some(1), Some(0)), 1)
    );
    let out = PagedKvError::OutOfBlocks { needed: 1, free: 0 };
    assert_eq!(kv.append(a, &[12]), Err(out));
    assert_eq!(kv.state(a).unwrap(), state(Some(2), None));

    // Back to 9 tokens: there is no state of theirs, but one of 8.
    assert_eq!((kv.truncate(a, 9), kv.state(a).unwrap()), (Ok(8), state(Some(1), None)));
    for id in [a, b, c.id] {
        kv.remove(id).unwrap();
    }
    assert_eq!(kv.free_blocks().0, [4]);
}

/// A prompt that is chosen to look like another shares the blocks before the first token in which they differ, and no more.
#[test]
fn near_equal_prefixes_share_only_what_is_equal() {
    const BLOCK: usize = 4;
    let mut kv = kv(64, BLOCK);
    let key = PrefixKey::default();
    let prompt: Vec<u32> = (0..17).map(|token| token * 0x0101_0101).collect();
    let id = kv.add_sequence(&key, &prompt).unwrap().id;
    kv.add(id, &prompt).unwrap();
    kv.mark_written(id).unwrap();
    let mut cached = |key: &PrefixKey, prompt: &[u32]| {
        let added = kv.add_sequence(key, prompt).unwrap();
        kv.remove(added.id).unwrap();
        added.cached_tokens
    };
    assert_eq!(cached(&key, &prompt), 16);
    for at in 0..prompt.len() {
        let equal = at / BLOCK * BLOCK;
        // One bit of one token, and all of its bytes moved by one.
        let others = (0..u32::BITS).map(|bit| prompt[at] ^ (1 << bit));
        for other in others.chain([prompt[at].wrapping_add(1), prompt[at] ^ u32::MAX]) {
            let mut near = prompt.clone();
            near[at] = other;
            assert_eq!(cached(&key, &near), equal, "{other:x} at {at}");
        }
        // A token more, one less, and neighbours in each other's place.
        let mut longer = prompt.clone();
        longer.insert(at, 99);
        assert_eq!(cached(&key, &longer), equal, "inserted at {at}");
        let mut shorter = prompt.clone();
        shorter.remove(at);
        let most = (shorter.len() - 1) / BLOCK * BLOCK;
        assert_eq!(cached(&key, &shorter), equal.min(most), "removed at {at}");
        if at > 0 {
            let mut swapped = prompt.clone();
            swapped.swap(at - 1, at);
            assert_eq!(cached(&key, &swapped), (at - 1) / BLOCK * BLOCK, "swapped at {at}");
        }
    }
    // The later blocks alone, and blocks in another order.
    assert_eq!(cached(&key, &prompt[BLOCK..]), 0);
    let turned = [&prompt[BLOCK..2 * BLOCK], &prompt[..BLOCK], &prompt[2 * BLOCK..]].concat();
    assert_eq!(cached(&key, &turned), 0);
}

/// Keys of which one is made of the parts of another, with the lengths and separators between them that a hash could have.
#[test]
fn near_equal_keys_share_nothing() {
    let key = |adapter: &str, salt: &str| PrefixKey {
        adapter: adapter.to_owned(),
        salt: salt.to_owned(),
    };
    let length = "\u{1}\0\0\0\0\0\0\0";
    let keys = [
        key("", ""),
        key("a", "b"),
        key("b", "a"),
        key("ab", ""),
        key("", "ab"),
        key("a", ""),
        key("", "a"),
        key("a\0", "b"),
        key("a", "\0b"),
        key("a\0b", ""),
        key("", "a\0b"),
        key(&format!("a{length}b"), ""),
        key("", &format!("a{length}b")),
        key("a", "b "),
        key("a", "B"),
        key("a", "\u{431}"),
        key("", "\0"),
        key("", "\0\0"),
        key("", &"\0".repeat(32)),
    ];
    let mut kv = kv(200, 2);
    let prompt = [1, 2, 3, 4, 5];
    for key in &keys {
        let added = kv.add_sequence(key, &prompt).unwrap();
        assert_eq!(added.cached_tokens, 0, "{key:?}");
        kv.add(added.id, &prompt).unwrap();
        kv.mark_written(added.id).unwrap();
        kv.remove(added.id).unwrap();
        let again = kv.add_sequence(key, &prompt).unwrap();
        assert_eq!(again.cached_tokens, 4, "{key:?}");
        kv.remove(again.id).unwrap();
    }
    assert_eq!(kv.counts().evictions, 0, "all of them are kept");
}

#[test]
fn sequences_of_different_keys_share_nothing() {
    let mut kv = kv(40, 2);
    let key = |adapter: &str, salt: &str| PrefixKey {
        adapter: adapter.to_owned(),
        salt: salt.to_owned(),
    };
    let keys = [("", ""), ("", "a"), ("a", ""), ("a", "b"), ("ab", ""), ("", "ab")].map(|(a, s)| key(a, s));
    let prompt = [1, 2, 3, 4, 5];
    for (index, key) in keys.iter().enumerate() {
        let added = kv.add_sequence(key, &prompt).unwrap();
        assert_eq!(added.cached_tokens, 0, "{key:?}");
        kv.add(added.id, &prompt).unwrap();
        kv.mark_written(added.id).unwrap();
        // Under the same key all is found, also after a return to an earlier token.
        let again = kv.add_sequence(key, &prompt).unwrap();
        assert_eq!(again.cached_tokens, 4, "{key:?}");
        kv.add(again.id, &[6, 7]).unwrap();
        kv.mark_written(again.id).unwrap();
        assert_eq!(kv.add_sequence(key, &[1, 2, 3, 4, 6, 7, 8]).unwrap().cached_tokens, 6);
        for id in [added.id, again.id] {
            kv.remove(id).unwrap();
        }
        assert_eq!(kv.counts().evictions, 0, "{index}");
    }
}
