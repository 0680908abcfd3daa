//! The shared fixture, under the names the first tests of this project used.

use crate::lease::{GpuLease, gpu};
use rocmforge_memory::Epoch;
use rocmforge_runtime::{HipBackend, HipResult};
use std::sync::{Arc, LazyLock};

const MIB: usize = 1 << 20;

/// One device for all tests of a process that use it; `None`, with the reason printed, if it does not answer. One that
/// cannot be opened at all panics, as in [`gpu`]: a test that was given a device and has none must fail.
///
/// New tests take a lease of their own ([`gpu`]): it cannot forget the leak check, and tests on it run in parallel.
pub static GPU_FIXTURE: LazyLock<Option<GpuTestFixture>> = LazyLock::new(|| match GpuTestFixture::new() {
    Ok(fixture) => Some(fixture),
    Err(error) => {
        rocmforge_gpu_test::record::append(&rocmforge_gpu_test::record::Record::Skip {
            reason: format!("no device: {error}"),
        });
        None
    }
});

/// A device shared by tests that run one after another (`#[serial]`).
pub struct GpuTestFixture {
    lease: GpuLease,
    epoch: Epoch,
    initial_free: usize,
    initial_total: usize,
}

impl GpuTestFixture {
    /// Opens the device named in this process's environment.
    ///
    /// # Errors
    ///
    /// If its memory figures cannot be read.
    pub fn new() -> HipResult<Self> {
        let lease = gpu();
        let (initial_free, initial_total) = lease.backend().get_memory_info()?;
        // Staging memory belongs to the backend and stays: it is made before the first test is measured.
        let warm = rocmforge_runtime::DeviceTensor::from_host(lease.backend(), &[0.0], &[1])?;
        warm.to_host()?;
        drop(warm);
        lease.backend().synchronize()?;
        let epoch = lease.backend().card().ledger().epoch();
        Ok(Self {
            lease,
            epoch,
            initial_free,
            initial_total,
        })
    }

    /// The shared backend.
    pub fn backend(&self) -> &Arc<HipBackend> {
        self.lease.backend()
    }

    /// The device's name.
    pub fn device_name(&self) -> &str {
        &self.backend().device().name
    }

    /// The card's memory, in MiB.
    pub fn total_memory_mb(&self) -> usize {
        self.initial_total / MIB
    }

    /// What was free when the fixture was made, in MiB.
    pub fn free_memory_mb(&self) -> usize {
        self.initial_free / MIB
    }

    /// What the budget has left now, in MiB.
    pub fn safe_alloc_mb(&self) -> usize {
        self.safe_alloc_size() / MIB
    }

    /// What the budget has left now, in bytes; 0 if the backend is poisoned.
    pub fn safe_alloc_size(&self) -> usize {
        self.backend().safe_alloc_size().unwrap_or(0)
    }

    /// Free and total bytes now.
    ///
    /// # Errors
    ///
    /// If the device cannot say.
    pub fn memory_stats(&self) -> HipResult<(usize, usize)> {
        self.backend().get_memory_info()
    }

    /// Fails if anything made on the fixture's backend is still alive: 0 bytes and 0 handles, exactly. The percentage, of
    /// the card's total memory, applies to the driver's figure only, which is printed when it is exceeded and never fails
    /// a test: the desktop moves it.
    ///
    /// The shared fixture's lease ends with the process, when nothing can be reported any more, so what the simulator saw since
    /// the last check fails here too.
    ///
    /// # Panics
    ///
    /// If the ledger is not clean, the simulator has something to report, or the backend is unusable.
    #[track_caller]
    pub fn assert_no_leak(&self, tolerance_percent: usize) {
        if let Err(error) = self.backend().synchronize() {
            panic!("{error}");
        }
        let leaks = self.epoch.leaks();
        assert!(leaks.is_clean(), "{leaks}");
        let reports = self.lease.sim().map(|sim| sim.take_reports()).unwrap_or_default();
        let reports: Vec<String> = reports.iter().map(ToString::to_string).collect();
        assert!(reports.is_empty(), "{}", reports.join("\n"));
        let Ok((free, _)) = self.memory_stats() else { return };
        let fallen = self.initial_free.saturating_sub(free);
        if fallen > self.initial_total / 100 * tolerance_percent {
            #[allow(clippy::print_stderr)] // printed, never judged
            {
                eprintln!(
                    "the driver's free memory has fallen by {fallen} bytes; the ledger is clean, so it is not ours"
                );
            }
        }
    }
}
