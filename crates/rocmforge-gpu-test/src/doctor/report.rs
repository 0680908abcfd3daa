//! Report of the doctor: from what was found to one screen of text. No input or output here.

use std::fmt::{self, Display, Formatter};

use crate::lock::Holder;
use crate::text::none_or;
use rocmforge_machine::sysfs::{Access, DeviceFile, DrmCard, Machine};
use rocmforge_memory::Bytes;

use super::probe::{End, Probe, Step};
use super::tools::Tool;
use crate::card::nvidia::NvidiaCard;
use crate::card::preflight::{Finding, Level, old_rocm};

/// Everything that was found.
pub(super) struct Report {
    /// What the user calls to run the tests.
    pub(super) command: String,
    /// What Linux says.
    pub(super) machine: Machine,
    /// What HIP says.
    pub(super) hip: Probe,
    /// NVIDIA's cards.
    pub(super) nvidia: Vec<NvidiaCard>,
    /// What speaks for and against using each card.
    pub(super) checks: Vec<Check>,
    /// PCI addresses of AMD cards that no driver has taken.
    pub(super) bare: Vec<String>,
    /// Each card's lock.
    pub(super) locks: Vec<Lock>,
    /// Compilers.
    pub(super) tools: Vec<Tool>,
    /// ROCm installations, as (folder, version).
    pub(super) rocm: Vec<(String, String)>,
    /// Whether compilers were looked for.
    pub(super) tools_asked: bool,
}

/// What was found about one card.
pub(super) struct Check {
    /// PCI address.
    pub(super) card: String,
    /// Its name for `--device`.
    pub(super) device: String,
    /// The gravest first.
    pub(super) findings: Vec<Finding>,
}

/// The lock of one card.
pub(super) struct Lock {
    /// PCI address.
    pub(super) card: String,
    /// `None`: free. Else who holds it, if the lock file tells.
    pub(super) holder: Option<Option<Holder>>,
}

/// What a compiler for AMD GPUs is good for; nobody needs one to run the tests.
const KERNELS: &str = "only compiling kernels needs one";
/// Problems listed before the rest is only counted.
const MOST_PROBLEMS: usize = 6;

impl Display for Report {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.cards(f)?;
        self.permissions(f)?;
        self.hip(f)?;
        self.tools(f)?;
        for problem in self.machine.problems.iter().take(MOST_PROBLEMS) {
            row(f, "unreadable", problem)?;
        }
        if let more @ 1.. = self.machine.problems.len().saturating_sub(MOST_PROBLEMS) {
            row(f, "", format_args!("and {more} more"))?;
        }
        writeln!(f, "\nwhat to do")?;
        for line in self.advice() {
            writeln!(f, "  - {line}")?;
        }
        Ok(())
    }
}

fn row(f: &mut Formatter<'_>, name: &str, value: impl Display) -> fmt::Result {
    writeln!(f, "{name:<13}{value}")
}

fn or_unknown<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "unknown".to_owned(), |value| value.to_string())
}

impl Report {
    fn cards(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let is_nvidia = |card: &&DrmCard| self.nvidia.iter().any(|other| card.pci.as_ref() == Some(&other.pci));
        if self.machine.cards.is_empty() && self.nvidia.is_empty() {
            row(f, "cards", "none with a driver")?;
        }
        for card in self.machine.cards.iter().filter(|card| !is_nvidia(card)) {
            self.card(f, card)?;
        }
        for card in &self.nvidia {
            self.nvidia(f, card)?;
        }
        let driver = if self.machine.amdgpu_loaded {
            "amdgpu is loaded"
        } else {
            "amdgpu is not loaded"
        };
        let parameters = self.machine.parameters.iter();
        let parameters: Vec<String> = parameters.map(|(name, value)| format!("{name}={value}")).collect();
        row(f, "driver", format_args!("{driver} {}", parameters.join(" ")))
    }

    fn card(&self, f: &mut Formatter<'_>, card: &DrmCard) -> fmt::Result {
        let node = self.machine.node_of(card);
        let shared = if self.machine.is_unified(card) {
            ", shares the system's memory"
        } else {
            ""
        };
        let target = node.and_then(|node| node.target.as_deref());
        let target = target.unwrap_or("no compute node");
        let product = card.product.as_deref().map(|name| format!("{name}, "));
        let product = product.unwrap_or_default();
        let ids = match (card.vendor, card.device) {
            (Some(vendor), Some(device)) => format!("{vendor:04x}:{device:04x}"),
            _ => "unknown device".to_owned(),
        };
        let pci = or_unknown(card.pci.as_deref());
        let driver = or_unknown(card.driver.as_deref());
        row(
            f,
            &card.name,
            format_args!("{pci}, {product}{ids}, {driver}, {target}{shared}"),
        )?;
        self.answer(f, &pci)?;
        let (used, total) = (or_unknown(card.vram_used), or_unknown(card.vram_total));
        row(
            f,
            "  VRAM",
            format_args!("{used} used of {total} (sysfs: everybody's, the desktop's included)"),
        )?;
        if let Some((free, total)) = self.memory_by_hip(card) {
            row(
                f,
                "",
                format_args!("{free} free of {total} (HIP: does not see the desktop)"),
            )?;
        }
        let displays = card.connectors.iter();
        let displays = displays.filter_map(|connector| match (connector.enabled, connector.connected) {
            (true, _) => Some(connector.name.clone()),
            (false, true) => Some(format!("{} (connected, no image)", connector.name)),
            (false, false) => None,
        });
        let displays: Vec<String> = displays.collect();
        row(f, "  displays", none_or(&displays))?;
        self.lock(f, &pci)
    }

    fn nvidia(&self, f: &mut Formatter<'_>, card: &NvidiaCard) -> fmt::Result {
        let model = card.model.as_deref().unwrap_or("an NVIDIA card");
        row(f, "nvidia", format_args!("{}, {model}", card.pci))?;
        self.answer(f, &card.pci)?;
        let check = self.checks.iter().find(|check| check.card == card.pci);
        for finding in check.iter().flat_map(|check| &check.findings) {
            if finding.level == Level::Note {
                row(f, "", &finding.what)?;
            }
        }
        if let Some(displays) = &card.displays {
            row(f, "  displays", none_or(displays))?;
        }
        self.lock(f, &card.pci)
    }

    fn answer(&self, f: &mut Formatter<'_>, pci: &str) -> fmt::Result {
        match self.checks.iter().find(|check| check.card == pci) {
            Some(check) => row(f, "  use", check.answer()),
            None => Ok(()),
        }
    }

    fn lock(&self, f: &mut Formatter<'_>, pci: &str) -> fmt::Result {
        let Some(lock) = self.locks.iter().find(|lock| lock.card == pci) else {
            return Ok(());
        };
        match &lock.holder {
            None => row(f, "  lock", "free"),
            Some(Some(holder)) => row(f, "  lock", format_args!("held by {holder}")),
            Some(None) => row(f, "  lock", "held, the lock file does not say by whom"),
        }
    }

    fn memory_by_hip(&self, card: &DrmCard) -> Option<(Bytes, Bytes)> {
        self.hip.steps.iter().find_map(|step| match step {
            Step::Device {
                pci,
                memory: Some((free, total)),
                ..
            } if card.pci.as_ref() == Some(pci) => Some((Bytes(*free), Bytes(*total))),
            _ => None,
        })
    }

    fn permissions(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.machine.kfd {
            Some(kfd) => row(f, "permissions", describe(kfd))?,
            None => row(f, "permissions", "/dev/kfd is not there")?,
        }
        for node in &self.machine.render_nodes {
            row(f, "", describe(node))?;
        }
        let groups = self.machine.user.groups.iter();
        let groups = groups.map(|group| group.name.clone().unwrap_or_else(|| group.id.to_string()));
        let groups: Vec<String> = groups.collect();
        row(
            f,
            "user",
            format_args!("{} in {}", or_unknown(self.machine.user.uid), groups.join(", ")),
        )
    }

    fn hip(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for step in &self.hip.steps {
            match step {
                Step::Loaded { path, missing } if missing.is_empty() => row(f, "HIP", path)?,
                Step::Loaded { path, missing } => {
                    row(
                        f,
                        "HIP",
                        format_args!("{path}, without the optional {}", missing.join(", ")),
                    )?;
                }
                Step::NotLoaded { why } => row(f, "HIP", why.replace('\n', &format!("\n{:13}", "")))?,
                Step::Init { status, .. } => row(f, "", format_args!("hipInit: {status}"))?,
                Step::Version { runtime } => row(f, "", format_args!("runtime version {runtime}"))?,
                Step::Count { devices } => row(f, "", format_args!("{devices} devices"))?,
                Step::Device { index, name, pci, .. } => row(f, "", format_args!("device {index}: {name} at {pci}"))?,
            }
        }
        let last = match &self.hip.end {
            End::Answered => return Ok(()),
            End::Skipped(why) => return row(f, "HIP", format_args!("not asked: {why}")),
            End::Crashed(signal) => format!("crashed with signal {signal}"),
            End::Exited(status) => format!("ended its process with status {status}"),
            End::TimedOut(limit) => format!("did not answer within {} s", limit.as_secs_f32()),
            End::NotStarted(why) => format!("could not be asked: {why}"),
        };
        row(
            f,
            if self.hip.steps.is_empty() { "HIP" } else { "" },
            format_args!("the library {last}"),
        )?;
        if self.hip.steps.is_empty() {
            for (path, from) in &self.hip.candidates {
                row(f, "", format_args!("would be tried: {path} ({from})"))?;
            }
        }
        Ok(())
    }

    fn tools(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (folder, version) in &self.rocm {
            row(f, "ROCm", format_args!("{version} in {folder}"))?;
        }
        for (index, tool) in self.tools.iter().enumerate() {
            let amdgpu = match tool.amdgpu {
                Some(true) => ", compiles for AMD GPUs",
                Some(false) => ", does not compile for AMD GPUs",
                None => "",
            };
            row(
                f,
                if index == 0 { "compilers" } else { "" },
                format_args!("{}: {}{amdgpu}", tool.name, tool.version),
            )?;
        }
        Ok(())
    }

    /// What the user can do, most urgent first. Never empty.
    pub(super) fn advice(&self) -> Vec<String> {
        let command = &self.command;
        let mut advice = vec![format!(
            "`{command}` runs every GPU test on a simulated card; it needs none of this."
        )];
        if self.checks.is_empty() && self.bare.is_empty() {
            advice.push("There is no AMD or NVIDIA card with a driver here: nothing to do for a real one.".to_owned());
        }
        for card in &self.bare {
            advice.push(format!(
                "The AMD card at {card} has no driver: load amdgpu (`sudo modprobe amdgpu`), or install a kernel that knows the card."
            ));
        }
        for check in &self.checks {
            let findings = check.findings.iter().filter(|finding| finding.advice.is_some());
            for line in findings.map(|finding| sentence(&finding.to_string())) {
                // Two cards may have one trouble.
                if !advice.contains(&line) {
                    advice.push(line);
                }
            }
            if check.is_usable() {
                let device = &check.device;
                advice.push(format!("`{command} --device {device}` runs the tests there."));
            }
        }
        self.advise_on_hip(&mut advice);
        let versions = self.rocm.iter().filter_map(|(_, version)| old_rocm(version));
        advice.extend(versions.map(|finding| sentence(&finding.to_string())));
        if self.tools_asked {
            if !self.tools.iter().any(|tool| tool.name == "cc") {
                advice.push("Install a C compiler (`cc`): some tests build small libraries with it.".to_owned());
            }
            if !self.tools.iter().any(|tool| tool.amdgpu == Some(true)) {
                advice.push(format!("No clang here compiles for AMD GPUs; {KERNELS}."));
            }
        }
        advice
    }

    fn advise_on_hip(&self, advice: &mut Vec<String>) {
        if self.machine.amd_cards().next().is_none() {
            return;
        }
        match &self.hip.end {
            End::Crashed(_) | End::Exited(_) | End::TimedOut(_) => advice.push(
                "The HIP library does not survive its own start: reinstall ROCm in the version that the driver wants, or \
                 name another library with ROCMFORGE_HIP_LIBRARY."
                    .to_owned(),
            ),
            _ if self.hip.steps.iter().any(|step| matches!(step, Step::NotLoaded { .. })) => advice.push(
                "There is an AMD card and no HIP library: install ROCm's runtime, or name the library with \
                 ROCMFORGE_HIP_LIBRARY."
                    .to_owned(),
            ),
            _ if self.hip.steps.iter().any(|step| matches!(step, Step::Init { good: false, .. })) => advice.push(
                "The HIP library starts and finds no usable card: check permissions and that ROCm supports this card."
                    .to_owned(),
            ),
            _ => {}
        }
    }
}

impl Check {
    fn is_usable(&self) -> bool {
        self.findings.iter().all(|finding| finding.level < Level::Refusal)
    }

    /// Whether the tests may use the card, in a few words.
    fn answer(&self) -> String {
        match self.findings.first() {
            Some(first) if first.level == Level::Refusal => format!("no: {}", first.what),
            Some(first) if first.level == Level::Warning => format!("yes, but {}", first.what),
            _ => "yes".to_owned(),
        }
    }
}

/// `text` as a sentence: a full stop at its end, and a capital where it begins with a word.
fn sentence(text: &str) -> String {
    let word = text.split(' ').next().unwrap_or_default();
    let mut characters = text.chars();
    match characters.next() {
        Some(first) if word.chars().all(char::is_lowercase) && word != "amdgpu" => {
            format!("{}{}.", first.to_uppercase(), characters.as_str())
        }
        _ => format!("{text}."),
    }
}

fn describe(file: &DeviceFile) -> String {
    let access = match file.access {
        Access::Usable => "usable",
        Access::Denied => "not for this user",
    };
    let group = file.group.name.clone().unwrap_or_else(|| file.group.id.to_string());
    format!("{} {access} (mode {:o}, group {group})", file.path.display(), file.mode)
}
