//! Attention over a paged cache of long heads on the matrix unit, whole and in parts: its definition in f64, and properties that hold to the bit.

use crate::paged_attention::Case;
use crate::support::{Device, device_with, refused};
use rocmforge_kernels::{Kernels, KvType, PagedOperands, PagedOptions, Q8Activations};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::compare::{Tolerance, assert_close};

type Fault = Option<(u32, u32, u32)>;

/// One launch, or so many parts and the launch that joins them.
const WAYS: [Option<usize>; 3] = [None, Some(2), Some(9)];

/// The result, and the fault. Activations of 8 bits, of parts, are those of the result.
fn run(
    d: &Device,
    case: &Case,
    sound: &Case,
    kv: KvType,
    options: PagedOptions,
    parts: Option<usize>,
) -> (Vec<f32>, Fault) {
    let mut found = Vec::new();
    let fault = case.with_operands_of(sound, d, kv, |operands, faults| {
        let (k, s, shape) = (&d.kernels, d.stream(), case.shape);
        let Some(parts) = parts else {
            k.paged_attention16(s, kv, operands, shape, options, faults).unwrap();
            found = d.get(operands.out);
            return;
        };
        let [m, width] = [shape.tokens, shape.heads * shape.head_dim];
        let partial = d.out(Kernels::paged_partial_len(shape, parts).expect("fits"));
        let [to, expected] = [0, 1].map(|_| {
            let bytes = vec![0xA5u8; Q8Activations::byte_len(m, width).expect("whole blocks")];
            HipBuffer::from_slice(s, &bytes, "q8").expect("upload")
        });
        let q8 = Some(to.clone());
        k.paged_attention16_split(s, kv, operands, shape, options, parts, &partial, q8, faults)
            .unwrap();
        k.quantize_q8(s, operands.out, expected.clone(), [m, width]).unwrap();
        let [to, expected] = [to, expected].map(|bytes| bytes.to_vec(s).expect("download"));
        assert!(to == expected, "activations of 8 bits");
        found = d.get(operands.out);
    });
    (found, fault)
}

fn check(d: &Device, case: &Case, kv: KvType, options: PagedOptions) {
    let expected = case.expected(kv, options);
    let s = case.shape;
    // Queries and weights of 11 bits, those of bf16 of 8.
    let bits = if kv == KvType::Bf16 { 8.0 } else { 1.0 };
    for parts in WAYS {
        if parts.is_some() && !s.head_dim.is_multiple_of(32) {
            continue;
        }
        let (found, fault) = run(d, case, case, kv, options, parts);
        assert_eq!(fault, None);
        let errors: f64 = found
            .iter()
            .zip(&expected)
            .map(|(&f, w)| (f64::from(f) - w).powi(2))
            .sum();
        let whole: f64 = expected.iter().map(|w| w * w).sum();
        let bound = 4e-7 * bits * bits * whole;
        assert!(
            errors <= bound,
            "{s:?} {kv:?} {options:?} {parts:?}: NMSE {:.1e}",
            errors / whole
        );
        let dims = [s.tokens, s.heads, s.head_dim];
        assert_close(&found, &expected, &dims, Tolerance::Absolute(1.5e-3 * bits));
    }
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

#[test]
fn chunks_of_prompts_in_every_type() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    for (heads, kv_heads, head_dim, block_size, kv) in [
        (4, 4, 264, 16, KvType::F16),
        (5, 1, 576, 32, KvType::F16),
        (16, 1, 576, 16, KvType::Q8_0),
        (6, 2, 512, 64, KvType::Q8_0),
        (3, 1, 512, 16, KvType::Bf16),
        (66, 2, 320, 128, KvType::Bf16),
    ] {
        let case = Case::new(&[40, 1, 33], 9, [heads, kv_heads, head_dim], block_size).in_order();
        check(&d, &case, kv, PagedOptions::new(head_dim));
    }
}

#[test]
fn lengths_and_chunks_around_the_tiles() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    for (length, queries) in [(1, 1), (15, 2), (16, 16), (17, 1), (33, 32), (65, 33), (150, 3)] {
        let case = Case::new(&[length], queries, [1, 1, 288], 16).in_order();
        check(&d, &case, KvType::F16, PagedOptions::new(288));
    }
}

#[test]
fn the_window_and_the_cap() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    let case = Case::new(&[90, 17], 21, [2, 1, 288], 16).in_order();
    for window in [Some(1), Some(16), Some(33), Some(usize::MAX)] {
        for (scale, softcap) in [(0.1, None), (0.1, Some(0.5)), (-0.05, None)] {
            let options = PagedOptions { scale, window, softcap };
            check(&d, &case, KvType::F16, options);
        }
    }
}

/// Latent attention has one cache for both, which is read once.
#[test]
fn keys_that_are_the_values_give_the_bits_of_two_caches() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    for kv in [KvType::F16, KvType::Q8_0] {
        let mut case = Case::new(&[50, 20], 4, [20, 1, 576], 16);
        case.rows[1] = case.rows[0].clone();
        let options = PagedOptions::new(576);
        let (apart, _) = run(&d, &case, &case, kv, options, None);
        let mut same = Vec::new();
        case.with_operands(&d, kv, |operands, faults| {
            let operands = PagedOperands {
                v_cache: operands.k_cache,
                ..operands
            };
            d.kernels
                .paged_attention16(d.stream(), kv, operands, case.shape, options, faults)
                .unwrap();
            same = d.get(operands.out);
        });
        assert_eq!(bits(&same), bits(&apart), "{kv:?}");
    }
}

/// What a token gets depends on its own sequence alone: any order, any neighbours.
#[test]
fn any_order_of_tokens_gives_the_same_bits() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    let options = PagedOptions {
        window: Some(40),
        ..PagedOptions::new(288)
    };
    let shuffled = Case::new(&[60, 1, 35], 12, [3, 1, 288], 16);
    let (seq_of, positions) = (shuffled.seq_of.clone(), shuffled.positions.clone());
    let (apart, _) = run(&d, &shuffled, &shuffled, KvType::F16, options, None);
    let ordered = shuffled.in_order();
    let (together, _) = run(&d, &ordered, &ordered, KvType::F16, options, None);
    for (token, asked) in seq_of.iter().zip(&positions).enumerate() {
        let place = (ordered.seq_of.iter().zip(&ordered.positions)).position(|other| other == asked);
        let place = place.expect("the same tokens");
        let [a, b] = [(&apart, token), (&together, place)].map(|(all, t)| bits(&all[t * 3 * 288..][..3 * 288]));
        assert_eq!(a, b, "token {token}");
    }
}

/// The faults of the kernel in f32, and NaN for the same tokens.
#[test]
fn indices_out_of_range_are_faults() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    for window in [None, Some(20)] {
        let options = PagedOptions {
            window,
            ..PagedOptions::new(288)
        };
        for spoil in 0..4 {
            let made = || Case::new(&[60, 40], 30, [2, 2, 288], 16).in_order();
            let (mut case, sound) = (made(), made());
            match spoil {
                0 => case.seq_of[7] = 9,
                1 => case.positions[33] = 100_000,
                // A block that some tokens of sequence 0 see, and with the window not the last ones.
                2 => case.table[2] = 77,
                _ => case.table[1] = u32::MAX,
            }
            let mut expected = Vec::new();
            let fault = case.with_operands_of(&sound, &d, KvType::F16, |o, faults| {
                (d.kernels
                    .paged_attention(d.stream(), KvType::F16, o, case.shape, options, faults))
                .unwrap();
                expected = d.get(o.out).iter().map(|v| v.is_nan()).collect();
            });
            assert!(fault.is_some(), "{spoil}");
            for parts in WAYS {
                let (found, seen) = run(&d, &case, &sound, KvType::F16, options, parts);
                let found: Vec<bool> = found.iter().map(|v| v.is_nan()).collect();
                assert_eq!((found, seen), (expected.clone(), fault), "{window:?} {spoil} {parts:?}");
            }
        }
    }
}

#[test]
fn a_value_that_is_not_finite_stays_with_its_sequence() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    let made = || Case::new(&[40, 40], 40, [1, 1, 288], 16).in_order();
    let (mut case, sound) = (made(), made());
    case.rows[1][0][39 * 288] = f32::INFINITY;
    for parts in WAYS {
        let of = |case| run(&d, case, case, KvType::F16, PagedOptions::new(288), parts).0;
        let (found, expected) = (of(&case), of(&sound));
        assert!(!found[39 * 288].is_finite());
        assert_eq!(bits(&found[40 * 288..]), bits(&expected[40 * 288..]));
    }
}

#[test]
fn parts_are_for_few_tokens() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    let parts = |lengths: &[usize], queries, dims, kv| {
        let case = Case::new(lengths, queries, dims, 16);
        d.kernels.paged_parts16(kv, case.shape).unwrap()
    };
    let latent = [20, 1, 576];
    assert!(parts(&[4000], 1, latent, KvType::F16).is_some_and(|parts| parts > 8));
    assert_eq!(parts(&[80], 1, latent, KvType::F16), None, "too few keys for two parts");
    assert_eq!(parts(&[4000], 1, latent, KvType::F32), None);
    assert_eq!(parts(&[4000], 1, [20, 1, 256], KvType::F16), None);
    assert_eq!(parts(&[4000], 129, latent, KvType::F16), None);
}

#[test]
fn what_the_kernels_do_not_take_is_refused() {
    let d = device_with!("paged_wide16", "paged_wide16_f16");
    for (head_dim, block_size, kv, text) in [
        (268, 16, KvType::F16, "head_dim must be a multiple of 8"),
        (580, 16, KvType::F16, "head_dim"),
        (288, 8, KvType::F16, "block_size must be a power of two from 16 on"),
        (288, 48, KvType::Q8_0, "block_size must be a power of two from 16 on"),
        (288, 16, KvType::F32, "f32"),
    ] {
        let case = Case::new(&[40], 20, [2, 1, head_dim], block_size);
        assert!(!d.kernels.has_paged_attention16(kv, case.shape).unwrap());
        case.with_operands(&d, kv, |operands, faults| {
            let options = PagedOptions::new(head_dim);
            refused(
                d.kernels
                    .paged_attention16(d.stream(), kv, operands, case.shape, options, faults),
                text,
            );
        });
    }
    for (head_dim, parts, text) in [
        (288, 0, "parts"),
        (288, 1, "there must be several parts"),
        (288, 257, "parts"),
        (264, 2, "head_dim must be a multiple of 32"),
    ] {
        let case = Case::new(&[40], 20, [2, 1, head_dim], 16);
        let partial = d.out(1);
        case.with_operands(&d, KvType::F16, |operands, faults| {
            let options = PagedOptions::new(head_dim);
            let s = d.stream();
            let result = (d.kernels).paged_attention16_split(
                s,
                KvType::F16,
                operands,
                case.shape,
                options,
                parts,
                &partial,
                None,
                faults,
            );
            refused(result.map(drop), text);
        });
    }
}
