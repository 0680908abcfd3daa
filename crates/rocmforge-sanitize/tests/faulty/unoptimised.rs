//! The same kernels at `-O0`, compiled when the test runs: variables in private memory, calls of small functions, flat addresses.

use super::source::{Source, sources};
use super::{assert_nothing, in_parallel, is_gfx1100_only, judge, plan_of};
use rocmforge_sanitize::run_seed;
use rocmforge_test_support::device_clang;
use std::path::Path;
use std::process::Command;

const COMPILER: &str = "clang++-19";
const SEEDS: std::ops::Range<u64> = 0..3;

fn compile(source: &Source, arch: &str, folder: &Path) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let object = folder.join(format!("{}-{arch}.co", source.name.replace('/', "-")));
    let mut command = device_clang(COMPILER, arch);
    command
        .args(["-std=c++20", "-O0", "-mcode-object-version=5", "-gline-tables-only"])
        .args(["-Ikernels/include", "-Icrates/rocmforge-sanitize/tests/kernels"])
        .arg(format!("crates/rocmforge-sanitize/tests/kernels/{}.hip", source.name))
        .arg("-o")
        .arg(&object)
        .current_dir(root);
    let output = command.output().expect("the compiler is installed");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{errors}");
    std::fs::read(object).expect("the compiler has written it")
}

#[test]
fn faults_are_found_in_code_that_is_not_optimised_and_twins_give_no_report() {
    if Command::new(COMPILER).arg("--version").output().is_err() {
        rocmforge_testkit::skip!("{COMPILER} is not installed");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let all = sources();
    let jobs: Vec<(&Source, &str)> = all
        .iter()
        .flat_map(|source| ["gfx1100", "gfx1201"].map(|arch| (source, arch)))
        .filter(|(source, arch)| *arch == "gfx1100" || !is_gfx1100_only(source))
        .filter(|(source, _)| !OTHERWISE.iter().any(|(name, _)| *name == source.name))
        .collect();
    let wrong = in_parallel(&jobs, |(source, arch)| {
        let object = compile(source, arch, folder.path());
        let mut wrong = Vec::new();
        for seed in SEEDS {
            let run = |launch_file: &str| {
                run_seed(&plan_of(&object, &source.name, launch_file), seed)
                    .unwrap_or_else(|error| panic!("{}: {error}", source.name))
            };
            let at = format!("{} {arch} seed {seed}", source.name);
            let faulty = judge(source, &run(&source.faulty));
            wrong.extend(faulty.into_iter().map(|problem| format!("{at}: {problem}")));
            let correct = run(&source.correct).reports;
            wrong.extend(correct.into_iter().map(|report| format!("{at}, corrected: {report}")));
            if !wrong.is_empty() {
                break;
            }
        }
        wrong
    });
    assert_nothing(&wrong, "kernels at -O0 are not reported as they should");
}

/// Kernels that are not the same thing at `-O0`, and why.
const OTHERWISE: &[(&str, &str)] = &[
    (
        "memcheck/constant_table",
        "the code asks for buffers of calls to the host, and so far behind the table one of them lies",
    ),
    (
        "memcheck/register_array",
        "the array is in private memory, where its end is another kind of fault",
    ),
    (
        "racecheck/compare_and_swap",
        "the value that a compare-and-swap expects goes through private memory, so that its load is taken for a plain one",
    ),
    ("racecheck/flag_in_lds", "the same of the value that a loop waits for"),
    (
        "racecheck/zeroed_too_late",
        "its atomics return values that nobody uses, so that one after the store orders the store for whoever comes later",
    ),
];
