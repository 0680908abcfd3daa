//! NVIDIA's cards as files show them: no driver is opened here.
//!
//! A card is known by its PCI device and by the folder that NVIDIA's driver keeps of it in `/proc`. Either may be hidden in a
//! container; one that shows device files and nothing else has its cards listed by the [`probe`].

use super::files::{names, number};
use super::probe::{self, Probed};
use rocmforge_machine::sysfs::{Machine, Sysfs};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// NVIDIA's PCI vendor number.
const VENDOR: u32 = 0x10de;
/// PCI's class of display controllers, and those of it that have no socket for a display.
const DISPLAYS: u32 = 0x03;
const WITHOUT_SOCKETS: u32 = 0x0302;
/// The file through which every user of the driver goes.
pub(crate) const CONTROL: &str = "dev/nvidiactl";

/// One card.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NvidiaCard {
    /// PCI address, `0000:03:00.0`.
    pub(crate) pci: String,
    /// What its driver calls it.
    pub(crate) model: Option<String>,
    /// The number in `/dev/nvidia0`.
    pub(crate) minor: Option<u32>,
    /// The kernel driver that has taken it, if PCI tells.
    pub(crate) driver: Option<String>,
    /// PCI's class and subclass.
    pub(crate) class: Option<u32>,
    /// Sockets with a display, or driven all the same; `None`: the kernel shows none of its sockets.
    pub(crate) displays: Option<Vec<String>>,
}

impl NvidiaCard {
    /// Whether it was built to compute only.
    pub(crate) fn has_no_sockets(&self) -> bool {
        self.class == Some(WITHOUT_SOCKETS)
    }

    /// The card's device file.
    pub(crate) fn device_file(&self) -> Option<String> {
        Some(format!("dev/nvidia{}", self.minor?))
    }

    /// The card's device file as processes have it open.
    pub(crate) fn node(&self) -> Option<PathBuf> {
        Some(Path::new("/").join(self.device_file()?))
    }
}

/// NVIDIA's cards, in the order of their addresses: that of `CUDA_DEVICE_ORDER=PCI_BUS_ID`.
pub(crate) fn cards(sysfs: &Sysfs, machine: &Machine) -> Vec<NvidiaCard> {
    let devices = sysfs.root().join("sys/bus/pci/devices");
    let known = sysfs.root().join("proc/driver/nvidia/gpus");
    let ours = |pci: &String| {
        number(&devices.join(pci).join("vendor")) == Some(VENDOR) && class(&devices.join(pci)) >> 8 == DISPLAYS
    };
    let lower_case = |folder| names(folder).map(|name| name.to_ascii_lowercase());
    let addresses: BTreeSet<String> = lower_case(&devices).filter(ours).chain(lower_case(&known)).collect();
    let found: Vec<NvidiaCard> = addresses
        .into_iter()
        .map(|pci| card(machine, &devices.join(&pci), &known.join(&pci).join("information"), pci))
        .collect();
    // Only where there is nothing to see but a driver to ask.
    if found.is_empty() && sysfs.is_host() && Path::new("/").join(CONTROL).exists() {
        return probe::ask().unwrap_or_default().into_iter().map(card_of).collect();
    }
    found
}

fn card(machine: &Machine, device: &Path, information: &Path, pci: String) -> NvidiaCard {
    let information = fs::read_to_string(information).unwrap_or_default();
    let value = |key: &str| {
        let line = information.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.trim_start_matches(':').trim().to_owned()).filter(|value| !value.is_empty())
    };
    let driver = fs::read_link(device.join("driver")).ok();
    let drm = machine.cards.iter().find(|card| card.pci.as_ref() == Some(&pci));
    let connectors = drm.map(|card| &card.connectors).filter(|all| !all.is_empty());
    NvidiaCard {
        model: value("Model"),
        minor: value("Device Minor").and_then(|minor| minor.parse().ok()),
        driver: driver.and_then(|link| Some(link.file_name()?.to_str()?.to_owned())),
        class: Some(class(device)).filter(|&class| class > 0),
        displays: connectors.map(|connectors| {
            let driven = connectors.iter().filter(|socket| socket.connected || socket.enabled);
            driven.map(|socket| socket.name.clone()).collect()
        }),
        pci,
    }
}

/// A card that only the driver lists.
fn card_of(probed: Probed) -> NvidiaCard {
    NvidiaCard {
        pci: probed.pci,
        model: Some(probed.name),
        ..NvidiaCard::default()
    }
}

/// The version of NVIDIA's kernel driver, `580.95.05`, where it is loaded.
pub(crate) fn driver_version(sysfs: &Sysfs) -> Option<String> {
    let text = fs::read_to_string(sysfs.root().join("proc/driver/nvidia/version")).ok()?;
    let is_version = |word: &&str| {
        let parts: Vec<&str> = word.split('.').collect();
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        parts.len() >= 2 && parts.iter().all(is_number)
    };
    let mut words = text.lines().next()?.split_whitespace();
    words.find(is_version).map(str::to_owned)
}

/// Class and subclass of a PCI device; 0 where they cannot be read.
fn class(device: &Path) -> u32 {
    number(&device.join("class")).map_or(0, |class| class >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_test_support::machines::{H200, Machine};

    fn found(tree: &Machine) -> Vec<NvidiaCard> {
        let sysfs = Sysfs::at(tree.path());
        cards(&sysfs, &sysfs.machine())
    }

    #[test]
    fn cards_are_known_by_their_addresses_in_order() {
        let tree = Machine::new().nvidia(1, "0000:0a:00.0", 0x0300).nvidia(0, H200, 0x0302);
        let expected = NvidiaCard {
            pci: H200.to_owned(),
            model: Some("NVIDIA H200".to_owned()),
            minor: Some(0),
            driver: Some("nvidia".to_owned()),
            class: Some(0x0302),
            displays: None,
        };
        let cards = found(&tree);
        assert_eq!(cards[0], expected);
        assert_eq!((cards.len(), cards[1].pci.as_str()), (2, "0000:0a:00.0"));
        assert!(cards[0].has_no_sockets() && !cards[1].has_no_sockets());
        assert_eq!(cards[1].node(), Some(PathBuf::from("/dev/nvidia1")));
    }

    #[test]
    fn a_card_that_pci_hides_is_known_from_its_driver() {
        let information = "Model: \t\t NVIDIA H200\nDevice Minor: \t 3\n";
        let tree = Machine::new().file(&format!("proc/driver/nvidia/gpus/{H200}/information"), information);
        let cards = found(&tree);
        assert_eq!(cards[0].minor, Some(3));
        assert_eq!((cards[0].class, cards[0].driver.as_deref()), (None, None));
    }

    #[test]
    fn audio_bridges_and_others_cards_are_no_cards() {
        let device = "sys/bus/pci/devices/0000:0a:00.1";
        let tree = Machine::headless()
            .file(&format!("{device}/vendor"), "0x10de\n")
            .file(&format!("{device}/class"), "0x040300\n");
        assert_eq!(found(&tree), []);
        assert_eq!(driver_version(&Sysfs::at(tree.path())), None);
    }

    #[test]
    fn the_drivers_version_is_found_in_either_form_of_its_line() {
        for line in [
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue Sep 23 10:11:16 UTC 2025",
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build  (root@x)",
        ] {
            let tree = Machine::new().file("proc/driver/nvidia/version", line);
            assert_eq!(driver_version(&Sysfs::at(tree.path())).as_deref(), Some("580.95.05"));
        }
    }

    #[test]
    fn a_version_is_numbers_with_dots_between() {
        let line = "NVRM version: a.b 64 1..2 580.95.05 1.2";
        let tree = Machine::new().file("proc/driver/nvidia/version", line);
        assert_eq!(driver_version(&Sysfs::at(tree.path())).as_deref(), Some("580.95.05"));
    }

    #[test]
    fn a_card_that_no_driver_knows_is_found_on_the_bus_and_other_devices_are_no_cards() {
        let device = |tree: Machine, pci: &str, vendor: &str, class: &str| {
            let folder = format!("sys/bus/pci/devices/{pci}");
            tree.file(&format!("{folder}/vendor"), vendor)
                .file(&format!("{folder}/class"), class)
        };
        let tree = device(Machine::new(), "0000:06:00.0", "0x10de\n", "0x030200\n");
        let tree = device(tree, "0000:06:00.1", "0x10de\n", "0x040300\n");
        let tree = device(tree, "0000:03:00.0", "0x1002\n", "0x030000\n");
        let sysfs = Sysfs::at(tree.path());
        let found: Vec<String> = cards(&sysfs, &sysfs.machine())
            .into_iter()
            .map(|card| card.pci)
            .collect();
        assert_eq!(found, ["0000:06:00.0"]);
    }

    #[test]
    fn a_card_of_which_only_the_driver_speaks_has_its_address_and_name() {
        let card = card_of(Probed {
            pci: "0000:06:00.0".to_owned(),
            name: "NVIDIA H200".to_owned(),
            memory: None,
            may_display: false,
        });
        assert_eq!(
            (card.pci.as_str(), card.model.as_deref()),
            ("0000:06:00.0", Some("NVIDIA H200"))
        );
    }
}
