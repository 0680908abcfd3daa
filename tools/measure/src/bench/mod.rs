//! Bench: measurements on a real card, under its lock.
//!
//! * `run`: the program of `tools/gpu-bench/benches/gpu`, once;
//! * `compare`: the same program's kernels beside PyTorch's (two sides, the cases, one table);
//! * `llm`: the program of `crates/rocmforge/examples/llm_bench`, models with random weights, beside llama.cpp's.

mod cases;
mod compare;
mod side;
mod table;

use crate::workspace_root;
use compare::{Compare, CompareError};
use rocmforge_gpu_test::bundle::Contents;
use rocmforge_gpu_test::lock::{CardLock, LockError};
use rocmforge_gpu_test::supervisor::{Consent, Device, examine};
use rocmforge_gpu_test::workspace::Workspace;
use rocmforge_gpu_test::{CAREFUL_VARIABLE, Outcome, cargo, say, tell};
use rocmforge_machine::DeviceName;
use rocmforge_machine::sysfs::Sysfs;
use side::Side;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use table::Report;

const TORCH_SIDE: &str = include_str!("torch_side.py");

/// Builds the program of the GPU benches.
const GPU_BENCHES: &[&str] = &[
    "bench",
    "--package",
    "rocmforge-gpu-bench",
    "--bench",
    "gpu",
    "--no-run",
];

const PYTHON: &str = "python3";
const ROUNDS: usize = 9;
/// Seconds to wait for the card, unless said otherwise.
pub const PATIENCE: u64 = 60;

/// Options of a measurement.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Times launches, copies, allocation and every kernel, beside the card's own copy.
    Run {
        #[command(flatten)]
        place: Place,
        /// Arguments for criterion: a filter, `--quick`, …
        #[arg(last = true)]
        criterion: Vec<String>,
    },
    /// Times our kernels and PyTorch's turn by turn on the same inputs, and compares the results.
    Compare {
        #[command(flatten)]
        place: Place,
        /// The Python that has PyTorch.
        #[arg(long, default_value = PYTHON)]
        python: PathBuf,
        /// Turns of each side at each case.
        #[arg(long, default_value_t = ROUNDS)]
        rounds: usize,
        /// Only the cases whose operation contains this.
        #[arg(long)]
        filter: Option<String>,
    },
    /// Times decoding and prompts of models with random weights, beside llama.cpp.
    Llm {
        #[command(flatten)]
        place: Place,
        /// Options of `cargo run --example llm_bench`: `--shapes`, `--types`, `--depths`, `--llama-bench`, `--serve`, …
        #[arg(last = true)]
        options: Vec<String>,
    },
}

/// Where to measure, with what.
#[derive(Debug, clap::Args)]
struct Place {
    /// The card: `hip:<PCI address or index>` or `nvidia:<PCI address>`. `sim` rehearses, without times.
    #[arg(long)]
    device: DeviceName,
    /// The program of the GPU benches, or of `llm`, instead of building it.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The one in the bundle of `cargo xtask bundle` in this folder.
    #[arg(long, value_name = "DIR", conflicts_with = "binary")]
    bundle: Option<PathBuf>,
    /// Where tables go.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seconds to wait for another process to release the card.
    #[arg(long, default_value_t = PATIENCE)]
    patience: u64,
    /// Allows a real card that drives a display: little memory, so that the large cases are left out.
    #[arg(long)]
    allow_display_gpu: bool,
}

#[derive(Debug, thiserror::Error)]
enum BenchError {
    #[error("the GPU benches could not be built; cargo's output is above")]
    Build,
    #[error("the GPU benches failed; their output is above")]
    Failed,
    #[error("the bundle was made with --without-benches")]
    NoBench,
    #[error("nothing that is compared is called {0:?}")]
    NoCase(String),
    #[error("times of wrong results mean nothing: {}", .0.join("; "))]
    Wrong(Vec<String>),
}

/// Measures.
///
/// # Errors
///
/// The card may not be used, a program fails, or its results are wrong.
pub fn run(args: Args, workspace: &dyn Workspace) -> Outcome {
    match args.command {
        What::Run { place, criterion } => Measured::new(place, Some(workspace))?.run(&criterion),
        What::Llm { mut place, options } => {
            if place.binary.is_none() {
                let cargo = ["build", "--release", "--package", "rocmforge", "--example", "llm_bench"];
                place.binary = Some(build(workspace, &cargo, "llm_bench")?);
            }
            Measured::new(place, None)?.llm(&options)
        }
        What::Compare {
            place,
            python,
            rounds,
            filter,
        } => Measured::new(place, Some(workspace))?.compare(&python, rounds, filter.as_deref()),
    }
}

/// Both, with a program that is there already; without PyTorch the comparison is left out.
///
/// # Errors
///
/// As [`run`].
pub fn everything(device: &Device, binary: PathBuf, out: &Path, allow_display_gpu: bool) -> Outcome {
    let measured = Measured::new(
        Place {
            device: device.to_string().parse()?,
            binary: Some(binary),
            bundle: None,
            out: Some(out.to_owned()),
            patience: PATIENCE,
            allow_display_gpu,
        },
        None,
    )?;
    measured.run(&[])?;
    match measured.compare(Path::new(PYTHON), ROUNDS, None) {
        Err(error) if matches!(error.downcast_ref(), Some(CompareError::NoTorch(_))) => {
            say!("left out: {error}");
            Ok(())
        }
        outcome => outcome,
    }
}

/// Takes the lock of a card, waiting for at most `patience` seconds.
///
/// # Errors
///
/// Somebody holds it, or its file cannot be used.
pub fn lock(device: &Device, out: &Path, patience: u64) -> Result<CardLock, LockError> {
    let patience = Duration::from_secs(patience);
    CardLock::acquire(&device.lock_directory(out), &device.card_key(), patience, |holder| {
        let who = holder.map_or_else(|| "another process".to_owned(), ToString::to_string);
        tell!("waiting for {device}: in use by {who}");
    })
}

/// A card whose lock is held, and the program that measures it.
struct Measured {
    device: Device,
    careful: bool,
    lock: CardLock,
    binary: PathBuf,
    out: PathBuf,
}

impl Measured {
    fn new(place: Place, workspace: Option<&dyn Workspace>) -> Result<Self, Box<dyn std::error::Error>> {
        let sysfs = Sysfs::host();
        let machine = sysfs.machine();
        let device = Device::find(place.device, &sysfs, &machine)?;
        let consent = Consent {
            display: place.allow_display_gpu,
            reset: false,
        };
        let careful = examine(&device, &sysfs, &machine, consent)?.careful;
        let beside = place.bundle.as_ref().map(|bundle| bundle.join("reports/bench"));
        let out = place.out.or(beside);
        let out = out.unwrap_or_else(|| workspace_root().join("target/bench"));
        std::fs::create_dir_all(&out)?;
        let binary = match (place.binary, place.bundle) {
            (Some(binary), _) => std::fs::canonicalize(binary)?,
            (None, Some(bundle)) => Contents::of(&bundle)?.file("bench").ok_or(BenchError::NoBench)?,
            (None, None) => build(workspace.ok_or(BenchError::Build)?, GPU_BENCHES, "gpu")?,
        };
        let lock = lock(&device, &out, place.patience)?;
        Ok(Self {
            device,
            careful,
            lock,
            binary,
            out,
        })
    }

    fn is_simulated(&self) -> bool {
        matches!(self.device, Device::Sim(_))
    }

    /// The program, with the card's lock.
    fn program(&self) -> Result<Command, Box<dyn std::error::Error>> {
        let mut command = Command::new(&self.binary);
        command.envs(self.device.environment());
        if self.careful {
            command.env(CAREFUL_VARIABLE, "1");
        }
        self.lock.pass_to(&mut command)?;
        Ok(command)
    }

    fn run(&self, criterion: &[String]) -> Outcome {
        let table = self.out.join("gpu.md");
        let mut program = self.program()?;
        program
            .arg("--bench")
            .args(criterion)
            .env("ROCMFORGE_BENCH_TABLE", &table);
        program.env("CRITERION_HOME", self.out.join("criterion"));
        if self.is_simulated() {
            program.arg("--test");
        }
        if !program.status()?.success() {
            return Err(BenchError::Failed.into());
        }
        if !self.is_simulated() {
            say!("the table is in {}", table.display());
        }
        Ok(())
    }

    fn llm(&self, options: &[String]) -> Outcome {
        let mut program = self.program()?;
        program.args(["--device", &self.device.to_string()]).args(options);
        match program.status()?.success() {
            true => Ok(()),
            false => Err(BenchError::Failed.into()),
        }
    }

    fn compare(&self, python: &Path, rounds: usize, filter: Option<&str>) -> Outcome {
        let all = if self.is_simulated() {
            cases::REHEARSAL
        } else {
            cases::CASES
        };
        let wanted = |op: &str| op == "driver_copy" || filter.is_none_or(|filter| op.contains(filter));
        let first = all
            .iter()
            .position(|case| filter.is_some_and(|filter| case.op.contains(filter)));
        if let (Some(filter), None) = (filter, first) {
            return Err(BenchError::NoCase(filter.to_owned()).into());
        }
        let cases = all.iter().filter(|case| wanted(case.op));

        let ours = Side::start("our side", self.program()?.arg("--serve"))?;
        let torch = Side::start("PyTorch's side", Command::new(python).args(["-u", "-c", TORCH_SIDE]))?;
        let mut compare = Compare {
            ours,
            torch,
            rounds: rounds.max(1),
            progress: &|case| tell!("{} {:?}", case.op, case.shape),
        };
        let (ours, torch) = compare.hello()?;
        let report = Report {
            ours,
            torch,
            rounds: compare.rounds,
            timed: !self.is_simulated(),
            rows: compare.run(cases)?,
        };
        drop(compare);
        let (markdown, json) = (self.out.join("compare.md"), self.out.join("compare.json"));
        std::fs::write(&markdown, report.markdown())?;
        std::fs::write(&json, serde_json::to_vec_pretty(&report)?)?;
        say!("{}", report.markdown());
        say!("tables are in {} and {}", markdown.display(), json.display());
        match report.wrong() {
            wrong if wrong.is_empty() => Ok(()),
            wrong => Err(BenchError::Wrong(wrong).into()),
        }
    }
}

/// Builds the program and says where it is.
fn build(workspace: &dyn Workspace, arguments: &[&str], name: &str) -> Result<PathBuf, Box<dyn std::error::Error>> {
    tell!("building {name} …");
    let output = cargo::command(workspace.root())
        .args(arguments)
        .arg("--message-format=json-render-diagnostics")
        .stderr(std::process::Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(BenchError::Build.into());
    }
    let executable = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == name)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    Ok(executable.ok_or(BenchError::Build)?)
}
