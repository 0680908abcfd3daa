//! Idle memory of the pool and a desktop that wants it.

use super::*;

fn pooled(sim: &Arc<SimHost>) -> Arc<HipBackend> {
    let options = BackendOptions {
        pool: PoolOptions::ON,
        ..BackendOptions::default()
    };
    HipBackend::open(provider(sim), options).expect("the simulated card opens")
}

/// As much as the budget gives, in pieces, all of it dropped.
fn fill(backend: &Arc<HipBackend>) -> u64 {
    let mut buffers = Vec::new();
    while let Ok(buffer) = held(backend, 256 * MIB) {
        buffers.push(buffer);
    }
    assert!(buffers.len() > 40);
    let bytes = buffers.iter().map(|buffer| buffer.bytes().0).sum();
    drop(buffers);
    bytes
}

#[test]
fn fc33_idle_memory_gives_way_to_a_game_if_the_program_looks() {
    let sim = machine(steady([Client::browser(), Client::game(Duration::from_secs(3))]));
    let backend = pooled(&sim);
    let filled = fill(&backend);
    assert_eq!(
        sim.allocation_stats(0).live_bytes,
        filled,
        "the driver has none of it back"
    );
    for _ in 0..400 {
        pause(&sim, 50);
        backend.card().relieve();
    }
    let (stats, status) = (sim.allocation_stats(0), status(&sim));
    let gone = filled - stats.live_bytes;
    assert!(
        gone > GIB && stats.live_bytes > GIB,
        "as much as the game needed: {gone}"
    );
    assert_undisturbed(&status);
}

#[test]
fn fc49_what_is_freed_while_the_driver_evicts_is_not_kept() {
    let jump = Client::steps("game", vec![(Duration::from_secs(2), Bytes(10 * GIB))]);
    let sim = machine(steady([flat(2 * GIB), jump]));
    let backend = pooled(&sim);
    let most = held(&backend, 12 * GIB).unwrap();
    let small = held(&backend, MIB).unwrap();
    pause(&sim, 2100);
    backend.card().look();
    assert_eq!(backend.card().pressure(), rocmforge_memory::Pressure::Black);
    drop(small);
    drop(most);
    assert_eq!(backend.memory_statistics().pool.held(), Bytes::ZERO);
    assert_eq!(sim.allocation_stats(0).live_bytes, 0);
}

#[test]
fn a_pool_takes_no_more_than_the_budget_in_any_session() {
    for seed in 0..20 {
        let desktop = DesktopConfig {
            seed,
            preemption_failure: 0.1,
            ..DesktopConfig::with([Client::walk(Bytes(GIB), Bytes(12 * GIB))])
        };
        let sim = machine_with(desktop, Poison::Stale);
        let backend = pooled(&sim);
        let mut buffers = Vec::new();
        let mut state = seed;
        for step in 0..200 {
            pause(&sim, 50);
            shed(&backend, &mut buffers);
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let pick = state >> 33;
            if pick % 3 == 0 && !buffers.is_empty() {
                buffers.swap_remove(pick as usize % buffers.len());
            } else if let Ok(buffer) = held(&backend, (1 + pick % 900) * MIB) {
                buffers.push(buffer);
                let budget = backend.card().budget();
                assert!(budget.own <= budget.budget, "seed {seed}, step {step}: {budget:?}");
            }
        }
        let status = status(&sim);
        assert_eq!(
            (status.death, status.evicted_by_us),
            (None, Bytes(0)),
            "seed {seed}: {status:?}"
        );
        assert!(backend.memory_statistics().pool.hits > 0);
        drop((buffers, backend));
        assert_eq!(sim.allocation_stats(0).live, 0, "seed {seed}");
    }
}
