//! Opening a device by name.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use rocmforge_runtime::{BackendOptions, HipBackend, HipError, PoolOptions, Provider};
#[cfg(feature = "sim")]
use rocmforge_sim::{SimConfig, SimHost};

/// Which device: `sim`, `hip:<index>` or `hip:<PCI address>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// A simulated gfx1100 in this process.
    Sim,
    /// A card by its index in AMD's library.
    HipIndex(i32),
    /// A card by its PCI address, such as `0000:03:00.0`.
    HipPci(String),
}

/// Why a device cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The name is none of the known forms.
    #[error("{0:?} names no device: use \"sim\", \"hip:<index>\" or \"hip:<PCI address, as 0000:03:00.0>\"")]
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
    /// HIP says no.
    #[error(transparent)]
    Hip(#[from] HipError),
}

impl FromStr for DeviceName {
    type Err = DeviceError;

    fn from_str(name: &str) -> Result<Self, DeviceError> {
        let unknown = || DeviceError::Name(name.to_owned());
        match name.split_once(':') {
            None if name == "sim" => Ok(Self::Sim),
            Some(("hip", at)) if !at.is_empty() && at.bytes().all(|b| b.is_ascii_digit()) => {
                at.parse().map(Self::HipIndex).map_err(|_| unknown())
            }
            Some(("hip", at)) if is_pci_address(at) => Ok(Self::HipPci(at.to_ascii_lowercase())),
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
        DeviceName::Sim => open_sim(options),
        DeviceName::HipIndex(index) => open_hip(BackendOptions {
            device: *index,
            ..options
        }),
        DeviceName::HipPci(wanted) => {
            let devices = HipBackend::devices(&Provider::amd()?, Duration::from_secs(30))?;
            let pci = |d: &rocmforge_runtime::DeviceInfo| d.pci.to_string().to_ascii_lowercase();
            let Some(index) = devices.iter().position(|d| pci(d) == *wanted) else {
                let found = devices.iter().map(pci).collect::<Vec<_>>().join(", ");
                return Err(DeviceError::NoSuchCard {
                    wanted: wanted.clone(),
                    found,
                });
            };
            open_hip(BackendOptions {
                device: index as i32,
                ..options
            })
        }
    }
}

fn open_hip(options: BackendOptions) -> Result<Device, DeviceError> {
    let backend = HipBackend::open(Provider::amd()?, options)?;
    Ok(Device {
        backend,
        #[cfg(feature = "sim")]
        sim: None,
    })
}

#[cfg(feature = "sim")]
fn open_sim(options: BackendOptions) -> Result<Device, DeviceError> {
    let sim = SimHost::new(SimConfig::default());
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
fn open_sim(_options: BackendOptions) -> Result<Device, DeviceError> {
    Err(DeviceError::NoSimulator)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let parse = |s: &str| s.parse::<DeviceName>().ok();
        assert_eq!(parse("sim"), Some(DeviceName::Sim));
        assert_eq!(parse("hip:1"), Some(DeviceName::HipIndex(1)));
        assert_eq!(
            parse("hip:0000:0A:00.0"),
            Some(DeviceName::HipPci("0000:0a:00.0".into()))
        );
        for wrong in [
            "",
            "hip",
            "hip:",
            "hip:-1",
            "hip:99999999999",
            "cuda:0",
            "sim:0",
            "hip:03:00.0",
            "hip:0000-03-00-0",
        ] {
            assert_eq!(parse(wrong), None, "{wrong:?}");
        }
    }

    #[cfg(feature = "sim")]
    #[test]
    fn the_simulated_card_opens() {
        let device = open("sim").expect("a simulated card is always there");
        assert_eq!(device.backend().device().arch, "gfx1100");
        assert!(device.sim().is_some());
    }

    #[test]
    fn wrong_names_say_what_is_right() {
        let error = open("radeon").expect_err("no such name").to_string();
        assert!(error.contains("hip:<index>"), "{error}");
    }
}
