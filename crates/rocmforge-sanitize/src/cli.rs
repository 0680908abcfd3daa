//! The command line.

use crate::error::Error;
use crate::launch_file::{LaunchFile, seed_range, tool_set};
use crate::object_file::{ObjectFile, describe, plural, template};
use crate::outcome::{Finding, Outcome};
use crate::plan::Plan;
use crate::{npy, run};
use clap::{Parser, ValueEnum};
use serde::Serialize;
use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Runs a compiled AMD GPU kernel on a simulated Radeon and tells what is wrong with it: memcheck, initcheck, racecheck,
/// synccheck. Needs no GPU and no ROCm.
///
/// Exit status: 0 nothing found, 1 something found, 2 it could not run.
#[derive(Parser, Debug)]
#[command(name = "rocmforge-sanitize", version)]
pub struct Cli {
    /// The launch file (TOML). `--template` writes one to start from.
    #[arg(required_unless_present_any = ["kernels", "template"])]
    pub launch_file: Option<PathBuf>,
    /// How to print what is found.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Other seeds than the file's: a count (`16`) or a range (`8..24`).
    #[arg(long, value_name = "SEEDS")]
    pub seeds: Option<String>,
    /// Other tools than the file's, separated by commas.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    pub tools: Vec<String>,
    /// Lets the launch file read and write files outside of its folder: by absolute paths, `..` and links. For launch files that you
    /// trust as you trust a program.
    #[arg(long)]
    pub allow_outside: bool,
    /// Lists the kernels of a code object with their arguments, and runs nothing.
    #[arg(long, value_name = "OBJECT", conflicts_with_all = ["launch_file", "template"])]
    pub kernels: Option<PathBuf>,
    /// Prints a launch file for the kernels of a code object, to be put beside the object, and runs nothing.
    #[arg(long, value_name = "OBJECT", conflicts_with = "launch_file")]
    pub template: Option<PathBuf>,
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Pages for people.
    Text,
    /// One JSON object.
    Json,
}

/// The exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Nothing was found.
    Clean = 0,
    /// Something was found.
    Found = 1,
    /// It could not run.
    CannotRun = 2,
}

/// Runs the program. Findings go to `out`, errors to `err`.
pub fn main(cli: &Cli, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    match execute(cli, out) {
        Ok(exit) => exit,
        Err(error) => {
            // Nobody is left to tell if this fails.
            let _ = writeln!(err, "error: {error}");
            Exit::CannotRun
        }
    }
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), Error> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        // Who reads it has gone, and does not want more.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(Error::write(Path::new("the findings"))),
    }
}

fn execute(cli: &Cli, out: &mut dyn Write) -> Result<Exit, Error> {
    if let Some(path) = &cli.kernels {
        print(out, &describe(&ObjectFile::read(path, None)?))?;
        return Ok(Exit::Clean);
    }
    if let Some(path) = &cli.template {
        // For a launch file beside the object: it may not lead elsewhere.
        let name = path.file_name().map_or(path.as_path(), Path::new);
        let page = template(&ObjectFile::read(path, None)?, name).map_err(|source| source.of(path))?;
        print(out, &page)?;
        return Ok(Exit::Clean);
    }
    let Some(path) = &cli.launch_file else {
        return Ok(Exit::CannotRun);
    };
    let mut file = LaunchFile::read(path)?;
    file.allow_outside = cli.allow_outside;
    let option = |key: &str, problem| Error::value(file.place.clone(), key, problem);
    if let Some(seeds) = &cli.seeds {
        file.seeds = seed_range(seeds).map_err(|problem| option("--seeds", problem))?;
    }
    if !cli.tools.is_empty() {
        file.tools = tool_set(cli.tools.iter().map(String::as_str)).map_err(|problem| option("--tools", problem))?;
    }
    let plan = Plan::new(file)?;
    let outcome = run(&plan)?;
    // What was found is told also when an output cannot be written.
    let (saved, failed) = save(&plan, &outcome);
    let page = match cli.format {
        Format::Text => text(&plan, &outcome, &saved),
        Format::Json => json(&plan, &outcome, &saved),
    };
    print(out, &page)?;
    failed.map_or(Ok(()), Err)?;
    Ok(if outcome.findings.is_empty() {
        Exit::Clean
    } else {
        Exit::Found
    })
}

/// A buffer that was to be written to a file.
#[derive(Serialize)]
struct Saved {
    buffer: String,
    file: PathBuf,
    /// None: the card had stopped, and nothing could be read.
    bytes: Option<usize>,
}

/// Writes the outputs of the first seed; gives those that are written, and the first error.
fn save(plan: &Plan, outcome: &Outcome) -> (Vec<Saved>, Option<Error>) {
    let wanted = plan.file.buffers.iter().filter_map(|b| Some((b, b.save.as_ref()?)));
    let (mut saved, mut failed) = (Vec::new(), None);
    for ((buffer, path), bytes) in wanted.zip(&outcome.outputs) {
        let written = bytes.as_ref().map(|bytes| {
            let npy = path.extension().is_some_and(|extension| extension == "npy");
            let file = if npy {
                Cow::Owned(npy::write(buffer.dtype.npy(), &buffer.shape, bytes))
            } else {
                Cow::Borrowed(bytes.as_slice())
            };
            plan.file.folder().write(path, &file).map(|()| bytes.len())
        });
        match written.transpose() {
            Ok(bytes) => saved.push(Saved {
                buffer: buffer.label.clone(),
                file: path.clone(),
                bytes,
            }),
            Err(error) => {
                failed.get_or_insert(error);
            }
        }
    }
    (saved, failed)
}

fn tool_names(plan: &Plan) -> Vec<&'static str> {
    let tools = plan.file.tools;
    let all = [
        ("memcheck", tools.memcheck),
        ("initcheck", tools.initcheck),
        ("racecheck", tools.racecheck),
        ("synccheck", tools.synccheck),
        ("init_registers", tools.init_registers),
    ];
    all.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect()
}

/// Which launches a finding is about, where there are several.
fn launches(plan: &Plan, finding: &Finding) -> String {
    let place = |index: usize| {
        let launch = plan.file.launches.get(index).filter(|_| plan.file.launches.len() > 1)?;
        Some(format!("launch {index} at {}", launch.place))
    };
    let other = finding.other_launch.filter(|other| finding.launch != Some(*other));
    match (finding.launch.and_then(place), other.and_then(place)) {
        (Some(one), Some(other)) => format!("  {one}; the other is {other}\n"),
        (Some(one), None) => format!("  {one}\n"),
        (None, _) => String::new(),
    }
}

fn text(plan: &Plan, outcome: &Outcome, saved: &[Saved]) -> String {
    let mut page = String::new();
    for finding in &outcome.findings {
        let Finding {
            seeds,
            first_seed,
            report,
            ..
        } = finding;
        page.push_str(&format!("{report}\n"));
        page.push_str(&launches(plan, finding));
        page.push_str(&format!(
            "  in {seeds} of {}, first in seed {first_seed}\n\n",
            plural(outcome.seeds, "seed")
        ));
    }
    for output in saved {
        let Saved { buffer, file, bytes } = output;
        match bytes {
            Some(bytes) => page.push_str(&format!("{buffer}: {bytes} B written to {}\n", file.display())),
            None => page.push_str(&format!("{buffer}: not written, the kernel has stopped the card\n")),
        }
    }
    if outcome.differing > 0 {
        page.push_str(&format!(
            "outputs: {} of {} gave others than the first\n",
            outcome.differing,
            plural(outcome.seeds, "seed")
        ));
    }
    let found = match outcome.findings.len() {
        0 => "nothing found".to_owned(),
        n => plural(n, "fault"),
    };
    page.push_str(&format!(
        "rocmforge-sanitize: {found} in {} ({}, {} wave instructions; {})\n",
        plural(plan.file.launches.len(), "launch"),
        plural(outcome.seeds, "seed"),
        outcome.instructions,
        tool_names(plan).join(", "),
    ));
    page
}

/// What `--format json` prints.
#[derive(Serialize)]
struct Page<'a> {
    version: u32,
    status: &'static str,
    launch_file: &'a Path,
    object: &'a Path,
    arch: &'a str,
    tools: Vec<&'static str>,
    seeds: usize,
    launches: usize,
    instructions: u64,
    differing_outputs: usize,
    findings: &'a [Finding],
    outputs: &'a [Saved],
}

fn json(plan: &Plan, outcome: &Outcome, saved: &[Saved]) -> String {
    let page = Page {
        version: 1,
        status: if outcome.findings.is_empty() {
            "clean"
        } else {
            "reports"
        },
        launch_file: &plan.file.place.file,
        object: plan.object_path(),
        arch: &plan.object.processor,
        tools: tool_names(plan),
        seeds: outcome.seeds,
        launches: plan.file.launches.len(),
        instructions: outcome.instructions,
        differing_outputs: outcome.differing,
        findings: &outcome.findings,
        outputs: saved,
    };
    match serde_json::to_string_pretty(&page) {
        Ok(text) => text + "\n",
        // Only a path that is no Unicode can do this.
        Err(error) => format!(
            "{{\"version\": 1, \"status\": \"unprintable\", \"error\": {:?}}}\n",
            error.to_string()
        ),
    }
}
