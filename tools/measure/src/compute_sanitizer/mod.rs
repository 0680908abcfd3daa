//! compute-sanitizer: NVIDIA's memcheck, initcheck, racecheck and synccheck over the GPU tests of the kernels, which
//! must give no finding, and over the faulty kernels that our own sanitizer is tested with, which compares the two.

mod faulty;
mod findings;
mod process;

use crate::workspace_root;
use faulty::{Row, Table, verdicts};
use findings::findings;
use process::{Ended, Job, Stage, StageError, Tool};
use rocmforge_gpu_test::lock::CardLock;
use rocmforge_gpu_test::supervisor::{Device, TestBinary, build_plainly, given};
use rocmforge_gpu_test::workspace::Workspace;
use rocmforge_gpu_test::{Outcome, say, tell};
use rocmforge_machine::DeviceName;
use rocmforge_machine::sysfs::Sysfs;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The crates whose GPU tests run kernels of ours.
const KERNELS: [&str; 4] = [
    "rocmforge-attention",
    "rocmforge-ggml",
    "rocmforge-kernels",
    "rocmforge-runtime",
];
/// The crate with the faulty kernels.
const FAULTY: &str = "rocmforge-sanitize";
/// Tests with a time limit of their own, which the tools make them miss, and tests that want the card for themselves. Others run
/// the same kernels.
const LEFT_OUT: [&str; 2] = [
    "rocmforge-kernels::causal_mask::test_gpu_causal_mask_large_sequence",
    "rocmforge-runtime::memory::a_budget_in_bytes_is_all_there_for_buffers",
];
/// Tests that share a process: a context under the tools takes seconds to make.
const TOGETHER: usize = 6;
/// How long to wait for the card.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// The GPU tests of the kernels.
    Kernels,
    /// The faulty kernels, and their corrected twins.
    Faulty,
}

/// Options of a run of NVIDIA's tools.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The card.
    #[arg(long, default_value = "nvidia:0")]
    device: DeviceName,
    /// Only these tools.
    #[arg(long = "tool", value_enum)]
    tools: Vec<Tool>,
    /// Only one of the two parts.
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Only tests and faulty kernels whose name contains this.
    #[arg(long)]
    filter: Option<String>,
    /// Processes at a time.
    #[arg(long, default_value_t = 8)]
    jobs: usize,
    /// Seconds a process may take.
    #[arg(long, default_value_t = 120)]
    deadline: u64,
    /// Runs this binary of GPU tests, named after its crate, instead of building all of them.
    #[arg(long)]
    binary: Vec<PathBuf>,
    /// Where the output of each process goes.
    #[arg(long)]
    reports: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
enum SanitizerError {
    #[error(
        "compute-sanitizer is not installed (looked on the PATH, in /usr/local/cuda/bin and in /opt/cuda/bin): it comes with CUDA. \
         Nothing was checked"
    )]
    NotInstalled,
    #[error("no test matches")]
    NothingMatches,
    #[error("a process ran none of its faulty kernels: {}", log.display())]
    NothingRan { log: PathBuf },
    #[error("{findings} findings in kernels without a fault, {failed} processes whose tests did not pass: {}", logs.display())]
    Wrong {
        findings: usize,
        failed: usize,
        logs: PathBuf,
    },
}

/// Runs the tools.
///
/// # Errors
///
/// They are not installed, the card may not be used, or they found something.
pub fn run(args: Args, workspace: &dyn Workspace) -> Outcome {
    let program = process::find(std::env::var_os("PATH").as_deref()).ok_or(SanitizerError::NotInstalled)?;
    let binaries = binaries(&args.binary, workspace)?;
    let usual = || workspace_root().join("target/compute-sanitizer");
    let logs = args.reports.clone().unwrap_or_else(usual);
    std::fs::create_dir_all(&logs)?;
    let logs = logs.canonicalize()?;
    let sysfs = Sysfs::host();
    let device = Device::find(args.device, &sysfs, &sysfs.machine())?;
    let directory = device.lock_directory(&logs);
    let lock = CardLock::acquire_on(&sysfs, &directory, &device.card_key(), PATIENCE, |_| {
        tell!("waiting for {device}: in use");
    })?;
    let environment = device.environment();
    let stage = Stage {
        program: &program,
        lock: &lock,
        environment: &environment,
        logs: &logs,
        deadline: Duration::from_secs(args.deadline),
    };
    let wanted = |part| args.only.is_none_or(|only| only == part);
    let mut wrong = Wrong::default();
    let mut ran = 0;
    if wanted(Part::Kernels) {
        let jobs = kernel_jobs(&args, &binaries)?;
        ran += jobs.len();
        wrong.add(&clean(&stage, &jobs, args.jobs)?);
    }
    if wanted(Part::Faulty)
        && let Some(binary) = binaries.iter().find(|binary| binary.package == FAULTY)
    {
        let twins = twin_jobs(&args, binary);
        wrong.add(&clean(&stage, &twins, args.jobs)?);
        let (rows, processes) = compare(&args, &stage, binary)?;
        ran += twins.len() + processes;
        say!("{}", Table(&rows).to_string().trim_end());
    }
    if ran == 0 {
        return Err(SanitizerError::NothingMatches.into());
    }
    wrong.verdict(&logs)
}

/// The binaries that are there, or all of them built.
fn binaries(paths: &[PathBuf], workspace: &dyn Workspace) -> Result<Vec<TestBinary>, Box<dyn std::error::Error>> {
    if !paths.is_empty() {
        return Ok(given(paths)?);
    }
    tell!("building the GPU tests …");
    Ok(build_plainly(workspace, "gpu")?)
}

fn tools(args: &Args) -> Vec<Tool> {
    if args.tools.is_empty() {
        Tool::ALL.to_vec()
    } else {
        args.tools.clone()
    }
}

fn fits(args: &Args, name: &str) -> bool {
    args.filter.as_ref().is_none_or(|filter| name.contains(filter.as_str()))
}

/// Every GPU test of the kernels under every tool, a few in a process.
fn kernel_jobs(args: &Args, binaries: &[TestBinary]) -> Result<Vec<Job>, Box<dyn std::error::Error>> {
    let mut jobs = Vec::new();
    let kernels = binaries
        .iter()
        .filter(|binary| KERNELS.contains(&binary.package.as_str()));
    for binary in kernels {
        let listed = Command::new(&binary.executable)
            .args(["--list", "--format", "terse"])
            .output()?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        let tests = listed.lines().filter_map(|line| line.strip_suffix(": test"));
        let wanted = |test: &&str| {
            let id = format!("{}::{test}", binary.package);
            fits(args, &id) && !LEFT_OUT.contains(&id.as_str())
        };
        let tests: Vec<String> = tests.filter(wanted).map(str::to_owned).collect();
        for tool in tools(args) {
            for (number, together) in tests.chunks(TOGETHER).enumerate() {
                jobs.push(Job {
                    tool,
                    binary: binary.clone(),
                    tests: together.to_vec(),
                    faulty: Vec::new(),
                    log: format!("{}.{}.{number}", tool.name(), binary.package),
                });
            }
        }
    }
    Ok(jobs)
}

/// The corrected kernels under every tool.
fn twin_jobs(args: &Args, binary: &TestBinary) -> Vec<Job> {
    let tools = tools(args).into_iter();
    tools
        .map(|tool| Job {
            tool,
            binary: binary.clone(),
            tests: vec!["corrected_kernels_run".to_owned()],
            faulty: Vec::new(),
            log: format!("{}.corrected", tool.name()),
        })
        .collect()
}

/// Runs jobs, a few at a time, in their order.
fn run_all(stage: &Stage<'_>, jobs: &[Job], at_a_time: usize) -> Result<Vec<Ended>, StageError> {
    let next = AtomicUsize::new(0);
    let ended: Mutex<Vec<(usize, Result<Ended, StageError>)>> = Mutex::default();
    std::thread::scope(|scope| {
        for _ in 0..at_a_time.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { break };
                    let end = stage.run(job);
                    ended
                        .lock()
                        .unwrap_or_else(|poisoned| poisoned.into_inner())
                        .push((index, end));
                }
            });
        }
    });
    let mut ended = ended.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    ended.sort_by_key(|(index, _)| *index);
    ended.into_iter().map(|(_, end)| end).collect()
}

/// What is wrong with kernels that have no fault.
#[derive(Default)]
struct Wrong {
    findings: usize,
    failed: usize,
}

impl Wrong {
    fn add(&mut self, other: &Self) {
        self.findings += other.findings;
        self.failed += other.failed;
    }

    fn verdict(self, logs: &Path) -> Outcome {
        match self {
            Self { findings: 0, failed: 0 } => Ok(()),
            Self { findings, failed } => Err(SanitizerError::Wrong {
                findings,
                failed,
                logs: logs.to_owned(),
            }
            .into()),
        }
    }
}

/// Runs tests of kernels without a fault, and prints a table: a row a crate and tool.
fn clean(stage: &Stage<'_>, jobs: &[Job], at_a_time: usize) -> Result<Wrong, StageError> {
    let mut rows: BTreeMap<(String, Tool), [usize; 3]> = BTreeMap::new();
    let mut wrong = Wrong::default();
    for (job, end) in jobs.iter().zip(run_all(stage, jobs, at_a_time)?) {
        let found = findings(&end.output);
        for finding in &found {
            say!(
                "{} {}: {} {:?}",
                job.tool.name(),
                job.binary.package,
                finding.what,
                finding.places
            );
        }
        let failed = usize::from(!end.passed());
        if failed > 0 {
            let how = end
                .status
                .map_or("took too long".to_owned(), |status| status.to_string());
            say!("{} {}: {how}, see {}", job.tool.name(), job.binary.package, job.log);
        }
        let row = rows.entry((job.binary.package.clone(), job.tool)).or_default();
        for (sum, more) in row.iter_mut().zip([job.tests.len(), found.len(), failed]) {
            *sum += more;
        }
        wrong.findings += found.len();
        wrong.failed += failed;
    }
    if !rows.is_empty() {
        say!("| crate | tool | tests | findings | processes that failed |\n|---|---|---|---|---|");
    }
    for ((package, tool), [tests, found, failed]) in rows {
        say!("| {package} | {} | {tests} | {found} | {failed} |", tool.name());
    }
    Ok(wrong)
}

/// Runs every faulty kernel under every tool, a few in a process; where one stops the card, those behind it in a new one.
fn compare(
    args: &Args,
    stage: &Stage<'_>,
    binary: &TestBinary,
) -> Result<(Vec<Row>, usize), Box<dyn std::error::Error>> {
    let sources = faulty::sources()?.into_iter();
    let mut rows: Vec<Row> = sources
        .filter(|source| fits(args, &source.name))
        .map(|source| Row {
            source,
            verdicts: Vec::new(),
            calls: Vec::new(),
        })
        .collect();
    let names: Vec<String> = rows.iter().map(|row| row.source.name.clone()).collect();
    let mut waiting: Vec<(Tool, Vec<String>)> = Vec::new();
    for tool in tools(args) {
        waiting.extend(names.chunks(TOGETHER).map(|names| (tool, names.to_vec())));
    }
    let mut processes = 0;
    while !waiting.is_empty() {
        let jobs: Vec<Job> = (processes..)
            .zip(std::mem::take(&mut waiting))
            .map(|(number, (tool, faulty))| Job {
                tool,
                binary: binary.clone(),
                tests: vec!["faulty_kernels".to_owned()],
                faulty,
                log: format!("{}.faulty.{number}", tool.name()),
            })
            .collect();
        processes += jobs.len();
        for (job, end) in jobs.iter().zip(run_all(stage, &jobs, args.jobs)?) {
            let done = note(&mut rows, job, &end);
            // A process that runs none of its kernels would run none the next time either.
            if done == 0 {
                let log = stage.logs.join(&job.log);
                return Err(SanitizerError::NothingRan { log }.into());
            }
            let rest = &job.faulty[done.min(job.faulty.len())..];
            if !rest.is_empty() {
                waiting.push((job.tool, rest.to_vec()));
            }
        }
    }
    Ok((rows, processes))
}

/// Notes what a process says of its faulty kernels, and gives how many of them it came to.
fn note(rows: &mut [Row], job: &Job, end: &Ended) -> usize {
    let (found, progress) = (findings(&end.output), faulty::progress(&end.output));
    for row in rows.iter_mut().filter(|row| job.faulty.contains(&row.source.name)) {
        row.verdicts.extend(verdicts(&row.source, job.tool, &found));
    }
    let done = progress.ended.len() + usize::from(progress.stuck.is_some());
    let stuck = progress.stuck.map(|name| (name, "does not end".to_owned()));
    for (name, said) in progress.ended.into_iter().chain(stuck) {
        let row = rows.iter_mut().find(|row| row.source.name == name);
        if let Some(row) = row.filter(|row| said != faulty::NOTHING && !row.calls.contains(&said)) {
            row.calls.push(said);
        }
    }
    done
}
