//! Transposition.

use crate::support::{SIZES, device};
use rocmforge_kernels::reference;
use rocmforge_testkit::data::rng;

#[test]
fn transposition_covers_partial_tiles() {
    let d = device();
    let shapes = SIZES
        .into_iter()
        .map(|n| [2, n, 130 - n])
        .chain([[1, 1, 1], [3, 200, 5], [2, 192, 140]]);
    for shape in shapes {
        let x = rng(shape[1] as u64).vec(shape.iter().product());
        let (input, y) = (d.up(&x), d.out(x.len()));
        d.kernels.transpose(d.stream(), &input, &y, shape).unwrap();
        d.same(&y, &reference::transpose(&x, shape), &[shape[0], shape[2], shape[1]]);
    }
}

#[test]
fn transposed_views_may_start_at_any_element() {
    let d = device();
    let shape = [1, 68, 72];
    let n = 68 * 72;
    for (from, to) in [(1, 1), (1, 0), (0, 3), (2, 2)] {
        let x = rng(from as u64).vec(n + 4);
        let (input, whole) = (d.up(&x), d.out(n + 4));
        let (a, y) = (input.view(from..from + n).unwrap(), whole.view(to..to + n).unwrap());
        d.kernels.transpose(d.stream(), &a, &y, shape).unwrap();
        d.same(&y, &reference::transpose(&x[from..from + n], shape), &[1, 72, 68]);
    }
}
