//! AMD graphics cards without a driver.

use std::fs;
use std::path::Path;

use rocmforge_machine::sysfs::AMD;

/// PCI addresses of AMD's display controllers without a driver.
pub(super) fn cards(root: &Path) -> Vec<String> {
    let devices = root.join("sys/bus/pci/devices");
    let number = |device: &str, file: &str| {
        let text = fs::read_to_string(devices.join(device).join(file)).ok()?;
        u32::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
    };
    let mut cards: Vec<String> = fs::read_dir(&devices)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        // The class of displays is 3; what follows tells VGA from 3D.
        .filter(|device| {
            number(device, "vendor") == Some(AMD) && number(device, "class").is_some_and(|class| class >> 16 == 3)
        })
        .filter(|device| fs::symlink_metadata(devices.join(device).join("driver")).is_err())
        .collect();
    cards.sort();
    cards
}
