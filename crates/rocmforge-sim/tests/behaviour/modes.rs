//! The modes: every row runs as HIP 6 and as HIP 7.

use crate::rig::{Platform, Rig, probe_for};
pub(crate) use crate::support::*;
pub(crate) use rocmforge_sim::HipVersion::{self, Hip6, Hip7};
use rocmforge_sim::{CardConfig, SimConfig, SimHost};
use std::sync::Arc;

/// The rows of a chapter: each becomes a test in HIP 6 mode and one in HIP 7 mode, and an entry of the list that
/// `completeness` compares with the table. A row that is not listed here is dead code.
macro_rules! rows {
    ($($row:ident),* $(,)?) => {
        mod hip6 {
            $(#[test]
            fn $row() {
                super::$row(rocmforge_sim::HipVersion::Hip6);
            })*
        }

        mod hip7 {
            $(#[test]
            fn $row() {
                super::$row(rocmforge_sim::HipVersion::Hip7);
            })*
        }

        pub(crate) const ROWS: &[&str] = &[$(stringify!($row)),*];
    };
}
pub(crate) use rows;

pub(crate) fn machine(mode: HipVersion) -> Arc<SimHost> {
    machine_with(mode, |_| {})
}

pub(crate) fn machine_with(mode: HipVersion, change: impl FnOnce(&mut SimConfig)) -> Arc<SimHost> {
    crate::support::machine_with(|config| {
        config.hip_version = mode;
        change(config);
    })
}

/// A simulated card for a row that runs on any device.
pub(crate) fn rig(mode: HipVersion) -> Rig {
    rig_of(mode, machine(mode))
}

pub(crate) fn rig_of(mode: HipVersion, sim: Arc<SimHost>) -> Rig {
    let platform = by_mode(mode, Platform::Hip6, Platform::Hip7);
    let probe = probe_for("gfx1100").expect("it is committed");
    Rig::new(sim.clone(), platform, 0, probe, Some(sim))
}

pub(crate) fn two_cards(mode: HipVersion) -> Arc<SimHost> {
    machine_with(mode, |config| config.cards = SimConfig::with_cards(2).cards)
}

pub(crate) fn no_cards(mode: HipVersion) -> Arc<SimHost> {
    machine_with(mode, |config| config.cards.clear())
}

pub(crate) fn small_card(mode: HipVersion, mib: u64) -> Arc<SimHost> {
    machine_with(mode, |config| {
        config.cards = vec![CardConfig::with_vram(rocmforge_memory::Bytes(mib << 20))];
    })
}

/// What a mode answers where the two differ.
pub(crate) fn by_mode<T>(mode: HipVersion, hip6: T, hip7: T) -> T {
    match mode {
        Hip6 => hip6,
        Hip7 => hip7,
    }
}
