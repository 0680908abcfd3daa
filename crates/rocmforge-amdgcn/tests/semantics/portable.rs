//! Hosts without AVX2 run other code for vector arithmetic than the rest.

/// The modules whose instructions have it.
const MODULES: [&str; 9] = [
    "compare::",
    "convert::",
    "division::steps_of_division",
    "float::",
    "fp8::",
    "integer::",
    "minima::",
    "packed::",
    "transcendental::",
];

/// Runs their tests again as such a host would.
#[test]
fn hosts_without_wide_vectors() {
    let output = std::process::Command::new(std::env::current_exe().expect("its path"))
        .args(MODULES)
        .env("ROCMFORGE_SIMD", "off")
        .output()
        .expect("a test binary can be run");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "without wide vectors:\n{text}");
    assert!(!text.contains(" 0 passed"), "{text}");
}
