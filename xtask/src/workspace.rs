//! This workspace, as the supervisor of GPU tests sees it: its models, its data, its programs.

use crate::workspace_root;
use rocmforge_fetch_models::{self as model, Model, WEIGHTS};
use rocmforge_gpu_test::bundle::Staging;
use rocmforge_gpu_test::limited::{Ended, run_limited};
use rocmforge_gpu_test::workspace::{PhaseContext, Workspace};
use rocmforge_gpu_test::{Outcome, say};
use rocmforge_measure::bench;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The example and the bench in a bundle, and the encoder's model.
const ENCODE: &str = "encode";
const BENCH: &str = "bench";
const MINILM: &str = "models/all-MiniLM-L6-v2";
/// Time for the example.
const ENCODING: Duration = Duration::from_secs(120);
/// Which crate's GPU tests read which model.
const MODELS: [(&str, Model); 2] = [("rocmforge::", Model::Minilm), ("rocmforge-models::", Model::Smollm2)];

/// The workspace that xtask belongs to.
pub(crate) struct OurWorkspace;

impl Workspace for OurWorkspace {
    fn root(&self) -> &Path {
        workspace_root()
    }

    fn command(&self) -> &'static str {
        "cargo xtask test-gpu"
    }

    fn bundled_command(&self) -> &'static str {
        "xtask"
    }

    /// As `cargo test-all` has it (`.cargo/config.toml`), so that what one builds the other uses.
    fn selection(&self) -> &'static [&'static str] {
        &["--workspace", "--exclude", "rocmforge-hip-sys", "--all-features"]
    }

    fn can_make_parts(&self) -> bool {
        model::ensure_for_tests(&[Model::Smollm2]);
        model::is_fetched(Model::Smollm2)
    }

    fn prepare(&self, tests: &[String]) {
        let wanted = MODELS
            .iter()
            .filter(|(package, _)| tests.iter().any(|test| test.starts_with(package)));
        model::ensure_for_tests(&wanted.map(|(_, model)| *model).collect::<Vec<_>>());
    }

    fn test_data(&self) -> &[(&str, &[&str])] {
        &[(
            "rocmforge-models",
            &[
                "tests/reference/tiny",
                "tests/reference/tiny.json",
                "tests/reference/smollm2.json",
                "tests/reference/smollm2-logits.f32",
            ],
        )]
    }

    fn add_to_bundle(&self, staging: &mut Staging<'_>) -> Outcome {
        let example = [&["build"], self.selection(), &["--example", ENCODE]].concat();
        staging.add_program(&example, "example", ENCODE, ENCODE)?;
        if staging.options().benches {
            let bench = [&["bench"], self.selection(), &["--no-run", "--bench", "gpu"]].concat();
            staging.add_program(&bench, "bench", "gpu", BENCH)?;
        }
        say!("storing the model's weights as f16 …");
        let folder = staging.place(MINILM);
        model::copy_as_half(&model::ensure(Model::Minilm)?, &folder)?;
        // The binaries leave no room for weights.
        let weights = folder.join(WEIGHTS);
        staging.add_in_parts(&weights, format!("{MINILM}/{WEIGHTS}"))?;
        std::fs::remove_file(&weights)?;
        if staging.options().parts {
            let (file, path) = model::ensure_file(Model::Smollm2)?;
            staging.add_in_parts(&file, format!("models/{path}"))?;
        }
        Ok(())
    }

    fn phases(&self) -> &'static [&'static str] {
        &[BENCH, ENCODE]
    }

    fn run_phase(&self, name: &str, run: &PhaseContext<'_>) -> Outcome {
        match name {
            BENCH => match run.bundle.file(BENCH) {
                Some(binary) => bench::everything(run.device, binary, run.directory, run.allow_display_gpu),
                None => {
                    say!("left out: the bundle has no bench");
                    Ok(())
                }
            },
            _ => encode(run),
        }
    }
}

/// Runs the example on the device, under the card's lock; it compares with the CPU itself.
fn encode(run: &PhaseContext<'_>) -> Outcome {
    let program = run.bundle.file(ENCODE).ok_or("the bundle has no example `encode`")?;
    let model = run.bundle.file(MINILM);
    let model = model.ok_or("the bundle has no model of the example")?;
    let _lock = bench::lock(run.device, run.directory, bench::PATIENCE)?;
    let (variable, models) = run.bundle.environment();
    let mut command = Command::new(program);
    command
        .args(["--device", &run.device.to_string(), "--model"])
        .arg(model)
        .env(variable, models)
        .envs(run.device.environment());
    let (ended, text) = run_limited(&mut command, ENCODING)?;
    std::fs::write(run.directory.join("encode.txt"), &text)?;
    say!("{}", text.trim_end());
    match ended {
        Ended::With(status) if status.success() => Ok(()),
        Ended::With(status) => Err(format!("the example ended with {status}").into()),
        Ended::TimedOut => Err(format!("the example was not done after {} s", ENCODING.as_secs()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_all_is_of_the_same_packages() {
        let aliases = std::fs::read_to_string(workspace_root().join(".cargo/config.toml")).unwrap();
        assert!(aliases.contains(&OurWorkspace.selection().join(" ")), "{aliases}");
    }
}
