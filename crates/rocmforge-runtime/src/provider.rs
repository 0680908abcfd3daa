//! Providers: the AMD library, the simulator and NVIDIA's driver behind one trait.

use crate::availability;
use crate::error::{HipError, HipResult};
use parking_lot::Mutex;
#[cfg(doc)]
use rocmforge_hip_sys::HipLibrary;
use rocmforge_hip_sys::{HipApi, HipClock, HipNames, SystemClock};
use rocmforge_machine::private;
use rocmforge_memory::{Card, DeviceKey, HostBudget, PeerFigures, PeerLedger, PeersError, Reading, Readings};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Weak};

/// Who implements HIP: the AMD library, the simulated device, or a test's fake.
pub struct Provider {
    /// The functions.
    pub api: Arc<dyn HipApi>,
    /// The clock deadlines are measured on.
    pub clock: Arc<dyn HipClock>,
    /// Receiver of the names of allocations, if there is one.
    pub names: Option<Arc<dyn HipNames>>,
    /// The system's figures of the card. `None`: sysfs, by the device's PCI address.
    pub readings: Option<Box<dyn Readings>>,
    /// Where backends on the same device find the budget they share. `None`: each backend has its own.
    pub cards: Option<Arc<Cards>>,
    /// Where this user's processes agree on who may take how much of a card. `None`: they do not.
    pub peers: Option<SharedLedger>,
    /// The budget that pinned memory is granted from. `None`: this machine's, shared by everything in the process.
    pub host: Option<Arc<HostBudget>>,
}

/// Where processes of a user share the ledger of a card.
#[derive(Clone, Debug)]
pub struct SharedLedger {
    /// The directory of the ledgers, which must be this user's alone.
    pub directory: PathBuf,
    /// Whether a card's figures show what the other processes hold.
    pub figures: PeerFigures,
}

impl SharedLedger {
    /// This user's ledgers of the machine's cards, under `/tmp/rocmforge-<uid>`.
    pub fn of_this_user() -> Self {
        Self {
            directory: private::default_directory(),
            figures: PeerFigures::InUsed,
        }
    }

    pub(crate) fn join(&self, card: &DeviceKey) -> Result<PeerLedger, PeersError> {
        PeerLedger::join(&self.directory, card, self.figures)
    }
}

impl Provider {
    /// A provider on the machine's clock whose card is looked up in sysfs.
    pub fn new(api: Arc<dyn HipApi>) -> Self {
        Self {
            api,
            clock: Arc::new(SystemClock::new()),
            names: None,
            readings: None,
            cards: None,
            peers: None,
            host: None,
        }
    }

    /// The same on another clock.
    pub fn with_clock(self, clock: Arc<dyn HipClock>) -> Self {
        Self { clock, ..self }
    }

    /// The same, and `names` receives the label and site of every allocation.
    pub fn with_names(mut self, names: Arc<dyn HipNames>) -> Self {
        self.names = Some(names);
        self
    }

    /// The same with other figures of the card.
    pub fn with_readings(mut self, readings: Box<dyn Readings>) -> Self {
        self.readings = Some(readings);
        self
    }

    /// The same with another budget of host memory.
    pub fn with_host(mut self, host: Arc<HostBudget>) -> Self {
        self.host = Some(host);
        self
    }

    /// The same, and the budget takes into account what the user's other processes have claimed in `ledger`. A simulated
    /// card is each process's own, so only those that ask share one.
    pub fn with_peers(mut self, ledger: SharedLedger) -> Self {
        self.peers = Some(ledger);
        self
    }

    /// A provider of this machine's cards: all backends of this process share each card's budget, and this user's
    /// processes share its ledger.
    pub fn of_this_machine(api: Arc<dyn HipApi>) -> Self {
        Self {
            cards: Some(Arc::clone(&MACHINE_CARDS)),
            peers: Some(SharedLedger::of_this_user()),
            ..Self::new(api)
        }
    }

    /// Loads the AMD library, a provider [of this machine](Self::of_this_machine). Calls no function of it. The cards of a library that
    /// simulates them ([`HipLibrary::simulates`]) are not the machine's: their figures are the library's, and no other process shares them.
    pub fn amd() -> HipResult<Self> {
        let api = availability::load().map_err(|why| HipError::Unavailable(Arc::new(why)))?;
        if api.simulates() {
            return Ok(Self::new(api).with_readings(Box::new(NoSystem)));
        }
        Ok(Self::of_this_machine(api))
    }

    /// Whether the library that `ROCMFORGE_HIP_LIBRARY` names simulates its cards, with the settings of `ROCMFORGE_HIP_SETTINGS`. Without either
    /// variable nothing is loaded, and the answer is no.
    pub fn amd_is_simulated() -> bool {
        availability::named_library_simulates()
    }
}

/// Figures of a system that knows nothing of the card: HIP's own are left.
struct NoSystem;

impl Readings for NoSystem {
    fn read(&self) -> Reading {
        Reading::default()
    }
}

/// A card of the machine is one, however many backends of a process are open on it and whoever provides them.
static MACHINE_CARDS: LazyLock<Arc<Cards>> = LazyLock::new(Arc::default);

/// The cards that several providers share, by PCI address.
#[derive(Default)]
pub struct Cards(Mutex<HashMap<DeviceKey, Weak<Card>>>);

impl Cards {
    pub(crate) fn get_or_make<E>(
        &self,
        key: &DeviceKey,
        make: impl FnOnce() -> Result<Arc<Card>, E>,
    ) -> Result<Arc<Card>, E> {
        let mut cards = self.0.lock();
        if let Some(card) = cards.get(key).and_then(Weak::upgrade) {
            return Ok(card);
        }
        let card = make()?;
        cards.insert(key.clone(), Arc::downgrade(&card));
        Ok(card)
    }
}
