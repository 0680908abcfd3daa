//! Rotary embedding and the cache in one launch.

use crate::support::{device, refused};
use rocmforge_kernels::{HeadNorms, KvType, RopeKvOperands, RopePairs, RopeShape};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

/// Queries and keys turned, keys and values written: one launch gives the bits of four.
#[test]
fn rope_and_the_cache_in_one_launch() {
    let shapes = [
        ([1, 4, 2, 64], 64),
        ([3, 9, 3, 80], 32),
        ([5, 1, 1, 6], 2),
        ([2, 2, 2, 128], 128),
        ([3, 2, 1, 160], 96),
        ([2, 3, 3, 256], 256),
        ([9, 3, 2, 32], 20),
    ];
    for (index, ([tokens, heads, kv_heads, head_dim], rotary_dim)) in shapes.into_iter().enumerate() {
        for kv in KvType::ALL {
            for pairs in [RopePairs::Half, RopePairs::Interleaved] {
                check(index, kv, pairs, [tokens, heads, kv_heads, head_dim], rotary_dim);
            }
        }
    }
}

/// A launch of `rope_kv` beside the four that it stands for.
fn check(
    seed: usize,
    kv: KvType,
    pairs: RopePairs,
    [tokens, heads, kv_heads, head_dim]: [usize; 4],
    rotary_dim: usize,
) {
    let d = device();
    let (kernels, s) = (&d.kernels, d.stream());
    let Some(slot_bytes) = kv
        .byte_len(kv_heads * head_dim)
        .filter(|_| kv.byte_len(head_dim).is_some())
    else {
        return;
    };
    {
        let mut random = rng(seed as u64);
        let (width, key_width, slot_count) = (heads * head_dim, kv_heads * head_dim, 11);
        let [q, k, v] = [width, key_width, key_width].map(|width| d.up(&random.vec(tokens * width)));
        let tables = [0, 1].map(|_| d.up(&random.vec(9 * rotary_dim / 2)));
        let tables = [&tables[0], &tables[1]];
        let shape = |heads| RopeShape {
            tokens,
            seq: tokens,
            heads,
            head_dim,
            rotary_dim,
            start: 0,
        };
        // In range; and with a position and a slot that are not.
        for spoiled in [false, true] {
            let mut at: Vec<u32> = (0..tokens as u32).map(|t| t * 2 % 9).collect();
            let mut to: Vec<u32> = (0..tokens as u32).map(|t| 10 - t).collect();
            if spoiled {
                (at[tokens - 1], to[0]) = (9, 11);
            }
            let (positions, slots) = (d.ids(&at), d.ids(&to));
            let cache = || HipBuffer::from_slice(s, &vec![0x11u8; slot_count * slot_bytes], "cache").expect("room");
            let [apart, joint] = [0, 1].map(|_| [cache(), cache()]);
            let (yq, yk) = (d.out(tokens * width), d.out(tokens * key_width));
            let word = d.no_fault();
            let at_tables = |x: &_, y: &_, heads, tag| {
                let faults = d.faults(&word, tag);
                kernels
                    .rope_at(s, pairs, x, tables, &positions, y, shape(heads), faults)
                    .unwrap();
            };
            at_tables(&q, &yq, heads, 1);
            at_tables(&k, &yk, kv_heads, 2);
            for (src, cache) in [(&yk, &apart[0]), (&v, &apart[1])] {
                let faults = d.faults(&word, 3);
                d.write_rows(kv, src, &slots, cache, slot_count, key_width, faults)
                    .unwrap();
            }
            let one = d.no_fault();
            let (found_q, found_k) = (d.out(tokens * width), d.up(&d.get(&k)));
            let operands = RopeKvOperands {
                q: &q,
                k: &found_k,
                v: &v,
                tables,
                positions: &positions,
                slots: &slots,
                norms: None,
                turned_q: &found_q,
                turned_k: &found_k,
                k_cache: &joint[0],
                v_cache: &joint[1],
            };
            let sizes = [kv_heads, slot_count];
            kernels
                .rope_kv(s, pairs, kv, operands, shape(heads), sizes, d.faults(&one, 1), 3)
                .unwrap();
            let bits = |x: &HipBuffer<f32>| d.get(x).iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            if spoiled {
                let nan = |x: &HipBuffer<f32>| d.get(x).iter().map(|v| v.is_nan()).collect::<Vec<_>>();
                assert_eq!((nan(&found_q), nan(&found_k)), (nan(&yq), nan(&yk)));
                assert_eq!(d.fault(&one), d.fault(&word));
                assert_eq!(d.fault(&one), Some((1, tokens as u32 - 1, 9)));
            } else {
                assert_eq!((bits(&found_q), bits(&found_k)), (bits(&yq), bits(&yk)));
                assert_eq!(d.fault(&one), None);
                let bytes = |cache: &[HipBuffer<u8>; 2]| cache.each_ref().map(|c| c.to_vec(s).expect("download"));
                assert_eq!(bytes(&joint), bytes(&apart));
            }
        }
    }
}

/// With norms a query and a key may be turned where they lie, and a position out of range spoils its token alone.
#[test]
fn normed_heads_may_be_turned_in_place() {
    let d = device();
    let (s, kernels) = (d.stream(), &d.kernels);
    let (tokens, heads, kv_heads, head_dim, slot_count) = (3, 4, 2, 64, 8);
    let shape = RopeShape {
        rotary_dim: head_dim,
        ..RopeShape::sequence(tokens, heads, head_dim)
    };
    let mut random = rng(11);
    let [q, k, v] = [heads, kv_heads, kv_heads].map(|heads| random.vec(tokens * heads * head_dim));
    let norms = [0, 1].map(|_| d.up(&random.vec(head_dim)));
    let tables = [0, 1].map(|_| d.up(&random.vec(9 * head_dim / 2)));
    let slots = d.ids(&[5, 0, 7]);
    let run = |positions: &[u32], in_place: bool, eps: f32| {
        let [dq, dk, dv] = [&q, &k, &v].map(|values| d.up(values));
        let (yq, yk) = match in_place {
            true => (dq.clone(), dk.clone()),
            false => (d.out(q.len()), d.out(k.len())),
        };
        let cache = || d.out(slot_count * kv_heads * head_dim).cast::<u8>().expect("bytes");
        let (k_cache, v_cache, word) = (cache(), cache(), d.no_fault());
        let operands = RopeKvOperands {
            q: &dq,
            k: &dk,
            v: &dv,
            tables: [&tables[0], &tables[1]],
            positions: &d.ids(positions),
            slots: &slots,
            norms: Some(HeadNorms {
                q: &norms[0],
                k: &norms[1],
                eps,
            }),
            turned_q: &yq,
            turned_k: &yk,
            k_cache: &k_cache,
            v_cache: &v_cache,
        };
        let (counts, faults) = ([kv_heads, slot_count], d.faults(&word, 1));
        kernels.rope_kv(s, RopePairs::Half, KvType::F32, operands, shape, counts, faults, 2)?;
        Ok::<_, rocmforge_kernels::KernelError>((d.get(&yq), d.get(&yk), d.fault(&word)))
    };
    let apart = run(&[0, 8, 3], false, 1e-5).unwrap();
    assert_eq!(run(&[0, 8, 3], true, 1e-5).unwrap(), apart);
    let (spoiled, _, fault) = run(&[0, 9, 3], true, 1e-5).unwrap();
    assert_eq!(fault, Some((1, 1, 9)));
    let rows = spoiled.chunks(heads * head_dim).zip(apart.0.chunks(heads * head_dim));
    for (token, (found, right)) in rows.enumerate() {
        match token {
            1 => assert!(found.iter().all(|v| v.is_nan())),
            _ => assert_eq!(found, right),
        }
    }
    refused(run(&[0, 8, 3], false, -1.0), "eps");
}

#[test]
fn what_rope_kv_does_not_take_is_refused() {
    let d = device();
    let (kernels, s) = (&d.kernels, d.stream());
    let x = d.up(&[1.0; 64]);
    let (cache, other) = (
        HipBuffer::from_slice(s, &[0u8; 256], "cache").expect("room"),
        HipBuffer::from_slice(s, &[0u8; 256], "cache").expect("room"),
    );
    let (table, ids, word, y) = (d.up(&[1.0; 32]), d.ids(&[0]), d.no_fault(), d.out(64));
    let operands = RopeKvOperands {
        q: &x,
        k: &x,
        v: &x,
        tables: [&table, &table],
        positions: &ids,
        slots: &ids,
        norms: None,
        turned_q: &y,
        turned_k: &y,
        k_cache: &cache,
        v_cache: &other,
    };
    let shape = RopeShape {
        tokens: 1,
        seq: 1,
        heads: 1,
        head_dim: 64,
        rotary_dim: 64,
        start: 0,
    };
    let (pairs, faults) = (RopePairs::Half, d.faults(&word, 1));
    refused(
        kernels.rope_kv(s, pairs, KvType::F32, operands, shape, [1, 1], faults, 2),
        "the turned k and the turned q overlap",
    );
    // A head of q8_0 that is no whole block, and one that is too long.
    for (head_dim, text) in [
        (40, "head_dim must be whole blocks"),
        (288, "head_dim is 288; it must be 1 to 256"),
    ] {
        let [q, k, v, yq, yk] = [0; 5].map(|_| d.out(head_dim));
        let bytes = vec![0u8; head_dim.div_ceil(32) * 34];
        let [k_cache, v_cache] = [0; 2].map(|_| HipBuffer::from_slice(s, &bytes, "cache").expect("room"));
        let operands = RopeKvOperands {
            q: &q,
            k: &k,
            v: &v,
            turned_q: &yq,
            turned_k: &yk,
            k_cache: &k_cache,
            v_cache: &v_cache,
            ..operands
        };
        let shape = RopeShape {
            head_dim,
            rotary_dim: 32,
            ..shape
        };
        refused(
            kernels.rope_kv(s, pairs, KvType::Q8_0, operands, shape, [1, 1], faults, 2),
            text,
        );
    }
}
