//! AMD graphics cards without a driver.

use crate::card::files::{names, number};
use rocmforge_machine::sysfs::AMD;
use std::fs;
use std::path::Path;

/// PCI addresses of AMD's display controllers without a driver.
pub(super) fn cards(root: &Path) -> Vec<String> {
    let devices = root.join("sys/bus/pci/devices");
    let mut cards: Vec<String> = names(&devices)
        // The class of displays is 3; what follows tells VGA from 3D.
        .filter(|device| {
            let number = |file| number(&devices.join(device).join(file));
            number("vendor") == Some(AMD) && number("class").is_some_and(|class| class >> 16 == 3)
        })
        .filter(|device| fs::symlink_metadata(devices.join(device).join("driver")).is_err())
        .collect();
    cards.sort();
    cards
}
