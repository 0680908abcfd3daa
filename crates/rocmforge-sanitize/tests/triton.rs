//! Triton's own kernels (`examples/triton/kernels.py`), compiled and launched by Triton itself on both simulated cards.
//!
//! It needs a Python with the packages `triton` and `numpy`: the one that `ROCMFORGE_TRITON_PYTHON` names, else `python3`.

use std::path::Path;
use std::process::Command;

/// What the script has at least.
const LEAST: u32 = 26;

fn python() -> Option<String> {
    let python = std::env::var("ROCMFORGE_TRITON_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python).args(["-c", "import triton, numpy"]).output();
    found.is_ok_and(|found| found.status.success()).then_some(python)
}

#[test]
fn every_kernel_is_right_and_without_a_finding() {
    let Some(python) = python() else {
        rocmforge_testkit::skip!("no Python with triton and numpy (ROCMFORGE_TRITON_PYTHON may name one)");
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/triton/kernels.py");
    for card in ["gfx1100", "gfx1201"] {
        let cache = tempfile::tempdir().expect("a folder");
        let mut command = Command::new(env!("CARGO_BIN_EXE_rocmforge-sanitize"));
        command
            .args(["run", "--card", card, "--", &python])
            .arg(&script)
            .env("TRITON_CACHE_DIR", cache.path());
        let ran = command.output().expect("the program under test is built");
        let out = String::from_utf8_lossy(&ran.stdout);
        let found = String::from_utf8_lossy(&ran.stderr);
        let said = format!("{card}: {}\n{out}\n{found}", ran.status);
        assert!(ran.status.success(), "{said}");
        let last = out.lines().last().unwrap_or_default();
        let right = last
            .strip_prefix(&format!("{card}: "))
            .and_then(|last| last.strip_suffix(" right"));
        let (right, all) = right.and_then(|right| right.split_once(" of ")).expect(&said);
        assert_eq!(right, all, "{said}");
        assert!(all.parse::<u32>().is_ok_and(|all| all >= LEAST), "{said}");
        // Processes that Triton starts have summaries of their own.
        let summaries: Vec<_> = found.lines().filter(|line| line.contains(" findings (")).collect();
        let none = summaries.iter().all(|line| line.starts_with("========= 0 findings"));
        assert!(
            none && summaries.iter().any(|line| !line.contains(" 0 launches")),
            "{said}"
        );
    }
}
