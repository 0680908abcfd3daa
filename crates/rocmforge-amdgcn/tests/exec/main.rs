//! Whole kernels, compiled from `tests/fixtures`, against plain Rust: on a gfx1100, and all of them again on a gfx1201.

mod arithmetic;
mod card;
mod counters;
mod faults;
mod generic;
mod gfx1201;
mod lanes;
mod matrices;
mod memory;
mod races;
mod refusals;
mod registers;
mod threads;
mod triton;

/// Runs this binary again for the other instruction set, but for what is the same there and takes long.
#[test]
fn second_card() {
    if std::env::var_os(card::ARCH_VARIABLE).is_some() {
        return;
    }
    let output = std::process::Command::new(std::env::current_exe().expect("its path"))
        .args([
            "--skip",
            "second_card",
            "--skip",
            "gfx1201::",
            "--skip",
            "matrices::",
            "--skip",
            "a_flag_hands_data_over",
            "--skip",
            "registers::",
            "--skip",
            "threads::",
            "--skip",
            "counters::",
            "--skip",
            "generic::",
            "--skip",
            "triton::",
        ])
        .env(card::ARCH_VARIABLE, "gfx1201")
        .output()
        .expect("a test binary can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "on a gfx1201:\n{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
}
