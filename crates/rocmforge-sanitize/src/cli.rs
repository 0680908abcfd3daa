//! The command line.

use crate::error::Error;
use crate::files::Folder;
use crate::launch_file::{LaunchFile, seed_range, tool_set};
use crate::object_file::{ObjectFile, describe, template};
use crate::options::{LeakCheck, NameFilter, Options, Selection};
use crate::outcome::Outcome;
use crate::page::{Page, Saved};
use crate::plan::Plan;
use crate::program::RunArgs;
use crate::suppress::Suppressions;
use crate::{npy, run};
use clap::{Parser, Subcommand, ValueEnum};
use rocmforge_memory::Bytes;
use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

/// Runs a compiled AMD GPU kernel on a simulated Radeon and tells what is wrong with it: memcheck, initcheck, racecheck,
/// synccheck. Needs no GPU and no ROCm.
///
/// Exit status: 0 nothing found, 1 something found (or what `--error-exitcode` says), 2 it could not run.
#[derive(Parser, Debug)]
#[command(
    name = "rocmforge-sanitize",
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub struct Cli {
    /// What to run in place of a launch file.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The launch file (TOML). `--template` writes one to start from.
    #[arg(required_unless_present_any = ["kernels", "template"])]
    pub launch_file: Option<PathBuf>,
    /// How to print what is found.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub format: Format,
    /// Other seeds than the file's: a count (`16`) or a range (`8..24`).
    #[arg(long, value_name = "SEEDS")]
    pub seeds: Option<String>,
    /// Other tools than the file's, separated by commas: memcheck, initcheck, racecheck, synccheck, init_registers.
    #[arg(
        long = "tool",
        alias = "tools",
        value_name = "TOOLS",
        value_delimiter = ',',
        conflicts_with_all = ["kernels", "template"]
    )]
    pub tools: Vec<String>,
    /// Checks only these kernels: `NAME` or `kernel_name=NAME` (`kne=`), `kernel_substring=PART` (`kns=`); several are separated
    /// by commas. The others run unchecked.
    #[arg(
        long = "kernel-name",
        value_name = "FILTER",
        value_delimiter = ',',
        conflicts_with_all = ["kernels", "template"]
    )]
    pub kernel_names: Vec<String>,
    /// Passes over the first N launches of the kernels that are checked.
    #[arg(long, value_name = "N", conflicts_with_all = ["kernels", "template"])]
    pub launch_skip: Option<u64>,
    /// Checks only N of those launches; 0: all.
    #[arg(long, value_name = "N", conflicts_with_all = ["kernels", "template"])]
    pub launch_count: Option<u64>,
    /// How many findings are printed; the others are counted. 0: all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub print_limit: usize,
    /// Bytes behind each buffer that belong to nobody, so that a write past its end hits no other buffer; rounded up to a multiple
    /// of 256. Without it a quarter of the buffer's size.
    #[arg(long, value_name = "BYTES", conflicts_with_all = ["kernels", "template"])]
    pub padding: Option<u64>,
    /// Whether buffers that a step has allocated and none has freed are findings.
    #[arg(long, value_enum, default_value_t = LeakCheck::No)]
    pub leak_check: LeakCheck,
    /// Leaves out the findings that a file (TOML) lists.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernels", "template"])]
    pub suppressions: Option<PathBuf>,
    /// The exit status if something is found.
    #[arg(long, value_name = "STATUS", conflicts_with_all = ["kernels", "template"])]
    pub error_exitcode: Option<u8>,
    /// Writes what is printed to a file too.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["kernels", "template"])]
    pub save: Option<PathBuf>,
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

/// What is run in place of a launch file.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Runs a compiled HIP program, unmodified, on a simulated Radeon, and checks every kernel that it launches.
    ///
    /// `rocmforge-sanitize run -- ./program argument`, `rocmforge-sanitize run -- python script.py`.
    Run(RunArgs),
}

/// How findings are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Pages for people.
    Text,
    /// One JSON object.
    Json,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Nothing was found.
    Clean,
    /// Something was found.
    Found,
    /// It could not run.
    CannotRun,
    /// A program has run, and this is the exit status.
    Program(u8),
}

/// The exit status that says that nothing could be run.
const CANNOT_RUN: u8 = 2;

impl Exit {
    /// The exit status of the process: with [`Cli::error_exitcode`] another one where something was found.
    pub fn status(self, cli: &Cli) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Found => cli.error_exitcode.unwrap_or(1),
            Self::CannotRun => CANNOT_RUN,
            Self::Program(status) => status,
        }
    }
}

/// Runs the program. Findings go to `out`, errors to `err`.
pub fn main(cli: &Cli, out: &mut dyn Write, err: &mut dyn Write) -> Exit {
    match execute(cli, out, err) {
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

fn execute(cli: &Cli, out: &mut dyn Write, err: &mut dyn Write) -> Result<Exit, Error> {
    if let Some(Command::Run(args)) = &cli.command {
        return Ok(args.run(err)?.map_or(Exit::CannotRun, Exit::Program));
    }
    if let Some(path) = &cli.kernels {
        print(out, &describe(&ObjectFile::read(path, None)?))?;
        return Ok(Exit::Clean);
    }
    if let Some(path) = &cli.template {
        // For a launch file beside the object: it may not lead elsewhere.
        let name = path.file_name().map_or(path.as_path(), Path::new);
        let page = template(&ObjectFile::read(path, None)?, name).map_err(Error::object(path))?;
        print(out, &page)?;
        return Ok(Exit::Clean);
    }
    let Some(path) = &cli.launch_file else {
        return Ok(Exit::CannotRun);
    };
    let mut file = LaunchFile::read(path)?;
    file.allow_outside = cli.allow_outside;
    if let Some(seeds) = &cli.seeds {
        file.seeds = seed_range(seeds).map_err(|problem| Error::option("--seeds", problem))?;
    }
    if !cli.tools.is_empty() {
        file.tools =
            tool_set(cli.tools.iter().map(String::as_str)).map_err(|problem| Error::option("--tool", problem))?;
    }
    contradictions(cli, &file)?;
    let options = options(cli, &file)?;
    let suppressions = match &cli.suppressions {
        Some(path) => Suppressions::read(path)?,
        None => Suppressions::default(),
    };
    let mut plan = Plan::new(file)?;
    plan.options = options;
    let outcome = run(&plan)?;
    // What was found is told also when an output cannot be written.
    let (saved, failed) = save(&plan, &outcome);
    let page = Page::new(&plan, &outcome, &saved, &suppressions, cli.print_limit);
    let text = match cli.format {
        Format::Text => page.text(),
        Format::Json => page.json(),
    };
    print(out, &text)?;
    if let Some(path) = &cli.save {
        // The user has named it, so that it may lie anywhere.
        let anywhere = Folder {
            path: Path::new(""),
            allow_outside: true,
        };
        anywhere.write(path, text.as_bytes())?;
    }
    failed.map_or(Ok(()), Err)?;
    Ok(if page.is_clean() { Exit::Clean } else { Exit::Found })
}

/// Refuses options that contradict each other or the launch file.
fn contradictions(cli: &Cli, file: &LaunchFile) -> Result<(), Error> {
    let wrong = |option, problem: &str| Err(Error::option(option, problem));
    if !file.tools.memcheck && cli.padding.is_some() {
        return wrong("--padding", "belongs to memcheck, which is not among the tools");
    }
    if !file.tools.memcheck && cli.leak_check == LeakCheck::Full {
        return wrong("--leak-check", "belongs to memcheck, which is not among the tools");
    }
    if cli.error_exitcode == Some(CANNOT_RUN) {
        return wrong("--error-exitcode", "is 2, which says that nothing could be run");
    }
    let Some(save) = &cli.save else { return Ok(()) };
    let same = |path: &Path| match (path.canonicalize(), save.canonicalize()) {
        (Ok(one), Ok(other)) => one == other,
        _ => path == save,
    };
    let read = [Some(&*file.place.file), cli.suppressions.as_deref()];
    let objects = file.objects.iter().map(|object| object.path.as_path());
    let outputs = file.buffers.iter().filter_map(|buffer| buffer.save.as_deref());
    if read.into_iter().flatten().chain(objects).chain(outputs).any(same) {
        return wrong("--save", "names a file that is read, or that a buffer is written to");
    }
    Ok(())
}

fn options(cli: &Cli, file: &LaunchFile) -> Result<Options, Error> {
    let names = cli.kernel_names.iter().map(|text| NameFilter::parse(text));
    let names = names.collect::<Result<Vec<_>, _>>();
    let selection = Selection {
        names: names.map_err(|problem| Error::option("--kernel-name", problem))?,
        skip: cli.launch_skip.unwrap_or(0),
        count: cli.launch_count.unwrap_or(0),
    };
    let key = if selection.names.is_empty() {
        "--launch-skip"
    } else {
        "--kernel-name"
    };
    Ok(Options {
        padding: cli.padding.map(Bytes),
        leak_check: cli.leak_check == LeakCheck::Full,
        checked: selection.of(file).map_err(|problem| Error::option(key, problem))?,
    })
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
