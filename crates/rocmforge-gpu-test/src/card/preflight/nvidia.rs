//! Preflight of an NVIDIA card: findings against its use, and findings to know before.

use super::finding::{Consent, Finding, Level, drives_a_display, note, quarantined, refusal, used_by};
use crate::card::nvidia::{self, CONTROL, NvidiaCard};
use crate::card::probe::{ProbeError, Probed};
use crate::card::quarantine::Quarantine;
use rocmforge_machine::sysfs::{Access, CardUser, DeviceFile, Machine, Sysfs};
use rocmforge_memory::Bytes;
use std::fs;
use std::path::Path;

/// The first driver with the functions of CUDA 12.
const OLDEST_DRIVER: u32 = 525;
/// The file that a process has open if it computes.
const COMPUTE: &str = "dev/nvidia-uvm";

/// What is known of one NVIDIA card and of the machine around it.
pub(crate) struct NvidiaFacts<'a> {
    card: &'a NvidiaCard,
    /// The driver's version, where it is loaded and says so.
    driver: Option<String>,
    control: Option<DeviceFile>,
    /// The card's own file and that for computing, as far as they are there.
    files: Vec<DeviceFile>,
    users: Vec<CardUser>,
    kernel: Option<String>,
    quarantine: Option<Quarantine>,
    /// What the driver answered, if it was asked.
    probed: Option<Result<Probed, ProbeError>>,
}

impl<'a> NvidiaFacts<'a> {
    /// Looks at everything about `card` that files tell.
    pub(crate) fn look(sysfs: &Sysfs, machine: &Machine, card: &'a NvidiaCard, quarantine: Option<Quarantine>) -> Self {
        let own = card.device_file();
        let files = own.iter().map(String::as_str).chain([COMPUTE]);
        let nodes: Vec<_> = card.node().into_iter().chain([Path::new("/").join(COMPUTE)]).collect();
        let kernel = fs::read_to_string(sysfs.root().join("proc/sys/kernel/osrelease"));
        Self {
            card,
            driver: nvidia::driver_version(sysfs),
            control: sysfs.device_file(CONTROL, &machine.user),
            files: files
                .filter_map(|file| sysfs.device_file(file, &machine.user))
                .collect(),
            users: sysfs.users_of_files(&nodes),
            kernel: kernel.ok().map(|version| version.trim().to_owned()),
            quarantine,
            probed: None,
        }
    }

    /// The same, with the driver's answer.
    pub(crate) fn with_answer(self, probed: Result<Probed, ProbeError>) -> Self {
        Self {
            probed: Some(probed),
            ..self
        }
    }

    /// Whether the card must not be used, whatever its user consents to.
    pub(crate) fn is_refused(&self) -> bool {
        let consent = Consent {
            display: true,
            reset: true,
        };
        self.findings(consent)
            .iter()
            .any(|finding| finding.level == Level::Refusal)
    }

    /// Whether tests on the card must be careful.
    pub(crate) fn wants_care(&self) -> bool {
        self.displays().is_some()
    }

    /// Everything worth saying, the gravest first.
    pub(crate) fn findings(&self, consent: Consent) -> Vec<Finding> {
        let mut findings = Vec::new();
        findings.extend(
            self.quarantine
                .as_ref()
                .map(|held| quarantined(&self.card.pci, held, consent)),
        );
        findings.extend(self.driver());
        findings.extend(self.permissions());
        findings.extend(self.answer());
        findings.extend(self.display(consent));
        findings.extend(self.others());
        findings.extend(self.versions());
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        findings
    }

    fn driver(&self) -> Option<Finding> {
        if let Some(other) = self.card.driver.as_deref().filter(|&driver| driver != "nvidia") {
            return Some(refusal(
                format!("{} is in the hands of the kernel driver {other}", self.card.pci),
                "install NVIDIA's driver, and let it take the card",
            ));
        }
        if self.control.is_none() {
            return Some(refusal(
                format!("/{CONTROL} is missing"),
                "load NVIDIA's driver (`sudo modprobe nvidia`, `sudo nvidia-smi`), or pass its device files into the container",
            ));
        }
        let version = self.driver.as_deref()?;
        let major: u32 = version.split('.').next()?.parse().ok()?;
        (major < OLDEST_DRIVER).then(|| {
            refusal(
                format!("NVIDIA's driver is {version}"),
                &format!("install {OLDEST_DRIVER} or newer: it has the functions of CUDA 12"),
            )
        })
    }

    fn permissions(&self) -> Option<Finding> {
        let files = self.control.iter().chain(&self.files);
        let denied = files.filter(|file| file.access == Access::Denied);
        let denied = denied.map(|file| format!("{} (mode {:o})", file.path.display(), file.mode));
        let denied: Vec<String> = denied.collect();
        (!denied.is_empty()).then(|| {
            refusal(
                format!("this user may not use {}", denied.join(", ")),
                "join the group that may, or have the driver's parameter NVreg_DeviceFileMode changed",
            )
        })
    }

    fn answer(&self) -> Option<Finding> {
        match self.probed.as_ref()? {
            Ok(card) => {
                let memory = card.memory.map_or_else(
                    || "its memory is not known".to_owned(),
                    |(total, used)| format!("{} of {} used", Bytes(used), Bytes(total)),
                );
                Some(note(format!("{} at {}, {memory}", card.name, card.pci)))
            }
            Err(error) => Some(refusal(
                error.to_string(),
                "see whether `nvidia-smi` shows the card, and what `dmesg` says of it",
            )),
        }
    }

    /// What makes it a card with a display. The driver is asked only about a card that could have one and whose sockets the
    /// kernel does not show.
    fn displays(&self) -> Option<String> {
        match &self.card.displays {
            Some(names) if names.is_empty() => None,
            Some(names) => Some(names.join(", ")),
            None if self.card.has_no_sockets() || self.card.class.is_none() => None,
            None => {
                let answer = self.probed.as_ref()?.as_ref().ok()?;
                let said = "the driver says so, or does not say";
                answer.may_display.then(|| said.to_owned())
            }
        }
    }

    fn display(&self, consent: Consent) -> Option<Finding> {
        Some(drives_a_display(&self.card.pci, &self.displays()?, consent))
    }

    /// The card's other users. The card of a computing process is unknown where it has only the common file open.
    fn others(&self) -> impl Iterator<Item = Finding> {
        let compute = Path::new("/").join(COMPUTE);
        let node = self.card.node();
        let of_card = move |user: &&CardUser| node.as_ref().is_none_or(|node| user.files.contains(node));
        let users = self.users.iter().filter(of_card);
        users.map(move |user| match user.files.contains(&compute) {
            true => Finding {
                level: Level::Warning,
                advice: Some("its memory comes and goes beside the tests; wait for it to end".to_owned()),
                ..used_by(user)
            },
            false => used_by(user),
        })
    }

    fn versions(&self) -> Option<Finding> {
        let kernel = self.kernel.iter().map(|version| format!("kernel {version}"));
        let driver = self.driver.iter().map(|version| format!("NVIDIA driver {version}"));
        let all: Vec<String> = kernel.chain(driver).collect();
        (!all.is_empty()).then(|| note(all.join(", ")))
    }
}

#[cfg(test)]
mod tests;
