//! Planted faults: each is found, with its class and its source line.

use crate::card::{Arg, Card, faults, lanes};
use rocmforge_amdgcn::{ByteState, Fault, FaultKind, GlobalMemory, Outcome, Status};

const SOURCE: &str = include_str!("../fixtures/faults.hip");

/// Line of the statement marked `// name`.
fn line(name: &str) -> u32 {
    let marker = format!("// {name}");
    1 + SOURCE.lines().position(|line| line.ends_with(&marker)).expect("marked") as u32
}

/// Checks that the outcome has a fault of this kind at the marked line, and no fault of another kind.
#[track_caller]
fn finds(outcome: &Outcome, kind: FaultKind, name: &str) -> Fault {
    for fault in &outcome.faults {
        assert_eq!(fault.kind, kind, "{fault}");
    }
    let fault = outcome
        .faults
        .first()
        .unwrap_or_else(|| panic!("{name}: nothing found"));
    let frame = fault
        .frames
        .first()
        .unwrap_or_else(|| panic!("no source position: {fault}"));
    assert!(frame.file.ends_with("faults.hip"), "{fault}");
    assert_eq!(frame.line, line(name), "{fault}");
    fault.clone()
}

#[test]
fn one_element_past_the_end() {
    for n in [1u32, 32, 33, 64, 100] {
        let mut card = Card::new(faults());
        let (dx, dy) = (card.upload(&vec![1.0f32; n as usize]), card.alloc(n as usize * 4));
        let args = || [Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(n)];
        let outcome = card.launch("load_past_end", [1; 3], [128, 1, 1], 0, &args());
        let fault = finds(&outcome, FaultKind::GlobalOutOfBounds, "load_past_end");
        assert_eq!((fault.address, fault.size, fault.count), (dx + u64::from(n) * 4, 4, 1));
        assert_eq!(
            (fault.wave, fault.lane, fault.workgroup),
            (n / lanes(), n % lanes(), [0; 3])
        );
        assert_eq!(
            card.download::<f32>(dy, n as usize),
            vec![1.0; n as usize],
            "the other lanes are right"
        );
        let outcome = card.launch("store_past_end", [1; 3], [128, 1, 1], 0, &args());
        let fault = finds(&outcome, FaultKind::GlobalOutOfBounds, "store_past_end");
        assert_eq!(
            (fault.address, fault.count, outcome.status),
            (dy + u64::from(n) * 4, 1, Status::Faulted)
        );
        let outcome = card.launch("scalar_past_end", [1; 3], [1, 1, 1], 0, &args());
        let fault = finds(&outcome, FaultKind::GlobalOutOfBounds, "scalar_past_end");
        assert_eq!(fault.address, dx + u64::from(n) * 4);
    }
}

#[test]
fn freed_and_unwritten_memory() {
    let mut card = Card::new(faults());
    let (dx, dy) = (card.upload(&[1.0f32; 64]), card.alloc(256));
    let args = || [Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(63)];
    card.memory.set_state(dx + 128, 128, ByteState::Freed);
    let outcome = card.launch("load_past_end", [1; 3], [64, 1, 1], 0, &args());
    let fault = finds(&outcome, FaultKind::UseAfterFree, "load_past_end");
    assert_eq!((fault.address, fault.wave, fault.count), (dx + 128, 32 / lanes(), 32));
    assert_eq!(fault.lane, 32 % lanes());
    card.memory.set_state(dx + 128, 128, ByteState::Uninit);
    let outcome = card.launch("load_past_end", [1; 3], [64, 1, 1], 0, &args());
    finds(&outcome, FaultKind::UninitialisedGlobal, "load_past_end");
    // Of an element that is partly written the rest is moved, and remains what nobody has written.
    card.memory.set_state(dx + 128, 128, ByteState::Init);
    card.memory.set_state(dx + 130, 1, ByteState::Uninit);
    let outcome = card.launch("load_past_end", [1; 3], [64, 1, 1], 0, &args());
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults.first());
    assert_eq!(card.memory.state_at(dy + 129), ByteState::Init);
    assert_eq!(card.memory.state_at(dy + 130), ByteState::Uninit);
    card.memory.set_state(dx + 128, 128, ByteState::Uninit);
    card.options.tools.initcheck = false;
    let outcome = card.launch("load_past_end", [1; 3], [64, 1, 1], 0, &args());
    assert_eq!(outcome.status, Status::Completed);
    assert_eq!(card.memory.state_at(dy + 128), ByteState::Init);
}

#[test]
fn lds_and_private_memory() {
    let mut card = Card::new(faults());
    let dy = card.alloc(1024);
    let outcome = card.launch("lds_past_end", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(dy), Arg::U32(0)]);
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults);
    let outcome = card.launch("lds_past_end", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(dy), Arg::U32(1)]);
    let first = &outcome.faults[0];
    assert_eq!(
        (first.kind, first.address, first.lane, first.wave),
        (FaultKind::LdsOutOfBounds, 256, 63 % lanes(), 63 / lanes()),
        "{first}"
    );
    assert_eq!(first.frames[0].line, line("lds_past_end"), "{first}");
    let outcome = card.launch("private_past_end", [1; 3], [32, 1, 1], 0, &[Arg::Ptr(dy), Arg::U32(3)]);
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults);
    let outcome = card.launch(
        "private_past_end",
        [1; 3],
        [32, 1, 1],
        0,
        &[Arg::Ptr(dy), Arg::U32(400)],
    );
    finds(&outcome, FaultKind::ScratchOutOfBounds, "private_past_end");
}

#[test]
fn a_missing_barrier_in_any_wave_order() {
    for seed in 0..8 {
        let mut card = Card::new(faults());
        card.options.wave_order_seed = seed;
        let (dx, dy) = (card.upload(&[1.0f32; 256]), card.alloc(1024));
        let outcome = card.launch("missing_barrier", [1; 3], [256, 1, 1], 0, &[Arg::Ptr(dx), Arg::Ptr(dy)]);
        let fault = finds(&outcome, FaultKind::UninitialisedLds, "missing_barrier");
        assert_eq!(fault.count, 128, "half of the waves read before their partner wrote");
    }
}

/// Threads that have left do not count at a barrier: lanes of a wave that goes on, and whole waves.
#[test]
fn a_barrier_that_those_who_have_left_do_not_reach() {
    for n in [64u32, 40, 33, 32, 31, 1, 0] {
        let mut card = Card::new(faults());
        let (dx, dy) = (card.upload(&[1.0f32; 64]), card.upload(&[0.0f32; 64]));
        let args = [Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(n)];
        let outcome = card.launch("divergent_barrier", [1; 3], [64, 1, 1], 0, &args);
        assert_eq!(outcome.status, Status::Completed, "{n}: {:?}", outcome.faults);
        assert!(outcome.warnings.is_empty(), "{n}: {:?}", outcome.warnings);
        let expected: Vec<f32> = (0..64).map(|t| if t < n { 2.0 } else { 0.0 }).collect();
        assert_eq!(card.download::<f32>(dy, 64), expected, "{n}");
    }
}

#[test]
fn endless_loops_and_traps_end() {
    let mut card = Card::new(faults());
    let flag = card.upload(&[0u32]);
    // Long before the budget is used up: nothing changes from one round to the next.
    let outcome = card.launch("endless", [1; 3], [96, 1, 1], 0, &[Arg::Ptr(flag)]);
    assert_eq!(outcome.status, Status::BudgetExhausted);
    assert!(outcome.instructions < 1_000_000, "{}", outcome.instructions);
    let fault = finds(&outcome, FaultKind::Spinning, "endless");
    let head = fault.other.as_ref().expect("where the loop begins");
    assert!(
        head.pc < fault.pc
            && fault
                .note
                .contains(&format!("{} more waves", 96u32.div_ceil(lanes()) - 1)),
        "{fault}"
    );
    card.options.instruction_budget = 1_000;
    let outcome = card.launch("endless", [1; 3], [32, 1, 1], 0, &[Arg::Ptr(flag)]);
    assert_eq!(outcome.status, Status::BudgetExhausted);
    finds(&outcome, FaultKind::BudgetExhausted, "endless");
    let dy = card.alloc(128);
    let outcome = card.launch("trapping", [1; 3], [32, 1, 1], 0, &[Arg::Ptr(dy), Arg::U32(7)]);
    finds(&outcome, FaultKind::Trap, "trapping");
    let outcome = card.launch("trapping", [1; 3], [32, 1, 1], 0, &[Arg::Ptr(dy), Arg::U32(6)]);
    assert_eq!(outcome.status, Status::Completed);
}

#[test]
fn launches_that_cannot_start() {
    let mut card = Card::new(faults());
    let dy = card.alloc(128);
    for (grid, block, lds) in [
        ([1, 0, 1], [32, 1, 1], 0),
        ([1; 3], [1025, 1, 1], 0),
        ([1; 3], [32, 1, 1], 65_537),
    ] {
        let outcome = card.launch("trapping", grid, block, lds, &[Arg::Ptr(dy), Arg::U32(6)]);
        assert_eq!(outcome.faults[0].kind, FaultKind::BadLaunch);
    }
    // The shadow of so much memory is larger than an address space.
    card.options.tools.racecheck = true;
    card.memory = GlobalMemory::new(16 << 40).expect("address space");
    let outcome = card.launch("trapping", [1; 3], [32, 1, 1], 0, &[Arg::Ptr(dy), Arg::U32(6)]);
    let [fault] = &outcome.faults[..] else {
        panic!("one fault: {:?}", outcome.faults)
    };
    assert_eq!(fault.kind, FaultKind::NoHostMemory, "{fault}");
    let said = "the host refused 175921860444160 B of address space for the shadow of racecheck: ";
    assert!(fault.note.starts_with(said), "{fault}");
}

/// Checks where a fault is, and the calls that lead there: names of functions and of marked lines.
#[track_caller]
fn is_called(fault: &Fault, calls: &[(&str, &str)]) {
    let lines: Vec<u32> = fault.frames.iter().map(|frame| frame.line).collect();
    let expected: Vec<u32> = calls.iter().map(|(_, statement)| line(statement)).collect();
    assert_eq!(lines, expected, "{fault}");
    for ((function, _), frame) in calls.iter().zip(&fault.frames) {
        assert!(frame.function.contains(function), "{fault}");
    }
}

#[test]
fn the_calls_that_lead_to_a_fault() {
    let mut card = Card::new(faults());
    let (dx, dy) = (card.upload(&[1.0f32; 64]), card.alloc(64 * 4));
    let args = [Arg::Ptr(dx), Arg::Ptr(dy), Arg::U32(1)];
    // The last lane: an upper one where waves have 64.
    let outcome = card.launch("call_past_end", [1; 3], [64, 1, 1], 0, &args);
    let fault = finds(&outcome, FaultKind::GlobalOutOfBounds, "called_past_end");
    let calls = [
        ("element", "called_past_end"),
        ("twice", "calls_past_end"),
        ("call_past_end", "kernel_calls_past_end"),
    ];
    is_called(&fault, &calls);
    assert_eq!(fault.count, 1);
}

/// The value is used behind the return, and the same load gets another one in a second call.
#[test]
fn the_call_of_a_load_whose_value_is_used_later() {
    let mut card = Card::new(faults());
    let (dx, dy) = (card.alloc(64 * 4), card.upload(&[1.0f32; 64]));
    let outcome = card.launch("call_unwritten", [1; 3], [64, 1, 1], 0, &[Arg::Ptr(dx), Arg::Ptr(dy)]);
    let fault = finds(&outcome, FaultKind::UninitialisedGlobal, "called_unwritten");
    is_called(
        &fault,
        &[("unwritten", "called_unwritten"), ("call_unwritten", "calls_unwritten")],
    );
}
