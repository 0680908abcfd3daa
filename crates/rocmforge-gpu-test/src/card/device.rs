//! Device of a run: what `--device` names, found on this machine.

use super::nvidia;
use crate::lock;
use crate::text::none_or;
use rocmforge_machine::sysfs::{Machine, Sysfs};
use rocmforge_machine::{CardName, DeviceName};
use std::fmt;
use std::path::{Path, PathBuf};

/// A device of this machine. It is made of a [`DeviceName`] by [`Device::find`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// A fresh simulated card for each test: a gfx1100, or of this instruction set.
    Sim(Option<&'static str>),
    /// An AMD card, by its PCI address.
    Hip(String),
    /// An NVIDIA card, by its PCI address.
    Nvidia(String),
}

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum DeviceError {
    /// There is no such card here.
    #[error("no {vendor} card {wanted:?} here; found: {found}. `doctor` says more")]
    NoSuchCard {
        /// Who makes such cards.
        vendor: &'static str,
        /// What was asked for.
        wanted: String,
        /// Addresses of the cards that are there.
        found: String,
    },
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim(processor) => DeviceName::Sim(*processor).fmt(f),
            Self::Hip(card) => write!(f, "hip:{card}"),
            Self::Nvidia(card) => write!(f, "nvidia:{card}"),
        }
    }
}

impl Device {
    /// The key of the card's lock. A simulated card is private to its process, so what is locked is the folder of reports.
    pub fn card_key(&self) -> String {
        match self {
            Self::Sim(_) => "sim".to_owned(),
            Self::Hip(card) | Self::Nvidia(card) => card.clone(),
        }
    }

    /// Where the lock file lies; `reports` is the folder of reports.
    pub fn lock_directory(&self, reports: &Path) -> PathBuf {
        match self {
            Self::Sim(_) => reports.join("lock"),
            Self::Hip(_) | Self::Nvidia(_) => lock::default_directory(),
        }
    }

    /// Environment variables of a test process.
    pub fn environment(&self) -> Vec<(&'static str, String)> {
        let mut environment = vec![(crate::DEVICE_VARIABLE, self.to_string())];
        if let Self::Nvidia(_) = self {
            // Without it the driver puts the fastest card first.
            environment.push(("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()));
        }
        environment
    }

    /// Processes at a time: on a real card one unless the user says otherwise, in simulation one a core.
    pub fn jobs(&self, wanted: Option<usize>) -> usize {
        let usual = match self {
            Self::Sim(_) => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            Self::Hip(_) | Self::Nvidia(_) => 1,
        };
        wanted.unwrap_or(usual).max(1)
    }

    /// The PCI address of a real card.
    pub fn pci(&self) -> Option<&str> {
        match self {
            Self::Sim(_) => None,
            Self::Hip(card) | Self::Nvidia(card) => Some(card),
        }
    }

    /// It was found, and is not there any more.
    pub(crate) fn missing(&self) -> DeviceError {
        DeviceError::NoSuchCard {
            vendor: match self {
                Self::Nvidia(_) => "NVIDIA",
                Self::Sim(_) | Self::Hip(_) => "AMD",
            },
            wanted: self.card_key(),
            found: "not any more".to_owned(),
        }
    }

    /// The device of that name, without opening it. HIP counts its cards in the order of KFD's nodes; NVIDIA's are counted in the
    /// order of their addresses.
    ///
    /// # Errors
    ///
    /// [`DeviceError::NoSuchCard`].
    pub fn find(name: DeviceName, sysfs: &Sysfs, machine: &Machine) -> Result<Self, DeviceError> {
        match name {
            DeviceName::Sim(processor) => Ok(Self::Sim(processor)),
            DeviceName::Hip(wanted) => {
                let cards: Vec<&str> = machine.amd_cards().filter_map(|card| card.pci.as_deref()).collect();
                let order: Vec<&str> = machine.nodes.iter().map(|node| node.pci.as_str()).collect();
                one_of("AMD", wanted, &order, &cards).map(Self::Hip)
            }
            DeviceName::Nvidia(wanted) => {
                let cards = nvidia::cards(sysfs, machine);
                let cards: Vec<&str> = cards.iter().map(|card| card.pci.as_str()).collect();
                one_of("NVIDIA", wanted, &cards, &cards).map(Self::Nvidia)
            }
        }
    }
}

/// The address among `cards` that `wanted` names: itself, or by its place in `order`.
fn one_of(vendor: &'static str, wanted: CardName, order: &[&str], cards: &[&str]) -> Result<String, DeviceError> {
    let pci = match wanted {
        CardName::Index(index) => order.get(index as usize).map(|&pci| pci.to_owned()),
        CardName::Pci(pci) => Some(pci.to_string()),
    };
    let there = pci.filter(|pci| cards.contains(&pci.as_str()));
    there.ok_or_else(|| DeviceError::NoSuchCard {
        vendor,
        wanted: wanted.to_string(),
        found: none_or(cards),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_test_support::machines::{H200, Machine};

    fn find(name: &str, tree: &Machine) -> Result<Device, DeviceError> {
        let sysfs = Sysfs::at(tree.path());
        Device::find(name.parse().unwrap(), &sysfs, &sysfs.machine())
    }

    #[test]
    fn a_device_is_shown_by_a_name_that_finds_it() {
        for device in [
            Device::Sim(None),
            Device::Sim(Some("gfx1201")),
            Device::Hip("0000:03:00.0".to_owned()),
        ] {
            assert_eq!(find(&device.to_string(), &Machine::headless()), Ok(device));
        }
    }

    #[test]
    fn a_card_is_found_by_its_address_or_index() {
        let device = Device::Hip("0000:03:00.0".to_owned());
        assert_eq!(device.pci(), Some("0000:03:00.0"));
        assert_eq!(find("hip:0", &Machine::headless()), Ok(device));
        assert_eq!(Device::Sim(None).pci(), None);
    }

    #[test]
    fn an_nvidia_card_is_found_by_its_place_among_the_addresses() {
        let tree = Machine::headless()
            .nvidia(0, "0000:0a:00.0", 0x0300)
            .nvidia(1, H200, 0x0302);
        let found = |wanted: &str| find(&format!("nvidia:{wanted}"), &tree);
        let first = Device::Nvidia(H200.to_owned());
        assert_eq!(found("0"), Ok(first.clone()));
        assert_eq!(found(H200), Ok(first));
        assert_eq!(found("1"), Ok(Device::Nvidia("0000:0a:00.0".to_owned())));
        let refused = found("0000:03:00.0").unwrap_err().to_string();
        assert!(
            refused.contains("no NVIDIA card \"0000:03:00.0\" here; found: 0000:06:00.0, 0000:0a:00.0"),
            "{refused}"
        );
        let none = find("nvidia:0", &Machine::headless()).unwrap_err();
        assert!(none.to_string().contains("found: none"), "{none}");
    }

    #[test]
    fn a_card_that_is_not_there_is_refused_with_those_that_are() {
        let refused = find("hip:7", &Machine::headless());
        let expected = DeviceError::NoSuchCard {
            vendor: "AMD",
            wanted: "7".to_owned(),
            found: "0000:03:00.0".to_owned(),
        };
        assert_eq!(refused, Err(expected));
    }

    #[test]
    fn children_count_nvidia_cards_as_we_do() {
        let variables = Device::Nvidia(H200.to_owned()).environment();
        assert_eq!(variables[0].1, format!("nvidia:{H200}"));
        assert_eq!(variables[1], ("CUDA_DEVICE_ORDER", "PCI_BUS_ID".to_owned()));
        assert_eq!(Device::Hip("0".to_owned()).environment().len(), 1);
    }

    #[test]
    fn a_real_card_runs_one_test_at_a_time_by_default() {
        assert_eq!(Device::Hip("0".to_owned()).jobs(None), 1);
        assert_eq!(Device::Nvidia("0".to_owned()).jobs(Some(8)), 8);
        assert_eq!(Device::Sim(None).jobs(Some(8)), 8);
    }
}
