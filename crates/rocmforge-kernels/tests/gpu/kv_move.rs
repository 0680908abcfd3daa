//! Blocks and rows of paged caches moved: every type, the bytes of the definition.

use crate::support::{Device, device};
use rocmforge_kernels::{BlockPair, KvRows, KvShape, KvType};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

fn up(d: &Device, bytes: &[u8]) -> HipBuffer<u8> {
    HipBuffer::from_slice(d.stream(), bytes, "bytes").expect("upload")
}

/// Random bytes for keys and for values.
fn content(seed: usize, len: usize) -> [Vec<u8>; 2] {
    let mut random = rng(seed as u64);
    [(); 2].map(|()| (0..len).map(|_| random.below(256) as u8).collect())
}

/// At any multiple of the type's alignment: `shift` bytes into an allocation.
fn shifted(d: &Device, bytes: &[u8], shift: usize) -> HipBuffer<u8> {
    let padded: Vec<u8> = std::iter::repeat_n(0xEE, shift).chain(bytes.iter().copied()).collect();
    up(d, &padded).view(shift..padded.len()).expect("inside")
}

fn pair((from, to): (u32, u32)) -> BlockPair {
    BlockPair { from, to }
}

#[test]
fn blocks_are_copied_and_the_others_stay() {
    let d = device();
    for (index, (block_size, width)) in [(1, 32), (3, 96), (16, 64), (16, 192), (17, 32), (256, 64)]
        .into_iter()
        .enumerate()
    {
        for kv in KvType::ALL {
            for shift in [0, kv.alignment()] {
                let shape = KvShape {
                    blocks: 150,
                    block_size,
                    width,
                };
                let block = kv.byte_len(block_size * width).expect("whole blocks");
                let before = content(index, shape.blocks * block);
                let caches = before.each_ref().map(|bytes| shifted(&d, bytes, shift));
                // 70 pairs are two launches; one block goes to several places.
                let mut pairs: Vec<BlockPair> = (0..70).map(|i| pair((i, 149 - i))).collect();
                pairs[2].from = 5;
                let mut expected = before.clone();
                for (bytes, before) in expected.iter_mut().zip(&before) {
                    for pair in &pairs {
                        let [from, to] = [pair.from, pair.to].map(|n| n as usize * block);
                        bytes[to..to + block].copy_from_slice(&before[from..from + block]);
                    }
                }
                let [k, v] = &caches;
                d.kernels.kv_copy_blocks(d.stream(), kv, [k, v], shape, &pairs).unwrap();
                d.kernels.kv_copy_blocks(d.stream(), kv, [k, v], shape, &[]).unwrap();
                let found = caches
                    .each_ref()
                    .map(|cache| cache.to_vec(d.stream()).expect("download"));
                assert!(found == expected, "{kv:?} {block_size} x {width}, shifted by {shift}");
            }
        }
    }
}

#[test]
fn rows_of_a_sequence_without_gaps() {
    let d = device();
    for (index, (block_size, width)) in [(1, 32), (3, 96), (16, 64), (16, 1056), (128, 32)]
        .into_iter()
        .enumerate()
    {
        for kv in KvType::ALL {
            let blocks = 9;
            let shape = KvShape {
                blocks,
                block_size,
                width,
            };
            let row = kv.byte_len(width).expect("whole blocks");
            let content = content(index + 10, blocks * block_size * row);
            // Entries that no wanted row needs may be anything.
            let table = [u32::MAX, 4, 0, 8, 77];
            for (first, rows, shift) in [
                (block_size, 1, 0),
                (block_size, 3 * block_size, 0),
                (2 * block_size - 1, 2, 2),
                (2 * block_size, 2 * block_size - 1, 4),
            ] {
                if rows == 0 || shift % kv.alignment() != 0 {
                    continue;
                }
                let caches = content.each_ref().map(|bytes| shifted(&d, bytes, shift));
                let out = [(); 2].map(|()| up(&d, &vec![0xEE; rows * row]));
                let (ids, word) = (d.ids(&table), d.no_fault());
                let (faults, rows) = (d.faults(&word, 2), KvRows { first, rows });
                let ([k, v], [to_k, to_v]) = (&caches, &out);
                d.kernels
                    .kv_gather(d.stream(), kv, [k, v], &ids, [to_k, to_v], shape, rows, faults)
                    .unwrap();
                assert_eq!(d.fault(&word), None);
                for (out, cache) in out.iter().zip(&content) {
                    let expected = (first..first + rows.rows).flat_map(|key| {
                        let slot = table[key / block_size] as usize * block_size + key % block_size;
                        cache[slot * row..][..row].iter().copied()
                    });
                    let found = out.to_vec(d.stream()).expect("download");
                    assert!(
                        expected.eq(found),
                        "{kv:?} {block_size} x {width} from {first}, shifted by {shift}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_block_number_out_of_range_is_a_fault_of_its_first_row() {
    let d = device();
    let shape = KvShape {
        blocks: 3,
        block_size: 4,
        width: 32,
    };
    let (cache, other) = (up(&d, &[7; 3 * 4 * 34]), up(&d, &[9; 3 * 4 * 34]));
    let out = [(); 2].map(|()| up(&d, &[0xEE; 12 * 34]));
    let (ids, word) = (d.ids(&[2, 3, 0]), d.no_fault());
    let rows = KvRows { first: 0, rows: 12 };
    let (faults, kv) = (d.faults(&word, 6), KvType::Q8_0);
    d.kernels
        .kv_gather(
            d.stream(),
            kv,
            [&cache, &other],
            &ids,
            [&out[0], &out[1]],
            shape,
            rows,
            faults,
        )
        .unwrap();
    assert_eq!(d.fault(&word), Some((6, 4, 3)));
    for (out, value) in out.iter().zip([7, 9]) {
        let found = out.to_vec(d.stream()).expect("download");
        for (row, bytes) in found.chunks(34).enumerate() {
            let expected = if row / 4 == 1 { 0xEE } else { value };
            assert!(bytes.iter().all(|&b| b == expected), "row {row}");
        }
    }
}

#[test]
fn moves_that_make_no_sense_are_refused() {
    let d = device();
    let shape = KvShape {
        blocks: 4,
        block_size: 2,
        width: 32,
    };
    let [k, v] = [0, 1].map(|_| up(&d, &[1; 4 * 2 * 34]));
    let refused = |caches: [&HipBuffer<u8>; 2], shape, pairs: &[(u32, u32)], text: &str| {
        let pairs: Vec<BlockPair> = pairs.iter().copied().map(pair).collect();
        let result = (d.kernels).kv_copy_blocks(d.stream(), KvType::Q8_0, caches, shape, &pairs);
        let found = result.expect_err(text).to_string();
        assert!(found.contains(text), "{found}");
    };
    refused([&k, &v], shape, &[(0, 4)], "there is no block 4 in a cache of 4");
    refused([&k, &v], shape, &[(9, 1)], "there is no block 9 in a cache of 4");
    refused(
        [&k, &v],
        shape,
        &[(0, 1), (2, 1)],
        "block 1 is written, and in another copy too",
    );
    refused(
        [&k, &v],
        shape,
        &[(0, 1), (1, 2)],
        "block 1 is written, and in another copy too",
    );
    refused(
        [&k, &v],
        shape,
        &[(2, 2)],
        "block 2 is written, and in another copy too",
    );
    refused([&k, &k], shape, &[(0, 1)], "k_cache and v_cache overlap");
    refused(
        [&k, &v],
        KvShape { width: 36, ..shape },
        &[],
        "width must be whole blocks",
    );
    refused(
        [&k, &v],
        KvShape { blocks: 5, ..shape },
        &[],
        "k_cache has 272 elements",
    );
    refused([&k, &v], KvShape { block_size: 0, ..shape }, &[], "block_size is 0");
    let (table, word) = (d.ids(&[0, 1]), d.no_fault());
    let [to_k, to_v] = [0, 1].map(|_| up(&d, &[0; 3 * 34]));
    let gather = |out: [&HipBuffer<u8>; 2], first, rows, text: &str| {
        let (rows, faults) = (KvRows { first, rows }, d.faults(&word, 1));
        let result = (d.kernels).kv_gather(d.stream(), KvType::Q8_0, [&k, &v], &table, out, shape, rows, faults);
        let found = result.expect_err(text).to_string();
        assert!(found.contains(text), "{found}");
    };
    gather([&to_k, &to_v], 2, 3, "the rows must lie in the table (5 and 4)");
    gather([&to_k, &to_v], usize::MAX, 3, "the rows must lie in the table");
    gather([&to_k, &to_v], 0, 0, "rows is 0");
    gather([&to_k, &to_v], 0, 2, "the gathered keys has 102 elements");
    gather([&to_k, &to_k], 0, 3, "overlap");
}
