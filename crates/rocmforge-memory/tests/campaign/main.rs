//! Many sessions on one card: a program that asks, gives back and follows the pressure while a desktop walks about beside it.
//!
//! The card is one with memory of its own, or a GPU that shares the memory of a machine with 128 or 16 GiB.
//!
//! Every decision is compared with a reference written from the definition of the budget ([`reference`]). Counted are grants
//! beyond the budget, refusals of requests that fitted, and times for which the desktop's headroom was not there. By
//! default 10 seeds of 100 000 steps; `ROCMFORGE_BUDGET_SEEDS` and `ROCMFORGE_BUDGET_STEPS` say otherwise, `_FIRST` which
//! seed comes first (`cargo xtask budget` runs 1,000 of 100,000).
#![allow(clippy::print_stdout)] // what a long run has done so far, and what came of it

mod reference;
mod session;
mod threads;
mod world;

use std::time::Instant;

use session::{Session, Tally};
use world::Machine;

fn number(name: &str, default: u64) -> u64 {
    let given = std::env::var(format!("ROCMFORGE_BUDGET_{name}")).ok();
    given.map_or(default, |text| text.parse().expect("a number"))
}

/// Sessions beside walking desktops: nothing that they count as broken, and enough of what makes them worth something.
fn sessions(machine: Machine) {
    let (seeds, steps, first) = (number("SEEDS", 10), number("STEPS", 100_000), number("FIRST", 0));
    let (start, mut tally) = (Instant::now(), Tally::default());
    for seed in first..first + seeds {
        tally.add(&Session::new(machine, seed).run(steps));
        if seeds >= 1000 && (seed + 1) % 50 == 0 {
            println!(
                "{machine:?}: {} seeds, {:.0?}: {tally:?}",
                seed + 1 - first,
                start.elapsed()
            );
        }
    }
    println!(
        "{machine:?}: {seeds} seeds of {steps} steps in {:.1?}: {tally:?}",
        start.elapsed()
    );
    assert_eq!(
        (tally.over_budget, tally.refused_though_it_fitted, tally.not_cured),
        (0, 0, 0),
        "{machine:?}: {tally:?}"
    );
    // The sessions must be worth something; a single one replays as it is.
    if seeds >= 10 {
        let decided = tally.granted.min(tally.refused);
        assert!(decided > seeds * steps / 50, "{machine:?}: {tally:?}");
        assert!(
            tally.violations > 0 && tally.given_way > seeds,
            "{machine:?}: {tally:?}"
        );
    }
}

#[test]
fn a_desktop_that_walks_is_given_way_to_and_nothing_that_fits_is_refused() {
    sessions(Machine::Card);
}

#[test]
fn a_system_that_shares_128_gib_with_its_gpu_is_given_way_to() {
    sessions(Machine::Apu { gib: 128 });
}

#[test]
fn a_system_that_shares_16_gib_with_its_gpu_is_given_way_to() {
    sessions(Machine::Apu { gib: 16 });
}
