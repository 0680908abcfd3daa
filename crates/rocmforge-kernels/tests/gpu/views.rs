//! Products of views, of experts' matrices, rows of several tables.

use crate::support::{device, refused};
use crate::weights::{blocks, up};
use rocmforge_kernels::{
    BesideExperts, ExpertStack, ExpertTiles, ExpertUnit, FloatType, GluKind, HalfRows, Q8Activations, ViewStrides,
    ViewsShape, WeightType, reference,
};
use rocmforge_runtime::{Elems, HipBuffer};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::rng;

#[test]
fn views_that_do_not_fit_are_refused() {
    let d = device();
    let (a, b, y) = (d.up(&[0.0; 24]), up(&d, &[0; 96]), d.out(16));
    let shape = ViewsShape {
        outer: 1,
        heads: 2,
        b_outer: 1,
        b_heads: 1,
        m: 2,
        n: 4,
        k: 6,
        b_transposed: true,
    };
    let (sa, sb) = (
        ViewStrides {
            outer: 24,
            head: 12,
            row: 6,
        },
        ViewStrides {
            outer: 24,
            head: 24,
            row: 6,
        },
    );
    let refused = |a_strides, b_strides, ty, shape, text| {
        let (a, b) = ((&a, a_strides), (ty, &b, b_strides));
        refused(d.kernels.matmul_views(d.stream(), a, b, None, &y, shape), text);
    };
    let f32 = FloatType::F32;
    refused(
        ViewStrides { head: 13, ..sa },
        sb,
        f32,
        shape,
        "a has 24 elements; its strides [24, 13, 6, 1]",
    );
    refused(sa, ViewStrides { row: 7, ..sb }, f32, shape, "b has 24 elements");
    refused(ViewStrides { row: 5, ..sa }, sb, f32, shape, "rows must not overlap");
    refused(
        sa,
        sb,
        f32,
        ViewsShape { b_heads: 3, ..shape },
        "must divide a's (3 and 2)",
    );
    refused(
        sa,
        sb,
        FloatType::F16,
        ViewsShape {
            b_transposed: false,
            ..shape
        },
        "b must be transposed",
    );
    refused(sa, sb, f32, ViewsShape { m: 1, ..shape }, "y has 16 elements");
}

#[test]
fn an_expert_that_is_not_there_is_a_fault() {
    let d = device();
    for ty in WeightType::ALL {
        let k = if ty.block_len() == 1 { 65 } else { ty.block_len() * 3 };
        for (experts, n, pairs, share) in [(5, 33, 6, 1), (4, 70, 6, 3)] {
            let mut random = rng((n * k + share) as u64);
            let w = blocks(ty, &mut random, experts * n * k / ty.block_len());
            let x = random.vec(pairs / share * k);
            let mut ids: Vec<u32> = (0..pairs).map(|_| random.below(experts) as u32).collect();
            let (at, id) = (pairs - 1, experts as u32 + 2);
            ids[at] = id;
            let (dw, dx, di) = (up(&d, &w), d.up(&x), d.ids(&ids));
            let (y, word) = (d.out(pairs * n), d.no_fault());
            let faults = d.faults(&word, 1);
            d.kernels
                .matmul_id(d.stream(), ty, &dw, &dx, &di, &y, [experts, n, k], share, faults)
                .unwrap();
            assert_eq!(d.fault(&word), Some((1, at as u32, id)));
            let want = reference::matmul_id(ty, &w, &x, &ids, [experts, n, k], share);
            let (found, known) = (d.get(&y), at * n);
            let scale = want[..known].iter().fold(1.0, |top: f64, v| top.max(v.abs()));
            let limit = Tolerance::Absolute(2e-5 * scale);
            assert_close(&found[..known], &want[..known], &[known], limit);
            assert!(found[known..].iter().all(|v| v.is_nan()), "{ty}: a row of NaN");
        }
    }
}

/// The same of packed experts: a row of NaN, a fault at its place, and the other rows as they are without it.
#[test]
fn a_packed_expert_that_is_not_there_is_a_fault() {
    let d = device();
    let (s, k) = (d.stream(), &d.kernels);
    let (experts, n, depth, pairs) = (3, 34, 256, 6);
    for ty in [WeightType::Q8_0, WeightType::Q4K, WeightType::Mxfp4] {
        let mut random = rng(5);
        let w = up(&d, &blocks(ty, &mut random, experts * n * depth / ty.block_len()));
        let to = HipBuffer::zeroed(s, Elems(w.len()), "packed").unwrap();
        let w = k.pack_weight(s, ty, &w, to, [experts * n, depth]).unwrap();
        let stack = ExpertStack { w: &w, experts };
        let x = d.up(&random.vec(pairs * depth));
        let to = HipBuffer::zeroed(s, Elems(Q8Activations::byte_len(pairs, depth).unwrap()), "x").unwrap();
        let rounded = k.quantize_q8(s, &x, to, [pairs, depth]).unwrap();
        let to = HipBuffer::zeroed(s, Elems(HalfRows::byte_len(pairs, depth).unwrap()), "x").unwrap();
        let halves = k.half_rows(s, &x, &to, [pairs, depth]).unwrap();
        let factors = d.up(&random.vec(pairs));
        let good: Vec<u32> = (0..pairs as u32).map(|pair| pair % 3).collect();
        let mut bad = good.clone();
        bad[3] = 9;
        // Each with its rows, and which of them the id spoils.
        for (what, rows, spoiled) in [
            ("gated", pairs, 3),
            ("sum", pairs / 2, 1),
            ("pairs", pairs, 3),
            ("tiles", pairs, 3),
        ] {
            if what == "tiles" && !k.multiplies_packed16() {
                continue;
            }
            let run = |ids: &[u32]| {
                let (ids, y, word) = (d.ids(ids), d.out(rows * n), d.no_fault());
                let faults = d.faults(&word, 2);
                let launched = match what {
                    "gated" => {
                        let unit = ExpertUnit::Glu(GluKind::Swiglu);
                        k.experts_gated(s, &x, &ids, [stack; 2], None, unit, &y, 1, faults)
                    }
                    "sum" => k.experts_sum(
                        s,
                        &x,
                        &ids,
                        &factors,
                        stack,
                        None,
                        BesideExperts::default(),
                        &y,
                        2,
                        faults,
                    ),
                    "pairs" => k.experts_pairs(s, &rounded, &ids, stack, &y, 1, faults),
                    _ => {
                        let room = d.ids(&vec![u32::MAX; ExpertTiles::words(pairs, experts, 16)]);
                        let tiles = k.expert_tiles(s, &ids, [experts, 16], &room, faults).unwrap();
                        k.experts_in_tiles(s, &halves, &tiles, stack, &y, 1)
                    }
                };
                launched.unwrap();
                (d.get(&y), d.fault(&word))
            };
            let ((right, none), (found, fault)) = (run(&good), run(&bad));
            assert_eq!((none, fault), (None, Some((2, 3, 9))), "{ty}, {what}");
            for (row, (found, right)) in found.chunks(n).zip(right.chunks(n)).enumerate() {
                match row == spoiled {
                    true => assert!(found.iter().all(|v| v.is_nan()), "{ty}, {what}"),
                    false => assert_eq!(found, right, "{ty}, {what}, row {row}"),
                }
            }
        }
    }
}

#[test]
fn rows_of_several_tables_each_with_its_ids() {
    let d = device();
    for ty in [WeightType::F32, WeightType::F16, WeightType::Q8_0, WeightType::Q4K] {
        let cols = if ty.block_len() == 1 { 33 } else { ty.block_len() * 2 };
        let (tables, rows, per) = (3, 4, 5);
        let mut random = rng(cols as u64);
        let table = blocks(ty, &mut random, tables * rows * cols / ty.block_len());
        let mut ids: Vec<u32> = (0..tables * per).map(|_| random.below(rows) as u32).collect();
        ids[7] = 4;
        let (dt, di, y, word) = (up(&d, &table), d.ids(&ids), d.out(tables * per * cols), d.no_fault());
        let faults = d.faults(&word, 9);
        d.kernels
            .get_rows_of_tables(d.stream(), ty, &dt, &di, &y, [tables, rows, cols], faults)
            .unwrap();
        assert_eq!(d.fault(&word), Some((9, 7, 4)));
        let want = table.chunks(table.len() / tables).zip(ids.chunks(per));
        let want = want.flat_map(|(table, ids)| reference::get_rows_weight(ty, table, ids, cols));
        for (at, (found, want)) in d.get(&y).into_iter().zip(want).enumerate() {
            let same = f64::from(found) == want || (f64::from(found) - want).abs() < 1e-6 * want.abs();
            assert!(
                same || found.is_nan() && want.is_nan(),
                "{ty} {at}: {found}, not {want}"
            );
        }
    }
}
