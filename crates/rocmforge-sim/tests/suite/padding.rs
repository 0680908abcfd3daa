//! Padding behind allocations and the quarantine of freed ones: what they find, and that the card's memory does not know of them.

use rocmforge_hip_sys::*;
use rocmforge_memory::Bytes;
use rocmforge_sim::program::{Arg, Name, Op, Run, run};
use rocmforge_sim::{AllocationState, CardConfig, FreedMemory, ReportKind, SimConfig, SimHost};
use rocmforge_test_support::split_mix_64 as next;
use std::ffi::c_void;
use std::ptr::null_mut;

const IMAGES: [&[u8]; 1] = [include_bytes!("../kernels/steps-gfx1100.co")];
const FILL: Name = 0;
const MIB: usize = 1 << 20;

/// Runs a program with the kernel `fill` and stream 1.
fn run_with(program: &[Op], change: impl FnOnce(&mut SimConfig)) -> Run {
    let mut ops = vec![
        Op::Load { module: 0, image: 0 },
        Op::Function {
            function: FILL,
            module: 0,
            kernel: "fill",
        },
        Op::Stream {
            stream: 1,
            blocking: false,
        },
    ];
    ops.extend(program.iter().cloned());
    let mut config = SimConfig::default();
    change(&mut config);
    run(&ops, config, &IMAGES)
}

fn malloc(buffer: Name, size: usize) -> Op {
    Op::Malloc { buffer, size }
}

/// Writes one element, `at` bytes from the start of a buffer.
fn write(buffer: Name, at: usize) -> Op {
    Op::Launch {
        function: FILL,
        grid: [1, 1, 1],
        block: [32, 1, 1],
        args: vec![Arg::Buffer(buffer, at as u32), Arg::U32(1), Arg::U32(1)],
        stream: 1,
    }
}

#[test]
fn a_write_far_past_the_end_hits_no_neighbour() {
    let program = |at| [malloc(1, MIB), malloc(2, MIB), write(1, at), Op::SyncDevice];
    for past in [0, 4096, 200 << 10] {
        let run = run_with(&program(MIB + past), |_| {});
        let report = run.reports.first().unwrap_or_else(|| panic!("{past} B past the end"));
        assert_eq!(report.kind, ReportKind::OutOfBounds, "{report}");
        let of = report.allocation.as_ref().expect("the allocation that was meant");
        assert_eq!(of.address + of.size + past as u64, report.address, "{report}");
        assert!(report.message.contains(&format!("{past} B past the end")), "{report}");
    }
    // 256 B behind each: the second buffer is hit, and nobody can tell.
    let run = run_with(&program(MIB + 4096), |config| config.padding = Some(Bytes(0)));
    assert!(run.reports.is_empty(), "{:?}", run.reports);
    let run = run_with(&program(MIB + 4096), |config| config.padding = Some(Bytes(8192)));
    assert_eq!(run.reports.len(), 1);
}

#[test]
fn a_stale_pointer_is_found_also_after_a_new_allocation() {
    let program = [
        malloc(1, 256),
        Op::Free { buffer: 1 },
        malloc(2, 256),
        write(1, 0),
        Op::SyncDevice,
    ];
    let run = run_with(&program, |_| {});
    let report = run.reports.first().expect("the buffer was freed");
    assert_eq!(report.kind, ReportKind::UseAfterFree, "{report}");
    assert!(!report.frames.is_empty(), "the kernel's own line: {report}");
    let of = report.allocation.as_ref().expect("the freed allocation");
    assert!(matches!(of.state, AllocationState::Freed(_)), "{report}");
    let other = report.other.as_ref().expect("who freed it");
    assert_eq!(other.api, "hipFree", "{report}");
}

fn malloc_on(sim: &SimHost, size: usize) -> *mut c_void {
    let mut ptr = null_mut();
    // SAFETY: `ptr` is a live out-pointer.
    let status = unsafe { sim.hipMalloc(&mut ptr, size) };
    assert_eq!(status, hipSuccess, "{size} B");
    ptr
}

fn free_on(sim: &SimHost, ptr: *mut c_void) {
    // SAFETY: the simulator follows no device pointer.
    assert_eq!(unsafe { sim.hipFree(ptr) }, hipSuccess);
}

fn free_figure(sim: &SimHost) -> usize {
    let (mut free, mut total) = (0, 0);
    // SAFETY: both are live out-pointers.
    let status = unsafe { sim.hipMemGetInfo(&mut free, &mut total) };
    assert_eq!(status, hipSuccess);
    free
}

fn card(mib: u64, freed: FreedMemory, padding: Option<u64>) -> std::sync::Arc<SimHost> {
    SimHost::new(SimConfig {
        cards: vec![CardConfig::with_vram(Bytes(mib << 20))],
        freed,
        padding: padding.map(Bytes),
        ..SimConfig::default()
    })
}

/// Whatever a program does, each allocation succeeds that does without padding and quarantine, and the free figure is the same.
#[test]
fn padding_and_quarantine_cost_no_memory_and_fail_no_allocation() {
    for seed in 0..20 {
        let mut random = seed;
        let sims = [
            card(64, FreedMemory::ReusedAtOnce, Some(0)),
            card(64, FreedMemory::Quarantined, None),
            card(64, FreedMemory::Quarantined, Some(1 << 40)),
            card(64, FreedMemory::Quarantined, Some(48 << 20)),
        ];
        let mut held: Vec<[*mut c_void; 4]> = Vec::new();
        for _ in 0..400 {
            if next(&mut random) % 5 < 2 && !held.is_empty() {
                let index = next(&mut random) as usize % held.len();
                for (sim, ptr) in sims.iter().zip(held.swap_remove(index)) {
                    free_on(sim, ptr);
                }
                continue;
            }
            // Up to 16 MiB, small ones as often as large ones.
            let size = (next(&mut random) >> (40 + next(&mut random) % 24)) as usize + 1;
            let answers = sims.each_ref().map(|sim| {
                let mut ptr = null_mut();
                // SAFETY: `ptr` is a live out-pointer.
                let status = unsafe { sim.hipMalloc(&mut ptr, size) };
                (status, ptr)
            });
            for (status, _) in answers {
                assert_eq!(status, answers[0].0, "seed {seed}: {size} B");
            }
            if answers[0].0 == hipSuccess {
                held.push(answers.map(|(_, ptr)| ptr));
            }
            let figures = sims.each_ref().map(|sim| free_figure(sim));
            assert!(
                figures.iter().all(|figure| *figure == figures[0]),
                "seed {seed}: {figures:?}"
            );
        }
    }
}

#[test]
fn all_of_the_memory_can_be_had_after_it_was_freed() {
    let sim = card(64, FreedMemory::Quarantined, None);
    let before = free_figure(&sim);
    let mut kept = Vec::new();
    for round in 0..2000 {
        let ptr = malloc_on(&sim, 512 << 10);
        // Some stay, all over the addresses.
        if round % 100 == 0 {
            kept.push(ptr);
        } else {
            free_on(&sim, ptr);
        }
    }
    let rest = free_figure(&sim);
    assert_eq!(before - rest, 20 * (512 << 10));
    free_on(&sim, malloc_on(&sim, rest));
    for ptr in kept {
        free_on(&sim, ptr);
    }
    assert_eq!(free_figure(&sim), before);
    malloc_on(&sim, before);
}

#[test]
fn the_same_program_gets_the_same_addresses() {
    let run = || {
        let sim = card(64, FreedMemory::Quarantined, None);
        let mut addresses = Vec::new();
        for round in 0..500usize {
            let ptr = malloc_on(&sim, (round * 7919) % (128 << 10) + 1);
            addresses.push(ptr.addr());
            if round % 3 != 0 {
                free_on(&sim, ptr);
            }
        }
        (addresses, sim.trace_hash())
    };
    assert_eq!(run(), run());
}
