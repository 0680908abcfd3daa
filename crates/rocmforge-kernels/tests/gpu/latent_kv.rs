//! Queries of latent attention and the cache in one launch.

use crate::support::{device, refused};
use rocmforge_kernels::{KernelResult, KvType, LatentKvOperands, LatentKvShape, LatentTurn, RopePairs, RopeShape};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

const SHAPE: LatentKvShape = LatentKvShape {
    tokens: 3,
    heads: 4,
    rank: 96,
    shared: 64,
    q_row: 90,
    slot_count: 11,
};
const EPS: f32 = 1e-5;
const ROTARY: usize = 32;

/// What a launch gives: queries, bytes of the cache, and the fault.
type Given = (Vec<f32>, Vec<u8>, Option<(u32, u32, u32)>);

/// A launch at these positions and slots: the one, or those that it stands for.
fn run(kv: KvType, pairs: RopePairs, positions: &[u32], slots: &[u32], joint: bool) -> KernelResult<Given> {
    let d = device();
    let (kernels, s) = (&d.kernels, d.stream());
    let LatentKvShape {
        tokens,
        heads,
        rank,
        shared,
        q_row,
        slot_count,
    } = SHAPE;
    let kept = rank + shared;
    let mut random = rng(5);
    let [plain, q, all, norm] =
        [tokens * heads * rank, tokens * heads * q_row, tokens * kept, rank].map(|len| random.vec(len));
    let tables = [0, 1].map(|_| d.up(&random.vec(9 * ROTARY / 2)));
    let tables = [&tables[0], &tables[1]];
    let (positions, to) = (d.ids(positions), d.ids(slots));
    let bytes = kv.byte_len(slot_count * kept).expect("whole blocks");
    let cache = HipBuffer::from_slice(s, &vec![0x11u8; bytes], "cache").expect("room");
    let (word, gains) = (d.no_fault(), d.up(&norm));
    let y = if joint {
        let y = d.out(tokens * heads * kept);
        let operands = LatentKvOperands {
            plain: &d.up(&plain),
            q: &d.up(&q),
            kv: &d.up(&all),
            norm: &gains,
            turn: Some(LatentTurn {
                tables,
                positions: &positions,
                pairs,
                rotary_dim: ROTARY,
            }),
            slots: &to,
            y: &y,
            cache: &cache,
        };
        kernels.latent_kv(s, kv, operands, SHAPE, EPS, d.faults(&word, 1), 3)?;
        d.get(&y)
    } else {
        let turned = |x: &[f32], row: usize, heads, tag| {
            let last: Vec<f32> = x
                .chunks(row)
                .flat_map(|row| &row[row.len() - shared..])
                .copied()
                .collect();
            let shape = RopeShape {
                rotary_dim: ROTARY,
                ..RopeShape::sequence(tokens, heads, shared)
            };
            let (x, y, faults) = (d.up(&last), d.out(last.len()), d.faults(&word, tag));
            kernels.rope_at(s, pairs, &x, tables, &positions, &y, shape, faults)?;
            KernelResult::Ok(d.get(&y))
        };
        let joined = |a: &[f32], b: &[f32]| -> Vec<f32> {
            let rows = a.chunks(rank).zip(b.chunks(shared));
            rows.flat_map(|(a, b)| a.iter().chain(b)).copied().collect()
        };
        let y = joined(&plain, &turned(&q, q_row, heads, 1)?);
        let own: Vec<f32> = all.chunks(kept).flat_map(|row| &row[..rank]).copied().collect();
        let (own, normed) = (d.up(&own), d.out(tokens * rank));
        kernels.rms_norm(s, &own, &gains, &normed, tokens, rank, EPS)?;
        let rows = d.up(&joined(&d.get(&normed), &turned(&all, kept, 1, 2)?));
        d.write_rows(kv, &rows, &to, &cache, slot_count, kept, d.faults(&word, 3))?;
        y
    };
    Ok((y, cache.to_vec(s).expect("download"), d.fault(&word)))
}

const IN_RANGE: [u32; 3] = [0, 8, 3];
const SLOTS: [u32; 3] = [10, 0, 7];

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// Queries to the bit; of the cache what is turned to the bit, too, and what is normed nearly.
#[test]
fn latent_rows_in_one_launch() {
    for kv in [KvType::F32, KvType::F16, KvType::Bf16, KvType::Q8_0] {
        for pairs in [RopePairs::Half, RopePairs::Interleaved] {
            let [apart, joint] = [false, true].map(|joint| run(kv, pairs, &IN_RANGE, &SLOTS, joint).expect("runs"));
            assert_eq!(bits(&joint.0), bits(&apart.0), "{kv:?}, {pairs:?}");
            assert_eq!((joint.2, apart.2), (None, None));
            let row = kv.byte_len(SHAPE.rank + SHAPE.shared).expect("whole blocks");
            let own = kv.byte_len(SHAPE.rank).expect("whole blocks");
            let rows = joint.1.chunks(row).zip(apart.1.chunks(row));
            for (slot, (found, right)) in rows.enumerate() {
                assert_eq!(found[own..], right[own..], "{kv:?}, {pairs:?}, slot {slot}");
                let written = SLOTS.contains(&(slot as u32));
                assert_eq!(found.iter().all(|&byte| byte == 0x11), !written, "{kv:?}, slot {slot}");
            }
            if kv == KvType::F32 {
                let values = |bytes: &[u8]| -> Vec<f32> { bytemuck::pod_collect_to_vec(bytes) };
                for (a, b) in values(&joint.1).iter().zip(values(&apart.1)) {
                    assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a}, {b}");
                }
            }
        }
    }
}

/// A position out of range spoils its token's turned parts alone, a slot out of range writes nothing. The fault is that of the launches apart.
#[test]
fn latent_rows_with_an_index_out_of_range() {
    for kv in [KvType::F32, KvType::Q8_0] {
        let run = |positions: &[u32], slots: &[u32]| {
            [false, true].map(|joint| run(kv, RopePairs::Half, positions, slots, joint).expect("runs"))
        };
        let row = kv.byte_len(SHAPE.rank + SHAPE.shared).expect("whole blocks");
        let [apart, joint] = run(&[0, 9, 3], &[10, 0, 11]);
        assert_eq!((joint.2, apart.2), (Some((1, 1, 9)), Some((1, 1, 9))));
        let nan = |values: &[f32]| values.iter().map(|v| v.is_nan()).collect::<Vec<_>>();
        assert_eq!(nan(&joint.0), nan(&apart.0));
        assert_eq!(
            nan(&joint.0).iter().filter(|&&nan| nan).count(),
            SHAPE.heads * SHAPE.shared
        );
        assert_eq!(joint.1[7 * row..8 * row], vec![0x11; row], "no token has this slot now");
        let [apart, joint] = run(&IN_RANGE, &[10, 11, 12]);
        assert_eq!((joint.2, apart.2), (Some((3, 1, 11)), Some((3, 1, 11))));
        assert_eq!(bits(&joint.0), bits(&apart.0));
        assert_eq!(joint.1[..10 * row], vec![0x11; 10 * row]);
    }
}

#[test]
fn what_latent_kv_does_not_take_is_refused() {
    let d = device();
    let s = d.stream();
    let call = |kv: KvType, shape: LatentKvShape, rotary_dim: usize, eps: f32, same: bool| {
        let LatentKvShape {
            tokens,
            heads,
            rank,
            shared,
            q_row,
            slot_count,
        } = shape;
        let kept = rank + shared;
        let bytes = slot_count * kept / kv.block_len() * kv.block_bytes();
        let table = d.up(&vec![1.0; rotary_dim / 2]);
        let (ids, word) = (d.ids(&vec![0; tokens]), d.no_fault());
        let (kv_rows, y) = (d.out(tokens * kept), d.out(tokens * heads * kept));
        let operands = LatentKvOperands {
            plain: &d.out(tokens * heads * rank),
            q: &d.out(tokens * heads * q_row),
            kv: if same { &y } else { &kv_rows },
            norm: &d.out(rank),
            turn: Some(LatentTurn {
                tables: [&table; 2],
                positions: &ids,
                pairs: RopePairs::Half,
                rotary_dim,
            }),
            slots: &ids,
            y: &y,
            cache: &HipBuffer::from_slice(s, &vec![0u8; bytes], "cache").expect("room"),
        };
        d.kernels.latent_kv(s, kv, operands, shape, eps, d.faults(&word, 1), 2)
    };
    let one = LatentKvShape {
        tokens: 1,
        heads: 1,
        rank: 32,
        shared: 32,
        q_row: 32,
        slot_count: 1,
    };
    call(KvType::F32, one, 32, EPS, false).expect("fits");
    refused(call(KvType::F32, one, 32, EPS, true), "overlap");
    refused(call(KvType::F32, one, 32, -1.0, false), "eps");
    refused(call(KvType::F32, one, 34, EPS, false), "rotary_dim");
    let with = |rank, shared, q_row| LatentKvShape {
        rank,
        shared,
        q_row,
        ..one
    };
    refused(
        call(KvType::F32, with(32, 32, 31), 32, EPS, false),
        "q_row must be at least shared",
    );
    refused(
        call(KvType::F32, with(34, 32, 32), 32, EPS, false),
        "rank must be whole fours",
    );
    refused(
        call(KvType::F32, with(32, 34, 34), 32, EPS, false),
        "shared must be whole fours",
    );
    refused(
        call(KvType::Q8_0, with(32, 36, 36), 32, EPS, false),
        "shared must be whole fours",
    );
    refused(
        call(KvType::F32, with(1000, 32, 32), 32, EPS, false),
        "rank + shared is 1032",
    );
    for (kv, shape) in [
        (KvType::F32, with(34, 32, 32)),
        (KvType::Q8_0, with(32, 36, 36)),
        (KvType::F16, with(1000, 32, 32)),
    ] {
        assert!(one.fits(kv) && !shape.fits(kv), "{shape:?}");
    }
}
