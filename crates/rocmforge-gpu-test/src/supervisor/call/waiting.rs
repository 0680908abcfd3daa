//! Wait for the card's lock, as long as the user allows.

use super::supervisor::Supervisor;
use crate::card::device::Device;
use crate::card::quarantine::Cause;
use crate::lock::{CardLock, LockError};
use crate::supervisor::judge::verdict::TestGpuError;
use std::time::{Duration, Instant};

/// Time between two looks at the user while waiting for a card.
const GLANCE: Duration = Duration::from_millis(500);

impl Supervisor<'_> {
    /// Takes the card's lock, or stops waiting for it when the user does.
    pub(crate) fn lock(&self, device: &Device) -> Result<CardLock, Box<dyn std::error::Error>> {
        let directory = device.lock_directory(&self.directory);
        let until = Instant::now() + Duration::from_secs(self.args.patience);
        let mut announced = false;
        loop {
            let patience = until.saturating_duration_since(Instant::now()).min(GLANCE);
            let lock = CardLock::acquire_on(&self.sysfs, &directory, &device.card_key(), patience, |holder| {
                if !announced {
                    let who = holder.map_or_else(|| "another process".to_owned(), ToString::to_string);
                    tell!("waiting for {device}: in use by {who}");
                }
                announced = true;
            });
            match lock {
                Err(LockError::Held { card, holder, .. }) => {
                    if let Some(signal) = self.interrupt.signal() {
                        let device = device.to_string();
                        return Err(Box::new(TestGpuError::InterruptedWaiting { signal, device }));
                    }
                    if Instant::now() >= until {
                        let waited = Duration::from_secs(self.args.patience);
                        return Err(Box::new(LockError::Held { card, holder, waited }));
                    }
                }
                // A process of a run before this one, which the driver does not release: it cannot be removed from the card.
                Err(error @ LockError::Lingering { .. }) => {
                    if let Some(pci) = device.pci() {
                        let quarantine = self.quarantine(pci);
                        quarantine.write(Cause::Stuck, "a run before this one", &error.to_string())?;
                    }
                    return Err(Box::new(TestGpuError::Refused(error.to_string())));
                }
                lock => return Ok(lock?),
            }
        }
    }
}
