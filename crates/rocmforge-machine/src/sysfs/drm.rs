//! Display adapters: `/sys/class/drm` with its cards, connectors and memory figures.

use std::path::{Path, PathBuf};

use super::{ReadError, Sysfs};
use crate::{Bytes, PciAddress, file};

/// One `/sys/class/drm/cardN`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrmCard {
    /// `card0`.
    pub name: String,
    /// The number in the name.
    pub number: u32,
    /// PCI address, `0000:03:00.0`.
    pub pci: Option<String>,
    /// The kernel driver, `amdgpu`.
    pub driver: Option<String>,
    /// PCI vendor number; AMD's is 0x1002.
    pub vendor: Option<u32>,
    /// PCI device number.
    pub device: Option<u32>,
    /// The board's name, where the firmware tells it.
    pub product: Option<String>,
    /// Total VRAM.
    pub vram_total: Option<Bytes>,
    /// VRAM used by all processes, graphics included.
    pub vram_used: Option<Bytes>,
    /// System memory that the GPU may use in all.
    pub gtt_total: Option<Bytes>,
    /// System memory that the GPU uses.
    pub gtt_used: Option<Bytes>,
    /// Its sockets for displays.
    pub connectors: Vec<Connector>,
    /// The render node's name, `renderD128`.
    pub render_node: Option<String>,
}

/// One `/sys/class/drm/cardN-*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connector {
    /// `HDMI-A-1`.
    pub name: String,
    /// Whether a display is plugged in (`status` is `connected`).
    pub connected: bool,
    /// Whether an image is sent to it (`enabled` is `enabled`).
    pub enabled: bool,
}

impl DrmCard {
    /// Connectors with a display plugged in, or driven all the same.
    pub fn displays(&self) -> u32 {
        displays(&self.connectors)
    }
}

fn displays(connectors: &[Connector]) -> u32 {
    let driving = connectors
        .iter()
        .filter(|connector| connector.connected || connector.enabled)
        .count();
    u32::try_from(driving).unwrap_or(u32::MAX)
}

/// PCI address and driver of a device directory, from its `uevent`.
fn identity(device: &Path, problems: &mut Vec<ReadError>) -> (Option<String>, Option<String>) {
    let path = device.join("uevent");
    let Some(text) = file::optional(file::read(&path), problems) else {
        return (None, None);
    };
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
            .map(|value| value.trim().to_owned())
    };
    let pci = value("PCI_SLOT_NAME").and_then(|slot| match slot.parse::<PciAddress>() {
        Ok(address) => Some(address.to_string()),
        Err(_) => {
            problems.push(file::malformed(&path, &slot, "a PCI address"));
            None
        }
    });
    (pci, value("DRIVER"))
}

impl Sysfs {
    /// Every display adapter that has a driver, by number.
    pub fn cards(&self, problems: &mut Vec<ReadError>) -> Vec<DrmCard> {
        let class = self.path("sys/class/drm");
        let names = file::names(&class, problems);
        let render_nodes: Vec<(String, Option<String>)> = names
            .iter()
            .filter(|name| numbered(name, "renderD").is_some())
            .map(|name| (name.clone(), identity(&class.join(name).join("device"), problems).0))
            .collect();
        let mut cards: Vec<DrmCard> = names
            .iter()
            .filter_map(|name| {
                let number = numbered(name, "card")?;
                let device = class.join(name).join("device");
                let (pci, driver) = identity(&device, problems);
                let mut bytes = |figure: &str| file::optional(file::number(&device.join(figure)), problems).map(Bytes);
                let (vram_total, vram_used) = (bytes("mem_info_vram_total"), bytes("mem_info_vram_used"));
                let (gtt_total, gtt_used) = (bytes("mem_info_gtt_total"), bytes("mem_info_gtt_used"));
                let render_node = render_nodes
                    .iter()
                    .find(|(_, address)| address.is_some() && *address == pci)
                    .map(|(node, _)| node.clone());
                Some(DrmCard {
                    name: name.clone(),
                    number,
                    pci,
                    driver,
                    vendor: file::optional(file::hex(&device.join("vendor")), problems),
                    device: file::optional(file::hex(&device.join("device")), problems),
                    product: file::optional(file::read(&device.join("product_name")), problems)
                        .filter(|name| !name.is_empty()),
                    vram_total,
                    vram_used,
                    gtt_total,
                    gtt_used,
                    connectors: connectors(&class, name, &names),
                    render_node,
                })
            })
            .collect();
        cards.sort_by_key(|card| card.number);
        cards
    }
}

/// The number in `card0`, `renderD128`; `None` for `card0-HDMI-A-1`.
fn numbered(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.parse().ok()
}

fn connectors(class: &Path, card: &str, names: &[String]) -> Vec<Connector> {
    names
        .iter()
        .filter_map(|name| {
            let connector = name.strip_prefix(card)?.strip_prefix('-')?;
            // Write-back connectors have no status of a display; anything unreadable counts as nothing connected.
            let holds =
                |figure: &str, value: &str| file::read(&class.join(name).join(figure)).is_ok_and(|text| text == value);
            Some(Connector {
                name: connector.to_owned(),
                connected: holds("status", "connected"),
                enabled: holds("enabled", "enabled"),
            })
        })
        .collect()
}

/// Files of one card, so that a reading of its figures does not search for the card again.
#[derive(Debug, Clone)]
pub struct CardFiles {
    class: PathBuf,
    name: String,
}

/// A memory's size and use, read in this order; `None` where a figure cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemoryFigures {
    /// Bytes in all.
    pub total: Option<Bytes>,
    /// Bytes used by all processes.
    pub used: Option<Bytes>,
}

impl CardFiles {
    /// The files of a card that [`Sysfs::cards`] has found.
    pub fn new(sysfs: &Sysfs, card: &DrmCard) -> Self {
        Self {
            class: sysfs.path("sys/class/drm"),
            name: card.name.clone(),
        }
    }

    /// VRAM now, graphics included.
    pub fn vram(&self) -> MemoryFigures {
        MemoryFigures {
            total: self.bytes("mem_info_vram_total"),
            used: self.bytes("mem_info_vram_used"),
        }
    }

    /// System memory that the GPU may use, now.
    pub fn gtt(&self) -> MemoryFigures {
        MemoryFigures {
            total: self.bytes("mem_info_gtt_total"),
            used: self.bytes("mem_info_gtt_used"),
        }
    }

    /// Displays now: they are plugged in and pulled out while a program runs.
    pub fn displays(&self) -> u32 {
        let names = file::names(&self.class, &mut Vec::new());
        displays(&connectors(&self.class, &self.name, &names))
    }

    fn bytes(&self, figure: &str) -> Option<Bytes> {
        file::number(&self.class.join(&self.name).join("device").join(figure))
            .ok()
            .map(Bytes)
    }
}
