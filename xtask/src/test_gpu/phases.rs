//! Everything in one call: the tests one at a time and compared with the simulated card, many processes at once, threads of one
//! process, the bench alone and beside PyTorch, planted faults, and the example.

use super::device::Device;
use super::discover::Test;
use super::{Door, Phase, TestGpuError, verdict};
use crate::Outcome;
use crate::bundle::Contents;
use crate::limited::{Ended, run_limited};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Processes that use the card at once.
const PROCESSES: usize = 8;
/// The test in which sixteen threads of a process use the card at once, and how often it runs.
const THREADS: &str = "sixteen_threads";
const REPEATS: u32 = 20;
/// Time for the example.
const ENCODE: Duration = Duration::from_secs(120);

/// What became of a phase.
#[derive(Debug, Serialize)]
struct Done {
    phase: &'static str,
    seconds: f64,
    /// What is wrong, if anything is.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Door {
    /// Runs all phases, whatever becomes of each, and reports under the folder of reports.
    pub(super) fn everything(&self) -> Outcome {
        let device = self.check(&self.args.device)?;
        let tests = self.tests()?;
        let threads: Vec<Test> = tests
            .iter()
            .filter(|test| test.name.contains(THREADS))
            .cloned()
            .collect();
        let mut done = Vec::new();
        let mut worst = None;
        let mut phase = |name: &'static str, run: &dyn Fn(&Path) -> Outcome| -> Outcome {
            if let Some(signal) = self.interrupt.signal() {
                return Err(TestGpuError::Interrupted(signal).into());
            }
            say!("\n== {name}");
            let directory = self.directory.join(name);
            std::fs::create_dir_all(&directory)?;
            let start = Instant::now();
            let outcome = run(&directory);
            done.push(Done {
                phase: name,
                seconds: start.elapsed().as_secs_f64(),
                error: outcome.as_ref().err().map(ToString::to_string),
            });
            if let Err(error) = outcome {
                tell!("{name}: {error}");
                worst.get_or_insert(error);
            }
            std::fs::write(
                self.directory.join("everything.json"),
                serde_json::to_vec_pretty(&done)?,
            )?;
            Ok(())
        };
        phase("serial", &|directory| match &self.args.against {
            Some(other) => {
                let other = self.check(other)?;
                self.compared(&device, &other, &tests, &Phase::new(directory))
            }
            None => self.one(&device, &tests, &Phase::new(directory)),
        })?;
        phase("processes", &|directory| {
            let jobs = Some(self.args.jobs.unwrap_or(PROCESSES));
            let repeat = self.args.rounds;
            self.one(
                &device,
                &tests,
                &Phase {
                    jobs,
                    repeat,
                    ..Phase::new(directory)
                },
            )
        })?;
        phase("threads", &|directory| {
            let repeat = REPEATS;
            self.one(
                &device,
                &threads,
                &Phase {
                    repeat,
                    ..Phase::new(directory)
                },
            )
        })?;
        phase("bench", &|directory| self.bench(&device.device, directory))?;
        phase("faults", &|directory| self.faults(&device, directory))?;
        phase("encode", &|directory| {
            self.encode(&device.device.to_string(), directory)
        })?;

        say!("\n{:<12} {:>8}  outcome", "phase", "seconds");
        for phase in &done {
            let outcome = phase.error.as_deref().unwrap_or("as it should be");
            say!("{:<12} {:>8.1}  {outcome}", phase.phase, phase.seconds);
        }
        if let Some(revision) = self.bundle.as_ref().and_then(|bundle| bundle.revision.as_ref()) {
            say!("tested: {revision}");
        }
        worst.map_or(Ok(()), Err)
    }

    fn one(&self, device: &super::check::Checked, tests: &[Test], phase: &Phase<'_>) -> Outcome {
        let summary = self.run_on(device, tests, phase)?;
        verdict::verdict(&summary, self.args.require_gpu, self.args.min_executed, phase.directory)
    }

    /// The bench of the bundle: every kernel, then ours beside PyTorch's.
    fn bench(&self, device: &Device, directory: &Path) -> Outcome {
        match self.bundle.as_ref().and_then(Contents::bench) {
            Some(binary) => crate::bench::everything(device, binary, directory, self.args.allow_display_gpu),
            None => {
                say!("left out: the bundle has no bench");
                Ok(())
            }
        }
    }

    /// The example on the device, under the card's lock; it compares with the CPU itself.
    fn encode(&self, name: &str, directory: &Path) -> Outcome {
        let Some(bundle) = &self.bundle else { return Ok(()) };
        let device = self.check(&self.args.device)?.device;
        let _lock = self.lock(&device)?;
        let (variable, models) = bundle.environment();
        let model: PathBuf = Path::new(&models).join("all-MiniLM-L6-v2");
        let mut command = Command::new(bundle.encode());
        command
            .args(["--device", name, "--model"])
            .arg(model)
            .env(variable, models);
        command.envs(device.environment());
        let (ended, text) = run_limited(&mut command, ENCODE)?;
        std::fs::write(directory.join("encode.txt"), &text)?;
        say!("{}", text.trim_end());
        match ended {
            Ended::With(status) if status.success() => Ok(()),
            Ended::With(status) => Err(format!("the example ended with {status}").into()),
            Ended::TimedOut => Err(format!("the example was not done after {} s", ENCODE.as_secs()).into()),
        }
    }
}
