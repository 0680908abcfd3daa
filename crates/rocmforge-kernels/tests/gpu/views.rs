//! Products of views, of experts' matrices, rows of several tables.

use crate::support::device;
use crate::weights::{blocks, up};
use rocmforge_kernels::{FloatType, ViewStrides, ViewsShape, WeightType, reference};
use rocmforge_testkit::compare::{Tolerance, assert_close};
use rocmforge_testkit::data::rng;

#[test]
fn grouped_heads_and_strided_rows() {
    let d = device();
    for (outer, heads, b_outer, b_heads, [m, n, k]) in [
        (1, 1, 1, 1, [1, 1, 1]),
        (2, 4, 1, 2, [3, 33, 65]),
        (2, 6, 2, 3, [65, 5, 31]),
        (4, 1, 2, 1, [7, 129, 40]),
    ] {
        for (ty, b_transposed) in [
            (FloatType::F32, true),
            (FloatType::F16, true),
            (FloatType::Bf16, true),
            (FloatType::F32, false),
        ] {
            let shape = ViewsShape {
                outer,
                heads,
                b_outer,
                b_heads,
                m,
                n,
                k,
                b_transposed,
            };
            let mut random = rng((outer * heads * m * n + k) as u64);
            // Tokens first, as projections leave heads: [outer, rows, heads, columns], with room behind each head.
            let strides = |heads: usize, rows: usize, cols: usize| ViewStrides {
                outer: rows * heads * (cols + 3),
                head: cols + 3,
                row: heads * (cols + 3),
            };
            let [b_rows, b_cols] = if b_transposed { [n, k] } else { [k, n] };
            let (sa, sb) = (strides(heads, m, k), strides(b_heads, b_rows, b_cols));
            let a = random.vec(outer * sa.outer);
            let weight = match ty {
                FloatType::F32 => WeightType::F32,
                FloatType::F16 => WeightType::F16,
                FloatType::Bf16 => WeightType::Bf16,
            };
            let b = blocks(weight, &mut random, b_outer * sb.outer);
            let bias = random.vec(n);
            let values = reference::float_values(ty, &b);
            let mut want = Vec::new();
            for (o, h) in (0..outer * heads).map(|z| (z / heads, z % heads)) {
                let (bo, bh) = (o * b_outer / outer, h * b_heads / heads);
                for (i, j) in (0..m * n).map(|at| (at / n, at % n)) {
                    let left = |e: usize| f64::from(a[o * sa.outer + h * sa.head + i * sa.row + e]);
                    let right = |e: usize| {
                        let [r, c] = if b_transposed { [j, e] } else { [e, j] };
                        values[bo * sb.outer + bh * sb.head + r * sb.row + c]
                    };
                    want.push(f64::from(bias[j]) + (0..k).map(|e| left(e) * right(e)).sum::<f64>());
                }
            }
            let (da, db, dbias, y) = (d.up(&a), up(&d, &b), d.up(&bias), d.out(want.len()));
            let (left, right) = ((&da, sa), (ty, &db, sb));
            d.kernels
                .matmul_views(d.stream(), left, right, Some(&dbias), &y, shape)
                .unwrap();
            assert_close(&d.get(&y), &want, &[outer, heads, m, n], Tolerance::Absolute(1e-4));
        }
    }
}

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
    let refused = |a_strides, b_strides, ty, shape, text: &str| {
        let result = d
            .kernels
            .matmul_views(d.stream(), (&a, a_strides), (ty, &b, b_strides), None, &y, shape);
        let error = result.unwrap_err().to_string();
        assert!(error.contains(text), "{error:?} does not say {text:?}");
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
fn each_pair_is_multiplied_by_its_experts_matrix() {
    let d = device();
    for ty in WeightType::ALL {
        let k = if ty.block_len() == 1 { 65 } else { ty.block_len() * 3 };
        for (experts, n, pairs, share) in [(1, 1, 1, 1), (5, 33, 6, 1), (4, 70, 6, 3)] {
            let mut random = rng((n * k + share) as u64);
            let w = blocks(ty, &mut random, experts * n * k / ty.block_len());
            let x = random.vec(pairs / share * k);
            let mut ids: Vec<u32> = (0..pairs).map(|_| random.below(experts) as u32).collect();
            for bad in [None, Some(pairs - 1)] {
                if let Some(at) = bad {
                    ids[at] = experts as u32 + 2;
                }
                let (dw, dx, di) = (up(&d, &w), d.up(&x), d.ids(&ids));
                let (y, word) = (d.out(pairs * n), d.no_fault());
                let faults = d.faults(&word, 1);
                d.kernels
                    .matmul_id(d.stream(), ty, &dw, &dx, &di, &y, [experts, n, k], share, faults)
                    .unwrap();
                assert_eq!(d.fault(&word), bad.map(|at| (1, at as u32, experts as u32 + 2)));
                let want = reference::matmul_id(ty, &w, &x, &ids, [experts, n, k], share);
                let known = if bad.is_some() { (pairs - 1) * n } else { pairs * n };
                let found = d.get(&y);
                let scale = want[..known].iter().fold(1.0, |top: f64, v| top.max(v.abs()));
                assert_close(
                    &found[..known],
                    &want[..known],
                    &[known],
                    Tolerance::Absolute(2e-5 * scale),
                );
                assert!(found[known..].iter().all(|v| v.is_nan()), "{ty}: a row of NaN");
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
