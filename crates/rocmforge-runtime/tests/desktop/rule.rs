//! The same programs, once by the old rule and once under the budget.

use super::*;
use std::ptr::null_mut;

/// A game starts beside a browser while the program runs; the hardware sometimes does not answer.
fn evening(seed: u64) -> Arc<SimHost> {
    let desktop = DesktopConfig {
        seed,
        preemption_failure: 0.1,
        ..DesktopConfig::with([Client::browser(), Client::game(Duration::from_secs(5))])
    };
    machine(desktop)
}

/// One minute of a program that wants 70 % of what is free at every turn, in pieces of at most half a GiB.
const TURNS: u64 = 600;
const PIECE: u64 = 512 * MIB;

/// Asks HIP and takes: nobody else is asked.
fn by_the_old_rule(seed: u64) -> (u64, DesktopStatus) {
    let sim = evening(seed);
    let mut taken = 0;
    for turn in 0..TURNS {
        pause(&sim, 100);
        let Some(free) = hip_free(&sim) else { break };
        let mut wanted = free / 10 * 7;
        while turn % 5 == 0 && wanted >= MIB {
            let piece = wanted.min(PIECE);
            let mut ptr = null_mut();
            // SAFETY: `ptr` is a live out-pointer for the call.
            if unsafe { sim.hipMalloc(&raw mut ptr, piece as usize) } != hipSuccess {
                break;
            }
            taken += piece;
            wanted -= piece;
        }
    }
    (taken, status(&sim))
}

/// Asks for the same, and takes the refusals.
fn under_the_budget(seed: u64) -> (u64, DesktopStatus) {
    let sim = evening(seed);
    let backend = open(&sim);
    let (mut buffers, mut most) = (Vec::new(), 0);
    for turn in 0..TURNS {
        pause(&sim, 100);
        let free = hip_free(&sim).expect("the device is there");
        let mut wanted = free / 10 * 7;
        while turn % 5 == 0 && wanted >= MIB {
            let piece = wanted.min(PIECE);
            match held(&backend, piece) {
                Ok(buffer) => buffers.push(buffer),
                Err(error) => {
                    assert!(matches!(error, HipError::OutOfBudget(_)), "{error}");
                    break;
                }
            }
            wanted -= piece;
        }
        shed(&backend, &mut buffers);
        most = most.max(backend.card().ledger().live_bytes().0);
    }
    drop((buffers, backend));
    assert!(sim.reports().is_empty());
    (most, status(&sim))
}

#[test]
fn seventy_percent_of_what_is_free_each_time_kills_the_desktop_and_the_budget_does_not() {
    for seed in 0..20 {
        let (taken, status) = by_the_old_rule(seed);
        assert!(
            taken > 19 * GIB,
            "seed {seed}: all but nothing of the card was taken, {taken}"
        );
        assert!(
            !status.alive() && status.frames_missed > 0 && status.evicted_by_us > Bytes(0),
            "seed {seed}: {status:?}"
        );

        let (most, status) = under_the_budget(seed);
        assert!(most > 8 * GIB, "seed {seed}: the program had its share, {most}");
        assert!(status.alive(), "seed {seed}: {status:?}");
        assert_eq!(
            (
                status.frames_missed,
                status.evicted_by_us,
                status.queue_stops,
                status.resets
            ),
            (0, Bytes(0), 0, 0),
            "seed {seed}: {status:?}"
        );
        assert!(
            status.longest_below_floor <= Duration::from_millis(250),
            "seed {seed}: {status:?}"
        );
    }
}
