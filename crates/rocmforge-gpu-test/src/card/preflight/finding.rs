//! Findings about a card, each with its weight, and what a user consents to.

use crate::card::quarantine::{Cause, Quarantine};
use rocmforge_machine::sysfs::CardUser;
use rocmforge_memory::DISPLAY_HEADROOM;
use serde::Serialize;
use std::fmt;

/// How much a finding matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Level {
    /// Good to know.
    Note,
    /// It may end badly.
    Warning,
    /// The card is not used.
    Refusal,
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Finding {
    pub(crate) level: Level,
    /// What is the case.
    pub(crate) what: String,
    /// What the user can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) advice: Option<String>,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        match &self.advice {
            Some(advice) => write!(f, ": {advice}"),
            None => Ok(()),
        }
    }
}

/// What the user consented to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Consent {
    /// `--allow-display-gpu`.
    pub display: bool,
    /// `--after-reset`.
    pub reset: bool,
}

/// A card that a run before this one gave up on.
pub(super) fn quarantined(pci: &str, held: &Quarantine, consent: Consent) -> Finding {
    match held.cause {
        Cause::Stuck => refusal(format!("{pci} is in quarantine: {held}"), "restart the machine"),
        Cause::Reset if consent.reset => warning(
            format!("{pci} was reset in this boot: {held}"),
            "used all the same (--after-reset)",
        ),
        Cause::Reset => refusal(
            format!("{pci} was reset in this boot: {held}"),
            "restart the machine, or say --after-reset",
        ),
    }
}

/// A process that uses a card.
pub(super) fn used_by(user: &CardUser) -> Finding {
    let name = user.name.as_deref().unwrap_or("unknown");
    let what = format!("process {} ({name}) uses the card", user.process);
    // The desktop has the card open and cannot do without; a compute job next to the tests is another matter.
    match user.vram {
        Some(vram) => warning(
            format!("{what} and holds {vram} for compute"),
            "a fault of a test may end it; wait for it to end",
        ),
        None => note(what),
    }
}

/// What follows from a display on a card.
pub(super) fn drives_a_display(pci: &str, displays: &str, consent: Consent) -> Finding {
    let what = format!("{pci} drives a display ({displays})");
    if consent.display {
        let limits = format!("tests hold 2 GiB at most, wait 2 s at most and keep {DISPLAY_HEADROOM} free");
        warning(what, &limits)
    } else {
        refusal(
            what,
            "a faulty kernel can take the desktop down; say --allow-display-gpu to use it",
        )
    }
}

/// What the card is not used for.
pub(super) fn refusal(what: impl Into<String>, advice: &str) -> Finding {
    Finding {
        level: Level::Refusal,
        what: what.into(),
        advice: Some(advice.to_owned()),
    }
}

/// What may end badly.
pub(super) fn warning(what: impl Into<String>, advice: &str) -> Finding {
    Finding {
        level: Level::Warning,
        ..refusal(what, advice)
    }
}

/// What is good to know.
pub(crate) fn note(what: String) -> Finding {
    Finding {
        level: Level::Note,
        what,
        advice: None,
    }
}
