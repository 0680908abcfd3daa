//! Types of paged caches: what is written, what attention reads, and what is refused.

use crate::paged_attention::Case;
use crate::support::{device, refused};
use rocmforge_kernels::{Kernels, KvType, PagedOperands, PagedOptions, reference};
use rocmforge_runtime::HipBuffer;
use rocmforge_testkit::data::rng;

/// Rows of `width`, with values at the ends of what the types hold.
fn rows_to_write(width: usize) -> Vec<f32> {
    let mut src = rng(width as u64).vec_in(4 * width, -3.0, 3.0);
    src[0] = 65_520.0;
    src[width] = 1.0 + 1.0 / 2048.0;
    src[2 * width] = 1e-7;
    if width >= 64 {
        // Blocks of zeros, of one magnitude with ties, of numbers below the normal ones.
        src[2 * width..][..32].fill(0.0);
        let ties = src[2 * width + 32..][..32].iter_mut().zip(0..);
        ties.for_each(|(x, i)| *x = if i == 0 { 127.0 } else { i as f32 - 16.5 });
        src[3 * width..][..32].fill(-3e-39);
        src[3 * width + 32..][..32].fill(1e-8);
    }
    src
}

#[test]
fn written_rows_are_rounded_and_the_others_untouched() {
    let d = device();
    for width in [1, 3, 31, 32, 33, 64, 96, 127, 129, 160, 1024, 1025, 1056] {
        let src = rows_to_write(width);
        for kv in KvType::ALL {
            let Some(row) = kv.byte_len(width) else { continue };
            let before: Vec<u8> = (0..6 * row).map(|n| n as u8).collect();
            let cache = HipBuffer::from_slice(d.stream(), &before, "cache").expect("upload");
            let word = d.no_fault();
            let (from, slots) = (d.up(&src), d.ids(&[5, 6, 0, 3]));
            d.write_rows(kv, &from, &slots, &cache, 6, width, d.faults(&word, 3))
                .unwrap();
            assert_eq!(d.fault(&word), Some((3, 1, 6)));
            let after = cache.to_vec(d.stream()).expect("download");
            for (slot, token) in [
                (5, Some(0)),
                (0, Some(2)),
                (3, Some(3)),
                (1, None),
                (2, None),
                (4, None),
            ] {
                let bytes = &after[slot * row..][..row];
                let Some(token) = token else {
                    assert_eq!(bytes, &before[slot * row..][..row], "slot {slot}");
                    continue;
                };
                let x = &src[token * width..][..width];
                if kv == KvType::Q8_0 {
                    assert_eq!(bytes, reference::quantize_q8_0(x), "slot {slot} of {width}");
                }
                let (found, wanted) = (reference::kv_values(kv, bytes), reference::kv_rounded(kv, x));
                assert_eq!(found, wanted, "slot {slot} of {width}, {kv:?}");
            }
        }
    }
}

/// A cache in q8_0 may begin at any multiple of two bytes.
#[test]
fn blocks_of_q8_0_at_two_bytes() {
    let d = device();
    let (kv, word) = (KvType::Q8_0, d.no_fault());
    let case = Case::new(&[70], 2, [2, 1, 64], 16);
    let bytes = kv.byte_len(case.shape.blocks * 16 * 64).expect("whole blocks");
    let [k, v] = [0, 1].map(|_| {
        let whole = HipBuffer::from_slice(d.stream(), &vec![0xFFu8; bytes + 2], "cache").expect("upload");
        whole.view(2..bytes + 2).expect("inside")
    });
    for (cache, rows) in [(&k, &case.rows[0]), (&v, &case.rows[1])] {
        let (src, slots) = (d.up(&rows[0]), d.ids(&case.slots(0)));
        let faults = d.faults(&word, 0);
        d.write_rows(kv, &src, &slots, cache, bytes / 68, 64, faults).unwrap();
    }
    let (q, table) = (d.up(&case.q), d.ids(&case.table));
    let (seq_of, positions) = (d.ids(&case.seq_of), d.ids(&case.positions));
    for parts in [None, Some(3)] {
        let out = d.out(case.q.len());
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
        let (options, faults) = (PagedOptions::new(64), d.faults(&word, 0));
        match parts {
            None => (d.kernels)
                .paged_attention(d.stream(), kv, operands, case.shape, options, faults)
                .unwrap(),
            Some(parts) => case.launch_parts(&d, kv, operands, options, parts, faults),
        }
        d.close(&out, &case.expected(kv, options), &[2, 2, 64], 5e-6);
    }
    assert_eq!(d.fault(&word), None);
}

/// Infinite values and NaN stay such in every type; in q8_0 their whole block does.
#[test]
fn values_that_are_not_finite_stay_so() {
    let d = device();
    let word = d.no_fault();
    for kv in KvType::ALL {
        let mut src = rng(3).vec(4 * 64);
        (src[5], src[64 + 40], src[128], src[192 + 63]) = (f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e9);
        let cache = vec![0u8; kv.byte_len(src.len()).expect("whole blocks")];
        let cache = HipBuffer::from_slice(d.stream(), &cache, "cache").expect("upload");
        let (from, slots, faults) = (d.up(&src), d.ids(&[0, 1, 2, 3]), d.faults(&word, 0));
        d.write_rows(kv, &from, &slots, &cache, 4, 64, faults).unwrap();
        let found = reference::kv_values(kv, &cache.to_vec(d.stream()).expect("download"));
        for (place, &found) in found.iter().enumerate() {
            let (row, column) = (place / 64, place % 64);
            let at = [5, 40, 0, 63][row];
            let huge = row == 3 && matches!(kv, KvType::F32 | KvType::Bf16);
            let spoiled = match kv {
                KvType::Q8_0 => column / 32 == at / 32,
                _ => column == at && !huge,
            };
            assert_eq!(found.is_finite(), !spoiled, "{kv:?} {row} {column}: {found}");
        }
    }
    // A cache of 0xFF is NaN for attention too.
    let mut case = Case::new(&[40], 1, [1, 1, 64], 16);
    case.rows[1][0][39 * 64 + 3] = f32::INFINITY;
    for kv in KvType::ALL {
        let (found, fault) = case.run(&d, kv, PagedOptions::new(64));
        assert_eq!(fault, None);
        assert!(
            !found[3].is_finite() && found[33..].iter().all(|v| v.is_finite()),
            "{kv:?}"
        );
    }
}

#[test]
fn types_and_widths_without_a_kernel_are_refused() {
    let d = device();
    let word = d.no_fault();
    let cache = HipBuffer::from_slice(d.stream(), &[0u8; 4 * 36], "cache").expect("upload");
    let (src, slots) = (d.up(&[0.0; 4 * 36]), d.ids(&[0, 1, 2, 3]));
    refused(
        d.write_rows(KvType::Q8_0, &src, &slots, &cache, 4, 36, d.faults(&word, 0)),
        "cols must be whole blocks of the type",
    );
    let case = Case::new(&[40], 1, [2, 1, 64], 16);
    case.with_operands(&d, KvType::F32, |operands, faults| {
        let partial = d.out(Kernels::paged_partial_len(case.shape, 2).expect("fits"));
        let (s, options) = (d.stream(), PagedOptions::new(64));
        let result =
            (d.kernels).paged_attention_split(s, KvType::F32, operands, case.shape, options, 2, &partial, None, faults);
        refused(result, "it has no kernel for f32, only for f16, bf16, q8_0");
    });
    let case = Case::new(&[40], 1, [2, 1, 36], 16);
    case.with_operands(&d, KvType::F32, |operands, faults| {
        let (s, options) = (d.stream(), PagedOptions::new(36));
        let result = (d.kernels).paged_attention(s, KvType::Q8_0, operands, case.shape, options, faults);
        refused(result, "head_dim must be whole blocks of the cache's type");
    });
}
