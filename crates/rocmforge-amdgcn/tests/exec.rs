//! Whole kernels, compiled from `tests/fixtures`, against plain Rust: on a gfx1100, all of them again on a gfx1201, and on both what does
//! not count on 32 lanes again in waves of 64.

mod card;
mod exec {
    mod arithmetic;
    mod counters;
    mod faults;
    mod generic;
    mod gfx1201;
    mod gws;
    mod lanes;
    mod matrices;
    mod memory;
    mod races;
    mod refusals;
    mod registers;
    mod threads;
    mod triton;
    mod wave64;
}

/// Modules and tests that are the same on both cards, or take long.
const ONE_CARD: [&str; 10] = [
    "second_card",
    "waves_of_64",
    "gfx1201::",
    "matrices::",
    "a_flag_hands_data_over",
    "registers::",
    "threads::",
    "counters::",
    "generic::",
    "gws::",
];
/// Tests whose kernels count on waves of 32 lanes: they exchange lanes, or their work-items 0 to 31 and 32 to 63 race or take a lock.
const OF_32_LANES: [&str; 9] = [
    "wave64::",
    "refusals::",
    "lanes_exchange_values",
    "matrix_multiply_accumulate",
    "a_barrier_that_not_everybody_reaches",
    "a_lock_orders_what_it_guards",
    "a_release_covers_stores_of_other_waves",
    "a_second_load_by_a_wave",
    "neighbours_in_one_dword",
];

/// Runs this binary again for another card or other waves, without some tests.
fn again(arch: &str, lanes: &str, without: &[&str]) {
    let skip = without.iter().chain(&ONE_CARD).chain(&["triton::"]);
    let output = std::process::Command::new(std::env::current_exe().expect("its path"))
        .args(skip.flat_map(|name| ["--skip", name]))
        .env(card::ARCH_VARIABLE, arch)
        .env(card::LANES_VARIABLE, lanes)
        .output()
        .expect("a test binary can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "on a {arch} with {lanes} lanes:\n{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
}

fn is_first() -> bool {
    std::env::var_os(card::ARCH_VARIABLE).is_none()
}

#[test]
fn second_card() {
    if is_first() {
        again("gfx1201", "32", &[]);
    }
}

#[test]
fn waves_of_64_on_gfx1100() {
    if is_first() {
        again("gfx1100", "64", &OF_32_LANES);
    }
}

#[test]
fn waves_of_64_on_gfx1201() {
    if is_first() {
        again("gfx1201", "64", &OF_32_LANES);
    }
}
