//! Check of a device: whether it may be used, and how. What was found is printed, a refusal ends the run.

use super::Supervisor;
use super::device::Device;
use super::examine::examine;
use super::preflight::{Finding, WITHOUT_CWSR};
use super::verdict::TestGpuError;
use std::time::Duration;

/// Seconds that a test may take unless the user says otherwise.
const DEADLINE: u64 = 300;

/// A device that may be used, and how.
pub(super) struct Checked {
    pub(super) device: Device,
    pub(super) findings: Vec<Finding>,
    pub(super) careful: bool,
    pub(super) deadline: Duration,
}

impl Supervisor<'_> {
    /// Looks whether a device may be used, and says what should be known of it.
    pub(super) fn check(&self, device: &Device) -> Result<Checked, TestGpuError> {
        let device = device.clone().resolve(&self.sysfs, &self.machine)?;
        let mut checked = Checked {
            deadline: Duration::from_secs(self.args.deadline.unwrap_or(DEADLINE)),
            findings: Vec::new(),
            careful: false,
            device,
        };
        let examined = examine(&checked.device, &self.sysfs, &self.machine, self.consent())?;
        if examined.without_cwsr {
            checked.deadline = self.deadline_without_cwsr(checked.deadline)?;
        }
        checked.findings = examined.findings;
        checked.careful = examined.careful;
        Ok(checked)
    }

    fn deadline_without_cwsr(&self, wanted: Duration) -> Result<Duration, TestGpuError> {
        if self.args.deadline.is_some() && wanted > WITHOUT_CWSR {
            return Err(TestGpuError::TooLong {
                deadline: wanted.as_secs(),
                longest: WITHOUT_CWSR.as_secs(),
            });
        }
        Ok(wanted.min(WITHOUT_CWSR))
    }
}
