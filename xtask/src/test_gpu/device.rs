//! Which device the tests run on, and whether they may.

use crate::workspace_root;
use rocmforge_testkit::lock;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A device as `--device` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Device {
    /// A fresh simulated gfx1100 for each test.
    Sim,
    /// An AMD card by PCI address or index.
    Hip(String),
}

/// Why a device cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum DeviceError {
    /// The name is none of the known forms.
    #[error("{0:?} is no device: use `sim`, or `hip:<PCI address or index>`")]
    Unknown(String),
    /// There is no such card here.
    #[error("no AMD card {wanted:?} here; found: {found}. `cargo xtask doctor` says more")]
    NoSuchCard { wanted: String, found: String },
    /// The card drives a display and nobody said that this is intended.
    #[error(
        "{card} drives a display ({connectors}). A faulty kernel can take the desktop down. \
         Use another card, or say --allow-display-gpu"
    )]
    DrivesDisplay { card: String, connectors: String },
}

impl FromStr for Device {
    type Err = DeviceError;

    fn from_str(text: &str) -> Result<Self, DeviceError> {
        match text.split_once(':') {
            None if text == "sim" => Ok(Self::Sim),
            Some(("hip", card)) if !card.is_empty() => Ok(Self::Hip(card.to_owned())),
            _ => Err(DeviceError::Unknown(text.to_owned())),
        }
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sim => f.write_str("sim"),
            Self::Hip(card) => write!(f, "hip:{card}"),
        }
    }
}

impl Device {
    /// The key of the card's lock. A simulated card is private to its process, so what is locked is this checkout's report
    /// folder.
    pub(crate) fn card_key(&self) -> String {
        match self {
            Self::Sim => "sim".to_owned(),
            Self::Hip(card) => card.clone(),
        }
    }

    /// Where the lock file lies.
    pub(crate) fn lock_directory(&self) -> PathBuf {
        match self {
            Self::Sim => workspace_root().join("target/test-gpu"),
            Self::Hip(_) => lock::default_directory(),
        }
    }

    /// What a test process is told.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        vec![("ROCMFORGE_DEVICE", self.to_string())]
    }

    /// Processes at a time: the user's choice in simulation, one on a real card.
    pub(crate) fn jobs(&self, wanted: Option<usize>) -> usize {
        match self {
            Self::Sim => wanted
                .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
                .max(1),
            Self::Hip(_) => 1,
        }
    }

    /// Refuses a device that is not there or must not be used.
    pub(crate) fn preflight(&self, allow_display: bool) -> Result<(), DeviceError> {
        match self {
            Self::Sim => Ok(()),
            Self::Hip(wanted) => {
                let _ = allow_display;
                Err(DeviceError::NoSuchCard {
                    wanted: wanted.clone(),
                    found: "none".to_owned(),
                })
            }
        }
    }
}
