//! racecheck between the lanes of one wave: updates that are lost, and stores of several values to one place.

use crate::card::{Arg, Card, lanes, lanes_of_waves};
use rocmforge_amdgcn::{Access, Fault, FaultKind, Outcome, Status, Tools};

const SOURCE: &str = include_str!("../fixtures/lanes.hip");

fn card() -> Card {
    let mut card = Card::new(lanes_of_waves());
    card.options.tools = Tools {
        racecheck: true,
        ..Tools::none()
    };
    card
}

fn launch(card: &mut Card, kernel: &str, args: &[Arg]) -> Outcome {
    card.launch(kernel, [1; 3], [32, 1, 1], 0, args)
}

/// The one fault, at the line that has the kernel's name, between two lanes of a wave.
#[track_caller]
fn finds(outcome: &Outcome, kind: FaultKind, kernel: &str, says: &str) -> Fault {
    let marker = format!("// {kernel}");
    let line = 1 + SOURCE.lines().position(|line| line.ends_with(&marker)).expect("marked") as u32;
    let [fault] = &outcome.faults[..] else {
        panic!("{kernel}: {} faults: {:?}", outcome.faults.len(), outcome.faults);
    };
    assert_eq!(fault.kind, kind, "{fault}");
    assert!(fault.note.contains(says), "{fault}");
    let other = fault.other.as_ref().expect("a race has two sides");
    assert_eq!([fault.frames[0].line, other.frames[0].line], [line; 2], "{fault}");
    assert_eq!((fault.access, other.access), (Access::Store, Access::Store));
    assert_eq!((fault.workgroup, fault.wave), (other.workgroup, other.wave), "{fault}");
    assert_ne!(fault.lane, other.lane, "{fault}");
    fault.clone()
}

#[track_caller]
fn clean(outcome: &Outcome) {
    if let Some(fault) = outcome.faults.first() {
        panic!("{fault}");
    }
    assert_eq!(outcome.status, Status::Completed);
}

const LOST: &str = "update";
const SEVERAL: &str = "different values";

#[test]
fn updates_of_one_place_by_lanes_of_a_wave_are_lost() {
    let mut card = card();
    // Numbers 0 to 7 in turn: lane 8 is the first whose counter another lane of the wave has.
    let x: Vec<u32> = (0..32).collect();
    let (x, y) = (card.upload(&x), card.upload(&[0u32; 8]));
    let args = || [Arg::Ptr(x), Arg::Ptr(y)];
    let fault = finds(
        &launch(&mut card, "lds_counts", &args()),
        FaultKind::LdsRace,
        "lds_counts",
        LOST,
    );
    assert_eq!((fault.lane, fault.other.as_ref().map(|other| other.lane)), (8, Some(0)));
    assert_eq!(fault.count, 24, "of 32 updates 8 are left");
    let outcome = launch(&mut card, "counts_of_half_words", &args());
    let fault = finds(&outcome, FaultKind::GlobalRace, "counts_of_half_words", LOST);
    assert_eq!((fault.address, fault.size, fault.count), (y, 2, 24));
    let outcome = launch(&mut card, "one_counter", &[Arg::Ptr(y)]);
    let fault = finds(&outcome, FaultKind::GlobalRace, "one_counter", LOST);
    assert_eq!((fault.address, fault.count), (y, 31));
    finds(
        &launch(&mut card, "one_sum", &args()),
        FaultKind::GlobalRace,
        "one_sum",
        LOST,
    );
}

#[test]
fn lanes_above_31_have_their_numbers() {
    if lanes() == 64 {
        let mut card = card();
        let y = card.upload(&[0u32]);
        let outcome = card.launch("one_counter", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(y)]);
        let fault = finds(&outcome, FaultKind::GlobalRace, "one_counter", LOST);
        assert_eq!((fault.count, card.download::<u32>(y, 1)), (63, vec![1]));
    }
}

#[test]
fn several_values_for_one_place_race() {
    let mut card = card();
    let (x, y) = (card.upload(&[0x0102_0304u32; 32]), card.upload(&[0u32; 32]));
    let outcome = launch(&mut card, "last_lane", &[Arg::Ptr(y)]);
    finds(&outcome, FaultKind::GlobalRace, "last_lane", SEVERAL);
    let outcome = launch(&mut card, "halves_overlap", &[Arg::Ptr(x), Arg::Ptr(y)]);
    let fault = finds(&outcome, FaultKind::GlobalRace, "halves_overlap", SEVERAL);
    assert_eq!(fault.count, 31);
}

#[test]
fn lanes_that_do_not_meet_or_write_the_same_do_not_race() {
    let mut card = card();
    let x: Vec<u32> = (0..32).map(|n| n * 5).collect();
    let (x, y) = (card.upload(&x), card.upload(&[0u32; 64]));
    let doubles = card.upload(&[1.0f64; 33]);
    let args = || [Arg::Ptr(x), Arg::Ptr(y)];
    for kernel in ["lds_counts_apart", "atomic_counts", "same_value", "found"] {
        clean(&launch(&mut card, kernel, &args()));
    }
    for kernel in ["bytes_side_by_side", "behind_a_total"] {
        clean(&launch(&mut card, kernel, &[Arg::Ptr(y)]));
    }
    clean(&launch(
        &mut card,
        "atomic_sum",
        &[Arg::Ptr(doubles), Arg::Ptr(doubles + 256)],
    ));
    // One lane alone loses nothing.
    let one = card.upload(&[0u32]);
    clean(&card.launch("one_counter", [1; 3], [1, 1, 1], 0, &[Arg::Ptr(one)]));
    assert_eq!(card.download::<u32>(one, 1), [1]);
    // Another tool's business, where racecheck is off.
    card.options.tools.racecheck = false;
    clean(&launch(&mut card, "one_counter", &[Arg::Ptr(one)]));
}
