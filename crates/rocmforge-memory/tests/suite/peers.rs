//! Several processes on one card: the ledger that they share.

mod basics;
mod damage;
mod model;
mod processes;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use crate::common::{Driver, World};
use rocmforge_memory::{Bytes, Card, Class, DeviceKey, PeerFigures, PeerLedger, PeersError, Policy};

pub(crate) const CARD: &str = "0000:03:00.0";
/// A process's claim beyond its need, and what it may be late in telling: what others may miss of a card at most.
pub(crate) const UNUSED: u64 = 3 * (32 << 20);

/// A directory for this test alone.
pub(crate) fn scratch() -> tempfile::TempDir {
    let only_us = Permissions::from_mode(0o700);
    tempfile::Builder::new().permissions(only_us).tempdir().unwrap()
}

pub(crate) fn join(directory: &Path, figures: PeerFigures) -> Result<PeerLedger, PeersError> {
    PeerLedger::join(directory, &DeviceKey::new(CARD), figures)
}

/// A card as another process would open it, with figures from `driver`.
pub(crate) fn open(directory: &Path, driver: &Driver, figures: PeerFigures) -> Arc<Card> {
    let peers = join(directory, figures).unwrap();
    driver.with(|world| world.displays = 0);
    Card::open_shared(DeviceKey::new(CARD), Policy::headless(), driver.boxed(), peers).unwrap()
}

/// A card without figures that others move: each process sees a machine of its own.
pub(crate) fn apart(directory: &Path, gib: u64) -> Arc<Card> {
    let driver = Driver::new(World::new(gib << 30, 0));
    open(directory, &driver, PeerFigures::Missing)
}

/// Fails unless `bytes` could be had; they are given back at once.
#[track_caller]
pub(crate) fn assert_fits(card: &Arc<Card>, bytes: Bytes) {
    drop(
        card.try_reserve(bytes, Class::Required, "fits")
            .unwrap_or_else(|refusal| panic!("{refusal}")),
    );
}
