//! init_registers: unknown values are reported where they decide something, and nowhere else.

use crate::card::{Arg, Card, faults, racy};
use rocmforge_amdgcn::{FaultKind, Outcome, Status, Tools};

const REGISTERS: &[u8] = include_bytes!("../fixtures/registers.co");
const SOURCE: &str = include_str!("../fixtures/registers.hip");

fn card(elf: &[u8]) -> Card {
    let mut card = Card::new(elf);
    card.options.tools = Tools {
        init_registers: true,
        initcheck: false,
        ..Tools::default()
    };
    card
}

/// Runs a kernel on memory of which only the first `written` elements are.
fn run(kernel: &str, written: usize) -> Outcome {
    let mut card = card(REGISTERS);
    let (x, y) = (card.alloc(256), card.alloc(256));
    card.memory.write(x, &vec![1; written * 4]).expect("inside");
    let args = match kernel {
        "never_written" | "written" | "relative_never_written" | "relative_written" => vec![Arg::Ptr(y)],
        _ => vec![Arg::Ptr(x), Arg::Ptr(y)],
    };
    card.launch(kernel, [1; 3], [64, 1, 1], 0, &args)
}

#[track_caller]
fn finds(outcome: &Outcome, name: &str, why: &str) {
    let marker = format!("// {name}");
    let line = 1 + SOURCE.lines().position(|line| line.ends_with(&marker)).expect("marked") as u32;
    let fault = outcome
        .faults
        .first()
        .unwrap_or_else(|| panic!("{name}: nothing found"));
    assert_eq!(fault.kind, FaultKind::UninitialisedRegister, "{fault}");
    assert_eq!(fault.frames[0].line, line, "{fault}");
    assert!(fault.note.contains(why), "{fault}");
}

#[test]
fn registers_nobody_has_written() {
    finds(&run("never_written", 0), "never_written", "stored");
    finds(&run("relative_never_written", 0), "relative_never_written", "stored");
    for kernel in ["written", "relative_written"] {
        let outcome = run(kernel, 0);
        assert_eq!(
            outcome.status,
            Status::Completed,
            "{kernel}: {:?}",
            outcome.faults.first()
        );
    }
}

#[test]
fn registers_that_a_kernel_does_not_have_are_faults_of_every_run() {
    let mut card = Card::new(REGISTERS);
    card.options.tools = Tools::none();
    let y = card.alloc(256);
    let mut launch = |n| card.launch("relative_outside", [1; 3], [32, 1, 1], 0, &[Arg::Ptr(y), Arg::U32(n)]);
    assert_eq!(launch(0).status, Status::Completed);
    // The kernel has 48 registers: a multiple of 8.
    for (n, number) in [(8u32, 48i32), (1000, 1040), (u32::MAX - 99, -60)] {
        let outcome = launch(n);
        let kinds: Vec<FaultKind> = outcome.faults.iter().map(|fault| fault.kind).collect();
        assert_eq!(kinds, [FaultKind::RegisterOutOfRange; 2], "{n}");
        assert!(
            outcome.faults[0].note.starts_with(&format!("v{number} ")),
            "{}",
            outcome.faults[0]
        );
        assert!(outcome.faults[0].note.contains("of 48"), "{}", outcome.faults[0]);
    }
}

#[test]
fn memory_nobody_has_written_matters_where_it_decides() {
    finds(&run("stored", 63), "stored", "stored");
    assert_eq!(run("stored", 63).faults[0].lane, 31, "only the last lane is unknown");
    finds(&run("branched", 40), "branched", "active");
    finds(&run("scalar_branch", 3), "scalar_branch", "branch");
    finds(&run("addressed", 0), "addressed", "address");
    for kernel in ["stored", "branched", "scalar_branch", "addressed"] {
        let outcome = run(kernel, 64);
        assert_eq!(outcome.status, Status::Completed, "{kernel}: {}", outcome.faults[0]);
    }
    let outcome = run("masked", 0);
    assert_eq!(
        outcome.status,
        Status::Completed,
        "selected away: {:?}",
        outcome.faults.first()
    );
    let outcome = run("half_written", 16);
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults.first());
    assert!(!run("half_written", 15).faults.is_empty());
}

/// With initcheck, as always, the fault is at the load and names the use.
#[test]
fn initcheck_reports_the_load_where_something_depends_on_it() {
    for (kernel, marker, why, written) in [
        ("stored", "stored", "stored", 63),
        ("branched", "branched", "active", 40),
        ("scalar_branch", "scalar_branch", "branch", 3),
        ("addressed", "addressed", "address", 0),
    ] {
        let mut card = Card::new(REGISTERS);
        let (x, y) = (card.alloc(256), card.alloc(256));
        card.memory.write(x, &vec![1; written * 4]).expect("inside");
        let outcome = card.launch(kernel, [1; 3], [64, 1, 1], 0, &[Arg::Ptr(x), Arg::Ptr(y)]);
        let fault = outcome
            .faults
            .first()
            .unwrap_or_else(|| panic!("{kernel}: nothing found"));
        assert_eq!(fault.kind, FaultKind::UninitialisedGlobal, "{fault}");
        assert!(fault.note.contains(why), "{fault}");
        assert_eq!(fault.address, x + 4 * written as u64, "{fault}");
        let line = 1 + SOURCE
            .lines()
            .position(|line| line.ends_with(&format!("// {marker}")))
            .expect("marked");
        assert!(
            fault.note.contains(&format!("registers.hip:{line}:")),
            "where it is used: {fault}"
        );
    }
}

#[test]
fn correct_kernels_have_no_unknown_values() {
    for kernel in ["reduce_fixed", "lds_raw_fixed", "last_wave_fixed", "stencil_fixed"] {
        let mut card = card(racy());
        let (x, y) = (card.upload(&[1u32; 256]), card.alloc(1024));
        let outcome = card.launch(kernel, [1; 3], [256, 1, 1], 0, &[Arg::Ptr(x), Arg::Ptr(y)]);
        assert_eq!(outcome.status, Status::Completed, "{kernel}: {}", outcome.faults[0]);
    }
    let mut card = self::card(faults());
    let y = card.alloc(1024);
    let outcome = card.launch("private_past_end", [1; 3], [32, 1, 1], 0, &[Arg::Ptr(y), Arg::U32(3)]);
    assert_eq!(outcome.status, Status::Completed, "{:?}", outcome.faults.first());
}
