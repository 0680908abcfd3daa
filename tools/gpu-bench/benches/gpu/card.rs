//! Card under measurement.

use rocmforge_kernels::{Kernels, Pack};
use rocmforge_runtime::{HipBackend, HipStream, Policy, PoolOptions};
use rocmforge_testkit::device::DEVICE_VARIABLE;
use rocmforge_testkit::{GpuLease, LeaseOptions, gpu_with};
use std::sync::Arc;

/// Names a folder with the packs of a target, whose kernels are measured instead of the embedded ones. They are run as they are: name only
/// those that you have built.
const PACK_VARIABLE: &str = "ROCMFORGE_BENCH_PACK";

pub(crate) struct Card {
    // Before the lease, which looks when it ends whether they are gone.
    kernels: Kernels,
    pub(crate) lease: GpuLease,
}

impl Card {
    /// The device named in this process's environment. `None` without one: simulated time is not speed.
    pub(crate) fn take() -> Option<Self> {
        std::env::var_os(DEVICE_VARIABLE)?;
        // Memory to spare is part of what is measured: 1 GiB a tensor.
        let options = LeaseOptions {
            policy: Policy::desktop(),
            pool: PoolOptions::ON,
            ..LeaseOptions::default()
        };
        let lease = gpu_with(options);
        let kernels = match std::env::var_os(PACK_VARIABLE) {
            Some(path) => {
                let pack = Pack::open(path.as_ref()).expect("packs of `cargo xtask kernels build`");
                // SAFETY: whoever runs the bench named the packs, and answers for the code in them: the variable says so.
                let kernels = unsafe { Kernels::from_pack_unverified(lease.backend(), pack) };
                kernels.expect("a pack for the card")
            }
            None => lease.kernels().clone(),
        };
        Some(Self { kernels, lease })
    }

    pub(crate) fn is_real(&self) -> bool {
        self.lease.sim().is_none()
    }

    /// A size for a real card, and a small one of the same kind for the simulated one.
    pub(crate) fn size<T>(&self, real: T, simulated: T) -> T {
        if self.is_real() { real } else { simulated }
    }

    pub(crate) fn backend(&self) -> &Arc<HipBackend> {
        self.lease.backend()
    }

    pub(crate) fn stream(&self) -> &HipStream {
        self.backend().stream()
    }

    pub(crate) fn kernels(&self) -> &Kernels {
        &self.kernels
    }

    /// Gives back what the pool keeps, so that the next measurement finds an empty card.
    pub(crate) fn clear(&self) {
        self.backend().synchronize().expect("the work before is sound");
        self.backend()
            .trim_memory(rocmforge_runtime::Bytes::ZERO)
            .expect("idle memory goes back");
    }
}
