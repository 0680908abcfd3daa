//! Attention over a paged cache: sizes come from the operands, and what does not fit together is refused.

use rocmforge_attention::{AttentionError, PagedAlgorithm, PagedAttention, Rounding};
use rocmforge_kernels::{
    Fault, Faults, KernelError, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, reference,
};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{poison, rng, widen};
use rocmforge_testkit::gpu;

const LAYER: PagedAttention = PagedAttention {
    heads: 6,
    kv_heads: 2,
    head_dim: 20,
    block_size: 3,
    kv: KvType::F32,
    options: PagedOptions {
        scale: 0.3,
        window: Some(4),
        softcap: Some(2.0),
    },
};

#[test]
fn sizes_come_from_the_operands() {
    let gpu = gpu();
    let (stream, kernels) = (gpu.backend().stream(), Kernels::load(gpu.backend()).unwrap());
    let mut random = rng(7);
    // Five blocks; two sequences with up to three each.
    let (blocks, width) = (5, LAYER.kv_heads * LAYER.head_dim);
    let (table, seq_of, positions) = ([4u32, 1, 9, 0, 2, 3], [0u32, 1, 1], [5u32, 8, 2]);
    let q = random.vec(3 * LAYER.heads * LAYER.head_dim);
    let [k, v] = [1, 2].map(|_| random.vec(blocks * LAYER.block_size * width));
    let expected = reference::paged_attention(
        &q,
        &widen(&k),
        &widen(&v),
        &table,
        &seq_of,
        &positions,
        None,
        PagedShape {
            tokens: 3,
            heads: LAYER.heads,
            kv_heads: LAYER.kv_heads,
            head_dim: LAYER.head_dim,
            block_size: LAYER.block_size,
            blocks,
            sequences: 2,
            max_blocks: 3,
        },
        LAYER.options,
    );
    let up = |values: &[f32]| HipBuffer::from_slice(stream, values, "operand").unwrap();
    let ids = |values: &[u32]| HipBuffer::from_slice(stream, values, "indices").unwrap();
    let (query, out) = (up(&q), up(&poison(q.len())));
    let [k_cache, v_cache] = [&k, &v].map(|values| up(values).cast::<u8>().unwrap());
    let (table, seq_of, positions) = (ids(&table), ids(&seq_of), ids(&positions));
    let word = HipBuffer::from_slice(stream, &[Fault::NONE], "fault").unwrap();
    let operands = PagedOperands {
        q: &query,
        k_cache: &k_cache,
        v_cache: &v_cache,
        block_table: &table,
        seq_of: &seq_of,
        positions: &positions,
        sinks: None,
        out: &out,
    };
    let faults = Faults { word: &word, tag: 1 };
    LAYER.forward(&kernels, stream, operands, 3, faults).unwrap();
    let found = out.to_vec(stream).unwrap();
    let shape = [3, LAYER.heads, LAYER.head_dim];
    assert_close(&found, &expected, &shape, Tolerance::Absolute(1e-5));
    assert_eq!(word.to_vec(stream).unwrap(), [Fault::NONE]);

    // A table that is no whole number of rows, a cache of no whole blocks, dimensions of 0.
    let refused = |layer: PagedAttention, max_blocks| layer.forward(&kernels, stream, operands, max_blocks, faults);
    let kernel = |result| match result {
        Err(AttentionError::Kernel(error)) => error,
        other => panic!("{other:?}"),
    };
    let uneven = kernel(refused(LAYER, 4));
    assert!(
        matches!(
            uneven,
            KernelError::Length {
                operand: "block_table",
                ..
            }
        ),
        "{uneven:?}"
    );
    let uneven = kernel(refused(PagedAttention { block_size: 4, ..LAYER }, 3));
    assert!(
        matches!(uneven, KernelError::Length { operand: "k_cache", .. }),
        "{uneven:?}"
    );
    for (layer, max_blocks) in [
        (LAYER, 0),
        (PagedAttention { block_size: 0, ..LAYER }, 3),
        (PagedAttention { kv_heads: 0, ..LAYER }, 3),
        (PagedAttention { head_dim: 260, ..LAYER }, 3),
    ] {
        let error = kernel(refused(layer, max_blocks));
        assert!(matches!(error, KernelError::Dimension { .. }), "{error:?}");
    }
}

#[test]
fn the_plan_says_which_kernels_and_why() {
    let gpu = gpu();
    let (stream, kernels) = (gpu.backend().stream(), Kernels::load(gpu.backend()).unwrap());
    let layer = PagedAttention {
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        block_size: 16,
        kv: KvType::F16,
        options: PagedOptions::new(64),
    };
    // Two sequences with up to 64 blocks each, in a cache of 128.
    let floats = |n: usize| HipBuffer::from_slice(stream, &vec![0.0f32; n], "operand").unwrap();
    let ids = |n: usize| HipBuffer::from_slice(stream, &vec![0u32; n], "indices").unwrap();
    let cache = floats(128 * 16 * 2 * 64 / 2).cast::<u8>().unwrap();
    let table = ids(128);
    let with_table = |layer: PagedAttention, table: &HipBuffer<u32>, tokens: usize, rounding| {
        let (q, seq_of, positions) = (floats(tokens * 4 * 64), ids(tokens), ids(tokens));
        let operands = PagedOperands {
            q: &q,
            k_cache: &cache,
            v_cache: &cache,
            block_table: table,
            seq_of: &seq_of,
            positions: &positions,
            sinks: None,
            out: &q,
        };
        layer.plan(&kernels, operands, 64, rounding).unwrap()
    };
    let plan = |layer, tokens, rounding| with_table(layer, &table, tokens, rounding);
    // A row of the table for each token: one of each sequence.
    let batch = |layer, tokens: usize| with_table(layer, &ids(tokens * 64), tokens, Rounding::F16).algorithm;
    for tokens in [9, 128] {
        assert!(
            matches!(batch(layer, tokens), PagedAlgorithm::Parts(_)),
            "{tokens} tokens"
        );
    }
    assert_eq!(batch(layer, 129), PagedAlgorithm::Floats);
    let own_keys = PagedAttention { kv_heads: 4, ..layer };
    assert_eq!(batch(own_keys, 128), PagedAlgorithm::Floats);
    let on_matrix_unit = plan(layer, 17, Rounding::F16);
    assert_eq!(on_matrix_unit.algorithm, PagedAlgorithm::MatrixUnit);
    let text = on_matrix_unit.to_string();
    assert!(text.starts_with("attention on the matrix unit: many tokens"), "{text}");
    for (layer, tokens, rounding, why) in [
        (layer, 17, Rounding::None, "are to stay f32"),
        (layer, 16, Rounding::F16, "too few tokens"),
        (
            PagedAttention {
                kv: KvType::F32,
                ..layer
            },
            17,
            Rounding::F16,
            "it wants a cache of 16 bits",
        ),
        (
            PagedAttention { block_size: 8, ..layer },
            17,
            Rounding::F16,
            "blocks of 16, 32",
        ),
    ] {
        let plan = plan(layer, tokens, rounding);
        assert_eq!(plan.algorithm, PagedAlgorithm::Floats, "{plan}");
        assert!(plan.to_string().contains(why), "{plan}");
    }
    assert!(matches!(
        plan(layer, 1, Rounding::None).algorithm,
        PagedAlgorithm::Parts(_)
    ));
    // Long heads: on the matrix unit for any number of tokens, of few in parts.
    let long = PagedAttention {
        heads: 20,
        kv_heads: 1,
        head_dim: 576,
        ..layer
    };
    assert!(matches!(
        plan(long, 1, Rounding::F16).algorithm,
        PagedAlgorithm::Parts(split) if split.rounding == Rounding::F16 && split.parts > 1
    ));
    assert_eq!(plan(long, 200, Rounding::F16).algorithm, PagedAlgorithm::MatrixUnit);
    assert_eq!(plan(long, 1, Rounding::None).algorithm, PagedAlgorithm::Floats);
    let of_blocks = PagedAttention {
        kv: KvType::Q8_0,
        ..layer
    };
    assert_eq!(plan(of_blocks, 17, Rounding::F16).algorithm, PagedAlgorithm::MatrixUnit);
}
