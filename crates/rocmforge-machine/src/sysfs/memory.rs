//! Memory of the machine: total and available, from `/proc/meminfo`.

use super::Sysfs;
use crate::{Bytes, file};

/// One look at the machine's memory. A figure that could not be read is `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HostReading {
    /// Memory in all (`MemTotal`).
    pub total: Option<Bytes>,
    /// What programs can still have without swapping (`MemAvailable`).
    pub available: Option<Bytes>,
}

impl Sysfs {
    /// `MemTotal` and `MemAvailable`, which the kernel gives in KiB.
    pub fn memory(&self) -> HostReading {
        let Ok(text) = file::read(&self.path("proc/meminfo")) else {
            return HostReading::default();
        };
        let figure = |name: &str| {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            let kib = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?;
            kib.checked_mul(1024).map(Bytes)
        };
        HostReading {
            total: figure("MemTotal"),
            available: figure("MemAvailable"),
        }
    }
}
