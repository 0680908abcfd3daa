//! Transposition.

use crate::support::device;
use rocmforge_kernels::reference;
use rocmforge_testkit::data::rng;

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
