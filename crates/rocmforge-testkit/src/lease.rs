//! A test's lease on a device, and what is checked when it ends.

use crate::careful;
use crate::device::{self, Chosen, Turn};
use crate::driver::{DriverFigure, GROWN, REPEATS};
use crate::heartbeat::Heartbeat;
use crate::options::LeaseOptions;
use rocmforge_gpu_test::record::{self, Record};
use rocmforge_hip_sys::HipApi;
use rocmforge_kernels::Kernels;
use rocmforge_machine::sysfs::Sysfs;
use rocmforge_memory::{Bytes, Card, Epoch, LeakReport};
use rocmforge_runtime::{BackendOptions, HipBackend, HipError};
use rocmforge_sim::{Report, SimHost};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// A test's device: a simulated card of its own, or the real one that the supervisor holds the lock of.
///
/// It is the only way for a test to a device. Everything made under it must be gone when it ends, which it checks in its
/// destructor, also when the test panics. Make it first, so that it is dropped last.
///
/// ```
/// use rocmforge_runtime::DeviceTensor;
///
/// let gpu = rocmforge_testkit::gpu();
/// let x = DeviceTensor::from_host(gpu.backend(), &[1.0, 2.0], &[2])?;
/// assert_eq!(x.to_host()?, [1.0, 2.0]);
/// # Ok::<(), rocmforge_runtime::HipError>(())
/// ```
pub struct GpuLease {
    /// `None` once the lease has ended.
    backend: Option<Arc<HipBackend>>,
    api: Arc<dyn HipApi>,
    kernels: OnceLock<Kernels>,
    card: Arc<Card>,
    epoch: Epoch,
    sim: Option<Arc<SimHost>>,
    device: String,
    heartbeat: Option<Heartbeat>,
    driver: Option<DriverFigure>,
    /// Last: the next test of this process may begin when all of the above is gone.
    _turn: Option<Turn>,
}

/// Takes a lease on the device named in this process's environment: without `ROCMFORGE_DEVICE`, a fresh simulated gfx1100.
///
/// # Panics
///
/// If the device cannot be opened, or is a real one and this process does not run under the supervisor.
#[track_caller]
pub fn gpu() -> GpuLease {
    gpu_with(LeaseOptions::default())
}

/// [`gpu`], as `options` say.
///
/// # Panics
///
/// As [`gpu`].
#[track_caller]
pub fn gpu_with(options: LeaseOptions) -> GpuLease {
    let options = if careful::wanted() { options.careful() } else { options };
    let Chosen {
        provider,
        ordinal,
        sim,
        name,
        turn,
    } = match device::choose(&options.sim) {
        Ok(chosen) => chosen,
        Err(error) => panic!("{error}"),
    };
    let backend_options = BackendOptions {
        device: ordinal,
        policy: options.policy,
        deadline: options.deadline,
        pool: options.pool,
        ..BackendOptions::default()
    };
    let api = provider.api.clone();
    let backend = match HipBackend::open(provider, backend_options) {
        Ok(backend) => backend,
        Err(error) => panic!("cannot open {name}: {error}"),
    };
    let card = backend.card().clone();
    let epoch = card.ledger().epoch();
    let figure = || DriverFigure::now(&Sysfs::host(), card.key().as_str());
    record::append(&Record::LeaseBegan);
    GpuLease {
        backend: Some(backend),
        api,
        kernels: OnceLock::new(),
        heartbeat: Heartbeat::start(&card),
        // The simulator's processes are not the driver's.
        driver: if sim.is_none() { figure() } else { None },
        card,
        epoch,
        sim,
        device: name,
        _turn: turn,
    }
}

impl GpuLease {
    /// The backend. It is this lease's own.
    pub fn backend(&self) -> &Arc<HipBackend> {
        self.backend
            .as_ref()
            .expect("the backend goes only when the lease ends")
    }

    /// The device's kernels. Loaded at the first call and given up when the lease ends; a clone must not outlive it.
    ///
    /// # Panics
    ///
    /// If there is no pack for the device.
    pub fn kernels(&self) -> &Kernels {
        self.kernels.get_or_init(|| match Kernels::load(self.backend()) {
            Ok(kernels) => kernels,
            Err(error) => panic!("{error}"),
        })
    }

    /// The raw functions of the device's provider, for tests of the provider itself and for what is timed beside it: what is made through them is in no ledger.
    pub fn api(&self) -> &Arc<dyn HipApi> {
        &self.api
    }

    /// The simulator, if the device is simulated.
    pub fn sim(&self) -> Option<&Arc<SimHost>> {
        self.sim.as_ref()
    }

    /// Ends the lease and says what is wrong, instead of panicking: for tests that plant a fault.
    ///
    /// # Errors
    ///
    /// Every [`LeaseFault`] found.
    pub fn finish(mut self) -> Result<(), LeaseFailure> {
        self.end()
    }

    /// Drops the backend and collects what should not be.
    fn end(&mut self) -> Result<(), LeaseFailure> {
        let Some(backend) = self.backend.take() else {
            return Ok(());
        };
        // They hold the backend and their modules.
        drop(self.kernels.take());
        let mut faults = Vec::new();
        // Waits for the work of dropped buffers, and brings out errors that a destructor kept.
        if let Err(error) = backend.synchronize() {
            faults.push(LeaseFault::Error(error));
        }
        let poisoned = backend.is_poisoned().is_some();
        let of_sim = self.sim.as_ref().map(|sim| sim.launches());
        let launches = of_sim.unwrap_or_else(|| backend.launches());
        drop(backend);
        let leaks = self.epoch.leaks();
        // A poisoned backend abandons its handles to the driver on purpose, so what is left says nothing about the test.
        let is_clean = leaks.is_clean() && !poisoned;
        if !poisoned && !leaks.is_clean() {
            faults.push(LeaseFault::Leak(leaks));
        }
        if let Some(sim) = &self.sim {
            faults.extend(sim.take_reports().into_iter().map(LeaseFault::Report));
        }
        let peak_bytes = self.card.ledger().peak().0;
        drop(self.heartbeat.take());
        // Where the ledger is not clean, it says itself what the driver still holds.
        if let Some(driver) = self.driver.take().filter(|_| is_clean) {
            let record = driver.again();
            record::append(&record);
            faults.extend(GROWN.lock().note(record.retained()).map(LeaseFault::Retained));
        }
        record::append(&Record::Lease {
            device: self.device.clone(),
            peak_bytes,
            launches,
        });
        if faults.is_empty() {
            Ok(())
        } else {
            Err(LeaseFailure(faults))
        }
    }
}

impl Drop for GpuLease {
    fn drop(&mut self) {
        let Err(failure) = self.end() else { return };
        if std::thread::panicking() {
            // The test has failed already; a second panic would end the process and its other tests.
            #[allow(clippy::print_stderr)] // the only place left to say it
            {
                eprintln!("also, when the lease ended: {failure}");
            }
        } else {
            panic!("{failure}");
        }
    }
}

/// One thing that was wrong when a lease ended.
#[derive(Debug)]
pub enum LeaseFault {
    /// Something made under the lease is still alive.
    Leak(LeakReport),
    /// The backend had an error that no call returned, or is poisoned.
    Error(HipError),
    /// The simulator saw a fault.
    Report(Report),
    /// The driver holds this many bytes more after the lease, as after those before it in this process, though their ledgers
    /// were clean.
    Retained(u64),
}

impl fmt::Display for LeaseFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Leak(leaks) => write!(f, "{leaks}"),
            Self::Error(error) => write!(f, "an error that the test did not see: {error}"),
            Self::Report(report) => write!(f, "{report}"),
            Self::Retained(bytes) => write!(
                f,
                "the driver holds {} more after each of the last {REPEATS} leases of this process, though the ledger is clean: \
                 something outside of it keeps memory",
                Bytes(*bytes)
            ),
        }
    }
}

/// What was wrong when a lease ended.
#[derive(Debug)]
pub struct LeaseFailure(pub Vec<LeaseFault>);

impl LeaseFailure {
    /// The simulator's reports among the faults.
    pub fn reports(&self) -> impl Iterator<Item = &Report> {
        self.0.iter().filter_map(|fault| match fault {
            LeaseFault::Report(report) => Some(report),
            _ => None,
        })
    }

    /// The leaks among the faults.
    pub fn leaks(&self) -> impl Iterator<Item = &LeakReport> {
        self.0.iter().filter_map(|fault| match fault {
            LeaseFault::Leak(leaks) => Some(leaks),
            _ => None,
        })
    }
}

impl fmt::Display for LeaseFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the lease ended with {} faults", self.0.len())?;
        for fault in &self.0 {
            write!(f, "\n{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for LeaseFailure {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::driver::tests::FakeKfd;
    use rocmforge_runtime::{Elems, HipBuffer};
    use rocmforge_sim::{FaultPlan, LaunchFault, When};

    /// How a lease ends after which the driver holds 8 MiB more.
    fn ends_after(body: impl FnOnce(&GpuLease)) -> Result<(), LeaseFailure> {
        let kfd = FakeKfd::new();
        kfd.say(1);
        let mut lease = gpu();
        lease.driver = kfd.figure("0000:03:00.0");
        kfd.say(9);
        body(&lease);
        lease.finish()
    }

    fn retained(failure: &LeaseFailure) -> Vec<&LeaseFault> {
        let faults = failure.0.iter();
        faults
            .filter(|fault| matches!(fault, LeaseFault::Retained(_)))
            .collect()
    }

    #[test]
    fn the_fifth_lease_that_leaves_as_much_with_the_driver_fails_and_unclean_ones_say_what_they_left() {
        for _ in 0..4 {
            ends_after(|_| ()).unwrap();
        }
        let leak = ends_after(|gpu| std::mem::forget(gpu.backend().allocate_buffer_safe(1).unwrap())).unwrap_err();
        assert_eq!((leak.leaks().count(), retained(&leak).len()), (1, 0), "{leak}");
        let hangs = ends_after(|gpu| {
            let x = HipBuffer::<f32>::zeroed(gpu.backend().stream(), Elems(8), "x").unwrap();
            let plan = FaultPlan::new().launch(When::Nth(1), LaunchFault::Hangs);
            gpu.sim().unwrap().set_fault_plan(plan);
            gpu.kernels().scale(gpu.backend().stream(), &x, &x, 2.0).unwrap();
        });
        assert_eq!(retained(&hangs.unwrap_err()).len(), 0);
        let fifth = ends_after(|_| ()).unwrap_err();
        assert!(
            matches!(fifth.0[..], [LeaseFault::Retained(bytes)] if bytes == 8 << 20),
            "{fifth}"
        );
        assert!(fifth.to_string().contains("8.0 MiB"), "{fifth}");
    }
}
