//! Errors before the first launch.

use crate::object_error::ObjectError;
use rocmforge_hip_sys::hipError_t;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A line of a launch file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: Arc<Path>,
    /// The line, from 1.
    pub line: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file.display(), self.line)
    }
}

/// Why nothing could be run, or its results not be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A code object in the place of a launch file.
    #[error(
        "{} is a code object, not a launch file. `--template {}` prints a launch file for its kernels, `--kernels {}` lists them; a \
         program is run by `run -- PROGRAM`",
        .0.display(), .0.display(), .0.display()
    )]
    CodeObject(PathBuf),
    /// A word that is no subcommand, and no file.
    #[error(
        "there is no subcommand and no launch file {}. Subcommands: run (`run -- PROGRAM ARGUMENTS`), help. A launch file is a TOML file; \
         --help explains",
        .0.display()
    )]
    UnknownCommand(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A program cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A program cannot be made to load the simulated library.
    #[error(transparent)]
    Install(#[from] rocmforge_hip::InstallError),
    /// A path in a launch file leads out of its folder.
    #[error(
        "{} leads outside of {}, the folder of the launch file. Put the file there; or, if you trust the launch file, run it with \
         --allow-outside",
        path.display(), folder.display()
    )]
    Outside {
        /// The path.
        path: PathBuf,
        /// The folder.
        folder: PathBuf,
    },
    /// A path does not name a regular file: it might block, or never end.
    #[error("{} is a {kind}; only regular files are read, and written over", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: &'static str,
    },
    /// The launch file is no TOML.
    #[error("{at}: {message}")]
    Syntax {
        /// Where.
        at: Place,
        /// What the parser says.
        message: String,
    },
    /// A key no launch file has.
    #[error("{at}: unknown key `{key}` of {table}{}", suggestion(.nearest.as_deref(), known))]
    UnknownKey {
        /// Where.
        at: Place,
        /// The key.
        key: String,
        /// The table it stands in.
        table: &'static str,
        /// The key it is probably meant to be.
        nearest: Option<String>,
        /// The keys this table has.
        known: String,
    },
    /// A key that must be there is not.
    #[error("{at}: {table} needs `{key}`")]
    MissingKey {
        /// Where the table starts.
        at: Place,
        /// The key.
        key: &'static str,
        /// The table.
        table: &'static str,
    },
    /// A value of the wrong type, out of range, or that contradicts another.
    #[error("{at}: `{key}` {problem}")]
    Value {
        /// Where.
        at: Place,
        /// The key.
        key: String,
        /// What is wrong with it: "takes ..., this is ...".
        problem: String,
    },
    /// An option of the command line that is not understood, or contradicts another or the launch file.
    #[error("{option} {problem}")]
    Option {
        /// The option: `--tool`.
        option: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// An argument names a buffer that is not there.
    #[error(
        "{at}: there is no buffer `{name}`{}. A buffer of its own is written \"f32[64] zeros\"",
        suggestion(.nearest.as_deref(), known)
    )]
    NoSuchBuffer {
        /// Where.
        at: Place,
        /// The name.
        name: String,
        /// The buffer that is probably meant.
        nearest: Option<String>,
        /// The buffers there are.
        known: String,
    },
    /// The object has no kernel of this name.
    #[error("{at}: {} has no kernel `{kernel}`{}", object.display(), suggestion(.nearest.as_deref(), known))]
    NoSuchKernel {
        /// Where.
        at: Place,
        /// The name.
        kernel: String,
        /// The object.
        object: PathBuf,
        /// The kernel that is probably meant.
        nearest: Option<String>,
        /// Its kernels.
        known: String,
    },
    /// Too few or too many arguments.
    #[error("{at}: `{kernel}` takes {expected} arguments, {given} are given. It is {signature}")]
    ArgumentCount {
        /// Where.
        at: Place,
        /// The kernel.
        kernel: String,
        /// How many it takes.
        expected: usize,
        /// How many there are.
        given: usize,
        /// Its arguments.
        signature: String,
    },
    /// An argument that does not fit what the object says of it.
    #[error("{at}: argument {index} of `{kernel}` {problem}. It is {signature}")]
    Argument {
        /// Where.
        at: Place,
        /// The kernel.
        kernel: String,
        /// Which argument, from 0.
        index: usize,
        /// What is wrong.
        problem: String,
        /// The kernel's arguments.
        signature: String,
    },
    /// Not a code object, or one the simulator does not execute.
    #[error("{}: {source}", path.display())]
    Object {
        /// The file.
        path: PathBuf,
        /// Why.
        source: Box<ObjectError>,
    },
    /// The simulated machine cannot be made.
    #[error(transparent)]
    Machine(#[from] rocmforge_sim::SimError),
    /// A call of the sanitizer's own that the simulated machine refuses.
    #[error("{at}: {call} answers {status}{}", because(.reasons))]
    Refused {
        /// The line it is made for.
        at: Place,
        /// The HIP function.
        call: &'static str,
        /// Its answer.
        status: hipError_t,
        /// What the simulator says of it.
        reasons: Vec<String>,
    },
}

fn suggestion(nearest: Option<&str>, known: &str) -> String {
    match (nearest, known) {
        (Some(nearest), "") => format!(": did you mean `{nearest}`?"),
        (Some(nearest), known) => format!(": did you mean `{nearest}`? There are: {known}"),
        (None, known) => format!("; there are: {known}"),
    }
}

fn because(reasons: &[String]) -> String {
    reasons.iter().map(|reason| format!("\n  {reason}")).collect()
}

impl Error {
    pub(crate) fn value(at: Place, key: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Value {
            at,
            key: key.into(),
            problem: problem.into(),
        }
    }

    pub(crate) fn option(option: &'static str, problem: impl Into<String>) -> Self {
        let problem = problem.into();
        Self::Option { option, problem }
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Read { path, source }
    }

    pub(crate) fn object(path: &Path) -> impl FnOnce(ObjectError) -> Self {
        let path = path.to_owned();
        |source| Self::Object {
            path,
            source: Box::new(source),
        }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Write { path, source }
    }
}
