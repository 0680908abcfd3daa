//! Who implements HIP.

use crate::availability::Unavailable;
use crate::error::{HipError, HipResult};
use parking_lot::Mutex;
use rocmforge_hip_sys::{HipApi, HipClock, HipLibrary, HipNames, SystemClock};
use rocmforge_memory::{Card, DeviceKey, Readings};
use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};

/// Who implements HIP: the AMD library, the simulated device, or a test's fake.
pub struct Provider {
    /// The functions.
    pub api: Arc<dyn HipApi>,
    /// The clock deadlines are measured on.
    pub clock: Arc<dyn HipClock>,
    /// Who is told what allocations are called, if anybody wants to know.
    pub names: Option<Arc<dyn HipNames>>,
    /// The system's figures of the card. `None`: sysfs, by the device's PCI address.
    pub readings: Option<Box<dyn Readings>>,
    /// Where backends on the same device find the budget they share. `None`: each backend has its own.
    pub cards: Option<Arc<Cards>>,
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
        }
    }

    /// The same on another clock.
    pub fn with_clock(self, clock: Arc<dyn HipClock>) -> Self {
        Self { clock, ..self }
    }

    /// The same, and `names` is told the label and site of every allocation.
    pub fn with_names(self, names: Arc<dyn HipNames>) -> Self {
        Self {
            names: Some(names),
            ..self
        }
    }

    /// The same with other figures of the card.
    pub fn with_readings(self, readings: Box<dyn Readings>) -> Self {
        Self {
            readings: Some(readings),
            ..self
        }
    }

    /// Loads the AMD library. Calls no function of it.
    pub fn amd() -> HipResult<Self> {
        match HipLibrary::load() {
            Ok(library) => {
                let provider = Self::new(Arc::new(library));
                Ok(Self {
                    cards: Some(Arc::clone(&AMD_CARDS)),
                    ..provider
                })
            }
            Err(error) => Err(HipError::Unavailable(Arc::new(Unavailable::NoLibrary(
                error.to_string(),
            )))),
        }
    }
}

/// The AMD library is one per process, so its cards are too.
static AMD_CARDS: LazyLock<Arc<Cards>> = LazyLock::new(Arc::default);

/// The cards of one provider, by PCI address.
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
