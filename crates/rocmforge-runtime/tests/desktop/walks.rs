//! Many sessions whose other programs walk at random, and a program that asks, gives back and looks every 50 ms.

use super::*;
use rocmforge_test_support::Random;

/// Steps of a session: 15 s of simulated time. `ROCMFORGE_WALK_STEPS` makes it longer.
fn steps() -> u64 {
    let given = std::env::var("ROCMFORGE_WALK_STEPS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(300)
}

fn session(seed: u64) -> (u64, DesktopStatus) {
    let desktop = DesktopConfig {
        seed,
        preemption_failure: 0.1,
        ..DesktopConfig::with([
            Client::walk(Bytes(GIB), Bytes(12 * GIB)),
            Client::video(Duration::from_secs(2)),
        ])
    };
    let sim = machine_with(desktop, Poison::Stale);
    let backend = open(&sim);
    let mut random = Random(seed);
    let mut buffers = Vec::new();
    let mut grants = 0;
    for step in 0..steps() {
        pause(&sim, 50);
        shed(&backend, &mut buffers);
        match random.below(4) {
            0 if !buffers.is_empty() => {
                let index = random.below(buffers.len() as u64) as usize;
                buffers.swap_remove(index);
            }
            1 => {}
            _ => {
                let bytes = (1 + random.below(1024)) * MIB;
                if let Ok(buffer) = held(&backend, bytes) {
                    grants += 1;
                    buffers.push(buffer);
                    // The figures of this very decision: nothing has been read since.
                    let budget = backend.card().budget();
                    assert!(budget.own <= budget.budget, "seed {seed}, step {step}: {budget:?}");
                }
            }
        }
    }
    drop((buffers, backend));
    assert!(sim.reports().is_empty(), "seed {seed}: {:?}", sim.reports());
    assert_eq!(sim.allocation_stats(0).live, 0, "seed {seed}");
    (grants, status(&sim))
}

/// A quarter of a thousand sessions: no grant beyond the budget, no harm to the desktop.
fn sessions(quarter: u64) {
    let mut grants = 0;
    for seed in 250 * quarter..250 * (quarter + 1) {
        let (granted, status) = session(seed);
        grants += granted;
        assert!(
            status.longest_below_floor <= Duration::from_millis(250),
            "seed {seed}: below the floor for too long: {status:?}"
        );
        assert_eq!(
            (
                status.death,
                status.evicted_by_us,
                status.queue_stops,
                status.frames_missed
            ),
            (None, Bytes(0), 0, 0),
            "seed {seed}: {status:?}"
        );
    }
    assert!(grants > 20_000, "{grants}");
}

#[test]
fn no_session_comes_to_harm_1() {
    sessions(0);
}

#[test]
fn no_session_comes_to_harm_2() {
    sessions(1);
}

#[test]
fn no_session_comes_to_harm_3() {
    sessions(2);
}

#[test]
fn no_session_comes_to_harm_4() {
    sessions(3);
}
