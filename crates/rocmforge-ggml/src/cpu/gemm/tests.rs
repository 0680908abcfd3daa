//! Tests of matrix products: odd shapes on every path, and numbers that are not finite.

use super::*;
use rocmforge_testkit::data::rng;

/// A matrix `[n, k]` of rows.
struct Rows<'a> {
    path: Path,
    data: &'a [f32],
    k: usize,
}

impl Columns for Rows<'_> {
    fn block(&self) -> usize {
        1
    }

    fn pack(&self, columns: Range<usize>, depth: Range<usize>, panel: &mut [Line], _: &mut [f32]) -> GgmlResult<()> {
        let rows = &self.data[columns.start * self.k + depth.start..];
        transpose(self.path, rows, self.k, columns.len(), panel, 0);
        Ok(())
    }

    fn scratch(&self, _: usize) -> usize {
        0
    }
}

#[test]
fn every_path_multiplies_odd_shapes() {
    for path in Path::available() {
        for (m, k, n) in [
            (1, 1, 1),
            (7, 31, 33),
            (8, 48, 48),
            (9, 63, 49),
            (31, 65, 129),
            (65, 129, 63),
            (5, 1537, 17),
            (33, 2000, 97),
        ] {
            let (x, w) = (rng(m as u64).vec(m * k), rng(n as u64).vec(n * k));
            let right = Rows { path, data: &w, k };
            let results = [1, 3].map(|threads| {
                let mut out = vec![f32::NAN; m * n];
                let left = Left { data: &x, stride: k };
                product(
                    path,
                    left,
                    k,
                    &right,
                    n,
                    &mut out,
                    &Threads::new(threads),
                    &Scratch::new(),
                )
                .expect("packs");
                out
            });
            assert!(results[0] == results[1], "{path:?} {m} {k} {n}: one thread and three");
            for (at, found) in results[0].iter().enumerate() {
                let (row, column) = (&x[at / n * k..][..k], &w[at % n * k..][..k]);
                let products = || row.iter().zip(column).map(|(&a, &b)| f64::from(a) * f64::from(b));
                let (exact, size) = (products().sum::<f64>(), products().map(f64::abs).sum::<f64>());
                let difference = (f64::from(*found) - exact).abs();
                assert!(
                    difference <= 1e-6 * size,
                    "{path:?} {m} {k} {n} at {at}: {found} for {exact}"
                );
            }
        }
    }
}

#[test]
fn numbers_that_are_not_finite_stay_in_their_rows_and_columns() {
    for path in Path::available() {
        let (m, k, n) = (9, 20, 50);
        let (mut x, mut w) = (vec![1.0f32; m * k], vec![1.0f32; n * k]);
        x[2 * k + 3] = f32::NAN;
        w[40 * k + 7] = f32::INFINITY;
        let right = Rows { path, data: &w, k };
        let mut out = vec![0.0; m * n];
        let left = Left { data: &x, stride: k };
        product(path, left, k, &right, n, &mut out, &Threads::ONE, &Scratch::new()).expect("packs");
        for (at, found) in out.iter().enumerate() {
            match (at / n, at % n) {
                (2, _) => assert!(found.is_nan(), "{path:?} {at}"),
                (_, 40) => assert_eq!(*found, f32::INFINITY, "{path:?} {at}"),
                _ => assert_eq!(*found, 20.0, "{path:?} {at}"),
            }
        }
    }
}
