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
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        cargo: &["fmt", "--all", "--", "--check"],
        env: None,
    },
    Step {
        name: "tidy",
        cargo: &["xtask", "tidy"],
        env: None,
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
    },
    Step {
        name: "docs",
        cargo: &["doc", "--workspace", "--no-deps", "--all-features"],
        env: Some(("RUSTDOCFLAGS", "-D warnings")),
    },
    Step {
        name: "tests",
        cargo: &["test", "--workspace", "--all-features", "--no-fail-fast"],
        env: None,
    },
    Step {
        name: "faults",
        cargo: &["xtask", "test-gpu", "--faults", "--reports", "target/test-gpu/faults"],
        env: None,
    },
    Step {
        name: "loom",
        cargo: &["xtask", "loom"],
        env: None,
    },
    Step {
        name: "opcodes",
        cargo: &["xtask", "opcodes", "--check", "--skip-if-absent"],
        env: None,
    },
    Step {
        name: "kernels",
        cargo: &["xtask", "kernels", "check"],
        env: None,
    },
    Step {
        name: "counters",
        cargo: &["xtask", "kernels", "counters"],
        env: None,
    },
    Step {
        name: "bindings",
        cargo: &["xtask", "bindings", "check", "--skip-if-absent"],
        env: None,
    },
];

#[derive(Debug, thiserror::Error)]
enum CiError {
    #[error("{failed} of {run} steps failed: {names}")]
    StepsFailed { failed: usize, run: usize, names: String },
    #[error("no step's name contains {0:?}")]
    NoSuchStep(String),
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
        let mut command = cargo();
        command.args(step.cargo);
        if let Some((name, value)) = step.env {
            command.env(name, value);
        }
        let passed = command.status()?.success();
        results.push((step.name, passed, start.elapsed()));
    }
    say!("\n{:<20} {:>8} {:>9}", "step", "result", "seconds");
    for (name, passed, time) in &results {
        say!(
            "{name:<20} {:>8} {:>9.1}",
            if *passed { "ok" } else { "FAILED" },
            time.as_secs_f64()
        );
    }
    let failed: Vec<&str> = results
        .iter()
        .filter(|(_, passed, _)| !passed)
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
    fn listing_runs_nothing() {
        let args = |words: &[&str]| Cli::parse_from([&["ci"], words].concat()).args;
        assert!(!args(&[]).list);
        // Would run everything for minutes.
        run(args(&["--list"])).unwrap();
        run(args(&["--list", "--only", "fmt"])).unwrap();
        assert!(run(args(&["--list", "--only", "no such step"])).is_err());
    }
}
