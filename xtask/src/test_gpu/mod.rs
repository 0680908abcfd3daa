//! `cargo xtask test-gpu`: the one door through which a GPU is touched.
//!
//! Builds the GPU tests, takes the card's lock, runs each test in a process of its own under a deadline, and says what
//! happened: a table here, JUnit and JSON under `target/test-gpu/`.

mod device;
mod discover;
mod report;
mod supervise;

use crate::{Outcome, workspace_root};
use device::Device;
use discover::Test;
use indicatif::{ProgressBar, ProgressStyle};
use report::{Summary, TestResult};
use rocmforge_memory::sysfs::Sysfs;
use rocmforge_testkit::lock::CardLock;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

/// `cargo xtask test-gpu`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Where to run: `sim` (a simulated gfx1100), or `hip:<PCI address or index>` for a real card.
    #[arg(long, default_value = "sim")]
    device: Device,
    /// Runs only the tests whose `crate::test` name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Test processes at a time. Default: the number of cores in simulation; always 1 on a real card.
    #[arg(long)]
    jobs: Option<usize>,
    /// Counts a skipped test as failed.
    #[arg(long)]
    require_gpu: bool,
    /// Runs every test this many times.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Seconds a test may take.
    #[arg(long, default_value_t = 300)]
    deadline: u64,
    /// Seconds to wait for somebody else to give up the card.
    #[arg(long, default_value_t = 600)]
    patience: u64,
    /// Allows a real card that drives a display.
    #[arg(long)]
    allow_display_gpu: bool,
}

#[derive(Debug, thiserror::Error)]
enum TestGpuError {
    #[error("no GPU test matches {filter:?}; there are {tests} (see `cargo xtask test-gpu` without --filter)")]
    NothingMatches { filter: String, tests: usize },
    #[error("{failed} of {run} test runs failed; logs are under {directory}")]
    Failed {
        failed: usize,
        run: usize,
        directory: String,
    },
    #[error("--require-gpu: {skipped} of {run} test runs were skipped")]
    Skipped { skipped: usize, run: usize },
}

/// Runs the GPU tests.
pub(crate) fn run(mut args: Args) -> Outcome {
    let directory = workspace_root().join("target/test-gpu");
    std::fs::create_dir_all(&directory)?;
    args.device = args.device.resolve(&Sysfs::host().machine(), args.allow_display_gpu)?;

    eprintln!("building the GPU tests …");
    let binaries = discover::build()?;
    let all: Vec<Test> = discover::list(&binaries)?;
    if let Err(error) = crate::model::ensure_minilm() {
        eprintln!("the encoder model is not here, its tests will be skipped: {error}");
    }
    let tests: Vec<Test> = all
        .iter()
        .filter(|test| {
            args.filter
                .as_ref()
                .is_none_or(|filter| test.id().contains(filter.as_str()))
        })
        .cloned()
        .collect();
    if tests.is_empty() {
        return Err(TestGpuError::NothingMatches {
            filter: args.filter.unwrap_or_default(),
            tests: all.len(),
        }
        .into());
    }

    let lock = CardLock::acquire(
        &args.device.lock_directory(),
        &args.device.card_key(),
        Duration::from_secs(args.patience),
        |holder| {
            let who = holder.map_or_else(|| "another process".to_owned(), ToString::to_string);
            eprintln!("waiting for {}: in use by {who}", args.device);
        },
    )?;
    let start = Instant::now();
    let results = run_all(&args, &tests, &lock, &directory)?;
    let summary = Summary::new(&args.device.to_string(), results, start.elapsed());
    summary.write_json(&directory.join("report.json"))?;
    summary.write_junit(&directory.join("junit.xml"))?;
    print!("{summary}");
    verdict(&summary, args.require_gpu, &directory)
}

fn verdict(summary: &Summary, require_gpu: bool, directory: &Path) -> Outcome {
    let (failed, skipped, run) = (summary.failed(), summary.skipped(), summary.results.len());
    if failed > 0 {
        return Err(TestGpuError::Failed {
            failed,
            run,
            directory: directory.join("logs").display().to_string(),
        }
        .into());
    }
    if require_gpu && skipped > 0 {
        return Err(TestGpuError::Skipped { skipped, run }.into());
    }
    Ok(())
}

/// Runs every test `repeat` times, `jobs` at a time, with a progress bar.
fn run_all(args: &Args, tests: &[Test], lock: &CardLock, directory: &Path) -> Result<Vec<TestResult>, std::io::Error> {
    let jobs = args.device.jobs(args.jobs);
    let total = tests.len() * args.repeat as usize;
    let bar = ProgressBar::new(total as u64).with_style(
        ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}").expect("a constant template"),
    );
    let queue: Mutex<VecDeque<(u32, &Test)>> = Mutex::new(
        (0..args.repeat)
            .flat_map(|round| tests.iter().map(move |test| (round, test)))
            .collect(),
    );
    let logs = directory.join("logs");
    if logs.exists() {
        std::fs::remove_dir_all(&logs)?;
    }
    std::fs::create_dir_all(&logs)?;
    let (send, receive) = mpsc::channel();
    let supervision = supervise::Supervision {
        deadline: Duration::from_secs(args.deadline),
        grace: supervise::Grace::default(),
        environment: args.device.environment(),
    };
    std::thread::scope(|scope| {
        for _ in 0..jobs {
            let (send, queue, logs, supervision) = (send.clone(), &queue, &logs, &supervision);
            scope.spawn(move || {
                while let Some((round, test)) = { queue.lock().expect("no worker panics").pop_front() } {
                    let _ = send.send(supervision.run(test, round, lock, logs));
                }
            });
        }
        drop(send);
        let mut results: Vec<TestResult> = Vec::with_capacity(total);
        for result in receive {
            let result = result?;
            if result.failed() {
                bar.println(format!("FAILED {} ({})", result.id, result.verdict));
            }
            bar.inc(1);
            bar.set_message(result.id.clone());
            results.push(result);
        }
        bar.finish_and_clear();
        results.sort_by(|a, b| (&a.id, a.round).cmp(&(&b.id, b.round)));
        Ok(results)
    })
}
