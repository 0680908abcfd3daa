//! GPUs of the machine, found without HIP: cards, displays, KFD nodes and permissions, from sysfs and `/proc`.
//!
//! The root is injectable, so a fixture tree reads like a machine. Nothing here opens `/dev/kfd`, nothing trusts what a
//! file holds: files are read up to a bound, and what does not parse becomes a [`ReadError`] in a list, not a guess.
//!
//! ```
//! use rocmforge_machine::sysfs::Sysfs;
//!
//! let machine = Sysfs::host().machine();
//! for card in &machine.cards {
//!     println!("{}: {:?} VRAM, {} displays", card.name, card.vram_total, card.displays());
//! }
//! ```

mod access;
mod drm;
mod evictions;
mod kfd;
mod memory;
mod processes;

use std::path::{Path, PathBuf};

pub use access::{Access, DeviceFile, Group, User};
pub use drm::{CardFiles, Connector, DrmCard, MemoryFigures};
pub use kfd::{KfdNode, gfx_name};
pub use memory::HostReading;
pub use processes::CardUser;

use crate::file;
pub use crate::file::ReadError;

/// AMD's PCI vendor number.
pub const AMD: u32 = 0x1002;

/// A file system to look at: the machine's own, or a copy of the parts that matter.
#[derive(Debug, Clone)]
pub struct Sysfs {
    root: PathBuf,
}

/// Everything found in one look.
#[derive(Debug, Clone, Default)]
pub struct Machine {
    /// Display adapters with a driver, by card number.
    pub cards: Vec<DrmCard>,
    /// GPUs that KFD offers for compute, by node number.
    pub nodes: Vec<KfdNode>,
    /// Whether the amdgpu module is loaded.
    pub amdgpu_loaded: bool,
    /// amdgpu's parameters that decide what happens to a hanging kernel, as (name, value).
    pub parameters: Vec<(String, String)>,
    /// `/dev/kfd`.
    pub kfd: Option<DeviceFile>,
    /// `/dev/dri/renderD*`, by number.
    pub render_nodes: Vec<DeviceFile>,
    /// Who we are.
    pub user: User,
    /// What could not be read or understood.
    pub problems: Vec<ReadError>,
}

/// amdgpu's parameters worth knowing: compute wave save and restore, recovery by reset, and how long a job may take.
const PARAMETERS: [&str; 3] = ["cwsr_enable", "gpu_recovery", "lockup_timeout"];

impl Sysfs {
    /// The machine this runs on.
    pub fn host() -> Self {
        Self::at("/")
    }

    /// A tree that holds `sys`, `proc`, `dev` and `etc` as a machine has them.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where the tree lies.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Whether this is the machine's own file system.
    pub fn is_host(&self) -> bool {
        self.root == Path::new("/")
    }

    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// Looks at everything.
    pub fn machine(&self) -> Machine {
        let mut problems = Vec::new();
        let user = self.user(&mut problems);
        let cards = self.cards(&mut problems);
        let nodes = self.kfd_nodes(&mut problems);
        let amdgpu = self.path("sys/module/amdgpu");
        let parameters = PARAMETERS
            .iter()
            .filter_map(|name| {
                let value = file::optional(file::read(&amdgpu.join("parameters").join(name)), &mut problems)?;
                Some(((*name).to_owned(), value))
            })
            .collect();
        let mut render_nodes: Vec<(u32, DeviceFile)> = file::names(&self.path("dev/dri"), &mut problems)
            .into_iter()
            .filter_map(|name| {
                let number = name.strip_prefix("renderD")?.parse().ok()?;
                Some((number, self.device_file(&format!("dev/dri/{name}"), &user)?))
            })
            .collect();
        render_nodes.sort_by_key(|&(number, _)| number);
        Machine {
            cards,
            nodes,
            amdgpu_loaded: amdgpu.is_dir(),
            parameters,
            kfd: self.device_file("dev/kfd", &user),
            render_nodes: render_nodes.into_iter().map(|(_, node)| node).collect(),
            user,
            problems,
        }
    }
}

/// AMD's display controller that no driver has taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BareCard {
    /// PCI address, `0000:03:00.0`.
    pub pci: String,
    /// PCI device number.
    pub device: Option<u32>,
}

impl Sysfs {
    /// AMD's display controllers on the PCI bus that have no driver, by address.
    pub fn bare_amd_cards(&self) -> Vec<BareCard> {
        let devices = self.path("sys/bus/pci/devices");
        // There is no advice for a device that cannot be read.
        let number = |pci: &str, name: &str| file::hex(&devices.join(pci).join(name)).ok();
        let mut cards: Vec<BareCard> = file::names(&devices, &mut Vec::new())
            .into_iter()
            // The class of displays is 3; what follows tells VGA from 3D.
            .filter(|pci| {
                number(pci, "vendor") == Some(AMD) && number(pci, "class").is_some_and(|class| class >> 16 == 3)
            })
            .filter(|pci| std::fs::symlink_metadata(devices.join(pci).join("driver")).is_err())
            .map(|pci| BareCard {
                device: number(&pci, "device"),
                pci,
            })
            .collect();
        cards.sort_by(|a, b| a.pci.cmp(&b.pci));
        cards
    }
}

impl Machine {
    /// The KFD node of a card, by PCI address.
    pub fn node_of(&self, card: &DrmCard) -> Option<&KfdNode> {
        let pci = card.pci.as_deref()?;
        self.nodes.iter().find(|node| node.pci == pci)
    }

    /// AMD's cards.
    pub fn amd_cards(&self) -> impl Iterator<Item = &DrmCard> {
        self.cards.iter().filter(|card| card.vendor == Some(AMD))
    }

    /// Whether a card shares the system's memory, as far as KFD tells.
    pub fn is_unified(&self, card: &DrmCard) -> bool {
        self.node_of(card).is_some_and(KfdNode::is_unified)
    }
}
