//! GPUs that share the system's memory: what the budget grants leaves the machine's programs alive and its headroom untouched.

use super::*;
use rocmforge_memory::{HOST_HEADROOM, HostReadings};

/// The largest machine that is sold with such a GPU, and a small one.
const MACHINES: [u64; 2] = [128 * GIB, 16 * GIB];

/// What the firmware keeps for graphics, and what graphics has of it.
const CARVE_OUT: u64 = 512 * MIB;
const SCREEN: u64 = 384 * MIB;

/// A machine whose programs are these, beside what is on its screen.
fn machine(memory: u64, seed: u64, programs: impl IntoIterator<Item = Client>) -> Arc<SimHost> {
    let mut config = SimConfig::apu(Bytes(memory));
    config.poison = Poison::Stale;
    config.cards[0].desktop = Some(DesktopConfig {
        seed,
        scan_out: Bytes(64 * MIB),
        compositor: Bytes(SCREEN - 64 * MIB),
        floor: Bytes(headroom(memory) / 2),
        ..DesktopConfig::with(programs)
    });
    SimHost::new(config)
}

/// By the definition in docs/memory.md.
fn headroom(memory: u64) -> u64 {
    HOST_HEADROOM.0.max((memory - CARVE_OUT) / 16)
}

/// What is available to the system in truth, whatever the figures say.
fn available(sim: &SimHost) -> u64 {
    status(sim).free.0.saturating_sub(CARVE_OUT - SCREEN)
}

fn budget(sim: &Arc<SimHost>) -> u64 {
    open(sim).card().budget().budget.0
}

#[test]
fn the_figures_of_both_kinds_of_memory_are_the_machines() {
    for memory in MACHINES {
        let sim = machine(memory, 0, [flat(3 * GIB)]);
        let backend = open(&sim);
        assert!(backend.device().integrated && backend.device().arch == "gfx1151");
        let half = (memory - CARVE_OUT) / 2;
        assert_eq!(backend.device().total_memory, Bytes(half));
        let system = || sim.host_readings().read();
        assert_eq!(system().total, Some(Bytes(memory - CARVE_OUT)));
        assert_eq!(system().available, Some(Bytes(memory - CARVE_OUT - 3 * GIB)));
        let (free, total) = backend.get_memory_info().unwrap();
        assert!(free <= total && free as u64 > half - GIB / 4, "{free} of {total}");
        let held = held(&backend, GIB).expect("there is room");
        assert_eq!(system().available, Some(Bytes(memory - CARVE_OUT - 4 * GIB)));
        assert_eq!(available(&sim), memory - CARVE_OUT - 4 * GIB);
        drop(held);
        // 70 % of what may be mapped, and of a small machine enough for a model.
        let budget = backend.card().budget();
        assert_eq!(budget.headroom.0, headroom(memory));
        assert!(budget.unified_memory && budget.budget >= Bytes::gib(4), "{budget:?}");
        assert!(budget.budget.0 <= half * 7 / 10, "{budget:?}");
    }
}

#[test]
fn the_budget_falls_as_the_machine_fills() {
    for memory in MACHINES {
        let system = memory - CARVE_OUT;
        let budgets: Vec<u64> = (1..=8)
            .map(|eighths| budget(&machine(memory, 0, [flat(system / 8 * eighths)])))
            .collect();
        assert!(budgets.is_sorted_by(|a, b| a >= b), "{budgets:?}");
        assert!(budgets[5] < budgets[0] && budgets[5] > 0, "{budgets:?}");
        assert_eq!(budgets[7], 0, "{budgets:?}");
    }
}

#[test]
fn what_hip_calls_free_costs_a_program_its_life_and_the_budget_does_not() {
    let memory = 16 * GIB;
    let programs = || [Client::steps("browser", vec![(Duration::ZERO, Bytes(9 * GIB))])];
    // All that HIP calls free, as a program takes it that asks nobody else.
    let sim = machine(memory, 0, programs());
    pause(&sim, 20);
    let free = hip_free(&sim).expect("HIP tells");
    let mut ptr = std::ptr::null_mut();
    // SAFETY: `ptr` is a live out-pointer.
    let status = unsafe { sim.hipMalloc(&mut ptr, free as usize) };
    assert_eq!(status, hipSuccess);
    pause(&sim, 100);
    assert_eq!(super::status(&sim).killed, ["browser"]);

    let sim = machine(memory, 0, programs());
    pause(&sim, 20);
    let backend = open(&sim);
    let mut buffers = Vec::new();
    while let Ok(buffer) = held(&backend, 256 * MIB) {
        buffers.push(buffer);
        assert!(available(&sim) >= headroom(memory), "{}", Bytes(available(&sim)));
    }
    assert!(buffers.len() >= 12, "3 GiB and more: {}", buffers.len());
    pause(&sim, 100);
    let status = super::status(&sim);
    assert!(status.killed.is_empty() && status.alive(), "{status:?}");
}

/// A program that asks, gives back and looks every 50 ms, beside programs whose memory walks.
fn session(memory: u64, seed: u64) -> u64 {
    let system = memory - CARVE_OUT;
    let walk = Client::walk(Bytes(2 * GIB), Bytes(system - headroom(memory)));
    let sim = machine(memory, seed, [walk, Client::video(Duration::from_secs(2))]);
    let backend = open(&sim);
    let mut random = rocmforge_test_support::Random(seed);
    let (mut buffers, mut grants, mut since_freed) = (Vec::new(), 0, u64::MAX);
    for step in 0..300 {
        pause(&sim, 50);
        since_freed = since_freed.saturating_add(50);
        let before = buffers.len();
        shed(&backend, &mut buffers);
        if random.below(4) == 0 && !buffers.is_empty() {
            let index = random.below(buffers.len() as u64) as usize;
            buffers.swap_remove(index);
        } else if let Ok(buffer) = held(&backend, (1 + random.below(memory / GIB * 64)) * MIB) {
            grants += 1;
            buffers.push(buffer);
            let budget = backend.card().budget();
            assert!(budget.own <= budget.budget, "seed {seed}, step {step}: {budget:?}");
            // What others took within a fifth of a second after a free of ours may go unseen for that long.
            assert!(
                since_freed <= 200 || available(&sim) >= headroom(memory),
                "seed {seed}, step {step}: {} are available, {budget:?}",
                Bytes(available(&sim))
            );
            continue;
        }
        if buffers.len() < before {
            since_freed = 0;
        }
    }
    drop((buffers, backend));
    let status = status(&sim);
    assert!(status.killed.is_empty() && status.alive(), "seed {seed}: {status:?}");
    assert_eq!(status.frames_missed, 0, "seed {seed}: {status:?}");
    assert!(
        status.longest_below_floor <= Duration::from_millis(250),
        "seed {seed}: half of the headroom was gone for too long: {status:?}"
    );
    grants
}

fn sessions(memory: u64) {
    let grants: u64 = (0..100).map(|seed| session(memory, seed)).sum();
    assert!(grants > 2_000, "{grants}");
}

#[test]
fn no_program_of_a_machine_with_128_gib_comes_to_harm() {
    sessions(MACHINES[0]);
}

#[test]
fn no_program_of_a_machine_with_16_gib_comes_to_harm() {
    sessions(MACHINES[1]);
}
