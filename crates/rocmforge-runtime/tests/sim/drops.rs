//! Every order of dropping roots, clones and views frees exactly once, and never while queued work uses the memory.

use super::{assert_clean, backend};
use crate::common::drop_orders;

#[test]
fn every_drop_order_frees_once() {
    let (sim, backend) = backend(3);
    drop_orders::each_frees_once(&backend, || sim.free_count());
    drop(backend);
    assert_clean(&sim);
}
