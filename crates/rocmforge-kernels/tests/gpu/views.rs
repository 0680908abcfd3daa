//! Products of views, of experts' matrices, rows of several tables.

use crate::support::device;
use crate::weights::{blocks, up};
use rocmforge_kernels::{FloatType, ViewStrides, ViewsShape, WeightType, reference};
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
