//! Opening a device by name.

use std::sync::Arc;
use std::time::Duration;

pub use rocmforge_machine::{CardName, DeviceName, DeviceNameError, PciAddress};
use rocmforge_nvidia::{CudaDriver, NvmlReadings};
use rocmforge_runtime::{Availability, BackendOptions, DeviceInfo, HipBackend, HipError, PoolOptions, Provider};
#[cfg(feature = "sim")]
use rocmforge_sim::{Arch, CardConfig, SimConfig, SimHost};

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The name is none of the known forms.
    #[error(transparent)]
    Name(#[from] DeviceNameError),
    /// The simulator does not have the processor.
    #[cfg(feature = "sim")]
    #[error(transparent)]
    Processor(#[from] rocmforge_sim::UnknownArch),
    /// The simulator was left out of this build.
    #[error("this build has no simulator: enable the feature \"sim\" of the crate rocmforge")]
    NoSimulator,
    /// No card has the address.
    #[error("no card at {wanted}; there are: {found}")]
    NoSuchCard {
        /// The address asked for.
        wanted: String,
        /// The cards there are.
        found: String,
    },
    /// NVIDIA's driver library is not there, or too old.
    #[error(transparent)]
    Nvidia(#[from] rocmforge_nvidia::LoadError),
    /// HIP says no.
    #[error(transparent)]
    Hip(#[from] HipError),
}

/// An open device.
#[derive(Debug)]
pub struct Device {
    backend: Arc<HipBackend>,
    #[cfg(feature = "sim")]
    sim: Option<Arc<SimHost>>,
}

impl Device {
    /// The HIP backend.
    #[must_use]
    pub fn backend(&self) -> &Arc<HipBackend> {
        &self.backend
    }

    /// The simulated machine, if the device is simulated.
    #[cfg(feature = "sim")]
    #[must_use]
    pub fn sim(&self) -> Option<&Arc<SimHost>> {
        self.sim.as_ref()
    }
}

/// Opens a device with the desktop's share of its memory kept free ([`rocmforge_runtime::Policy::desktop`]), and with a pool:
/// temporaries of one step are the memory of the next.
///
/// # Errors
/// [`DeviceError`]: the name is wrong, or there is no such device, with the reason. Where no AMD GPU can be used, that is what
/// [`HipBackend::availability`] answers ([`HipError::Unavailable`]), and HIP is not called.
pub fn open(name: &str) -> Result<Device, DeviceError> {
    let options = BackendOptions {
        pool: PoolOptions::ON,
        ..BackendOptions::default()
    };
    open_with(&name.parse()?, options)
}

/// Opens a device with options; `options.device` is replaced by what the name says.
///
/// # Errors
/// As [`open`].
pub fn open_with(name: &DeviceName, options: BackendOptions) -> Result<Device, DeviceError> {
    match name {
        DeviceName::Sim(processor) => open_sim(*processor, options),
        DeviceName::Hip(CardName::Index(index)) => {
            // An index beyond `int` is beyond all cards, and HIP says so.
            open_real(amd()?, i32::try_from(*index).unwrap_or(i32::MAX), options)
        }
        DeviceName::Hip(card @ CardName::Pci(_)) => {
            let provider = amd()?;
            let index = find(&provider, *card)?.ordinal;
            open_real(provider, index, options)
        }
        DeviceName::Nvidia(card) => open_nvidia(*card, options),
    }
}

/// AMD's library, if a card can be used at all; otherwise the reason, in the words of [`HipBackend::new_checked`].
fn amd() -> Result<Provider, DeviceError> {
    if let Availability::Unavailable(why) = HipBackend::availability() {
        return Err(HipError::Unavailable(Arc::clone(why)).into());
    }
    Ok(Provider::amd()?)
}

/// The provider's device that is `wanted`.
fn find(provider: &Provider, wanted: CardName) -> Result<DeviceInfo, DeviceError> {
    let is_wanted = |device: &DeviceInfo| match wanted {
        CardName::Index(index) => i64::from(device.ordinal) == i64::from(index),
        CardName::Pci(pci) => device.pci.as_str() == pci.to_string(),
    };
    let devices = HipBackend::devices(provider, Duration::from_secs(30))?;
    if let Some(device) = devices.iter().find(|device| is_wanted(device)) {
        return Ok(device.clone());
    }
    let found: Vec<String> = devices.iter().map(|device| device.pci.to_string()).collect();
    Err(DeviceError::NoSuchCard {
        wanted: wanted.to_string(),
        found: found.join(", "),
    })
}

/// An NVIDIA card, with the figures of its management library, where there is one that knows it.
fn open_nvidia(wanted: CardName, options: BackendOptions) -> Result<Device, DeviceError> {
    let provider = Provider::of_this_machine(Arc::new(CudaDriver::load()?));
    let device = find(&provider, wanted)?;
    let provider = match NvmlReadings::open(device.pci.as_str()) {
        Ok(Some(readings)) => provider.with_readings(Box::new(readings)),
        // The budget then goes by the driver's own figures.
        Ok(None) | Err(_) => provider,
    };
    open_real(provider, device.ordinal, options)
}

fn open_real(provider: Provider, index: i32, options: BackendOptions) -> Result<Device, DeviceError> {
    let options = BackendOptions {
        device: index,
        ..options
    };
    Ok(Device {
        backend: HipBackend::open(provider, options)?,
        #[cfg(feature = "sim")]
        sim: None,
    })
}

#[cfg(feature = "sim")]
fn open_sim(processor: Option<&'static str>, options: BackendOptions) -> Result<Device, DeviceError> {
    let arch = processor.map_or(Ok(Arch::Gfx1100), str::parse)?;
    open_simulated(CardConfig::of(arch), options)
}

/// Opens a simulated card with this memory, desktop and name.
///
/// # Errors
/// [`DeviceError::Hip`].
#[cfg(feature = "sim")]
pub fn open_simulated(card: CardConfig, options: BackendOptions) -> Result<Device, DeviceError> {
    let machine = SimConfig {
        cards: vec![card],
        threads: std::thread::available_parallelism().map_or(1, usize::from),
        ..SimConfig::default()
    };
    open_simulated_machine(machine, options)
}

/// Opens the first card of a simulated machine, such as one whose GPU shares its memory.
///
/// # Errors
/// [`DeviceError::Hip`].
#[cfg(feature = "sim")]
pub fn open_simulated_machine(machine: SimConfig, options: BackendOptions) -> Result<Device, DeviceError> {
    let sim = SimHost::new(machine);
    let provider = Provider::new(sim.api())
        .with_clock(sim.clock())
        .with_names(sim.names())
        .with_readings(Box::new(sim.readings(0)));
    let backend = HipBackend::open(provider, BackendOptions { device: 0, ..options })?;
    Ok(Device {
        backend,
        sim: Some(sim),
    })
}

#[cfg(not(feature = "sim"))]
fn open_sim(_processor: Option<&'static str>, _options: BackendOptions) -> Result<Device, DeviceError> {
    Err(DeviceError::NoSimulator)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_runtime::Unavailable;

    #[cfg(feature = "sim")]
    #[test]
    fn the_simulated_cards_open() {
        for (name, arch) in [
            ("sim", "gfx1100"),
            ("sim:gfx1100", "gfx1100"),
            ("sim:gfx1201", "gfx1201"),
        ] {
            let device = open(name).expect("a simulated card is always there");
            assert_eq!(device.backend().device().arch, arch);
            assert!(device.sim().is_some());
        }
    }

    /// Where the kernel shows a card, plain `cargo test` leaves it alone: only the supervisor opens one.
    #[test]
    fn without_a_card_hip_says_which_of_the_reasons_it_is() {
        if std::path::Path::new("/dev/kfd").exists() {
            return;
        }
        let Availability::Unavailable(why) = HipBackend::availability() else {
            panic!("available without /dev/kfd");
        };
        let checked = HipBackend::new_checked().expect_err("no card").to_string();
        for name in ["hip:0", "hip:7", "hip:0000:03:00.0"] {
            let error = open(name).expect_err("no card");
            assert!(
                matches!(&error, DeviceError::Hip(HipError::Unavailable(reason)) if reason == why),
                "{name}: {error}"
            );
            assert_eq!(error.to_string(), checked, "{name}");
            assert!(matches!(&**why, Unavailable::NoDriver(file) if error.to_string().contains(file)));
        }
    }

    #[test]
    fn wrong_names_say_what_is_right() {
        let error = open("radeon").expect_err("no such name").to_string();
        assert!(error.contains("hip:<index>"), "{error}");
    }

    #[test]
    fn without_the_driver_nvidia_says_what_is_missing() {
        // Where there is one, no machine has this many cards.
        let error = open("nvidia:9999").expect_err("no such card").to_string();
        assert!(
            error.contains("no usable NVIDIA driver") || error.contains("no card at 9999"),
            "{error}"
        );
    }
}
