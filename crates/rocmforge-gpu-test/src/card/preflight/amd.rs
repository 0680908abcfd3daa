//! Preflight of an AMD card: findings against its use, and findings to know before.

use super::finding::{Consent, Finding, drives_a_display, note, quarantined, refusal, used_by, warning};
use crate::card::files::short_text;
use crate::card::quarantine::Quarantine;
use rocmforge_machine::sysfs::{Access, CardUser, DeviceFile, DrmCard, Machine, Sysfs};
use std::time::Duration;

/// The longest that a test may take where the driver cannot take a hanging kernel off the card.
pub(crate) const WITHOUT_CWSR: Duration = Duration::from_secs(60);
/// The oldest ROCm whose runtime the bindings were made for.
const OLDEST_ROCM: u32 = 6;

/// What is known of one card and of the machine around it.
pub(crate) struct Facts<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) card: &'a DrmCard,
    /// Who else uses the card.
    pub(crate) users: Vec<CardUser>,
    /// The kernel's version.
    pub(crate) kernel: Option<String>,
    /// Versions of the firmware that schedules queues, as (name, version).
    pub(crate) firmware: Vec<(String, String)>,
    pub(crate) quarantine: Option<Quarantine>,
}

/// Firmware whose version decides what becomes of a hanging queue.
const FIRMWARE: [&str; 3] = ["mes", "mes_kiq", "mec"];

impl<'a> Facts<'a> {
    /// Looks at everything about `card`.
    pub(crate) fn look(sysfs: &Sysfs, machine: &'a Machine, card: &'a DrmCard, quarantine: Option<Quarantine>) -> Self {
        let firmware = |name: &&str| {
            let file = format!("sys/class/drm/{}/device/fw_version/{name}_fw_version", card.name);
            Some(((*name).to_owned(), short_text(sysfs, &file)?))
        };
        Self {
            users: sysfs.users_of(card, machine.node_of(card)),
            kernel: short_text(sysfs, "proc/sys/kernel/osrelease"),
            firmware: FIRMWARE.iter().filter_map(firmware).collect(),
            machine,
            card,
            quarantine,
        }
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        let mut parameters = self.machine.parameters.iter();
        parameters.find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    fn pci(&self) -> &str {
        self.card.pci.as_deref().unwrap_or("the card")
    }

    /// Whether the driver cannot take a running kernel off the card.
    pub(crate) fn is_without_cwsr(&self) -> bool {
        self.parameter("cwsr_enable") == Some("0")
    }

    /// Whether tests on the card must be careful.
    pub(crate) fn wants_care(&self) -> bool {
        self.card.displays() > 0 || self.is_without_cwsr() || self.machine.is_unified(self.card)
    }

    /// Everything worth saying, the gravest first.
    pub(crate) fn findings(&self, consent: Consent) -> Vec<Finding> {
        let mut findings = Vec::new();
        findings.extend(
            self.quarantine
                .as_ref()
                .map(|held| quarantined(self.pci(), held, consent)),
        );
        findings.extend(self.driver());
        findings.extend(self.permissions());
        findings.extend(self.kind());
        findings.extend(self.display(consent));
        findings.extend(self.recovery());
        findings.extend(self.users.iter().map(used_by));
        findings.extend(self.versions());
        findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
        findings
    }

    fn driver(&self) -> Option<Finding> {
        if !self.machine.amdgpu_loaded && self.card.driver.as_deref() != Some("amdgpu") {
            return Some(refusal(
                "the kernel driver amdgpu is not loaded",
                "load it (`sudo modprobe amdgpu`)",
            ));
        }
        if self.machine.kfd.is_none() {
            return Some(refusal(
                "/dev/kfd is missing",
                "load amdgpu with compute support, or pass /dev/kfd and /dev/dri into the container",
            ));
        }
        self.machine.node_of(self.card).is_none().then(|| {
            refusal(
                format!("the compute driver does not offer {}", self.pci()),
                "use a card that ROCm supports, or a newer kernel",
            )
        })
    }

    fn permissions(&self) -> Option<Finding> {
        // Another card's node is no concern, where it is known which is ours.
        let ours = |node: &&DeviceFile| {
            let known = self.card.render_node.as_deref();
            known.is_none_or(|name| node.path.file_name().is_some_and(|file| file == name))
        };
        let nodes = self.machine.render_nodes.iter().filter(ours);
        let files = self.machine.kfd.iter().chain(nodes);
        let denied: Vec<_> = files.filter(|file| file.access == Access::Denied).collect();
        let mut names: Vec<String> = denied.iter().map(|file| file.path.display().to_string()).collect();
        let mut groups: Vec<String> = denied
            .iter()
            .map(|file| match &file.group.name {
                Some(name) => name.clone(),
                None => file.group.id.to_string(),
            })
            .collect();
        for list in [&mut names, &mut groups] {
            list.sort();
            list.dedup();
        }
        (!denied.is_empty()).then(|| {
            refusal(
                format!("this user may not use {}", names.join(", ")),
                &format!(
                    "join the group {} (`sudo usermod -aG {} $USER`) and log in again",
                    groups.join(" and "),
                    groups.join(",")
                ),
            )
        })
    }

    fn kind(&self) -> Option<Finding> {
        if self.machine.is_unified(self.card) {
            return Some(note(format!(
                "{} shares the system's memory: the budget is what the system can spare, and tests are careful",
                self.pci()
            )));
        }
        (self.card.vram_total.is_none() || self.card.vram_used.is_none()).then(|| {
            warning(
                format!("the memory of {} cannot be read", self.pci()),
                "the budget falls back to a quarter of the card at most",
            )
        })
    }

    fn display(&self, consent: Consent) -> Option<Finding> {
        let driven = self.card.connectors.iter();
        let driven = driven.filter(|connector| connector.connected || connector.enabled);
        let names: Vec<&str> = driven.map(|connector| connector.name.as_str()).collect();
        if names.is_empty() {
            return None;
        }
        Some(drives_a_display(self.pci(), &names.join(", "), consent))
    }

    fn recovery(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if self.is_without_cwsr() {
            let seconds = WITHOUT_CWSR.as_secs();
            findings.push(warning(
                "amdgpu runs with cwsr_enable=0, so a kernel that hangs can only be ended by a reset of the card",
                &format!("tests get {seconds} s at most; load amdgpu without that parameter"),
            ));
        }
        if self.parameter("gpu_recovery") == Some("0") {
            findings.push(warning(
                "amdgpu runs with gpu_recovery=0, so a card that hangs stays so",
                "be ready to restart the machine; load amdgpu without that parameter",
            ));
        }
        findings
    }

    fn versions(&self) -> Option<Finding> {
        let kernel = self.kernel.iter().map(|version| format!("kernel {version}"));
        let firmware = self.firmware.iter();
        let firmware = firmware.map(|(name, version)| format!("{name} firmware {version}"));
        let parameters = self.machine.parameters.iter();
        let parameters = parameters.map(|(name, value)| format!("{name}={value}"));
        let all: Vec<String> = kernel.chain(firmware).chain(parameters).collect();
        (!all.is_empty()).then(|| note(all.join(", ")))
    }
}

/// Says of a ROCm version that it is too old, if it is.
pub(crate) fn old_rocm(version: &str) -> Option<Finding> {
    let major: u32 = version.split('.').next()?.parse().ok()?;
    (major < OLDEST_ROCM).then(|| {
        warning(
            format!("ROCm {version} is older than {OLDEST_ROCM}"),
            "install ROCm 6 or 7; HIP 5 numbers the kinds of memory differently",
        )
    })
}

#[cfg(test)]
mod tests;
