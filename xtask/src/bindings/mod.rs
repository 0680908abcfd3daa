//! `cargo xtask bindings check`: compares `rocmforge-hip-sys` with the HIP headers of this machine (a C probe, compiled from
//! our own lists) and with the generated bindings of the hip-sys crate (a check crate of its own that links ROCm).

mod cuda;
mod header;
mod known;
mod oracle;
mod probe;
mod report;
#[cfg(test)]
mod tests;

use header::Header;
use rocmforge_gpu_test::{Outcome, say};
use rocmforge_hip_sys::abi;
use std::path::PathBuf;

/// `cargo xtask bindings`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Compares sizes, offsets, constants and signatures with the HIP headers and with the hip-sys crate.
    Check(CheckArgs),
    /// Compares the functions, constants and structs of NVIDIA's platform with NVIDIA's headers.
    Cuda(cuda::CudaArgs),
}

#[derive(clap::Args)]
struct CheckArgs {
    /// The folder that holds hip/hip_runtime_api.h. Looked for in ROCM_PATH, HIP_PATH, /usr and /opt/rocm otherwise.
    #[arg(long)]
    include: Option<PathBuf>,
    /// Leaves the hip-sys crate out (it needs the HIP library to link).
    #[arg(long)]
    no_oracle: bool,
    /// Without HIP headers, says so and succeeds.
    #[arg(long)]
    skip_if_absent: bool,
}

/// Why the comparison could not be made, or what it found.
#[derive(Debug, thiserror::Error)]
enum BindingsError {
    #[error(
        "no HIP headers: hip/hip_runtime_api.h is in none of {tried}. Install them (Debian: libamdhip64-dev) or name their \
         folder with --include"
    )]
    HeadersAbsent { tried: String },
    #[error("{header} is not in {tried}; name NVIDIA's folder of headers with --include")]
    CudaAbsent { header: &'static str, tried: String },
    #[error("the C compiler failed on {what} ({command}):\n{output}")]
    Compiler {
        what: &'static str,
        command: String,
        output: String,
    },
    #[error("cannot run {program}: {source}")]
    Run { program: String, source: std::io::Error },
    #[error("cannot write {path}: {source}")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("the probe printed {0:?}, which is no answer")]
    Answer(String),
    #[error("the header says no HIP_VERSION_MAJOR and HIP_VERSION_MINOR")]
    NoVersion,
    #[error("{count} of our bindings differ from the headers: {names}")]
    Differ { count: usize, names: String },
    #[error("our bindings differ from those of the hip-sys crate, or the check crate does not build:\n{0}")]
    Oracle(String),
}

/// What is compared: our lists, or doctored ones in tests.
struct Subject {
    functions: Vec<abi::Function>,
    constants: Vec<abi::Constant>,
    layouts: Vec<abi::Layout>,
    types: Vec<(&'static str, usize)>,
}

impl Subject {
    fn ours() -> Self {
        Self {
            functions: abi::FUNCTIONS.to_vec(),
            constants: abi::constants(),
            layouts: abi::layouts(),
            types: abi::TYPES.to_vec(),
        }
    }
}

/// Where this machine has HIP's development files: the folder of `include` and `lib`.
pub(crate) fn hip_root() -> Result<PathBuf, impl std::error::Error> {
    header::find(None).map(|include| include.parent().unwrap_or(&include).to_owned())
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome {
    let args = match args.command {
        Command::Check(args) => args,
        Command::Cuda(args) => return cuda::run(args),
    };
    let include = match header::find(args.include.as_deref()) {
        Err(BindingsError::HeadersAbsent { tried }) if args.skip_if_absent => {
            say!("SKIP bindings check: no HIP headers in {tried} (Debian: libamdhip64-dev)");
            return Ok(());
        }
        found => found?,
    };
    let header = Header::read(&include)?;
    say!(
        "HIP {}.{} headers in {}",
        header.version.0,
        header.version.1,
        include.display()
    );
    let rows = probe::compare(&header, &Subject::ours())?;
    report::print(&rows);
    let different = rows.iter().filter(|row| row.is_failure());
    let different: Vec<&str> = different.map(|row| row.name.as_str()).collect();
    if !different.is_empty() {
        return Err(BindingsError::Differ {
            count: different.len(),
            names: different.join(", "),
        }
        .into());
    }
    if args.no_oracle {
        say!("SKIP the hip-sys crate: --no-oracle");
        return Ok(());
    }
    oracle::check(&include)?;
    Ok(())
}
