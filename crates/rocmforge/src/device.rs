//! Opening a device by name.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rocmforge_nvidia::{CudaDriver, NvmlReadings};
use rocmforge_runtime::{BackendOptions, DeviceInfo, HipBackend, HipError, PoolOptions, Provider};
#[cfg(feature = "sim")]
use rocmforge_sim::{Arch, CardConfig, SimConfig, SimHost};

/// Architectures of simulated cards.
const SIMULATED: [&str; 2] = ["gfx1100", "gfx1201"];

/// Which device: `sim`, `sim:gfx1100`, `sim:gfx1201`, `hip:<index>`, `hip:<PCI address>`, `nvidia:<index>` or `nvidia:<PCI address>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// A simulated card of this architecture in this process; `sim` is a gfx1100.
    Sim(&'static str),
    /// A card by its index in AMD's library.
    HipIndex(i32),
    /// A card by its PCI address, such as `0000:03:00.0`.
    HipPci(String),
    /// An NVIDIA card by its index in NVIDIA's driver, which `CUDA_DEVICE_ORDER` and `CUDA_VISIBLE_DEVICES` decide.
    NvidiaIndex(i32),
    /// An NVIDIA card by its PCI address.
    NvidiaPci(String),
}

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The name is none of the known forms.
    #[error(
        "{0:?} names no device: use \"sim\", \"sim:gfx1201\", \"hip:<index>\" or \"nvidia:<index>\", or a PCI address in the place of the index, \
         as in \"hip:0000:03:00.0\""
    )]
    Name(String),
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

impl FromStr for DeviceName {
    type Err = DeviceError;

    fn from_str(name: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Name(name.to_owned());
        let Some((platform, at)) = name.split_once(':') else {
            return if name == "sim" {
                Ok(Self::Sim(SIMULATED[0]))
            } else {
                Err(unknown())
            };
        };
        if platform == "sim" {
            let arch = SIMULATED.into_iter().find(|arch| *arch == at);
            return arch.map(Self::Sim).ok_or_else(unknown);
        }
        let index = at
            .bytes()
            .all(|b| b.is_ascii_digit())
            .then(|| at.parse().ok())
            .flatten();
        let pci = is_pci_address(at).then(|| at.to_ascii_lowercase());
        match (platform, index, pci) {
            ("hip", Some(index), _) => Ok(Self::HipIndex(index)),
            ("hip", _, Some(pci)) => Ok(Self::HipPci(pci)),
            ("nvidia", Some(index), _) => Ok(Self::NvidiaIndex(index)),
            ("nvidia", _, Some(pci)) => Ok(Self::NvidiaPci(pci)),
            _ => Err(unknown()),
        }
    }
}

/// `dddd:bb:dd.f`, hexadecimal.
fn is_pci_address(text: &str) -> bool {
    let pattern = b"xxxx:xx:xx.x";
    text.len() == pattern.len()
        && text
            .bytes()
            .zip(pattern)
            .all(|(c, &p)| if p == b'x' { c.is_ascii_hexdigit() } else { c == p })
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
/// [`DeviceError`]: the name is wrong, or there is no such device, with the reason.
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
        DeviceName::Sim(arch) => open_sim(arch, options),
        DeviceName::HipIndex(index) => open_real(Provider::amd()?, *index, options),
        DeviceName::HipPci(wanted) => {
            let provider = Provider::amd()?;
            let index = find(&provider, |device| device.pci.as_str() == wanted, wanted)?.ordinal;
            open_real(provider, index, options)
        }
        DeviceName::NvidiaIndex(index) => open_nvidia(|device| device.ordinal == *index, &index.to_string(), options),
        DeviceName::NvidiaPci(wanted) => open_nvidia(|device| device.pci.as_str() == wanted, wanted, options),
    }
}

/// The provider's device that is `wanted`.
fn find(provider: &Provider, is_wanted: impl Fn(&DeviceInfo) -> bool, wanted: &str) -> Result<DeviceInfo, DeviceError> {
    let devices = HipBackend::devices(provider, Duration::from_secs(30))?;
    if let Some(device) = devices.iter().find(|device| is_wanted(device)) {
        return Ok(device.clone());
    }
    let found: Vec<String> = devices.iter().map(|device| device.pci.to_string()).collect();
    Err(DeviceError::NoSuchCard {
        wanted: wanted.to_owned(),
        found: found.join(", "),
    })
}

/// An NVIDIA card, with the figures of its management library, where there is one that knows it.
fn open_nvidia(
    is_wanted: impl Fn(&DeviceInfo) -> bool,
    wanted: &str,
    options: BackendOptions,
) -> Result<Device, DeviceError> {
    let provider = Provider::of_this_machine(Arc::new(CudaDriver::load()?));
    let device = find(&provider, is_wanted, wanted)?;
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
fn open_sim(arch: &'static str, options: BackendOptions) -> Result<Device, DeviceError> {
    let arch: Arch = arch.parse().map_err(|_| DeviceError::Name(format!("sim:{arch}")))?;
    // One thread a launch: with more of them the card's memory is copied for each launch, weights and KV cache included.
    let sim = SimHost::new(SimConfig {
        cards: vec![CardConfig::of(arch)],
        ..SimConfig::default()
    });
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
fn open_sim(_arch: &'static str, _options: BackendOptions) -> Result<Device, DeviceError> {
    Err(DeviceError::NoSimulator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let parse = |s: &str| s.parse::<DeviceName>().ok();
        assert_eq!(parse("sim"), Some(DeviceName::Sim("gfx1100")));
        assert_eq!(parse("sim:gfx1100"), Some(DeviceName::Sim("gfx1100")));
        assert_eq!(parse("sim:gfx1201"), Some(DeviceName::Sim("gfx1201")));
        assert_eq!(parse("hip:1"), Some(DeviceName::HipIndex(1)));
        assert_eq!(
            parse("hip:0000:0A:00.0"),
            Some(DeviceName::HipPci("0000:0a:00.0".into()))
        );
        assert_eq!(parse("nvidia:0"), Some(DeviceName::NvidiaIndex(0)));
        assert_eq!(
            parse("nvidia:0000:0A:00.0"),
            Some(DeviceName::NvidiaPci("0000:0a:00.0".into()))
        );
        for wrong in [
            "",
            "hip",
            "hip:",
            "nvidia",
            "nvidia:",
            "nvidia:x",
            "hip:-1",
            "hip:99999999999",
            "cuda:0",
            "cpu",
            "sim:0",
            "sim:",
            "sim:gfx1150",
            "hip:03:00.0",
            "hip:0000-03-00-0",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }

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
        assert_eq!(SIMULATED, Arch::ALL.map(Arch::name));
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
