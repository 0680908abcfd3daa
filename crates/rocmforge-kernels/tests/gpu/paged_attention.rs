//! Attention over a paged cache, and writing into one.

use crate::support::{Device, device};
use rocmforge_kernels::{Faults, Kernels, KvType, PagedOperands, PagedOptions, PagedShape, Q8Activations, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::{POISON, Rng, rng};

/// Sequences of these lengths in blocks that are dealt out in any order. Every sequence asks with its last tokens.
pub(crate) struct Case {
    pub(crate) shape: PagedShape,
    pub(crate) q: Vec<f32>,
    /// Keys and values, each `[sequence][token][kv_heads * head_dim]`.
    pub(crate) rows: [Vec<Vec<f32>>; 2],
    pub(crate) table: Vec<u32>,
    pub(crate) seq_of: Vec<u32>,
    pub(crate) positions: Vec<u32>,
    lengths: Vec<usize>,
}

impl Case {
    pub(crate) fn new(
        lengths: &[usize],
        queries: usize,
        [heads, kv_heads, head_dim]: [usize; 3],
        block_size: usize,
    ) -> Self {
        let mut random = rng((lengths.len() * 1000 + heads * head_dim + block_size) as u64);
        let needed = |length: &usize| length.div_ceil(block_size);
        let max_blocks = lengths.iter().map(needed).max().unwrap_or(1) + 1;
        let blocks = lengths.iter().map(needed).sum::<usize>() + 2;
        let mut free = shuffled(&mut random, blocks);
        let mut table = vec![u32::MAX; lengths.len() * max_blocks];
        for (seq, length) in lengths.iter().enumerate() {
            for n in 0..needed(length) {
                table[seq * max_blocks + n] = free.pop().expect("enough blocks");
            }
        }
        let mut asked: Vec<(u32, u32)> = (lengths.iter().enumerate())
            .flat_map(|(seq, &n)| (n - queries.min(n)..n).map(move |p| (seq as u32, p as u32)))
            .collect();
        let order = shuffled(&mut random, asked.len());
        asked = order.iter().map(|&n| asked[n as usize]).collect();
        let width = kv_heads * head_dim;
        let rows = |random: &mut Rng| -> Vec<Vec<f32>> { lengths.iter().map(|n| random.vec(n * width)).collect() };
        Self {
            shape: PagedShape {
                tokens: asked.len(),
                heads,
                kv_heads,
                head_dim,
                block_size,
                blocks,
                sequences: lengths.len(),
                max_blocks,
            },
            rows: [rows(&mut random), rows(&mut random)],
            q: random.vec_in(asked.len() * heads * head_dim, -2.0, 2.0),
            table,
            seq_of: asked.iter().map(|a| a.0).collect(),
            positions: asked.iter().map(|a| a.1).collect(),
            lengths: lengths.to_vec(),
        }
    }

    /// Slots of a sequence's tokens.
    pub(crate) fn slots(&self, seq: usize) -> Vec<u32> {
        let slot = |n: usize| {
            let block = self.table[seq * self.shape.max_blocks + n / self.shape.block_size] as usize;
            (block * self.shape.block_size + n % self.shape.block_size) as u32
        };
        (0..self.lengths[seq]).map(slot).collect()
    }

    /// A cache that the kernel itself has written; slots without a token hold NaN.
    pub(crate) fn cache(&self, d: &Device, kv: KvType, rows: &[Vec<f32>]) -> HipBuffer<u8> {
        let (slots, width) = (
            self.shape.blocks * self.shape.block_size,
            self.shape.kv_heads * self.shape.head_dim,
        );
        let nan = vec![0xFF; kv.byte_len(slots * width).expect("whole blocks")];
        let cache = HipBuffer::from_slice(d.stream(), &nan, "cache").expect("upload");
        let word = d.no_fault();
        for (seq, rows) in rows.iter().enumerate() {
            let (src, slot) = (d.up(rows), d.ids(&self.slots(seq)));
            d.write_rows(kv, &src, &slot, &cache, slots, width, d.faults(&word, 0))
                .unwrap();
        }
        assert_eq!(d.fault(&word), None);
        cache
    }

    pub(crate) fn run(&self, d: &Device, kv: KvType, options: PagedOptions) -> (Vec<f32>, Option<(u32, u32, u32)>) {
        self.run_in(d, kv, options, None)
    }

    /// With the keys in so many parts, if that is said.
    pub(crate) fn run_in(
        &self,
        d: &Device,
        kv: KvType,
        options: PagedOptions,
        parts: Option<usize>,
    ) -> (Vec<f32>, Option<(u32, u32, u32)>) {
        let mut found = Vec::new();
        let fault = self.with_operands(d, kv, |operands, faults| {
            match parts {
                Some(parts) => self.launch_parts(d, kv, operands, options, parts, faults),
                None => {
                    let result = (d.kernels).paged_attention(d.stream(), kv, operands, self.shape, options, faults);
                    result.unwrap();
                }
            }
            found = d.get(operands.out);
        });
        (found, fault)
    }

    /// Calls `launch` with operands on the device; returns the fault.
    pub(crate) fn with_operands(
        &self,
        d: &Device,
        kv: KvType,
        launch: impl FnOnce(PagedOperands<'_>, Faults<'_>),
    ) -> Option<(u32, u32, u32)> {
        self.with_operands_of(self, d, kv, launch)
    }

    /// The same with the caches of a case whose table is sound.
    pub(crate) fn with_operands_of(
        &self,
        sound: &Self,
        d: &Device,
        kv: KvType,
        launch: impl FnOnce(PagedOperands<'_>, Faults<'_>),
    ) -> Option<(u32, u32, u32)> {
        let (k, v) = (sound.cache(d, kv, &sound.rows[0]), sound.cache(d, kv, &sound.rows[1]));
        let (q, out) = (d.up(&self.q), d.out(self.q.len()));
        let (table, seq_of, positions) = (d.ids(&self.table), d.ids(&self.seq_of), d.ids(&self.positions));
        let word = d.no_fault();
        let operands = PagedOperands {
            q: &q,
            k_cache: &k,
            v_cache: &v,
            block_table: &table,
            seq_of: &seq_of,
            positions: &positions,
            sinks: None,
            out: &out,
        };
        launch(operands, d.faults(&word, 7));
        d.fault(&word)
    }

    /// The 8-bit activations are those of the result.
    pub(crate) fn launch_parts(
        &self,
        d: &Device,
        kv: KvType,
        operands: PagedOperands<'_>,
        options: PagedOptions,
        parts: usize,
        faults: Faults<'_>,
    ) {
        let out = operands.out;
        let partial = d.out(Kernels::paged_partial_len(self.shape, parts).expect("fits"));
        let [m, width] = [self.shape.tokens, self.shape.heads * self.shape.head_dim];
        let [found, expected] = [0, 1].map(|_| {
            let bytes = vec![0xA5u8; Q8Activations::byte_len(m, width).expect("whole blocks")];
            HipBuffer::from_slice(d.stream(), &bytes, "q8").expect("upload")
        });
        let (s, to) = (d.stream(), Some(found.clone()));
        d.kernels
            .paged_attention_split(s, kv, operands, self.shape, options, parts, &partial, to, faults)
            .unwrap();
        d.kernels.quantize_q8(s, out, expected.clone(), [m, width]).unwrap();
        let [found, expected] = [found, expected].map(|bytes| bytes.to_vec(s).expect("download"));
        assert_eq!(found, expected, "activations of 8 bits");
    }

    pub(crate) fn expected(&self, kv: KvType, options: PagedOptions) -> Vec<f64> {
        let s = self.shape;
        let width = s.kv_heads * s.head_dim;
        let [k, v] = self.rows.each_ref().map(|rows| {
            let mut cache = vec![f64::NAN; s.blocks * s.block_size * width];
            for (seq, rows) in rows.iter().enumerate() {
                for (row, slot) in rows.chunks(width).zip(self.slots(seq)) {
                    cache[slot as usize * width..][..width].copy_from_slice(&reference::kv_rounded(kv, row));
                }
            }
            cache
        });
        reference::paged_attention(
            &self.q,
            &k,
            &v,
            &self.table,
            &self.seq_of,
            &self.positions,
            None,
            s,
            options,
        )
    }

    fn check(&self, d: &Device, kv: KvType, options: PagedOptions) {
        let (actual, fault) = self.run(d, kv, options);
        assert_eq!(fault, None);
        let dims = [self.shape.tokens, self.shape.heads, self.shape.head_dim];
        assert_close(&actual, &self.expected(kv, options), &dims, Tolerance::Absolute(5e-6));
    }
}

impl Case {
    fn check_parts(&self, d: &Device, kv: KvType, options: PagedOptions, parts: usize) {
        let (actual, fault) = self.run_in(d, kv, options, Some(parts));
        assert_eq!(fault, None);
        let dims = [self.shape.tokens, self.shape.heads, self.shape.head_dim];
        let expected = self.expected(kv, options);
        assert_close(&actual, &expected, &dims, Tolerance::Absolute(5e-6));
    }
}

/// Types of caches whose keys are divided into parts.
const IN_PARTS: [KvType; 3] = [KvType::F16, KvType::Bf16, KvType::Q8_0];

#[test]
fn keys_in_parts_give_the_same() {
    let d = device();
    // One, two, three, four and eight heads to a head of keys.
    for (heads, head_dim, block_size) in [
        ([1, 1], 64, 16),
        ([4, 2], 128, 5),
        ([9, 3], 64, 32),
        ([8, 2], 256, 16),
        ([8, 1], 128, 256),
    ] {
        let [heads, kv_heads] = heads;
        let case = Case::new(&[300, 1, 65], 2, [heads, kv_heads, head_dim], block_size);
        for kv in IN_PARTS {
            for parts in [1, 2, 5, 33] {
                case.check_parts(&d, kv, PagedOptions::new(head_dim), parts);
            }
        }
    }
    for length in [1, 63, 64, 65, 127, 128, 129, 1000] {
        let case = Case::new(&[length], 1, [2, 1, 64], 16);
        for kv in IN_PARTS {
            case.check_parts(&d, kv, PagedOptions::new(64), 4);
        }
    }
}

#[test]
fn parts_see_the_window_and_the_cap() {
    let d = device();
    let case = Case::new(&[200, 17], 3, [4, 1, 64], 16);
    for window in [Some(1), Some(31), Some(100), Some(200), Some(usize::MAX)] {
        for softcap in [None, Some(0.5)] {
            let options = PagedOptions {
                scale: 0.2,
                window,
                softcap,
            };
            for kv in IN_PARTS {
                case.check_parts(&d, kv, options, 3);
            }
        }
    }
}

#[test]
fn indices_out_of_range_are_the_faults_of_the_unsplit_kernel() {
    let d = device();
    let options = PagedOptions::new(64);
    for spoil in [0, 1, 2] {
        let mut case = Case::new(&[150, 40], 1, [4, 2, 64], 16);
        match spoil {
            0 => case.seq_of[1] = 9,
            1 => case.positions[0] = 100_000,
            // The first key behind the sequence, in a block that it does not have.
            _ => {
                let asks = case.seq_of.iter().position(|&seq| seq == 0).expect("sequence 0 asks");
                case.positions[asks] = 160;
            }
        }
        for kv in IN_PARTS {
            let (whole, fault) = case.run(&d, kv, options);
            let (parts, same) = case.run_in(&d, kv, options, Some(3));
            assert_eq!(same, fault);
            assert!(fault.is_some());
            let nan = |values: &[f32]| values.iter().map(|v| v.is_nan()).collect::<Vec<_>>();
            assert_eq!(nan(&parts), nan(&whole), "{spoil} {kv:?}");
        }
    }
}

#[test]
fn parts_follow_from_the_shape_and_the_card() {
    let d = device();
    let shape = |tokens, head_dim, max_blocks| PagedShape {
        tokens,
        heads: 32,
        kv_heads: 8,
        head_dim,
        block_size: 16,
        blocks: 600,
        sequences: 1,
        max_blocks,
    };
    let parts = |kv, shape| d.kernels.paged_parts(kv, shape);
    let resident = 2 * d.lease().backend().device().multiprocessors as usize;
    let long = shape(1, 128, 512);
    for kv in IN_PARTS {
        assert_eq!(parts(kv, long), Some(resident.div_ceil(8)).filter(|&n| n > 1));
    }
    assert_eq!(parts(KvType::F16, shape(1, 128, 4)), None, "64 keys are one part");
    assert_eq!(parts(KvType::F32, long), None);
    assert_eq!(parts(KvType::F16, shape(1, 96, 512)), None);
    assert_eq!(parts(KvType::F16, shape(9, 128, 512)), None);
    assert_eq!(Kernels::paged_partial_len(long, 3), Some(3 * 32 * 130));
}

fn shuffled(random: &mut Rng, n: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        order.swap(i, random.below(i + 1));
    }
    order
}

#[test]
fn test_paged_attention_kernel_compilation() {
    let d = device();
    for kv in KvType::ALL {
        for size in [64, 128, 256] {
            let name: &'static str = format!("paged_attention_{}_d{size}", kv.name()).leak();
            d.kernels.kernel("paged_attention", name).unwrap();
        }
    }
}

#[test]
fn test_paged_attention_single_block() {
    let d = device();
    for length in [1, 2, 7, 16] {
        let case = Case::new(&[length], 1, [4, 4, 32], 16);
        for kv in KvType::ALL {
            case.check(&d, kv, PagedOptions::new(32));
        }
    }
}

#[test]
fn test_paged_attention_multiple_blocks() {
    let d = device();
    let case = Case::new(&[100, 33, 1, 64, 129], 3, [2, 2, 64], 16);
    for kv in KvType::ALL {
        case.check(&d, kv, PagedOptions::new(64));
    }
}

#[test]
fn test_paged_attention_mqa() {
    let d = device();
    for [heads, kv_heads] in [[8, 1], [9, 3], [4, 2]] {
        let case = Case::new(&[40, 5], 2, [heads, kv_heads, 16], 8);
        case.check(&d, KvType::F32, PagedOptions::new(16));
    }
}

#[test]
fn test_paged_attention_block_boundary() {
    let d = device();
    for block_size in [1, 2, 3, 16, 31, 32, 33, 255, 256] {
        let n = block_size;
        let lengths: Vec<usize> = [n - 1, n, n + 1, 2 * n, 2 * n + 1]
            .into_iter()
            .filter(|&n| n > 0)
            .collect();
        Case::new(&lengths, 2, [1, 1, 8], n).check(&d, KvType::F32, PagedOptions::new(8));
    }
}

#[test]
fn a_context_of_8192_tokens() {
    let d = device();
    let case = Case::new(&[8192], 1, [3, 1, 64], 32);
    case.check(&d, KvType::F16, PagedOptions::new(64));
    let window = Some(4096);
    case.check(
        &d,
        KvType::F16,
        PagedOptions {
            window,
            ..PagedOptions::new(64)
        },
    );
}

#[test]
fn window_and_cap_change_the_scores() {
    let d = device();
    let case = Case::new(&[90, 17], 17, [2, 1, 32], 16);
    for window in [None, Some(1), Some(2), Some(31), Some(33), Some(90), Some(usize::MAX)] {
        for softcap in [None, Some(0.5), Some(50.0)] {
            let options = PagedOptions {
                scale: 0.7,
                window,
                softcap,
            };
            case.check(&d, KvType::F32, options);
        }
    }
}

#[test]
fn shuffled_blocks_are_the_same_as_contiguous_ones() {
    let d = device();
    let mut case = Case::new(&[75, 20], 4, [4, 2, 32], 16);
    let options = PagedOptions::new(32);
    let (paged, _) = case.run(&d, KvType::F32, options);
    // Sequence 0 in blocks 0 to 4, sequence 1 in 5 and 6; the same work in the same order, so the same bits.
    let mut next = 0..;
    for entry in case.table.iter_mut().filter(|entry| **entry != u32::MAX) {
        *entry = next.next().expect("endless");
    }
    let (contiguous, _) = case.run(&d, KvType::F32, options);
    assert_eq!(paged, contiguous);
}

#[test]
fn shared_heads_are_the_same_as_replicated_ones() {
    let d = device();
    let shared = Case::new(&[50, 9], 3, [6, 2, 16], 8);
    let mut replicated = Case::new(&[50, 9], 3, [6, 6, 16], 8);
    replicated.q.clone_from(&shared.q);
    replicated.table.clone_from(&shared.table);
    replicated.seq_of.clone_from(&shared.seq_of);
    replicated.positions.clone_from(&shared.positions);
    replicated.rows = shared.rows.each_ref().map(|rows| {
        rows.iter()
            .map(|row| reference::kv_replicate(row, [6, 2], 16))
            .collect()
    });
    let options = PagedOptions::new(16);
    assert_eq!(
        shared.run(&d, KvType::F32, options),
        replicated.run(&d, KvType::F32, options)
    );
}

#[test]
fn a_sequence_position_or_block_that_does_not_exist_is_a_fault_of_its_token() {
    let d = device();
    let good = Case::new(&[40, 40], 4, [2, 1, 16], 8);
    let options = PagedOptions {
        window: Some(12),
        ..PagedOptions::new(16)
    };
    let run = |change: &dyn Fn(&mut Case), bad: &[usize], fault| {
        let mut case = Case::new(&[40, 40], 4, [2, 1, 16], 8);
        change(&mut case);
        // The caches are written through the sound table.
        let (k, v) = (
            good.cache(&d, KvType::F32, &good.rows[0]),
            good.cache(&d, KvType::F32, &good.rows[1]),
        );
        let (q, out) = (d.up(&case.q), d.out(case.q.len()));
        let (table, seq_of, positions) = (d.ids(&case.table), d.ids(&case.seq_of), d.ids(&case.positions));
        let word = d.no_fault();
        let operands = PagedOperands {
            q: &q,
            k_cache: &k,
            v_cache: &v,
            block_table: &table,
            seq_of: &seq_of,
            positions: &positions,
            sinks: None,
            out: &out,
        };
        d.kernels
            .paged_attention(
                d.stream(),
                KvType::F32,
                operands,
                case.shape,
                options,
                d.faults(&word, 7),
            )
            .unwrap();
        assert_eq!(d.fault(&word), fault);
        for (token, values) in d.get(&out).chunks(32).enumerate() {
            let nan = |v: &f32| v.is_nan() && v.to_bits() != POISON.to_bits();
            assert_eq!(values.iter().all(nan), bad.contains(&token), "token {token}");
            assert_eq!(values.iter().any(|v| v.is_nan()), bad.contains(&token), "token {token}");
        }
    };
    run(&|_| (), &[], None);
    run(
        &|case| (case.seq_of[5], case.seq_of[2]) = (2, u32::MAX),
        &[2, 5],
        Some((7, 2, u32::MAX)),
    );
    let end = (good.shape.max_blocks * 8) as u32;
    run(&|case| case.positions[3] = end, &[3], Some((7, 3, end)));
    run(&|case| case.positions[3] = u32::MAX, &[3], Some((7, 3, u32::MAX)));
    // Keys 24 to 31 of sequence 1 are seen by all of its queries (36 to 39), keys 16 to 23 by none.
    let column = good.shape.max_blocks;
    let (others, of_one): (Vec<usize>, Vec<usize>) = (0..8).partition(|&t| good.seq_of[t] == 0);
    assert_eq!(others.len(), 4);
    let first = of_one[0] as u32;
    let blocks = good.shape.blocks as u32;
    run(
        &|case| case.table[column + 3] = blocks,
        &of_one,
        Some((7, first, blocks)),
    );
    run(&|case| case.table[column + 2] = blocks, &[], None);
}

#[test]
fn test_paged_attention_invalid_input() {
    let d = device();
    let bytes = |n: usize| HipBuffer::from_slice(d.stream(), &vec![0u8; n], "cache").expect("upload");
    let shape = PagedShape {
        tokens: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        block_size: 4,
        blocks: 3,
        sequences: 1,
        max_blocks: 2,
    };
    let (q, out, cache) = (d.up(&[0.0; 64]), d.out(64), bytes(3 * 4 * 2 * 8 * 4));
    let (table, two) = (d.ids(&[0, 1]), d.ids(&[0, 0]));
    let word = d.no_fault();
    let operands = PagedOperands {
        q: &q,
        k_cache: &cache,
        v_cache: &cache,
        block_table: &table,
        seq_of: &two,
        positions: &two,
        sinks: None,
        out: &out,
    };
    let refused = |operands, shape, options, text: &str| {
        let faults = d.faults(&word, 1);
        let result = d
            .kernels
            .paged_attention(d.stream(), KvType::F32, operands, shape, options, faults);
        let error = result.expect_err(text).to_string();
        assert!(error.contains(text), "{error:?} does not say {text:?}");
    };
    let usual = PagedOptions::new(8);
    let with = |change: &dyn Fn(&mut PagedShape)| {
        let mut shape = shape;
        change(&mut shape);
        shape
    };
    refused(operands, with(&|s| s.kv_heads = 3), usual, "4 heads cannot share 3");
    refused(
        operands,
        with(&|s| s.head_dim = 644),
        usual,
        "head_dim is 644; it must be 1 to 640",
    );
    refused(
        operands,
        with(&|s| s.head_dim = 6),
        usual,
        "head_dim must be a multiple of 4",
    );
    refused(operands, with(&|s| s.block_size = 0), usual, "block_size is 0");
    refused(
        operands,
        with(&|s| s.block_size = 257),
        usual,
        "block_size is 257; it must be 1 to 256",
    );
    refused(operands, with(&|s| s.blocks = 4), usual, "k_cache has 768 elements");
    refused(operands, with(&|s| s.tokens = 3), usual, "q has 64 elements");
    refused(
        operands,
        with(&|s| s.sequences = 2),
        usual,
        "block_table has 2 elements",
    );
    refused(
        operands,
        shape,
        PagedOptions {
            window: Some(0),
            ..usual
        },
        "window is 0",
    );
    refused(
        operands,
        shape,
        PagedOptions {
            softcap: Some(0.0),
            ..usual
        },
        "softcap is 0",
    );
    refused(
        operands,
        shape,
        PagedOptions {
            scale: f32::NAN,
            ..usual
        },
        "scale is NaN",
    );
    refused(PagedOperands { out: &q, ..operands }, shape, usual, "out and q overlap");
    let odd = bytes(3 * 4 * 2 * 8 * 4 + 1);
    let odd = odd.view(1..odd.len()).expect("inside");
    refused(
        PagedOperands {
            v_cache: &odd,
            ..operands
        },
        shape,
        usual,
        "the address of v_cache is",
    );
    assert!(
        d.get(&out).iter().all(|v| v.to_bits() == POISON.to_bits()),
        "nothing ran"
    );
}
