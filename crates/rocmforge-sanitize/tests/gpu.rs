//! The corrected kernels of `tests/kernels` on the leased device: simulated in a plain `cargo test`, a card under the supervisor.
//! And a faulty one, for `cargo xtask compute-sanitizer`, which asks NVIDIA's tools about the same faults as ours.
#![allow(non_snake_case, non_upper_case_globals)]

#[allow(dead_code)] // the marks are for the simulator's tests
mod source;
mod gpu {
    pub(crate) mod device;
}

use gpu::device::{Device, Program};
use serial_test::serial;

/// Names the faulty kernels to run: `memcheck/read_past_end,memcheck/byte_past_end`.
const FAULTY: &str = "ROCMFORGE_FAULTY";

/// Sources whose fault is none on NVIDIA's cards, or cannot be shown there.
fn is_amd_only(name: &str) -> bool {
    let list = include_str!("kernels/amd-only.txt").lines();
    list.filter_map(|line| line.split(' ').next())
        .any(|first| first == name)
}

#[test]
#[serial]
fn corrected_kernels_run() {
    let gpu = rocmforge_testkit::gpu();
    let Some(device) = Device::of(&gpu) else {
        rocmforge_testkit::skip!("the faulty kernels are compiled for gfx1100 and NVIDIA's cards");
    };
    let mut ran = 0;
    for source in source::sources() {
        if device.is_nvidia() && is_amd_only(&source.name) {
            continue;
        }
        let program = Program::new(&device, &source.name, &source.correct);
        program
            .run(&device)
            .unwrap_or_else(|error| panic!("{}: {error}", source.name));
        ran += 1;
    }
    assert!(ran >= 60, "only {ran} kernels ran");
}

/// Says which kernel begins and which has ended. The rest is not run when one has stopped the card, or does not end.
#[test]
#[ignore = "stops the card: cargo xtask compute-sanitizer runs it"]
#[serial]
#[allow(clippy::print_stdout)] // for who reads compute-sanitizer's output
fn faulty_kernels() {
    let Ok(names) = std::env::var(FAULTY) else {
        panic!("set {FAULTY} to the names of faulty kernels");
    };
    let sources = source::sources();
    let gpu = rocmforge_testkit::gpu();
    let device = Device::of(&gpu).expect("a card that the faulty kernels are compiled for");
    for name in names.split(',') {
        let source = sources.iter().find(|source| source.name == name);
        let source = source.unwrap_or_else(|| panic!("{FAULTY}: there is no {name}"));
        assert!(
            !device.is_nvidia() || !is_amd_only(name),
            "{name} is for AMD's cards only"
        );
        println!("\nFAULTY {name} begins");
        match Program::new(&device, name, &source.faulty).run(&device) {
            Ok(()) => println!("\nFAULTY {name} ends: HIP says nothing"),
            Err(error) => println!("\nFAULTY {name} ends: {error}"),
        }
        if !device.is_alive() {
            break;
        }
    }
    if let Err(faults) = gpu.finish() {
        println!("{faults}");
    }
}
