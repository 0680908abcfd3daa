//! Whether a device may be used, and how: what was found is told, a refusal ends the run.

use super::device::Device;
use super::preflight::{Facts, Finding, Level, NvidiaFacts, WITHOUT_CWSR};
use super::verdict::TestGpuError;
use super::{Door, nvidia, probe};
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

impl Door {
    /// Looks whether a device may be used, and says what should be known of it.
    pub(super) fn check(&self, device: &Device) -> Result<Checked, TestGpuError> {
        let device = device.clone().resolve(&self.sysfs, &self.machine)?;
        let mut checked = Checked {
            deadline: Duration::from_secs(self.args.deadline.unwrap_or(DEADLINE)),
            findings: Vec::new(),
            careful: false,
            device,
        };
        match &checked.device {
            Device::Sim(_) => {}
            Device::Hip(pci) => {
                let mut cards = self.machine.amd_cards();
                let card = cards.find(|card| card.pci.as_ref() == Some(pci));
                let card = card.expect("a resolved card is there");
                let facts = Facts::look(&self.sysfs, &self.machine, card, self.quarantine(pci).read());
                checked.findings = self.judged(facts.findings(self.consent()))?;
                checked.careful = facts.wants_care();
                if facts.is_without_cwsr() {
                    checked.deadline = self.deadline_without_cwsr(checked.deadline)?;
                }
            }
            Device::Nvidia(pci) => {
                let cards = nvidia::cards(&self.sysfs, &self.machine);
                let card = cards.iter().find(|card| card.pci == *pci);
                let card = card.expect("a resolved card is there");
                let facts = NvidiaFacts::look(&self.sysfs, &self.machine, card, self.quarantine(pci).read());
                // A driver that files speak against is not asked.
                let facts = match facts.is_refused() || !self.sysfs.is_host() {
                    true => facts,
                    false => facts.with_answer(probe::ask_for(pci)),
                };
                checked.findings = self.judged(facts.findings(self.consent()))?;
                checked.careful = facts.wants_care();
            }
        }
        Ok(checked)
    }

    /// Tells what was found; a refusal is the end.
    fn judged(&self, findings: Vec<Finding>) -> Result<Vec<Finding>, TestGpuError> {
        for finding in &findings {
            tell!("{finding}");
        }
        match findings.iter().find(|finding| finding.level == Level::Refusal) {
            Some(finding) => Err(TestGpuError::Refused(finding.to_string())),
            None => Ok(findings),
        }
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
