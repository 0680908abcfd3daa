//! `kernels test`, `kernels counters` and `kernels roofline`: tests of `rocmforge-kernels`.

use crate::cargo;
use rocmforge_gpu_test::{Outcome, say};

/// Counts what kernels ask of a card, and the bytes of those that are bound by memory, against the committed bounds. Of all kernels, or those of these
/// names or families.
pub(crate) fn check(names: &[String], bless: bool) -> Outcome {
    let names = names.join(" ");
    let mut env = Vec::new();
    if bless {
        env.push(("ROCMFORGE_COUNTERS_BLESS", "1"));
    }
    if !names.is_empty() {
        env.push(("ROCMFORGE_COUNTERS_KERNELS", names.as_str()));
    }
    count(
        &[
            "every_kernel_is_within_its_bounds",
            "memory_bound_kernels_move_few_bytes_beyond_the_fewest",
            "the_table_has_a_row_of_every_kernel",
        ],
        &env,
        "a kernel is outside its bounds, or the table of kernels is not up to date; which one is said above",
    )
}

/// Compares the kernels of these launchers, or all, with their definitions on both simulated cards.
pub(crate) fn test(launchers: &[String]) -> Outcome {
    let launchers = launchers.join(" ");
    for card in ["sim:gfx1100", "sim:gfx1201"] {
        let mut cargo = cargo();
        cargo.args([
            "test",
            "--quiet",
            "--package",
            "rocmforge-kernels",
            "--test",
            "gpu",
            "--",
            "declared",
        ]);
        cargo.env("ROCMFORGE_DEVICE", card);
        if !launchers.is_empty() {
            cargo.env("ROCMFORGE_DECLARED", &launchers);
        }
        say!("on {card}");
        if !cargo.status()?.success() {
            return Err("a kernel is not as it is declared; it is named above".into());
        }
    }
    Ok(())
}

/// Prints which limit of a card each kernel meets first.
pub(crate) fn roofline() -> Outcome {
    count(&["the_roof_of_every_kernel"], &[], "the kernels could not be counted")
}

/// Runs tests of rocmforge-kernels that count and print.
fn count(tests: &[&str], env: &[(&str, &str)], failed: &'static str) -> Outcome {
    let mut cargo = cargo();
    // Of the one crate: the features of the whole workspace would have all of it compiled.
    cargo.args(["test", "--package", "rocmforge-kernels", "--test", "counters", "--"]);
    // One after the other: both print a table.
    cargo.args(["--nocapture", "--test-threads", "1"]).args(tests);
    cargo.envs(env.iter().copied());
    match cargo.status()?.success() {
        true => Ok(()),
        false => Err(failed.into()),
    }
}
