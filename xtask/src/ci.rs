//! `cargo xtask ci`: everything a change must pass, one step after another, with its time.

use crate::cargo;
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

/// One step: its name, the command line after `cargo`, and an environment variable to set for it.
struct Step {
    name: &'static str,
    cargo: &'static [&'static str],
    env: Option<(&'static str, &'static str)>,
    /// Whether the command is a plugin of cargo that need not be installed; without it the step is skipped.
    plugin: bool,
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        cargo: &["fmt", "--all", "--", "--check"],
        env: None,
        plugin: false,
    },
    Step {
        name: "tidy",
        cargo: &["xtask", "tidy"],
        env: None,
        plugin: false,
    },
    Step {
        name: "clippy",
        cargo: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--all-features",
            "--",
            "-D",
            "warnings",
        ],
        env: None,
        plugin: false,
    },
    Step {
        name: "docs",
        cargo: &["doc", "--workspace", "--no-deps", "--all-features"],
        env: Some(("RUSTDOCFLAGS", "-D warnings")),
        plugin: false,
    },
    Step {
        name: "tests",
        cargo: &["test", "--workspace", "--all-features", "--no-fail-fast"],
        env: None,
        plugin: false,
    },
    Step {
        name: "faults",
        cargo: &["xtask", "test-gpu", "--faults", "--reports", "target/test-gpu/faults"],
        env: None,
        plugin: false,
    },
    Step {
        name: "loom",
        cargo: &["xtask", "loom"],
        env: None,
        plugin: false,
    },
    Step {
        name: "opcodes",
        cargo: &["xtask", "opcodes", "--check", "--skip-if-absent"],
        env: None,
        plugin: false,
    },
    Step {
        name: "kernels",
        cargo: &["xtask", "kernels", "check"],
        env: None,
        plugin: false,
    },
    Step {
        name: "counters",
        cargo: &["xtask", "kernels", "counters"],
        env: None,
        plugin: false,
    },
    Step {
        name: "bindings",
        cargo: &["xtask", "bindings", "check", "--skip-if-absent"],
        env: None,
        plugin: false,
    },
    Step {
        name: "package",
        cargo: &[
            "package",
            "--workspace",
            "--no-verify",
            "--allow-dirty",
            "--quiet",
            "--exclude=xtask",
            "--exclude=rocmforge-build-kernels",
            "--exclude=rocmforge-documents",
            "--exclude=rocmforge-fetch-models",
            "--exclude=rocmforge-measure",
            "--exclude=rocmforge-test-support",
        ],
        env: None,
        plugin: false,
    },
    Step {
        name: "deny",
        cargo: &["deny", "--locked", "check"],
        env: None,
        plugin: true,
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
    cargo()
        .args([name, "--version"])
        .output()
        .is_ok_and(|output| output.status.success())
}

/// The steps with what each runs.
fn listing(steps: &[&Step]) -> String {
    let rows = steps.iter().map(|step| {
        let variable = step
            .env
            .map(|(name, value)| format!("{name}='{value}' "))
            .unwrap_or_default();
        format!("{:<10} {variable}cargo {}\n", step.name, step.cargo.join(" "))
    });
    rows.collect()
}

/// Runs the steps, prints a table of them, and fails if one failed.
pub(crate) fn run(args: Args) -> Outcome {
    let steps: Vec<&Step> = STEPS
        .iter()
        .filter(|step| args.only.as_ref().is_none_or(|only| step.name.contains(only.as_str())))
        .collect();
    if steps.is_empty() {
        return Err(CiError::NoSuchStep(args.only.unwrap_or_default()).into());
    }
    if args.list {
        say!("{}", listing(&steps).trim_end());
        return Ok(());
    }
    if steps.iter().any(|step| step.name == "tests") {
        ensure_for_tests(Model::value_variants());
    }
    let mut results = Vec::new();
    for step in &steps {
        say!("== {} ==", step.name);
        let start = Instant::now();
        if step.plugin && !installed(step.cargo[0]) {
            say!(
                "skipped: `cargo {0}` is not installed (`cargo install cargo-{0}`)",
                step.cargo[0]
            );
            results.push((step.name, Ended::Skipped, start.elapsed()));
            continue;
        }
        let mut command = cargo();
        command.args(step.cargo);
        if let Some((name, value)) = step.env {
            command.env(name, value);
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
    let failed: Vec<&str> = results
        .iter()
        .filter(|(_, ended, _)| *ended == Ended::Failed)
        .map(|(name, ..)| *name)
        .collect();
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
            text.contains("docs       RUSTDOCFLAGS='-D warnings' cargo doc "),
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
