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
//! # let directory = tempfile::tempdir()?;
//! # let pack = rocmforge_kernels::Pack::embedded("gfx1100").unwrap()?;
//! # std::fs::write(directory.path().join("add.co"), pack.object("scale").unwrap())?;
//! # let path = directory.path().join("launch.toml");
//! # let path = path.as_path();
//! let file = LaunchFile::parse(path, r#"
//!     object = "add.co"
//!     [[launch]]
//!     kernel = "scale"
//!     block = 256
//!     args = ["f32[64] iota", "f32[64]", 64, 0.5]
//! "#)?;
//! let outcome = run(&Plan::new(file)?)?;
//! assert!(outcome.findings.is_empty(), "{:#?}", outcome.findings);
//! # Ok::<(), Box<dyn std::error::Error>>(())
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
pub use object_error::{ARCHS, ObjectError};
pub use object_file::{ObjectFile, describe, signature, template};
pub use options::{Options, name_filter};
pub use outcome::{EndlessLaunch, Finding, Outcome, StoppedLaunch};
pub use plan::Plan;
pub use program::RunArgs;
pub use run::run;
pub use seed_run::{SeedRun, run_seed};
pub use suppress::{Suppression, Suppressions};
