//! The refusal, with every figure it was decided on.

use std::fmt;
use std::ops::Deref;

use crate::{Bytes, Class, DeviceKey, PeersError, Relief, Site};

/// Which of the terms of the budget was the smallest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Limit {
    /// The policy's cap.
    Cap,
    /// What others hold plus the headroom kept for the desktop.
    Desktop,
    /// What the system can spare of the memory that it shares with the GPU.
    System,
    /// What HIP reports free, plus what we hold.
    Driver,
    /// The card itself, less the headroom.
    Total,
    /// The driver's figures are unreadable: the conservative fallback.
    Unreadable,
    /// The GPU shares the system's memory and the policy refuses that.
    UnifiedMemory,
    /// The part of the budget that [`Class::Cache`] may fill.
    CacheShare,
    /// The figures allow more by now, but the budget grows slowly.
    Growth,
    /// What cooperating processes have claimed and the driver does not show yet.
    Peers,
    /// The driver refused memory that the budget had granted, so the budget is lower for a while.
    DriverRefused,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Cap => "the policy's cap",
            Limit::Desktop => "what other programs and the desktop need",
            Limit::System => "what the system can spare of the memory that it shares with the GPU",
            Limit::Driver => "what the driver reports free",
            Limit::Total => "the size of the card",
            Limit::Unreadable => "the conservative fallback for a card whose figures cannot be read",
            Limit::UnifiedMemory => "the rule against taking memory the whole system shares",
            Limit::CacheShare => "the share of the budget that caches may fill",
            Limit::Growth => "the rule that the budget grows slowly",
            Limit::Peers => "what other programs of this user have claimed",
            Limit::DriverRefused => "what the driver refused although its figures allowed it",
        })
    }
}

/// A request that does not fit the card's budget. Nothing was taken.
///
/// The figures are fields of [`Refusal`], to which this dereferences.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct OutOfBudget(Box<Refusal>);

/// The figures of an [`OutOfBudget`], all taken in the same step as the decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The card.
    pub device: DeviceKey,
    /// What was asked for.
    pub requested: Bytes,
    /// What a request of this class could have had.
    pub available: Bytes,
    /// What we may hold in all, our own holdings included.
    pub budget: Bytes,
    /// The card's memory, or 0 if unknown.
    pub total: Bytes,
    /// What everybody else holds, or 0 if unknown.
    pub others: Bytes,
    /// What cooperating processes have claimed beyond that.
    pub peers: Bytes,
    /// What is kept free for the desktop.
    pub headroom: Bytes,
    /// What we hold, the driver's overhead for us included.
    pub own: Bytes,
    /// What we have reserved and not yet allocated.
    pub reserved: Bytes,
    /// The class of the request.
    pub class: Class,
    /// What the request was for.
    pub label: String,
    /// Who asked.
    pub site: Site,
    /// What the budget was limited by.
    pub limit: Limit,
    /// Why the holdings of cooperating processes cannot be determined, if they cannot.
    pub peers_error: Option<PeersError>,
    /// What was given back before it was refused.
    pub relief: Relief,
}

impl OutOfBudget {
    pub(crate) fn new(refusal: Refusal) -> Self {
        Self(Box::new(refusal))
    }

    /// The same, after these steps.
    pub(crate) fn after(mut self, relief: Relief) -> Self {
        self.0.relief = relief;
        self
    }
}

impl Deref for OutOfBudget {
    type Target = Refusal;

    fn deref(&self) -> &Refusal {
        &self.0
    }
}

impl fmt::Display for OutOfBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let r = &**self;
        write!(
            f,
            "`{}` ({:?}, {}) asked for {} on {}, but only {} of the budget of {} is available: we hold {} and have \
             reserved {}, others hold {} of {}{}, {} is kept free; limited by {}. {}",
            r.label,
            r.class,
            r.site,
            r.requested,
            r.device,
            r.available,
            r.budget,
            r.own,
            r.reserved,
            r.others,
            r.total,
            if r.peers > Bytes::ZERO {
                format!(" and have claimed {}", r.peers)
            } else {
                String::new()
            },
            r.headroom,
            r.limit,
            advice(r),
        )?;
        if let Some(error) = &r.peers_error {
            write!(f, " {error}")?;
        }
        if r.relief.0.is_empty() {
            return Ok(());
        }
        write!(f, " Before that, {}.", r.relief)
    }
}

/// A card whose policy keeps nothing free for the desktop that is on it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the policy keeps {headroom} of {device} free, which drives {displays} display(s): use a policy with headroom (`Policy::desktop()`), \
     or say `OnDisplay::Disregard` in `Policy::on_display` if what is on the screen may be lost"
)]
pub struct DisplayInUse {
    /// The card.
    pub device: DeviceKey,
    /// Displays connected to it.
    pub displays: u32,
    /// What the policy would keep free.
    pub headroom: Bytes,
}

/// The card is over-committed and what this program holds has part in it: nothing is launched until it has given way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "launches on {device} are stopped: we hold {own} of a budget of {budget}, others want {others} of {total}{}. Free buffers \
     (`Card::on_pressure` and `Card::subscribe` tell a program when), or end the program",
    if *.evicting { ", and the driver is moving memory off the card" } else { "" }
)]
pub struct LaunchesStopped {
    /// The card.
    pub device: DeviceKey,
    /// What we may hold.
    pub budget: Bytes,
    /// What we hold, reservations included.
    pub own: Bytes,
    /// What everybody else wants, or 0 if unknown.
    pub others: Bytes,
    /// The card's memory, or 0 if unknown.
    pub total: Bytes,
    /// Whether the driver was seen moving memory off the card.
    pub evicting: bool,
}

/// What the user can do about it.
fn advice(refusal: &Refusal) -> &'static str {
    match refusal.limit {
        Limit::UnifiedMemory => "Use a GPU with memory of its own, or allow this one with `Policy::unified_memory`.",
        Limit::System => {
            "Close programs, whose memory is the GPU's too, or raise what the driver may map (the module parameter \
             `ttm.pages_limit`); or use a smaller batch, context or model."
        }
        Limit::Unreadable => {
            "Let this user read /sys/class/drm/card*/device/mem_info_* and /proc/meminfo, or give a smaller request; `cargo xtask \
             doctor` shows what is unreadable."
        }
        _ if refusal.requested > refusal.total && refusal.total > Bytes::ZERO => {
            "The card is smaller than the request: use a smaller batch, context or a quantised model."
        }
        Limit::Cap => "Free buffers, use a smaller batch, context or model, or raise `Policy::cap`.",
        Limit::Desktop | Limit::Total => {
            "Close programs that use the GPU (browser, game, another model), free buffers, or use a smaller batch, \
             context or model."
        }
        Limit::Driver | Limit::DriverRefused => {
            "End other ROCm programs on this card, free buffers, or use a smaller batch, context or model."
        }
        Limit::Growth => {
            "Try again in some seconds: other programs have given memory back, and the budget grows when they have kept \
             away for a while (`Policy::grow_after`)."
        }
        Limit::Peers if refusal.peers_error.is_some() => "What they take cannot be determined:",
        Limit::Peers => "Wait for your other programs on this card, end one, or use a smaller batch, context or model.",
        Limit::CacheShare => "Free caches, or ask for it as `Class::Required` if the program cannot do without it.",
    }
}
