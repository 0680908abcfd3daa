//! Evictions: memory that the drivers have moved off a card, and queues that they have stopped, for want of room.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::Sysfs;
use crate::{Bytes, file};

/// One DRM client, as its `fdinfo` shows it (Documentation/gpu/amdgpu/driver-misc.rst in the kernel's sources).
struct Client {
    id: u64,
    evicted: Bytes,
}

/// `None` for another card's client, or a kernel that does not tell.
fn client(text: &str, pci: &str) -> Option<Client> {
    let value = |key: &str| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
        Some(line.trim())
    };
    if !value("drm-pdev")?.eq_ignore_ascii_case(pci) {
        return None;
    }
    let kib: u64 = value("amd-evicted-vram")?.strip_suffix("KiB")?.trim().parse().ok()?;
    Some(Client {
        id: value("drm-client-id")?.parse().ok()?,
        evicted: Bytes::kib(kib),
    })
}

impl Sysfs {
    /// How much memory of a process the kernel has moved off the card at `pci` for want of room. `None` where no file of
    /// the process says so.
    ///
    /// Other programs' files are not looked at: that would be a walk over all they have open, at every reading.
    pub fn evicted_vram(&self, process: &str, pci: &str) -> Option<Bytes> {
        let process = self.path("proc").join(process);
        let is_drm = |name: &String| {
            let target = std::fs::read_link(process.join("fd").join(name));
            target.is_ok_and(|target| target.starts_with(Path::new("/dev/dri")))
        };
        let mut clients = BTreeMap::new();
        for name in file::names(&process.join("fd"), &mut Vec::new())
            .iter()
            .filter(|name| is_drm(name))
        {
            let Ok(text) = file::read(&process.join("fdinfo").join(name)) else {
                continue;
            };
            // A duplicated descriptor is the same client.
            clients.extend(client(&text, pci).map(|client| (client.id, client.evicted)));
        }
        (!clients.is_empty()).then(|| clients.into_values().sum())
    }

    /// How long KFD has kept the queues of a process off a GPU to make room, in all. `None` where it is unknown, as for
    /// [`Sysfs::process_vram`].
    pub fn queues_stopped(&self, process: u32, gpu_id: u32) -> Option<Duration> {
        if !self.has_the_machines_processes() {
            return None;
        }
        let path = format!("sys/class/kfd/kfd/proc/{process}/stats_{gpu_id}/evicted_ms");
        file::number(&self.path(&path)).ok().map(Duration::from_millis)
    }
}
