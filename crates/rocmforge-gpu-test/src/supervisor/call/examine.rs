//! Examination of a card before it is opened: findings for and against its use.

use crate::card::device::Device;
use crate::card::nvidia;
use crate::card::preflight::{Consent, Facts, Finding, Level, NvidiaFacts};
use crate::card::probe;
use crate::card::quarantine::{self, QuarantineFile};
use crate::supervisor::judge::verdict::TestGpuError;
use rocmforge_machine::sysfs::{Machine, Sysfs};

/// A device that may be used.
#[derive(Debug, Default)]
pub struct Examined {
    pub(crate) findings: Vec<Finding>,
    /// It drives a display, or its driver cannot take a kernel off it: little memory, short waits.
    pub careful: bool,
    /// A kernel that hangs can only be ended by a reset.
    pub without_cwsr: bool,
}

/// Looks whether a device may be used, and says what should be known of it.
///
/// # Errors
///
/// [`TestGpuError::Refused`] with what speaks against it, [`NoSuchCard`](crate::supervisor::DeviceError::NoSuchCard) if it is not in `machine`.
pub fn examine(device: &Device, sysfs: &Sysfs, machine: &Machine, consent: Consent) -> Result<Examined, TestGpuError> {
    match device {
        Device::Sim(_) => Ok(Examined::default()),
        Device::Hip(pci) => {
            let mut cards = machine.amd_cards();
            let card = cards.find(|card| card.pci.as_ref() == Some(pci));
            let card = card.ok_or_else(|| device.missing())?;
            let facts = Facts::look(sysfs, machine, card, quarantine(sysfs, pci).read());
            Ok(Examined {
                findings: judged(facts.findings(consent))?,
                careful: facts.wants_care(),
                without_cwsr: facts.is_without_cwsr(),
            })
        }
        Device::Nvidia(pci) => {
            let cards = nvidia::cards(sysfs, machine);
            let card = cards.iter().find(|card| card.pci == *pci);
            let card = card.ok_or_else(|| device.missing())?;
            let facts = NvidiaFacts::look(sysfs, machine, card, quarantine(sysfs, pci).read());
            // A driver that files speak against is not asked.
            let facts = match facts.is_refused() || !sysfs.is_host() {
                true => facts,
                false => facts.with_answer(probe::ask_for(pci)),
            };
            Ok(Examined {
                findings: judged(facts.findings(consent))?,
                careful: facts.wants_care(),
                without_cwsr: false,
            })
        }
    }
}

/// Where it is written that a card must be left alone.
pub(crate) fn quarantine(sysfs: &Sysfs, card: &str) -> QuarantineFile {
    QuarantineFile::new(&quarantine::default_directory(), card, sysfs.root())
}

/// Tells what was found; a refusal is the end.
fn judged(findings: Vec<Finding>) -> Result<Vec<Finding>, TestGpuError> {
    for finding in &findings {
        tell!("{}", crate::text::line(&finding.to_string()));
    }
    match findings.iter().find(|finding| finding.level == Level::Refusal) {
        Some(finding) => Err(TestGpuError::Refused(finding.to_string())),
        None => Ok(findings),
    }
}
