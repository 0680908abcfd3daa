//! A file that is torn, cut, scratched, replaced or made to lie: never a panic, never more budget.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

use proptest::prelude::*;
use rocmforge_machine::private::PrivateError;
use rocmforge_memory::{Bytes, Card, Class, Limit, PeerFigures, PeersError};

use super::{CARD, apart, assert_fits, join, scratch};
use crate::common::GIB;

struct Scene {
    root: tempfile::TempDir,
    path: PathBuf,
    /// Holds 6 GiB of 20.
    one: Arc<Card>,
    two: Arc<Card>,
    held: rocmforge_memory::Reservation,
}

fn scene() -> Scene {
    let root = scratch();
    let (one, two) = (apart(root.path(), 20), apart(root.path(), 20));
    let held = one.try_reserve(Bytes::gib(6), Class::Required, "held").unwrap();
    drop(two.try_reserve(Bytes::gib(1), Class::Required, "joins").unwrap());
    let path = root.path().join(format!("{CARD}.ledger"));
    Scene {
        root,
        path,
        one,
        two,
        held,
    }
}

/// Every process asks for all it can get, down to a mebibyte; answers what they were granted together.
fn greed(cards: &[&Arc<Card>]) -> u64 {
    let mut granted = Vec::new();
    for card in cards {
        let mut step = 8 * GIB;
        while step >= 1 << 20 {
            match card.try_reserve(Bytes(step), Class::Required, "greed") {
                Ok(reservation) => granted.push(reservation),
                Err(_) => step /= 2,
            }
        }
    }
    granted.iter().map(|reservation| reservation.bytes().0).sum()
}

const BUDGET: u64 = 20 * GIB - (256 << 20);

#[test]
fn a_cut_file_is_refused_until_it_is_removed() {
    let scene = scene();
    let whole = fs::read(&scene.path).unwrap();
    for length in [0, 1, 63, 64, 128, 2048, 4095] {
        fs::write(&scene.path, &whole[..length]).unwrap();
        for card in [&scene.one, &scene.two] {
            let refusal = card.try_reserve(Bytes::gib(1), Class::Required, "more").unwrap_err();
            assert_eq!(refusal.limit, Limit::Peers);
            assert_eq!(refusal.available, Bytes::ZERO);
            assert_eq!(refusal.peers_error, Some(PeersError::Damaged(scene.path.clone())));
            let text = refusal.to_string();
            assert!(
                text.contains("end the programs") && text.contains("remove it"),
                "{text}"
            );
            assert!(text.contains("What they take cannot be determined: "), "{text}");
        }
        assert_eq!(
            join(scene.root.path(), PeerFigures::InUsed).err(),
            Some(PeersError::Damaged(scene.path.clone())),
            "nobody joins a damaged ledger"
        );
    }
    fs::remove_file(&scene.path).unwrap();
    assert!(scene.held.bytes().0 + greed(&[&scene.one, &scene.two]) <= BUDGET);
}

#[test]
fn a_removed_file_is_filled_again_by_those_who_still_run() {
    let scene = scene();
    fs::remove_file(&scene.path).unwrap();
    // The first one asks for more and is refused: what it has is seen again all the same.
    assert!(
        scene
            .one
            .try_reserve(Bytes::gib(30), Class::Required, "too much")
            .is_err()
    );
    assert!(scene.two.budget().peers >= Bytes::gib(6));
    assert!(scene.one.try_reserve(Bytes::gib(13), Class::Required, "fits").is_ok());
    assert!(scene.two.budget().peers >= Bytes::gib(6));
    assert!(scene.held.bytes().0 + greed(&[&scene.two]) <= BUDGET);
}

#[test]
fn a_process_repairs_its_own_record_and_nobody_elses() {
    let scene = scene();
    let mut bytes = fs::read(&scene.path).unwrap();
    bytes[64 + 24] ^= 0x40; // the claim of the first process
    fs::write(&scene.path, &bytes).unwrap();
    let refusal = scene
        .two
        .try_reserve(Bytes::gib(2), Class::Required, "more")
        .unwrap_err();
    assert_eq!(refusal.peers_error, Some(PeersError::Damaged(scene.path.clone())));
    let more = scene.one.try_reserve(Bytes::gib(2), Class::Required, "more").unwrap();
    assert!(scene.two.budget().peers >= Bytes::gib(8));
    assert_fits(&scene.two, Bytes::gib(2));
    drop(more);
}

#[test]
fn a_file_that_others_can_reach_or_that_is_no_file_is_refused() {
    let scene = scene();
    let refused = || {
        let refusal = scene
            .two
            .try_reserve(Bytes::gib(2), Class::Required, "more")
            .unwrap_err();
        match refusal.peers_error.clone() {
            Some(PeersError::File(error)) => error,
            other => panic!("{other:?}"),
        }
    };
    fs::set_permissions(&scene.path, Permissions::from_mode(0o666)).unwrap();
    assert!(matches!(refused(), PrivateError::Mode { mode: 0o666, .. }));
    let elsewhere = scene.root.path().join("elsewhere");
    fs::rename(&scene.path, &elsewhere).unwrap();
    fs::set_permissions(&elsewhere, Permissions::from_mode(0o600)).unwrap();
    symlink(&elsewhere, &scene.path).unwrap();
    assert!(matches!(refused(), PrivateError::Kind { .. }));
    fs::remove_file(&scene.path).unwrap();
    fs::create_dir(&scene.path).unwrap();
    assert!(matches!(refused(), PrivateError::Kind { .. }));
    fs::remove_dir(&scene.path).unwrap();
    fs::rename(&elsewhere, &scene.path).unwrap();
    assert_fits(&scene.two, Bytes::gib(2));
}

#[test]
fn a_directory_of_others_is_refused_when_it_is_joined() {
    let root = scratch();
    fs::set_permissions(root.path(), Permissions::from_mode(0o777)).unwrap();
    let refused = join(root.path(), PeerFigures::InUsed).unwrap_err();
    assert!(
        matches!(&refused, PeersError::File(PrivateError::Mode { mode: 0o777, .. })),
        "{refused}"
    );
    assert!(refused.to_string().contains("chmod"), "{refused}");
}

#[test]
fn records_that_fill_the_file_leave_no_room_for_a_process_too_many() {
    let root = scratch();
    let cards: Vec<_> = (0..64).map(|_| apart(root.path(), 20)).collect();
    let (last, others) = cards.split_last().unwrap();
    let held: Vec<_> = others
        .iter()
        .map(|card| card.try_reserve(Bytes::mib(1), Class::Required, "held").unwrap())
        .collect();
    let refusal = last
        .try_reserve(Bytes::mib(1), Class::Required, "one too many")
        .unwrap_err();
    assert!(matches!(refusal.peers_error, Some(PeersError::Full(_))), "{refusal}");
    drop(held);
    drop(cards);
    let card = apart(root.path(), 20);
    assert_fits(&card, Bytes::mib(1));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any bytes anywhere in the file: what all are granted together stays within the budget.
    #[test]
    fn no_change_of_the_file_grants_more(
        at in 0..4096usize,
        garbage in proptest::collection::vec(any::<u8>(), 1..200),
    ) {
        let scene = scene();
        let mut bytes = fs::read(&scene.path).unwrap();
        let before = bytes.clone();
        bytes.splice(at..(at + garbage.len()).min(4096), garbage.iter().copied().take(4096 - at));
        fs::write(&scene.path, &bytes).unwrap();
        prop_assert!(scene.held.bytes().0 + greed(&[&scene.two]) <= BUDGET);
        prop_assert!(scene.held.bytes().0 + greed(&[&scene.one]) <= BUDGET);
        fs::write(&scene.path, &before).unwrap();
        prop_assert!(scene.held.bytes().0 + greed(&[&scene.one, &scene.two]) <= BUDGET);
    }
}
