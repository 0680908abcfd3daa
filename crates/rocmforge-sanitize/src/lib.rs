//! memcheck, initcheck, racecheck and synccheck for AMD GPU kernels, on any CPU: runs a compiled kernel on the simulated
//! Radeon from a small TOML file, once for each seed, and tells what is wrong with it.
//!
//! The program is `rocmforge-sanitize`; this library is what it is made of, for tests that want to run launch files
//! themselves. The launch file is described in `docs/sanitize.md`.
//!
//! ```
//! use rocmforge_sanitize::{LaunchFile, Plan, run};
//! use std::path::Path;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let file = LaunchFile::read(Path::new("examples/reverse.toml"))?;
//!     let outcome = run(&Plan::new(file)?)?;
//!     for finding in &outcome.findings {
//!         println!("{}", finding.report);
//!     }
//!     assert_eq!(outcome.findings.len(), 2); // the read that comes too early, and the race
//!     Ok(())
//! }
//! ```

mod check_args;
mod cli;
mod dtype;
mod error;
mod files;
mod fill;
mod launch_file;
mod machine;
mod npy;
mod object_error;
mod object_file;
mod options;
mod outcome;
mod page;
mod param_types;
mod plan;
mod program;
mod run;
mod seed_run;
mod suppress;
mod toml_reader;

pub use check_args::{CheckArgs, LeakCheck};
pub use cli::{Cli, Command, Exit, Format, main};
pub use dtype::{DType, Number};
pub use error::{Error, Place};
pub use fill::{Fill, Pointer};
pub use launch_file::{
    Action, Argument, Buffer, Copy, Launch, LaunchFile, MAX_BYTES, MAX_SEEDS, ObjectRef, ScheduleKind, Step,
};
pub use object_error::ObjectError;
pub use object_file::{ObjectFile, describe, template};
pub use options::Options;
pub use outcome::{EndlessLaunch, Finding, Outcome, StoppedLaunch};
pub use plan::Plan;
pub use program::RunArgs;
pub use run::run;
pub use seed_run::{SeedRun, run_seed};
pub use suppress::{Suppression, Suppressions};
