//! The runtime over the simulated card, whose reports must stay empty: no double free, no free of memory in use, no
//! read of memory that was never written, no missing order between streams.

use rocmforge_runtime::*;
use rocmforge_sim::{SimConfig, SimHost};
use std::sync::Arc;

mod codes;
mod drops;
mod graphs;
mod names;
mod ordering;
mod poison;
mod pool;
mod sources;
mod sweep;

/// A backend over a fresh simulated machine.
fn backend(seed: u64) -> (Arc<SimHost>, Arc<HipBackend>) {
    let config = SimConfig {
        seed,
        ..SimConfig::default()
    };
    backend_on(config, PoolOptions::OFF)
}

/// A backend over this machine.
fn backend_on(config: SimConfig, pool: PoolOptions) -> (Arc<SimHost>, Arc<HipBackend>) {
    let sim = SimHost::new(config);
    let options = BackendOptions {
        pool,
        ..BackendOptions::default()
    };
    let backend = crate::common::machine::open(&sim, options).expect("the simulated card opens");
    (sim, backend)
}

/// Nothing was reported, nothing is left.
fn assert_clean(sim: &SimHost) {
    let reports: Vec<String> = sim.reports().iter().map(ToString::to_string).collect();
    assert_eq!(reports, [""; 0]);
    assert_eq!(sim.allocation_stats(0).live, 0);
    assert_eq!(sim.pinned_count(), 0, "{:#?}", sim.leaks());
}
