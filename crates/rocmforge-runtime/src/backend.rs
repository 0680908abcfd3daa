//! The backend: one device of one provider, its budget and its own stream.

use crate::availability::{self, Availability};
use crate::core::Core;
use crate::core::memory::MemoryStatistics;
use crate::device::DeviceInfo;
use crate::error::{HipError, HipResult};
use crate::event::HipEvent;
use crate::hip::{self, Driver};
use crate::launch_log::LaunchRecord;
use crate::module::HipModule;
use crate::provider::Provider;
use crate::readings::{CardReadings, system_readings};
use crate::stream::HipStream;
use rocmforge_memory::{Bytes, Card, HostBudget, Policy, PoolOptions, Site};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How to open a device.
#[derive(Clone)]
pub struct BackendOptions {
    /// HIP's number of the device.
    pub device: i32,
    /// How much of the card's memory this process may have.
    pub policy: Policy,
    /// How long any wait may take before the backend gives the device up.
    pub deadline: Duration,
    /// The card of another backend on the same device, to share its budget; `policy` is not used then. Backends of this
    /// machine's cards share one anyway ([`Provider::of_this_machine`]).
    pub card: Option<Arc<Card>>,
    /// How much freed memory is kept for later requests: [`PoolOptions::OFF`] gives each buffer its own `hipMalloc`.
    pub pool: PoolOptions,
}

impl Default for BackendOptions {
    /// Device 0, the desktop's policy, ten seconds.
    fn default() -> Self {
        Self {
            device: 0,
            policy: Policy::desktop(),
            deadline: Duration::from_secs(10),
            card: None,
            pool: PoolOptions::OFF,
        }
    }
}

/// One device, ready for use.
///
/// Not a singleton: several can be open, on one device or more. It stays alive through everything made from it.
pub struct HipBackend {
    // Before `core`: its drop waits for the work on it.
    stream: HipStream,
    core: Arc<Core>,
    /// A [`StreamLease`] holds the stream.
    in_use: AtomicBool,
}

/// A backend whose stream nobody else has leased.
#[derive(Debug)]
pub struct StreamLease {
    backend: Arc<HipBackend>,
}

impl StreamLease {
    /// The backend.
    #[must_use]
    pub const fn backend(&self) -> &Arc<HipBackend> {
        &self.backend
    }
}

impl Drop for StreamLease {
    fn drop(&mut self) {
        self.backend.in_use.store(false, Ordering::Release);
    }
}

impl HipBackend {
    /// Whether an AMD GPU can be used here, or which of six reasons speaks against it. Asked once in a process.
    ///
    /// Looks at `/dev/kfd` and the kernel's topology first; only if these show a GPU and allow its use is the HIP library
    /// loaded and called, on a thread of its own with a time limit. With the settings of a simulation in the environment the library
    /// that `ROCMFORGE_HIP_LIBRARY` names is loaded before, and the kernel is not asked if it says that it simulates its cards. A crash inside of the library ends the process all the
    /// same: `cargo xtask doctor` asks in a helper process, which contains it.
    pub fn availability() -> &'static Availability {
        availability::of_this_machine()
    }

    /// Opens the AMD GPU best suited to computing: a card rather than an APU, the one with the most memory.
    ///
    /// Fails with the reason if there is none.
    pub fn new_checked() -> HipResult<Arc<Self>> {
        if let Availability::Unavailable(why) = Self::availability() {
            return Err(HipError::Unavailable(Arc::clone(why)));
        }
        let provider = Provider::amd()?;
        let options = BackendOptions::default();
        let devices = Self::devices(&provider, options.deadline)?;
        let best = devices
            .iter()
            .max_by_key(|device| (!device.integrated, device.total_memory));
        let best = best.ok_or(HipError::DeviceNotFound { ordinal: 0, count: 0 })?;
        Self::open(
            provider,
            BackendOptions {
                device: best.ordinal,
                ..options
            },
        )
    }

    /// The devices a provider shows. One that cannot be read is left out, so that it does not hide the others.
    ///
    /// # Errors
    ///
    /// None can be read: what the first one said.
    pub fn devices(provider: &Provider, deadline: Duration) -> HipResult<Vec<DeviceInfo>> {
        let count = hip::device::count(&*provider.api)?;
        let mut devices = Vec::new();
        let mut first_error = None;
        for ordinal in 0..count {
            let (api, clock) = (Arc::clone(&provider.api), Arc::clone(&provider.clock));
            match DeviceInfo::query(&Driver::new(api, clock, None, ordinal, count, deadline)) {
                Ok(device) => devices.push(device),
                Err(error) => {
                    tracing::warn!(ordinal, %error, "this device cannot be read and is left out");
                    first_error.get_or_insert(error);
                }
            }
        }
        match first_error {
            Some(error) if devices.is_empty() => Err(error),
            _ => Ok(devices),
        }
    }

    /// Opens a device of any provider.
    #[track_caller]
    pub fn open(provider: Provider, options: BackendOptions) -> HipResult<Arc<Self>> {
        let site = Site::caller();
        let Provider {
            api,
            clock,
            names,
            readings,
            cards,
            peers,
            host,
        } = provider;
        let count = hip::device::count(&*api)?;
        if options.device < 0 || options.device >= count {
            return Err(HipError::DeviceNotFound {
                ordinal: options.device,
                count,
            });
        }
        let driver = Driver::new(api, clock, names, options.device, count, options.deadline);
        let device = DeviceInfo::query(&driver)?;
        let make = || {
            let system = readings.or_else(|| system_readings(&device.pci));
            let readings = CardReadings {
                driver: Arc::clone(&driver),
                system,
            };
            let (key, policy, readings) = (device.pci.clone(), options.policy, Box::new(readings));
            match peers.map(|ledger| ledger.join(&key)) {
                Some(Ok(peers)) => Ok(Card::open_shared(key, policy, readings, peers)?),
                Some(Err(source)) => Err(HipError::SharedLedger { card: key, source }),
                None => Ok(Card::open(key, policy, readings)?),
            }
        };
        let card = match (options.card, cards) {
            (Some(card), _) if *card.key() == device.pci => card,
            (Some(card), _) => {
                return Err(HipError::WrongCard {
                    device: device.pci,
                    card: card.key().clone(),
                });
            }
            (None, Some(cards)) => cards.get_or_make(&device.pci, make)?,
            (None, None) => make()?,
        };
        tracing::debug!(device = %device.name, arch = %device.arch, memory = %device.total_memory, "opened");
        let host = host.unwrap_or_else(HostBudget::of_this_machine);
        let core = Core::new(driver, card, host, device, options.pool);
        Ok(Self::on_stream(core, "backend", site))
    }

    /// A backend with a stream that lives as long as it does, from its first work on.
    fn on_stream(core: Arc<Core>, label: &str, site: Site) -> Arc<Self> {
        let stream = HipStream::made_by_work(&core, label, site);
        stream.shared().retain();
        let in_use = AtomicBool::new(false);
        Arc::new(Self { stream, core, in_use })
    }

    /// This backend, or if its stream is leased one with [its own](Self::with_own_stream). A driver may be slower on each later stream, so one user
    /// after the other gets the same. Who uses [`stream`](Self::stream) without a lease meets the captures of who holds one: work of other threads wants
    /// [`create_stream`](Self::create_stream). A backend that is kept beyond its lease has no claim on its stream.
    #[must_use]
    #[track_caller]
    pub fn lease_stream(self: &Arc<Self>, label: &str) -> StreamLease {
        let backend = match self.in_use.swap(true, Ordering::Acquire) {
            false => Arc::clone(self),
            true => {
                let own = self.with_own_stream(label);
                own.in_use.store(true, Ordering::Release);
                own
            }
        };
        StreamLease { backend }
    }

    /// Another backend of the same device, with the same budget, memory and deadline, and a stream of its own: what one thread captures on its
    /// stream is not in the way of another thread.
    #[must_use]
    #[track_caller]
    pub fn with_own_stream(&self, label: &str) -> Arc<Self> {
        Self::on_stream(Arc::clone(&self.core), label, Site::caller())
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.core
    }

    /// The device.
    pub fn device(&self) -> &DeviceInfo {
        &self.core.device
    }

    /// The card's budget and ledger.
    pub fn card(&self) -> &Arc<Card> {
        &self.core.card
    }

    /// The backend's own stream.
    pub fn stream(&self) -> &HipStream {
        &self.stream
    }

    /// How long any wait may take.
    pub fn deadline(&self) -> Duration {
        self.core.driver.deadline()
    }

    /// A stream.
    #[track_caller]
    pub fn create_stream(self: &Arc<Self>, label: &str) -> HipResult<HipStream> {
        HipStream::new(&self.core, label, Site::caller())
    }

    /// An event without time stamps.
    #[track_caller]
    pub fn create_event(self: &Arc<Self>, label: &str) -> HipResult<HipEvent> {
        HipEvent::new(&self.core, false, label, Site::caller())
    }

    /// An event with time stamps, for [`HipEvent::elapsed`].
    #[track_caller]
    pub fn create_timing_event(self: &Arc<Self>, label: &str) -> HipResult<HipEvent> {
        HipEvent::new(&self.core, true, label, Site::caller())
    }

    /// Loads a code object.
    #[track_caller]
    pub fn load_module(self: &Arc<Self>, image: &[u8], label: &str) -> HipResult<HipModule> {
        HipModule::load(&self.core, image, label, Site::caller())
    }

    /// Waits for all streams of this backend, each at most until the deadline, and gives the driver back what was dropped
    /// meanwhile. What the pool keeps stays.
    pub fn synchronize(&self) -> HipResult<()> {
        self.core.driver.enter()?;
        self.core.synchronize()?;
        self.core.driver.enter()
    }

    /// What its memory has been asked for, and what it holds: the pool's hit rate and fragmentation, the driver's calls.
    pub fn memory_statistics(&self) -> MemoryStatistics {
        self.core.memory.statistics()
    }

    /// Gives idle memory of the pool back to the driver until at most `keep` bytes of it are left; returns how many went.
    /// Memory that queued work still uses goes when that is done, at a later allocation, wait or drop. Requests that would
    /// fail otherwise do this by themselves.
    pub fn trim_memory(&self, keep: Bytes) -> HipResult<Bytes> {
        self.core.driver.enter()?;
        let bytes = self.core.memory.trim_to(keep);
        self.core.driver.enter()?;
        Ok(bytes)
    }

    /// The last kernels and graphs that were enqueued, the oldest first. For messages about hangs and late errors.
    pub fn last_launches(&self) -> Vec<LaunchRecord> {
        self.core.launches.last()
    }

    /// How many launches it has enqueued, those of captures included; a graph's launch is one.
    pub fn launches(&self) -> u64 {
        self.core.launches.noted()
    }

    /// Why this backend is unusable, if it is.
    pub fn is_poisoned(&self) -> Option<Arc<HipError>> {
        self.core.driver.poison().cloned()
    }

    /// Makes this backend's device the calling thread's current one. Every call of this crate does so itself; this is for
    /// code that calls HIP on its own.
    pub fn ensure_device(&self) -> HipResult<()> {
        self.core.driver.enter()?;
        self.core.driver.ensure_device()
    }

    /// The calling thread's current device.
    pub fn thread_device(&self) -> HipResult<i32> {
        self.core.driver.enter()?;
        self.core.driver.current_device()
    }
}

debug_fields!(HipBackend, |backend|
    device: backend.core.device.name, arch: backend.core.device.arch, poisoned: backend.is_poisoned());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(
        not(feature = "rocm"),
        ignore = "opens the AMD library, if the machine has a GPU for it"
    )]
    fn the_answer_is_the_same_every_time() {
        let first = HipBackend::availability();
        assert!(std::ptr::eq(first, HipBackend::availability()));
        assert_eq!(HipBackend::gpu_available(), first.is_available());
        match (first, HipBackend::new_checked()) {
            (Availability::Available { .. }, Ok(backend)) => assert!(backend.device().arch.starts_with("gfx")),
            (Availability::Unavailable(why), Err(HipError::Unavailable(reason))) => assert_eq!(*why, reason),
            (first, opened) => panic!("{first}, but opening gives {opened:?}"),
        }
    }
}
