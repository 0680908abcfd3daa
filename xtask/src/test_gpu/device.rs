//! Which device the tests run on, and whether they may.

use rocmforge_memory::sysfs::Machine;
use rocmforge_testkit::{Arch, lock};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A device as `--device` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// A fresh simulated card for each test: a gfx1100, or of this instruction set.
    Sim(Option<Arch>),
    /// An AMD card by PCI address or index.
    Hip(String),
}

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum DeviceError {
    /// The name is none of the known forms.
    #[error("{0:?} is no device: use `sim`, `sim:gfx1201`, or `hip:<PCI address or index>`")]
    Unknown(String),
    /// There is no such card here.
    #[error("no AMD card {wanted:?} here; found: {found}. `cargo xtask doctor` says more")]
    NoSuchCard { wanted: String, found: String },
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        match text.split_once(':') {
            None if text == "sim" => Ok(Self::Sim(None)),
            Some(("sim", arch)) => match arch.parse() {
                Ok(arch) => Ok(Self::Sim(Some(arch))),
                Err(_) => Err(DeviceError::Unknown(text.to_owned())),
            },
            Some(("hip", card)) if !card.is_empty() => Ok(Self::Hip(card.to_owned())),
            _ => Err(DeviceError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim(None) => f.write_str("sim"),
            Self::Sim(Some(arch)) => write!(f, "sim:{arch}"),
            Self::Hip(card) => write!(f, "hip:{card}"),
        }
    }
}

impl Device {
    /// The key of the card's lock. A simulated card is private to its process, so what is locked is the folder of reports.
    pub(crate) fn card_key(&self) -> String {
        match self {
            Self::Sim(_) => "sim".to_owned(),
            Self::Hip(card) => card.clone(),
        }
    }

    /// Where the lock file lies; `reports` is the folder of reports.
    pub(crate) fn lock_directory(&self, reports: &Path) -> PathBuf {
        match self {
            Self::Sim(_) => reports.join("lock"),
            Self::Hip(_) => lock::default_directory(),
        }
    }

    /// What a test process is told.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![("ROCMFORGE_DEVICE", self.to_string())]
    }

    /// Processes at a time: the user's choice in simulation, one on a real card.
    pub(crate) fn jobs(&self, wanted: Option<usize>) -> usize {
        match self {
            Self::Sim(_) => wanted
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
                .max(1),
            Self::Hip(_) => 1,
        }
    }

    /// The card's PCI address, of a real one that is [resolved](Self::resolve).
    pub(crate) fn pci(&self) -> Option<&str> {
        match self {
            Self::Sim(_) => None,
            Self::Hip(card) => Some(card),
        }
    }

    /// Looks whether the device is there, without opening it, and names a card by its PCI address.
    pub(crate) fn resolve(self, machine: &Machine) -> Result<Self, DeviceError> {
        let Self::Hip(wanted) = self else { return Ok(self) };
        // HIP numbers its devices in the order of KFD's nodes.
        let by_index = wanted
            .parse::<usize>()
            .ok()
            .and_then(|index| Some(machine.nodes.get(index)?.pci.clone()));
        let pci = by_index.unwrap_or_else(|| wanted.clone());
        if !machine
            .amd_cards()
            .any(|card| card.pci.as_deref() == Some(pci.as_str()))
        {
            let found: Vec<&str> = machine.amd_cards().filter_map(|card| card.pci.as_deref()).collect();
            let found = if found.is_empty() {
                "none".to_owned()
            } else {
                found.join(", ")
            };
            return Err(DeviceError::NoSuchCard { wanted, found });
        }
        Ok(Self::Hip(pci))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_memory::sysfs::Sysfs;
    use std::fs;

    fn file(root: &Path, path: &str, content: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// A machine with one AMD card at 0000:03:00.0.
    fn machine() -> Machine {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/devices/pci0000:00/0000:03:00.0");
        fs::create_dir_all(&device).unwrap();
        fs::create_dir_all(root.path().join("sys/class/drm/card0")).unwrap();
        std::os::unix::fs::symlink(&device, root.path().join("sys/class/drm/card0/device")).unwrap();
        file(root.path(), "sys/devices/pci0000:00/0000:03:00.0/vendor", "0x1002\n");
        file(
            root.path(),
            "sys/devices/pci0000:00/0000:03:00.0/uevent",
            "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0\n",
        );
        Sysfs::at(root.path()).machine()
    }

    #[test]
    fn names_are_parsed_or_refused() {
        assert_eq!("sim".parse(), Ok(Device::Sim(None)));
        assert_eq!("sim:gfx1201".parse(), Ok(Device::Sim(Some(Arch::Gfx1201))));
        assert_eq!(Device::Sim(Some(Arch::Gfx1201)).to_string(), "sim:gfx1201");
        assert_eq!("hip:0000:03:00.0".parse(), Ok(Device::Hip("0000:03:00.0".to_owned())));
        for wrong in ["", "hip:", "cuda:0", "sim:1", "sim:gfx942", "hip"] {
            assert_eq!(wrong.parse::<Device>(), Err(DeviceError::Unknown(wrong.to_owned())));
        }
    }

    #[test]
    fn a_card_is_found_by_its_address() {
        let device = Device::Hip("0000:03:00.0".to_owned());
        assert_eq!(device.pci(), Some("0000:03:00.0"));
        assert_eq!(device.clone().resolve(&machine()), Ok(device));
        assert_eq!(Device::Sim(None).resolve(&machine()), Ok(Device::Sim(None)));
        assert_eq!(Device::Sim(None).pci(), None);
    }

    #[test]
    fn a_card_that_is_not_there_is_refused_with_those_that_are() {
        let refused = Device::Hip("7".to_owned()).resolve(&machine());
        let expected = DeviceError::NoSuchCard {
            wanted: "7".to_owned(),
            found: "0000:03:00.0".to_owned(),
        };
        assert_eq!(refused, Err(expected));
    }

    #[test]
    fn a_real_card_runs_one_test_at_a_time() {
        assert_eq!(Device::Hip("0".to_owned()).jobs(Some(8)), 1);
        assert_eq!(Device::Sim(None).jobs(Some(8)), 8);
    }
}
