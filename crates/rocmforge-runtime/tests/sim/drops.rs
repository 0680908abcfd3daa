//! Every order of dropping roots, clones and views frees exactly once, and never while queued work uses the memory.

use super::{assert_clean, backend_on};
use crate::common::drop_orders;
use rocmforge_runtime::PoolOptions;
use rocmforge_sim::SimConfig;

#[test]
fn every_drop_order_frees_once() {
    // Strict: `hipFree` does not wait, and what is freed while queued work uses it is reported.
    let config = SimConfig {
        seed: 3,
        strict: true,
        ..SimConfig::default()
    };
    let (sim, backend) = backend_on(config, PoolOptions::OFF);
    drop_orders::each_frees_once(&backend, || sim.free_count());
    drop(backend);
    assert_clean(&sim);
}
