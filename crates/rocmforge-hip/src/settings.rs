//! Settings of the simulated machine of a program, passed to it in an environment variable.

use rocmforge_amdgcn::{Arch, Tools};
use rocmforge_memory::Bytes;
use rocmforge_sim::{CardConfig, HipVersion, LaunchSelection, ReportFilter, Schedule, SimConfig};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// How long a program makes no call before what it has queued runs all the same, see [`SimConfig::unattended`].
const UNATTENDED: Duration = Duration::from_millis(100);

/// Cards of a machine, at most: as many as the largest servers have.
const MOST_CARDS: usize = 16;

/// Whose binary interface a program was compiled against: the number in the soname of its library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "u8", into = "u8")]
pub enum Abi {
    /// `libamdhip64.so.5`.
    Hip5,
    /// `libamdhip64.so.6`.
    Hip6,
    /// `libamdhip64.so.7`.
    Hip7,
}

impl Abi {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Hip5, Self::Hip6, Self::Hip7];

    /// The number in the soname.
    pub fn number(self) -> u8 {
        match self {
            Self::Hip5 => 5,
            Self::Hip6 => 6,
            Self::Hip7 => 7,
        }
    }
}

impl From<Abi> for u8 {
    fn from(abi: Abi) -> u8 {
        abi.number()
    }
}

impl TryFrom<u8> for Abi {
    type Error = SettingsError;

    fn try_from(number: u8) -> Result<Self, SettingsError> {
        let found = Self::ALL.into_iter().find(|abi| abi.number() == number);
        found.ok_or(SettingsError::Abi(number))
    }
}

/// Settings that make no sense.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A major version of HIP that is not simulated.
    #[error("HIP {0} is not simulated; 5, 6 and 7 are")]
    Abi(u8),
    /// A processor that is not simulated.
    #[error(transparent)]
    Card(#[from] rocmforge_sim::UnknownArch),
    /// No card, or more than the host has address space for.
    #[error("{0} cards; 1 to {MOST_CARDS} are simulated")]
    Cards(usize),
    /// The variable does not hold what [`Settings::to_variable`] writes.
    #[error("the variable ROCMFORGE_HIP_SETTINGS cannot be read: {0}")]
    Variable(#[from] serde_json::Error),
}

/// How the machine of a program is simulated, and where what is found goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Settings {
    /// The processor of each card: `gfx1100` or `gfx1201`.
    pub cards: Vec<String>,
    /// Whether kernels may access the memory of another card, once the program has enabled that.
    pub peer_access: bool,
    /// Bytes of video memory of each card; none: those of the default card.
    pub vram: Option<u64>,
    /// Whose behaviour is simulated; none: that of the library the program has loaded.
    pub hip: Option<Abi>,
    /// Host threads that share the workgroups of a launch.
    pub threads: usize,
    /// Seeds all that is chosen: orders of streams, workgroups and waves.
    pub seed: u64,
    /// Queued work runs in a random order that the seed picks; otherwise in the order it was queued, when somebody waits.
    pub random_order: bool,
    /// Checks of kernels, by the names of compute-sanitizer: `memcheck`, `initcheck`, `racecheck`, `synccheck`, `init_registers`.
    pub tools: Vec<String>,
    /// Launches that are checked, in the order of the process's calls.
    pub selection: LaunchSelection,
    /// Findings that are left out, and counted.
    pub suppressions: Vec<ReportFilter>,
    /// Bytes behind each allocation that belong to nobody; none: in proportion to its size.
    pub padding: Option<u64>,
    /// Findings that are printed; the others are counted. 0: all.
    pub print_limit: u64,
    /// Whether what the program has not freed when it ends is listed.
    pub leak_check: bool,
    /// Frames of the host's call stack of launches and allocations that are kept; 0: no stacks.
    pub stack_frames: usize,
    /// Where findings are printed; none: standard error.
    pub log: Option<PathBuf>,
    /// File for the time line of what ran, as Chrome shows it; none: no time line.
    pub trace: Option<PathBuf>,
    /// Folder for the records of the program's processes, see [`Record`](crate::Record); none: no records.
    pub records: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            cards: vec![Arch::Gfx1100.name().to_owned()],
            peer_access: false,
            vram: None,
            hip: None,
            threads: 1,
            seed: 0,
            random_order: false,
            tools: ["memcheck", "initcheck", "racecheck", "synccheck"]
                .map(str::to_owned)
                .to_vec(),
            selection: LaunchSelection::default(),
            suppressions: Vec::new(),
            padding: None,
            print_limit: 100,
            leak_check: false,
            stack_frames: 12,
            log: None,
            trace: None,
            records: None,
        }
    }
}

impl Settings {
    /// The environment variable that a program's library reads them from. Without it the library takes the defaults.
    pub const VARIABLE: &str = "ROCMFORGE_HIP_SETTINGS";

    /// The value of the variable.
    pub fn to_variable(&self) -> String {
        // Texts, numbers and paths; a path that is not UTF-8 was refused when the options were read.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Reads the value of the variable.
    ///
    /// # Errors
    /// [`SettingsError::Variable`].
    pub fn from_variable(value: &str) -> Result<Self, SettingsError> {
        Ok(serde_json::from_str(value)?)
    }

    /// The machine, for a program that has loaded the library of `abi`.
    ///
    /// # Errors
    /// The processor is not simulated.
    pub fn machine(&self, abi: Abi) -> Result<SimConfig, SettingsError> {
        let card = |name: &String| {
            let card = CardConfig::of(name.parse()?);
            Ok(CardConfig {
                vram: self.vram.map_or(card.vram, Bytes),
                desktop_used: Bytes(0),
                ..card
            })
        };
        let cards = self.cards.iter().map(card);
        let cards: Vec<_> = cards.collect::<Result<_, rocmforge_sim::UnknownArch>>()?;
        if cards.is_empty() || cards.len() > MOST_CARDS {
            return Err(SettingsError::Cards(cards.len()));
        }
        let has = |tool: &str| self.tools.iter().any(|name| name == tool);
        let tools = Tools {
            memcheck: has("memcheck"),
            initcheck: has("initcheck"),
            racecheck: has("racecheck"),
            synccheck: has("synccheck"),
            init_registers: has("init_registers"),
        };
        Ok(SimConfig {
            peer_access: self.peer_access,
            seed: self.seed,
            schedule: if self.random_order {
                Schedule::Random(self.seed)
            } else {
                Schedule::Lazy
            },
            // HIP 5 and 6 differ in layouts, which this crate sees to, not in behaviour.
            hip_version: if abi == Abi::Hip7 {
                HipVersion::Hip7
            } else {
                HipVersion::Hip6
            },
            tools,
            selection: self.selection.clone(),
            padding: self.padding.map(Bytes),
            threads: self.threads.max(1),
            timeline: self.trace.is_some(),
            unattended: Some(UNATTENDED),
            ..SimConfig::of_cards(cards)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocmforge_sim::{NameFilter, ReportKind, Tool};

    #[test]
    fn settings_pass_through_the_variable() {
        let settings = Settings {
            cards: vec!["gfx1201".to_owned()],
            hip: Some(Abi::Hip7),
            vram: Some(1 << 30),
            records: Some("/a folder/\"quoted\"".into()),
            selection: LaunchSelection {
                names: vec![
                    NameFilter::Exact("copy".to_owned()),
                    NameFilter::Substring("fi".to_owned()),
                ],
                skip: 1,
                count: 2,
            },
            suppressions: vec![ReportFilter {
                kind: Some(ReportKind::LdsRace),
                tool: Some(Tool::Racecheck),
                line: Some(3),
                ..ReportFilter::default()
            }],
            ..Settings::default()
        };
        assert_eq!(Settings::from_variable(&settings.to_variable()).unwrap(), settings);
        for wrong in ["", "{\"card\": 3}", "{\"hip\": 4}", "{\"unknown\": 1}"] {
            assert!(Settings::from_variable(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_machine_has_the_card_asked_for() {
        let settings = Settings {
            cards: vec!["gfx1201".to_owned(), "gfx1100".to_owned()],
            vram: Some(1 << 30),
            ..Settings::default()
        };
        let machine = settings.machine(Abi::Hip7).unwrap();
        assert_eq!(
            (machine.cards[0].arch.as_str(), machine.cards[0].vram),
            ("gfx1201", Bytes(1 << 30))
        );
        assert_eq!(machine.cards[1].arch, "gfx1100");
        assert_ne!(machine.cards[0].pci, machine.cards[1].pci);
        assert_eq!(machine.hip_version, HipVersion::Hip7);
        let of = |cards: &[&str]| Settings {
            cards: cards.iter().map(|&card| card.to_owned()).collect(),
            ..settings.clone()
        };
        let refused = |cards: &[&str]| of(cards).machine(Abi::Hip6).unwrap_err();
        assert!(matches!(refused(&["gfx1100", "gfx906"]), SettingsError::Card(_)));
        assert!(matches!(refused(&[]), SettingsError::Cards(0)));
        assert!(matches!(refused(&["gfx1100"; 17]), SettingsError::Cards(17)));
    }
}
