//! The command line.

use crate::check_args::{CANNOT_RUN, CheckArgs, same_file, selection_option};
use crate::error::Error;
use crate::files::Folder;
use crate::launch_file::{LaunchFile, seed_range};
use crate::object_file::{ObjectFile, describe, template};
use crate::options::Options;
use crate::outcome::Outcome;
use crate::page::{Page, Saved};
use crate::plan::Plan;
use crate::program::RunArgs;
use crate::{npy, run};
use clap::{Parser, Subcommand, ValueEnum};
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
    /// What is checked and reported.
    #[command(flatten)]
    pub check: CheckArgs,
    /// Writes what is printed to a file too.
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Lets the launch file read and write files outside of its folder: by absolute paths, `..` and links. For launch files that you
    /// trust as you trust a program.
    #[arg(long)]
    pub allow_outside: bool,
    /// Lists the kernels of a code object with their arguments, and runs nothing.
    #[arg(long, value_name = "OBJECT", conflicts_with_all = ["launch_file", "template", "CheckArgs", "save"])]
    pub kernels: Option<PathBuf>,
    /// What stands behind `--` belongs to a subcommand.
    #[arg(last = true, hide = true)]
    pub rest: Vec<std::ffi::OsString>,
    /// Prints a launch file for the kernels of a code object, to be put beside the object, and runs nothing.
    #[arg(long, value_name = "OBJECT", conflicts_with_all = ["launch_file", "CheckArgs", "save"])]
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

impl Exit {
    /// The exit status of the process: with [`CheckArgs::error_exitcode`] another one where something was found.
    pub fn status(self, cli: &Cli) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Found => cli.check.error_exitcode.unwrap_or(1),
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
    // A word that is neither a subcommand nor a file was probably meant for a subcommand.
    let is_word = path.components().count() == 1 && path.extension().is_none() && !path.exists();
    if is_word || !cli.rest.is_empty() {
        return Err(Error::UnknownCommand(path.clone()));
    }
    let mut file = LaunchFile::read(path)?;
    file.allow_outside = cli.allow_outside;
    if let Some(seeds) = &cli.seeds {
        file.seeds = seed_range(seeds).map_err(|problem| Error::option("--seeds", problem))?;
    }
    if let Some(tools) = cli.check.tools()? {
        file.tools = tools;
    }
    contradictions(cli, &file)?;
    let options = options(&cli.check, &file)?;
    let suppressions = cli.check.suppressions()?;
    let mut plan = Plan::new(file)?;
    plan.options = options;
    let outcome = run(&plan)?;
    // What was found is reported also when an output cannot be written.
    let (saved, failed) = save(&plan, &outcome);
    let page = Page::new(&plan, &outcome, &saved, &suppressions, cli.check.print_limit);
    let text = match cli.format {
        Format::Text => page.text(),
        Format::Json => page.json(),
    };
    // The user has named it, so that it may lie anywhere.
    let anywhere = Folder {
        path: Path::new(""),
        allow_outside: true,
    };
    match &cli.check.log_file {
        Some(path) => anywhere.write(path, text.as_bytes())?,
        None => print(out, &text)?,
    }
    if let Some(path) = &cli.save {
        anywhere.write(path, text.as_bytes())?;
    }
    failed.map_or(Ok(()), Err)?;
    Ok(if page.is_clean() { Exit::Clean } else { Exit::Found })
}

/// Refuses options that contradict each other or the launch file.
fn contradictions(cli: &Cli, file: &LaunchFile) -> Result<(), Error> {
    cli.check.refuse_contradictions(file.tools)?;
    let read = [Some(&*file.place.file), cli.check.suppressions.as_deref()];
    let objects = file.objects.iter().map(|object| object.path.as_path());
    let outputs = file.buffers.iter().filter_map(|buffer| buffer.save.as_deref());
    let taken: Vec<&Path> = read.into_iter().flatten().chain(objects).chain(outputs).collect();
    for (option, written) in [("--save", &cli.save), ("--log-file", &cli.check.log_file)] {
        if written
            .iter()
            .any(|path| taken.iter().any(|taken| same_file(taken, path)))
        {
            let problem = "names a file that is read, or that a buffer is written to";
            return Err(Error::option(option, problem));
        }
    }
    Ok(())
}

fn options(check: &CheckArgs, file: &LaunchFile) -> Result<Options, Error> {
    let selection = check.selection()?;
    let key = selection_option(&selection);
    Ok(Options {
        padding: check.padding,
        leak_check: check.finds_leaks(),
        checked: file
            .checked(&selection)
            .map_err(|problem| Error::option(key, problem))?,
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
