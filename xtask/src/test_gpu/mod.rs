//! `cargo xtask test-gpu`: the one door through which a GPU is touched.
//!
//! Builds the GPU tests, takes the card's lock, runs each test in a process of its own under a deadline, and says what
//! happened: a table here, JUnit and JSON under `target/test-gpu/`.

mod against;
mod device;
mod discover;
mod report;
mod supervise;

use crate::{Outcome, workspace_root};
use against::{Comparison, Run};
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
    /// Where to run: `sim` (a simulated gfx1100), `sim:gfx1201`, or `hip:<PCI address or index>` for a real card.
    #[arg(long, default_value = "sim")]
    device: Device,
    /// Runs the same tests on this device too, and compares every buffer that they compare: bit for bit, or within the
    /// tolerance of the test.
    #[arg(long)]
    against: Option<Device>,
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
    #[error("{different} of {buffers} buffers are different on {device} and {against}; see {report}")]
    Different {
        different: usize,
        buffers: usize,
        device: String,
        against: String,
        report: String,
    },
    #[error(
        "--against compared no buffer: {not_compared} test runs did not pass on both devices, the others compare none"
    )]
    NothingCompared { not_compared: usize },
}

/// Runs the GPU tests.
pub(crate) fn run(mut args: Args) -> Outcome {
    let directory = workspace_root().join("target/test-gpu");
    std::fs::create_dir_all(&directory)?;
    let machine = Sysfs::host().machine();
    args.device = args.device.resolve(&machine, args.allow_display_gpu)?;
    if let Some(other) = args.against.take() {
        args.against = Some(other.resolve(&machine, args.allow_display_gpu)?);
    }

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

    let results = run_on(&args, &args.device, &tests, &directory)?;
    let Some(other) = &args.against else {
        return verdict(&results, args.require_gpu, &directory);
    };
    let beside = directory.join("against");
    std::fs::create_dir_all(&beside)?;
    let others = run_on(&args, other, &tests, &beside)?;
    let comparison = Comparison::new(&Run::of(&results, &directory), &Run::of(&others, &beside))?;
    let report = directory.join("against.json");
    comparison.write_json(&report)?;
    print!("{comparison}");
    verdict(&results, args.require_gpu, &directory)?;
    verdict(&others, args.require_gpu, &beside)?;
    agreement(&comparison, &results.device, &others.device, &report)
}

impl<'a> Run<'a> {
    fn of(summary: &'a Summary, directory: &Path) -> Self {
        Self {
            device: summary.device.clone(),
            results: &summary.results,
            buffers: directory.join(BUFFERS),
        }
    }
}

/// The folder of recorded buffers.
const BUFFERS: &str = "buffers";

/// Runs the tests on one device and reports them under `directory`.
fn run_on(
    args: &Args,
    device: &Device,
    tests: &[Test],
    directory: &Path,
) -> Result<Summary, Box<dyn std::error::Error>> {
    let lock = CardLock::acquire(
        &device.lock_directory(),
        &device.card_key(),
        Duration::from_secs(args.patience),
        |holder| {
            let who = holder.map_or_else(|| "another process".to_owned(), ToString::to_string);
            eprintln!("waiting for {device}: in use by {who}");
        },
    )?;
    let start = Instant::now();
    let results = run_all(args, device, tests, &lock, directory)?;
    let summary = Summary::new(&device.to_string(), results, start.elapsed());
    summary.write_json(&directory.join("report.json"))?;
    summary.write_junit(&directory.join("junit.xml"))?;
    print!("{summary}");
    Ok(summary)
}

/// Fails if the two devices do not agree, or if nothing was there to agree on.
fn agreement(comparison: &Comparison, device: &str, against: &str, report: &Path) -> Outcome {
    let total = comparison.total();
    if total.different > 0 {
        return Err(TestGpuError::Different {
            different: total.different,
            buffers: total.buffers,
            device: device.to_owned(),
            against: against.to_owned(),
            report: report.display().to_string(),
        }
        .into());
    }
    if total.buffers == 0 {
        return Err(TestGpuError::NothingCompared {
            not_compared: comparison.not_compared.len(),
        }
        .into());
    }
    Ok(())
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
fn run_all(
    args: &Args,
    device: &Device,
    tests: &[Test],
    lock: &CardLock,
    directory: &Path,
) -> Result<Vec<TestResult>, std::io::Error> {
    let jobs = device.jobs(args.jobs);
    let total = tests.len() * args.repeat as usize;
    let bar = ProgressBar::new(total as u64).with_style(
        ProgressStyle::with_template("{elapsed_precise} {wide_bar} {pos}/{len} {msg}").expect("a constant template"),
    );
    let queue: Mutex<VecDeque<(u32, &Test)>> = Mutex::new(
        (0..args.repeat)
            .flat_map(|round| tests.iter().map(move |test| (round, test)))
            .collect(),
    );
    let (logs, buffers) = (directory.join("logs"), directory.join(BUFFERS));
    for folder in [&logs, &buffers] {
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
    }
    std::fs::create_dir_all(&logs)?;
    if args.against.is_some() {
        std::fs::create_dir_all(&buffers)?;
    }
    let (send, receive) = mpsc::channel();
    let supervision = supervise::Supervision {
        deadline: Duration::from_secs(args.deadline),
        grace: supervise::Grace::default(),
        environment: device.environment(),
        buffers: buffers.exists().then_some(buffers),
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
