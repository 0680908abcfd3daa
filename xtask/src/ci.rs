//! `cargo xtask ci`: everything a change must pass, one step after another, with its time.

use crate::{bindings::hip_root, cargo};
use clap::ValueEnum;
use rocmforge_fetch_models::{Model, ensure_for_tests};
use rocmforge_gpu_test::{Outcome, say};
use std::time::Instant;

/// `cargo xtask ci`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only the steps whose name contains this.
    #[arg(long)]
    only: Option<String>,
    /// Lists the steps and runs none.
    #[arg(long)]
    list: bool,
}

/// One step: its name, the words after `cargo`, and environment variables to set for it.
struct Step {
    name: &'static str,
    cargo: &'static str,
    env: &'static [(&'static str, &'static str)],
    needs: Needs,
}

/// What a step is skipped without.
#[derive(Clone, Copy)]
enum Needs {
    Nothing,
    /// The plugin of cargo of this name.
    Plugin(&'static str),
    /// HIP's headers and library.
    Hip,
}

/// hip-sys, which the feature `linked` of `rocmforge-hip-sys` brings, is built without ROCm where nothing is linked.
const UNLINKED: (&str, &str) = ("DOCS_RS", "1");

/// A step that needs nothing.
const fn step(name: &'static str, cargo: &'static str) -> Step {
    let (env, needs) = (&[], Needs::Nothing);
    Step {
        name,
        cargo,
        env,
        needs,
    }
}

const STEPS: &[Step] = &[
    step("fmt", "fmt --all -- --check"),
    step("tidy", "xtask tidy"),
    Step {
        env: &[UNLINKED],
        ..step(
            "clippy",
            "clippy --workspace --all-targets --all-features -- -D warnings",
        )
    },
    Step {
        env: &[("RUSTDOCFLAGS", "-D warnings"), UNLINKED],
        ..step("docs", "doc --workspace --no-deps --all-features")
    },
    step("tests", "test-all --no-fail-fast"),
    // The tests beside run its program, so that step builds it without its own tests.
    step("llm-bench", "test-all --example llm_bench"),
    step("hip-sys", "test --package rocmforge-hip-sys"),
    Step {
        needs: Needs::Hip,
        ..step("linked", "test --package rocmforge-hip-sys --features linked")
    },
    // The runtime over the C interface: its calls of HIP are under the sanitizer, those of the compiler are not.
    step("drop-in-build", "test --package rocmforge-runtime --test gpu --no-run"),
    Step {
        env: &[("ROCMFORGE_DEVICE", "hip:0")],
        ..step(
            "drop-in",
            "run --quiet --package rocmforge-sanitize -- run --error-exitcode 1 -- cargo test --package rocmforge-runtime --test gpu",
        )
    },
    step("faults", "xtask test-gpu --faults --reports target/test-gpu/faults"),
    step("loom", "xtask loom"),
    step("opcodes", "xtask opcodes --check --skip-if-absent"),
    step("kernels", "xtask kernels check"),
    step("bindings", "xtask bindings check --skip-if-absent"),
    step("publish", "xtask packages"),
    Step {
        needs: Needs::Plugin("deny"),
        ..step("deny", "deny --locked check")
    },
];

#[derive(Debug, thiserror::Error)]
enum CiError {
    #[error("{failed} of {run} steps failed: {names}")]
    StepsFailed { failed: usize, run: usize, names: String },
    #[error("no step's name contains {0:?}")]
    NoSuchStep(String),
}

/// End of a step.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Ok,
    Failed,
    Skipped,
}

/// Whether cargo has the plugin `name`.
fn installed(name: &str) -> bool {
    let version = cargo().args([name, "--version"]).output();
    version.is_ok_and(|output| output.status.success())
}

/// The steps with what each runs.
fn listing(steps: &[&Step]) -> String {
    let rows = steps.iter().map(|step| {
        let variables = step.env.iter();
        let variables: String = variables.map(|(name, value)| format!("{name}='{value}' ")).collect();
        format!("{:<10} {variables}cargo {}\n", step.name, step.cargo)
    });
    rows.collect()
}

/// Runs the steps, prints a table of them, and fails if one failed.
pub(crate) fn run(args: Args) -> Outcome {
    let wanted = |step: &&Step| args.only.as_ref().is_none_or(|only| step.name.contains(only));
    let steps: Vec<&Step> = STEPS.iter().filter(wanted).collect();
    if steps.is_empty() {
        return Err(CiError::NoSuchStep(args.only.unwrap_or_default()).into());
    }
    if args.list {
        say!("{}", listing(&steps).trim_end());
        return Ok(());
    }
    if steps.iter().any(|step| step.name == "tests") {
        // What is compiled first takes longer than all tests.
        let fetched = Model::value_variants()
            .iter()
            .filter(|model| model.row().made_by.is_none());
        ensure_for_tests(&fetched.copied().collect::<Vec<_>>());
    }
    let mut results = Vec::new();
    for step in &steps {
        say!("== {} ==", step.name);
        let start = Instant::now();
        let mut command = cargo();
        command.args(step.cargo.split(' ')).envs(step.env.iter().copied());
        let absent = match step.needs {
            Needs::Plugin(name) if !installed(name) => Some(format!(
                "`cargo {name}` is not installed (`cargo install cargo-{name}`)"
            )),
            Needs::Hip => match hip_root() {
                Ok(root) => {
                    command.env("HIP_PATH", root);
                    None
                }
                Err(error) => Some(error.to_string()),
            },
            Needs::Nothing | Needs::Plugin(_) => None,
        };
        if let Some(absent) = absent {
            say!("skipped: {absent}");
            results.push((step.name, Ended::Skipped, start.elapsed()));
            continue;
        }
        let ended = match command.status()?.success() {
            true => Ended::Ok,
            false => Ended::Failed,
        };
        results.push((step.name, ended, start.elapsed()));
    }
    say!("\n{:<20} {:>8} {:>9}", "step", "result", "seconds");
    for (name, ended, time) in &results {
        say!(
            "{name:<20} {:>8} {:>9.1}",
            match ended {
                Ended::Ok => "ok",
                Ended::Failed => "FAILED",
                Ended::Skipped => "skipped",
            },
            time.as_secs_f64()
        );
    }
    let failed = results.iter().filter(|(_, ended, _)| *ended == Ended::Failed);
    let failed: Vec<&str> = failed.map(|(name, ..)| *name).collect();
    if failed.is_empty() {
        return Ok(());
    }
    Err(CiError::StepsFailed {
        failed: failed.len(),
        run: results.len(),
        names: failed.join(", "),
    }
    .into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_steps_are_listed_with_what_they_run() {
        let all: Vec<&Step> = STEPS.iter().collect();
        let text = listing(&all);
        assert_eq!(text.lines().count(), STEPS.len());
        assert!(text.contains("fmt        cargo fmt --all -- --check\n"), "{text}");
        assert!(
            text.contains("docs       RUSTDOCFLAGS='-D warnings' DOCS_RS='1' cargo doc "),
            "{text}"
        );
    }

    #[test]
    fn a_plugin_that_is_not_there_is_no_failure() {
        assert!(installed("clippy"));
        assert!(!installed("no-such-plugin"));
    }

    #[test]
    fn listing_runs_nothing() {
        let args = |words: &[&str]| Cli::parse_from([&["ci"], words].concat()).args;
        assert!(!args(&[]).list);
        // Would run everything for minutes.
        run(args(&["--list"])).unwrap();
        run(args(&["--list", "--only", "fmt"])).unwrap();
        assert!(run(args(&["--list", "--only", "no such step"])).is_err());
    }
}
