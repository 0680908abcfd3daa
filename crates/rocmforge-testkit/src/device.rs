//! Device choice: the device that a test process may use.

use parking_lot::Mutex;
use rocmforge_gpu_test::lock::{self, LOCK_FD_VARIABLE, LockError};
use rocmforge_machine::{CardName, DeviceName, DeviceNameError};
use rocmforge_nvidia::{CudaDriver, LoadError, NvmlReadings};
use rocmforge_runtime::{DeviceInfo, HipBackend, HipError, Provider};
use rocmforge_sim::{Arch, SimConfig, SimError, SimHost, UnknownArch};
use std::sync::Arc;

pub use rocmforge_gpu_test::DEVICE_VARIABLE;

/// Why a test has no device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The name is none of the known forms.
    #[error("{DEVICE_VARIABLE}: {0}. A real card is for `cargo xtask test-gpu --device hip:<PCI address>`")]
    Name(#[from] DeviceNameError),
    /// The simulator does not have the processor.
    #[error(transparent)]
    Processor(#[from] UnknownArch),
    /// A real card without the supervisor's lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The simulated machine cannot be made.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// The provider or the card is not there.
    #[error(transparent)]
    Hip(#[from] HipError),
    /// NVIDIA's driver library is not there, or too old.
    #[error(transparent)]
    Nvidia(#[from] LoadError),
    /// Another test of this process has the card.
    #[error(
        "a real card runs one test at a time, and {holder} of this process has it: `cargo xtask test-gpu` gives each test a \
         process of its own; in one process use `--test-threads=1`"
    )]
    InUse {
        /// The thread that has it; libtest names it after its test.
        holder: String,
    },
    /// No device of the provider is at this address.
    #[error("no device of the library is {wanted:?}; it shows: {found}")]
    NoSuchDevice {
        /// What was asked for.
        wanted: String,
        /// What there is.
        found: String,
    },
}

/// A device to open.
pub(crate) struct Chosen {
    pub(crate) provider: Provider,
    pub(crate) ordinal: i32,
    pub(crate) sim: Option<Arc<SimHost>>,
    pub(crate) name: String,
    /// Held as long as the lease on a real card.
    pub(crate) turn: Option<Turn>,
}

/// A lease's turn on the real card: within a process there is one at a time. Parallel tests would disturb each other's
/// memory figures and timing, and hide which of them has brought the card down.
pub(crate) struct Turn(());

static TURN: Mutex<Option<String>> = Mutex::new(None);

impl Turn {
    fn take() -> Result<Self, DeviceError> {
        let mut holder = TURN.lock();
        if let Some(holder) = &*holder {
            let holder = holder.clone();
            return Err(DeviceError::InUse { holder });
        }
        let me = std::thread::current();
        *holder = Some(
            me.name()
                .map_or_else(|| "another thread".to_owned(), |name| format!("`{name}`")),
        );
        Ok(Self(()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        *TURN.lock() = None;
    }
}

/// The device named in this process's environment; without one a simulated card, as `sim` describes it.
pub(crate) fn choose(sim: &SimConfig) -> Result<Chosen, DeviceError> {
    let name = std::env::var(DEVICE_VARIABLE).unwrap_or_else(|_| "sim".to_owned());
    let name: DeviceName = name.parse()?;
    match name {
        DeviceName::Sim(None) => Ok(simulated(SimHost::try_new(sim.clone())?, name)),
        DeviceName::Sim(Some(processor)) => {
            let arch: Arch = processor.parse()?;
            let mut sim = sim.clone();
            for card in &mut sim.cards {
                *card = card.clone().with_arch(arch);
            }
            Ok(simulated(SimHost::try_new(sim)?, name))
        }
        DeviceName::Hip(card) => real(card, name, Platform::Amd),
        DeviceName::Nvidia(card) => real(card, name, Platform::Nvidia),
    }
}

fn simulated(host: Arc<SimHost>, name: DeviceName) -> Chosen {
    let provider = Provider::new(host.api())
        .with_clock(host.clock())
        .with_names(host.names())
        .with_readings(Box::new(host.readings(0)));
    Chosen {
        provider,
        ordinal: 0,
        sim: Some(host),
        name: name.to_string(),
        turn: None,
    }
}

/// HIP's platforms.
#[derive(Clone, Copy)]
enum Platform {
    Amd,
    Nvidia,
}

impl Platform {
    fn provider(self) -> Result<Provider, DeviceError> {
        match self {
            Self::Amd => Ok(Provider::amd()?),
            Self::Nvidia => Ok(Provider::of_this_machine(Arc::new(CudaDriver::load()?))),
        }
    }
}

/// A real card, which needs the supervisor's lock before AMD's library is even loaded; or one of a library that simulates its cards.
fn real(card: CardName, name: DeviceName, platform: Platform) -> Result<Chosen, DeviceError> {
    if !(matches!(platform, Platform::Amd) && Provider::amd_is_simulated()) {
        let descriptor = std::env::var(LOCK_FD_VARIABLE).ok();
        lock::check_inherited(&lock::default_directory(), &card.to_string(), descriptor.as_deref())?;
    }
    let turn = Turn::take()?;
    let mut provider = platform.provider()?;
    let devices = HipBackend::devices(&provider, std::time::Duration::from_secs(10))?;
    let is_wanted = |device: &&DeviceInfo| match card {
        CardName::Index(index) => i64::from(device.ordinal) == i64::from(index),
        CardName::Pci(pci) => device.pci.as_str() == pci.to_string(),
    };
    let Some(device) = devices.iter().find(is_wanted) else {
        let list = devices.iter().map(|device| format!("{} ({})", device.pci, device.name));
        let list: Vec<_> = list.collect();
        return Err(DeviceError::NoSuchDevice {
            wanted: card.to_string(),
            found: list.join(", "),
        });
    };
    if let Platform::Nvidia = platform
        && let Some(readings) = NvmlReadings::open(device.pci.as_str())?
    {
        provider = provider.with_readings(Box::new(readings));
    }
    Ok(Chosen {
        ordinal: device.ordinal,
        provider,
        sim: None,
        name: name.to_string(),
        turn: Some(turn),
    })
}
