//! Backends of several processes on one card, with the ledger that they share. Two backends without a common `Cards` stand
//! for two processes; each machine is a card of its own.

use super::rig::Rig;
use rocmforge_memory::Limit;
use rocmforge_runtime::*;
use std::path::Path;
use std::sync::Arc;

fn open(directory: &Path) -> HipResult<Arc<HipBackend>> {
    let rig = Rig::with(|_| ());
    let ledger = SharedLedger {
        directory: directory.to_owned(),
        figures: PeerFigures::Missing,
    };
    let provider = rig.provider().with_peers(ledger);
    HipBackend::open(provider, BackendOptions::default())
}

#[test]
fn one_process_leaves_alone_what_another_one_holds() {
    let scratch = tempfile::tempdir().unwrap();
    let directory = scratch.path().join("ledger");
    let (one, two) = (open(&directory).unwrap(), open(&directory).unwrap());
    let alone = two.safe_alloc_size().unwrap();
    let held = one.allocate_buffer_safe(alone / 2).unwrap();
    let error = two.allocate_buffer_safe(alone / 2 + (1 << 20)).unwrap_err();
    let HipError::OutOfBudget(refusal) = &error else {
        panic!("{error}")
    };
    assert_eq!(refusal.limit, Limit::Peers, "{error}");
    drop(held);
    one.synchronize().unwrap();
    let all = two.safe_alloc_size().unwrap();
    assert!(alone - all <= 96 << 20, "{all} of {alone}");
    drop(one);
    assert_eq!(two.safe_alloc_size().unwrap(), alone);
}

#[test]
fn a_card_is_not_opened_when_its_ledger_cannot_be_trusted() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = tempfile::tempdir().unwrap();
    std::fs::set_permissions(scratch.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let error = open(scratch.path()).unwrap_err();
    assert!(
        matches!(
            &error,
            HipError::SharedLedger {
                source: PeersError::File(_),
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("none:00:00.0") && error.to_string().contains("chmod"),
        "{error}"
    );
}

#[test]
fn simulated_cards_share_nothing_unless_asked() {
    assert!(Rig::with(|_| ()).provider().peers.is_none());
    let own = SharedLedger::of_this_user();
    assert_eq!(own.figures, PeerFigures::InUsed);
    assert_eq!(own.directory, rocmforge_machine::private::default_directory());
}
