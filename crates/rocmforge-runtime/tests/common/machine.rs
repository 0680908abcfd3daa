//! Backends over simulated machines, each with a budget of host memory of its own: what thousands of backends leave to their
//! simulated drivers would fill the machine's.

use rocmforge_memory::{HostBudget, HostReading};
use rocmforge_runtime::*;
use rocmforge_sim::SimHost;
use std::sync::Arc;

/// Opens the first card under the tests' policy; `options` may say more.
pub(crate) fn open(sim: &Arc<SimHost>, options: BackendOptions) -> HipResult<Arc<HipBackend>> {
    let provider = Provider::new(sim.api())
        .with_clock(sim.clock())
        .with_names(sim.names())
        .with_host(HostBudget::new(HostReading::default()))
        .with_readings(Box::new(sim.readings(0)));
    let options = BackendOptions {
        policy: Policy::tests(),
        ..options
    };
    HipBackend::open(provider, options)
}
