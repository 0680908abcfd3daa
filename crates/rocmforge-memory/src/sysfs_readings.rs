//! Readings of one card from sysfs: the budget's figures, read anew each time.

use crate::{Reading, Readings, SharedMemory};
use rocmforge_machine::Bytes;
use rocmforge_machine::sysfs::{CardFiles, KfdNode, Sysfs};

/// Figures of the card at one PCI address.
///
/// `hip_free` is not known here.
#[derive(Debug, Clone)]
pub struct SysfsReadings {
    sysfs: Sysfs,
    pci: String,
    files: Option<CardFiles>,
    gpu_id: Option<u32>,
    process: u32,
    unified: bool,
}

impl SysfsReadings {
    /// The card at `pci` (`0000:03:00.0`, in either case). A card that is not there reads as unknown in all, which
    /// makes the budget the conservative one.
    pub fn new(sysfs: &Sysfs, pci: &str) -> Self {
        let machine = sysfs.machine();
        let is_at = |at: &String| at.eq_ignore_ascii_case(pci);
        let mut cards = machine.cards.iter();
        let card = cards.find(|card| card.pci.as_ref().is_some_and(is_at));
        let node = machine.nodes.iter().find(|node| node.pci.eq_ignore_ascii_case(pci));
        Self {
            files: card.map(|card| CardFiles::new(sysfs, card)),
            gpu_id: node.map(|node| node.gpu_id),
            pci: pci.to_owned(),
            process: std::process::id(),
            unified: node.is_some_and(KfdNode::is_unified),
            sysfs: sysfs.clone(),
        }
    }

    /// The same for another process than this one.
    pub fn for_process(self, process: u32) -> Self {
        Self { process, ..self }
    }

    /// KFD's name of a GPU that has memory of its own.
    fn own_gpu(&self) -> Option<u32> {
        self.gpu_id.filter(|_| !self.unified)
    }

    fn evicted(&self) -> Option<Bytes> {
        if self.unified {
            return None;
        }
        if self.process == std::process::id() {
            // Also where processes are numbered otherwise than in /proc.
            return self.sysfs.evicted_vram("self", &self.pci);
        }
        self.sysfs.evicted_vram(&self.process.to_string(), &self.pci)
    }

    fn shared(&self, files: &CardFiles) -> SharedMemory {
        let (carve_out, gtt) = (files.vram(), files.gtt());
        SharedMemory {
            carve_out: carve_out.total,
            carve_out_used: carve_out.used,
            gtt: gtt.total,
            gtt_used: gtt.used,
            system: self.sysfs.memory(),
        }
    }

    /// Whether the card was found.
    pub fn found(&self) -> bool {
        self.files.is_some()
    }
}

impl Readings for SysfsReadings {
    fn read(&self) -> Reading {
        let Some(files) = &self.files else {
            return Reading {
                unified_memory: self.unified,
                ..Reading::default()
            };
        };
        // Ours before everybody's: what we allocate in between then looks like others' memory, not like free memory.
        let own = self.own_gpu().and_then(|id| self.sysfs.process_vram(self.process, id));
        let shared = self.unified.then(|| self.shared(files));
        let (total, used) = match &shared {
            Some(shared) => (shared.gtt, shared.gtt_used),
            None => {
                let own = files.vram();
                (own.total, own.used)
            }
        };
        Reading {
            own,
            total,
            used,
            hip_free: None,
            evicted: self.evicted(),
            stopped: self
                .own_gpu()
                .and_then(|id| self.sysfs.queues_stopped(self.process, id)),
            displays: files.displays(),
            unified_memory: self.unified,
            shared,
        }
    }
}
