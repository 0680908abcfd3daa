//! The paged KV cache, call by call.

use rocmforge_attention::paged::{
    BlockAllocator, BlockCopy, BlockHash, KvElement, KvGeometry, PagedKv, PagedKvConfig, PagedKvError, blocks_for,
};
use rocmforge_runtime::Bytes;

fn kv(blocks: usize, block_size: usize) -> PagedKv {
    PagedKv::new(PagedKvConfig { blocks, block_size }).unwrap()
}

#[test]
fn kv_cache_append_and_retrieve_consistency() {
    let mut kv = kv(8, 3);
    let mut cache = [None; 24];
    let a = kv.add_sequence(&[]).unwrap().id;
    let b = kv.add_sequence(&[]).unwrap().id;
    let mut expected = [Vec::new(), Vec::new()];
    for round in 0..11_u32 {
        for (which, id) in [a, b].into_iter().enumerate() {
            let tokens: Vec<u32> = (0..(round + which as u32) % 3)
                .map(|i| 100 * round + 10 * which as u32 + i)
                .collect();
            let appended = kv.append(id, &tokens).unwrap();
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
    assert_eq!(kv.free_blocks(), 0);
}

#[test]
fn kv_cache_capacity_boundary() {
    let mut kv = kv(3, 4);
    let a = kv.add_sequence(&[]).unwrap().id;
    assert_eq!(kv.append(a, &[7; 11]).unwrap().slots.len(), 11);
    assert_eq!(kv.free_blocks(), 0);
    // The last slot can be filled, and nothing more.
    assert_eq!(
        kv.append(a, &[7, 7]),
        Err(PagedKvError::OutOfBlocks { needed: 1, free: 0 })
    );
    assert_eq!(kv.len(a).unwrap(), 11);
    assert_eq!(kv.append(a, &[7]).unwrap().slots, [11]);
    assert_eq!(
        kv.append(a, &[7]),
        Err(PagedKvError::OutOfBlocks { needed: 1, free: 0 })
    );
    assert_eq!(
        kv.append(a, &[7; 9]),
        Err(PagedKvError::OutOfBlocks { needed: 3, free: 0 })
    );
    assert_eq!((kv.len(a).unwrap(), kv.table(a).unwrap()), (12, &[0, 1, 2][..]));
    // Nothing at all always fits.
    assert!(kv.append(a, &[]).unwrap().slots.is_empty());

    kv.truncate(a, 4).unwrap();
    assert_eq!(
        (
            kv.free_blocks(),
            kv.blocks_to_append(a, 8).unwrap(),
            kv.blocks_to_append(a, 9).unwrap()
        ),
        (2, 2, 3)
    );
    assert_eq!(kv.append(a, &[8; 8]).unwrap().slots.len(), 8);
}

#[test]
fn a_fork_shares_until_it_writes() {
    let mut kv = kv(6, 4);
    let a = kv.add_sequence(&[]).unwrap().id;
    kv.append(a, &[1, 2, 3, 4, 5]).unwrap();
    let b = kv.fork(a).unwrap();
    assert_eq!(kv.table(b).unwrap(), [0, 1]);
    assert_eq!(
        (kv.free_blocks(), kv.allocator().refs(0), kv.allocator().refs(1)),
        (4, 2, 2)
    );

    // One block for the copy and one for the tokens beyond it.
    assert_eq!(kv.blocks_to_append(b, 4).unwrap(), 2);
    let appended = kv.append(b, &[6, 7, 8, 9]).unwrap();
    assert_eq!(appended.copies, [BlockCopy { from: 1, to: 2 }]);
    assert_eq!(appended.slots, [9, 10, 11, 12]);
    // The other has its block for itself again.
    assert_eq!((kv.allocator().refs(0), kv.allocator().refs(1)), (2, 1));
    let appended = kv.append(a, &[60]).unwrap();
    assert_eq!((appended.copies, appended.slots), (vec![], vec![5]));

    // A fork at a block's end has nothing to copy.
    kv.append(a, &[61, 62]).unwrap();
    let c = kv.fork(a).unwrap();
    let appended = kv.append(c, &[63]).unwrap();
    assert_eq!((appended.copies, kv.stats().copies), (vec![], 1));
    for id in [a, b, c] {
        kv.remove(id).unwrap();
    }
    assert_eq!(kv.free_blocks(), 6);
}

#[test]
fn a_copy_needs_a_block_of_its_own() {
    let mut kv = kv(1, 4);
    let a = kv.add_sequence(&[]).unwrap().id;
    kv.append(a, &[1]).unwrap();
    let b = kv.fork(a).unwrap();
    assert_eq!(
        kv.append(b, &[2]),
        Err(PagedKvError::OutOfBlocks { needed: 1, free: 0 })
    );
    assert_eq!((kv.tokens(b).unwrap(), kv.allocator().refs(0)), (&[1][..], 2));
    kv.remove(a).unwrap();
    assert_eq!(kv.append(b, &[2]).unwrap().slots, [1]);
}

#[test]
fn a_prompt_is_found_up_to_its_last_full_block_but_never_whole() {
    let mut kv = kv(8, 2);
    let prompt = [1, 2, 3, 4, 5, 6];
    let a = kv.add_sequence(&prompt).unwrap().id;
    kv.append(a, &prompt).unwrap();
    // Nothing is shared before it is written.
    assert_eq!(kv.add_sequence(&prompt).unwrap().cached_tokens, 0);
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
        let added = kv.add_sequence(prompt).unwrap();
        assert_eq!(added.cached_tokens, cached, "{prompt:?}");
        assert_eq!(kv.tokens(added.id).unwrap(), &prompt[..cached]);
        assert_eq!(kv.table(added.id).unwrap(), &kv.table(a).unwrap()[..cached / 2]);
        kv.remove(added.id).unwrap();
    }
    // All of them lived on the three blocks of the first one.
    assert_eq!(kv.free_blocks(), 5);
    let stats = kv.stats();
    assert_eq!(
        (stats.prompt_tokens, stats.cached_tokens),
        (6 + 6 + 6 + 7 + 5 + 4 + 7 + 1 + 5 + 3, 4 + 6 + 4 + 2 + 2)
    );
}

#[test]
fn cached_blocks_go_in_the_order_of_their_release_the_end_of_a_sequence_first() {
    let mut kv = kv(4, 1);
    let fill = |kv: &mut PagedKv, tokens: &[u32]| {
        let added = kv.add_sequence(tokens).unwrap();
        kv.append(added.id, &tokens[added.cached_tokens..]).unwrap();
        kv.mark_written(added.id).unwrap();
        kv.remove(added.id).unwrap();
        added.cached_tokens
    };
    assert_eq!(fill(&mut kv, &[1, 2]), 0);
    assert_eq!(fill(&mut kv, &[3, 4]), 0);
    assert_eq!((kv.free_blocks(), kv.stats().cached, kv.stats().evictions), (4, 4, 0));
    // Evicts the block of 2: the oldest sequence's end.
    assert_eq!(fill(&mut kv, &[5]), 0);
    assert_eq!((kv.stats().cached, kv.stats().evictions), (4, 1));
    // 1 is still there, and is the most recently used now; 2 is computed again, in the block of 4.
    assert_eq!(fill(&mut kv, &[1, 2]), 1);
    assert_eq!(fill(&mut kv, &[3, 4]), 1);
    assert_eq!(kv.stats().evictions, 3);
}

#[test]
fn a_failed_pass_leaves_nothing_to_share() {
    let mut kv = kv(4, 2);
    let prompt = [1, 2, 3, 4, 5];
    let a = kv.add_sequence(&prompt).unwrap().id;
    kv.append(a, &prompt).unwrap();
    kv.remove(a).unwrap(); // without `mark_written`
    assert_eq!(
        (kv.add_sequence(&prompt).unwrap().cached_tokens, kv.stats().cached),
        (0, 0)
    );
    assert_eq!(kv.free_blocks(), 4);
}

#[test]
fn a_truncated_block_is_not_found_by_what_it_held() {
    let mut kv = kv(4, 2);
    let a = kv.add_sequence(&[]).unwrap().id;
    kv.append(a, &[1, 2, 3, 4]).unwrap();
    kv.mark_written(a).unwrap();
    kv.truncate(a, 3).unwrap();
    // Until it is overwritten, it still holds 3 and 4.
    let b = kv.add_sequence(&[1, 2, 3, 4, 5]).unwrap();
    assert_eq!(b.cached_tokens, 4);
    // Now it belongs to both, so it is copied.
    assert_eq!(kv.append(a, &[40]).unwrap().copies, [BlockCopy { from: 1, to: 2 }]);
    kv.remove(b.id).unwrap();
    assert_eq!(kv.add_sequence(&[1, 2, 3, 4, 5]).unwrap().cached_tokens, 4);

    // The copy belongs to one alone: written in place, and forgotten.
    kv.mark_written(a).unwrap();
    kv.truncate(a, 3).unwrap();
    assert_eq!(
        kv.append(a, &[41]).unwrap(),
        rocmforge_attention::paged::Appended {
            slots: vec![5],
            copies: vec![]
        }
    );
    assert_eq!(kv.add_sequence(&[1, 2, 3, 40, 5]).unwrap().cached_tokens, 2);
}

#[test]
fn impossible_calls_are_refused_with_their_figures() {
    for (blocks, block_size, name) in [(0, 4, "blocks"), (4, 0, "block_size")] {
        assert_eq!(
            PagedKv::new(PagedKvConfig { blocks, block_size }).unwrap_err(),
            PagedKvError::Zero(name)
        );
    }
    for (blocks, block_size) in [(usize::MAX, 2), (1 << 31, 2), (1, 1 << 32), (1 << 32, 1)] {
        match PagedKv::new(PagedKvConfig { blocks, block_size }) {
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
    let id = largest.add_sequence(&[]).unwrap().id;
    assert_eq!(largest.append(id, &[1, 2]).unwrap().slots, [0, 1]);
    assert_eq!(kv(u32::MAX as usize, 1).free_blocks(), u32::MAX as usize);

    let mut kv = kv(2, 2);
    let id = kv.add_sequence(&[]).unwrap().id;
    kv.append(id, &[1]).unwrap();
    assert_eq!(
        kv.truncate(id, 2),
        Err(PagedKvError::TruncateBeyondEnd { len: 1, tokens: 2 })
    );
    assert_eq!(
        kv.blocks_to_append(id, usize::MAX),
        Err(PagedKvError::Overflow("the length of the sequence"))
    );
    kv.remove(id).unwrap();
    let unknown = Err(PagedKvError::UnknownSequence(id));
    assert_eq!(kv.append(id, &[1]).map(drop), unknown);
    assert_eq!(kv.fork(id).map(drop), unknown);
    assert_eq!(kv.truncate(id, 0), unknown);
    assert_eq!(kv.mark_written(id), unknown);
    assert_eq!(kv.remove(id), unknown);
    assert_eq!(kv.len(id).map(drop), unknown);
    assert_eq!(kv.table(id).map(drop), unknown);
    // The number of a removed sequence is not used again.
    assert_ne!(kv.add_sequence(&[]).unwrap().id, id);
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
fn sizes_of_known_models() {
    // KiB a token in f16: (layers, kv_heads, head_dim).
    for (layers, kv_heads, dim, kib) in [
        (30, 3, 64, 22.5),
        (28, 8, 128, 112.0),
        (32, 32, 96, 384.0),
        (24, 2, 64, 12.0),
    ] {
        let geometry = KvGeometry {
            layers,
            kv_heads,
            k_dim: dim,
            v_dim: dim,
            element: KvElement::F16,
            block_size: 16,
        };
        assert_eq!(geometry.bytes_per_token().unwrap().0 as f64, kib * 1024.0);
        assert_eq!(geometry.bytes_per_block().unwrap().0 as f64, kib * 1024.0 * 16.0);
        let budget = Bytes::mib(100);
        let tokens = geometry.largest_context(budget).unwrap();
        assert!(tokens > 0 && tokens.is_multiple_of(16));
        assert!(geometry.bytes_for(tokens).unwrap() <= budget && geometry.bytes_for(tokens + 1).unwrap() > budget);
    }
}

#[test]
fn sizes_beyond_64_bits_are_refused() {
    let geometry = KvGeometry {
        layers: 1,
        kv_heads: 1,
        k_dim: 3,
        v_dim: 0,
        element: KvElement::plain(1),
        block_size: 5,
    };
    assert_eq!(geometry.bytes_per_token(), Ok(Bytes(3)));
    assert_eq!(geometry.largest_context(Bytes(14)), Ok(0));
    assert_eq!(geometry.largest_context(Bytes(15)), Ok(5));
    assert!(geometry.largest_context(Bytes(u64::MAX)).is_ok());
    let token = Err(PagedKvError::Overflow("the size of a token's K and V"));
    assert_eq!(
        KvGeometry {
            layers: usize::MAX,
            ..geometry
        }
        .bytes_per_token(),
        token
    );
    assert_eq!(
        KvGeometry {
            k_dim: usize::MAX,
            v_dim: 1,
            ..geometry
        }
        .largest_context(Bytes(1))
        .map(|_| Bytes(0)),
        token
    );
    assert_eq!(
        KvGeometry {
            block_size: usize::MAX,
            ..geometry
        }
        .bytes_per_block(),
        Err(PagedKvError::Overflow("the size of a block"))
    );
    assert_eq!(
        geometry.bytes_for(usize::MAX),
        Err(PagedKvError::Overflow("the size of the cache"))
    );
    assert_eq!(
        KvGeometry {
            kv_heads: 0,
            ..geometry
        }
        .bytes_per_token(),
        Err(PagedKvError::Zero("kv_heads"))
    );
    assert_eq!(
        KvGeometry {
            block_size: 0,
            ..geometry
        }
        .largest_context(Bytes(1)),
        Err(PagedKvError::Zero("block_size"))
    );
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
